"""Places of a program where errors may happen, as a unit lists them."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc, LocationAttr

from ulam.library.records import record


@record
class CheckSite:
    """Where and how a run-time error may happen; `message` has `{0}`, `{1}`... for the values of the check."""

    status: int
    message: str
    file: str
    line: int
    column: int

    @property
    def place(self) -> tuple[str, int, int]:
        return self.file, self.line, self.column


def place_told(location: LocationAttr | None) -> tuple[str, int, int]:
    """File, line and column of a location, as a site has them."""
    if isinstance(location, FileLineColLoc):
        return location.filename.data, location.line.data, location.column.data
    return "", 0, 0
