"""Reads `derivatives.txt`, the table of derivatives. Rows are parsed when they are first asked for."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from ulam.library.records import record
from ulam.library.terms import Term, read_terms


@record(frozen=True, slots=True)
class Rule:
    """The derivative of a primitive: a partial for each argument."""

    arguments: tuple[str, ...]
    partials: tuple[Term, ...]


_OPS = "arith."
"""So the names of rows begin that are of ops, not of primitives."""


@lru_cache(maxsize=1)
def _rows() -> dict[str, tuple[str, str]]:
    """Primitive → (its arguments, its partials), as text."""
    rows: dict[str, tuple[str, str]] = {}
    text = (Path(__file__).parent / "derivatives.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        row = line.partition("#")[0].strip()
        if not row:
            continue
        head, _, partials = row.partition(":")
        name, _, arguments = head.partition("(")
        rows[name.strip()] = (arguments.rstrip(") "), partials)
    return rows


def has_primitive(name: str) -> bool:
    """Whether `name` is a scalar primitive."""
    return name in _rows()


def primitive_names() -> list[str]:
    """All primitives, in the order of the table."""
    return [name for name in _rows() if not name.startswith(_OPS)]


def op_names() -> list[str]:
    """The ops of arithmetic that have a derivative."""
    return [name for name in _rows() if name.startswith(_OPS)]


def arguments_of(name: str) -> tuple[str, ...]:
    """The arguments of the primitive `name`, as its row calls them."""
    return tuple(argument.strip() for argument in _rows()[name][0].split(","))


@cache
def rule(name: str) -> Rule:
    """The derivative of the primitive `name`; KeyError if there is none."""
    terms = read_terms(_rows()[name][1], f"derivatives.txt, row '{name}'")
    return Rule(arguments_of(name), tuple(terms))
