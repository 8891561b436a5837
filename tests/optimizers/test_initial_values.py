"""Initial values: what may be given, which points are refused, and what is said when all are."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.runtime.errors import ArgumentError, DataError, FatalError, InitializationError, ProgramError
from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.initial_values import ADVICE, init_text, initial_point
from ulam.runtime.optimizers.line_search import Point
from ulam.runtime.optimizers.objective import ModelObjective

pytestmark = pytest.mark.usefixtures("quick_code")

# `kind` chooses what goes wrong.
PROGRAM = """
data { int kind; }
parameters {
  real a;
  real<lower=a> b;
  array[2] vector<lower=0, upper=1>[3] p;
  simplex[3] s;
}
model {
  if (kind == 1) a ~ normal(0, a - 1.5);
  if (kind == 2 && a < 1) reject("a is ", a, ", too small");
  if (kind == 2) b ~ normal(0, -b * b);
  if (kind == 3 && a > -2) target += a > 0 ? not_a_number() : negative_infinity();
  if (kind == 4) target += sqrt(a - a);
  if (kind == 5) fatal_error("no way");
  if (kind == 6) target += -1e300 * exp(-log(b - a) * 40) + 0 * a;
  target += -0.5 * a * a;
}
"""
NAMES = ["a", "b", *(f"p.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)), "s.1", "s.2", "s.3"]
WHOLE: dict[str, Any] = {"a": 0.5, "b": 2, "p": [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], "s": [0.2, 0.3, 0.5]}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def model(kind: int = 0) -> StanModel:
    return StanModel(PROGRAM, {"kind": kind})


@pytest.fixture(scope="module")
def plain() -> StanModel:
    return model()


def start(model: StanModel, init: Any = None, seed: int = 1, jacobian: bool = False) -> Point:
    return initial_point(ModelObjective(model, jacobian), init, seed)


def test_drawn_points_lie_within_the_radius(plain: StanModel) -> None:
    points = np.array([start(plain, seed=seed).x for seed in range(40)])
    assert (np.abs(points) < 2).all() and np.abs(points).max() > 1.9
    narrow = np.array([start(plain, 0.5, seed).x for seed in range(40)])
    assert (np.abs(narrow) < 0.5).all()
    np.testing.assert_allclose(narrow, points / 4)
    np.testing.assert_array_equal(start(plain, 0).x, 0)
    np.testing.assert_array_equal(start(plain, np.float64(0.5), 3).x, narrow[3])
    np.testing.assert_array_equal(start(plain, np.int64(0)).x, 0)


def test_the_point_is_evaluated_as_the_optimizer_does(plain: StanModel) -> None:
    for jacobian in (False, True):
        objective = ModelObjective(plain, jacobian)
        point = initial_point(objective, None, 1)
        value, gradient = plain.log_density_gradient(point.x, jacobian=jacobian)
        assert point.value == -value
        np.testing.assert_array_equal(point.gradient, -gradient)
        assert (objective.n_gradients, objective.n_rejections) == (1, 0)


@pytest.mark.parametrize("form", ["mapping", "text", "path", "pathlib"])
def test_constrained_values(plain: StanModel, form: str, tmp_path: Path) -> None:
    text = json.dumps(WHOLE)
    path = tmp_path / "init.json"
    path.write_text(text)
    init = {"mapping": WHOLE, "text": text, "path": str(path), "pathlib": path}[form]
    found = dict(zip(plain.param_names(), plain.param_constrain(start(plain, init).x), strict=True))
    assert list(found) == NAMES
    assert found["a"] == pytest.approx(0.5) and found["b"] == pytest.approx(2)
    assert found["p.2.1"] == pytest.approx(0.4) and found["p.1.3"] == pytest.approx(0.3)
    assert [found[f"s.{k}"] for k in (1, 2, 3)] == pytest.approx([0.2, 0.3, 0.5])


def test_a_part_of_the_values(plain: StanModel) -> None:
    drawn = plain.param_constrain(start(plain, seed=5).x)
    mixed = plain.param_constrain(start(plain, {"p": WHOLE["p"], "other": "ignored"}, seed=5).x)
    inside = [name.startswith("p") for name in NAMES]
    np.testing.assert_allclose(mixed[inside], [0.1, 0.4, 0.2, 0.5, 0.3, 0.6])
    np.testing.assert_array_equal(np.delete(mixed, np.flatnonzero(inside)), np.delete(drawn, np.flatnonzero(inside)))


def test_a_given_value_that_depends_on_a_drawn_bound_is_tried_again(plain: StanModel) -> None:
    """b = -1 needs a < -1."""
    for seed in range(5):
        a, b = plain.param_constrain(start(plain, {"b": -1}, seed).x)[:2]
        assert a < -1 and b == pytest.approx(-1)
    with pytest.raises(InitializationError) as caught:
        start(plain, {"b": -3})
    assert "100 of 100: " in str(caught.value) and "initial value of 'b'" in str(caught.value)


def test_a_drawn_value_that_does_not_fit_a_given_bound_is_tried_again(plain: StanModel) -> None:
    for seed in range(5):
        a, b = plain.param_constrain(start(plain, {"a": 1.5}, seed).x)[:2]
        assert a == pytest.approx(1.5) and b > 1.5
    with pytest.raises(InitializationError, match="100 of 100: .*'b', drawn, does not fit the initial values given"):
        start(plain, {"a": 100})


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        ({"p": [[0.1, 0.2, 0.3], [0.4, 1.5, 0.6]]}, DataError, "'p' is not in its support.*1.5"),
        ({**WHOLE, "s": [0.2, 0.3, 0.6]}, DataError, "'s' is not in its support"),
        ({**WHOLE, "b": 0.25}, DataError, "'b' is not in its support"),
        ({"a": math.nan}, DataError, "'a' is not finite"),
        ({"a": [1, 2]}, DataError, "'a'.*dims found=\\(2\\)"),
        ({"p": [[1, 2], [3, 4]]}, DataError, "'p'.*dims declared=\\(2,3\\)"),
        ({"z": 1}, DataError, "no initial value is for a parameter of the model \\(a, b, p, s\\), found z"),
        ([1.0, 2.0], ArgumentError, "found shape \\(2,\\)"),
        (np.full(10, math.inf), ArgumentError, "found inf for unconstrained 'a'"),
        (["x"] * 10, ArgumentError, "init must be a number"),
        (True, ArgumentError, "found True"),
        (-1, ArgumentError, "at least 0, found -1"),
        (math.inf, ArgumentError, "finite number"),
        ("nowhere.json", FileNotFoundError, "nowhere.json"),
    ],
)
def test_wrong_arguments(plain: StanModel, init: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        start(plain, init)


def test_reasons_are_counted_by_statement() -> None:
    with pytest.raises(InitializationError) as caught:
        start(model(2))
    reasons = caught.value.reasons
    assert [reason.line for reason in reasons] == [11, 12]  # the more frequent one first
    assert sum(reason.count for reason in reasons) == 100
    assert reasons[0].count > reasons[1].count > 0
    lines = str(caught.value).splitlines()
    assert lines[0] == "initialization failed between (-2, 2) after 100 attempts:"
    assert lines[-1] == ADVICE
    assert f"{reasons[0].count:3} of 100: a is -1.9" in lines[1] and "... 0.9" in lines[1] and "too small" in lines[1]
    assert "line 11, column" in lines[1]
    assert f"{reasons[1].count:3} of 100: normal_lpdf" in lines[2] and "must be positive" in lines[2]
    assert reasons[0].example.startswith("a is ")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.reasons == reasons


def test_values_that_are_not_finite_are_told_apart() -> None:
    with pytest.raises(InitializationError) as caught:
        start(model(3))
    texts = {reason.text: reason.count for reason in caught.value.reasons}
    statement = "`target += a > 0 ? not_a_number() : negative_infinity();` (in 'model.stan', line 13, column 28)"
    assert set(texts) == {
        f"the log density is not a number (NaN) after {statement}",
        f"the log density is -infinity after {statement}",
    }
    assert sum(texts.values()) == 100


INCLUDING = """
#include priors.stan
model {
  print("mu is ", mu);
  mu ~ normal(0, 10);
  if (mu > 1)
    add_lp(-mu);
  else for (n in 1:2)
    target += uniform_lpdf(10.5 | mu,
                           mu + 1);
  #include more.stan
}
"""


def test_the_statement_that_makes_the_log_density_infinite_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "priors.stan").write_text(
        "functions { void add_lp(real x) { target += log(x); } }\nparameters { real mu; }\n"
    )
    (tmp_path / "more.stan").write_text('// nothing\nmu ~ uniform(0, exp(mu)); // "nothing"\n')
    path = tmp_path / "model.stan"
    path.write_text(INCLUDING)
    including = StanModel(path)
    with pytest.raises(InitializationError) as caught:
        start(including)
    assert capsys.readouterr().out.count("mu is") == 100  # no point is shown twice
    first, second = caught.value.reasons
    assert first.count + second.count == 100
    assert (first.line, second.line) == (9, 7)
    assert "-infinity after `target += uniform_lpdf(10.5 | mu, mu + 1);`" in first.text
    assert "not a number (NaN) after `add_lp(-mu);`" in second.text
    (tmp_path / "more.stan").write_text("target += negative_infinity();")
    path.write_text("#include priors.stan\nmodel {\n  mu ~ normal(0, 10);\n#include more.stan\n}")
    with pytest.raises(InitializationError) as caught:
        start(StanModel(path), 0)
    (reason,) = caught.value.reasons
    assert reason.file.endswith("more.stan") and reason.line == 1


def test_a_value_at_the_boundary_needs_no_explanation() -> None:
    model = StanModel("parameters { real<lower=0> s; } model { 0.3 ~ normal(0, s); }", opt_level=0)
    with pytest.raises(InitializationError, match="sigma is 0, but must be positive") as caught:
        model.optimize(init={"s": 0})
    assert caught.value.explain() is None


def test_a_gradient_that_is_not_finite_names_the_parameter() -> None:
    with pytest.raises(InitializationError, match="100 of 100: the gradient is not finite: .* for unconstrained 'a'"):
        start(model(4))


@pytest.mark.parametrize("init", [0, WHOLE, np.zeros(10)])
def test_a_given_point_is_tried_once(init: Any) -> None:
    with pytest.raises(InitializationError, match="^initialization failed at the initial .*: normal_lpdf") as caught:
        start(model(1), init)
    assert [reason.count for reason in caught.value.reasons] == [1]


def test_bad_draws_are_passed_over() -> None:
    """Kind 1 needs a > 1.5, which one draw in eight has."""
    point = start(model(1), seed=4)
    assert 1.5 < point.x[0] < 2


def test_an_error_that_is_no_rejection_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = model(5)
    calls: list[int] = []
    evaluate = failing.log_density

    def counted(*arguments: Any, **options: Any) -> float:
        calls.append(1)
        return evaluate(*arguments, **options)

    monkeypatch.setattr(failing, "log_density", counted)
    with pytest.raises(FatalError, match="no way"):
        start(failing)
    assert len(calls) == 1


def test_checks_are_without_jacobian_and_with_constants(plain: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool, bool]] = []
    value, gradient = plain.log_density, plain.log_density_gradient

    def log_density(theta: Any, *, propto: bool, jacobian: bool) -> float:
        seen.append(("value", propto, jacobian))
        return value(theta, propto=propto, jacobian=jacobian)

    def log_density_gradient(theta: Any, *, propto: bool, jacobian: bool) -> Any:
        seen.append(("gradient", propto, jacobian))
        return gradient(theta, propto=propto, jacobian=jacobian)

    monkeypatch.setattr(plain, "log_density", log_density)
    monkeypatch.setattr(plain, "log_density_gradient", log_density_gradient)
    start(plain, 0, jacobian=True)
    assert seen == [("value", False, False), ("gradient", True, False), ("gradient", True, True)]
    seen.clear()
    start(plain, 0, jacobian=False)
    assert seen == [("value", False, False), ("gradient", True, False)]


def test_the_optimizers_own_first_evaluation_must_succeed(plain: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = plain.log_density_gradient

    def broken(theta: Any, *, propto: bool, jacobian: bool) -> Any:
        value, found = gradient(theta, propto=propto, jacobian=jacobian)
        return (math.inf if jacobian else value), found

    monkeypatch.setattr(plain, "log_density_gradient", broken)
    with pytest.raises(InitializationError, match="100 of 100: with the Jacobian adjustment, the log density is"):
        start(plain, jacobian=True)


def test_numbers_that_vary_are_shown_as_ranges() -> None:
    tally = FailureTally()
    for value, index in ((-1.25, 1), (3.5, 7), (2.0, 4)):
        text = f"x1: y[{index}] is {value}, but must be in [0, 1]"
        tally.add_error(ProgramError(text, "beta_lpdf", "m2.stan", 3, 5, ()))
    tally.add_error(ProgramError("other", "", "m2.stan", 3, 9, ()))
    first, second = tally.reasons
    assert first.count == 3 and second.count == 1
    assert first.text == (
        "beta_lpdf: x1: y[1 ... 7] is -1.25 ... 3.5, but must be in [0, 1] (in 'm2.stan', line 3, column 5)"
    )
    assert second.text == "other (in 'm2.stan', line 3, column 9)"
    assert tally.table(4).splitlines()[0].startswith("  3 of 4: beta_lpdf")
    assert tally.table(4, limit=1).splitlines()[-1] == "  1 of 4: 1 other reasons"


@pytest.mark.parametrize(
    ("init", "text"),
    [
        (None, "2"), (0.5, "0.5"), (0, "0"), ({"a": 1, "b": 2}, "values of a, b"), ("i.json", "i.json"),
        ('{"a": 1}', "values given as JSON text"), ([1.0], "an unconstrained point"), (np.float64(3), "3"),
    ],
)  # fmt: skip
def test_init_as_text(init: Any, text: str) -> None:
    assert init_text(init) == text
