"""Finds the source text of library functions by name.

The files are scanned once for the heads of functions; only the functions that a program needs are ever taken out and
parsed. For that, a definition begins in the first column of a line and ends with a `}` in the first column, or on its
first line, and nothing else begins like one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from ulam.library import own_libraries
from ulam.library.definition_heads import heads
from ulam.library.extension_points import ExtensionError
from ulam.library.records import record

_FOLDER = Path(__file__).parent
_DEFINITION = re.compile(r"[^{;]*\{(?:[^\n]*\}|.*?^\})$", re.MULTILINE | re.DOTALL)
_DECLARATION = re.compile(r"[^{};]*\);$", re.MULTILINE)
"""A function that the compiler provides inside of a library function: see the head of ode.stan."""

KEPT_WITH = "kept_with"
"""`kept_with(x, a, b)` is x, as a summand of a density that `~` drops unless a or b is a parameter, where Stan keeps
other summands than those that depend on parameters."""


@record(frozen=True, slots=True)
class LibraryDefinition:
    """One definition of a function: one overload."""

    name: str
    file: str
    """File name inside the library's folder; a path if it is another library's."""
    offset: int
    """Where `text` begins in the file, in characters."""
    text: str


@lru_cache(maxsize=1)
def _places_by_name() -> dict[str, list[tuple[str, int]]]:
    """Name → the files that define it, and where in them."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(_FOLDER.glob("*.stan")):
        for name, offset in heads(file_text(path.name)):
            found.setdefault(name, []).append((path.name, offset))
    return found


def _places(name: str) -> Sequence[tuple[str, int]]:
    if name in _places_by_name():
        return _places_by_name()[name]
    others = own_libraries.found()
    own = None if others is None else others.functions.get(name)
    return () if own is None else own.places


def is_of_others(name: str) -> bool:
    """Whether a library of another package, of those that were read, has a function of this name."""
    others = own_libraries.found()
    return others is not None and name in others.functions


EXTENSIONS = "extensions.stan"
"""Functions that Stan does not have."""


@cache
def extensions() -> frozenset[str]:
    """Their names. Other functions of the library that Stan does not have are for the library itself."""
    return frozenset(name for name, _ in heads(file_text(EXTENSIONS)))


@cache
def file_text(file: str) -> str:
    """The whole text of a library file, for positions in messages. Files of others have whole paths."""
    return (_FOLDER / file).read_text(encoding="utf-8")


@cache
def definitions(name: str) -> tuple[LibraryDefinition, ...]:
    """All definitions of the function `name` (as called in Stan: `normal_lpdf`, never `normal_lupdf`)."""
    found: list[LibraryDefinition] = []
    for file, offset in _places(name):
        text = file_text(file)
        match = _DEFINITION.match(text, offset) or _DECLARATION.match(text, offset)
        if match is None:
            raise ExtensionError(f"{file}: the definition of '{name}' does not end with a '}}' in the first column")
        found.append(LibraryDefinition(name, file, offset, match[0]))
    return tuple(found)


def names() -> list[str]:
    """The names of all functions defined in the library, sorted."""
    return sorted(_places_by_name())
