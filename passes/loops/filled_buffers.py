"""Loops whose only purpose is to fill a buffer that other loops read, element by element.

for n: mu[n] = a + b * x[n]          for n: target += f(y[n], mu[n])
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import ancestor_in
from ulam.passes.loops.effects import PURE, UNKNOWN, Root, kernel_buffers, root, viewed, written_roots_within


def loops_around(op: Operation, block: Block | None) -> list[scf.ForOp]:
    """The loops between an op and a block, the outermost first; none if there is something else."""
    found: list[scf.ForOp] = []
    current = op
    while current.parent is not block:
        parent = current.parent_op()
        if not isinstance(parent, scf.ForOp):
            return []
        found.append(parent)
        current = parent
    return found[::-1]


def covers(filler: scf.ForOp, row: scf.ForOp) -> bool:
    """Whether one loop runs for all that another one does, which may be a strip of it."""
    if constant_integer(filler.step) != 1 or constant_integer(row.step) != 1:
        return False
    begins = is_same_integer(filler.lb, row.lb) or _is_at_least(row.lb, constant_integer(filler.lb))
    return begins and _is_at_most(row.ub, filler.ub, from_zero=_is_at_least(filler.lb, 0))


def _is_at_least(value: SSAValue, least: int | None) -> bool:
    """Whether an integer is known to be no less than a number."""
    if least is None:
        return False
    if (known := constant_integer(value)) is not None:
        return known >= least
    op = value.owner
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        return isinstance(loop, scf.ForOp) and value.index == 0 and _is_at_least(loop.lb, least)
    return (
        isinstance(op, (arith.AddiOp, arith.MuliOp))
        and least <= 0
        and all(_is_at_least(operand, 0) for operand in op.operands)
    )


def _is_at_most(value: SSAValue, most: SSAValue, *, from_zero: bool) -> bool:
    """Whether a loop up to one number ends where one up to another does, or before; `from_zero`: they begin at 0, or
    behind, so that numbers below are all the same.
    """
    op = value.owner
    ends = [value, *(op.operands if isinstance(op, arith.MinSIOp) else ())]
    if from_zero:
        ends, most = list(map(not_clamped, ends)), not_clamped(most)
    return any(is_same_integer(end, most) for end in ends)


def fills_alone(filler: scf.ForOp, reader: scf.ForOp) -> bool:
    """Whether all that a nest does is to store in memory that only another one reads, behind it, in its block or in a
    branch there; and nothing between them writes to what it reads. It may give flags that are only tested (`tests_of`).
    """
    ancestor = None if filler.parent is None else ancestor_in(reader, filler.parent)
    if ancestor is None or not is_behind(ancestor, filler):
        return False
    if filler.results and (reader is not ancestor or tests_of(filler) is None):
        return False
    read: set[Root] = set()
    for op in ops_within(filler):
        if isinstance(op, rt.LoadOp):
            read.add(root(op.buffer))
        elif isinstance(op, (rt.StoreOp, ad.AccumulateOp)):
            alloc = viewed(op.buffer).owner
            if not isinstance(alloc, rt.AllocOp) or alloc.parent is not filler.parent:
                return False
            loads = [user for user in users(alloc) if user is not op and not is_overwritten(user, filler)]
            if not all(isinstance(user, rt.LoadOp) and reader.is_ancestor(user) for user in loads):
                return False
        elif type(op) not in PURE and not isinstance(op, (scf.ForOp, scf.YieldOp)):
            return False
    return not are_changed(read, filler, ancestor)


def fills_before(filler: scf.ForOp, reader: scf.ForOp) -> bool:
    """Whether what a nest stores would be the same if another one, behind it in its block, computed it."""
    return is_behind(reader, filler) and not is_changed(filler, reader)


def is_changed(filler: scf.ForOp, reader: Operation) -> bool:
    """Whether what stands between a nest and an op behind it writes to memory that the nest reads."""
    read: set[Root] = {root(op.buffer) for op in ops_within(filler) if isinstance(op, rt.LoadOp)}
    return are_changed(read, filler, reader)


def are_changed(read: set[Root], filler: Operation, reader: Operation) -> bool:
    """Whether what stands between two ops writes to memory that one of them reads."""
    between = filler.next_op
    while between is not None and between is not reader:
        written = changed_by(between)
        if UNKNOWN in written or UNKNOWN in read or not written.isdisjoint(read):
            return True
        between = between.next_op
    return False


def stays_until(read: set[Root], filler: Operation, reader: Operation) -> bool:
    """Whether a nest stands behind an op, in its block or in a branch there, and nothing until its end writes to memory
    that the op reads."""
    ancestor = None if filler.parent is None else ancestor_in(reader, filler.parent)
    if ancestor is None or not is_behind(ancestor, filler) or are_changed(read, filler, ancestor):
        return False
    return changed_by(ancestor).isdisjoint({*read, UNKNOWN})


def changed_by(op: Operation) -> set[Root]:
    """Memory that an op may write: not what it reads alone, if it is a kernel."""
    written = set(written_roots_within(op))
    if not isinstance(op, rt.KernelOp):
        return written
    reads, writes = kernel_buffers(op)
    return written - ({root(buffer) for buffer in reads} - {root(buffer) for buffer in writes})


def tests_of(loop: scf.ForOp) -> list[Operation] | None:
    """Checks of what a loop gives, which may as well be later, and what they are computed by, in order; None if
    something else uses it.
    """
    found: set[Operation] = set()
    pending = list(loop.results)
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            is_check = isinstance(op, rt.CheckOp) and rt.HarmlessAttr.marks(op)
            if op.parent is not loop.parent or not (is_check or type(op) in PURE):
                return None
            if op not in found:
                found.add(op)
                pending += op.results
    ordered: list[Operation] = []
    op = loop.next_op
    while op is not None and len(ordered) < len(found):
        if op in found:
            ordered.append(op)
        op = op.next_op
    return ordered


def is_behind(op: Operation, other: Operation) -> bool:
    """Whether an op of a block follows another one of it."""
    following = other.next_op
    while following is not None and following is not op:
        following = following.next_op
    return following is op


def is_overwritten(op: Operation, filler: scf.ForOp) -> bool:
    """Whether an op writes to memory ahead of the nest that fills what is read of it."""
    return isinstance(op, (rt.FillOp, rt.StoreOp)) and is_behind(filler, op)


def users(alloc: rt.AllocOp, *, views: bool = False) -> list[Operation]:
    """What uses memory, and views of it; the views, too, if they are asked for."""
    found: list[Operation] = []
    pending: list[SSAValue] = [alloc.res]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, rt.ViewOp):
                pending.append(op.res)
            if views or not isinstance(op, rt.ViewOp):
                found.append(op)
    return found


def only_loaded_and_written(alloc: rt.AllocOp) -> bool:
    return all(isinstance(user, (rt.LoadOp, rt.StoreOp, rt.FillOp, ad.AccumulateOp)) for user in users(alloc))


def same_index(one: SSAValue, other: SSAValue, moved: tuple[SSAValue, SSAValue]) -> bool:
    """Whether two indices are the same function of two variables."""
    if one is moved[0] or other is moved[1]:
        return one is moved[0] and other is moved[1]
    if one is other or is_same_integer(one, other):
        return True
    first, second = one.owner, other.owner
    if isinstance(first, Block) or isinstance(second, Block) or type(first) is not type(second):
        return False
    if not isinstance(first, (arith.AddiOp, arith.SubiOp)):
        return False
    return all(same_index(a, b, moved) for a, b in zip(first.operands, second.operands, strict=True))
