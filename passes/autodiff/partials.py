"""Derivatives of scalar ops, in either mode, from their rows of `library/derivatives.txt`.

Reverse mode multiplies the adjoint of the result by each partial, forward mode the tangents of the operands, and adds.
What is multiplied goes into the number that a partial begins with, so that `1 / y` costs a division and no product; the
sign of such a quotient goes to the sum, and a divisor that all partials have divides the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import frexp, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import COMPARISONS, known_constant
from ulam.library.derivatives import Rule, rule
from ulam.library.terms import Application, Name, Number, Term

if TYPE_CHECKING:
    from ulam.passes.builder import Builder

SCALAR_OPS = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, rt.MathOp)
"""Ops whose derivatives are rows of the table."""


class PrimalValues(Protocol):
    """Where the derivative of a function finds values of the original computation: either mode of differentiation."""

    builder: Builder

    def need(self, value: SSAValue, frame: Any, /) -> SSAValue: ...


class _Partial(NamedTuple):
    """`± number * factor / divisor`; without one of the latter it is 1."""

    is_negative: bool
    number: int | float
    divisor: Term | None
    factor: Term | None


def row_name(op: Operation) -> str:
    """The name of the row of one of `SCALAR_OPS`."""
    return op.function.data if isinstance(op, rt.MathOp) else op.name


@cache
def is_constant(name: str) -> bool:
    """Whether the derivative is 0 everywhere: steps, and `value_of`."""
    return all(partial == Number(0) for partial in rule(name).partials)


@cache
def _partials(name: str) -> tuple[_Partial, ...]:
    return tuple(_taken_apart(partial) for partial in rule(name).partials)


def _taken_apart(term: Term) -> _Partial:
    match term:
        case Number(-1):
            return _Partial(True, 1, None, None)
        case Number(value):
            return _Partial(False, value, None, None)
        case Application("neg", (inner,)) if (found := _taken_apart(inner)).divisor is not None:
            return found._replace(is_negative=not found.is_negative)
        case Application("/", (Number(value), divisor)):
            return _Partial(False, value, divisor, None)
        case Application("*", (Application("/", (Number(value), divisor)), factor)):
            return _Partial(False, value, divisor, factor)
        case Application("*", (Number(value), factor)) if abs(frexp(value)[0]) == 0.5:
            return _Partial(False, value, None, factor)  # no bit depends on what a power of two is multiplied with
        case _:
            return _Partial(False, 1, None, term)


class ScalarDerivative:
    """The derivative of one op at the values that it has. `frame`: of reverse mode, where these values are found."""

    def __init__(self, mode: PrimalValues, op: Operation, frame: object = None) -> None:
        self.mode = mode
        self.builder = mode.builder
        self.op = op
        self.frame = frame
        self.rule: Rule = rule(row_name(op))
        self.partials = _partials(row_name(op))
        self._quotients: dict[tuple[int | float, Term], SSAValue] = {}

    def times_adjoint(self, adjoint: SSAValue, position: int) -> SSAValue | None:
        """The adjoint of the result times the partial of an operand; None if that is 0."""
        partial = self.partials[position]
        if partial.number == 0:
            return None
        if partial.divisor is None:
            scaled = self._scaled(adjoint, partial.number)
        else:
            key = (partial.number, partial.divisor)
            if (found := self._quotients.get(key)) is None:
                found = self.builder.divf(self._scaled(adjoint, partial.number), self._value(partial.divisor))
                self._quotients[key] = found
            scaled = found
        product = self._times_factor(scaled, partial)
        return self.builder.negf(product) if partial.is_negative else product

    def is_finite(self, position: int) -> bool:
        """Whether a partial is a known number, whatever the operands are."""
        match self.partials[position]:
            case _Partial(divisor=None, factor=None):
                return True
            case _Partial(divisor=None, factor=Name(name)) if name not in ("result", "adjoint"):
                other = known_constant(self.op.operands[self.rule.arguments.index(name)])
                return other is not None and isfinite(other)
        return False

    def of_tangents(self, tangents: Sequence[SSAValue | None], *, reassociate: bool = False) -> SSAValue | None:
        """The tangent of the result; None if it is 0. `reassociate`: the sum may be taken in another order."""
        parts = [
            (tangent, partial)
            for tangent, partial in zip(tangents, self.partials, strict=True)
            if tangent is not None and partial.number != 0
        ]
        divisor = parts[0][1].divisor if parts else None
        is_common = divisor is not None and all(partial.divisor == divisor for _, partial in parts)
        total: SSAValue | None = None
        for tangent, partial in parts:
            term = self._scaled(tangent, partial.number)
            if partial.divisor is not None and not is_common:
                term = self.builder.divf(term, self._value(partial.divisor))
            term = self._times_factor(term, partial)
            if total is None:
                total = self.builder.negf(term) if partial.is_negative else term
            elif partial.is_negative:
                total = self.builder.subf(total, term)
            else:
                total = self.builder.addf(total, term, reassociate)
        if total is None or divisor is None or not is_common:
            return total
        return self.builder.divf(total, self._value(divisor))

    def _scaled(self, value: SSAValue, number: float) -> SSAValue:
        return value if number == 1 else self.builder.mulf(value, self.builder.f64(number))

    def _times_factor(self, value: SSAValue, partial: _Partial) -> SSAValue:
        if partial.factor is None:
            return value
        self._multiplied = value
        return self.builder.mulf(value, self._value(partial.factor))

    def _value(self, term: Term) -> SSAValue:
        builder = self.builder
        if isinstance(term, Number):
            return builder.f64(term.value)
        if isinstance(term, Name):
            if term.name == "adjoint":
                return self._multiplied
            if term.name == "result":
                return self.mode.need(self.op.results[0], self.frame)
            return self.mode.need(self.op.operands[self.rule.arguments.index(term.name)], self.frame)
        operands = [self._value(operand) for operand in term.operands]
        match term.function:
            case "?":
                return builder.select(*operands)
            case "+":
                left, right = operands
                return builder.addf(left, right)
            case "-":
                return builder.subf(*operands)
            case "*":
                return builder.mulf(*operands)
            case "/":
                return builder.divf(*operands)
            case "neg":
                return builder.negf(*operands)
            case symbol if symbol in COMPARISONS:
                return builder.cmpf(COMPARISONS[symbol][1], *operands)
            case function:
                return builder.math(function, *operands)
