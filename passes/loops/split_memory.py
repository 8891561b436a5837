"""Memory whose parts nothing touches together becomes memory of its own for each part.

    m = alloc 2 * N                                 m0 = alloc N
    v = m from N on                                 m1 = alloc N
    for n: m[n] = a + b * x[n]              →       for n: m0[n] = a + b * x[n]
    for n: v[n] = c + d * x[n]                      for n: m1[n] = c + d * x[n]

A matrix of predictors, a column for each outcome, or an array of vectors: each is as if it had been declared alone,
and has the layouts of the statement that reads it. Only where the program says how many parts there are, and each
access lies in one of them.

Idea: scalar replacement of aggregates, whose elements are vectors here.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, discard, replace_uses

_MOST = 16
"""Parts that memory may have."""


@record(frozen=True)
class SplitMemory(FunctionPass):
    """Takes memory apart, of all functions or of the one that is named."""

    name = "split-memory"

    def changes_function(self, function: func.FuncOp) -> bool:
        allocs = [op for op in ops_within(function) if type(op) is rt.AllocOp]
        found = [parts for alloc in allocs if (parts := _Parts.of(alloc)) is not None]
        for parts in found:
            parts.split()
            remark_on(self.name, parts.alloc, f"it is split into {parts.number} parts", done=True)
        return bool(found)


@record
class _Access:
    """A load or store of an element of a part, a view of it, or what fills all parts (-1)."""

    op: Operation
    part: int
    index: SSAValue | None = None
    """Within the part; None of views and of fills."""


@record
class _Parts:
    """Memory of several parts of one size."""

    alloc: rt.AllocOp
    size: SSAValue
    number: int
    accesses: list[_Access]

    @staticmethod
    def of(alloc: rt.AllocOp) -> _Parts | None:
        """The parts of memory; None if something touches several."""
        count = alloc.count.owner
        if not isinstance(count, arith.MuliOp):
            return None
        for size, factor in ((count.lhs, count.rhs), (count.rhs, count.lhs)):
            number = constant_integer(factor)
            if number is None or not 1 < number <= _MOST or constant_integer(size) is not None:
                continue
            parts = _Parts(alloc, size, number, [])
            if all(parts._add(use.operation) for use in alloc.res.uses):
                return parts
        return None

    def _add(self, op: Operation) -> bool:
        """Notes what uses the memory; whether it touches one part, or fills all."""
        if isinstance(op, rt.FillOp) and op.count is self.alloc.count:
            self.accesses.append(_Access(op, -1))
            return True
        if isinstance(op, rt.ViewOp):
            part = self._part_from(op.offset)
            self.accesses.append(_Access(op, part or 0))
            return part is not None and all(self._is_of_view(use.operation, op) for use in op.res.uses)
        if (index := _index_of(op)) is None or op.operands[_buffer_of(op)] is not self.alloc.res:
            return False
        places = [(0, index)]
        if isinstance(sum_ := index.owner, arith.AddiOp):
            starts = [(self._part_from(one), other) for one, other in (sum_.operands, sum_.operands[::-1])]
            places += [(part, other) for part, other in starts if part is not None]
        for part, inside in places:
            if self._is_in_part(inside):
                self.accesses.append(_Access(op, part, inside))
                return True
        return False

    def _is_of_view(self, op: Operation, view: rt.ViewOp) -> bool:
        """Whether an op touches an element of the part that a view begins with."""
        index = _index_of(op)
        return index is not None and op.operands[_buffer_of(op)] is view.res and self._is_in_part(index)

    def _part_from(self, offset: SSAValue) -> int | None:
        """The part that begins at an offset."""
        part = constant_integer(offset)
        if part is None and not_clamped(offset) is not_clamped(self.size):
            return 1
        if isinstance(product := offset.owner, arith.MuliOp):
            for size, factor in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
                if not_clamped(size) is not_clamped(self.size) and (number := constant_integer(factor)) is not None:
                    return number if 0 <= number < self.number else None
        return part if part == 0 else None

    def _is_in_part(self, index: SSAValue) -> bool:
        """Whether an index is the number of an iteration of a loop over a part."""
        loop = index.owner.parent_op() if isinstance(index, BlockArgument) and index.index == 0 else None
        if not isinstance(loop, scf.ForOp) or constant_integer(loop.step) != 1:
            return False
        begin = constant_integer(loop.lb)
        return begin is not None and begin >= 0 and not_clamped(loop.ub) is not_clamped(self.size)

    def split(self) -> None:
        """Gives each part memory of its own."""
        write = OpWriter(self.alloc)
        parts = [write.put(applied_to(self.alloc, (self.size,))) for _ in range(self.number)]
        for access in self.accesses:
            op = access.op
            if isinstance(op, rt.FillOp):
                fill = OpWriter(op)
                for part in parts:
                    fill.before(applied_to(op, (part, op.value, self.size)))
                discard(op)
            elif isinstance(op, rt.ViewOp):
                replace_uses(op.res, parts[access.part])
                discard(op)
            else:
                new = {self.alloc.res: parts[access.part], _index_of(op): access.index}
                op.operands = [new.get(operand) or operand for operand in op.operands]
        discard(self.alloc)


def _index_of(op: Operation) -> SSAValue | None:
    """The index of an access; None if it is none."""
    if isinstance(op, rt.LoadOp | rt.StoreOp | ad.AccumulateOp):
        return op.operands[_buffer_of(op) + 1]
    return None


def _buffer_of(op: Operation) -> int:
    """Which operand of an access is the memory."""
    return 1 if isinstance(op, rt.StoreOp) else 0
