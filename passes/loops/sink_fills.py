"""Loops that fill memory which one arm of a branch reads alone stand in that arm.

    m = alloc N                                         if N > 0:
    for n: m[n] = a + b * x[n]                              m = alloc N
    if N > 0:                                    →          for n: m[n] = a + b * x[n]
        check ...                                           check ...
        for n: target += f(y[n], m[n])                      for n: target += f(y[n], m[n])

A statement of a vector, made of a loop (`loop-vectorization`), has such a branch where it looks at more than the loop
would without an iteration, and what it reads is filled ahead of it. In one block the loops become one (`loop-fusion`),
and are loops over the same rows for layouts of the data. Only branches of which data decide: what is computed is then
the same in all evaluations.

Kernels that only compute, as products of matrices, are moved as loops are.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_before
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE, UNKNOWN, Root, changed_roots_within, kernel_buffers, root, viewed
from ulam.passes.loops.filled_buffers import users
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.remarks import remark_on

_COMPUTES = (rt.LoadOp, rt.AllocOp, rt.ViewOp, scf.ForOp, scf.YieldOp)
_WRITES = (rt.StoreOp, rt.FillOp, rt.CopyOp, ad.AccumulateOp, rt.KernelOp)


@record(frozen=True)
class SinkFills(FunctionPass):
    """Moves loops that fill memory into the arm of a branch that alone reads it."""

    name = "sink-fills"

    def changes_function(self, function: func.FuncOp) -> bool:
        block = function.body.block
        branches = [op for op in block.ops if isinstance(op, scf.IfOp) and _has_loop(op)]
        if not branches:
            return False
        slices = DataSlices()
        return any([sink_into(branch) for branch in branches if slices.is_data(branch.cond)])


def _has_loop(branch: scf.IfOp) -> bool:
    return any(isinstance(op, scf.ForOp) for arm in branch.regions if arm.blocks for op in arm.block.ops)


def sink_into(branch: scf.IfOp) -> bool:
    """Moves what fills memory that one of the arms of a branch reads alone into it; whether there was anything."""
    changed = False
    while any([_sink_into_arm(region.block, branch) for region in branch.regions if region.blocks]):
        changed = True  # what is there now may read what others fill
    if changed:
        remark_on(SinkFills.name, branch, "what fills memory that one of its arms reads stands there", done=True)
    return changed


def _sink_into_arm(arm: Block, branch: scf.IfOp) -> bool:
    block = branch.parent
    assert block is not None
    memory = _memory_of(arm, branch, block)
    while unfit := _unfit(memory, branch, block, arm):
        memory = [alloc for alloc in memory if alloc not in unfit]
    begin = arm.first_op
    assert begin is not None
    moved = {*memory, *_fillers(memory, block, arm)}
    for op in [op for op in block.ops if op in moved]:
        op.detach()
        arm.insert_op_before(op, begin)
    return bool(memory)


def _unfit(memory: list[rt.AllocOp], branch: scf.IfOp, block: Block, arm: Block) -> list[rt.AllocOp]:
    """Memory that something fills which has to stay."""
    fillers = _fillers(memory, block, arm)
    stay = {op for op in fillers if not _may_move(op, fillers, memory, branch, arm)}
    return [alloc for alloc in memory if not stay.isdisjoint(_fillers([alloc], block, arm))]


def _memory_of(arm: Block, branch: scf.IfOp, block: Block) -> list[rt.AllocOp]:
    """Memory of the block that nothing behind the branch, and no other arm, reads, and loops of the arm do."""
    found: dict[rt.AllocOp, None] = {}
    for loop in arm.ops:
        if not isinstance(loop, scf.ForOp):
            continue
        for op in ops_within(loop):
            alloc = viewed(op.buffer).owner if isinstance(op, rt.LoadOp) else None
            if isinstance(alloc, rt.AllocOp) and alloc.parent is block:
                found[alloc] = None
    return [alloc for alloc in found if all(_is_ahead_or_in(op, arm, branch, block) for op in users(alloc, views=True))]


def _is_ahead_or_in(op: Operation, arm: Block, branch: scf.IfOp, block: Block) -> bool:
    if ancestor_in(op, arm) is not None:
        return True
    outermost = ancestor_in(op, block)
    return outermost is not None and outermost is not branch and is_before(outermost, branch)


def _fillers(memory: Iterable[rt.AllocOp], block: Block, arm: Block) -> list[Operation]:
    """What uses memory ahead of the branch."""
    found: dict[Operation, None] = {}
    for alloc in memory:
        for op in users(alloc, views=True):
            outermost = ancestor_in(op, block)
            if outermost is not None and ancestor_in(op, arm) is None:
                found[outermost] = None
    return list(found)


def _may_move(op: Operation, fillers: list[Operation], memory: list[rt.AllocOp], branch: scf.IfOp, arm: Block) -> bool:
    """Whether an op only fills memory that moves, of what nothing changes before the arm, which alone uses it."""
    for result in op.results:
        for use in result.uses:
            if use.operation not in fillers and ancestor_in(use.operation, arm) is None:
                return False
    read: set[Root] = set()
    for inner in ops_within(op):
        if isinstance(inner, rt.LoadOp):
            read.add(root(inner.buffer))
        elif isinstance(inner, _WRITES):
            inputs, outputs = _buffers(inner)
            read.update(root(buffer) for buffer in inputs)
            own = [viewed(buffer).owner for buffer in outputs]
            if not all(made in memory or (isinstance(made, rt.AllocOp) and op.is_ancestor(made)) for made in own):
                return False
            if isinstance(inner, rt.KernelOp) and (inner.throws is not None or KERNELS[inner.function.data].effects):
                return False
        elif type(inner) not in PURE and not isinstance(inner, _COMPUTES):
            return False
    if UNKNOWN in read:
        return False
    between = op.next_op
    while between is not None and between is not branch:
        if between not in fillers:
            written = changed_roots_within(between)
            if UNKNOWN in written or not written.isdisjoint(read):
                return False
        between = between.next_op
    return True


def _buffers(op: Operation) -> tuple[list[SSAValue], list[SSAValue]]:
    """The memory that an op reads and that it writes."""
    if isinstance(op, rt.KernelOp):
        return kernel_buffers(op)
    if isinstance(op, rt.CopyOp):
        return [op.source], [op.destination]
    return [], [op.operands[1] if isinstance(op, rt.StoreOp) else op.operands[0]]
