"""Places of ops in the user's program, and whether they belong to the reverse sweep.

A place is a `FileLineColLoc`. What reverse mode writes for the adjoints of an op has the place of that op, marked:
`fused<"reverse">["model.stan":3:5]` in MLIR's notation.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, IntAttr, LocationAttr, StringAttr

_REVERSE = StringAttr("reverse")


def place(file: StringAttr, line: IntAttr, column: IntAttr) -> FileLineColLoc:
    """A place of the program.

    As `FileLineColLoc(file, line, column)`, which takes ten times as long to look at what cannot but fit: there is one
    for each op of the program.
    """
    made = FileLineColLoc.__new__(FileLineColLoc)
    vars(made).update(filename=file, line=line, column=column)
    return made


def in_reverse(location: LocationAttr | None) -> LocationAttr | None:
    """The place, marked as that of the reverse sweep."""
    return _marked(location) if isinstance(location, FileLineColLoc) else location


@lru_cache(maxsize=4096)
def _marked(location: FileLineColLoc) -> FusedLoc:
    return FusedLoc((location,), _REVERSE)


def is_reverse(location: object) -> bool:
    """Whether a place is marked as that of the reverse sweep."""
    return isinstance(location, FusedLoc) and location.metadata is _REVERSE


def place_of(location: object) -> FileLineColLoc | None:
    """File, line and column; None if they are not known."""
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr) and location.locations.data:
        location = location.locations.data[0]
    return location if isinstance(location, FileLineColLoc) else None
