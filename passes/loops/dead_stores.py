"""What is written to memory and written over before anybody reads it is not written.

    fill v, NaN                                   for n: store f(n), v[n]
    for n: store 0, v[n]; store f(n), v[n]   →

A variable that a program declares is NaN until loops have filled it. Whether they fill all of it is seen where one loop
runs over all elements and stores, in each iteration, the element of its number. Then other passes see memory that loops
hand on from one to the other, and nothing else.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import operand_tuple, ops_of, ops_within
from ulam.passes.loops.effects import UNKNOWN, Root, may_overlap, root
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import OpT, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class DeadStores(TellingPass):
    """Takes away what `evaluate` writes to memory and writes over before it is read."""

    name = "dead-stores"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        allocs = [op for op in ops_within(function) if isinstance(op, rt.AllocOp)]
        stores = [op for op in ops_within(function) if isinstance(op, rt.StoreOp)]
        return any([*map(_forget_fill, allocs), *map(_forget_store, stores)])


def _forget_fill(alloc: rt.AllocOp) -> bool:
    """Takes away a fill of memory that a loop fills anew; whether there was one."""
    fill = next((use.operation for use in alloc.res.uses if isinstance(use.operation, rt.FillOp)), None)
    block = alloc.parent
    if fill is None or block is None or fill.parent is not block or fill.count is not alloc.count:
        return False
    following = fill.next_op
    while following is not None and not _touches(following, alloc.res):
        following = following.next_op
    if not isinstance(following, scf.ForOp) or not _stores_all(following, alloc):
        return False
    discard(fill)
    return True


def _stores_all(loop: scf.ForOp, alloc: rt.AllocOp) -> bool:
    """Whether a loop stores each element before it does anything else with the memory."""
    if constant_integer(loop.lb) != 0 or constant_integer(loop.step) != 1:
        return False
    if not_clamped(loop.ub) is not not_clamped(alloc.count):
        return False
    first = next((op for op in loop.body.block.ops if _touches(op, alloc.res)), None)
    if not isinstance(first, rt.StoreOp) or first.buffer is not alloc.res or first.index is not loop.body.block.args[0]:
        return False
    others = [op for op in ops_within(loop.body.block) if op is not first and _accesses(op, alloc.res)]
    return all(isinstance(op, rt.LoadOp | rt.StoreOp) and op.index is first.index for op in others)


def _forget_store(store: rt.StoreOp) -> bool:
    """Takes away a store whose element the same block stores anew, before anything else may read it."""
    memory = root(store.buffer)
    following = store.next_op
    while following is not None:
        if isinstance(following, rt.StoreOp) and (following.buffer, following.index) == (store.buffer, store.index):
            discard(store)
            return True
        if not isinstance(memory, SSAValue) or _touches(following, memory):
            return False
        following = following.next_op
    return False


def forward_elements(body: Block) -> bool:
    """Lets what an iteration has stored be used where it loads it, and takes away what it then writes over unread;
    whether there was any."""
    found = False
    stored: dict[Root, rt.StoreOp] = {}
    """By its memory, the last store that nothing else has touched since."""
    for op in ops_of(body):
        if isinstance(op, rt.LoadOp | rt.StoreOp):
            before = stored.get(root(op.buffer))
            if before is not None and (op.buffer, op.index) == (before.buffer, before.index):
                found = True
                if isinstance(op, rt.LoadOp):
                    replace_uses(op.res, before.value)
                    discard(op)
                    continue
                discard(before)
        _forget_touched(stored, op)
        if isinstance(op, rt.StoreOp) and isinstance(memory := root(op.buffer), SSAValue):
            stored[memory] = op
    return found


def add_elements_once(body: Block) -> bool:
    """Lets an iteration add once to an element that it adds to several times, with nothing that reads it between;
    whether there is one."""
    found = False
    added: dict[Root, ad.AccumulateOp] = {}
    for op in ops_of(body):
        if isinstance(op, ad.AccumulateOp):
            before = added.get(root(op.buffer))
            if before is not None and (op.buffer, op.index) == (before.buffer, before.index):
                found = True
                total = OpWriter(op).real(arith.AddfOp, before.value, op.value, reassociate=True)
                op.operands = [op.buffer, op.index, total]
                discard(before)
        _forget_touched(added, op)
        if isinstance(op, ad.AccumulateOp) and isinstance(memory := root(op.buffer), SSAValue):
            added[memory] = op
    return found


def _forget_touched(last: dict[Root, OpT], op: Operation) -> None:
    """Forgets what is noted of memory that an op, or what is in its regions, gets."""
    for inner in ops_within(op) if last else ():
        for operand in operand_tuple(inner):
            if type(operand.type) is rt.BufferType:
                memory = root(operand)
                if memory is UNKNOWN:
                    last.clear()
                else:
                    last.pop(memory, None)


def _touches(op: Operation, memory: SSAValue) -> bool:
    """Whether an op, or what is in its regions, gets memory."""
    return _accesses(op, memory) or any(
        _accesses(inner, memory) for region in op.regions for block in region.blocks for inner in ops_within(block)
    )


def _accesses(op: Operation, memory: SSAValue) -> bool:
    return any(isinstance(o.type, rt.BufferType) and may_overlap(root(o), memory) for o in op.operands)
