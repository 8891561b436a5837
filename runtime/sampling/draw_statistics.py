"""Statistics of draws of several chains: R-hat, effective sample sizes, Monte Carlo standard errors.

Vehtari, Gelman, Simpson, Carpenter, Bürkner, "Rank-normalization, folding, and localization: an improved R-hat for
assessing convergence of MCMC", Bayesian Analysis 16 (2021), in short: Vehtari et al. The numbers are those of
arviz-stats, which is where details are from that the paper leaves open, as what is said of short chains.

Draws are arrays of shape (chains, draws, ...); a statistic has the shape of what is left. It is NaN for draws with a
NaN among them, of fewer than 4 iterations, and R-hat is for a single chain.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.c_library import library

Array = npt.NDArray[np.float64]

LEAST_DRAWS = 4
"""Chains that are shorter have no statistics but moments and quantiles."""

TAILS = (0.05, 0.95)
"""The quantiles whose effective sample sizes are those of the tails."""

BLOM = 3 / 8
"""Offset of fractional ranks. G. Blom, "Statistical Estimates and Transformed Beta-Variables" (1958)."""

_NO_RANGE = float(np.finfo(np.float64).resolution)
"""Draws that differ by less do not differ."""

_ONE_SD = (0.1586553, 0.8413447)
"""Normal probabilities of minus and plus one, as rounded by arviz-stats."""


class Columns:
    """Draws of several quantities, and what several statistics need of them. An array (quantities, chains, draws).

    Results are arrays with a number for each quantity.
    """

    def __init__(self, draws: npt.NDArray[Any]) -> None:
        count, self.n_chains, self.n_draws = draws.shape
        self.draws = np.ascontiguousarray(draws, dtype=np.float64)
        self.pooled = self.draws.reshape(count, self.n_chains * self.n_draws)
        self.valid = ~np.isnan(self.pooled).any(axis=1)
        self.is_long = self.n_draws >= LEAST_DRAWS and self.draws.size > 0

    # ------------------------------------------------------------ moments and quantiles

    @cached_property
    def mean(self) -> Array:
        return _quiet(lambda: self.pooled.mean(axis=1)) if self.pooled.size else self._nothing()

    @cached_property
    def sd(self) -> Array:
        """Of the draws as they are: divided by their number, as arviz-stats does."""
        return _quiet(lambda: np.sqrt(self._variance)) if self.pooled.size else self._nothing()

    @cached_property
    def _variance(self) -> Array:
        return self.pooled.var(axis=1)

    def quantile(self, probability: float) -> Array:
        """By linear interpolation, type 7 of Hyndman and Fan (1996)."""
        if not self.pooled.size:
            return self._nothing()
        found = _quantile(self.sorted, probability)
        found[~self.valid] = np.nan
        return found

    @cached_property
    def mad(self) -> Array:
        """The median absolute deviation from the median. 1.4826 times it is a normal distribution's sd."""
        return self._whole(lambda: np.where(self.valid, _median(self._folding[0]), np.nan))

    # ------------------------------------------------------------ convergence

    @cached_property
    def rhat(self) -> Array:
        """Rank-normalized split R-hat: the larger of those of the draws and of the folded draws.

        Vehtari et al., section 4.1 and 4.2, (3), (4), (14).
        """
        return self.split_rhat if self.n_chains >= 2 else self._nothing()

    @cached_property
    def split_rhat(self) -> Array:
        """The same; of a single chain it compares its halves."""

        def found() -> Array:
            bulk = _rhat(self._scores)
            tail = _rhat(self._folded_scores)
            return np.where(tail > bulk, tail, bulk)  # of folded draws that are constant there is none

        return self._known(found)

    @cached_property
    def ess_bulk(self) -> Array:
        """Of rank-normalized split chains: Vehtari et al., section 4.1."""
        return self._known(lambda: _ess(self._scores))

    @cached_property
    def ess_tail(self) -> Array:
        """The smaller one of those of the 5% and 95% quantiles: Vehtari et al., section 4.3."""
        return self._known(lambda: np.minimum(*(self.ess_quantile(probability) for probability in TAILS)))

    @cached_property
    def ess_mean(self) -> Array:
        """Of split chains."""
        return self._known(lambda: _ess(split(self.draws)))

    def ess_quantile(self, probability: float) -> Array:
        """Of the indicator of draws up to the quantile: Vehtari et al., (15)."""

        def found() -> Array:
            below = self.draws <= self.quantile(probability)[:, None, None]
            return _ess(split(below.astype(np.float64)))

        return self._known(found)

    # ------------------------------------------------------------ Monte Carlo standard errors

    @cached_property
    def mcse_mean(self) -> Array:
        return self._known(lambda: self.pooled.std(axis=1, ddof=1) / np.sqrt(self.ess_mean))

    @cached_property
    def mcse_sd(self) -> Array:
        """By the delta method, from the variance of the squared deviations."""

        def found() -> Array:
            squares = np.square(self.pooled - self.mean[:, None])
            variance = squares.mean(axis=1)
            error = (np.square(squares).mean(axis=1) - variance**2) / self.ess_mean
            return np.sqrt(error / variance / 4)

        return self._known(found)

    def mcse_quantile(self, probability: float) -> Array:
        """Half the width of the interval of one standard error: Vehtari et al., section 4.4."""

        def found() -> Array:
            native, size = library(), self.pooled.shape[1]
            sizes = self.ess_quantile(probability)
            errors = np.full(len(sizes), np.nan)
            for k in np.flatnonzero(self.valid & np.isfinite(sizes)):
                a, b = sizes[k] * probability + 1, sizes[k] * (1 - probability) + 1
                low, high = (native.ulam_beta_quantile(p, a, b) * size - 1 for p in _ONE_SD)
                row = self.sorted[k]
                errors[k] = (row[int(np.ceil(min(high, size - 1)))] - row[int(max(low, 0))]) / 2
            return errors

        return self._known(found)

    # ------------------------------------------------------------ ranks

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        return self.pooled.argsort(axis=1)

    @cached_property
    def sorted(self) -> Array:
        """The draws of all chains together, each quantity's in order."""
        return np.take_along_axis(self.pooled, self._order, axis=1)

    @property
    def _halves(self) -> Columns:
        """Split chains as columns of their own; the same draws in another shape where chains have even lengths."""
        return self if self.n_draws % 2 == 0 else self._odd_halves

    @cached_property
    def _odd_halves(self) -> Columns:
        return Columns(split(self.draws))

    @property
    def _scores(self) -> Array:
        """Normal scores of the ranks of split chains: Vehtari et al., (14)."""
        halves = self._halves
        return split(self.draws, like=_scores(halves.sorted, halves._order))

    @cached_property
    def _folding(self) -> tuple[Array, npt.NDArray[np.intp]]:
        """Absolute deviations from the median, in order, and the places of the draws that they are of.

        What is below the median and what is above it is in order already: sorting merges the two.
        """
        ordered, order = self.sorted, self._order
        half = ordered.shape[1] // 2
        deviations = _quiet(lambda: np.abs(ordered - _median(ordered)[:, None]))
        runs = np.concatenate([deviations[:, :half][:, ::-1], deviations[:, half:]], axis=1)
        places = np.concatenate([order[:, :half][:, ::-1], order[:, half:]], axis=1)
        merged = runs.argsort(axis=1, kind="stable")
        return np.take_along_axis(runs, merged, axis=1), np.take_along_axis(places, merged, axis=1)

    @property
    def _folded_scores(self) -> Array:
        halves = self._halves
        ordered, places = halves._folding
        scores = _scores(ordered, places)
        scores[np.isnan(ordered).any(axis=1)] = np.nan  # the median is infinite
        return split(self.draws, like=scores)

    # ------------------------------------------------------------ what there is none of

    def _nothing(self) -> Array:
        return np.full(len(self.draws), np.nan)

    def _whole(self, statistic: Callable[[], Array]) -> Array:
        return _quiet(statistic) if self.pooled.size else self._nothing()

    def _known(self, statistic: Callable[[], Array]) -> Array:
        """The statistic where there is one."""
        if not self.is_long:
            return self._nothing()
        return np.where(self.valid, _quiet(statistic), np.nan)


def _quiet(work: Callable[[], Array]) -> Array:
    """What is infinite or constant has statistics that are NaN, without warnings."""
    with np.errstate(all="ignore"):
        return work()


# ---------------------------------------------------------------- functions of arrays


def columns(draws: npt.ArrayLike) -> tuple[Columns, tuple[int, ...]]:
    """Draws of shape (chains, draws, ...) as columns, and the shape that is left."""
    array = np.asarray(draws, dtype=np.float64)
    if array.ndim < 2:
        raise ValueError(f"draws must have the shape (chains, draws, ...), found {array.shape}")
    shape = array.shape[2:]
    return Columns(np.moveaxis(array.reshape(*array.shape[:2], -1), -1, 0)), shape


def _function(statistic: Callable[[Columns], Array], draws: npt.ArrayLike) -> Any:
    found, shape = columns(draws)
    result = statistic(found).reshape(shape)
    return result if shape else float(result)


def rhat(draws: npt.ArrayLike) -> Any:
    """Rank-normalized split R-hat: how much chains differ, 1 if they do not."""
    return _function(lambda found: found.rhat, draws)


def ess_bulk(draws: npt.ArrayLike) -> Any:
    """The effective sample size of the bulk, which location is told from."""
    return _function(lambda found: found.ess_bulk, draws)


def ess_tail(draws: npt.ArrayLike) -> Any:
    """The effective sample size of the tails, which 5% and 95% quantiles are told from."""
    return _function(lambda found: found.ess_tail, draws)


def ess_mean(draws: npt.ArrayLike) -> Any:
    """The effective sample size of the mean."""
    return _function(lambda found: found.ess_mean, draws)


def ess_quantile(draws: npt.ArrayLike, probability: float) -> Any:
    """The effective sample size of a quantile."""
    return _function(lambda found: found.ess_quantile(probability), draws)


def mcse_mean(draws: npt.ArrayLike) -> Any:
    """The Monte Carlo standard error of the mean."""
    return _function(lambda found: found.mcse_mean, draws)


def mcse_sd(draws: npt.ArrayLike) -> Any:
    """The Monte Carlo standard error of the standard deviation."""
    return _function(lambda found: found.mcse_sd, draws)


def mcse_quantile(draws: npt.ArrayLike, probability: float) -> Any:
    """The Monte Carlo standard error of a quantile."""
    return _function(lambda found: found.mcse_quantile(probability), draws)


def mad(draws: npt.ArrayLike) -> Any:
    """The median absolute deviation from the median."""
    return _function(lambda found: found.mad, draws)


def bfmi(energy: npt.ArrayLike) -> Array:
    """The Bayesian fraction of missing information of each chain, from its energies (chains, draws).

    M. Betancourt, "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo", arXiv:1604.00695.
    """
    energies = np.asarray(energy, dtype=np.float64)
    if energies.shape[-1] < 2:
        return np.full(energies.shape[:-1], np.nan)
    with np.errstate(all="ignore"):
        return np.square(np.diff(energies, axis=-1)).mean(axis=-1) / energies.var(axis=-1, ddof=1)


# ---------------------------------------------------------------- the formulas


def split(draws: Array, like: Array | None = None) -> Array:
    """Each chain's halves as chains of their own; of an odd number of draws the middle one is left out.

    `like`: draws that were split, as (quantities, draws), to have that shape again.
    """
    count, chains, length = draws.shape
    half = length // 2
    if like is not None:
        return like.reshape(count, 2 * chains, half)
    if length % 2 == 0:
        return draws.reshape(count, 2 * chains, half)
    parts = np.stack([draws[..., :half], draws[..., length - half :]], axis=2)
    return parts.reshape(count, 2 * chains, half)


def _quantile(ordered: Array, probability: float) -> Array:
    """Of sorted rows. The interpolation is NumPy's, to the last bit: draws are compared with what it gives."""
    place = probability * (ordered.shape[1] - 1)
    below = int(place)
    weight = place - below
    low, high = ordered[:, below], ordered[:, min(below + 1, ordered.shape[1] - 1)]
    with np.errstate(invalid="ignore"):
        step = high - low
        return high - step * (1 - weight) if weight >= 0.5 else low + step * weight


def _median(ordered: Array) -> Array:
    size = ordered.shape[1]
    if size % 2:
        return ordered[:, size // 2].copy()
    with np.errstate(all="ignore"):
        return ordered[:, size // 2 - 1 : size // 2 + 1].mean(axis=1)


@lru_cache(maxsize=4)
def _normal_scores(count: int) -> Array:
    """Normal scores of the ranks 1, 1.5, 2, ... `count`; the halves are of ties."""
    ranks = np.arange(2, 2 * count + 1) / 2
    places = (ranks - BLOM) / (count - 2 * BLOM + 1)
    scores = np.empty_like(places)
    pointers = (places.ctypes.data_as(ctypes.c_void_p), scores.ctypes.data_as(ctypes.c_void_p))
    library().ulam_normal_quantiles(*pointers, places.size)
    scores.setflags(write=False)
    return scores


def _scores(ordered: Array, order: npt.NDArray[np.intp]) -> Array:
    """Normal scores of the ranks of rows that `order` sorts; those of ties are of their average rank."""
    count = ordered.shape[1]
    table = _normal_scores(count)
    scores = np.empty_like(ordered)
    np.put_along_axis(scores, order, table[None, ::2], axis=1)
    for row in np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1)):
        first = np.flatnonzero(np.concatenate([[True], ordered[row, 1:] != ordered[row, :-1]]))
        lengths = np.diff(first, append=count)
        scores[row, order[row]] = np.repeat(table[2 * first + lengths - 1], lengths)
    return scores


def _rhat(chains: Array) -> Array:
    """Potential scale reduction of (quantities, chains, draws): Vehtari et al., (1) to (4)."""
    length = chains.shape[2]
    between = length * chains.mean(axis=2).var(axis=1, ddof=1)
    within = chains.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt((between / within + length - 1) / length)


def _ess(chains: Array) -> Array:
    """The effective sample size of (quantities, chains, draws): Vehtari et al., (10) to (13).

    Autocorrelations are summed in pairs, until a sum is not positive: the initial monotone sequence of C. J. Geyer,
    "Practical Markov chain Monte Carlo", Statistical Science 7 (1992).
    """
    count, n_chains, length = chains.shape
    size = n_chains * length
    covariance = _mean_autocovariance(chains)
    variance = covariance[:, :1] * length / (length - 1)
    total = variance * (length - 1) / length + chains.mean(axis=2).var(axis=1, ddof=1)[:, None]
    correlation = 1 - (variance - covariance) / total
    correlation[:, 0] = 1
    last_pair = max((length - 3) // 2, 0)
    pairs = correlation[:, : 2 * last_pair + 2].reshape(count, -1, 2).sum(axis=2)
    stopped = ~(pairs > 0)
    end = np.where(stopped.any(axis=1), stopped.argmax(axis=1), last_pair)  # the pair that is not summed
    monotone = np.minimum.accumulate(pairs, axis=1).cumsum(axis=1)
    rows = np.arange(count)
    summed = np.where(end > 0, monotone[rows, end - 1], 0)
    even = correlation[rows, 2 * end]
    counted = (even > 0) | (pairs[rows, end] >= 0)
    tau = -1 + 2 * summed + np.where(counted, even, 0)
    found = size / np.maximum(tau, 1 / np.log10(size))  # no more than antithetic chains may have
    found[np.isnan(correlation[:, 1])] = np.nan
    return np.where(np.ptp(chains.reshape(count, -1), axis=1) < _NO_RANGE, size, found)


def _mean_autocovariance(chains: Array) -> Array:
    """The mean over the chains of their autocovariances at each lag, by Fourier transforms."""
    _, n_chains, length = chains.shape
    padded = _fast_length(2 * length)
    centred = chains - chains.mean(axis=2, keepdims=True)
    spectrum = np.fft.rfft(centred, n=padded, axis=2)
    power = (np.square(spectrum.real) + np.square(spectrum.imag)).mean(axis=1)
    return np.fft.irfft(power, n=padded, axis=1)[:, :length] / length


@lru_cache(maxsize=16)
def _fast_length(least: int) -> int:
    """The smallest product of powers of 2, 3 and 5 that is no smaller: transforms of that length are fast."""
    best = 1 << max(least - 1, 1).bit_length()
    fives = 1
    while fives < best:
        product = fives
        while product < best:
            power = -(-least // product)
            best = min(best, product * (1 << (power - 1).bit_length()))
            product *= 3
        fives *= 5
    return best
