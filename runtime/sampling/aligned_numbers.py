"""Numbers of a summary as pages show them: no more digits than have a sense, points below each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.names import bracket_name

if TYPE_CHECKING:
    from ulam.runtime.sampling.summary import SummaryTable

_PLAIN = re.compile(r"-?\d+(\.\d+)?$")
_DIGIT_SPACE, _POINT_SPACE = "\u2007", "\u2008"


def aligned_rows(table: SummaryTable) -> list[list[str]]:
    """The rows as text: each with the digits that its standard deviation gives sense to, points below each other."""
    _, plain = table.rows()
    spreads = table.column("sd").tolist() if "sd" in table.columns else [np.nan] * len(table)
    columns = [[bracket_name(name) for name in table.names]]
    for k, column in enumerate(table.columns):
        own = [row[k + 1] for row in plain]
        if column != "r_hat" and not column.startswith("ess"):
            own = [
                text if (digits := _decimals(sd)) is None or abs(value) >= 1e7 or not np.isfinite(value)
                else f"{value:.{digits + column.startswith('mcse')}f}"
                for text, value, sd in zip(own, table.table[:, k].tolist(), spreads, strict=True)
            ]  # fmt: skip
        columns.append(_padded(own))
    return list(map(list, zip(*columns, strict=True)))


def _decimals(spread: float) -> int | None:
    """Digits behind the point that show the spread by three; None where such numbers would be too long."""
    if not np.isfinite(spread) or spread <= 0:
        return None
    digits = 2 - int(np.floor(np.log10(spread)))
    return None if digits > 6 else max(digits, 0)


def _padded(cells: list[str]) -> list[str]:
    """Numbers with spaces behind them that are as wide as digits, so that the points are in one line."""
    rests = [len(cell.partition(".")[2]) if _PLAIN.match(cell) else 0 for cell in cells]
    most = max(rests, default=0)
    return [
        cell if not most or not _PLAIN.match(cell)
        else cell + ("" if rest else _POINT_SPACE) + _DIGIT_SPACE * (most - rest)
        for cell, rest in zip(cells, rests, strict=True)
    ]  # fmt: skip
