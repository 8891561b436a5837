"""Reads `derivatives.txt`, the table of derivatives. Rows are parsed when they are first asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?)|(\w+)|(==|!=|<=|>=|[-+*/()?:,<>]))")
_PRECEDENCE = {"?": 1, "==": 2, "!=": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "/": 5}


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """An argument of the primitive, or `result`."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """`function` is a primitive, an operator `+ - * / == != < <= > >=`, `negate` or `?`."""

    function: str
    operands: tuple[Term, ...]


Term = Number | Name | Apply


@dataclass(frozen=True, slots=True)
class Rule:
    """The derivative of a primitive: a partial for each argument."""

    arguments: tuple[str, ...]
    partials: tuple[Term, ...]


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
    return list(_rows())


@cache
def rule(name: str) -> Rule:
    """The derivative of the primitive `name`; KeyError if there is none."""
    arguments, partials = _rows()[name]
    return Rule(
        tuple(a.strip() for a in arguments.split(",")), tuple(_Parser(name, partials).list_of_terms()))  # fmt: skip


class _Parser:
    """A Pratt parser for partials."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tokens = [m.group().strip() for m in _TOKEN.finditer(text)]
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            raise ValueError(f"derivatives.txt, row '{name}': cannot read '{text.strip()}'")
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if expected is not None and token != expected:
            raise ValueError(f"derivatives.txt, row '{self.name}': expected '{expected}', found '{token}'")
        self.next += 1
        return token

    def list_of_terms(self) -> list[Term]:
        terms = [self.term(0)]
        while self.peek() == ",":
            self.take()
            terms.append(self.term(0))
        if self.peek():
            raise ValueError(f"derivatives.txt, row '{self.name}': unexpected '{self.peek()}'")
        return terms

    def term(self, minimum: int) -> Term:
        left = self.operand()
        while (strength := _PRECEDENCE.get(self.peek(), 0)) > minimum:
            operator = self.take()
            if operator == "?":
                then = self.term(0)
                self.take(":")
                left = Apply("?", (left, then, self.term(0)))
            else:
                left = Apply(operator, (left, self.term(strength)))
        return left

    def operand(self) -> Term:
        token = self.take()
        if token == "-":
            inner = self.term(5)
            return Number(-inner.value) if isinstance(inner, Number) else Apply("negate", (inner,))
        if token == "(":
            inner = self.term(0)
            self.take(")")
            return inner
        if token[0].isdigit():
            return Number(float(token))
        if self.peek() == "(":
            self.take()
            operands = [] if self.peek() == ")" else self.list_until_parenthesis()
            self.take(")")
            return Apply(token, tuple(operands))
        return Name(token)

    def list_until_parenthesis(self) -> list[Term]:
        operands = [self.term(0)]
        while self.peek() == ",":
            self.take()
            operands.append(self.term(0))
        return operands
