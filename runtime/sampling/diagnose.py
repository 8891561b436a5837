"""What is wrong with draws, in plain words, and what to do about it.

Limits: R-hat and effective sample sizes of Vehtari et al. (2021, see `draw_statistics`), E-BFMI of Betancourt (2016),
as CmdStan's `diagnose` has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ulam.runtime.names import bracket_name
from ulam.runtime.sampling.draw_statistics import LEAST_DRAWS, bfmi
from ulam.runtime.sampling.summary import SummaryTable

Array = npt.NDArray[Any]

LARGEST_RHAT = 1.01
LEAST_ESS_PER_CHAIN = 100
LEAST_BFMI = 0.3
SHOWN_NAMES = 5

CHECKED = "divergences, tree depth, E-BFMI, R-hat, effective sample sizes"


@dataclass(frozen=True)
class Problem:
    """`name` of the diagnostic, what was found, what to do. `elements` are the parameters concerned, worst first."""

    name: str
    found: str
    advice: str
    elements: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.found}\n  {self.advice}"


@dataclass(frozen=True)
class Diagnosis:
    """The problems of a fit; none if `ok`. As text: a paragraph for each. `checked` says what was looked at."""

    problems: tuple[Problem, ...]
    checked: str

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.problems)) if self.problems else f"No problems found: {self.checked}."

    def _repr_html_(self) -> str:
        from html import escape

        if not self.problems:
            return f"<p>{escape(str(self))}</p>"
        items = (f"<li>{escape(each.found)}<br>{escape(each.advice)}</li>" for each in self.problems)
        return f"<ul>{''.join(items)}</ul>"

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return {"ok": self.ok, "problems": [asdict(problem) for problem in self.problems]}


class DiagnosedDraws(Protocol):
    """What is known of draws: a `SampleFit`, or files."""

    @property
    def n_chains(self) -> int: ...
    @property
    def n_draws(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def is_fixed(self) -> bool: ...
    @property
    def values(self) -> Array: ...
    @property
    def stats(self) -> Mapping[str, Array]: ...
    @property
    def settings(self) -> DiagnosedSettings: ...

    def summary(self) -> SummaryTable: ...


class DiagnosedSettings(Protocol):
    """What is told of the sampler's settings."""

    @property
    def sampler(self) -> str: ...
    @property
    def max_depth(self) -> int: ...
    @property
    def target_accept(self) -> float: ...


def diagnose(fit: DiagnosedDraws) -> Diagnosis:
    """What `SampleFit.diagnose` returns."""
    if not fit.n_draws:
        empty = Problem(
            "draws", "There are no draws.", "Run with draws of at least 1, and keep=True to have them here."
        )
        return Diagnosis((empty,), "")
    return Diagnosis(
        tuple(_problems(fit, fit.summary())), "divergences, tree depth, E-BFMI, R-hat, effective sample sizes"
    )


def _problems(fit: DiagnosedDraws, table: SummaryTable) -> Iterator[Problem]:
    for check in (_divergences, _depth, _energy, _stuck):
        yield from check(fit)
    yield from _missing(fit, table)
    yield from _rhat(fit, table)
    yield from _sizes(fit, table)


def _divergences(fit: DiagnosedDraws) -> Iterator[Problem]:
    count = int(np.count_nonzero(fit.stats["divergent"])) if "divergent" in fit.stats else 0
    if count:
        target = fit.settings.target_accept
        higher = "0.95" if target < 0.95 else "0.99" if target < 0.99 else "a value nearer to 1"
        yield Problem(
            "divergences",
            f"{_share(count, fit)} ended with a divergence: the sampler could not follow the posterior there, and "
            "the estimates may be biased.",
            "Reparameterize (a hierarchical effect as its scale times a standard normal), give scales stronger "
            f"priors, or take smaller steps: target_accept={higher}. None may be ignored.",
        )


def _depth(fit: DiagnosedDraws) -> Iterator[Problem]:
    if fit.settings.sampler == "hmc" or "treedepth" not in fit.stats:
        return
    depth = fit.settings.max_depth
    count = int(np.count_nonzero(fit.stats["treedepth"] >= depth))
    if count:
        yield Problem(
            "treedepth",
            f"{_share(count, fit)} reached the largest tree depth, {depth}: they are right, but each took "
            f"{2**depth - 1} gradients and may not have gone far.",
            f"Bring parameters to a similar scale, or try metric='dense'; else raise max_depth to {depth + 2}.",
        )


def _energy(fit: DiagnosedDraws) -> Iterator[Problem]:
    if "energy" not in fit.stats:
        return
    found = bfmi(fit.stats["energy"])
    low = np.flatnonzero(found < LEAST_BFMI)
    if low.size:
        values = ", ".join(f"{found[k]:.2f} in chain {k + 1}" for k in low)
        yield Problem(
            "ebfmi",
            f"E-BFMI is below {LEAST_BFMI}: {values}. The chains move slowly between levels of the density, and the "
            "tails may not have been seen.",
            "Reparameterize, above all what has heavy tails; a longer warmup may help.",
        )


def _stuck(fit: DiagnosedDraws) -> Iterator[Problem]:
    if fit.is_fixed or fit.n_draws < LEAST_DRAWS:
        return
    still = [k + 1 for k, density in enumerate(fit.stats["lp"]) if density.min() == density.max()]
    if still:
        yield Problem(
            "stuck",
            f"{_counted(len(still), 'chain')} never moved: {', '.join(map(str, still))}.",
            "The step size is too large for where it began, or the density has a spike: try other initial values "
            "(init), a smaller step_size, a longer warmup.",
        )


def _missing(fit: DiagnosedDraws, table: SummaryTable) -> Iterator[Problem]:
    means = table.column("mean")[-len(fit.names) :] if fit.names else np.empty(0)  # NaN, if a draw is
    places = [k for k in np.flatnonzero(np.isnan(means)).tolist() if np.isnan(fit.values[..., k]).any()]
    names = [fit.names[k] for k in places]
    if names:
        rows = np.zeros((fit.n_chains, fit.n_draws), dtype=bool)
        for k in places:
            rows |= np.isnan(fit.values[..., k])
        yield Problem(
            "nan",
            f"{_share(int(np.count_nonzero(rows)), fit)} have values that are NaN: {_listed(names)}. There are no "
            "statistics of these.",
            "See the notes of the run for what the program rejected, or divide and take logarithms of what can be 0 "
            "with care.",
            tuple(names),
        )


def _rhat(fit: DiagnosedDraws, table: SummaryTable) -> Iterator[Problem]:
    if fit.n_chains < 2:
        yield Problem(
            "chains",
            "There is one chain: R-hat, which compares chains, cannot tell whether it has converged.",
            "Run at least two chains, better four.",
        )
        return
    found = table.column("r_hat")
    names = _worst(table, np.where(found > LARGEST_RHAT, -found, np.nan))
    if names:
        yield Problem(
            "rhat",
            f"R-hat is above {LARGEST_RHAT} for {_listed(names)}; the largest is {np.nanmax(found):.3g}. The chains do "
            "not agree: they have not converged, or there are several modes.",
            "Do not use the draws. Run longer (warmup and draws), look at the chains apart, check that the parameters "
            "are identified.",
            tuple(names),
        )


def _sizes(fit: DiagnosedDraws, table: SummaryTable) -> Iterator[Problem]:
    least = LEAST_ESS_PER_CHAIN * fit.n_chains
    for kind, used_for in (("bulk", "means and medians"), ("tail", "5% and 95% quantiles")):
        found = table.column(f"ess_{kind}")
        names = _worst(table, np.where(found < least, found, np.nan))
        if names:
            yield Problem(
                f"ess_{kind}",
                f"The effective sample size of the {kind} is below {least} ({LEAST_ESS_PER_CHAIN} for each chain) for "
                f"{_listed(names)}; the smallest is {np.nanmin(found):.0f}. It says how well {used_for} are known.",
                "Run more draws; if there are far too few, reparameterize.",
                tuple(names),
            )


def _worst(table: SummaryTable, badness: Any) -> list[str]:
    """The names of the rows with a number, the smallest first."""
    return [table.names[k] for k in np.argsort(badness, kind="stable") if not np.isnan(badness[k])]


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(bracket_name, names[:SHOWN_NAMES]))
    return shown if len(names) <= SHOWN_NAMES else f"{shown} and {len(names) - SHOWN_NAMES} more"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _share(count: int, fit: DiagnosedDraws) -> str:
    total = fit.n_chains * fit.n_draws
    return f"{count} of {_counted(total, 'draw')} ({100 * count / total:{'.2g' if count < 0.99 * total else '.3g'}}%)"
