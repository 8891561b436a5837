"""What `bind` does for a loop that `sort-rows` has given another order of rows, for passes that may make it needless.

    mark; segment_rows(count, ...); y' = take(y, order); slot k = y'; release      slot k + 1 = y, ahead of it

is one range of ops: a pass that decides, from the data as they are, that no order is needed, puts the range behind its
decision and lets it have no rows.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.rewriting import discard, replace_uses

_ORDER = 7
"""Which argument of the kernel that makes an order gets it."""

NEEDLESS = "equal rows are computed once"
"""Why rows have no order of an index then; the last one of the reasons of `sort-rows`."""


@record(frozen=True)
class SortedColumns:
    """What `bind` does for a loop between its mark and where that is released."""

    block: Block
    ops: list[Operation]
    slots: frozenset[int]
    """Of the columns in their order; those behind have the columns as they are."""
    count: SSAValue

    @staticmethod
    def of(bind: Block, slot: int) -> SortedColumns | None:
        """What was written for the loop whose choice is in a slot; None if others need it where it is."""
        ops = _range_that_sets(slot, bind)
        inside = set(ops)
        others = [op for op in bind.ops if op not in inside]
        own, given = _set_by(ops), _set_by(others)
        reads = {op.slot.value.data for top in others for op in ops_within(top) if isinstance(op, rt.BoundOp)}
        movable = [op for op in ops if not _may_stay(op, own)]
        used = (use.operation for op in movable for result in op.results for use in result.uses)
        if not ops or reads & own.keys() or any(_at_top(op, bind) not in inside for op in used):
            return None
        count = next(op.operands[1] for op in ops if isinstance(op, rt.KernelOp) and op.function.data == "segment_rows")
        columns = frozenset(slot for slot in own if slot + 1 in given and slot + 1 not in own)
        return SortedColumns(bind, movable, columns, count)

    def put_behind(self, taken: SSAValue, order: SSAValue | None) -> None:
        """Puts all ahead of the first op that needs the columns in their order; without rows if `taken`.

        `order`: memory of as many ints as there are rows that nothing needs unless `taken`.
        """
        late: list[Operation] = []
        seen: set[SSAValue] = set()
        anchor: Operation | None = None
        inside = set(self.ops)
        for op in self.block.ops:
            is_read = isinstance(op, rt.BoundOp) and op.slot.value.data in self.slots
            if op in inside or not (is_read or any(value in seen for value in free_values_of_op(op))):
                continue
            if not isinstance(op, rt.BoundOp | rt.ViewOp):
                anchor = op
                break
            late.append(op)
            seen.update(op.results)
        decided = taken.owner
        assert isinstance(decided, Operation) and decided.parent is self.block
        anchor = anchor or decided.next_op
        assert anchor is not None
        zero, two = constant(0, i64), constant(2, i64)
        left = arith.SelectOp.create(operands=(taken, zero.result, self.count), result_types=(i64,))
        for use in list(self.count.uses):
            op = _at_top(use.operation, self.block)
            if op in inside and not isinstance(op, rt.LayoutOp):
                use.operation.operands[use.index] = left.results[0]
        if order is not None:
            self._write_order_to(order)
        for op in (*self.ops, *late):
            op.detach()
        self.block.insert_ops_before([zero, two, left, *self.ops, *late], anchor)
        for op in self.ops:
            if isinstance(op, rt.LayoutOp):
                why = arith.SelectOp.create(operands=(taken, two.result, op.outcome), result_types=(i64,))
                self.block.insert_op_before(why, op)
                op.operands[0] = why.results[0]

    def _write_order_to(self, memory: SSAValue) -> None:
        """Takes memory that is there for the order, which only the range needs."""
        kernel = next(op for op in self.ops if isinstance(op, rt.KernelOp) and op.function.data == "segment_rows")
        own = kernel.operands[_ORDER].owner
        assert isinstance(own, rt.AllocOp) and own in self.ops
        self.ops.remove(own)
        replace_uses(own.res, memory)
        discard(own)


def _range_that_sets(slot: int, bind: Block) -> list[Operation]:
    """From a mark to where it is released, with what sets the slot; nothing if there is none such."""
    ops: list[Operation] = []
    for op in bind.ops:
        if not ops and not isinstance(op, rt.MarkOp):
            continue
        ops.append(op)
        if isinstance(op, rt.ReleaseOp) and op.operands[0] is ops[0].results[0]:
            if slot in _set_by(ops):
                return ops
            ops = []
    return []


def _set_by(ops: list[Operation]) -> dict[int, SSAValue]:
    return {op.slot.value.data: op.operands[0] for op in ops if isinstance(op, rt.SetBoundOp)}


def _may_stay(op: Operation, slots: Collection[int]) -> bool:
    """Constants and data, which other ops may share."""
    return isinstance(op, arith.ConstantOp) or (isinstance(op, rt.BoundOp) and op.slot.value.data not in slots)


def _at_top(op: Operation, block: Block) -> Operation | None:
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current
