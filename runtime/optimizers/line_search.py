"""Line search for the strong Wolfe conditions: bracketing, then zooming in with cubic interpolation.

Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with the constants, the treatment of failed
evaluations and the limits of Stan's services, so that iterates agree with Stan's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

# Evaluates the function and its gradient; None where they cannot be (a rejection, or not finite).
Objective = Callable[[Vector], "Point | None"]


@dataclass(slots=True)
class Point:
    """A point with the value and the gradient there."""

    x: Vector
    value: float
    gradient: Vector


@dataclass(frozen=True, slots=True)
class LineSearchOptions:
    sufficient_decrease: float = 1e-4  # c1
    curvature: float = 0.9  # c2
    first_step: float = 1e-3  # init_alpha
    smallest_step: float = 1e-12
    max_expansions: int = 20
    max_failures: int = 10  # in a row
    smallest_interval: float = 1e-16


@dataclass(slots=True)
class _Trial:
    """A step with the value and the slope along the direction there."""

    step: float
    value: float
    slope: float


def cubic_minimum(slope0: float, step: float, value: float, slope: float, lower: float, upper: float) -> float:
    """Where, on [lower, upper], the cubic is least that is 0 at 0 with `slope0`, and has `value`, `slope` at `step`.

    End points and both stationary points are compared; one that is not a number is ignored.
    """
    square, cube = step * step, step * step * step
    third = divide(6 * (step * (slope0 + slope) - 2 * value), cube)
    second = divide(6 * value, square) - divide(4 * slope0 + 2 * slope, step)
    discriminant = second * second - 2 * slope0 * third

    def cubic(s: float) -> float:
        return s * (s * (s * third / 3 + second) / 2 + slope0)

    candidates = [upper]
    if discriminant >= 0 and third != 0:
        root = math.sqrt(discriminant)
        stationary = (-(second + root) / third, -(second - root) / third)
        candidates += [s for s in stationary if lower < s < upper]
    best, least = lower, cubic(lower)
    for candidate in candidates:
        height = cubic(candidate)
        if height < least:
            best, least = candidate, height
    return best


class WolfeSearch:
    """One search from `start` along `direction`, where the slope is `slope`, beginning with step `first`."""

    def __init__(
        self,
        objective: Objective,
        start: Point,
        direction: Vector,
        slope: float,
        first: float,
        options: LineSearchOptions,
    ) -> None:
        self.objective = objective
        self.start = start
        self.direction = direction
        self.first = first
        self.options = options
        self.slope = slope
        self.decrease = options.sufficient_decrease * self.slope
        self.flat = -options.curvature * self.slope

    def run(self) -> tuple[float, float, Point] | None:
        """The step that satisfies the conditions, the slope there, and the point; None if there is none."""
        options = self.options
        if not math.isfinite(self.slope):
            return None  # so is every trial point
        previous = _Trial(options.smallest_step, self.start.value, self.slope)
        step, expansions, failures = self.first, 0, 0
        while expansions < options.max_expansions:
            point = self._at(step)
            if point is None:
                if failures >= options.max_failures:
                    return None
                failures += 1
                step = 0.5 * (previous.step + step)
                continue
            failures = 0
            trial = _Trial(step, point.value, float(point.gradient.dot(self.direction)))
            # The bound uses the first trial step, not the present one, as Stan's does.
            too_high = trial.value > self.start.value + self.first * self.decrease
            if too_high or (expansions > 0 and trial.value >= previous.value):
                return self._zoom(previous, trial)
            if abs(trial.slope) <= self.flat:
                return step, trial.slope, point
            if trial.slope >= 0:
                return self._zoom(trial, previous)
            previous = trial
            step *= 10
            expansions += 1
        return None

    def _at(self, step: float) -> Point | None:
        x = np.multiply(self.direction, step)
        x += self.start.x
        return self.objective(x)

    def _zoom(self, low: _Trial, high: _Trial) -> tuple[float, float, Point] | None:
        """Narrows the interval between the best step so far and one on the other side of a minimum."""
        smallest = self.options.smallest_interval
        passes = 0
        while True:
            passes += 1
            if abs(low.step - high.step) < smallest:
                return None
            middle = 0.5 * (low.step + high.step)
            step = middle if passes % 5 == 0 else _interpolate(low, high, middle)
            if step in (low.step, high.step):
                return None  # no number lies between them
            point = self._at(step)
            while point is None:
                nearer = min(low.step, high.step)
                step = 0.5 * (step + nearer)
                if abs(nearer - step) < smallest:
                    return None
                point = self._at(step)
            trial = _Trial(step, point.value, float(point.gradient.dot(self.direction)))
            if trial.value > self.start.value + step * self.decrease or trial.value >= low.value:
                high = trial
                continue
            if abs(trial.slope) <= self.flat:
                return step, trial.slope, point
            if trial.slope * (high.step - low.step) >= 0:
                high = low
            low = trial


def _interpolate(low: _Trial, high: _Trial, middle: float) -> float:
    """The minimum of the cubic through both trials; `middle` if it is undefined or within 1 % of an end."""
    width = high.step - low.step
    d1 = low.slope + high.slope - 3 * (low.value - high.value) / (low.step - high.step)
    square = d1 * d1 - low.slope * high.slope
    if not square >= 0:
        return middle
    d2 = math.copysign(math.sqrt(square), width)
    denominator = high.slope - low.slope + 2 * d2
    if denominator == 0:
        return middle
    step = high.step - width * (high.slope + d2 - d1) / denominator
    left, right = sorted((low.step, high.step))
    margin = 0.01 * abs(width)
    return step if left + margin <= step <= right - margin else middle


def divide(numerator: float, denominator: float) -> float:
    """IEEE division (Python raises on a zero denominator)."""
    if denominator:
        return numerator / denominator
    return math.nan if numerator == 0 or numerator != numerator else math.copysign(math.inf, numerator)
