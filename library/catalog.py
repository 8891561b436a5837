"""Finds the source text of library functions by name.

The files are scanned once, with one regular expression; only the functions that a program needs are ever parsed. For
that, a definition begins in the first column of a line and ends with a `}` in the first column, or on its first line.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

from ulam.library.records import record

_FOLDER = Path(__file__).parent
_DEFINITION = re.compile(
    r"^(?:array\[,*\] )?(?:int|real|(?:complex_)?(?:vector|row_vector|matrix)|complex|void|tuple\([^)\n]*\)) (\w+)"
    r"\([^{;]*\{(?:[^\n]*\}|.*?^\})$",
    re.MULTILINE | re.DOTALL,
)

_DECLARATION = re.compile(
    r"^(?:array\[,*\] )?(?:int|real|vector|row_vector|matrix|void) (\w+)\([^{};]*\);$", re.MULTILINE
)
"""A function that the compiler provides inside of a library function: see the head of ode.stan."""

KEPT_WITH = "kept_with"
"""`kept_with(x, a, b)` is x, as a summand of a density that `~` drops unless a or b is a parameter, where Stan keeps
other summands than those that depend on parameters."""


@record(frozen=True, slots=True)
class LibraryDefinition:
    """One definition of a function: one overload."""

    name: str
    file: str
    """File name inside the library's folder."""
    offset: int
    """Where `text` begins in the file, in characters."""
    text: str


@lru_cache(maxsize=1)
def _definitions_by_name() -> dict[str, list[LibraryDefinition]]:
    found: dict[str, list[LibraryDefinition]] = {}
    for path in sorted(_FOLDER.glob("*.stan")):
        text = path.read_text(encoding="utf-8")
        for pattern in (_DEFINITION, _DECLARATION):
            for match in pattern.finditer(text):
                definition = LibraryDefinition(match[1], path.name, match.start(), match[0])
                found.setdefault(definition.name, []).append(definition)
    return found


EXTENSIONS = "extensions.stan"
"""Functions that Stan does not have."""


@cache
def extensions() -> frozenset[str]:
    """Their names. Other functions of the library that Stan does not have are for the library itself."""
    text = file_text(EXTENSIONS)
    return frozenset(match[1] for pattern in (_DEFINITION, _DECLARATION) for match in pattern.finditer(text))


@cache
def file_text(file: str) -> str:
    """The whole text of a library file, for positions in messages."""
    return (_FOLDER / file).read_text(encoding="utf-8")


def definitions(name: str) -> list[LibraryDefinition]:
    """All definitions of the function `name` (as called in Stan: `normal_lpdf`, never `normal_lupdf`)."""
    return _definitions_by_name().get(name, [])


def names() -> list[str]:
    """The names of all functions defined in the library, sorted."""
    return sorted(_definitions_by_name())
