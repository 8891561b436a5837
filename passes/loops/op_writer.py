"""Writes scalar ops between others."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects.scalar_ops import CMPF, CMPI, constant
from ulam.library.records import record
from ulam.passes.builder import REASSOCIATE, WRAPS

_NO_FASTMATH = {"fastmath": arith.FastMathFlagsAttr("none")}
_DO_NOT_WRAP = (arith.MaxSIOp, arith.MinSIOp)


def integer(cls: type[Operation], left: SSAValue, right: SSAValue) -> Operation:
    """An operation of two integers of 64 bits, which wraps where it can."""
    properties: dict[str, Attribute] = {} if cls in _DO_NOT_WRAP else WRAPS
    return cls.create(operands=(left, right), result_types=(i64,), properties=properties)


class OpWriter:
    """Writes ops in front of one, or at the end of a block."""

    def __init__(self, before: Operation) -> None:
        self._before = before
        self._wholes: dict[int, SSAValue] = {}

    @staticmethod
    def behind(value: SSAValue) -> OpWriter:
        """Writes behind where a value is defined."""
        owner = value.owner
        before = owner.first_op if isinstance(owner, Block) else owner.next_op
        assert before is not None
        return OpWriter(before)

    @property
    def anchor(self) -> Operation:
        """The op in front of which everything is written."""
        return self._before

    def before(self, op: Operation) -> None:
        """Writes an op, of whatever number of results."""
        assert self._before.parent is not None
        self._before.parent.insert_op_before(op, self._before)

    def put(self, op: Operation) -> SSAValue:
        """Writes an op; its result."""
        self.before(op)
        return op.results[0]

    def number(self, value: float) -> SSAValue:
        """A constant."""
        return self.put(constant(value, f64))

    def real(self, cls: type[Operation], a: SSAValue, b: SSAValue, *, reassociate: bool = False) -> SSAValue:
        """An operation of two reals."""
        properties = {"fastmath": REASSOCIATE} if reassociate else _NO_FASTMATH
        return self.put(cls.create(operands=(a, b), result_types=(f64,), properties=properties))

    def whole(self, value: int) -> SSAValue:
        """A constant integer, written once."""
        if value not in self._wholes:
            self._wholes[value] = self.put(constant(value, i64))
        return self._wholes[value]

    def trip_count(self, lower: SSAValue, upper: SSAValue) -> SSAValue:
        """How often a loop by steps of 1 runs."""
        return self.put(integer(arith.MaxSIOp, self.put(integer(arith.SubiOp, upper, lower)), self.whole(0)))

    def where_it_runs(self, loop: scf.ForOp) -> OpWriter:
        """Writes a branch that is taken if a loop has an iteration; a writer inside."""
        end = scf.YieldOp()
        arms = (Block([end]), Block([scf.YieldOp()]))
        condition = self.compare_integers("slt", loop.lb, loop.ub)
        self.before(scf.IfOp.create(operands=(condition,), regions=[Region(arm) for arm in arms]))
        return OpWriter(end)

    def compare_integers(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether an integer is as compared with another one."""
        properties = {"predicate": CMPI[predicate]}
        return self.put(arith.CmpiOp.create(operands=(a, b), result_types=(i1,), properties=properties))

    def compare(self, predicate: str, a: SSAValue, limit: float) -> SSAValue:
        """Whether a real is as compared with a number."""
        properties = {"predicate": CMPF[predicate], **_NO_FASTMATH}
        return self.put(
            arith.CmpfOp.create(operands=(a, self.number(limit)), result_types=(i1,), properties=properties)
        )

    def both(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """Whether all conditions hold."""
        found = conditions[0]
        for condition in conditions[1:]:
            found = self.put(arith.AndIOp.create(operands=(found, condition), result_types=(i1,)))
        return found

    def where(self, conditions: Sequence[SSAValue], value: SSAValue, otherwise: float) -> SSAValue:
        """A real where all conditions hold, else a number."""
        if not conditions:
            return value
        operands = (self.both(conditions), value, self.number(otherwise))
        return self.put(arith.SelectOp.create(operands=operands, result_types=(f64,)))


@record
class BlockEnd:
    """Writes at the end of a block that has no terminator yet."""

    block: Block

    def put(self, op: Operation) -> SSAValue:
        """Writes an op; its result."""
        self.block.add_op(op)
        return op.results[0]

    def put_op(self, op: Operation) -> None:
        """Writes an op."""
        self.block.add_op(op)
