"""Where the reverse sweep finds the values of the forward sweep.

Reverse code that stands in the same block as its forward code, or inside it, uses forward values as they are. Reverse
code of a loop or branch that ran before has a *replay* frame: a value it needs is, in this order, recomputed if that is
cheap, read again from memory that has not changed, or kept by the forward sweep: in an array sized by the trip count
of the innermost loop, in a slot of the stack frame outside of loops, in a record of the var stack in a `while`.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.library.costs import FunctionCost
from ulam.library.functions import function
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, block_of, is_before, terminator
from ulam.passes.autodiff.activity import Activity
from ulam.passes.builder import Builder
from ulam.passes.loops.effects import PURE, viewed, written_buffers
from ulam.passes.rewriting import applied_to

_RECOMPUTED = PURE - {arith.DivfOp, rt.MathOp, ad.PopOp}
"""Pure ops that cost less than keeping their result. A record is popped once."""


@record(eq=False)
class ReverseFrame:
    """The reverse code of one forward block, `source`, being written to `block`.

    `adjoints`: scalar value → its adjoint so far. `replay`: the reverse code runs after, and apart from, `source`.
    A replayed loop body has `position` (of the iteration, from 0) and `loop`, the forward op.
    """

    source: Block
    block: Block
    parent: ReverseFrame | None
    replay: bool = False
    loop: Operation | None = None
    position: SSAValue | None = None
    adjoints: dict[SSAValue, SSAValue] = field(default_factory=dict)
    values: dict[SSAValue, SSAValue] = field(default_factory=dict)
    forward_trip: SSAValue | None = None
    forward_position: SSAValue | None = None
    pushed: list[tuple[SSAValue, Operation]] = field(default_factory=list)  # of a while: value, stand-in for its copy


class Memory:
    """Answers whether memory still holds what the forward sweep read."""

    def __init__(self, activity: Activity) -> None:
        self.activity = activity

    def is_stable(self, buffer: SSAValue, op: Operation) -> bool:
        """Whether nothing writes to `buffer` after `op`."""
        owner = buffer.owner
        if isinstance(owner, rt.AllocOp) and "stack" in owner.properties:
            return False  # a slot of reverse mode's own, written again in every iteration
        key = self.activity.class_of(buffer)
        roots = self.activity.roots.get(key, [])
        writers = self.activity.writers.get(key, ())
        for root in roots:
            if not isinstance(root, rt.AllocOp) or root.variable is None:
                continue
            block = root.parent
            assert block is not None
            here = ancestor_in(op, block)
            if here is None:
                return False
            for writer in writers:
                if not _may_write(writer, root):
                    continue
                there = ancestor_in(writer, block)
                if there is None or there is here or is_before(here, there):
                    return False
        return True


def _may_write(writer: Operation, root: rt.AllocOp) -> bool:
    """Whether an op that writes to a buffer of the root's class may write to the root's memory."""
    for buffer in written_buffers(writer):
        owner = viewed(buffer).owner
        if owner is root or not isinstance(owner, rt.AllocOp):
            return True
    return False


class Keeper:
    """Gives reverse code the values it needs, adding to the forward code what has to be kept."""

    def __init__(self, builder: Builder, memory: Memory) -> None:
        self.builder = builder
        self.memory = memory

    def need(self, value: SSAValue, frame: ReverseFrame) -> SSAValue:
        """`value`, a value of the forward sweep, for use in the code of `frame`."""
        home = block_of(value)
        current: ReverseFrame | None = frame
        while current is not None and not (current.replay and current.source is home):
            current = current.parent
        if current is None:
            return value
        if (found := current.values.get(value)) is None:
            found = current.values[value] = self._replayed(value, current)
        return found

    def _replayed(self, value: SSAValue, frame: ReverseFrame) -> SSAValue:
        if isinstance(value, BlockArgument):
            return self._kept(value, frame)
        op = value.owner
        assert isinstance(op, Operation)
        if not op.regions and self._can_repeat(op):
            operands = [self.need(operand, frame) for operand in op.operands]
            copy = applied_to(op, operands)
            frame.block.add_op(copy)
            copy.results[0].name_hint = value.name_hint
            return copy.results[op.results.index(value)] if len(op.results) > 1 else copy.results[0]
        return self._kept(value, frame)

    def _can_repeat(self, op: Operation) -> bool:
        if type(op) in _RECOMPUTED:
            return True
        if isinstance(op, rt.MathOp):
            return function(op.function.data).cost is not FunctionCost.CALL
        return isinstance(op, rt.LoadOp) and self.memory.is_stable(op.buffer, op)

    # ------------------------------------------------------------ keeping

    def _kept(self, value: SSAValue, frame: ReverseFrame) -> SSAValue:
        loop_frame: ReverseFrame | None = frame
        while loop_frame is not None and loop_frame.loop is None:
            loop_frame = loop_frame.parent if loop_frame.replay else None
        if loop_frame is None or not loop_frame.replay:
            return self._kept_in_stack_slot(value, frame)
        if loop_frame.position is None:
            return self._pushed(value, frame, loop_frame)
        return self._kept_in_array(value, frame, loop_frame)

    def _kept_in_array(self, value: SSAValue, frame: ReverseFrame, loop_frame: ReverseFrame) -> SSAValue:
        loop = loop_frame.loop
        assert loop is not None and loop.parent is not None and loop_frame.position is not None
        stored, store_ops = self._storable(value)
        trip = loop_frame.forward_trip
        assert trip is not None
        array_op = rt.AllocOp(trip, rt.BufferType(stored.type), location=loop.location)
        loop.parent.insert_op_before(array_op, loop)
        array = array_op.res
        assert loop_frame.forward_position is not None
        keep = ad.KeepOp(array, loop_frame.forward_position, stored)
        _insert_after_definition(value, [*store_ops, keep], loop_frame.forward_position)
        outer = loop_frame.parent
        assert outer is not None
        there = self.need(array, outer)
        kept = ad.KeptOp(there, loop_frame.position)
        frame.block.add_op(kept)
        return self._restored(kept.res, value.type, frame.block)

    def _kept_in_stack_slot(self, value: SSAValue, frame: ReverseFrame) -> SSAValue:
        load = self._store_in_slot(value)
        frame.block.add_op(load)
        return self._restored(load.res, value.type, frame.block)

    def _store_in_slot(self, value: SSAValue) -> rt.LoadOp:
        """Puts a value into a slot of the stack frame where it is defined; the load, which has no place yet."""
        stored, store_ops = self._storable(value)
        slot_op = rt.AllocOp(self.builder.i64(1), rt.BufferType(stored.type), stack=True)
        self.builder.at_start(slot_op)
        zero = self.builder.i64(0)
        store = rt.StoreOp(stored, slot_op.res, zero, initial=True)
        _insert_after_definition(value, [*store_ops, store], None)
        return rt.LoadOp(slot_op.res, zero)

    def _pushed(self, value: SSAValue, frame: ReverseFrame, loop_frame: ReverseFrame) -> SSAValue:
        """A value of a while's body: goes into the record of the iteration."""
        if frame is not loop_frame:
            # Not at the top level of the body: over a stack slot to its end.
            load = self._store_in_slot(value)
            end = terminator(loop_frame.source)
            loop_frame.source.insert_op_before(load, end)
            stand_in = self._stand_in(load.res, loop_frame)
            return self._restored(stand_in, value.type, frame.block)
        stored, store_ops = self._storable(value)
        if store_ops:
            _insert_after_definition(value, store_ops, None)
        return self._restored(self._stand_in(stored, loop_frame), value.type, frame.block)

    def _stand_in(self, value: SSAValue, loop_frame: ReverseFrame) -> SSAValue:
        """Stands for what the record of the iteration will give, until the record is known to be complete."""
        op = rt.BoundOp(-1, value.type)
        loop_frame.pushed.append((value, op))
        return op.results[0]

    def _storable(self, value: SSAValue) -> tuple[SSAValue, list[Operation]]:
        """i1 is kept as a byte."""
        if value.type != i1:
            return value, []
        wide = arith.ExtUIOp.create(operands=(value,), result_types=(i8,))
        return wide.results[0], [wide]

    def _restored(self, stored: SSAValue, type_: Attribute, block: Block) -> SSAValue:
        if type_ != i1:
            return stored
        narrow = arith.TruncIOp.create(operands=(stored,), result_types=(i1,))
        block.add_op(narrow)
        return narrow.results[0]


def pop_record(frame: ReverseFrame, record: SSAValue) -> SSAValue:
    """Pops what was pushed for `frame` at its start, in place of the stand-ins; returns the record below."""
    types = [record.type, *(value.type for value, _ in frame.pushed)]
    pop = ad.PopOp(record, types)
    first = frame.block.first_op
    if first is not None:
        frame.block.insert_op_before(pop, first)
    else:
        frame.block.add_op(pop)
    for (_, stand_in), popped in zip(frame.pushed, pop.results[1:], strict=True):
        stand_in.results[0].replace_all_uses_with(popped)
    return pop.results[0]


def _insert_after_definition(value: SSAValue, ops: list[Operation], also_after: SSAValue | None) -> None:
    """Puts ops right behind where `value` is defined, and behind `also_after` if that is in the same block."""
    owner = value.owner
    if isinstance(owner, Block):
        anchor: Operation | None = None
        block = owner
    else:
        anchor = owner
        assert owner.parent is not None
        block = owner.parent
    if also_after is not None and isinstance(also_after.owner, Operation) and also_after.owner.parent is block:
        other = also_after.owner
        if anchor is None or is_before(anchor, other):
            anchor = other
    if anchor is not None:
        block.insert_ops_after(ops, anchor)
    else:
        assert block.first_op is not None
        block.insert_ops_before(ops, block.first_op)
