"""Whether a fit can be trusted, in one sentence, and what to do first; and what each check found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.names import bracket_name
from ulam.runtime.results import number_text
from ulam.runtime.sampling.diagnose import LARGEST_RHAT, LEAST_BFMI, LEAST_ESS_PER_CHAIN, Problem
from ulam.runtime.sampling.draw_statistics import bfmi

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import SampleFit

GOOD, CARE, BAD, NONE = "good", "care", "bad", "none"
"""How much a fit, or a check of it, can be relied on. `NONE`: nothing can be said."""

TONES = {GOOD: "#2e8b57", CARE: "#b8860b", BAD: "#d1434b", NONE: "#7d8896"}
"""Their colours on pages of others, which may be light or dark."""

UNKNOWN = "unknown"

_WEIGHTS: dict[str, tuple[str, str]] = {
    "draws": (NONE, "there are no draws"),
    "stuck": (BAD, "a chain never moved"),
    "rhat": (BAD, "the chains do not agree"),
    "divergences": (BAD, "some trajectories diverged, so that a part of the posterior may be missing"),
    "nan": (CARE, "some values are no numbers"),
    "ebfmi": (CARE, "the chains move slowly between levels of energy, and may have missed the tails"),
    "ess_bulk": (CARE, "there are too few effective draws for stable means"),
    "ess_tail": (CARE, "there are too few effective draws for stable intervals"),
    "chains": (CARE, "one chain cannot tell whether it has converged"),
    "treedepth": (CARE, "trajectories were cut short, which costs time"),
}
"""How much each problem weighs, the gravest first, and what it is in a few words."""

_CAUSES = ("draws", "stuck", "divergences", "ebfmi", "treedepth")
"""Problems that others come of: they are mended first."""


@dataclass(frozen=True)
class Verdict:
    """The headline: one sentence, and what to do first (empty if nothing need be done)."""

    level: str
    sentence: str
    first: str = ""


def verdict(fit: SampleFit) -> Verdict:
    """What is to be thought of a fit."""
    problems = sorted(fit.diagnose().problems, key=_gravity)
    if not problems:
        return Verdict(GOOD, "The draws can be trusted, as far as diagnostics can tell: every check passed.")
    worst = problems[0]
    level, words = _WEIGHTS.get(worst.name, (CARE, "a check failed"))
    more = len(problems) - 1
    besides = "" if not more else f" {more} more check{'s' if more > 1 else ''} failed."
    if level == NONE:
        saved = fit.warmup is not None and fit.warmup.n_draws > 0
        said = "There are no draws to judge" + (", only those of the warmup." if saved else ".")
        return Verdict(level, said, worst.advice)
    first = next((problem for name in _CAUSES for problem in problems if problem.name == name), worst)
    opening = "Do not trust these draws yet" if level == BAD else "Use these draws with care"
    return Verdict(level, f"{opening}: {words}.{besides}", first.advice)


def level_of(problem: Problem) -> str:
    """How grave a problem is."""
    return _WEIGHTS.get(problem.name, (CARE, ""))[0]


def _gravity(problem: Problem) -> int:
    names = list(_WEIGHTS)
    return names.index(problem.name) if problem.name in names else len(names)


# ---------------------------------------------------------------- what was checked


@dataclass(frozen=True)
class CheckRow:
    """A check: what was looked at, the value and where it was found, what it should be."""

    level: str
    title: str
    value: str
    where: str
    wanted: str


def checks(fit: SampleFit) -> Iterator[CheckRow]:
    """All checks, the passed ones, too."""
    failed = {problem.name: level_of(problem) for problem in fit.diagnose().problems}
    if not fit.n_draws:
        return
    if "divergent" in fit.stats:
        count = int(np.count_nonzero(fit.stats["divergent"]))
        total = f"of {fit.n_chains * fit.n_draws:,} draws"
        yield CheckRow(failed.get("divergences", GOOD), "Divergences", f"{count:,}", total, "none")
    if "treedepth" in fit.stats and fit.settings.sampler != "hmc":
        most = fit.settings.max_depth
        depth = number_text(float(np.nanmax(np.asarray(fit.stats["treedepth"]))), 3)
        yield CheckRow(failed.get("treedepth", GOOD), "Deepest tree", depth, f"limit {most}", f"below {most}")
    if "energy" in fit.stats:
        found = bfmi(fit.stats["energy"])
        known = bool(np.isfinite(found).any())
        least = int(np.nanargmin(found)) if known else 0
        yield CheckRow(
            failed.get("ebfmi", GOOD) if known else NONE, "Least E-BFMI", f"{found[least]:.2f}" if known else UNKNOWN,
            f"chain {least + 1}" if known else "", f"from {LEAST_BFMI}",
        )  # fmt: skip
    yield _extreme(fit, failed, "rhat", "Largest R-hat", "r_hat", f"up to {LARGEST_RHAT}")
    least = f"from {LEAST_ESS_PER_CHAIN * fit.n_chains}"
    for kind in ("bulk", "tail"):
        yield _extreme(fit, failed, f"ess_{kind}", f"Least {kind} ESS", f"ess_{kind}", least)


def _extreme(fit: SampleFit, failed: dict[str, str], name: str, title: str, column: str, wanted: str) -> CheckRow:
    """The worst value of a statistic, and of which quantity it is."""
    table, is_ratio = fit.summary(), column == "r_hat"
    found = table.column(column)
    if np.isnan(found).all():
        return CheckRow(NONE, title, UNKNOWN, "", wanted)
    place = int(np.nanargmax(found) if is_ratio else np.nanargmin(found))
    value = f"{found[place]:,.0f}" if not is_ratio else f"{found[place]:.3f}" if found[place] < 100 else "above 100"
    return CheckRow(failed.get(name, GOOD), title, value, bracket_name(table.names[place]), wanted)
