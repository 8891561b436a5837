"""Pareto-smoothed importance sampling.

The largest importance ratios are replaced by quantiles of a generalized Pareto distribution fitted to them; its shape
k-hat says how reliable the weights are (Vehtari, Simpson, Gelman, Yao and Gabry 2024, "Pareto smoothed importance
sampling", Journal of Machine Learning Research 25(72), section 2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

KHAT_LIMIT = 0.7
"""Above it weights, and estimates made with them, are not reliable (section 3.2.4 there)."""

LEAST_TAIL = 5
"""So many ratios are needed for a fit."""

SPREAD_OF_EQUAL = 1e-10
"""Logs of ratios that differ by less are the same, up to rounding: the approximation is exact there."""

NEGLIGIBLE = 10 * float(np.finfo(np.float64).eps)
SMALL_SAMPLE, SHARE_OF_SMALL_SAMPLE = 225, 5


class SmoothedWeights(NamedTuple):
    """Logs of the weights, whose sum is 1, and k-hat.

    `khat` is NaN where there are too few ratios for a fit, and -infinity where the largest are all the same; ratios
    are then weights as they are.
    """

    log_weights: Vector
    khat: float


def smoothed_weights(log_ratios: Vector) -> SmoothedWeights:
    """The weights of draws from their log importance ratios. A ratio that is NaN has no weight.

    Raises ValueError if no ratio is finite.
    """
    logs = np.where(np.isnan(log_ratios), -np.inf, log_ratios)
    largest = logs.max(initial=-np.inf)
    if not np.isfinite(largest):
        raise ValueError("no importance ratio is finite")
    logs = logs - largest
    length = tail_length(logs.size)
    if length < LEAST_TAIL:
        return SmoothedWeights(_normalized(logs), math.nan)
    order = np.argsort(logs, kind="stable")
    tail, cutoff = order[-length:], logs[order[-length - 1]]
    if -logs[tail[0]] < SPREAD_OF_EQUAL:
        return SmoothedWeights(_normalized(logs), -math.inf)
    excess = np.exp(logs[tail]) - math.exp(cutoff)
    shape, scale = fit_generalized_pareto(excess)
    if math.isfinite(shape) and scale > 0:
        quantiles = _pareto_quantiles((np.arange(length) + 0.5) / length, shape, scale)
        logs[tail] = np.minimum(np.log(quantiles + math.exp(cutoff)), 0.0)  # no more than the largest ratio
    return SmoothedWeights(_normalized(logs), shape)


def tail_length(size: int) -> int:
    """How many of the largest ratios are smoothed: 3 sqrt(S), of small samples a fifth (section 2.2 there)."""
    if size <= SMALL_SAMPLE:
        return size // SHARE_OF_SMALL_SAMPLE
    return math.floor(3 * math.sqrt(size))


def fit_generalized_pareto(excess: Vector) -> tuple[float, float]:
    """Shape k and scale of a generalized Pareto distribution, from excesses over its location in ascending order.

    The empirical Bayes estimate of Zhang and Stephens (2009), "A new and efficient estimation method for the
    generalized Pareto distribution", Technometrics 51, section 4, with the sign of k turned. The prior of k, with the
    weight of ten observations at 0.5, is that of Vehtari et al. (2024), appendix G. NaN where the quartile is 0.
    """
    count = excess.size
    points = 30 + math.isqrt(count)
    quartile = excess[int(count / 4 + 0.5) - 1]
    if not quartile > 0:
        return math.nan, math.nan
    grid = 1 / excess[-1] + (1 - np.sqrt(points / (np.arange(points) + 0.5))) / (3 * quartile)
    with np.errstate(divide="ignore", invalid="ignore"):
        shapes = np.log1p(-grid[:, np.newaxis] * excess).mean(axis=1)
        likelihood = count * (np.log(-grid / shapes) - shapes - 1)
    likelihood = np.where(np.isnan(likelihood), -np.inf, likelihood)
    weights = np.exp(_normalized(likelihood))
    kept = weights >= NEGLIGIBLE
    theta = float((grid[kept] * weights[kept]).sum() / weights[kept].sum())
    shape = float(np.log1p(-theta * excess).mean())
    return (count * shape + 10 * 0.5) / (count + 10), -shape / theta


def _pareto_quantiles(probabilities: Vector, shape: float, scale: float) -> Vector:
    tails = -np.log1p(-probabilities)
    return scale * tails if shape == 0 else scale * np.expm1(shape * tails) / shape


def _normalized(logs: Vector) -> Vector:
    """The same, with exponentials whose sum is 1."""
    largest = logs.max()
    return logs - (largest + math.log(np.exp(logs - largest).sum()))
