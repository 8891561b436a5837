"""L-BFGS: known minima, Stan's codes, failed evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ulam.runtime.optimizers.line_search import LineSearchOptions, Point, Vector, WolfeSearch, cubic_minimum
from ulam.runtime.optimizers.quasi_newton import Iteration, LBFGSOptions, minimize
from ulam.runtime.optimizers.termination import Termination

Function = Callable[[Vector], tuple[float, Vector]]


def rosenbrock(x: Vector) -> tuple[float, Vector]:
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * x[:-1] * a - 2 * b
    gradient[1:] += 200 * a
    return float(np.sum(100 * a**2 + b**2)), gradient


def quadratic(x: Vector) -> tuple[float, Vector]:
    scale = np.arange(1, x.size + 1, dtype=float)
    return float(0.5 * np.sum(scale * (x - 1) ** 2)), scale * (x - 1)


def objective_of(function: Function) -> Callable[[Vector], Point | None]:
    def objective(x: Vector) -> Point | None:
        value, gradient = function(x)
        return Point(x, value, gradient) if math.isfinite(value) and np.isfinite(gradient).all() else None

    return objective


def run(function: Function, start: Vector, **options: float) -> list[Iteration]:
    objective = objective_of(function)
    first = objective(start)
    assert first is not None
    return list(minimize(objective, first, LBFGSOptions(**options)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("size", [2, 5, 30])
def test_rosenbrock(size: int) -> None:
    last = run(rosenbrock, np.full(size, 0.5))[-1]
    assert last.termination.converged
    np.testing.assert_allclose(last.point.x, 1, atol=1e-4)


@pytest.mark.parametrize("history", [1, 5, 20])
def test_quadratic(history: int) -> None:
    steps = run(quadratic, np.full(8, 3.0), history_size=history)
    np.testing.assert_allclose(steps[-1].point.x, 1, atol=1e-4)
    values = [step.point.value for step in steps]
    assert values == sorted(values, reverse=True)


def test_first_step_is_along_the_gradient_with_init_alpha() -> None:
    first = run(quadratic, np.array([3.0, 3.0]), iter=1)[0]
    assert first.alpha0 == 1e-3
    np.testing.assert_allclose(first.point.x - 3, first.alpha * -quadratic(np.array([3.0, 3.0]))[1])
    assert first.termination is Termination.MAX_ITERATIONS
    assert first.termination.code == 40


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tol_obj": 1e3}, Termination.OBJECTIVE),
        ({"tol_grad": 1e3}, Termination.GRADIENT),
        ({"tol_param": 1e3}, Termination.PARAMETERS),
        ({"tol_rel_obj": 1e16}, Termination.RELATIVE_OBJECTIVE),
        ({"tol_rel_grad": 1e17}, Termination.RELATIVE_GRADIENT),
        ({"tol_obj": 1e3, "tol_grad": 1e3, "iter": 1}, Termination.OBJECTIVE),
        ({"iter": 1, "tol_rel_obj": 1e16}, Termination.MAX_ITERATIONS),
    ],
)
def test_order_of_convergence_tests(options: dict[str, float], expected: Termination) -> None:
    assert run(quadratic, np.full(3, 2.0), **options)[0].termination is expected


def test_failed_evaluations_shorten_the_step() -> None:
    def barrier(x: Vector) -> tuple[float, Vector]:
        if x[0] <= 0:
            return math.nan, x
        return float(x[0] - np.log(x[0])), 1 - 1 / x

    last = run(barrier, np.array([9.0]), init_alpha=50.0)[-1]
    assert last.termination.converged
    np.testing.assert_allclose(last.point.x, 1, rtol=1e-6)


def test_line_search_failure_keeps_the_start() -> None:
    def wall(x: Vector) -> tuple[float, Vector]:
        return (1.0, np.ones(1)) if x[0] == 2 else (math.nan, np.ones(1))

    steps = run(wall, np.array([2.0]))
    assert [step.termination for step in steps] == [Termination.LINE_SEARCH_FAILED]
    assert steps[0].point.x[0] == 2


def test_wrong_gradient_ends_with_a_failed_search() -> None:
    def lying(x: Vector) -> tuple[float, Vector]:
        return float(x @ x), -2 * x

    assert run(lying, np.array([1.0, 2.0]))[-1].termination is Termination.LINE_SEARCH_FAILED


def test_wolfe_conditions_hold() -> None:
    generator = np.random.default_rng(3)
    objective = objective_of(rosenbrock)
    for _ in range(50):
        start = objective(generator.uniform(-2, 2, 4))
        assert start is not None
        direction = -start.gradient
        slope = float(start.gradient @ direction)
        found = WolfeSearch(objective, start, direction, slope, 1e-3, LineSearchOptions()).run()
        assert found is not None
        alpha, reached, point = found
        assert reached == pytest.approx(point.gradient @ direction)
        assert point.value <= start.value + 1e-4 * min(alpha, 1e-3) * slope
        assert abs(point.gradient @ direction) <= 0.9 * abs(slope)


def test_cubic_minimum() -> None:
    # s^3 - 3 s: slope -3 at 0, minimum at 1; given at 2: value 2, slope 9.
    assert cubic_minimum(-3.0, 2.0, 2.0, 9.0, 1e-12, 3.0) == pytest.approx(1)
    assert cubic_minimum(-3.0, 2.0, 2.0, 9.0, 1e-12, 0.5) == 0.5
    # Falls everywhere: the upper end.
    assert cubic_minimum(-1.0, 1.0, -1.0, -1.0, 1e-12, 1.0) == 1.0


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="tol_obj"):
        LBFGSOptions(tol_obj=-1)
    with pytest.raises(ValueError, match="iter"):
        LBFGSOptions(iter=0)
