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

TABLE = Path(__file__).with_name("rewrite_rules.txt")

OPERATOR_FUNCTIONS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "elt_multiply": ".*", "elt_divide": "./",
    "minus": "neg", "plus": "pos", "transpose": "'", "fabs": "abs",
}  # fmt: skip
"""Functions that mean what an operator, or another function, means."""

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?)|(\w+)|(\.\*|\./|==|!=|<=|>=|[-+*/'^!()|,<>]))")
_BINARY = {"==": 1, "!=": 1, "<": 2, "<=": 2, ">": 2, ">=": 2, "+": 3, "-": 3, "*": 4, "/": 4, ".*": 4, "./": 4, "^": 6}
_UNARY = {"-": "neg", "+": "pos", "!": "!"}
_UNARY_STRENGTH, _POSTFIX = 5, 7
_ROW = re.compile(r"(?P<pattern>.*?) -> (?P<result>.*?)\s+\[(?P<class>[\w\s-]*)\](?:\s+# (?P<comment>.*))?$")
_GUARD = re.compile(r"(?P<names>\w+(?:, \w+)*): (?P<types>.+)$")
_COST = re.compile(r"(?P<names>\S+(?: \S+)*): (?P<cost>[\d.]+)$")
CLASSES = ("same-bits", "last-bits")


class PatternVariable(NamedTuple):
    """An expression that the rule leaves as it is."""

    name: str


class Literal(NamedTuple):
    """A number, int or real."""

    value: int | float


class Application(NamedTuple):
    """An operator or a call. `meaning`: the definition that a call means, if not that of its own name."""

    function: str
    operands: tuple[Term, ...]
    unchecked: bool = False
    meaning: str | None = None

    @property
    def head(self) -> str:
        """What tells different functions apart: one that is checked, and one that is not, are two."""
        return head_of(self.function, self.unchecked, self.meaning)


Term = PatternVariable | Literal | Application


def head_of(function: str, unchecked: bool, meaning: str | None) -> str:
    """The name under which nodes of a function are found."""
    if unchecked:
        return f"unchecked {function}"
    return function if meaning is None else f"{function} as {meaning}"


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


class TableError(ValueError):
    """A line of the table cannot be read."""


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
    pattern, result = read_term(row["pattern"]), read_term(row["result"])
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


def names_in(term: Term) -> list[str]:
    """The names of a term in the order in which they stand, repetitions included."""
    if isinstance(term, PatternVariable):
        return [term.name]
    return [name for operand in term.operands for name in names_in(operand)] if isinstance(term, Application) else []


# ---------------------------------------------------------------- terms


def read_term(text: str) -> Term:
    """The term that an expression of the table is."""
    tokens = [match[0].strip() for match in _TOKEN.finditer(text)]
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise TableError(f"cannot read: {text}")
    reader = _Reader(text, tokens)
    term = reader.term(0)
    if reader.peek():
        raise TableError(f"'{reader.peek()}' is left over: {text}")
    return term


class _Reader:
    """A Pratt parser."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text = text
        self.tokens = tokens
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if not token or (expected and token not in expected):
            raise TableError(f"expected {' or '.join(expected) or 'more'}, found '{token}': {self.text}")
        self.next += 1
        return token

    def term(self, strength: int) -> Term:
        left = self._operand()
        while True:
            symbol = self.peek()
            if symbol == "'" and strength <= _POSTFIX:
                self.take()
                left = Application("'", (left,))
            elif symbol in _BINARY and _BINARY[symbol] > strength:
                self.take()
                left = Application("pow" if symbol == "^" else symbol, (left, self.term(_BINARY[symbol])))
            else:
                return left

    def _operand(self) -> Term:
        token = self.take()
        if token in _UNARY:
            operand = self.term(_UNARY_STRENGTH)
            if token == "-" and isinstance(operand, Literal):
                return Literal(-operand.value)
            return Application(_UNARY[token], (operand,))
        if token == "(":
            inner = self.term(0)
            self.take(")")
            return inner
        if token[0].isdigit():
            return Literal(int(token) if token.isdigit() else float(token))
        if token == "unchecked":
            return self._call(self.take(), unchecked=True)
        return self._call(token) if self.peek() == "(" else PatternVariable(token)

    def _call(self, name: str, unchecked: bool = False) -> Term:
        self.take("(")
        operands: list[Term] = []
        while self.peek() != ")":
            operands.append(self.term(0))
            if self.peek() != ")":
                self.take(",", "|")
        self.take(")")
        meaning = None
        if self.peek() == "as":
            self.take()
            meaning = self.take()
        return Application(OPERATOR_FUNCTIONS.get(name, name), tuple(operands), unchecked, meaning)
