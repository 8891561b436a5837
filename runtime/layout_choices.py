"""Which layouts the data of a model's statements have got: noted when data are bound, read here.

    for choice in model.layout_choices(): print(choice)

    model.stan:14:3: sorted segments: taken (rows 12573, segments 386, bytes 150876)
    model.stan:20:3: unique rows: not taken: too few rows repeat (rows 500)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ulam.library.records import record

if TYPE_CHECKING:
    from ulam.runtime.native import BoundData


@record(frozen=True)
class LayoutChoice:
    """What became of one layout of a statement."""

    layout: str
    """As `unique rows`."""
    taken: bool
    reason: str
    """What prevented it; "" if it was taken."""
    figures: dict[str, int]
    """Of the data: `rows`, ...; `bytes` is the memory that it takes as long as the data are bound."""
    file: str
    line: int
    column: int

    @property
    def place(self) -> tuple[str, int, int]:
        """That of the statement."""
        return (self.file, self.line, self.column)

    @property
    def message(self) -> str:
        """What is to be said of it, one clause."""
        figures = ", ".join(f"{name} {value}" for name, value in self.figures.items())
        verdict = "taken" if self.taken else f"not taken: {self.reason}"
        return f"{self.layout}: {verdict}" + (f" ({figures})" if figures else "")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """As values that JSON has."""
        return {
            "file": self.file, "line": self.line, "column": self.column, "layout": self.layout, "taken": self.taken,
            "reason": self.reason, "figures": self.figures,
        }  # fmt: skip


def read_choices(noted: Iterable[Mapping[str, Any]], data: BoundData) -> list[LayoutChoice]:
    """The choices that stand in a table of bound data; `noted` is what a unit knows of them.

    Of a statement that has several loops, of which one runs, nothing is told of those that have no rows.
    """
    choices = [_read_choice(entry, data) for entry in noted]
    with_rows = {choice.place for choice in choices if choice.figures.get("rows")}
    return [choice for choice in choices if choice.figures.get("rows") or choice.place not in with_rows]


def _read_choice(entry: Mapping[str, Any], data: BoundData) -> LayoutChoice:
    outcome, *figures = (data.get_pointer(entry["slot"] + k) for k in range(1 + len(entry["figures"])))
    reason = entry["reasons"][outcome - 1] if outcome else ""
    values = dict(zip(entry["figures"], figures, strict=True))
    return LayoutChoice(entry["layout"], not outcome, reason, values, entry["file"], entry["line"], entry["column"])
