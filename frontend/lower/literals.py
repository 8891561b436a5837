"""Container literals of numbers alone, such as `{{0.5, -1}, {2, 3}}`, read off the tree at once.

Data are often written into a program as one long literal. It becomes one op, not one for each number.
"""

from __future__ import annotations

from math import isfinite

from xdsl.dialects.builtin import DenseArrayBase, f64, i32
from xdsl.ir import Attribute

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.library.records import record

Number = int | float


@record
class Numbers:
    """The numbers of a literal as they are written, the last index fastest, and its sizes, outermost first."""

    values: list[Number]
    sizes: list[int]

    def attribute(self, scalar: Attribute) -> DenseArrayBase | None:
        """The values, for a container of ints or reals. None if a real is too large for a double."""
        if scalar == stan.INT:
            return DenseArrayBase.from_list(i32, [int(value) for value in self.values])
        reals = [float(value) for value in self.values]
        return DenseArrayBase.from_list(f64, reals) if all(map(isfinite, reals)) else None


def numbers_of(e: syntax.Expression) -> Numbers | None:
    """What a container literal is made of; None if an element is no number, or if rows are not equally long."""
    e = _plain(e)
    if not isinstance(e, syntax.ArrayLiteral | syntax.RowVectorLiteral) or not e.elements:
        return None
    values: list[Number] = []
    inner: list[int] | None = None
    for element in e.elements:
        if (number := _number(element)) is not None:
            values.append(number)
            found: list[int] = []
        elif (part := numbers_of(element)) is not None:
            values += part.values
            found = part.sizes
        else:
            return None
        if inner is None:
            inner = found
        elif inner != found:
            return None
    assert inner is not None
    return Numbers(values, [len(e.elements), *inner])


def _plain(e: syntax.Expression) -> syntax.Expression:
    """An expression without parentheses and conversions around it."""
    while True:
        if isinstance(e, syntax.Parenthesized):
            e = e.inner
        elif isinstance(e, syntax.Promotion):
            e = e.operand
        else:
            return e


def _number(e: syntax.Expression) -> Number | None:
    """The number that is written, perhaps with a minus."""
    e = _plain(e)
    sign = 1
    if isinstance(e, syntax.Unary) and e.operator == "-":
        sign, e = -1, _plain(e.operand)
    if isinstance(e, syntax.IntLiteral):
        return sign * int(e.text)
    if isinstance(e, syntax.RealLiteral):
        return sign * float(e.text)
    return None
