"""Explanations of log densities: acceptance tests 13 to 15 of tracing, elements, births, checks, texts, the command."""

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

from ulam import InitializationError, StanModel
from ulam.library import catalog
from ulam.library.functions import DENSITIES, function, named
from ulam.runtime.errors import ArgumentError, DataError, Rejection
from ulam.tools import ulam_main as command
from ulam.trace import MISSING, NestedCallNode
from ulam.tracing.explain import explainer as explain_module
from ulam.tracing.explain.birth import births
from ulam.tracing.explain.explanation import Explanation
from ulam.tracing.explain.parts import Cause, Elements, QuotedStatement
from ulam.tracing.explain.supports import Interval, support
from ulam.tracing.explain.terminal import print_explanation
from ulam.tracing.gradients.op_library import NoDerivative
from ulam.tracing.nodes import ItemNode

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


def culprit(explanation: Explanation) -> Cause:
    cause = explanation.culprit
    assert cause is not None
    return cause


def at(cause: Cause) -> QuotedStatement:
    assert cause.statement is not None
    return cause.statement


def elements(cause: Cause) -> Elements:
    assert cause.elements is not None
    return cause.elements


def explained(text: str, data: Any = None, theta: Any = None, **options: Any) -> Explanation:
    return StanModel(text, data).explain(theta, **options)


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


# ---------------------------------------------------------------- elements


MATRICES = """
data { matrix[2, 3] Y; array[2, 2] int k; array[3] int which; vector[4] v; }
parameters { real a; }
model {
  to_vector(Y) ~ uniform(a, 6.5);
  for (i in 1:2) Y[i] ~ uniform(0, 7.5);
  Y[:, 2] ~ uniform(0, 4.5);
  for (i in 1:2) k[i] ~ discrete_range(0, 3);
  v[which] ~ uniform(0, 30);
  v[2:] ~ uniform(0, 30);
  (v - 1) ~ uniform(0, 30);
}
"""
MATRICES_DATA = {"Y": [[1, 2, 8], [4, 5, 6]], "k": [[1, 2], [7, 3]], "which": [1, 4, 2], "v": [1, 20, 3, 40]}


def test_elements_have_the_names_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain_module, "MOST_CAUSES", 10)
    found = explained(MATRICES, MATRICES_DATA, [0.0])
    reasons = {at(cause).line: [e.reason for e in elements(cause).shown if e.reason] for cause in found.causes}
    assert reasons == {
        5: ["Y[1, 3] = 8.0 outside [0.0, 6.5]"],
        6: ["Y[1, 3] = 8.0 outside [0.0, 7.5]"],
        7: ["Y[2, 2] = 5.0 outside [0.0, 4.5]"],
        8: ["k[2, 1] = 7 outside [0, 3]"],
        9: ["v[4] = 40.0 outside [0.0, 30.0]"],
        10: ["v[4] = 40.0 outside [0.0, 30.0]"],
        11: ["(v - 1)[4] = 39.0 outside [0.0, 30.0]"],
    }
    assert [cause.loop for cause in found.causes] == [{}, {"i": 1}, {}, {"i": 2}, {}, {}, {}]
    names = [e.name for e in elements(found.causes[0]).shown]
    assert names == ["Y[1, 3]", "Y[1, 1]", "Y[2, 1]", "Y[1, 2]", "Y[2, 2]", "Y[2, 3]"]


def test_an_element_may_be_impossible_within_the_support() -> None:
    program = """data { array[3] int y; vector[3] x; } parameters { real s; }
transformed parameters { vector[3] p = inv_logit(x * s); }
model { y ~ bernoulli(p); }"""
    found = explained(program, {"y": [0, 1, 0], "x": [1, 1000, 1000]}, [1.0])
    assert elements(culprit(found)).shown[0].reason == "y[3] = 0 has log density -inf for theta = 1.0"
    assert elements(culprit(found)).guilty == 1


def test_a_scalar_left_side_has_no_elements() -> None:
    found = explained("parameters { real a; } model { a ~ uniform(0, 1); }", None, [2.0])
    cause = culprit(found)
    assert cause.elements is None and cause.notes == ["a = 2.0 outside [0.0, 1.0]"]


def test_elements_of_multivariate_densities() -> None:
    program = """data { array[2] vector[2] y; } parameters { real s; }
model { y ~ multi_student_t(3, [s, s]', identity_matrix(2)); y ~ dirichlet([s, 1]'); }"""
    found = explained(program, {"y": [[0, 1], [0.5, 0.5]]}, [2.0])
    shown = elements(culprit(found)).shown
    assert [e.name for e in shown] == ["y[1]", "y[2]"]
    assert shown[0].increment == -math.inf and math.isfinite(shown[1].increment)


# A variate outside, one inside, for arguments in the order of the library's definitions.
OUTSIDE: dict[str, tuple[list[float], list[float], list[float]]] = {
    "uniform": ([-1, 2], [-1.5, 2.5], [0.5]),
    "hypergeometric": ([5, 3, 4], [-1, 4], [1, 2]),
    "beta": ([2, 3], [-0.1, 1.1], [0.5]),
    "beta_proportion": ([0.3, 3], [-0.1, 1.1], [0.5]),
    "lognormal": ([0, 1], [-1, 0], [0.5]),
    "exponential": ([2], [-1], [0, 0.5]),
    "gamma": ([1, 2], [-1, 0], [0.5]),
    "inv_gamma": ([2, 1], [-1, 0], [0.5]),
    "chi_square": ([2], [-1], [0.5]),
    "inv_chi_square": ([2], [-1, 0], [0.5]),
    "scaled_inv_chi_square": ([2, 1], [-1, 0], [0.5]),
    "weibull": ([1, 2], [-1], [0.5]),
    "frechet": ([2, 1], [-1, 0], [0.5]),
    "rayleigh": ([1], [-1, 0], [0.5]),
    "loglogistic": ([1, 2], [-1, 0], [0.5]),
    "pareto": ([1.5, 2], [1.4], [1.5, 2]),
    "pareto_type_2": ([1.5, 2, 1], [1.4], [1.5, 2]),
    "wiener": ([1, 0.5, 0.5, 0], [0.4], [0.9]),
    "bernoulli": ([0.3], [-1, 2], [0, 1]),
    "bernoulli_logit": ([0.3], [-1, 2], [0, 1]),
    "binomial": ([3, 0.5], [-1, 4], [0, 3]),
    "binomial_logit": ([3, 0.5], [-1, 4], [0, 3]),
    "beta_binomial": ([3, 1, 2], [-1, 4], [0, 3]),
    "discrete_range": ([2, 4], [1, 5], [2, 4]),
    "poisson": ([2], [-1], [0, 3]),
    "poisson_log": ([2], [-1], [0, 3]),
    "neg_binomial": ([1, 2], [-1], [0, 3]),
    "neg_binomial_2": ([1, 2], [-1], [0, 3]),
    "neg_binomial_2_log": ([1, 2], [-1], [0, 3]),
    "beta_neg_binomial": ([1, 2, 3], [-1], [0, 3]),
    "yule_simon": ([1], [0], [1, 3]),
}  # fmt: skip


def _density(name: str) -> tuple[str, list[str], list[bool]]:
    """The library's function, the names of its arguments, and which are ints."""
    from ulam.frontend.functions.definitions import overloads

    (definition,) = [f.definition for kind in DENSITIES for f in overloads(kind.of(name))]
    types = [str(argument.type) for argument in definition.arguments]
    return definition.name, [a.name for a in definition.arguments], [t == "int" for t in types]


def test_supports_are_those_of_the_densities() -> None:
    """Of each that the definitions tell: within, the density is positive; outside, it is 0 or refused."""
    known = {n.stem for n in map(named, catalog.names()) if n.kind.is_density and function(n.normalized).support}
    assert {name for name in known if "_of_log_" not in name} == set(OUTSIDE)
    branches: list[str] = []
    points: list[tuple[int, float, bool]] = []
    for number, (name, (arguments, outside, inside)) in enumerate(OUTSIDE.items()):
        called, names, ints = _density(name)
        written = [str(int(a)) if is_int else repr(float(a)) for a, is_int in zip(arguments, ints[1:], strict=True)]
        branches.append(f"if (which == {number}) return {called}({'k' if ints[0] else 'y'} | {', '.join(written)});")
        interval = support(name, dict(zip(names[1:], arguments, strict=True)))
        assert isinstance(interval, Interval)
        for values, expected in ((outside, False), (inside, True)):
            for value in values:
                assert (value in interval) is expected, (name, value)
                points.append((number, value, expected))
    model = StanModel(
        "functions { real density(int which, real y, int k) {\n" + "\n".join(branches) + "\nreturn 0; } }"
    )
    for number, value, expected in points:
        k = int(value) if value == int(value) else 0
        node = model.track("density", number, float(value), k)
        reached = node.value if node.trace.error is None else -math.inf
        assert (reached > -math.inf) is expected, (list(OUTSIDE)[number], value)


# ---------------------------------------------------------------- births


FUNCTIONS = """functions {
  real g(real u, real v) {
    real w = u - v;
    return log(w) * 2;
  }
  real of_vector(vector v, int n) {
    vector[3] z;
    for (i in 1:n) {
      z[i] = g(v[i], 1) + v[i];
    }
    vector[3] q = z + 1;
    return sum(q) / 2 - 1;
  }
  real of_infinity(real x) {
    real big = exp(x);
    real r = big / big;
    return r - 1;
  }
  real unassigned(real x) {
    real r;
    return r + x;
  }
  real in_a_loop(real x) {
    real s = x;
    for (i in 1:3) {
      s = s - 1;
      s = sqrt(s);
    }
    return s;
  }
  real of_bounds(real x, real low) {
    real y = fmax(x, low);
    return log(y) + 0 * x;
  }
  real of_matrix(matrix m) {
    return sum(log(to_vector(m)));
  }
}"""


@pytest.fixture(scope="module")
def functions() -> StanModel:
    return StanModel(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("of_vector", ([2, 0.5, 3], 3), [(4, "log", -0.5)]),
        ("of_infinity", (800.0,), [(15, "exp", 800.0), (16, "/", math.inf)]),
        ("in_a_loop", (2.5,), [(27, "sqrt", pytest.approx(-0.5259273564193048))]),
        ("of_bounds", (-1.0, -math.inf), [(33, "log", -1.0)]),
        ("of_matrix", (np.array([[1.0, 2.0], [-3.0, 4.0]]),), [(36, "log", -3.0)]),
    ],
)
def test_births(functions: StanModel, name: str, arguments: tuple[Any, ...], expected: list[Any]) -> None:
    root = functions.track(name, *arguments)
    assert isinstance(root, NestedCallNode)
    found = births(root[-1])
    places = [(f.node.span.line, f.node.function) for f in found if f.node.span and isinstance(f.node, ItemNode)]
    assert places == [(line, function) for line, function, _ in expected]
    for followed, (_, _, operand) in zip(found, expected, strict=True):
        value = followed.node.operands[0].value
        if isinstance(value, np.ndarray):
            assert followed.element is not None
            value = value.ravel(order="F")[followed.element[0]]
        assert value == operand


def test_a_variable_that_was_never_assigned(functions: StanModel) -> None:
    model = """parameters { real s; }
model {
  vector[2] v;
  real q;
  v[1] = s;
  target += sum(v);
  target += q;
  target += q + s;
}"""
    found = explained(model, None, [0.5])
    first, second, third = found.causes
    assert [b.text for b in first.births] == ["v[2] = nan: never assigned"]
    assert second.notes == ["'q' was never assigned a value"]
    assert [b.text for b in third.births] == ["nan + 0.5 = nan: 'q' was never assigned"]


# ---------------------------------------------------------------- statements


def test_truncation() -> None:
    program = """data { vector[3] y; } parameters { real a; }
model {
  y ~ normal(a, 1) T[0, 2];
  for (n in 1:3)
    y[n] ~ normal(0, 1) T[1.5, ];
  a ~ normal(0, 1) T[-1, 1];
}"""
    found = explained(program, {"y": [1.6, 2.5, 1.2]}, [0.0])
    both = [(at(c).line, c.loop, c.notes) for c in found.causes]
    assert both == [
        (3, {}, ["y[2] = 2.5 is above the upper bound of the truncation, 2.0"]),
        (5, {"n": 3}, ["y[3] = 1.2 is below the lower bound of the truncation, 1.5"]),
    ]
    terms = {term.statement.line: term for term in found.terms}
    assert len(terms) == len(found.terms) == 3
    assert (terms[5].count, terms[5].not_finite, terms[5].worst) == (3, 1, {"n": 3})
    assert terms[5].truncation == -math.inf and terms[5].increment == -math.inf
    normal = -0.5 * math.log(2 * math.pi)
    assert terms[6].truncation == pytest.approx(0.381714, rel=1e-5)
    assert terms[6].increment == pytest.approx(normal + 0.381714, rel=1e-5) and terms[6].count == 1
    found = explained(program, {"y": [1.6, 1.9, 1.7]}, [0.0])
    terms = {term.statement.line: term for term in found.terms}
    mass = -math.log(0.5 * math.erfc(1.5 / math.sqrt(2)))
    each = [normal - 0.5 * y * y + mass for y in (1.6, 1.9, 1.7)]
    assert terms[5].increment == pytest.approx(sum(each)) and terms[5].truncation == pytest.approx(3 * mass)
    assert terms[5].worst == {"n": 2} and terms[5].worst_increment == pytest.approx(min(each))
    assert found.log_density == pytest.approx(sum(term.increment for term in found.terms))


LOOPS = """data { int N; vector[N] y; } parameters { real mu; real<lower=0> sigma; }
model {
  for (n in 1:N) y[n] ~ normal(mu * n, sigma);
  for (n in 1:N) for (k in 1:2) target += log(y[n] - k + mu);
  sigma ~ exponential(1);
}"""


def test_statements_in_loops_are_one_term() -> None:
    found = explained(LOOPS, {"N": 4, "y": [3, 4, 1.5, 9]}, [0.1, 0.0])
    target, normal, exponential, jacobian = found.terms
    assert (target.count, target.not_finite, target.worst) == (8, 1, {"n": 3, "k": 2})
    assert culprit(found).loop == {"n": 3, "k": 2} and culprit(found).births[0].expression == "log(-0.4) = nan"
    increments = [-0.5 * (y - 0.1 * k) ** 2 - 0.5 * math.log(2 * math.pi) for k, y in enumerate([3, 4, 1.5, 9], 1)]
    assert normal.increment == pytest.approx(sum(increments)) and normal.worst == {"n": 4}
    assert normal.worst_increment == pytest.approx(min(increments)) and normal.target_after == normal.increment
    assert exponential.increment == -1 and jacobian.label == "Jacobian of sigma"
    assert "n=3, k=2: NaN" in str(found) and "at n = 3, k = 2" in str(found)


USER = """functions {
  real foo_lpdf(vector y, real s) {
    real total = 0;
    for (i in 1:num_elements(y)) {
      real z = y[i] - s;
      total += log(z);
    }
    return total;
  }
  void penalty_lp(real x) {
    target += sqrt(x);
  }
}
data { vector[3] y; }
parameters { real s; }
model {
  y ~ foo(s);
  penalty_lp(s - 1);
}"""


def test_densities_and_functions_of_the_program() -> None:
    found = explained(USER, {"y": [2, 0.125, 3]}, [0.5])
    first, second = found.causes
    assert at(first).line == 17 and first.births[0].text == "log(-0.375) = nan"
    assert first.births[0].at is not None and first.births[0].at.line == 6
    assert [s.text for s in first.slice] == ["z = 0.125 - 0.5 = -0.375", "s = 0.5, a parameter", "y[2] = 0.125, data"]
    assert at(second).line == 11 and [call.line for call in second.calls] == [18]
    assert second.births[0].expression == "sqrt(-0.5) = nan"


def test_partial_sums() -> None:
    """Through `reduce_sum`, to what a NaN is made of; it is called at one place."""
    program = """functions {
      real part(array[] real y, int first, int last, real mu) { return normal_lpdf(y | log(mu - 5), 1); }
    }
    parameters { real mu; }
    model { target += reduce_sum(part, {1.0, 2.0}, 1, mu); }"""
    text = str(StanModel(program).explain([0.5]))
    assert "log(-4.5) = nan" in text and text.count("called at") == 1
    assert "mu is nan, but must be finite" in text


def test_nan_and_infinities_are_told_apart() -> None:
    program = """parameters { real a; }
model {
  real big = exp(a);
  target += big - big;
  target += -big;
  target += big;
  target += a;
}"""
    found = explained(program, None, [800.0])
    assert [cause.kind for cause in found.causes] == ["nan", "-inf", "+inf"]
    assert [term.statement.line for term in found.terms] == [4, 5, 6, 7]
    steps = [(step.text, step.at.line if step.at else 0) for step in found.causes[0].births]
    assert steps == [("big = exp(800.0) = inf", 3), ("inf - inf = nan", 4)]
    assert found.outcome == "nan"


def test_infinities_that_add_up_to_nan() -> None:
    program = """parameters { array[2] real<lower=0, upper=1> q; }
model {
  q ~ beta(0.5, 0.5);
  q ~ uniform(0, 0.25);
}"""
    found = explained(program, None, [0.0, 800.0])
    assert [cause.kind for cause in found.causes] == ["+inf", "-inf"] and found.outcome == "nan"
    assert [cause.summary for cause in found.causes] == [
        "q[2] = 1.0 has log density inf for alpha = 0.5, beta = 0.5", "q[1] = 0.5 outside [0.0, 0.25]"
    ]  # fmt: skip
    assert found.notes == ["terms of +infinity and -infinity add up to NaN"]


def test_parts_of_arguments_that_are_containers() -> None:
    program = "data { array[3] int k; } parameters { simplex[3] p; }\nmodel {\n  k ~ categorical(p);\n}"
    found = explained(program, {"k": [1, 2, 1]}, [-800.0, 0.0])
    first, third, second = elements(culprit(found)).shown
    assert first.reason.startswith("k[1] = 1 has log density -inf for theta = [0.0, 1.0, 2.118")
    assert (third.name, second.name) == ("k[3]", "k[2]") and elements(culprit(found)).guilty == 2


def test_rows_of_linear_models() -> None:
    program = """data { int N; matrix[N, 2] x; array[N] int y; } parameters { vector[2] b; }
model {
  y ~ poisson_log_glm(x, 0, b);
}"""
    found = explained(program, {"N": 3, "x": [[1, 2], [3, 400], [1, 1]], "y": [1, 2, 3]}, [1.0, 5.0])
    given = "x = [3.0, 400.0], alpha = 0.0, beta = [1.0, 5.0]"
    assert culprit(found).summary == f"y[2] = 2 has log density -inf for {given}"
    assert elements(culprit(found)).increments[0] == pytest.approx(11 - math.exp(11), rel=1e-10)


def test_a_sum_that_overflows() -> None:
    program = "parameters { real a; }\nmodel {\n  target += 1.5e308;\n  target += 1e308;\n}"
    found = explained(program, None, [0.0])
    assert found.outcome == "+inf" and at(culprit(found)).line == 4 and "overflows" in culprit(found).message


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
