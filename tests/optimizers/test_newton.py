"""Newton's method: quadratic convergence, refused trial points, indefinite and missing Hessians, ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from ulam.runtime.optimizers.line_search import Point, Vector
from ulam.runtime.optimizers.newton import GRADIENT_NOTE, NewtonOptions, descent_direction, minimize
from ulam.runtime.optimizers.quasi_newton import Iteration
from ulam.runtime.optimizers.termination import Termination

pytestmark = pytest.mark.usefixtures("quick_code")

Matrix = npt.NDArray[np.float64]


@dataclass
class Function:
    """A function with its derivatives; where the value is not finite, the evaluation fails."""

    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    second: Callable[[Vector], Matrix | None]

    def __call__(self, x: Vector, /) -> Point | None:
        value = self.value(x)
        return Point(x, value, self.gradient(x)) if math.isfinite(value) else None

    def hessian(self, x: Vector, /) -> Matrix | None:
        return self.second(x)


SCALE = np.array([1.0, 1e3, 1e-3])
QUADRATIC = Function(lambda x: float(0.5 * SCALE @ (x - 1) ** 2), lambda x: SCALE * (x - 1), lambda x: np.diag(SCALE))
# A double well in x, with a maximum at 0.
WELL = Function(
    lambda x: float((x[0] ** 2 - 1) ** 2 + x[1] ** 2),
    lambda x: np.array([4 * x[0] * (x[0] ** 2 - 1), 2 * x[1]]),
    lambda x: np.diag([12 * x[0] ** 2 - 4, 2.0]),
)


def run(function: Function, start: list[float], limit: int = 2000) -> list[Iteration]:
    first = function(np.array(start))
    assert first is not None
    return list(minimize(function, first, NewtonOptions(limit)))


def test_a_quadratic_takes_one_step() -> None:
    steps = run(QUADRATIC, [3.0, -2.0, 5.0])
    np.testing.assert_allclose(steps[0].point.x, 1, rtol=1e-12)
    assert (steps[0].alpha, steps[0].alpha0) == (1.0, 1.0)
    assert steps[-1].number == 2 and steps[-1].termination is Termination.OBJECTIVE


def test_negative_curvature_is_turned_round() -> None:
    last = run(WELL, [0.1, 3.0])[-1]
    assert last.termination is Termination.OBJECTIVE
    np.testing.assert_allclose(last.point.x, [1, 0], atol=1e-4)


def test_direction_by_absolute_eigenvalues() -> None:
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    gradient = np.array([1.0, -2.0, 0.5])
    hessian = rotation @ np.diag([4.0, -2.0, 0.5]) @ rotation.T
    expected = -rotation @ np.diag([1 / 4, 1 / 2, 2]) @ rotation.T @ gradient
    np.testing.assert_allclose(descent_direction(hessian, gradient), expected, rtol=1e-12)


@pytest.mark.parametrize("diagonal", [(0.0, 0.0), (3.0, 0.0), (3.0, 1e-300)])
def test_eigenvalues_have_a_floor(diagonal: tuple[float, float]) -> None:
    direction = descent_direction(np.diag(diagonal), np.array([3.0, 0.0]))
    assert np.isfinite(direction).all() and direction[0] < 0
    assert np.isfinite(descent_direction(np.diag(diagonal), np.array([3.0, 1.0]))).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_points_that_are_not_finite_are_refused(bad: float) -> None:
    """Stan accepts NaN, since it is not less than the value before."""

    def value(x: Vector) -> float:
        return float(x[0] - math.log(x[0])) if x[0] > 0 else bad

    barrier = Function(value, lambda x: 1 - 1 / x, lambda x: np.array([[1 / x[0] ** 2]]))
    steps = run(barrier, [9.0])
    assert steps[0].alpha == 1 / 16  # the whole step leads to -63
    assert steps[-1].termination is Termination.OBJECTIVE
    np.testing.assert_allclose(steps[-1].point.x, 1, rtol=1e-4)


def test_values_never_rise() -> None:
    values = [step.point.value for step in run(WELL, [0.01, 5.0])]
    assert values == sorted(values, reverse=True)


def test_without_a_hessian_the_gradient_is_followed() -> None:
    blind = Function(QUADRATIC.value, QUADRATIC.gradient, lambda x: None)
    first = run(blind, [3.0, 1.0, 1.0])[0]
    assert first.note == GRADIENT_NOTE
    assert first.point.value < QUADRATIC.value(np.array([3.0, 1.0, 1.0]))


def test_a_flat_function_converges_at_once() -> None:
    flat = Function(lambda x: 2.0, np.zeros_like, lambda x: np.zeros((2, 2)))
    (only,) = run(flat, [1.0, 2.0])
    assert only.termination is Termination.OBJECTIVE
    np.testing.assert_array_equal(only.point.x, [1, 2])


def test_an_unbounded_function_ends_at_the_limit() -> None:
    line = Function(lambda x: -float(x[0]), lambda x: np.array([-1.0]), lambda x: np.zeros((1, 1)))
    steps = run(line, [0.0], limit=9)
    assert len(steps) == 9 and steps[-1].termination is Termination.MAX_ITERATIONS


def test_without_any_step_down_the_run_fails_and_keeps_the_point() -> None:
    """The gradient points the wrong way: Stan would report success at the start."""
    lying = Function(QUADRATIC.value, lambda x: -SCALE * (x - 1), lambda x: np.diag(SCALE))
    (only,) = run(lying, [3.0, 3.0, 3.0])
    assert only.termination is Termination.STEP_TOO_SMALL
    assert only.termination.failed and not only.termination.converged and only.termination.code < 0
    np.testing.assert_array_equal(only.point.x, 3)


def test_a_start_surrounded_by_failures() -> None:
    def value(x: Vector) -> float:
        return 1.0 if x[0] == 0 else math.nan

    island = Function(value, lambda x: np.array([1.0]), lambda x: np.eye(1))
    (only,) = run(island, [0.0])
    assert only.termination is Termination.STEP_TOO_SMALL


def test_limit_is_checked() -> None:
    with pytest.raises(ValueError, match="iter must be at least 1"):
        NewtonOptions(0)
