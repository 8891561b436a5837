"""Two models timed against each other: gradients in rounds that take turns, and the ratio of their times.

A machine that gets slower or faster meanwhile does so for both. The ratio is the median over the rounds of the ratio
within each; its interval is the percentile bootstrap of that median (Efron and Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import Rejection

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Vector = npt.NDArray[np.float64]
Timer = Callable[[int], float]
"""Does something so many times, and returns the seconds that took."""

ROUND_SECONDS = 0.01
"""How long a round of each version should take, where the number of gradients is not given."""

RESAMPLES, LEVEL = 2000, 0.95
POINTS, STEP = 5, 0.5
"""At how many points two models are compared, and how far at most these are from the first in each parameter."""

TOLERANCE = 1e-8
"""Relative difference of log densities and gradients that rounding may make."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of times with an interval of 95%."""

    value: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class Timing:
    """Seconds per gradient of the first and the second model: one row for each round."""

    seconds: Vector
    counts: tuple[int, int]
    """Gradients of each in a round."""

    @property
    def medians(self) -> tuple[float, float]:
        first, second = np.median(self.seconds, axis=0)
        return float(first), float(second)

    @property
    def ratio(self) -> Ratio:
        """How many times as long the second takes as the first."""
        return median_ratio(self.seconds[:, 0], self.seconds[:, 1])


def median_ratio(first: Vector, second: Vector) -> Ratio:
    """The median of `second / first`, with its interval. The same numbers give the same interval."""
    ratios = second / first
    picks = np.random.default_rng(0).integers(len(ratios), size=(RESAMPLES, len(ratios)))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.median(ratios[picks], axis=1), (tail, 1 - tail))
    return Ratio(float(np.median(ratios)), float(low), float(high), len(ratios))


def gradient_timer(model: StanModel, theta: Vector) -> Timer:
    """Times gradients of a model at a point, without constants, with the Jacobian adjustment."""
    return lambda count: model.time_gradients(theta, count)


def fitting_count(timer: Timer, seconds: float = ROUND_SECONDS) -> int:
    """How many times fit into `seconds`, at least one."""
    timer(1)  # compiles, and fills caches
    count = 1
    while (took := timer(count)) < seconds / 4:
        count *= 4
    return max(1, round(count * seconds / took))


def interleaved(first: Timer, second: Timer, *, rounds: int = 20, count: int | None = None) -> Timing:
    """Runs both in turns. `count`: so many times each in a round (default: as many as fit into `ROUND_SECONDS`).

    Within a round each has two turns of half the work, one inside of the other's two, which cancels a steady drift.
    """
    timers = first, second
    if count is None:
        counts = fitting_count(first), fitting_count(second)
    else:
        counts = count, count
        for timer in timers:
            timer(1)
    seconds = np.zeros((rounds, 2))
    for number in range(rounds):
        order = (0, 1, 1, 0) if number % 2 == 0 else (1, 0, 0, 1)
        left = list(counts)
        for which in order:
            portion = (counts[which] + 1) // 2 if left[which] == counts[which] else left[which]
            left[which] -= portion
            if portion:
                seconds[number, which] += timers[which](portion)
    return Timing(seconds / np.array(counts), counts)


# ---------------------------------------------------------------- do they compute the same?


@dataclass(frozen=True)
class Agreement:
    """How the log densities and gradients of two models compare at some points."""

    points: int
    offset: float
    """The second's log density less the first's, on average."""
    spread: float
    """How far the difference is from that at most, relative to the log density."""
    gradient: float
    """Largest difference of gradients, relative to the largest element of the first's."""

    @property
    def same(self) -> bool:
        """Whether it is one density, up to a constant."""
        return self.spread <= TOLERANCE and self.gradient <= TOLERANCE


def parameter_order(first: StanModel, second: StanModel) -> npt.NDArray[np.intp] | None:
    """Where the first's unconstrained parameters are taken from for the second; None if they are not the same."""
    names, others = first.param_unc_names(), second.param_unc_names()
    if sorted(names) != sorted(others):
        return None
    places = {name: place for place, name in enumerate(names)}
    return np.array([places[name] for name in others], dtype=np.intp)


def differing_parameters(first: StanModel, second: StanModel) -> tuple[list[str], list[str]]:
    """Names of unconstrained parameters that only the first has, and only the second."""
    names, others = first.param_unc_names(), second.param_unc_names()
    return [name for name in names if name not in others], [name for name in others if name not in names]


def agreement(first: StanModel, second: StanModel, theta: Vector, order: npt.NDArray[np.intp]) -> Agreement:
    """Compares two models of the same parameters at a point and at some around it where both can be evaluated."""
    generator = np.random.default_rng(0)
    differences: list[float] = []
    scale, gradient = 1.0, 0.0
    for number in range(POINTS):
        point = theta if number == 0 else theta + generator.uniform(-STEP, STEP, theta.shape)
        try:
            value, slope = first.log_density_gradient(point)
            other, other_slope = second.log_density_gradient(point[order])
        except Rejection:
            if number == 0:
                raise
            continue
        if not (np.isfinite(value) and np.isfinite(other)):
            continue
        differences.append(other - value)
        scale = max(scale, abs(value))
        if slope.size:
            largest = max(1.0, float(np.abs(slope).max()))
            gradient = max(gradient, float(np.abs(other_slope - slope[order]).max()) / largest)
    if not differences:  # the second's is nowhere finite
        return Agreement(0, float("nan"), float("inf"), float("inf"))
    offset = float(np.mean(differences))
    spread = float(np.max(np.abs(np.array(differences) - offset))) / scale
    return Agreement(len(differences), offset, spread, gradient)


def first_points(models: Sequence[StanModel], init: object, seed: int) -> list[Vector]:
    """An initial point of each model, found as the optimizers do. Raises InitializationError."""
    from ulam.runtime.optimizers.initial_values import initial_point
    from ulam.runtime.optimizers.objective import ModelObjective

    return [initial_point(ModelObjective(model, jacobian=True), init, seed).x for model in models]  # pyright: ignore[reportArgumentType]
