"""Numbers with exponents of their own, in lowered code: `number * 2^(256 * scale)` for what no double can hold.

`number` is from 2^-128 to 2^128, 0, infinite or NaN, `scale` a whole number in a double; of 0 it is below all others,
of infinity above. Scales are no function of parameters to derivatives: steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1
from xdsl.ir import Block, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPF
from ulam.library.records import record
from ulam.passes.loops.op_writer import OpWriter

_STEP_BITS = 256
_STEP = _STEP_BITS * math.log(2)
"""The logarithm of what a step of the scale is worth."""
_NORMAL_BITS = _STEP_BITS // 2
PRODUCT_BITS = 2 * _NORMAL_BITS
"""What numbers may be away from 1 where they are aligned: of what is three steps lower nothing is left then."""
_MOST_BITS = _NORMAL_BITS + _STEP_BITS
"""The same for what becomes normal by one step."""
_LOWEST = -1e300
_WHOLE = 1e17
"""Logarithms beyond are so coarse that steps within them mean nothing."""
_HUGE = 1.7976931348623157e308


@record(frozen=True)
class Scaled:
    """A number and its scale, or the memory of such; `bits`: the powers of 2 by which the number may be away from 1."""

    number: SSAValue
    scale: SSAValue
    bits: int = _NORMAL_BITS

    @property
    def both(self) -> tuple[SSAValue, SSAValue]:
        """The number and the scale."""
        return self.number, self.scale


class ScaledWriter(OpWriter):
    """Writes operations of such numbers."""

    @staticmethod
    def behind(value: SSAValue) -> ScaledWriter:
        """Writes behind where a value is defined."""
        return ScaledWriter(OpWriter.behind(value).anchor)

    def choose(self, condition: SSAValue, value: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two reals."""
        return self.put(arith.SelectOp.create(operands=(condition, value, otherwise), result_types=(f64,)))

    def total(self, values: Sequence[SSAValue]) -> SSAValue:
        """The sum of reals."""
        found = values[0]
        for value in values[1:]:
            found = self.real(arith.AddfOp, found, value, reassociate=True)
        return found

    def lowest(self) -> SSAValue:
        """The scale of 0."""
        return self.number(_LOWEST)

    def larger(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """The larger one of two scales."""
        return self.real(arith.MaxnumfOp, one, other)

    def smaller(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """The smaller one of two scales."""
        return self.real(arith.MinnumfOp, one, other)

    def constant(self, logarithm: float) -> Scaled:
        """What a constant is the logarithm of."""
        if math.isfinite(logarithm):
            steps = float(round(logarithm / _STEP)) if abs(logarithm) <= _WHOLE else logarithm / _STEP
            return Scaled(self.number(math.exp(logarithm - steps * _STEP)), self.number(steps))
        number = 0.0 if logarithm == -math.inf else logarithm
        return Scaled(self.number(number), self.number(-_LOWEST if logarithm == math.inf else _LOWEST))

    def exponential(self, logarithm: SSAValue) -> Scaled:
        """What a value is the logarithm of."""
        value = self.put(rt.MathOp("fixed_value_of", (logarithm,)))
        size = self.put(rt.MathOp("fabs", (value,)))
        inverse = self.number(1 / _STEP)
        steps = self.put(rt.MathOp("round", (self.real(arith.MulfOp, value, inverse),)))
        is_finite = self.compare("ole", size, _HUGE)
        shift = self.choose(is_finite, value, self.number(0.0))
        shift = self.choose(
            self.compare("ole", size, _WHOLE), self.real(arith.MulfOp, steps, self.number(_STEP)), shift
        )
        number = self.put(rt.MathOp("exp", (self.real(arith.SubfOp, logarithm, shift),)))
        end = self.choose(self.compare("ogt", value, 0.0), self.number(-_LOWEST), self.lowest())
        return Scaled(number, self.choose(is_finite, steps, end))

    def logarithm(self, scaled: Scaled) -> SSAValue:
        """The logarithm of a number."""
        log = self.put(rt.MathOp("log", (scaled.number,)))
        return self.real(arith.AddfOp, log, self.real(arith.MulfOp, scaled.scale, self.number(_STEP)))

    def product(self, factors: Sequence[Scaled], *, normal: bool = False) -> Scaled:
        """A product, to be aligned with others, or `normal`."""
        if not factors:
            return Scaled(self.number(1.0), self.number(0.0))
        most = _MOST_BITS if normal else PRODUCT_BITS
        found = factors[0]
        for factor in factors[1:]:
            if found.bits + factor.bits > most:
                found = self.normal(found)
            number = self.real(arith.MulfOp, found.number, factor.number)
            found = Scaled(number, self.real(arith.AddfOp, found.scale, factor.scale), found.bits + factor.bits)
        return self.normal(found) if normal else found

    def normal(self, scaled: Scaled) -> Scaled:
        """The same number in the range that numbers have."""
        if scaled.bits <= _NORMAL_BITS:
            return scaled
        bound = math.ldexp(1.0, _NORMAL_BITS)
        not_small, not_large = self.compare("oge", scaled.number, 1 / bound), self.compare("ole", scaled.number, bound)
        is_normal = self.both([not_small, not_large])
        number, scale = self.branch(is_normal, lambda _: scaled.both, lambda write: write.stepped(scaled).both)
        return Scaled(number, scale)

    def branch(
        self,
        condition: SSAValue,
        then: Callable[[ScaledWriter], Sequence[SSAValue]],
        otherwise: Callable[[ScaledWriter], Sequence[SSAValue]],
    ) -> tuple[SSAValue, ...]:
        """Reals of one of two arms."""
        regions: list[Region] = []
        count = 0
        for arm in (then, otherwise):
            end = scf.YieldOp.create()
            regions.append(Region(Block([end])))
            end.operands = values = list(arm(ScaledWriter(end)))
            count = len(values)
        op = scf.IfOp.create(operands=(condition,), result_types=[f64] * count, regions=regions)
        self.before(op)
        return tuple(op.results)

    def equal(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """Whether two reals are equal."""
        properties = {"predicate": CMPF["oeq"], "fastmath": arith.FastMathFlagsAttr("none")}
        return self.put(arith.CmpfOp.create(operands=(one, other), result_types=(i1,), properties=properties))

    def stepped(self, scaled: Scaled) -> Scaled:
        """The same number in the range that numbers have, by a step up or down."""
        number, scale = scaled.both
        none, up, down = self.number(0.0), self.number(1.0), self.number(-1.0)
        bound = math.ldexp(1.0, _NORMAL_BITS)
        is_large, is_small = self.compare("ogt", number, bound), self.compare("olt", number, 1 / bound)
        factor = self.choose(is_small, self._power(1), self.number(1.0))
        factor = self.choose(is_large, self._power(-1), factor)
        changed = self.real(arith.MulfOp, number, factor)
        steps = self.choose(is_large, up, self.choose(is_small, down, none))
        scale = self.real(arith.AddfOp, scale, steps)
        scale = self.choose(self.compare("oeq", number, 0.0), self.lowest(), scale)
        scale = self.choose(self.compare("oeq", number, math.inf), self.number(-_LOWEST), scale)
        return Scaled(changed, scale)

    def aligned(self, scaled: Scaled, top: SSAValue) -> SSAValue:
        """A number with the scale `top`, which is not below its own."""
        gap = self.real(arith.SubfOp, scaled.scale, top)
        factor = self.number(0.0)
        for steps in (-2, -1, 0):
            factor = self.choose(self.compare("oge", gap, float(steps)), self._power(steps), factor)
        return self.real(arith.MulfOp, scaled.number, factor)

    def _power(self, steps: int) -> SSAValue:
        return self.number(math.ldexp(1.0, steps * _STEP_BITS))
