"""`StanModel.optimize`: three algorithms on real models, options, interruption, notes on runs without a mode."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.runtime.errors import FatalError
from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.algorithms import ALGORITHMS, algorithm_options
from ulam.runtime.optimizers.quasi_newton import Iteration
from ulam.runtime.optimizers.termination import Termination

pytestmark = pytest.mark.usefixtures("quick_code")

REGRESSION = """
data { int<lower=1> N; vector[N] x; vector[N] y; }
parameters { real alpha; real beta; real<lower=0> sigma; }
model { y ~ normal(alpha + beta * x, sigma); }
"""
X = np.linspace(-1, 1, 20)
Y = 1 + 2 * X + 0.3 * np.sin(37 * X)
SCHOOLS = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}
CENTERED = """
data { int J; vector[J] y; vector<lower=0>[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] theta; }
model { theta ~ normal(mu, tau); y ~ normal(theta, sigma); }
"""
_models: dict[str, StanModel] = {}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
    _models.clear()


def model(text: str, data: dict[str, Any] | str | None = None) -> StanModel:
    key = text + json.dumps(data, default=str)
    if key not in _models:
        _models[key] = StanModel(text, data)
    return _models[key]


def regression() -> StanModel:
    return model(REGRESSION, {"N": X.size, "x": X, "y": Y})


# ---------------------------------------------------------------- estimates


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("jacobian", [False, True])
def test_estimates_are_those_in_closed_form(algorithm: str, jacobian: bool) -> None:
    beta, alpha = np.polyfit(X, Y, 1)
    squares = float(np.sum((Y - alpha - beta * X) ** 2))
    # d/d log(sigma): -N + squares / sigma^2, and + 1 with the Jacobian.
    sigma = math.sqrt(squares / (X.size - jacobian))
    fit = regression().optimize(algorithm, jacobian=jacobian, init=0)
    assert fit.converged and fit.algorithm == algorithm
    np.testing.assert_allclose([fit["alpha"], fit["beta"], fit["sigma"]], [alpha, beta, sigma], rtol=1e-4)
    top = -X.size * math.log(sigma) - squares / (2 * sigma**2) + jacobian * math.log(sigma)
    assert fit.log_density == pytest.approx(top, abs=1e-6)
    assert fit.log_density == pytest.approx(regression().log_density(fit.unconstrained, jacobian=jacobian))
    value, gradient = regression().log_density_gradient(fit.unconstrained, jacobian=jacobian)
    np.testing.assert_array_equal(fit.gradient, gradient)
    assert fit.log_density == value and not fit.notes
    assert fit.n_gradients > fit.n_iterations > 0


def test_algorithms_agree() -> None:
    ends = [regression().optimize(algorithm, seed=3).log_density for algorithm in ALGORITHMS]
    np.testing.assert_allclose(ends, ends[0], atol=1e-6)


def test_the_path_is_saved() -> None:
    for algorithm in ALGORITHMS:
        fit = regression().optimize(algorithm, init=0, save_iterations=True)
        values = [value for value, _ in fit.trajectory]
        assert len(values) == fit.n_iterations + 1
        assert values == sorted(values) and values[0] == fit.initial_log_density
        np.testing.assert_array_equal(fit.trajectory[0][1], 0)
        np.testing.assert_array_equal(fit.trajectory[-1][1], fit.unconstrained)
        assert not regression().optimize(algorithm, init=0).trajectory


def test_a_model_without_parameters() -> None:
    fit = model("generated quantities { real a = 3; }").optimize()
    assert (fit.status, fit.n_iterations, fit["a"]) == ("converged_gradient", 0, 3.0)


# ---------------------------------------------------------------- options


def test_options_by_algorithm() -> None:
    tolerances = ["tol_obj", "tol_rel_obj", "tol_grad", "tol_rel_grad", "tol_param"]
    assert algorithm_options("lbfgs") == ["iter", "init_alpha", *tolerances, "history_size"]
    assert algorithm_options("bfgs") == ["iter", "init_alpha", *tolerances]
    assert algorithm_options("newton") == ["iter"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"algorithm": "nelder"}, ValueError, "unknown algorithm 'nelder'; there are lbfgs, bfgs, newton"),
        (
            {"algorithm": "newton", "tol_obj": 1},
            ValueError,
            "tol_obj is an option of lbfgs and bfgs; newton takes iter",
        ),
        ({"algorithm": "newton", "init_alpha": 1}, ValueError, "init_alpha is an option of lbfgs and bfgs"),
        ({"algorithm": "bfgs", "history_size": 3}, ValueError, "history_size is an option of lbfgs; bfgs takes iter,"),
        ({"tolerance": 1}, TypeError, "unknown option 'tolerance'; algorithm 'lbfgs' takes iter"),
        ({"tol_grad": -1}, ValueError, "tol_grad must not be negative"),
        ({"iter": 0}, ValueError, "iter must be at least 1"),
        ({"algorithm": "newton", "iter": 2.5}, ValueError, "iter must be an integer"),
        ({"n_starts": 0}, ValueError, "n_starts must be at least 1"),
        ({"refresh": -1}, ValueError, "refresh must be at least 1"),
    ],
)
def test_wrong_options(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        regression().optimize(**arguments)


OFF: dict[str, Any] = {"tol_obj": 0, "tol_rel_obj": 0, "tol_grad": 0, "tol_rel_grad": 0, "tol_param": 0}


@pytest.mark.parametrize("algorithm", ["lbfgs", "bfgs"])
@pytest.mark.parametrize(
    ("option", "code"),
    [("tol_param", 10), ("tol_obj", 20), ("tol_rel_obj", 21), ("tol_grad", 30), ("tol_rel_grad", 31)],
)
def test_each_convergence_test_alone(algorithm: str, option: str, code: int) -> None:
    value = 1e9 if "rel" in option else 1e-3
    fit = regression().optimize(algorithm, init=0, **{**OFF, option: value})
    assert fit.code == code and fit.converged


def test_the_limit_of_iterations() -> None:
    for algorithm in ALGORITHMS:
        fit = regression().optimize(algorithm, init=0, iter=2)
        assert (fit.code, fit.n_iterations, fit.converged) == (40, 2, False)


# ---------------------------------------------------------------- progress and interruption


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_progress_is_called_after_each_iteration(algorithm: str) -> None:
    calls: list[tuple[Iteration, int]] = []
    fit = regression().optimize(algorithm, init=0, progress=lambda *call: calls.append(call))
    assert [iteration.number for iteration, _ in calls] == list(range(1, fit.n_iterations + 1))
    assert [count for _, count in calls] == sorted(count for _, count in calls)
    assert calls[-1][1] == fit.n_gradients
    assert calls[-1][0].termination is fit.termination
    assert -calls[-1][0].point.value == fit.log_density


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_interruption_gives_the_best_point_so_far(algorithm: str) -> None:
    seen: list[Iteration] = []

    def interrupt(iteration: Iteration, n_gradients: int) -> None:
        seen.append(iteration)
        if iteration.number == 2:
            raise KeyboardInterrupt

    fit = regression().optimize(algorithm, init=0, progress=interrupt, save_iterations=True)
    assert fit.termination is Termination.INTERRUPTED
    assert not fit.converged and not fit.termination.failed
    assert fit.n_iterations == 2 and len(fit.trajectory) == 3
    np.testing.assert_array_equal(fit.unconstrained, seen[-1].point.x)
    assert fit.log_density == -seen[-1].point.value > fit.initial_log_density
    assert fit["sigma"] > 0


def test_an_interruption_during_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = regression()
    evaluate, calls = interrupted.log_density_gradient, 0

    def gradient(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt
        return evaluate(*arguments, **options)

    monkeypatch.setattr(interrupted, "log_density_gradient", gradient)
    fit = interrupted.optimize(init=0)
    assert fit.termination is Termination.INTERRUPTED
    assert fit.log_density > fit.initial_log_density
    assert fit.n_gradients == 9


def test_an_interruption_before_the_first_point_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(regression(), "log_density", interrupt)
    with pytest.raises(KeyboardInterrupt):
        regression().optimize(init=0)


# ---------------------------------------------------------------- runs without a mode


@pytest.mark.parametrize("jacobian", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_scale_that_runs_to_zero_is_diagnosed(algorithm: str, jacobian: bool) -> None:
    """The log density of the centered eight schools has no upper bound."""
    limit = {"iter": 2000}
    fit = model(CENTERED, SCHOOLS).optimize(algorithm, jacobian=jacobian, seed=1, **limit)
    assert fit["tau"] < 1e-6
    (note,) = fit.notes
    assert "seems to grow without bound" in note and "unconstrained 'tau' ran to -" in note
    assert ("jacobian=True" in note) == (not jacobian)


def test_newton_on_a_linear_log_density() -> None:
    text = "parameters { real<lower=0> s; } model { target += 3 * log(s); }"
    fit = model(text).optimize("newton", init=0, iter=50)
    assert fit.log_density > 60 and np.isfinite(fit.unconstrained).all()
    assert any("grow without bound" in note and "unconstrained 's' ran to" in note for note in fit.notes)


@pytest.mark.parametrize("algorithm", ["lbfgs", "bfgs"])
def test_a_log_density_that_reaches_infinity(algorithm: str) -> None:
    text = "parameters { real a; real<lower=0> s; } model { target += 3 * log(s); a ~ normal(0, 1); }"
    fit = model(text).optimize(algorithm, init=0)
    assert fit.termination is Termination.LINE_SEARCH_FAILED
    assert fit.notes[0].startswith("The log density is +infinity at a trial point, where unconstrained 's' is ")
    assert "no maximum" in fit.notes[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_mode_far_out_needs_no_note(algorithm: str) -> None:
    text = "parameters { real<lower=0> s; } model { s ~ lognormal(25, 1); }"
    fit = model(text).optimize(algorithm, jacobian=True, init=0)
    assert fit.converged and math.log(fit["s"]) == pytest.approx(25, abs=1e-3)
    assert not fit.notes


def test_a_maximum_at_the_boundary_is_told_from_one_without_bound() -> None:
    fit = model("parameters { real<lower=0> s; } model { s ~ normal(-1, 1); }").optimize(init=0)
    assert fit.converged and fit["s"] < 1e-6
    (note,) = fit.notes
    assert "is flat where the run ended" in note and "boundary of the support" in note


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_flat_log_density(algorithm: str) -> None:
    fit = model("parameters { vector[2] a; }").optimize(algorithm, seed=2)
    assert fit.converged and fit.n_iterations == 1
    np.testing.assert_array_equal(fit.unconstrained, fit.initial)
    assert fit.notes == ["The gradient is 0 at the initial point: it is stationary, or the log density is flat there."]


def test_a_parameter_without_effect() -> None:
    fit = model("parameters { real a; vector[7] b; } model { a ~ normal(2, 3); }").optimize(seed=2)
    assert fit["a"] == pytest.approx(2, abs=1e-4)
    assert fit.notes == [
        "The log density does not seem to depend on 'b.1', 'b.2', 'b.3', 'b.4', 'b.5' and 2 more: "
        "the estimate is the initial value."
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_saddle_point_is_called_one(algorithm: str) -> None:
    """A gradient of 0 at one point does not say that nothing depends on the parameter."""
    text = "parameters { real x; real y; } model { target += -x^2 + y^2 - y^4; }"
    fit = model(text).optimize(algorithm, init=[0.3, 0])
    (note,) = fit.notes
    assert note.startswith("The run ended at a saddle point: the log density rises away from it along 'y'.")


def test_newton_sees_a_saddle_point_between_the_axes() -> None:
    """No gradient is exactly 0 on the way."""
    text = "parameters { real x; real y; } model { target += -(x + y - 0.3)^2 + (x - y)^2 - (x - y)^4; }"
    fit = model(text).optimize("newton", init=[1.0, 1.0])
    (note,) = fit.notes
    assert "saddle point" in note and "'x', 'y'" in note


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_maximum_in_a_symmetric_parameter_needs_no_note(algorithm: str) -> None:
    fit = model("parameters { real x; real y; } model { target += -(x - 1)^2 - y^2; }").optimize(algorithm, init=0)
    assert fit.converged and not fit.notes


@pytest.mark.parametrize("algorithm", ["lbfgs", "bfgs"])
@pytest.mark.parametrize("body", ["target += mu;", "target += mu + 2 * b; b ~ normal(0, 1);", "target += square(mu);"])
def test_a_log_density_without_bound_at_once(algorithm: str, body: str) -> None:
    fit = model(f"parameters {{ real mu; real b; }} model {{ {body} }}").optimize(algorithm, init=0.5)
    assert any("seems to grow without bound" in note and "'mu'" in note for note in fit.notes), fit.notes


def test_failures_of_the_line_search_say_why() -> None:
    text = """
    parameters { real a; }
    model {
      if (a > 0.6) reject("a is ", a);
      target += 1e6 * a + (a > 0.4995 ? not_a_number() : 0);
    }
    """
    fit = model(text).optimize(init=[0.499], init_alpha=1e-6)
    assert fit.termination is Termination.LINE_SEARCH_FAILED
    assert fit.n_rejections > 0
    assert fit.unconstrained == [0.499]
    (note,) = fit.notes
    assert f"{fit.n_rejections} trial points could not be evaluated" in note
    assert "times a is " in note and "not a number" in note


def test_points_outside_the_domain_are_stepped_back_from() -> None:
    text = 'parameters { real a; } model { target += log(a) - a; if (a <= 0) reject("a must be positive"); }'
    for algorithm in ALGORITHMS:
        options = {} if algorithm == "newton" else {"init_alpha": 10.0}
        fit = model(text).optimize(algorithm, init=[9.0], **options)
        assert fit.converged and fit["a"] == pytest.approx(1, abs=1e-3)


def test_errors_that_are_no_rejections_end_the_run() -> None:
    text = 'parameters { real a; } model { if (a > 3) fatal_error("a is ", a); target += a; }'
    for algorithm in ALGORITHMS:
        with pytest.raises(FatalError, match="a is"):
            model(text).optimize(algorithm, init=0)


# ---------------------------------------------------------------- against Stan

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "optimize.jsonl"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


CASES = [json.loads(line) for line in REFERENCE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["model"])
def test_lbfgs_does_as_well_as_stans(case: dict[str, Any]) -> None:
    """From the same start: at least its log density, with hardly more gradient evaluations."""
    path = EXAMPLES / f"{case['model']}.stan"
    fit = model(str(path), str(path.with_suffix(".json"))).optimize(init=case["init"], jacobian=True)
    assert fit.log_density >= case["log_density"] - 1e-6
    assert fit.n_gradients <= 1.25 * case["n_gradients"]


def test_evaluations_are_hardly_more_than_stans_on_the_median() -> None:
    ratios = []
    for case in CASES:
        path = EXAMPLES / f"{case['model']}.stan"
        fit = model(str(path), str(path.with_suffix(".json"))).optimize(init=case["init"], jacobian=True)
        ratios.append(fit.n_gradients / case["n_gradients"])
    assert np.median(ratios) <= 1.1
