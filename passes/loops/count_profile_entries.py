"""Counts what the forward half of each profile region puts on the var stack.

Kept values are those of `ad.keep` and `ad.push`, and of slots of the stack frame: what the reverse half will read.
Others are the elements of containers, values and adjoints, that the region takes memory for. Counts are added up ahead
of time where that can be done: a loop that keeps the same in every iteration counts once, behind it.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.builder import WRAPS


class CountProfileEntries(ModulePass):
    """Counts what the forward half of each profile region keeps for the reverse half. Runs after `reverse-mode`."""

    name = "count-profile-entries"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                for begin in [o for o in ops_within(function) if type(o) is ad.ProfileBeginOp]:
                    if begin.reverse is None:
                        _count_region(begin)


def _count_region(begin: ad.ProfileBeginOp) -> None:
    """The body of the region's branch; of a region that is none, the ops between its begin and its end."""
    users = [use.operation for use in begin.res.uses]
    for branch in users:
        if isinstance(branch, scf.IfOp) and ad.ProfileAttr.marks(branch):
            body = branch.regions[0].block
            _count(list(body.ops), terminator(body))
            return
    end = next(user for user in users if isinstance(user, ad.ProfileEndOp))
    ops: list[Operation] = []
    op = begin.next_op
    while op is not None and op is not end:
        ops.append(op)
        op = op.next_op
    _count(ops, end)


def _count(ops: list[Operation], end: Operation) -> None:
    """Adds the counts of ops that stand in front of `end`, and of blocks inside, other regions excepted."""
    kept, others = 0, list[SSAValue]()
    for op in ops:
        kept += _kept(op)
        if isinstance(op, rt.AllocOp) and "stack" not in op.properties and not _holds_kept(op):
            others.append(op.count)
        if isinstance(op, scf.IfOp) and ad.ProfileAttr.marks(op):
            continue
        if isinstance(op, scf.ForOp) and (each := _each_iteration(op.body.block)) is not None:
            if each:
                _count_loop(op, each)
            continue
        for region in op.regions:
            for inner in region.blocks:
                _count(list(inner.ops), terminator(inner))
    if kept or others:
        assert end.parent is not None
        writer = _Writer(end.parent, end)
        total = writer.constant(0)
        for count in others:
            total = writer.op(arith.AddiOp, total, count)
        writer.entries(writer.constant(kept), total)


def _kept(op: Operation) -> int:
    """How many values an op keeps for the reverse half."""
    if isinstance(op, ad.KeepOp):
        return 1
    if isinstance(op, ad.PushOp):
        return len(op.values)
    is_slot = isinstance(op, rt.StoreOp) and isinstance(op.buffer.owner, rt.AllocOp)
    return int(is_slot and "stack" in op.operands[1].owner.properties)  # pyright: ignore[reportAttributeAccessIssue]


def _holds_kept(op: rt.AllocOp) -> bool:
    return any(isinstance(use.operation, ad.KeepOp) and use.index == 0 for use in op.res.uses)


def _each_iteration(block: Block) -> int | None:
    """How many values each iteration keeps; None if that varies, or if it takes memory."""
    kept = 0
    for op in block.ops:
        if op.regions or isinstance(op, rt.AllocOp | ad.ProfileBeginOp):
            return None
        kept += _kept(op)
    return kept


def _count_loop(loop: scf.ForOp, each: int) -> None:
    """Behind a loop of step 1: `each` for every iteration."""
    assert loop.parent is not None
    following = loop.next_op
    assert following is not None
    writer = _Writer(loop.parent, following)
    zero = writer.constant(0)
    trip = writer.op(arith.MaxSIOp, writer.op(arith.SubiOp, loop.ub, loop.lb), zero)
    writer.entries(writer.op(arith.MuliOp, trip, writer.constant(each)), zero)


class _Writer:
    """Writes in front of an op."""

    def __init__(self, block: Block, before: Operation) -> None:
        self.block = block
        self.before = before

    def constant(self, value: int) -> SSAValue:
        op = constant(value, i64)
        self.block.insert_op_before(op, self.before)
        return op.result

    def op(self, op_class: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        properties = {} if op_class is arith.MaxSIOp else WRAPS
        op = op_class.create(operands=(a, b), result_types=(i64,), properties=properties)
        self.block.insert_op_before(op, self.before)
        return op.results[0]

    def entries(self, kept: SSAValue, others: SSAValue) -> None:
        self.block.insert_op_before(ad.ProfileEntriesOp(kept, others), self.before)
