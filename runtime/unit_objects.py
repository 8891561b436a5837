"""Units as object code, with what the runtime must know of them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ulam.library.records import record


@record
class PieceObject:
    """Object code of a piece of a large program (`passes.pieces`): its gradient unit.

    `data` are the names of the bound variables that its table begins with, `reads` says which of the program's values
    are its parameters, `key` is what it is found by in the cache.
    """

    code: bytes
    n_slots: int
    data: list[str]
    reads: list[int]
    layouts: list[dict[str, Any]]
    key: str = ""


@record
class UnitObject:
    """A unit: object code, site table, number of slots of its table of bound data, whether it draws random numbers,
    what is noted of layouts when data are bound (`unit_modules.noted_layouts`), the pieces that it calls.
    """

    code: bytes
    sites: list[dict[str, Any]]
    n_slots: int
    draws: bool
    layouts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    pieces: list[PieceObject] = field(default_factory=list["PieceObject"])
