"""Explanations of log densities: acceptance tests 13 to 15 of tracing, checks, points, gradients, texts, the command.
What is said of single statements: test_explain_statements.py.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explained_programs import at, culprit, elements, explained

from ulam import InitializationError, StanModel
from ulam.runtime.errors import ArgumentError, DataError, Rejection
from ulam.tools import ulam_main as command
from ulam.trace import MISSING
from ulam.tracing.explain import explainer as explain_module
from ulam.tracing.explain.text import print_explanation
from ulam.tracing.gradients.op_library import NoDerivative

U = """\
data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model {
  mu ~ normal(0, 10);
  sigma ~ lognormal(0, 1);
  y ~ uniform(mu - sigma, mu + sigma);
}
"""
U_DATA = {"N": 3, "y": [0.1, 0.4, 5.0]}

N = """\
parameters { real a; }
model {
  real s = log(a);
  a ~ normal(0, 1);
  target += s;
}
"""

E = """\
data { vector[2] y; } parameters { real z; }
transformed parameters { real tau = exp(z); }
model { y ~ normal(0, tau); }
"""


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def u() -> StanModel:
    return StanModel(U, U_DATA)


@pytest.fixture(scope="module")
def n() -> StanModel:
    return StanModel(N)


@pytest.fixture(scope="module")
def e() -> StanModel:
    return StanModel(E, {"y": [1, 2]})


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs `ulam explain` on a program; exit status, standard output and error."""

    def run(text: str, data: Any, *arguments: str) -> tuple[int, str, str]:
        path = tmp_path / "m.stan"
        path.write_text(text)
        status = command.main(["explain", str(path), "--data", json.dumps(data), *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


# ---------------------------------------------------------------- 13, 14, 15


def test_13_an_element_outside_of_its_support(u: StanModel, run: Callable[..., tuple[int, str, str]]) -> None:
    """Acceptance test 13."""
    found = u.explain([0.0, 0.0])
    terms = {(term.kind, term.statement.line): term.increment for term in found.terms}
    assert terms == {
        ("jacobian", 2): 0.0,
        ("tilde", 4): pytest.approx(-3.2215236261987186, rel=1e-12),
        ("tilde", 5): pytest.approx(-0.9189385332046727, rel=1e-12),
        ("tilde", 6): -math.inf,
    }
    assert [term.statement.line for term in found.terms] == [6, 4, 5, 2]
    assert found.outcome == "-inf" and found.log_density == -math.inf
    cause = culprit(found)
    assert at(cause).line == 6 and at(cause).text == "y ~ uniform(mu - sigma, mu + sigma);"
    assert elements(cause).increments == pytest.approx([-0.6931471805599453, -0.6931471805599453, -math.inf])
    assert elements(cause).shown[0].reason == "y[3] = 5.0 outside [-1.0, 1.0]"
    status, out, _ = run(U, U_DATA, "--unconstrained", "[0, 0]")
    assert status == 1
    assert "y[3] = 5.0 outside [-1.0, 1.0]" in out and "-0.69314718" in out


def test_14_where_a_nan_began(n: StanModel) -> None:
    """Acceptance test 14."""
    found = n.explain([-1.0])
    cause = culprit(found)
    assert found.outcome == "nan" and at(cause).line == 5
    (birth,) = cause.births
    assert birth.expression == "log(-1.0) = nan" and birth.at is not None and birth.at.line == 3
    assert math.isnan(birth.value)
    text = str(found)
    assert "NaN" in text and "log(0)" not in text and "-inf" not in text
    (prior,) = [term for term in found.terms if term.statement.line == 4]
    assert prior.increment == pytest.approx(-1.4189385332046727, rel=1e-12)
    assert [step.text for step in cause.slice] == ["a = -1.0, a parameter"]


def test_15_a_check_that_failed(e: StanModel) -> None:
    """Acceptance test 15."""
    root = e.track_density([-800.0])
    error = root.trace.error
    assert root.value is MISSING and error is not None and error.span is not None
    assert error.span.line == 3 and "is 0," in error.message and isinstance(error.exception, Rejection)
    assert error.node is not None
    before = [node for node in root.children if node.at < error.node.at]
    assert len(before) == error.node.at - 1 and all(node.value is not MISSING for node in before)
    found = e.explain([-800.0])
    cause = culprit(found)
    assert found.outcome == "rejected" and found.log_density is None
    assert at(cause).line == 3 and "sigma is 0" in cause.message
    assert cause.slice[0].expression == "exp(-800.0) = 0.0" and cause.slice[0].text == "tau = exp(-800.0) = 0.0"
    assert cause.slice[0].at is not None and cause.slice[0].at.line == 2


# ---------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("program", "theta", "line", "message", "steps"),
    [
        (
            "parameters { real a; }\ntransformed parameters {\n  vector<lower=0>[2] t = [1, 2 * a]';\n}\nmodel { }",
            [-1.0], 3, "t[2] is -2, but must be greater than or equal to 0", ["2.0 * (-1.0) = -2.0"],
        ),
        (
            "parameters { real a; }\ntransformed parameters {\n  real<lower=0> t;\n  t = 2 * a;\n}\nmodel { }",
            [-1.0], 3, "t is -2, but must be greater than or equal to 0", ["t = 2.0 * (-1.0) = -2.0"],
        ),
        (
            "parameters { vector[2] a; }\ntransformed parameters {\n  simplex[2] t = exp(a);\n}\nmodel { }",
            [0.0, 0.0], 3, "t: the sum is 2, but must be 1: the entries of a simplex sum to 1",
            ["t = exp([0.0, 0.0]) = [1.0, 1.0]"],
        ),
        (
            "parameters { real a; }\nmodel {\n  real b = square(a);\n  if (b > 1) reject(\"b is \", b);\n}",
            [2.0], 4, "b is 4", ["b = square(2.0) = 4.0"],
        ),
        (
            "parameters { real s; }\nmodel {\n  matrix[2, 2] S = diag_matrix([s, 1]');\n"
            "  zeros_vector(2) ~ multi_normal(ones_vector(2), S);\n}",
            [-1.0], 4, "is not positive definite", [],
        ),
        (
            "parameters { vector[2] s; }\nmodel {\n  vector[2] t = log(s);\n  t ~ normal(0, 1);\n}",
            [1.0, -2.0], 4, "t[2] is nan", [],
        ),
    ],
)  # fmt: skip
def test_checks_name_what_their_argument_was_made_of(
    program: str, theta: list[float], line: int, message: str, steps: list[str]
) -> None:
    message = message.replace("t[2] is nan", "y[2] is nan")
    found = explained(program, None, theta)
    cause = culprit(found)
    assert found.outcome == "rejected" and at(cause).line == line
    assert message in cause.message
    assert [step.text for step in cause.slice][: len(steps)] == steps
    assert not cause.births or cause.births[0].text == "t[2] = log(-2.0) = nan"


def test_errors_that_end_a_run() -> None:
    program = """data { int n; vector[3] y; } parameters { real a; }
model {
  print("a is ", a);
  a ~ normal(0, 1);
  y[n + 1] ~ normal(a, 1);
}"""
    found = explained(program, {"n": 3, "y": [1, 2, 3]}, [2.0])
    cause = culprit(found)
    assert found.outcome == "failed" and at(cause).line == 5 and "index 4 out of range" in cause.message
    assert [step.text for step in cause.slice] == ["3 + 1 = 4", "n = 3, data"]
    assert [term.statement.line for term in found.terms] == [4]
    assert found.printed == "a is 2\n"


# ---------------------------------------------------------------- points


def test_a_good_point_shows_its_terms(u: StanModel, run: Callable[..., tuple[int, str, str]]) -> None:
    point = {"mu": 2, "sigma": 3.5}
    found = u.explain(point)
    assert found.ok and found.outcome == "finite" and found.causes == []
    assert found.log_density == pytest.approx(u.log_density(np.array([2, math.log(3.5)]), propto=False), rel=1e-12)
    assert found.log_density == pytest.approx(sum(term.increment for term in found.terms))
    assert found.gradient == pytest.approx(u.log_density_gradient(np.array([2, math.log(3.5)]))[1].tolist())
    assert [p.constrained for p in found.parameters] == pytest.approx([2, 3.5])
    status, out, _ = run(U, U_DATA, "--init", json.dumps(point))
    assert status == 0 and "the log density is finite" in out and "sigma ~ lognormal(0, 1)" in out


def test_propto_shows_what_is_kept_and_dropped(u: StanModel) -> None:
    point = np.array([2.0, math.log(3.5)])
    found = u.explain(point, propto=True)
    full = {term.statement.line: term.increment for term in u.explain(point).terms}
    for term in found.terms:
        assert term.full == full[term.statement.line]
    by_line = {term.statement.line: term for term in found.terms}
    assert by_line[4].increment == pytest.approx(-0.5 * 0.2**2)
    assert by_line[4].dropped == pytest.approx(-math.log(10) - 0.5 * math.log(2 * math.pi))
    assert found.log_density == pytest.approx(StanModel(U, U_DATA, opt_level=0).log_density(point), rel=1e-12)
    assert "dropped" in str(found)


def test_without_parameters(run: Callable[..., tuple[int, str, str]]) -> None:
    program = "data { real y; } model { y ~ uniform(0, 1); }"
    assert run(program, {"y": 0.5})[0] == 0
    status, out, _ = run(program, {"y": 2})
    assert status == 1 and "y = 2.0 outside [0.0, 1.0]" in out


def test_without_jacobian(u: StanModel) -> None:
    found = u.explain([0.0, 0.5], jacobian=False)
    assert [term.kind for term in found.terms] == ["tilde"] * 3


def test_wrong_points(u: StanModel, run: Callable[..., tuple[int, str, str]]) -> None:
    with pytest.raises(DataError, match="no initial value is for a parameter of the model \\(mu, sigma\\), found x"):
        u.explain({"x": 1})
    with pytest.raises(DataError, match="'sigma' is not in its support"):
        u.explain({"mu": 1, "sigma": -1})
    with pytest.raises(ArgumentError, match="found shape"):
        u.explain([1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError, match="tries is 0"):
        u.explain(tries=0)
    status, out, problem = run(U, U_DATA, "--init", '{"x": 1}')
    assert (status, out) == (1, "") and "no initial value is for a parameter" in problem
    for wrong in (
        ["--init", "1", "--unconstrained", "[0, 0]"],
        ["--unconstrained", "[[0, 0], [1, 1]]"],
        ["--tries", "0"],
    ):
        assert run(U, U_DATA, *wrong)[0] == 2
    assert run(U, U_DATA, "--unconstrained", "[0]")[0] == 1
    assert run(U, {"N": 3}, "--unconstrained", "[0, 0]")[0] == 1


# ---------------------------------------------------------------- gradients


def test_a_gradient_that_is_not_finite() -> None:
    program = """parameters { real a; vector[2] b; }
model {
  real zero = a - a;
  target += sqrt(zero) - dot_self(b);
}"""
    found = explained(program, None, [0.5, 1.0, 2.0])
    cause = culprit(found)
    assert found.outcome == "gradient" and math.isfinite(found.log_density or math.nan)
    assert "unconstrained 'a'" in cause.message and not found.ok and at(cause).line == 4
    assert cause.births[0].expression == "sqrt(0.0) = 0.0" and cause.births[0].value == math.inf
    assert cause.births[0].text == "sqrt(0.0) = 0.0; its derivative in zero makes the adjoint inf"
    assert [step.text for step in cause.slice] == ["zero = 0.5 - 0.5 = 0.0", "a = 0.5, a parameter"]
    assert found.gradient is not None and found.gradient[1:] == [-2.0, -4.0]


def test_the_gradient_of_a_container_of_a_function_in_a_loop() -> None:
    program = """functions { vector root(vector x) { return sqrt(x); } }
data { vector[3] x; }
parameters { real a; real<lower=0> s; }
model {
  for (k in 1:2) {
    vector[3] d = x - a * k;
    target += sum(root(d)) * s;
  }
}"""
    found = explained(program, {"x": [5, 2, 7]}, [1.0, 0.0])
    cause = culprit(found)
    assert cause.loop == {"k": 2} and [call.line for call in cause.calls] == [7]
    assert cause.births[0].text == "sqrt(0.0) = 0.0; its derivative in x[2] makes the adjoint inf"
    assert [step.text for step in cause.slice][:2] == ["d[2] = 2.0 - 2.0 = 0.0", "1.0 * 2 = 2.0"]


def test_a_gradient_whose_pullbacks_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NoDerivative("not yet")

    monkeypatch.setattr("ulam.tracing.gradients.op_library.OpLibrary.pullback", refuse)
    found = explained("parameters { real a; }\nmodel {\n  target += sqrt(a - a);\n}", None, [0.5])
    assert found.outcome == "gradient" and culprit(found).births == [] and "not yet" in found.notes[0]


# ---------------------------------------------------------------- several points


def test_failures_are_counted_by_statement(u: StanModel) -> None:
    found = u.explain(tries=100, seed=3)
    tries = found.tries
    assert tries is not None and tries.total == 100
    values = [u.log_density(point, propto=False) for point in _drawn(u, 3, 100)]
    assert tries.failed == sum(not math.isfinite(value) for value in values) > 50
    assert tries.first == next(k for k, value in enumerate(values, 1) if not math.isfinite(value))
    (failure,) = tries.failures
    assert failure.count == tries.failed and failure.statement is not None and failure.statement.line == 6
    assert "-infinity: y[1 ... 3] = 0.1 ... 5 outside [-" in failure.text
    assert f"{failure.count} of 100 fail at line 6" in str(found)


def _drawn(model: StanModel, seed: int, count: int) -> list[Any]:
    points = explain_module.Points(model, explain_module.read_init(model, None), seed)
    drawn = [points.next() for _ in range(count)]
    assert not any(isinstance(point, Rejection) for point in drawn)
    return drawn


ALL_FAIL = """data { vector[2] y; }
parameters { real<lower=0> s; real a; }
model {
  a ~ normal(0, 1);
  y ~ normal(a, -s);
}
"""


def test_all_points_fail_at_one_line(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run(ALL_FAIL, {"y": [1, 2]}, "--tries", "100")
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == "100 of 100 points fail (between (-2, 2)):"
    assert lines[1] == "   100 of 100 fail at line 5: y ~ normal(a, -s)"
    assert "normal_lpdf: sigma is -6." in lines[2] and " ... -0.1" in lines[2]
    assert "Point 1, the first that fails:" in out and "-s" in out


def test_good_points(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run("parameters { real a; } model { a ~ normal(0, 1); }", {}, "--tries", "5")
    assert status == 0 and out.startswith("None of 5 points fails")


def test_different_failures_are_told_apart() -> None:
    program = """parameters { real a; real b; }
model {
  if (a > 1) reject("a is too large: ", a);
  target += log(b);
}"""
    tries = explained(program, None, None, tries=50, seed=1).tries
    assert tries is not None and len(tries.failures) == 2
    texts = {failure.statement.line: failure for failure in tries.failures if failure.statement}
    assert texts[3].text.startswith("a is too large: 1.") and " ... 1.9" in texts[3].text
    assert texts[4].text.startswith("NaN: log(-1.") and texts[4].text.endswith(") = nan")
    assert texts[3].count + texts[4].count == tries.failed


def test_the_density_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = StanModel(ALL_FAIL, {"y": [1, 2]})
    compiled: list[Any] = []
    program = model.traced_program
    compile_ = program._compile  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(program, "_compile", lambda *given: (compiled.append(given), compile_(*given))[1])
    model.explain(tries=100)
    assert len(compiled) == 1


# ---------------------------------------------------------------- text and JSON


def test_text_of_an_explanation(u: StanModel) -> None:
    assert str(u.explain([0.0, 0.0])) == (
        "model.stan: the log density is -infinity: the density is 0\n"
        "\n"
        "model.stan:6:3: error: this statement adds -infinity to the log density\n"
        "    6 |   y ~ uniform(mu - sigma, mu + sigma);\n"
        "      |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   y[3] = 5.0 outside [-1.0, 1.0]\n"
        "   1 of 3 elements is not finite; others: y[1] = 0.1: -0.69314718; y[2] = 0.4: -0.69314718\n"
        "   alpha = mu - sigma = -1.0\n"
        "   beta = mu + sigma = 1.0\n"
        "\n"
        "line  statement                              increment  target after\n"
        "   6  y ~ uniform(mu - sigma, mu + sigma)         -inf          -inf\n"
        "   4  mu ~ normal(0, 10)                    -3.2215236    -3.2215236\n"
        "   5  sigma ~ lognormal(0, 1)              -0.91893853    -4.1404622\n"
        "   2  Jacobian of sigma                              0             0\n"
        "\n"
        "parameter  unconstrained  constrained\n"
        "mu                     0            0\n"
        "sigma                  0            1"
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_on_a_terminal_only(u: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    found = u.explain([0.0, 0.0])
    terminal, pipe = Terminal(), io.StringIO()
    print_explanation(found, terminal)
    print_explanation(found, pipe)
    assert "\x1b[" in terminal.getvalue() and "y[3] = 5.0 outside [-1.0, 1.0]" in terminal.getvalue()
    assert pipe.getvalue() == str(found) + "\n" and "\x1b" not in pipe.getvalue()


def test_json(run: Callable[..., tuple[int, str, str]]) -> None:
    program = U.replace("model {", 'model {\n  print("mu is ", mu);')
    status, out, _ = run(program, U_DATA, "--unconstrained", "[0, 0]", "--json")
    record = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert status == 1 and record["schema_version"] == 1 and record["ok"] is False
    assert record["log_density"] == "-Infinity" and record["outcome"] == "-inf"
    assert record["terms"][0]["increment"] == "-Infinity" and record["terms"][0]["statement"]["line"] == 7
    assert record["causes"][0]["elements"]["shown"][0]["name"] == "y[3]"
    assert record["printed"] == "mu is 0\n"
    record = json.loads(explained(N, None, [-1.0]).to_json())
    assert record["log_density"] == "NaN" and record["causes"][0]["births"][0]["value"] == "NaN"


def test_an_explanation_can_be_pickled(u: StanModel) -> None:
    found = u.explain([0.0, 0.0])
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


# ---------------------------------------------------------------- when all initial points fail


def test_optimize_explains_the_first_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.stan"
    path.write_text(N.replace("log(a)", "log(-exp(a))"))
    for more in ([], ["--starts", "2"], ["--jacobian"]):
        assert command.main(["optimize", str(path), *more]) == 1
        printed = capsys.readouterr().err
        assert "100 of 100: the log density is not a number (NaN) after `target += s;`" in printed
        assert "The first point that failed:" in printed and "first NaN at" in printed
        assert "s = log(-" in printed and printed.count("line 5") >= 1


def test_an_initialization_error_can_explain_itself() -> None:
    model = StanModel(ALL_FAIL, {"y": [1, 2]})
    with pytest.raises(InitializationError) as caught:
        model.optimize(seed=1)
    found = caught.value.explain()
    assert found is not None and found.outcome == "rejected" and at(culprit(found)).line == 5
    np.testing.assert_array_equal(caught.value.point, _drawn(model, 1, 1)[0])
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.explain() is None and str(again) == str(caught.value)
    np.testing.assert_array_equal(again.point, caught.value.point)


def test_what_programs_print_is_shown_by_no_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """Several optimizations in threads look for failing statements at a time; standard output stays what it is."""
    program = 'parameters { real a; }\nmodel {\n  print("*");\n  target += log(-exp(a));\n}'
    model = StanModel(program)
    out = sys.stdout
    with pytest.raises(InitializationError, match="all 4 starts failed"):
        model.optimize(n_starts=4)
    assert sys.stdout is out and capsys.readouterr().out == "*\n" * 400
    assert model.explain([0.0]).printed == "*\n" and capsys.readouterr().out == ""


def test_programs_that_cannot_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    from ulam.passes.errors import NotSupportedError

    def refuse(*_: Any) -> Any:
        raise NotSupportedError("this cannot be traced yet")

    monkeypatch.setattr("ulam.tracing.session.TracedProgram._lower", refuse)
    found = StanModel(U, U_DATA).explain([0.0, 0.0])
    assert found.outcome == "-inf" and found.terms == [] and "cannot be traced yet" in found.notes[0]
    found = StanModel(E, {"y": [1, 2]}).explain([-800.0])
    assert found.outcome == "rejected" and at(culprit(found)).line == 3 and "sigma is 0" in culprit(found).message
    with pytest.raises(InitializationError, match="100 of 100: the log density is not a number"):
        StanModel(N.replace("log(a)", "log(-exp(a))")).optimize()


def test_tracing_is_imported_when_it_is_needed() -> None:
    code = (
        "import sys; from ulam import StanModel; "
        "StanModel('parameters { real a; } model { a ~ normal(0, 1); }').optimize(); "
        "print([m for m in sys.modules if m.startswith('ulam.tracing.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['ulam.tracing.tracked_model']"  # a base class of the model
