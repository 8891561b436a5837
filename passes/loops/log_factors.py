"""Terms of the target as a rest and the logarithm of a product: which factors there are, and what is left.

    -log1p_exp(z)        = -max(z, 0) - log(1 + exp(-|z|))      a factor in [1, 2]
    log_sum_exp(a, b)    = max(a, b) + log(1 + exp(-|a - b|))
    log(x)               = n log(2) + log(m)                     x = 2^n m, m in [1, 2)

Factors are in [1, 2], so that hundreds of them have a product that a real can hold. Of `log` and its like the factor is
the significand, and the exponent is summed apart. What has no logarithm there (0, negative numbers, infinities, NaN) is
a factor that gives the product the same fate: 0, NaN, infinity.

`exp(-|z|)` and 1 + `exp(-|z|)` are shared with the derivative, `inv_logit(z)`, which becomes one division.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPF, constant, known_constant
from ulam.passes.analysis.nesting import block_of
from ulam.passes.builder import WRAPS

_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_SMALLEST_NORMAL = 2.0**-1022
_SIGNIFICAND, _ONE_BITS = (1 << 52) - 1, 1023 << 52
_INFINITY, _NAN = float("inf"), float("nan")

OF_EXPONENTIALS = frozenset({"log1p_exp", "log_inv_logit", "log1m_inv_logit", "log_sum_exp"})
"""Logarithms of 1 + exp(-|z|), but for a rest."""
GENERAL = frozenset({"log", "log1p", "log1m"})
"""Logarithms of any number."""
_SLOPES = "inv_logit"

Coefficient = tuple[float, SSAValue | None]
"""A number, and a value that it is multiplied by, if there is one."""


@dataclass(frozen=True)
class Factor:
    """`coefficient` times the logarithm of `value` is added, and times log(2) per `exponent` if there is one."""

    coefficient: Coefficient
    value: SSAValue
    exponent: SSAValue | None = None


@dataclass(frozen=True)
class SplitTerm:
    """A value as rest + the logarithms of factors."""

    rest: SSAValue | None
    factors: tuple[Factor, ...] = ()

    def scaled(self, number: float, by: SSAValue | None = None) -> tuple[Factor, ...]:
        """The factors, with coefficients times a number and a value."""
        scaled: list[Factor] = []
        for factor in self.factors:
            own, value = factor.coefficient
            scaled.append(replace(factor, coefficient=(own * number, by or value)))
        return tuple(scaled)


class FactorWriter:
    """Takes the terms of one block apart. Ops are written in front of what they replace."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self._first: dict[object, Operation] = {}
        self._slopes: dict[object, list[rt.MathOp]] = {}
        self._shared: dict[object, tuple[SSAValue, SSAValue]] = {}
        for op in block.ops:
            if isinstance(op, rt.MathOp) and (op.function.data == _SLOPES or op.function.data in OF_EXPONENTIALS):
                key = _distance(op)
                self._first.setdefault(key, op)
                if op.function.data == _SLOPES:
                    self._slopes.setdefault(key, []).append(op)

    def term(self, value: SSAValue, before: Operation, invariants: Block) -> SplitTerm:
        """A value as a rest and factors; without factors if there is nothing to gain.

        `invariants`: values that are defined there may be coefficients.
        """
        self._before, self._invariants = before, invariants
        return self._term(value)

    # ------------------------------------------------------------ taking apart

    def _term(self, value: SSAValue) -> SplitTerm:
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.block or not value.has_one_use():
            return SplitTerm(value)
        if isinstance(op, rt.MathOp):
            return self._logarithm(op)
        if isinstance(op, arith.NegfOp):
            part = self._term(op.operand)
            return SplitTerm(self._negated(part.rest), part.scaled(-1.0)) if part.factors else SplitTerm(value)
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            left, right = self._term(op.lhs), self._term(op.rhs)
            if not left.factors and not right.factors:
                return SplitTerm(value)
            is_sum = isinstance(op, arith.AddfOp)
            factors = left.factors + (right.factors if is_sum else right.scaled(-1.0))
            if left.rest is None:
                return SplitTerm(right.rest if is_sum else self._negated(right.rest), factors)
            if right.rest is None:
                return SplitTerm(left.rest, factors)
            return SplitTerm(self._real(type(op), left.rest, right.rest), factors)
        if isinstance(op, arith.MulfOp):
            return self._product(value, op)
        if isinstance(op, arith.SelectOp):
            return self._selected(value, op)
        return SplitTerm(value)

    def _product(self, value: SSAValue, op: arith.MulfOp) -> SplitTerm:
        for scale, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = known_constant(scale)
            if number is None and block_of(scale) is not self._invariants:
                continue
            part = self._term(other)
            if not part.factors:
                continue
            rest = None if part.rest is None else self._real(arith.MulfOp, scale, part.rest)
            if number is not None:
                return SplitTerm(rest, part.scaled(float(number)))
            if all(factor.coefficient[1] is None for factor in part.factors):
                return SplitTerm(rest, part.scaled(1.0, scale))
            return SplitTerm(value)
        return SplitTerm(value)

    def _selected(self, value: SSAValue, op: arith.SelectOp) -> SplitTerm:
        if op.result.type != f64:
            return SplitTerm(value)
        condition, left, right = op.cond, self._term(op.lhs), self._term(op.rhs)
        if not left.factors and not right.factors:
            return SplitTerm(value)
        zero = self._number(0.0)
        rest = None
        if left.rest is not None or right.rest is not None:
            rest = self._select(condition, left.rest or zero, right.rest or zero)
        remaining = list(right.factors)
        factors: list[Factor] = []
        for factor in left.factors:
            other = next((f for f in remaining if f.coefficient == factor.coefficient), None)
            if other is not None:
                remaining.remove(other)
            factors.append(self._either(condition, factor, other))
        factors += [self._either(condition, None, factor) for factor in remaining]
        return SplitTerm(rest, tuple(factors))

    def _either(self, condition: SSAValue, one: Factor | None, other: Factor | None) -> Factor:
        present = one or other
        assert present is not None
        neutral = Factor(present.coefficient, self._number(1.0))
        one, other = one or neutral, other or neutral
        exponent = None
        if one.exponent is not None or other.exponent is not None:
            zero = self._integer(0)
            exponent = self._select(condition, one.exponent or zero, other.exponent or zero)
        return Factor(present.coefficient, self._select(condition, one.value, other.value), exponent)

    # ------------------------------------------------------------ logarithms

    def _logarithm(self, op: rt.MathOp) -> SplitTerm:
        name = op.function.data
        if name in GENERAL:
            return self._general(op)
        if name not in OF_EXPONENTIALS:
            return SplitTerm(op.results[0])
        x = op.operands[0]
        zero = self._number(0.0)
        _, total = self._exponential(op)
        if name == "log_sum_exp":
            y = op.operands[1]
            larger = self._select(self._compare("olt", x, y), y, x)
            two = self._number(2.0)  # equal infinities, too, whose difference is NaN
            return SplitTerm(larger, (Factor((1.0, None), self._select(self._compare("oeq", x, y), two, total)),))
        factor = Factor((1.0 if name == "log1p_exp" else -1.0, None), total)
        if name == "log_inv_logit":
            return SplitTerm(self._select(self._compare("olt", x, zero), x, zero), (factor,))
        larger = self._select(self._compare("ogt", x, zero), x, zero)
        return SplitTerm(larger if name == "log1p_exp" else self._negated(larger), (factor,))

    def _general(self, op: rt.MathOp) -> SplitTerm:
        x = op.operands[0]
        one = self._number(1.0)
        if op.function.data != "log":
            x = self._real(arith.AddfOp if op.function.data == "log1p" else arith.SubfOp, one, x)
        least = self._number(_SMALLEST_NORMAL)
        is_small = self._compare("olt", x, least)
        scaled = self._select(is_small, self._real(arith.MulfOp, x, self._number(2.0**54)), x)
        bits = self._write(arith.BitcastOp, (scaled,), i64)
        raw = self._write(arith.ShRUIOp, (bits, self._integer(52)), i64)
        bias = self._select(is_small, self._integer(1023 + 54), self._integer(1023))
        exponent = self._write(arith.SubiOp, (raw, bias), i64, WRAPS)
        own = self._write(arith.AndIOp, (bits, self._integer(_SIGNIFICAND)), i64)
        significand = self._write(
            arith.BitcastOp, (self._write(arith.OrIOp, (own, self._integer(_ONE_BITS)), i64),), f64
        )
        is_normal = self._write(
            arith.AndIOp,
            (self._compare("oge", scaled, least), self._compare("olt", scaled, self._number(_INFINITY))),
            i1,
        )
        special = self._select(self._compare("olt", x, self._number(0.0)), self._number(_NAN), x)
        return SplitTerm(None, (Factor((1.0, None), self._select(is_normal, significand, special), exponent),))

    def _exponential(self, op: rt.MathOp) -> tuple[SSAValue, SSAValue]:
        """exp(-|z|) and 1 + exp(-|z|) for what a function is of; derivatives are written with them, too."""
        key = _distance(op)
        if (shared := self._shared.get(key)) is not None:
            return shared
        outer, self._before = self._before, self._first[key]
        first = self._before
        z = first.operands[0]
        if len(first.operands) == 2:
            z = self._real(arith.SubfOp, *first.operands)
        power = self._write(rt.MathOp, (z,), f64, rt.MathOp("exp_minus_magnitude", (z,)).properties)
        one, zero = self._number(1.0), self._number(0.0)
        total = self._real(arith.AddfOp, one, power)
        slopes = self._slopes.get(key, ())
        inverse = self._real(arith.DivfOp, one, total) if len(slopes) > 1 else None
        for slope in slopes:
            self._before = slope
            argument = slope.operands[0]
            numerator = self._select(self._compare("olt", argument, zero), power, one)
            if inverse is None:
                result = self._real(arith.DivfOp, numerator, total)
            else:
                result = self._real(arith.MulfOp, numerator, inverse)
            slope.results[0].replace_all_uses_with(result)
        self._before = outer
        self._shared[key] = power, total
        return power, total

    # ------------------------------------------------------------ writing

    def _write(
        self,
        op: type[Operation],
        operands: Iterable[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        new = op.create(
            operands=tuple(operands),
            result_types=(type_,),
            properties=properties or {},
            location=self._before.location,
        )
        self.block.insert_op_before(new, self._before)
        return new.results[0]

    def _real(self, op: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        return self._write(op, (a, b), f64, _STRICT)

    def _negated(self, value: SSAValue | None) -> SSAValue | None:
        return None if value is None else self._write(arith.NegfOp, (value,), f64, _STRICT)

    def _compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._write(arith.CmpfOp, (a, b), i1, {"predicate": CMPF[predicate], **_STRICT})

    def _select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._write(arith.SelectOp, (condition, a, b), a.type)

    def _number(self, value: float) -> SSAValue:
        return self._constant(value, f64)

    def _integer(self, value: int) -> SSAValue:
        return self._constant(value, i64)

    def _constant(self, value: float, type_: Attribute) -> SSAValue:
        new = constant(value, type_, self._before.location)
        self.block.insert_op_before(new, self._before)
        return new.result


def _distance(op: rt.MathOp) -> object:
    """What is the same for functions of exp(-|z|) with the same z, or its negative."""
    if len(op.operands) == 2:
        return frozenset(op.operands)
    z = op.operands[0]
    owner = z.owner
    while isinstance(owner, arith.NegfOp):
        z = owner.operand
        owner = z.owner
    return frozenset(owner.operands) if isinstance(owner, arith.SubfOp) else z
