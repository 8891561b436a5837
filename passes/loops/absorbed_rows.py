"""Loops over rows take in what a loop ahead has filled row by row for them alone.

    for n: mu[n, k] = f(n, k) for all k                   for n: m[k] = f(n, k) for all k
    for n: z = L^-1 (y[n] - mu[n]); target += ...    →           z = L^-1 (y[n] - m); target += ...

As `private-rows` has it, which leaves loops alone that call kernels.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import is_same_integer
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.effects import PURE, UNKNOWN, root, viewed, written_buffer, written_roots_within
from ulam.passes.loops.filled_buffers import is_behind, users
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.private_rows import take_inside
from ulam.passes.loops.row_memory import MemoryUses, places_of
from ulam.passes.rewriting import discard, replace_uses

_COMPUTES = (scf.ForOp, scf.YieldOp, rt.LoadOp, rt.AllocOp, rt.ViewOp)


def take_rows_of(memory: rt.AllocOp, loop: scf.ForOp, bound: dict[int, SSAValue]) -> bool:
    """Lets a loop fill memory that one ahead fills for it; whether it did."""
    block = memory.parent
    assert block is not None
    using = {ancestor_in(user, block) for user in users(memory)}
    around = [op for op in block.ops if op in using]
    loops = [op for op in around if isinstance(op, scf.ForOp)]
    others = [op for op in around if not isinstance(op, scf.ForOp)]
    if len(loops) < 2 or loops[-1] is not loop or not all(isinstance(op, rt.FillOp) for op in others):
        return False
    if not all(_is_range(filler, loop) for filler in loops[:-1]):
        return False
    _copy_by_loops(memory)
    for filler, following in zip(loops, loops[1:], strict=False):
        if not _take_in(memory, filler, following, bound):
            return False
    return take_inside(memory, bound)


def _take_in(memory: rt.AllocOp, filler: scf.ForOp, loop: scf.ForOp, bound: dict[int, SSAValue]) -> bool:
    """Lets a loop do first what one ahead of it does for the same row; whether it may."""
    uses = MemoryUses.of(memory)
    if uses is None:
        return False
    own = [access for access in uses.accesses if filler.is_ancestor(access.op) or loop.is_ancestor(access.op)]
    places = places_of(MemoryUses(uses.fill, own, [filler, loop]), bound)
    if isinstance(places, str) or not _may_wait(filler, loop, memory):
        return False
    body = loop.body.block
    begin = body.first_op
    assert begin is not None
    replace_uses(filler.body.block.args[0], body.args[0])
    for op in list(filler.body.block.ops)[:-1]:
        op.detach()
        body.insert_op_before(op, begin)
    filler.detach()
    filler.erase()
    return True


def _copy_by_loops(memory: rt.AllocOp) -> None:
    """Lets loops do what copies from and to memory do in other loops."""
    for op in [op for op in users(memory) if isinstance(op, rt.CopyOp) and op.parent is not memory.parent]:
        write = OpWriter(op)
        element, inside = new_loop(write, write.whole(0), op.count)
        value = inside.put(rt.LoadOp(op.source, element))
        inside.before(rt.StoreOp(value, op.destination, element, initial=op.initial is not None))
        discard(op)


def _is_range(one: scf.ForOp, other: scf.ForOp) -> bool:
    pairs = zip((one.lb, one.ub, one.step), (other.lb, other.ub, other.step), strict=True)
    return not one.results and all(is_same_integer(a, b) for a, b in pairs)


def _may_wait(filler: scf.ForOp, loop: scf.ForOp, memory: rt.AllocOp) -> bool:
    """Whether all that a loop does is to compute what memory holds, of what nothing changes before another loop."""
    read: set[object] = set()
    for op in ops_within(filler):
        if isinstance(op, rt.LoadOp):
            read.add(root(op.buffer))
        elif isinstance(op, (rt.StoreOp, ad.AccumulateOp)) and (buffer := written_buffer(op)) is not None:
            target = viewed(buffer)
            if target is not memory.res and not is_inside(target, filler):
                return False
        elif type(op) not in PURE and not isinstance(op, _COMPUTES):
            return False
    if not is_behind(loop, filler):
        return False
    between: Operation | None = filler.next_op
    while between is not None:
        written = written_roots_within(between)
        if UNKNOWN in written or UNKNOWN in read or not written.isdisjoint(read):
            return False
        if between is loop:
            return True
        between = between.next_op
    return False
