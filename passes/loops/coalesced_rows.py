"""Nests of loops beside which there is one loop over all of their rows (`coalesce-loops`): whose layout decides.

    if rt.bound 12:  for r in 0:R: ...        the rows in one loop, of which passes find layouts
    else:            for j: for k: ...        the nest as it was
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt


def coalesced(loop: Operation) -> rt.CoalescedAttr | None:
    """The fact that a loop runs over all rows of a nest; None if it does not."""
    return _of_count(loop.ub) if isinstance(loop, scf.ForOp) else None


def _of_count(value: SSAValue) -> rt.CoalescedAttr | None:
    """The fact of a number of rows, perhaps one that is 0 where the loop does not run."""
    op = value.owner
    if isinstance(op, rt.BoundOp):
        return rt.CoalescedAttr.of(op)
    if isinstance(op, arith.SelectOp):
        return _of_count(op.lhs) or _of_count(op.rhs)
    return None


def is_of_layouts(condition: SSAValue) -> bool:
    """Whether layouts decide about a condition: it is not known before all of them are there."""
    return isinstance(condition.owner, rt.BoundOp) and rt.CoalescedAttr.marks(condition.owner)


def is_coalesced(nest: Operation) -> bool:
    """Whether there is one loop over all rows of a nest already, or the loop of a nest is that one."""
    around = nest.parent_op()
    while around is not None:
        if isinstance(around, scf.IfOp) and is_of_layouts(around.cond):
            return True
        around = around.parent_op()
    return False


def is_alone(loop: Operation, top: Block) -> bool:
    """Whether no part of what rows of a nest do is in another loop: then there is nothing but the nest beside it."""
    fact = coalesced(loop)
    if fact is None:
        return False
    reads = [op for op in top.ops if isinstance(op, rt.BoundOp) and rt.CoalescedAttr.of(op) == fact]
    return sum(op.res.type == i64 for op in reads) == 1


def claim(layout: rt.LayoutOp, loop: Operation) -> None:
    """Lets a layout of the rows of a loop decide."""
    if (fact := coalesced(loop)) is not None:
        fact.put(layout)
