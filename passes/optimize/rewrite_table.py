"""Reads `rewrite_rules.txt`: the rules of partial evaluation and the costs by which it chooses.

    log(1 - x) -> unchecked log1m(x)  [last-bits]

becomes a `RewriteRule` of two terms. In terms an operator is an application of its symbol (`neg` and `pos` are the
unary `-` and `+`), and functions that are operators by another name have become those.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ulam.library.terms import Application, Name, TableError, Term, read_term

TABLE = Path(__file__).with_name("rewrite_rules.txt")

OPERATOR_FUNCTIONS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "elt_multiply": ".*", "elt_divide": "./",
    "minus": "neg", "plus": "pos", "transpose": "'", "fabs": "abs",
}  # fmt: skip
"""Functions that mean what an operator, or another function, means."""

_ROW = re.compile(r"(?P<pattern>.*?) -> (?P<result>.*?)\s+\[(?P<class>[\w\s-]*)\](?:\s+# (?P<comment>.*))?$")
_GUARD = re.compile(r"(?P<names>\w+(?:, \w+)*): (?P<types>.+)$")
_COST = re.compile(r"(?P<names>\S+(?: \S+)*): (?P<cost>[\d.]+)$")
CLASSES = ("same-bits", "last-bits")


class RewriteRule(NamedTuple):
    """One row. `guards`: the types that each name may have, as words."""

    text: str
    pattern: Application
    result: Term
    same_bits: bool
    changes_texts: bool
    comment: str
    guards: dict[str, tuple[str, ...]]


class Section(NamedTuple):
    """Rows under one heading; a section without rows has `notes`."""

    title: str
    rules: tuple[RewriteRule, ...]
    notes: tuple[str, ...]
    guards: dict[str, tuple[str, ...]]


class RewriteTable(NamedTuple):
    sections: tuple[Section, ...]
    costs: dict[str, float]

    @property
    def rules(self) -> tuple[RewriteRule, ...]:
        return tuple(rule for section in self.sections for rule in section.rules)


@lru_cache(maxsize=1)
def table() -> RewriteTable:
    """The table, read once."""
    return read_table(TABLE.read_text(encoding="utf-8"))


def read_table(text: str) -> RewriteTable:
    """What the text of a table says."""
    sections: list[Section] = []
    costs: dict[str, float] = {}
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        title, *lines = part.splitlines()
        if title == "Costs":
            for line in _written(lines):
                costs.update(_cost(line))
        sections.append(_section(title, [] if title == "Costs" else _written(lines), lines))
    return RewriteTable(tuple(sections), costs)


def _written(lines: list[str]) -> list[str]:
    return [line for line in lines if line and not line.startswith("#")]


def _cost(line: str) -> dict[str, float]:
    found = _COST.match(line)
    if found is None:
        raise TableError(f"not a cost: {line}")
    return {name: float(found["cost"]) for name in found["names"].split()}


def _section(title: str, written: list[str], lines: list[str]) -> Section:
    guards: dict[str, tuple[str, ...]] = {}
    rules: list[RewriteRule] = []
    for line in written:
        if (row := _ROW.match(line)) is not None:
            rules.append(_rule(row, guards))
        elif (guard := _GUARD.match(line)) is not None:
            types = tuple(word.strip() for word in guard["types"].split(", "))
            guards.update(dict.fromkeys(guard["names"].split(", "), types))
        else:
            raise TableError(f"neither a rule nor types of names: {line}")
    notes = tuple(line.removeprefix("#").removeprefix(" ") for line in lines if line.startswith("#"))
    return Section(title, tuple(rules), notes, guards)


def _rule(row: re.Match[str], guards: dict[str, tuple[str, ...]]) -> RewriteRule:
    pattern, result = _term(row["pattern"]), _term(row["result"])
    classes = row["class"].split()
    if not isinstance(pattern, Application) or classes[0] not in CLASSES or not {"texts"}.issuperset(classes[1:]):
        raise TableError(f"not a rule: {row[0]}")
    names = names_in(pattern)
    if set(names) != set(names_in(result)):  # what a rule left out might have thrown
        raise TableError(f"pattern and result must have the same names: {row[0]}")
    missing = set(names) - set(guards)
    if missing:
        raise TableError(f"no types of {', '.join(sorted(missing))}: {row[0]}")
    own = {name: guards[name] for name in dict.fromkeys(names)}
    text = f"{row['pattern']} -> {row['result']}"
    return RewriteRule(text, pattern, result, classes[0] == "same-bits", "texts" in classes, row["comment"] or "", own)


def _term(text: str) -> Term:
    return read_term(text, "rewrite_rules.txt", OPERATOR_FUNCTIONS)


def names_in(term: Term) -> list[str]:
    """The names of a term in the order in which they stand, repetitions included."""
    if isinstance(term, Name):
        return [term.name]
    return [name for operand in term.operands for name in names_in(operand)] if isinstance(term, Application) else []
