"""Newton's method as Stan has it: the Hessian with its eigenvalues made positive, and a step that is halved.

Stan Reference Manual, "Optimization"; `stan/optimization/newton.hpp`. Deviations from Stan: the Hessian is the model's
(`StanModel.log_density_hessian`), not differences of gradients; a trial point where the log density is not finite is
refused like one where it is lower; eigenvalues have a floor; the log densities that are compared all lack constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ulam.runtime.optimizers.line_search import Point, Vector
from ulam.runtime.optimizers.quasi_newton import EPSILON, Iteration, check_count
from ulam.runtime.optimizers.termination import Termination

TOLERANCE = 1e-8
"""The run ends when the log density changes by no more than this."""

SMALLEST_STEP = 1e-50

GRADIENT_NOTE = "Hessian not finite, gradient step"


@dataclass(frozen=True)
class NewtonOptions:
    """Newton's method has no tolerances to choose: its test is fixed, see `TOLERANCE`."""

    iter: int = 2000

    def __post_init__(self) -> None:
        check_count("iter", self.iter)


class NewtonObjective(Protocol):
    """A function to be minimised, with its gradient and its Hessian; None where they cannot be evaluated."""

    def __call__(self, theta: Vector, /) -> Point | None: ...
    def hessian(self, theta: Vector, /) -> npt.NDArray[np.float64] | None: ...


def descent_direction(hessian: npt.NDArray[np.float64], gradient: Vector) -> Vector:
    """-|H|^-1 g: H with its eigenvalues replaced by their absolute values.

    Eigenvalues that are 0 up to rounding of the largest count as rounding errors of that size; a Hessian that is 0
    counts as the identity, so that the direction is that of steepest descent.
    """
    eigenvalues, vectors = np.linalg.eigh(hessian)
    sizes = np.abs(eigenvalues)
    largest = float(sizes.max())
    if largest == 0:
        return -gradient
    np.maximum(sizes, hessian.shape[0] * EPSILON * largest, out=sizes)
    return -vectors.dot(vectors.T.dot(gradient) / sizes)


def minimize(objective: NewtonObjective, start: Point, options: NewtonOptions) -> Iterator[Iteration]:
    """Yields the state after each step; the last one has a `termination` other than RUNNING.

    Where no step lowers the function, the point is yielded once more: as converged if the gradient promises no more
    than the tolerance, else with STEP_TOO_SMALL.
    """
    point = start
    for number in range(1, options.iter + 1):
        hessian, note = objective.hessian(point.x), ""
        if hessian is None:
            direction, note = -point.gradient, GRADIENT_NOTE
        else:
            direction = descent_direction(hessian, point.gradient)
        found = _step(objective, point, direction)
        if found is None:
            gain = -0.5 * float(direction.dot(point.gradient))
            termination = Termination.OBJECTIVE if gain <= TOLERANCE else Termination.STEP_TOO_SMALL
            yield Iteration(number, point, 0.0, 0.0, 1.0, note, termination)
            return
        step, new = found
        termination = Termination.RUNNING
        if abs(point.value - new.value) <= TOLERANCE:
            termination = Termination.OBJECTIVE
        elif number >= options.iter:
            termination = Termination.MAX_ITERATIONS
        point = new
        length = step * math.sqrt(direction.dot(direction))
        yield Iteration(number, point, length, step, 1.0, note, termination)
        if termination is not Termination.RUNNING:
            return


def _step(objective: NewtonObjective, point: Point, direction: Vector) -> tuple[float, Point] | None:
    """The first of the steps 1, 1/2, 1/4, ... that does not raise the function, and the point, if there is one."""
    step = 1.0
    while step >= SMALLEST_STEP:
        x = np.multiply(direction, step)
        x += point.x
        if np.array_equal(x, point.x):
            return None  # from here on, all steps lead to the point itself
        trial = objective(x)
        if trial is not None and trial.value <= point.value:
            return step, trial
        step *= 0.5
    return None
