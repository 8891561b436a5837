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

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of
from ulam.passes.builder import WRAPS
from ulam.passes.loops.exponentials import LOGARITHMS, SharedExponentials
from ulam.passes.loops.op_writer import OpWriter

_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_SMALLEST_NORMAL = 2.0**-1022
_SIGNIFICAND, _ONE_BITS = (1 << 52) - 1, 1023 << 52
_INFINITY, _NAN = float("inf"), float("nan")

GENERAL = frozenset({"log", "log1p", "log1m"})
"""Logarithms of any number."""

Coefficient = tuple[float, SSAValue | None]
"""A number, and a value that it is multiplied by, if there is one."""


@record(frozen=True)
class Factor:
    """`coefficient` times the logarithm of `value` is added, and times log(2) per `exponent` if there is one."""

    coefficient: Coefficient
    value: SSAValue
    exponent: SSAValue | None = None


@record(frozen=True)
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


class FactorWriter(SharedExponentials):
    """Takes the terms of one block apart. Ops are written in front of what they replace."""

    def term(self, value: SSAValue, before: Operation, invariants: Sequence[Block]) -> SplitTerm:
        """A value as a rest and factors; without factors if there is nothing to gain.

        `invariants`: values that are defined in these blocks, the function's first, may be coefficients.
        """
        self.before, self._invariants = before, invariants
        return self._term(value)

    # ------------------------------------------------------------ taking apart

    def _term(self, value: SSAValue) -> SplitTerm:
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.block or not value.has_one_use():
            return SplitTerm(value)
        if isinstance(op, rt.MathOp):
            return self._sum_of_product(value, op) if op.function.data == "fma" else self._logarithm(op)
        if isinstance(op, arith.NegfOp):
            part = self._term(op.operand)
            return SplitTerm(self._rest_negated(part.rest), part.scaled(-1.0)) if part.factors else SplitTerm(value)
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            left, right = self._term(op.lhs), self._term(op.rhs)
            if not left.factors and not right.factors:
                return SplitTerm(value)
            is_sum = isinstance(op, arith.AddfOp)
            factors = left.factors + (right.factors if is_sum else right.scaled(-1.0))
            if left.rest is None:
                return SplitTerm(right.rest if is_sum else self._rest_negated(right.rest), factors)
            if right.rest is None:
                return SplitTerm(left.rest, factors)
            return SplitTerm(self._real(type(op), left.rest, right.rest), factors)
        if isinstance(op, arith.MulfOp):
            return self._product(value, op)
        if isinstance(op, arith.SelectOp):
            return self._selected(value, op)
        return SplitTerm(value)

    def _rest_negated(self, rest: SSAValue | None) -> SSAValue | None:
        return None if rest is None else self._negated(rest)

    def _product(self, value: SSAValue, op: arith.MulfOp) -> SplitTerm:
        for scale, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = known_constant(scale)
            if number is None and block_of(scale) not in self._invariants:
                continue
            part = self._term(other)
            if not part.factors:
                continue
            rest = None if part.rest is None else self._real(arith.MulfOp, scale, part.rest)
            if number is not None:
                return SplitTerm(rest, part.scaled(float(number)))
            weighted = [self._weighted(factor, scale) for factor in part.factors]
            factors = tuple(factor for factor in weighted if factor is not None)
            return SplitTerm(rest, factors) if len(factors) == len(weighted) else SplitTerm(value)
        return SplitTerm(value)

    def _weighted(self, factor: Factor, scale: SSAValue) -> Factor | None:
        """A factor with a coefficient, times another one; None if it has one that is known in the same place.

        Of a weight of rows and of what no loop changes, the product is computed where the weight is.
        """
        number, value = factor.coefficient
        if value is None:
            return replace(factor, coefficient=(number, scale))
        if block_of(value) is block_of(scale):
            return None
        block = block_of(scale if block_of(value) is self._invariants[0] else value)
        for use in scale.uses:
            product = use.operation
            if isinstance(product, arith.MulfOp) and product.parent is block and value in product.operands:
                return replace(factor, coefficient=(number, product.result))
        inner = scale if block_of(scale) is block else value
        return replace(factor, coefficient=(number, OpWriter.behind(inner).real(arith.MulfOp, scale, value)))

    def _sum_of_product(self, value: SSAValue, op: rt.MathOp) -> SplitTerm:
        """x * y + z: the logarithms of z."""
        x, y, z = op.operands
        part = self._term(z)
        if not part.factors:
            return SplitTerm(value)
        if part.rest is None:
            return SplitTerm(self._real(arith.MulfOp, x, y), part.factors)
        return SplitTerm(self._write(rt.MathOp, (x, y, part.rest), f64, op.properties), part.factors)

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
        if name == "log_given" and (given := self._term(op.operands[1])).factors:
            return given
        if name not in LOGARITHMS:
            return SplitTerm(op.results[0])
        total = self.total(op)
        if name == "log1p_exp_minus_magnitude":
            return SplitTerm(None, (Factor((1.0, None), total),))
        rest = self._rest(op)
        if name == "log_sum_exp":  # equal infinities, too, whose difference is NaN
            total = self._select(self._compare("oeq", *op.operands), self._number(2.0), total)
        return SplitTerm(rest, (Factor((-1.0 if "inv_logit" in name else 1.0, None), total),))

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
