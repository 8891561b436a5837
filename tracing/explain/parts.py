"""What an explanation of a log density is made of: statements, terms, causes, elements."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ulam.tracing.tape.values import scalar_text

DIGITS = 8
"""Significant digits of reals in text."""

WORDS = {"nan": "NaN", "+inf": "+infinity", "-inf": "-infinity"}
"""How kinds of numbers are called in text. NaN and -infinity are different things: one has no value, one is log(0)."""


@dataclass(frozen=True)
class QuotedStatement:
    """A piece of the program: its text in one line, where it begins, and its source line with carets under it."""

    text: str
    file: str
    line: int
    column: int
    excerpt: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """`file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}" if self.line > 0 else self.file


@dataclass(frozen=True)
class Step:
    """A node of the trace as a line of text, `tau = exp(-800.0) = 0.0`, and where it stands.

    `expression`: the same without the variable that it is assigned to. `value`: what it came to.
    """

    text: str
    expression: str
    value: Any
    at: QuotedStatement | None


@dataclass(frozen=True)
class ShownElement:
    """An element of a vectorised statement: its name (`y[3]`), its value, its own increment, what is wrong with it."""

    name: str
    value: Any
    increment: float
    reason: str = ""


@dataclass
class Elements:
    """The elements of a vectorised statement, with how many there are of each kind. `shown`: guilty ones first."""

    count: int
    guilty: int
    shown: list[ShownElement]
    increments: list[float]
    """Of the elements, in their order; of many, of the first."""


@dataclass
class Term:
    """What a statement added to the log density. `kind`: tilde, target or jacobian.

    `parameter`: of the Jacobian adjustment of a parameter's transform, the parameter; its statement is the declaration.
    A statement in a loop is one term: `count` times, `increment` is the sum, `worst` the values of the loop variables
    where the increment was not finite for the first time, or least. `target_after`: after its last execution; of a
    term that is not finite, after the guilty one. `full`: with the constants that `propto` drops. `truncation`: the
    part of the increment that `T[...]` has added, None without.
    """

    kind: str
    statement: QuotedStatement
    increment: float
    target_after: float
    parameter: str = ""
    count: int = 1
    worst: dict[str, int] = field(default_factory=dict[str, int])
    worst_increment: float = math.nan
    not_finite: int = 0
    full: float | None = None
    truncation: float | None = None

    @property
    def label(self) -> str:
        """The statement as tables name it."""
        if self.parameter:
            return f"Jacobian of {self.parameter}"
        return self.statement.text.removesuffix(";")

    @property
    def dropped(self) -> float | None:
        """What `propto` left out."""
        if self.full is None:
            return None
        return 0.0 if same_number(self.full, self.increment) else self.full - self.increment


@dataclass
class Cause:
    """Why the log density, or its gradient, is not what it should be: one statement.

    `kind`: as the `outcome` of an explanation. `loop`: values of the loop variables around the statement; `calls`: the
    statements that led to it through functions of the program, innermost first. `births`: where a value stopped being
    finite first; `slice`: what the argument named in the message of a check was made of, nearest first.
    """

    kind: str
    message: str
    statement: QuotedStatement | None
    loop: dict[str, int] = field(default_factory=dict[str, int])
    calls: list[QuotedStatement] = field(default_factory=list[QuotedStatement])
    elements: Elements | None = None
    arguments: list[str] = field(default_factory=list[str])
    births: list[Step] = field(default_factory=list[Step])
    slice: list[Step] = field(default_factory=list[Step])
    notes: list[str] = field(default_factory=list[str])

    @property
    def summary(self) -> str:
        """The most telling fact in one line."""
        if self.elements is not None and self.elements.shown and self.elements.shown[0].reason:
            return self.elements.shown[0].reason
        if self.births:
            return self.births[0].text
        return self.message


@dataclass
class Tried:
    """How often each statement failed over several points; `text` has the range of the values that did it."""

    count: int
    statement: QuotedStatement | None
    text: str


@dataclass
class Tries:
    """What several points came to. `first`: the number of the first that failed, from 1; 0 if none did."""

    total: int
    failed: int
    first: int
    where: str
    failures: list[Tried] = field(default_factory=list[Tried])


@dataclass
class Parameter:
    """An unconstrained parameter and its place; `constrained` where it stands for a single scalar."""

    name: str
    value: float
    constrained: float | None = None


def kind_of(value: float) -> str:
    """`nan`, `+inf`, `-inf` or `finite`."""
    if math.isnan(value):
        return "nan"
    return "finite" if math.isfinite(value) else "+inf" if value > 0 else "-inf"


def short_text(value: float) -> str:
    """A number as traces write it; a real with at most eight digits, unless these would make it a whole number."""
    if isinstance(value, int) or not math.isfinite(value):
        return scalar_text(value)
    rounded = float(f"{value:.{DIGITS}g}")
    return scalar_text(value if rounded.is_integer() else rounded)


def same_number(a: float, b: float) -> bool:
    """Whether two numbers are equal, NaN being equal to NaN."""
    return a == b or (math.isnan(a) and math.isnan(b))
