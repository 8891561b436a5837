"""The table of a fit: for each element of a variable its mean, spread, quantiles, and how well they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import numpy.typing as npt

from ulam.runtime.names import bracket_name
from ulam.runtime.results import SHOWN_ROWS, Row, html_table, number_text, plain_table, print_table, shortened
from ulam.runtime.sampling.draw_statistics import Columns

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import ChainDraws

Array = npt.NDArray[np.float64]

LOG_DENSITY = "lp__"
"""The first row: the log density, as CmdStan calls it."""

QUANTILES = (0.05, 0.5, 0.95)

SPARE = ("mad", "50%", "ess_tail", "mcse")
"""Columns that narrow terminals do not show, the first ones first."""

_BLOCK = 1 << 20
"""Numbers that are worked on at a time, at least those of one column."""


class SummaryTable(Mapping[str, dict[str, float]]):
    """Statistics by the name of an element: `table["theta[2]"]["mean"]`; `theta.2` is the same.

    `names` and `columns` are those of `table`, an array with a row for each element. `column("r_hat")` is one column.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[str], table: Array) -> None:
        self.names, self.columns, self.table = list(names), list(columns), table
        self._rows = {bracket_name(name): k for k, name in enumerate(self.names)}

    def __getitem__(self, name: str) -> dict[str, float]:
        row = self._rows.get(bracket_name(name))
        if row is None:
            raise KeyError(f"{name!r}; the table has {_some(list(self._rows))}")
        return dict(zip(self.columns, map(float, self.table[row]), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self.names)

    def column(self, name: str) -> Array:
        """One statistic of all elements."""
        if name not in self.columns:
            raise KeyError(f"{name!r}; the columns are {', '.join(self.columns)}")
        return self.table[:, self.columns.index(name)]

    def rows(self, limit: int | None = None) -> tuple[Row, list[Row]]:
        """Header and rows as text; at most so many."""
        count = len(self.names) if limit is None else min(limit + 1, len(self.names))
        rows: list[Row] = [
            (bracket_name(name), *(_cell(column, value) for column, value in zip(self.columns, row, strict=True)))
            for name, row in zip(self.names[:count], self.table[:count].tolist(), strict=True)
        ]
        if limit is not None and len(self.names) > limit:
            rows += [rows[-1]] * (len(self.names) - count)  # what is not shown is counted only
        return ("parameter", *self.columns), shortened(rows, limit)

    def print(self, limit: int | None = SHOWN_ROWS, file: TextIO | None = None) -> None:
        """The table, by rich on a terminal; on a narrow one without some of the columns."""
        spare = [self.columns.index(name) + 1 for name in SPARE if name in self.columns]
        print_table(*self.rows(limit), file, spare=spare)

    def __str__(self) -> str:
        return plain_table(*self.rows(SHOWN_ROWS))

    def __repr__(self) -> str:
        return f"SummaryTable({len(self.names)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        from ulam.runtime.sampling.aligned_numbers import aligned_rows

        shown = SummaryTable(self.names[:SHOWN_ROWS], self.columns, self.table[:SHOWN_ROWS])
        header, rows = self.rows(SHOWN_ROWS)
        return html_table(header, [*aligned_rows(shown), *rows[SHOWN_ROWS:]])

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The same as dictionaries, by CmdStan's names."""
        return {name: self[name] for name in self.names}

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each element. Raises ImportError if there is no pandas."""
        import pandas  # pyright: ignore[reportMissingImports]

        return pandas.DataFrame(self.table, index=list(self._rows), columns=self.columns)


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 10 else f"{', '.join(names[:10])} and {len(names) - 10} more"


def _cell(column: str, value: float) -> str:
    if column.startswith("ess") and np.isfinite(value):
        return f"{value:.0f}"
    if column.startswith("mcse"):
        return number_text(value, 2)
    return f"{value:.3f}" if column == "r_hat" and value < 100 else number_text(value, 4)


def quantile_name(probability: float) -> str:
    """`5%`, `97.5%`."""
    return f"{100 * probability:.10g}%"


def statistic_names(quantiles: Sequence[float]) -> tuple[str, ...]:
    """The columns of `statistics`, without the errors of quantiles."""
    return ("mean", "mcse", "sd", "mad", *map(quantile_name, quantiles), "ess_bulk", "ess_tail", "r_hat")


def summarize(
    fit: ChainDraws, variables: Sequence[str] | None, quantiles: Sequence[float], errors: bool
) -> SummaryTable:
    """What `SampleFit.summary` returns."""
    wrong = [probability for probability in quantiles if not 0 <= probability <= 1]
    if wrong:
        raise ValueError(f"quantiles must be probabilities from 0 to 1, found {wrong[0]!r}")
    header = list(statistic_names(quantiles))
    if errors:
        header += ["mcse_sd", *(f"mcse_{quantile_name(probability)}" for probability in quantiles)]
    places, names = fit.places(variables)
    parts = [
        statistics(np.stack([fit.values[..., k] for k in block]), quantiles, errors)
        for block in _blocks(places, fit.n_chains * fit.n_draws)
    ]
    if variables is None:
        parts.insert(0, statistics(fit.stats["lp"][np.newaxis], quantiles, errors))
        names = [LOG_DENSITY, *names]
    return SummaryTable(names, header, np.concatenate(parts) if parts else np.empty((0, len(header))))


def _blocks(places: Sequence[int], draws: int) -> Iterator[Sequence[int]]:
    count = max(1, _BLOCK // max(draws, 1))
    return (places[k : k + count] for k in range(0, len(places), count))


def statistics(draws: Array, quantiles: Sequence[float], errors: bool = False) -> Array:
    """Rows of the table, of (elements, chains, draws)."""
    found = Columns(draws)
    columns = [found.mean, found.mcse_mean, found.sd, found.mad, *map(found.quantile, quantiles)]
    columns += [found.ess_bulk, found.ess_tail, found.rhat]
    if errors:
        columns += [found.mcse_sd, *map(found.mcse_quantile, quantiles)]
    return np.stack(columns, axis=1)
