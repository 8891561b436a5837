"""Puts the `trace` ops into the clone of a function, where its table says (see `control_flow`).

At most three ops per op of the program (a guard before, a value after), two more where one draws random numbers, and
one per block. Linear.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan, trace
from ulam.dialects.walk import ops_within
from ulam.passes.errors import NotSupportedError
from ulam.tracing.instrument.flow import FlowBlock, TracedFunction
from ulam.tracing.instrument.graph import Item, ValueType
from ulam.tracing.instrument.names import value_type

BEFORE_ITEM, IN_ITEM = 0, 1
"""How far a block has got: twice the number of its ops that are over, and IN_ITEM if the next one runs; 1 is added, so
that 0 means that nothing was noted."""


MOST_HOOKED = 32
"""Numbers that a hook is called with: scalars, and of containers the address and the sizes."""


def instrument(traced: TracedFunction, most: int, callees: Mapping[str, str]) -> list[stan.FuncOp]:
    """The clone; of a higher-order function also that of what it calls.

    `most`: how many elements of a container are copied; `callees`: table of a call → what it calls.
    """
    return _Instrumenter(traced, most, callees).run()


def hook_values(op: Operation, value: SSAValue | None) -> list[tuple[SSAValue, ValueType]]:
    """What a hook after an op is called with: the operands that have a value, and the result."""
    found = [(v, value_type(v.type)) for v in (*op.operands, *([] if value is None else [value]))]
    return [(v, type_) for v, type_ in found if type_.slots]


class _Instrumenter:
    def __init__(self, traced: TracedFunction, most: int, callees: Mapping[str, str]) -> None:
        self.traced = traced
        self.most = most
        self.callees = callees
        written = [traced.function] if traced.called is None else [traced.function, traced.called]
        self.functions = [function.clone() for function in written]
        self.values: dict[SSAValue, SSAValue] = {}
        self.ops: dict[Operation, Operation] = {}
        self.blocks: dict[Block, Block] = {}
        for function, clone in zip(written, self.functions, strict=True):
            self._clone(function, clone)
        self.records: dict[FlowBlock, trace.BlockOp] = {}

    def _clone(self, function: stan.FuncOp, clone: stan.FuncOp) -> None:
        for old, new in zip(ops_within(function), ops_within(clone), strict=True):
            self.ops[old] = new
            self.values.update(zip(old.results, new.results, strict=True))
            for old_region, new_region in zip(old.regions, new.regions, strict=True):
                for old_block, new_block in zip(old_region.blocks, new_region.blocks, strict=True):
                    self.blocks[old_block] = new_block
                    self.values.update(zip(old_block.args, new_block.args, strict=True))

    def run(self) -> list[stan.FuncOp]:
        self.functions[0].properties["sym_name"] = StringAttr(self.traced.graph.symbol)
        if self.traced.called is not None:
            call = self.functions[0].body.block.first_op
            assert call is not None
            call.properties["callback"] = self.traced.called.sym_name
        for block in self.traced.blocks:
            if not block.silent:
                self._begin(block)
        for block, ordinal, item, op, value in self.traced.item_ops:
            if op is None:
                if item.slot is not None and value is not None:
                    self._keep(block, item.slot, item.type, None, value)
                continue
            if item.child:
                self._enter(op, self.callees.get(item.child, item.child))
            if item.throws:
                self._guard(block, 2 * ordinal + IN_ITEM, op)
            if item.stream is not None:
                self._count_draws(block, item.stream, op)
            if item.slot is not None and value is not None:
                self._keep(block, item.slot, item.type, op, value)
        for block, item, op in self.traced.additions:
            self._addition(block, item, op)
        for block, ordinal, op in self.traced.guards:
            self._guard(block, 2 * ordinal + BEFORE_ITEM, op)
        for _, op, value, number in self.traced.hooks:
            self._hook(op, value, number)
        for block, op in self.traced.returns:
            if block.made.ended >= 0:
                at = self.ops[op]
                assert at.parent is not None
                at.parent.insert_op_before(self._time(block, block.made.ended), at)
        return self.functions

    def _enter(self, op: Operation, callee: str) -> None:
        """Calls the traced function instead; of a function that is given one, what does its work."""
        call = self.ops[op]
        call.properties["callee"] = StringAttr(callee)
        if "callback" in call.properties:
            call.properties["user"] = UnitAttr()
            for name in ("callback", "captured", "definition", "unchecked", "total"):
                call.properties.pop(name, None)

    def _hook(self, op: Operation, value: SSAValue | None, number: int) -> None:
        values = hook_values(op, value)
        if sum(type_.slots for _, type_ in values) > MOST_HOOKED:
            raise NotSupportedError(f"a hook is called with at most {MOST_HOOKED} numbers", op.location)
        at = self.ops[op]
        hook = trace.HookOp(number, [self.values[v] for v, _ in values], location=op.location)
        assert at.parent is not None
        at.parent.insert_op_after(hook, at)

    def _time(self, block: FlowBlock, slot: int) -> trace.TimeOp:
        record = self.records[block]
        return trace.TimeOp(record.res, slot, location=record.location)

    def _addition(self, block: FlowBlock, item: Item, op: Operation) -> None:
        """Keeps the target after an addition, and the increment where nothing else has it."""
        at, record = self.ops[op], self.records[block].res
        ir_block = at.parent
        assert ir_block is not None and item.target_slot is not None
        target = stan.TargetOp(location=op.location)
        kept = [target, _kept(record, target.res, item.target_slot, op)]
        if item.kind == "target" and item.slot is not None:
            increment = at.results[0] if at.results else None
            if increment is None:
                total = trace.SumOp(at.operands[0], location=op.location)
                ir_block.insert_op_before(total, at)
                at.operands = (total.res,)
                increment = total.res
            kept.insert(0, _kept(record, increment, item.slot, op))
        ir_block.insert_ops_after(kept, at)

    def _begin(self, block: FlowBlock) -> None:
        record = trace.BlockOp(block.made.record, block.made.slots)
        self.records[block] = record
        self._place(block, record)
        if block.counter is not None:
            keep = trace.ValueOp(record.res, block.made.counter, self.values[block.counter])
            assert record.parent is not None
            record.parent.insert_op_after(keep, record)
        if block.made.started >= 0:
            assert record.parent is not None
            record.parent.insert_op_after(self._time(block, block.made.started), record)

    def _place(self, block: FlowBlock, record: trace.BlockOp) -> None:
        where, anchor = block.anchor
        if where == "after":
            assert isinstance(anchor, Operation)
            op = self.ops[anchor]
            record.location = op.location
            assert op.parent is not None
            op.parent.insert_op_after(record, op)
            return
        assert isinstance(anchor, Block)
        ir_block = self.blocks[anchor]
        assert ir_block.first_op is not None
        record.location = ir_block.first_op.location
        ir_block.insert_op_before(record, ir_block.first_op)

    def _guard(self, block: FlowBlock, progress: int, op: Operation) -> None:
        at = self.ops[op]
        guard = trace.GuardOp(self.records[block].res, progress + 1, location=at.location)
        assert at.parent is not None
        at.parent.insert_op_before(guard, at)

    def _count_draws(self, block: FlowBlock, slot: int, op: Operation) -> None:
        at = self.ops[op]
        before, after = (trace.DrawsOp(self.records[block].res, slot + n, location=at.location) for n in range(2))
        assert at.parent is not None
        at.parent.insert_op_before(before, at)
        at.parent.insert_op_after(after, at)

    def _keep(self, block: FlowBlock, slot: int, type_: ValueType, op: Operation | None, value: SSAValue) -> None:
        begin = self.records[block]
        after = begin if op is None or isinstance(op, stan.ForEachOp) else self.ops[op]
        if type_.rank:
            keep = trace.ContainerOp(begin.res, slot, self.values[value], self.most, location=after.location)
        else:
            keep = trace.ValueOp(begin.res, slot, self.values[value], location=after.location)
        assert after.parent is not None
        after.parent.insert_op_after(keep, after)


def _kept(record: SSAValue, value: SSAValue, slot: int, op: Operation) -> trace.ValueOp:
    return trace.ValueOp(record, slot, value, location=op.location)
