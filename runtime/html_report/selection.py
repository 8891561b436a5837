"""What of a fit is drawn: quantities, chains, pairs. The rest is in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.runtime.names import bracket_name, output_positions
from ulam.runtime.sampling.diagnose import LARGEST_RHAT, LEAST_ESS_PER_CHAIN
from ulam.runtime.sampling.summary import LOG_DENSITY

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import ChainDraws, SampleFit

Array = npt.NDArray[np.float64]

WORST_DRAWN, FIRST_DRAWN, PAIRED, CHAINS_DRAWN = 7, 8, 4, 8
"""Quantities that mix worst, and the first ones beside them; parameters in pairs; chains."""

_SAME = 0.9995
"""Correlation of ranks from which two parameters are one to a picture."""
_COMPARED = 2000


@dataclass(frozen=True)
class Quantity:
    """An element of a variable, or the log density: its draws (chains, draws), and what the summary has of it."""

    name: str
    draws: Array = field(repr=False)
    statistics: dict[str, float] = field(default_factory=dict[str, float], repr=False)
    is_worst: bool = False

    @cached_property
    def ranks(self) -> Array:
        """Ranks of the draws of all chains, from 0 to 1; those of ties in the middle of theirs. NaN has none."""
        flat = self.draws.ravel()
        known = ~np.isnan(flat)
        values = flat[known]
        found = np.full(flat.shape, np.nan)
        if values.size:
            _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
            found[known] = ((np.cumsum(counts) - counts / 2) / values.size)[inverse.ravel()]
        return found.reshape(self.draws.shape)

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to see."""
        known = self.draws[np.isfinite(self.draws)]
        return known.size > 0 and float(known.min()) == float(known.max())


class Shown:
    """The quantities of a fit in the order in which they are drawn, those in pairs, and the numbers of the chains.

    `draws` are the fit's, or its warmup if it has nothing else.
    """

    def __init__(self, fit: SampleFit) -> None:
        self.fit = fit
        self.is_warmup = not fit.n_draws and fit.warmup is not None and fit.warmup.n_draws > 0
        self.draws: ChainDraws = fit.warmup if self.is_warmup and fit.warmup is not None else fit

    @cached_property
    def badness(self) -> Array:
        """For each element how badly its chains mix: 1 is at the limit of the diagnosis. NaN: nothing is known."""
        if not self.fit.n_draws:
            return np.full(len(self.fit.names), np.nan)
        table = self.fit.summary()
        with np.errstate(all="ignore"):
            sizes = np.fmin(table.column("ess_bulk"), table.column("ess_tail"))
            spread = np.square((table.column("r_hat") - 1) / (LARGEST_RHAT - 1))  # what is near 1 is noise
            found = np.fmax(spread, LEAST_ESS_PER_CHAIN * self.fit.n_chains / sizes)[1:]
        for k in np.flatnonzero(np.isnan(found)):
            if np.isnan(self.fit.values[..., k]).any():
                found[k] = np.inf
        constant = table.column("sd")[1:] == 0
        return np.where(constant & np.isfinite(found), np.nan, found)

    @cached_property
    def worst(self) -> list[int]:
        """Elements, the worst first; those of which nothing is known are left out."""
        known = np.flatnonzero(~np.isnan(self.badness))
        return known[np.argsort(-self.badness[known], kind="stable")].tolist()

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The log density, the worst elements and the first ones."""
        if not self.draws.n_draws:
            return []
        worst = self.worst[:WORST_DRAWN]
        first = [k for k in range(len(self.draws.names)) if k not in worst][: WORST_DRAWN + FIRST_DRAWN - len(worst)]
        if len(self.draws.names) <= WORST_DRAWN + FIRST_DRAWN:  # all of them: as the program has them
            first = list(range(len(self.draws.names)))
            return [self._log_density(), *(self.quantity(k) for k in first)]
        return [self._log_density(), *(self.quantity(k, True) for k in worst), *map(self.quantity, first)]

    def _log_density(self) -> Quantity:
        statistics = {} if self.is_warmup else self.fit.summary()[LOG_DENSITY]
        return Quantity(LOG_DENSITY, np.asarray(self.draws.stats["lp"], dtype=np.float64), statistics)

    def quantity(self, element: int, is_worst: bool = False) -> Quantity:
        """An element of a variable."""
        name = bracket_name(self.draws.names[element])
        statistics = {} if self.is_warmup else self.fit.summary()[name]
        return Quantity(name, self.draws.values[..., element].astype(np.float64), statistics, is_worst)

    @cached_property
    def pairs(self) -> list[tuple[Quantity, Quantity]]:
        """Each of the parameters that mix worst with each other one; of one alone, with the log density."""
        if self.is_warmup or not self.fit.n_draws or self.fit.is_fixed:
            return []
        chosen: list[Quantity] = []
        parameters = self._parameters()
        for element in (k for k in self.worst if k in parameters):
            quantity = self.quantity(element)
            if not quantity.is_constant and not any(_are_alike(quantity, other) for other in chosen):
                chosen.append(quantity)
            if len(chosen) == PAIRED:
                break
        if len(chosen) == 1:
            chosen.append(self._log_density())
        return [(one, other) for k, other in enumerate(chosen) for one in chosen[:k]]

    def _parameters(self) -> set[int]:
        """The elements of parameters; of all variables, where it is not known which these are."""
        variables = self.fit.about.variables
        positions = output_positions(variables)
        chosen = [positions[variable.name] for variable in variables if variable.block in ("parameters", "")]
        return {int(k) for places in chosen for k in places.flat}

    @cached_property
    def chains(self) -> list[int]:
        """The chains that are drawn: of many those whose ranks are farthest from the middle."""
        count = self.draws.n_chains
        if count <= CHAINS_DRAWN:
            return list(range(count))
        distance = np.zeros(count)
        for quantity in self.quantities:
            known = np.isfinite(quantity.ranks)
            means = np.where(known, quantity.ranks, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
            distance = np.maximum(distance, np.abs(means - 0.5))
        return sorted(np.argsort(-distance, kind="stable")[:CHAINS_DRAWN].tolist())

    @cached_property
    def divergent(self) -> npt.NDArray[np.bool_]:
        """Which draws ended with a divergence."""
        found = self.draws.stats.get("divergent")
        shape = (self.draws.n_chains, self.draws.n_draws)
        return np.zeros(shape, dtype=bool) if found is None else np.asarray(found) != 0

    def listed(self, limit: int | None) -> Iterator[int]:
        """Rows of the summary that are shown, the log density first: all, or the worst and the first ones."""
        count = len(self.fit.names) + 1
        if limit is None or count <= limit:
            yield from range(count)
            return
        worst = {k + 1 for k in self.worst[: limit // 2]}
        yield from sorted(worst | set([k for k in range(count) if k not in worst][: limit - len(worst)]))


def _are_alike(one: Quantity, other: Quantity) -> bool:
    """Whether a pair of them would be a line."""
    step = max(1, one.ranks.size // _COMPARED)
    first, second = one.ranks.ravel()[::step], other.ranks.ravel()[::step]
    known = np.isfinite(first) & np.isfinite(second)
    if np.count_nonzero(known) < 3:
        return False
    first, second = first[known] - first[known].mean(), second[known] - second[known].mean()
    size = float(np.sqrt(np.square(first).sum() * np.square(second).sum()))
    return size > 0 and abs(float((first * second).sum())) > _SAME * size
