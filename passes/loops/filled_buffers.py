"""Loops whose only purpose is to fill a buffer that other loops read, element by element.

for n: mu[n] = a + b * x[n]          for n: target += f(y[n], mu[n])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import ancestor_in, is_before, is_inside
from ulam.passes.loops.effects import PURE, UNKNOWN, Root, changed_roots_within, kernel_buffers, overlap, root, viewed


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


def fills_alone(filler: scf.ForOp, reader: scf.ForOp, changes: MemoryChanges) -> bool:
    """Whether `fills_memory_of` is so, and nothing else reads the memory. The nest may give flags that are only tested
    (`tests_of`).
    """
    if filler.results:
        ancestor = None if filler.parent is None else ancestor_in(reader, filler.parent)
        if reader is not ancestor or tests_of(filler) is None:
            return False
    return fills_memory_of(filler, reader, changes) and all(
        isinstance(user, rt.LoadOp) and reader.is_ancestor(user)
        for alloc in memory_filled_by(filler)
        for user in walk_users(alloc)
        if not filler.is_ancestor(user) and not is_overwritten(user, filler)
    )


def fills_memory_of(filler: scf.ForOp, reader: scf.ForOp, changes: MemoryChanges) -> bool:
    """Whether all that a nest does is to store in memory that another one reads, behind it, in its block or in a
    branch there; nothing else writes to it since, and nothing between them to what it is computed of. Others may read
    it, too.
    """
    ancestor = None if filler.parent is None else ancestor_in(reader, filler.parent)
    if ancestor is None or not is_behind(ancestor, filler):
        return False
    read: set[Root] = set()
    stored: set[Root] = set()
    for op in ops_within(filler):
        if isinstance(op, rt.LoadOp):
            read.add(root(op.buffer))
        elif isinstance(op, (rt.StoreOp, ad.AccumulateOp)):
            alloc = viewed(op.buffer).owner
            if not isinstance(alloc, rt.AllocOp) or alloc.parent is not filler.parent:
                return False
            if not all(writer is op or is_overwritten(writer, filler) for writer in changes.writers(alloc)):
                return False
            stored.add(alloc.res)
        elif type(op) not in PURE and not isinstance(op, (scf.ForOp, scf.YieldOp)):
            return False
    return stored.isdisjoint(read) and not are_changed(read, filler, ancestor, changes)


def memory_filled_by(filler: scf.ForOp) -> list[rt.AllocOp]:
    """The memory of outside that a nest stores in."""
    stores = [op for op in ops_within(filler) if isinstance(op, (rt.StoreOp, ad.AccumulateOp))]
    buffers = [op.operands[1] if isinstance(op, rt.StoreOp) else op.operands[0] for op in stores]
    owners = dict.fromkeys(viewed(buffer).owner for buffer in buffers if not is_inside(buffer, filler))
    return [owner for owner in owners if isinstance(owner, rt.AllocOp)]


def only_reads(op: Operation, alloc: rt.AllocOp) -> bool:
    """Whether an op that uses memory only reads it."""
    if isinstance(op, rt.LoadOp):
        return True
    if isinstance(op, rt.CopyOp):
        return viewed(op.destination) is not alloc.res
    return isinstance(op, rt.KernelOp) and all(viewed(buffer) is not alloc.res for buffer in kernel_buffers(op)[1])


def fills_before(filler: scf.ForOp, reader: scf.ForOp, changes: MemoryChanges) -> bool:
    """Whether what a nest stores would be the same if another one, behind it in its block, computed it."""
    return is_behind(reader, filler) and not is_changed(filler, reader, changes)


def is_changed(filler: scf.ForOp, reader: Operation, changes: MemoryChanges | None = None) -> bool:
    """Whether what stands between a nest and an op behind it writes to memory that the nest reads."""
    read: set[Root] = {root(op.buffer) for op in ops_within(filler) if isinstance(op, rt.LoadOp)}
    return are_changed(read, filler, reader, changes)


def are_changed(read: set[Root], filler: Operation, reader: Operation, changes: MemoryChanges | None = None) -> bool:
    """Whether what stands between two ops writes to memory that one of them reads."""
    changed_in = changed_roots_within if changes is None else changes.roots
    between = filler.next_op
    while between is not None and between is not reader:
        if overlap(changed_in(between), read):
            return True
        between = between.next_op
    return False


def stays_until(read: set[Root], filler: Operation, reader: Operation) -> bool:
    """Whether a nest stands behind an op, in its block or in a branch there, and nothing until its end writes to memory
    that the op reads."""
    ancestor = None if filler.parent is None else ancestor_in(reader, filler.parent)
    if ancestor is None or not is_behind(ancestor, filler) or are_changed(read, filler, ancestor):
        return False
    return changed_roots_within(ancestor).isdisjoint({*read, UNKNOWN})


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
    return is_before(other, op)


def is_overwritten(op: Operation, filler: scf.ForOp) -> bool:
    """Whether an op writes to memory ahead of the nest that fills what is read of it."""
    return isinstance(op, (rt.FillOp, rt.StoreOp)) and is_behind(filler, op)


def users(alloc: rt.AllocOp, *, views: bool = False) -> list[Operation]:
    """What uses memory, and views of it; the views, too, if they are asked for."""
    return list(walk_users(alloc, views=views))


def walk_users(alloc: rt.AllocOp, *, views: bool = False) -> Iterator[Operation]:
    """The same one after the other, for who may stop before the last: nothing may change meanwhile."""
    pending: list[SSAValue] = [alloc.res]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, rt.ViewOp):
                pending.append(op.res)
            if views or not isinstance(op, rt.ViewOp):
                yield op


class MemoryChanges:
    """What writes to memory, for many questions about one function: it is looked for once, not among all readers for
    each of them. Meanwhile others may begin to read, and ops of their own may do so with memory of their own.
    """

    def __init__(self) -> None:
        self._writers: dict[rt.AllocOp, list[Operation]] = {}
        self._roots: dict[Operation, set[Root]] = {}

    def writers(self, alloc: rt.AllocOp) -> list[Operation]:
        """What does something else with memory, or views of it, than to read it."""
        if alloc not in self._writers:
            self._writers[alloc] = [op for op in walk_users(alloc) if not only_reads(op, alloc)]
        return self._writers[alloc]

    def roots(self, op: Operation) -> set[Root]:
        """`changed_roots_within` of an op."""
        if op not in self._roots:
            self._roots[op] = changed_roots_within(op)
        return self._roots[op]


def only_read_and_written(alloc: rt.AllocOp) -> bool:
    """Whether nothing is done with memory but that elements are stored in it, or added to, and that it is read."""
    return are_elements(MemoryChanges().writers(alloc))


def are_elements(writers: Iterable[Operation]) -> bool:
    """Whether ops store elements or add to them."""
    return all(isinstance(op, (rt.StoreOp, rt.FillOp, ad.AccumulateOp)) for op in writers)


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
