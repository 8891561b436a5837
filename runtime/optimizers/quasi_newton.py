"""L-BFGS with Stan's line search, step guesses, resets and order of convergence tests.

Minimises a function given with its gradient; `StanModel.optimize` passes minus the log density. The iterates agree
with those of Stan's services from the same start (Stan Reference Manual, "Optimization").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ulam.runtime.optimizers.line_search import (
    LineSearchOptions,
    Objective,
    Point,
    Vector,
    WolfeSearch,
    cubic_minimum,
)
from ulam.runtime.optimizers.termination import Termination

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class LBFGSOptions:
    """Tolerances and limits, by CmdStan's names; relative tolerances are multiples of the machine epsilon."""

    iter: int = 2000
    init_alpha: float = 1e-3
    tol_obj: float = 1e-12
    tol_rel_obj: float = 1e4
    tol_grad: float = 1e-8
    tol_rel_grad: float = 1e7
    tol_param: float = 1e-8
    history_size: int = 5

    def __post_init__(self) -> None:
        for name in ("tol_obj", "tol_rel_obj", "tol_grad", "tol_rel_grad", "tol_param"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, found {getattr(self, name)}")
        if not self.init_alpha > 0:
            raise ValueError(f"init_alpha must be positive, found {self.init_alpha}")
        for name in ("iter", "history_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, found {getattr(self, name)}")


@dataclass(slots=True)
class Iteration:
    """The state after one step."""

    number: int
    point: Point
    step_norm: float
    alpha: float
    alpha0: float
    note: str
    termination: Termination


@dataclass(slots=True)
class _History:
    """The last (s, y, 1 / y.s) and the scale of the initial inverse Hessian."""

    size: int
    pairs: deque[tuple[Vector, Vector, float]] = field(init=False)
    scale: float = 1.0

    def __post_init__(self) -> None:
        self.pairs = deque(maxlen=self.size)

    def push(self, s: Vector, y: Vector) -> None:
        sy = float(s @ y)
        self.pairs.append((s, y, _divide(1.0, sy)))
        self.scale = _divide(sy, float(y @ y))

    def direction(self, gradient: Vector) -> Vector:
        """Minus the inverse Hessian approximation times the gradient, by the two-loop recursion."""
        direction = -gradient
        weights: list[float] = []
        for s, y, rho in reversed(self.pairs):
            weight = rho * float(s @ direction)
            direction -= weight * y
            weights.append(weight)
        direction *= self.scale
        for (s, y, rho), weight in zip(self.pairs, reversed(weights), strict=True):
            direction += (weight - rho * float(y @ direction)) * s
        return direction


def minimize(objective: Objective, start: Point, options: LBFGSOptions) -> Iterator[Iteration]:
    """Yields the state after each step; the last one has a `termination` other than RUNNING.

    If the very first search fails, the one state that is yielded is the start itself.
    """
    search_options = LineSearchOptions(first_step=options.init_alpha)
    history = _History(options.history_size)
    point, direction = start, -start.gradient
    # What the next first step is guessed from: the previous direction, step, slope and change of the value.
    previous_direction, previous_step, previous_slope, previous_change = direction, 0.0, 0.0, 0.0
    number = 0
    while True:
        number += 1
        reset, note = number == 1, ""
        alpha0 = options.init_alpha
        if not reset:
            slope = float(point.gradient @ previous_direction)
            guess = cubic_minimum(
                previous_slope, previous_step, previous_change, slope, search_options.smallest_step, 1.0
            )
            alpha0 = min(1.0, 1.01 * guess)
        found = WolfeSearch(objective, point, direction, alpha0, search_options).run()
        if found is None and not reset:
            reset, note = True, "LS failed, Hessian reset"
            direction, alpha0 = -point.gradient, options.init_alpha
            found = WolfeSearch(objective, point, direction, alpha0, search_options).run()
        if found is None:
            yield Iteration(number, point, 0.0, 0.0, alpha0, note, Termination.LINE_SEARCH_FAILED)
            return
        alpha, new = found
        s, y = new.x - point.x, new.gradient - point.gradient
        if reset:
            history.pairs.clear()
        history.push(s, y)
        # After a reset the step guess is made in units of the new scale; the product of both is unchanged.
        factor = _divide(1.0, history.scale) if reset else 1.0
        previous_direction, previous_step = direction / factor, alpha * factor
        previous_slope = float(point.gradient @ previous_direction)
        previous_change = new.value - point.value
        direction = history.direction(new.gradient)
        step_norm = float(np.linalg.norm(s))
        termination = _test(number, point, new, direction, step_norm, options)
        point = new
        yield Iteration(number, point, step_norm, alpha, alpha0, note, termination)
        if termination is not Termination.RUNNING:
            return


def _test(
    number: int, old: Point, new: Point, direction: Vector, step_norm: float, options: LBFGSOptions
) -> Termination:
    """Stan's convergence tests; the first that holds decides, the limit of iterations among them."""
    change = abs(old.value - new.value)
    if change < options.tol_obj:
        return Termination.OBJECTIVE
    if float(np.linalg.norm(new.gradient)) < options.tol_grad:
        return Termination.GRADIENT
    if step_norm < options.tol_param:
        return Termination.PARAMETERS
    if number >= options.iter:
        return Termination.MAX_ITERATIONS
    if change / max(abs(old.value), abs(new.value), 1.0) < options.tol_rel_obj * EPSILON:
        return Termination.RELATIVE_OBJECTIVE
    decrease = -float(direction @ new.gradient)
    if decrease / max(abs(new.value), 1.0) < options.tol_rel_grad * EPSILON:
        return Termination.RELATIVE_GRADIENT
    return Termination.RUNNING


def _divide(numerator: float, denominator: float) -> float:
    """IEEE division (Python raises on a zero denominator)."""
    return float(np.divide(numerator, denominator)) if denominator == 0 else numerator / denominator
