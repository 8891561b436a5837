"""Tables that `bind` fills with what rows compute in the arm of a branch: other rows have no entry."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer, not_clamped
from ulam.passes.loops.index_forms import known
from ulam.passes.loops.row_loops import RowColumn


def clear_where_unread(columns: Sequence[RowColumn], loop: scf.ForOp, bind: Block) -> bool:
    """Whether columns are such a table, with room for each row of a loop, which then has 0 where nothing is written.

    So its rows can be compared and copied where they are, as if all of them read it.
    """
    column = columns[0]
    made = _made_for_slot(column.buffer, bind)
    if (
        len(columns) > 1
        or made is None
        or column.strides != ({(): 1},)
        or known(column.offset) != 0
        or constant_integer(loop.lb) != 0
        or not _is_in_slot(_end_of_rows(made.count), loop.ub, bind)
    ):
        return False
    following = made.next_op
    if not isinstance(following, rt.FillOp) or following.destination is not made.res:
        zero = constant(0, column.loads[0].res.type)
        bind.insert_ops_after([zero, rt.FillOp(made.res, zero.result, made.count, initial=True)], made)
    return True


def _made_for_slot(buffer: SSAValue, bind: Block) -> rt.AllocBoundOp | None:
    """The allocation at the top of `bind` whose memory a slot has that a buffer is read from."""
    if not isinstance(buffer.owner, rt.BoundOp):
        return None
    owner = next((op.value.owner for op in _set(bind, buffer.owner)), None)
    return owner if isinstance(owner, rt.AllocBoundOp) and owner.parent is bind else None


def _end_of_rows(count: SSAValue) -> SSAValue:
    """Where a loop from 0 ends that has so many iterations."""
    span = not_clamped(count)
    op = span.owner
    return op.lhs if isinstance(op, arith.SubiOp) and constant_integer(op.rhs) == 0 else span


def _is_in_slot(value: SSAValue, read: SSAValue, bind: Block) -> bool:
    """Whether what `evaluate` reads from a slot is a value of `bind`."""
    if value.type != i64 or not isinstance(read.owner, rt.BoundOp):
        return False
    of_bind = value.owner
    if isinstance(of_bind, rt.BoundOp) and of_bind.slot == read.owner.slot:
        return True
    return any(op.value is value for op in _set(bind, read.owner))


def _set(bind: Block, read: rt.BoundOp) -> list[rt.SetBoundOp]:
    """What gives a slot its value."""
    return [op for op in bind.ops if isinstance(op, rt.SetBoundOp) and op.slot == read.slot]
