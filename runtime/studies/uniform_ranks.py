"""Whether ranks are uniform: the band that their ECDF leaves nowhere, with a probability that is chosen.

Säilynoja, Bürkner and Vehtari (2022), "Graphical test for discrete uniformity and its applications in goodness-of-fit
evaluation and multiple sample comparison", Statistics and Computing 32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_HALVINGS = 16
"""Of the interval that the logarithm of the pointwise risk is looked for in."""
MOST_POINTS = 200
"""The ECDF is looked at in so many places."""


@lru_cache(maxsize=8)
def _log_factorials(count: int) -> Array:
    return np.array([math.lgamma(k + 1) for k in range(count + 1)])


def _log_binomial(count: Any, chosen: Any, most: int) -> Array:
    """log of the binomial coefficients, for `count` up to `most`."""
    logs = _log_factorials(most)
    return logs[count] - logs[chosen] - logs[count - chosen]


@lru_cache(maxsize=1000)
def _cumulative(count: int, probability: float) -> Array:
    """P(X <= k) of a binomial distribution, for k from 0."""
    k = np.arange(count + 1)
    logs = _log_binomial(count, k, count) + k * math.log(probability) + (count - k) * math.log1p(-probability)
    return np.minimum(np.cumsum(np.exp(logs)), 1.0)


def limits(count: int, points: Array, risk: float) -> tuple[Array, Array]:
    """The smallest and largest counts at each point that a single one has at most the risk to leave."""
    found = [_cumulative(count, point) for point in points]
    lower = np.array([int(np.searchsorted(values, risk / 2, side="right")) for values in found])
    upper = np.array([int(np.searchsorted(values, 1 - risk / 2, side="left")) for values in found])
    return lower, np.minimum(upper, count)


def coverage(count: int, points: Array, lower: Array, upper: Array) -> float:
    """The probability that the counts below all points stay within the limits (Säilynoja et al., section 2.2).

    From point to point the count is a Markov chain: of those that are not yet below, each is with the same probability.
    """
    old, state = np.zeros(1, np.intp), np.ones(1)
    before = 0.0
    for point, low, high in zip(points, lower, upper, strict=True):
        step = (point - before) / (1 - before)
        new = np.arange(low, high + 1)
        more = new - old[:, np.newaxis]
        left = count - old[:, np.newaxis]
        taken = np.clip(more, 0, left)
        logs = _log_binomial(left, taken, count) + taken * math.log(step) + (left - taken) * math.log1p(-step)
        state = state @ np.where(more >= 0, np.exp(logs), 0.0)
        old, before = new, point
    return float(state.sum())


@lru_cache(maxsize=32)
def band(count: int, levels: int, risk: float) -> tuple[Array, Array, Array]:
    """Points, and the limits of the counts of `count` ranks below them; all of `levels` ranks are equally likely.

    The pointwise risk is the largest for which the limits are left anywhere with the probability `risk` at most.
    """
    every = math.ceil((levels - 1) / MOST_POINTS)
    points = np.arange(every, levels, every) / levels
    low, high = math.log(risk / (10 * levels)), math.log(risk)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if coverage(count, points, *limits(count, points, math.exp(middle))) >= 1 - risk:
            low = middle
        else:
            high = middle
    return points, *limits(count, points, math.exp(low))


def counts_below(ranks: Sequence[int] | Array, levels: int, points: Array) -> Array:
    """How many of the ranks, from 0 to `levels` - 1, are below each point."""
    return np.searchsorted(np.sort(np.asarray(ranks)), np.rint(points * levels), side="left")


def outside(ranks: Sequence[int] | Array, levels: int, risk: float) -> float:
    """How far the ECDF of ranks from 0 to `levels` - 1 leaves its band, as a share of all; 0 within."""
    points, lower, upper = band(len(ranks), levels, risk)
    below = counts_below(ranks, levels, points)
    return float(np.maximum(lower - below, below - upper).max(initial=0)) / len(ranks)
