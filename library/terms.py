"""Terms, as the tables of the compiler write them: names, numbers, applications, and the operators of Stan.

    -result * (x < 0 ? exp(x) : 1)        unchecked log1m(x)        f(a | b) as g

One small parser for `derivatives.txt` and `rewrite_rules.txt`. Programs have one of their own, `frontend/parse`: its
trees have places in a file, its errors are for users, and a program is more than terms; the passes, which read tables,
would have to import the frontend.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ulam.library.records import record

INFIX = {
    "?": 1, "==": 2, "!=": 2, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "/": 5, ".*": 5, "./": 5,
    "^": 7,
}  # fmt: skip
"""How strongly operators bind, the weakest first."""
PREFIX = {"-": "neg", "+": "pos", "!": "!"}
"""Operators in front of an operand → their names."""
_PREFIX_STRENGTH = 6
_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?)|(\w+)|(\.\*|\./|==|!=|<=|>=|[-+*/'^!?:()|,<>]))")


class TableError(ValueError):
    """A line of a table cannot be read."""


@record(frozen=True, slots=True)
class Number:
    value: int | float


@record(frozen=True, slots=True)
class Name:
    """What stands for something else: an argument, a result, any expression."""

    name: str


@record(frozen=True, slots=True)
class Application:
    """A function of operands. Operators have their symbols as names, `pow` is `^`, and `?` chooses.

    `meaning`: the definition that a call means, if not that of its own name.
    """

    function: str
    operands: tuple[Term, ...]
    unchecked: bool = False
    meaning: str | None = None

    @property
    def head(self) -> str:
        """What tells different functions apart: one that is checked, and one that is not, are two."""
        return head_of(self.function, self.unchecked, self.meaning)


Term = Number | Name | Application


def head_of(function: str, unchecked: bool, meaning: str | None) -> str:
    """The name under which applications of a function are found."""
    if unchecked:
        return f"unchecked {function}"
    return function if meaning is None else f"{function} as {meaning}"


def read_term(text: str, where: str, aliases: Mapping[str, str] | None = None) -> Term:
    """The term that `text` is. `where` begins what an error says; `aliases`: other names of functions."""
    terms = read_terms(text, where, aliases)
    if len(terms) > 1:
        raise TableError(f"{where}: more than one term: {text.strip()}")
    return terms[0]


def read_terms(text: str, where: str, aliases: Mapping[str, str] | None = None) -> list[Term]:
    """Terms, with commas in between."""
    tokens = [match[0].strip() for match in _TOKEN.finditer(text)]
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise TableError(f"{where}: cannot read '{text.strip()}'")
    reader = _Reader(text, where, tokens, aliases or {})
    terms = reader.terms(",")
    if rest := reader.peek():
        raise reader.error(f"unexpected '{rest}'")
    return terms


class _Reader:
    """A Pratt parser."""

    def __init__(self, text: str, where: str, tokens: list[str], aliases: Mapping[str, str]) -> None:
        self.text = text
        self.where = where
        self.tokens = tokens
        self.aliases = aliases
        self.next = 0

    def error(self, message: str) -> TableError:
        return TableError(f"{self.where}: {message}: {self.text.strip()}")

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            wanted = f"'{expected}'" if expected else "a term"
            raise self.error(f"expected {wanted}, found '{token or 'the end'}'")
        self.next += 1
        return token

    def terms(self, separators: str) -> list[Term]:
        found = [self.term(0)]
        while self.peek() and self.peek() in separators:
            self.take()
            found.append(self.term(0))
        return found

    def term(self, minimum: int) -> Term:
        left = self._operand()
        while True:
            symbol = self.peek()
            if symbol == "'":
                self.take()
                left = Application("'", (left,))
            elif (strength := INFIX.get(symbol, 0)) <= minimum:
                return left
            else:
                self.take()
                left = self._choice(left) if symbol == "?" else self._infix(symbol, left, self.term(strength))

    def _choice(self, condition: Term) -> Term:
        then = self.term(0)
        self.take(":")
        return Application("?", (condition, then, self.term(0)))

    def _infix(self, symbol: str, left: Term, right: Term) -> Term:
        return Application("pow" if symbol == "^" else symbol, (left, right))

    def _operand(self) -> Term:
        token = self.take()
        if token in PREFIX:
            operand = self.term(_PREFIX_STRENGTH)
            if token == "-" and isinstance(operand, Number):
                return Number(-operand.value)
            return Application(PREFIX[token], (operand,))
        if token == "(":
            inner = self.term(0)
            self.take(")")
            return inner
        if token[0].isdigit():
            return Number(int(token) if token.isdigit() else float(token))
        if token == "unchecked":
            return self._call(self.take(), unchecked=True)
        if not token.isidentifier():
            raise self.error(f"expected a term, found '{token}'")
        return self._call(token) if self.peek() == "(" else Name(token)

    def _call(self, name: str, *, unchecked: bool = False) -> Term:
        self.take("(")
        operands = [] if self.peek() == ")" else self.terms(",|")
        self.take(")")
        meaning = None
        if self.peek() == "as":
            self.take()
            meaning = self.take()
        return Application(self.aliases.get(name, name), tuple(operands), unchecked, meaning)
