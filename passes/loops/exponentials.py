"""Functions of exp(-|z|) in a block: `inv_logit`, `log1p_exp` and their like of one z, or its negative, share it.

q = exp(-|z|)      t = 1 + q
inv_logit(z)       = (z < 0 ? q : 1) / t
log_inv_logit(z)   = min(z, 0) - log(t)
log1p_exp(z)       = max(z, 0) + log(t)
inv_logit(x - y)   shares with log_sum_exp(x, y), which is max(x, y) + log(t)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPF, constant
from ulam.passes.analysis.nesting import ancestor_in, enclosing

_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}

_LOG_2 = 0.6931471805599453
LOGARITHMS = frozenset({"log1p_exp", "log_inv_logit", "log1m_inv_logit", "log_sum_exp", "log1p_exp_minus_magnitude"})
"""Logarithms of 1 + exp(-|z|), but for a rest."""
INVERSES = frozenset({"inv_logit", "inv_logit_of_bounds"})
OTHERS = INVERSES | {"exp_minus_magnitude"}
"""What becomes a few operations where the exponential is shared."""


Groups = dict[object, list[rt.MathOp]]
"""Functions of exp(-|z|), by what is the same for one |z|."""


class BlockWriter:
    """Writes ops for one block, in front of `before`: there, or in a branch inside."""

    def __init__(self, block: Block, before: Operation | None = None) -> None:
        self.block = block
        self._before = before

    @property
    def before(self) -> Operation:
        """The op in front of which is written."""
        assert self._before is not None
        return self._before

    @before.setter
    def before(self, op: Operation | None) -> None:
        self._before = op

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
            location=self.before.location,
        )
        self._insert(new)
        return new.results[0]

    def _real(self, op: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        return self._write(op, (a, b), f64, _STRICT)

    def _negated(self, value: SSAValue) -> SSAValue:
        return self._write(arith.NegfOp, (value,), f64, _STRICT)

    def _compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._write(arith.CmpfOp, (a, b), i1, {"predicate": CMPF[predicate], **_STRICT})

    def _select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._write(arith.SelectOp, (condition, a, b), a.type)

    def _number(self, value: float) -> SSAValue:
        return self._constant(value, f64)

    def _integer(self, value: int) -> SSAValue:
        return self._constant(value, i64)

    def _constant(self, value: float, type_: Attribute) -> SSAValue:
        new = constant(value, type_, self.before.location)
        self._insert(new)
        return new.result

    def _insert(self, new: Operation) -> None:
        block = self.before.parent
        assert block is not None
        block.insert_op_before(new, self.before)


class SharedExponentials(BlockWriter):
    """The functions of exp(-|z|) in a block."""

    def __init__(self, block: Block, groups: Groups | None = None) -> None:
        super().__init__(block)
        self.groups: Groups = {} if groups is None else groups
        """Those of the same |z|, in order; the first stands in the block itself."""
        self._shared: dict[object, tuple[SSAValue, SSAValue, SSAValue]] = {}
        self._logs: dict[object, SSAValue] = {}
        self._distances: dict[object, SSAValue] = {}
        for op in block.ops if groups is None else ():
            if shares(op):
                self.groups.setdefault(distance(op), []).append(op)

    def total(self, op: rt.MathOp) -> SSAValue:
        """1 + exp(-|z|) of what a function is of; what is no logarithm in its group is written with it, too."""
        return self._exponential(distance(op))[1]

    def expand(self, key: object) -> None:
        """Writes all functions of a group with one exponential and one logarithm."""
        self._exponential(key)
        live = [op for op in self.groups[key] if op.function.data in LOGARITHMS and op.results[0].first_use is not None]
        if any(op.parent is self.block for op in live):
            self.before = ancestor_in(live[0], self.block)
            self._logs[key] = self._logarithm_of(key)
        for op in live:
            self.before = op
            logarithm = self._logs[key] if key in self._logs else self._logarithm_of(key)
            op.results[0].replace_all_uses_with(self._whole(op, logarithm))

    def _logarithm_of(self, key: object) -> SSAValue:
        """log(1 + exp(-|z|)) of a group."""
        power, total, inverse = self._exponential(key)
        if (
            enclosing(self.before, (scf.ForOp, scf.WhileOp)) is not None
        ):  # inlined: LLVM sees that it has the same power
            z = self._distances[key]
            return self._write(rt.MathOp, (z,), f64, rt.MathOp("log1p_exp_minus_magnitude", (z,)).properties)
        one = self._number(1.0)
        # what the rounding of 1 + q has lost
        lost = self._real(arith.SubfOp, power, self._real(arith.SubfOp, total, one))
        near = self._write(rt.MathOp, (total,), f64, rt.MathOp("log", (total,)).properties)
        return self._real(arith.AddfOp, near, self._real(arith.MulfOp, lost, inverse))

    def _whole(self, op: rt.MathOp, logarithm: SSAValue) -> SSAValue:
        name = op.function.data
        if name == "log1p_exp_minus_magnitude":
            return logarithm
        rest = self._rest(op)
        if name == "log_sum_exp":
            x, y = op.operands
            logarithm = self._select(self._compare("oeq", x, y), self._number(_LOG_2), logarithm)
        is_sum = name in ("log1p_exp", "log_sum_exp")
        return self._real(arith.AddfOp if is_sum else arith.SubfOp, rest, logarithm)

    def _rest(self, op: rt.MathOp) -> SSAValue:
        """What a logarithm of `LOGARITHMS` has beside the logarithm of 1 + exp(-|z|)."""
        name, x = op.function.data, op.operands[0]
        if name == "log_sum_exp":
            y = op.operands[1]
            return self._select(self._compare("olt", x, y), y, x)
        zero = self._number(0.0)
        if name == "log_inv_logit":
            return self._select(self._compare("olt", x, zero), x, zero)
        larger = self._select(self._compare("ogt", x, zero), x, zero)
        return larger if name == "log1p_exp" else self._negated(larger)

    def _exponential(self, key: object) -> tuple[SSAValue, SSAValue, SSAValue]:
        """exp(-|z|), 1 + exp(-|z|), and the inverse of that."""
        if (shared := self._shared.get(key)) is not None:
            return shared
        group = self.groups[key]
        outer = self._before
        first = self.before = group[0]
        z = first.operands[0]
        if len(first.operands) == 2:
            z = self._real(arith.SubfOp, *first.operands)
        self._distances[key] = z
        power = self._write(rt.MathOp, (z,), f64, rt.MathOp("exp_minus_magnitude", (z,)).properties)
        one, zero = self._number(1.0), self._number(0.0)
        total = self._real(arith.AddfOp, one, power)
        inverse = self._real(arith.DivfOp, one, total)
        slopes = sum(op.function.data in INVERSES for op in group)
        for op in group:
            self.before = op
            if op.function.data == "exp_minus_magnitude":
                op.results[0].replace_all_uses_with(power)
            elif op.function.data in INVERSES:
                numerator = self._select(self._compare("olt", op.operands[0], zero), power, one)
                is_single = slopes == 1
                by = total if is_single else inverse
                op.results[0].replace_all_uses_with(
                    self._real(arith.DivfOp if is_single else arith.MulfOp, numerator, by)
                )
        self.before = outer
        self._shared[key] = power, total, inverse
        return power, total, inverse


def shares(op: Operation) -> TypeGuard[rt.MathOp]:
    """Whether an op is a function of exp(-|z|)."""
    return type(op) is rt.MathOp and (op.function.data in OTHERS or op.function.data in LOGARITHMS)


def distance(op: rt.MathOp) -> object:
    """What is the same for functions of exp(-|z|) with the same z, or its negative."""
    if len(op.operands) == 2:
        return frozenset(op.operands)
    z = _without_sign(op.operands[0])
    return frozenset(z.owner.operands) if isinstance(z.owner, arith.SubfOp) else z


def _without_sign(z: SSAValue) -> SSAValue:
    """A value of which z is, or whatever z chooses between are, the same or the negative."""
    while isinstance(z.owner, arith.NegfOp):
        z = z.owner.operand
    if isinstance(choice := z.owner, arith.SelectOp):
        one, other = _without_sign(choice.lhs), _without_sign(choice.rhs)
        return one if one is other else z
    return z
