"""BFGS and L-BFGS with Stan's line search, step guesses, resets and order of convergence tests.

Minimises a function given with its gradient; `optimize` passes minus the log density. The iterates agree with those of
Stan's services from the same start (Stan Reference Manual, "Optimization"). The two algorithms differ in how they keep
the approximation of the inverse Hessian: `DenseInverseHessian` and `LimitedMemory`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ulam.runtime.optimizers.line_search import (
    LineSearchOptions,
    Objective,
    Point,
    Vector,
    WolfeSearch,
    cubic_minimum,
    divide,
)
from ulam.runtime.optimizers.termination import Termination

EPSILON = float(np.finfo(np.float64).eps)

SERIAL_WORK = 260_000
"""Multiplications up to which BLAS keeps a matrix product on one thread (OpenBLAS: 262,144).

Threads would gain nothing on vectors that fit the cache. They cost much on a busy machine, and runs that go on at once
would wait for each other. A product with a vector is threaded earlier, so a second column is added to it.
"""

RESET_NOTE = "LS failed, Hessian reset"


@dataclass(frozen=True)
class BFGSOptions:
    """Tolerances and limits, by CmdStan's names and with its defaults; a tolerance of 0 switches its test off.

    Relative tolerances are multiples of the machine epsilon. `init_alpha` is the first step size that is tried.
    """

    iter: int = 2000
    init_alpha: float = 1e-3
    tol_obj: float = 1e-12
    tol_rel_obj: float = 1e4
    tol_grad: float = 1e-8
    tol_rel_grad: float = 1e7
    tol_param: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("tol_obj", "tol_rel_obj", "tol_grad", "tol_rel_grad", "tol_param"):
            check_number(name, getattr(self, name), allow_zero=True)
        check_number("init_alpha", self.init_alpha)
        check_count("iter", self.iter)

    def inverse_hessian(self, size: int) -> InverseHessian:
        """The approximation that the algorithm keeps."""
        return DenseInverseHessian(size)


@dataclass(frozen=True)
class LBFGSOptions(BFGSOptions):
    """The same with `history_size`: how many of the last steps approximate the inverse Hessian."""

    history_size: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("history_size", self.history_size)

    def inverse_hessian(self, size: int) -> InverseHessian:
        return LimitedMemory(size, self.history_size)


def check_number(name: str, value: object, allow_zero: bool = False) -> None:
    """Raises ValueError unless the option is a positive number, or 0 if that is allowed."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number, found {value!r}")
    if not (value > 0 or (allow_zero and value == 0)):
        raise ValueError(f"{name} must {'not be negative' if allow_zero else 'be positive'}, found {value}")


def check_count(name: str, value: object) -> None:
    """Raises ValueError unless the option is an integer, at least 1."""
    try:
        count = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        count = None
    if count is None or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, found {value!r}")
    if count < 1:
        raise ValueError(f"{name} must be at least 1, found {count}")


@dataclass(slots=True)
class Iteration:
    """The state after one step of an optimizer; `point.value` is minus the log density."""

    number: int
    point: Point
    step_norm: float
    alpha: float
    alpha0: float
    note: str
    termination: Termination


class InverseHessian(Protocol):
    """An approximation of the inverse Hessian, updated with each step."""

    def update(self, old: Point, new: Point, reset: bool) -> tuple[float, float]:
        """Takes in the step; with `reset` what was known before is forgotten.

        Returns the norm of the step, and after a reset B = y.y / y.s, the scale of the new approximation (else 1).
        """
        ...

    def direction(self, gradient: Vector) -> Vector:
        """Minus the approximation times the gradient. Changes with the call after the next."""
        ...


class DenseInverseHessian:
    """The matrix H of BFGS: H <- (I - rho s y') H (I - rho y s') + rho s s' with rho = 1 / y.s.

    Nocedal and Wright, formula 6.17, multiplied out, so that an update takes a few passes over the matrix. After a
    reset H is I / B before the update.
    """

    ROWS = 64
    """Rows that are updated at a time, so that temporary arrays are small."""

    def __init__(self, size: int) -> None:
        try:
            self._matrix: npt.NDArray[np.float64] = np.empty((size, size))
        except MemoryError:
            raise MemoryError(
                f"BFGS keeps a matrix of {size} x {size} numbers ({8e-9 * size**2:.3g} GB), which does not fit in "
                "memory; algorithm 'lbfgs' does without"
            ) from None
        self._s, self._y = np.empty(size), np.empty(size)

    def update(self, old: Point, new: Point, reset: bool) -> tuple[float, float]:
        s, y, matrix = self._s, self._y, self._matrix
        np.subtract(new.x, old.x, out=s)
        np.subtract(new.gradient, old.gradient, out=y)
        ys = float(y.dot(s))
        scale = 1.0
        if reset:
            scale = divide(float(y.dot(y)), ys)
            matrix.fill(0)
            np.fill_diagonal(matrix, divide(1.0, scale))
        rho = divide(1.0, ys)
        product = matrix.dot(y)
        # H - rho (s (Hy)' + (Hy) s') + (rho^2 y'Hy + rho) s s' = H + s v' + v s'
        with np.errstate(over="ignore", invalid="ignore"):  # where y.s is 0; the next search then fails
            v = (0.5 * rho * (rho * float(y.dot(product)) + 1.0)) * s - rho * product
            for start in range(0, s.size, self.ROWS):
                rows = slice(start, start + self.ROWS)
                change = np.multiply.outer(s[rows], v)
                change += np.multiply.outer(v[rows], s)
                matrix[rows] += change
        return math.sqrt(s.dot(s)), scale

    def direction(self, gradient: Vector) -> Vector:
        direction = self._matrix.dot(gradient)
        return np.negative(direction, out=direction)


class LimitedMemory:
    """The last steps s and changes of the gradient y of L-BFGS; the two-loop recursion in the space they span.

    Nocedal and Wright, algorithm 7.4. The direction is a combination of the gradient, the s and the y; with the inner
    products of all of these the recursion runs on its coefficients. Vectors as long as the parameters are then read
    by matrix products only: three passes over the history for each step, and no temporary vectors.
    """

    def __init__(self, size: int, history: int) -> None:
        self._history = history
        # The gradient, s and y of slot 0, s and y of slot 1, ...
        self._rows: npt.NDArray[np.float64] = np.zeros((2 * history + 1, size))
        self._block = max(SERIAL_WORK // (2 * self._rows.shape[0]), 1)  # columns that are multiplied at a time
        self._directions = np.empty((2, 2, size))  # the last two, each with the second row of its product
        self._order: list[int] = []  # slots in use, the oldest first
        self._next = 0
        self._sy = [[0.0] * history for _ in range(history)]  # s_i . y_j
        self._yy = [[0.0] * history for _ in range(history)]
        self._scale = 1.0

    def update(self, old: Point, new: Point, reset: bool) -> tuple[float, float]:
        if reset:
            self._order.clear()
            self._next = 0
        slot = self._next
        self._next = (slot + 1) % self._history
        if len(self._order) == self._history:
            self._order.pop(0)
        self._order.append(slot)
        pair = self._rows[2 * slot + 1 : 2 * slot + 3]
        np.subtract(new.x, old.x, out=pair[0])
        np.subtract(new.gradient, old.gradient, out=pair[1])
        products = self._products(pair)
        for i in self._order:
            (_, s_y), (y_s, y_y) = products[2 * i + 1 : 2 * i + 3]
            self._sy[i][slot] = s_y
            self._sy[slot][i] = y_s
            self._yy[i][slot] = self._yy[slot][i] = y_y
        s_y, y_y = self._sy[slot][slot], self._yy[slot][slot]
        self._scale = divide(s_y, y_y)
        return math.sqrt(products[2 * slot + 1][0]), divide(y_y, s_y) if reset else 1.0

    def direction(self, gradient: Vector) -> Vector:
        self._rows[0] = gradient
        products = [product for product, _ in self._products(self._rows[:2])]
        weights = self._first_loop(products[1::2])
        steps = self._second_loop(products[2::2], weights)
        coefficients = [-self._scale] * (2 * len(steps) + 1)
        coefficients[1::2] = steps
        coefficients[2::2] = [-self._scale * weight for weight in weights]
        return self._combination(coefficients)

    def _first_loop(self, s_g: list[float]) -> list[float]:
        """The weights of q = -g - sum of weights[j] y_j."""
        weights = [0.0] * len(s_g)
        done: list[int] = []
        for i in reversed(self._order):
            row = self._sy[i]
            s_q = -s_g[i]
            for j in done:
                s_q -= weights[j] * row[j]
            weights[i] = divide(s_q, row[i])
            done.append(i)
        return weights

    def _second_loop(self, y_g: list[float], weights: list[float]) -> list[float]:
        """The steps of the direction scale q + sum of steps[j] s_j."""
        steps = [0.0] * len(y_g)
        done: list[int] = []
        for i in self._order:
            row = self._yy[i]
            y_q = -y_g[i]
            for j in self._order:
                y_q -= weights[j] * row[j]
            y_r = self._scale * y_q
            for j in done:
                y_r += steps[j] * self._sy[j][i]
            steps[i] = weights[i] - divide(y_r, self._sy[i][i])
            done.append(i)
        return steps

    def _used_rows(self) -> npt.NDArray[np.float64]:
        """Without the slots that hold nothing yet; those come last."""
        return self._rows[: 2 * len(self._order) + 1]

    def _products(self, pair: npt.NDArray[np.float64]) -> list[list[float]]:
        """Inner products of the rows with two vectors."""
        rows, size, block = self._used_rows(), pair.shape[1], self._block
        if size <= block:
            return rows.dot(pair.T).tolist()
        total = np.zeros((rows.shape[0], 2))
        for start in range(0, size, block):
            # matmul, unlike dot, does not copy a part of an array.
            total += np.matmul(rows[:, start : start + block], pair[:, start : start + block].T)
        return total.tolist()

    def _combination(self, coefficients: list[float]) -> Vector:
        """The sum of the rows times their coefficients, in the memory of the result before the last."""
        rows, size, block = self._used_rows(), self._rows.shape[1], self._block
        left = np.zeros((2, rows.shape[0]))
        left[0] = coefficients
        self._directions = self._directions[::-1]
        result = self._directions[0]
        if size <= block:
            return left.dot(rows, out=result)[0]
        for start in range(0, size, block):
            np.matmul(left, rows[:, start : start + block], out=result[:, start : start + block])
        return result[0]


PERSISTENCE = 0.08
"""A relative test must hold during so large a share of the evaluations made until then; else the run goes on.

Stan ends when one of them holds for the first time. Where a problem is badly conditioned, that is often by accident,
far from the maximum; of a run of 36 evaluations this is two more.
"""
NEGLIGIBLE = 1e-9
"""So little to be gained (or, of large values, what rounding takes) ends a run at once."""
ROUNDING = 100 * EPSILON
_RELATIVE = (Termination.RELATIVE_OBJECTIVE, Termination.RELATIVE_GRADIENT)


class _Persistence:
    """Counts evaluations; decides since when a relative test holds, and whether that is long enough."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._evaluations = 1  # the start
        self._first = 0  # how many there were when the test first held; 0 if it does not hold
        self.holding = Termination.RUNNING

    def __call__(self, x: Vector) -> Point | None:
        self._evaluations += 1
        return self._objective(x)

    def judged(self, termination: Termination, value: float, gain: float) -> Termination:
        """RUNNING in place of a relative test that holds too briefly. `gain`: what is expected of a further step."""
        if termination not in _RELATIVE:
            self._first, self.holding = 0, Termination.RUNNING
            return termination
        self._first = self._first or self._evaluations
        self.holding = termination
        enough = self._evaluations - self._first >= int(PERSISTENCE * self._first)
        enough = enough or gain < max(NEGLIGIBLE, ROUNDING * abs(value))
        return termination if enough else Termination.RUNNING


def minimize(objective: Objective, start: Point, options: BFGSOptions) -> Iterator[Iteration]:
    """Yields the state after each step; the last one has a `termination` other than RUNNING.

    A search that fails while a relative test holds ends the run by that test. If one fails along the gradient, too, the
    one more state that is yielded is the last point once more.
    """
    search_options = LineSearchOptions(first_step=options.init_alpha)
    hessian = options.inverse_hessian(start.x.size)
    objective = persistence = _Persistence(objective)
    point, direction = start, -start.gradient
    slope = float(start.gradient.dot(direction))
    # What the next first step is guessed from: the previous step, the slopes at its ends, the change of the value.
    previous_step = previous_slope = reached_slope = previous_change = 0.0
    number = 0
    while True:
        number += 1
        reset, note = number == 1, ""
        alpha0 = options.init_alpha
        if not reset:
            guess = cubic_minimum(
                previous_slope, previous_step, previous_change, reached_slope, search_options.smallest_step, 1.0
            )
            alpha0 = min(1.0, 1.01 * guess)
        found = WolfeSearch(objective, point, direction, slope, alpha0, search_options).run()
        if found is None and persistence.holding is not Termination.RUNNING:
            yield Iteration(number, point, 0.0, 0.0, alpha0, note, persistence.holding)
            return
        if found is None and not reset:
            reset, note = True, RESET_NOTE
            direction, alpha0 = -point.gradient, options.init_alpha
            slope = float(point.gradient.dot(direction))
            found = WolfeSearch(objective, point, direction, slope, alpha0, search_options).run()
        if found is None and (unit := divide(1.0, math.sqrt(-slope))) < alpha0:
            # Stan gives up here. Far from the maximum the gradient is so long that its steps overflow.
            alpha0, note = unit, f"{note}, step of length 1".removeprefix(", ")
            found = WolfeSearch(objective, point, direction, slope, alpha0, search_options).run()
        if found is None:
            yield Iteration(number, point, 0.0, 0.0, alpha0, note, Termination.LINE_SEARCH_FAILED)
            return
        alpha, reached_slope, new = found
        step_norm, factor = hessian.update(point, new, reset)
        # After a reset the step guess is made in units of the new scale: the direction is divided by the factor.
        previous_step, previous_change = alpha * factor, new.value - point.value
        previous_slope, reached_slope = divide(slope, factor), divide(reached_slope, factor)
        direction = hessian.direction(new.gradient)
        slope = float(direction.dot(new.gradient))
        test = _test(number, point, new, slope, step_norm, options)
        termination = persistence.judged(test, new.value, -0.5 * slope)
        point = new
        yield Iteration(number, point, step_norm, alpha, alpha0, note, termination)
        if termination is not Termination.RUNNING:
            return


def _test(number: int, old: Point, new: Point, slope: float, step_norm: float, options: BFGSOptions) -> Termination:
    """Stan's convergence tests; the first that holds decides, the limit of iterations among them.

    `slope` is that along the next direction. No test holds with a tolerance of 0; Stan's last one could, where the
    direction does not descend.
    """
    change = abs(old.value - new.value)
    if change < options.tol_obj:
        return Termination.OBJECTIVE
    if options.tol_grad and math.sqrt(new.gradient.dot(new.gradient)) < options.tol_grad:
        return Termination.GRADIENT
    if step_norm < options.tol_param:
        return Termination.PARAMETERS
    if number >= options.iter:
        return Termination.MAX_ITERATIONS
    if change / max(abs(old.value), abs(new.value), 1.0) < options.tol_rel_obj * EPSILON:
        return Termination.RELATIVE_OBJECTIVE
    if options.tol_rel_grad:
        if -slope / max(abs(new.value), 1.0) < options.tol_rel_grad * EPSILON:
            return Termination.RELATIVE_GRADIENT
    return Termination.RUNNING
