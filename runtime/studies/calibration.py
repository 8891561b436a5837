"""`CalibrationResult`: whether the ranks of a simulation-based calibration are uniform, as words, tables and a plot."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import UlamError
from ulam.runtime.names import bracket_name
from ulam.runtime.results import SCHEMA_VERSION, Row, html_table, json_text, number_text, plain_table
from ulam.runtime.studies.study import Study
from ulam.runtime.studies.uniform_ranks import band, counts_below, outside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Ranks = npt.NDArray[np.int64]

SHIFTED = 2.5
"""Standard errors: how far a mean, or a variance, of ranks is off before words are said about it."""
PLOT_COLUMNS = 4
HEADER = ("quantity", "mean rank", "ECDF", "found")


@dataclass
class CalibrationResult:
    """The ranks of each quantity, from 0 to `levels` - 1, an array over the simulations whose fit there is.

    `study` has the fits, and what was wrong with those that failed. `risk` is the probability that quantities of a
    right program leave their bands anywhere.
    """

    ranks: dict[str, Ranks]
    levels: int
    risk: float
    study: Study = field(repr=False)

    @staticmethod
    def of(study: Study, risk: float, ties: np.random.Generator) -> CalibrationResult:
        """Of the counts that a study has kept. Draws equal to a value are below it or not by chance."""
        counts: dict[str, list[Any]] = {}
        for record in study:
            for name in record.names:
                counts.setdefault(name, []).append(record[name])
        if not counts:
            study.raise_errors()
            raise UlamError("the study ended before its first fit")
        levels = 1 + int(max(table[0][2] for table in counts.values()))
        tables = {name: np.array(rows) for name, rows in counts.items()}
        ranks = {name: table[:, 0] + ties.integers(0, table[:, 1] + 1) for name, table in tables.items()}
        return CalibrationResult(ranks, levels, risk, study)

    @property
    def names(self) -> list[str]:
        """The quantities, `theta.2` for `theta[2]`."""
        return list(self.ranks)

    @property
    def risk_each(self) -> float:
        """Of one of the quantities."""
        return self.risk / len(self.ranks)

    def outside(self, name: str) -> float:
        """How far the ECDF of a quantity's ranks leaves its band, as a share of all; 0 within."""
        return outside(self.ranks[name], self.levels, self.risk_each)

    def found(self, name: str) -> str:
        """What is wrong with the draws of a quantity, in words; empty if nothing is."""
        if not self.outside(name):
            return ""
        share = (self.ranks[name] + 0.5) / self.levels
        count = share.size
        shift = (float(share.mean()) - 0.5) * (12 * count) ** 0.5
        spread = (float(((share - 0.5) ** 2).mean()) - 1 / 12) * (180 * count) ** 0.5
        if abs(shift) > SHIFTED:  # which makes ranks vary less, too
            return "draws are too small" if shift > 0 else "draws are too large"
        if abs(spread) > SHIFTED:
            return "draws vary too little" if spread > 0 else "draws vary too much"
        return "ranks are not uniform"

    @property
    def problems(self) -> dict[str, str]:
        """The quantities whose ranks are not uniform, with what was found."""
        return {name: text for name in self.ranks if (text := self.found(name))}

    @property
    def ok(self) -> bool:
        """Whether all ranks stay in their bands."""
        return not self.problems

    # ------------------------------------------------------------ output

    def table(self) -> tuple[Row, list[Row]]:
        """Header and rows: quantity, mean rank as a share, whether the ECDF is in its band, what was found."""
        rows: list[Row] = []
        for name, ranks in self.ranks.items():
            excess = self.outside(name)
            mean = number_text(float((ranks + 0.5).mean()) / self.levels, 3)
            rows.append(
                (bracket_name(name), mean, f"outside by {excess:.3f}" if excess else "within", self.found(name))
            )
        return HEADER, rows

    def _lines(self) -> list[str]:
        count = len(next(iter(self.ranks.values())))
        lines = [
            f"{count} simulations, ranks from 0 to {self.levels - 1}",
            f"{len(self.problems)} of {len(self.ranks)} quantities leave their band; a right program has one that does "
            f"with a probability of {self.risk:g}",
        ]
        failed, missing = len(self.study.errors), len(self.study.missing)
        if failed:
            first = min(self.study.errors)
            lines.append(f"{failed} simulations failed, the first, {first}, for: {self.study.errors[first]}")
        if missing:
            lines.append(f"{missing} simulations were not done: {self.study.ended}")
        return lines

    def __str__(self) -> str:
        header, rows = self.table()
        return "\n".join([plain_table(header, rows, (0, 2, 3)), "", *self._lines()])

    def _repr_html_(self) -> str:
        from html import escape

        header, rows = self.table()
        return html_table(header, rows) + "".join(f"<p>{escape(line)}</p>" for line in self._lines())

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values: `quantities` has mean rank, excess, words and ranks of each."""
        quantities: Mapping[str, Any] = {
            bracket_name(name): {
                "mean_rank": float((ranks + 0.5).mean()) / self.levels,
                "outside": self.outside(name),
                "found": self.found(name),
                "ranks": ranks.tolist(),
            }
            for name, ranks in self.ranks.items()
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "levels": self.levels,
            "risk": self.risk,
            "simulations": len(self.study),
            "failed": {str(index): error for index, error in self.study.errors.items()},
            "quantities": quantities,
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, written to `path` if that is given."""
        return json_text(self.to_dict(), path)

    # ------------------------------------------------------------ the plot

    def ecdf_difference(self, name: str) -> tuple[Any, Any, Any, Any]:
        """Points, and at each the ECDF of the ranks minus that of uniform ones, and the lower and upper limit of it."""
        ranks = self.ranks[name]
        points, lower, upper = band(len(ranks), self.levels, self.risk_each)
        below = counts_below(ranks, self.levels, points)
        return points, below / len(ranks) - points, lower / len(ranks) - points, upper / len(ranks) - points

    def plot(self, path: str | os.PathLike[str] | None = None, names: Sequence[str] | None = None) -> Figure:
        """For each quantity the difference of the ECDF and that of uniform ranks, in its band; written to `path` if
        that is given. Needs matplotlib: `pip install 'ulam[plots]'`.
        """
        from matplotlib.figure import Figure

        chosen = self.names if names is None else [_known(name, self.ranks) for name in names]
        columns = min(PLOT_COLUMNS, len(chosen))
        rows = -(-len(chosen) // columns)
        figure = Figure(figsize=(3.2 * columns, 2.4 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, name in zip(axes, chosen, strict=False):
            points, difference, lower, upper = self.ecdf_difference(name)
            is_outside = self.outside(name) > 0
            ax.fill_between(points, lower, upper, color="0.88", linewidth=0)
            ax.axhline(0, color="0.6", linewidth=0.8)
            ax.step(points, difference, where="post", color="C3" if is_outside else "C0", linewidth=1.2)
            ax.set_title(bracket_name(name) + (" (outside)" if is_outside else ""), fontsize=10)
            ax.tick_params(labelsize=8)
        for ax in axes[len(chosen) :]:
            ax.set_axis_off()
        figure.supxlabel("rank, as a share", fontsize=9)
        figure.supylabel("ECDF - uniform", fontsize=9)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def _known(name: str, ranks: Mapping[str, Any]) -> str:
    found = next((each for each in ranks if name in (each, bracket_name(each))), None)
    if found is None:
        raise KeyError(f"{name!r}; there are {', '.join(ranks)}")
    return found
