"""The target as an ordinary value: `ad.target_add %v`  →  `%total = arith.addf %total, %v`.

Loops carry the total, branches yield it. Runs on functions whose `ad.target_position` has the number of the
operand of `func.return` that stands for the target (a placeholder until now). Additions happen in program order; with
`reassociate` they may be re-associated, which lets the loops that carry the total vectorise (levels 3 and 4).

`ad.target`, the program's `target()`, becomes the total at that place. If the position
has an argument, the total so far is that plus what the function itself has added.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, terminator
from ulam.passes.loops.effects import functions

_STRICT = {"fastmath": arith.FastMathFlagsAttr("none")}
_REASSOCIATE = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}


@record(frozen=True)
class ThreadTarget(ModulePass):
    """Makes a value of the target: loops carry it, functions return it. `reassociate`: as a sum of its own order."""

    name = "thread-target"

    reassociate: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op, self.reassociate)


def run_on(op: Operation, reassociate: bool = False) -> None:
    """Threads the target through every function at or below `op` that has one."""
    for function in functions(op):
        if _has_result(function):
            thread_target(function, reassociate)


def target_as_value(module: ModuleOp) -> None:
    """Makes ordinary values of targets that are more than sums: of functions that others call, and of those read.

    An entry point then adds to its target once, at its end. Runs before differentiation.
    """
    for function in module.body.block.ops:
        assert isinstance(function, func.FuncOp)
        ops = [op for op in ops_within(function) if type(op) in (ad.TargetAddOp, ad.TargetOp)]
        if not rt.EntryAttr.marks(function):
            thread_target(function, False)
        elif not _has_result(function):
            if ops:
                thread_target(function, False)  # a target that nobody asks for
        elif any(isinstance(op, ad.TargetOp) for op in ops):
            _add_at_end(function)


def _has_result(function: func.FuncOp) -> bool:
    """Whether the target is among the results."""
    position = ad.TargetPositionAttr.of(function)
    return position is not None and position.result.data >= 0


def _add_at_end(function: func.FuncOp) -> None:
    position = ad.TargetPositionAttr.of(function)
    assert position is not None
    number = position.result.data
    end = terminator(function.body.block)
    placeholder = end.operands[number]
    thread_target(function, False)
    total = end.operands[number]
    function.body.block.insert_op_before(ad.TargetAddOp(total, location=function.location), end)
    end.operands[number] = placeholder
    position.put(function)


def thread_target(function: func.FuncOp, reassociate: bool) -> None:
    """Replaces the target's additions in `function`, and its placeholder among the results if there is one."""
    position = ad.TargetPositionAttr.take(function)
    adding = _ops_that_add(function)
    if not adding:
        return
    block = function.body.block
    end = block.last_op
    if not isinstance(end, func.ReturnOp):
        raise ValueError(f"thread-target: {function.sym_name.data} does not end in func.return")
    zero = constant(0.0, f64, function.location)
    assert block.first_op is not None
    block.insert_op_before(zero, block.first_op)
    threader = _Threader(adding, _REASSOCIATE if reassociate else _STRICT, sums_arms=reassociate)
    if position is not None and position.argument.data >= 0:
        threader.before = block.args[position.argument.data]
    total = threader.block(block, zero.results[0])
    if position is not None and position.result.data >= 0:
        end.operands[position.result.data] = total


def _ops_that_add(function: func.FuncOp) -> set[Operation]:
    """The additions and reads, and the ops around them up to the function."""
    adding: set[Operation] = set()
    for op in ops_within(function):
        if type(op) is ad.TargetAddOp or type(op) is ad.TargetOp:
            outer: Operation | None = op
            while outer is not None and outer is not function and outer not in adding:
                adding.add(outer)
                outer = outer.parent_op()
    return adding


@record
class _Threader:
    adding: set[Operation]
    fastmath: dict[str, arith.FastMathFlagsAttr]
    sums_arms: bool = False
    before: SSAValue | None = None  # the target when the function was called

    def block(self, block: Block, total: SSAValue) -> SSAValue:
        """Threads the total through `block`; its value at the end."""
        op = block.first_op
        while op is not None:
            following = op.next_op
            if op in self.adding:
                if type(op) is ad.TargetAddOp:
                    total = self._add(op, block, total)
                elif type(op) is ad.TargetOp:
                    self._read(op, block, total)
                elif isinstance(op, scf.ForOp):
                    total = self._for(op, total)
                elif isinstance(op, scf.IfOp):
                    total = self._if(op, total)
                elif isinstance(op, scf.WhileOp):
                    total = self._while(op, total)
                else:
                    raise ValueError(f"thread-target: the target is added to inside {op.name}")
            op = following
        return total

    def _add(self, op: Operation, block: Block, total: SSAValue) -> SSAValue:
        addition = arith.AddfOp.create(
            operands=(total, op.operands[0]), result_types=(f64,), properties=self.fastmath, location=op.location
        )
        addition.results[0].name_hint = "target"
        block.insert_op_before(addition, op)
        block.erase_op(op)
        return addition.results[0]

    def _read(self, op: ad.TargetOp, block: Block, total: SSAValue) -> None:
        if self.before is not None:
            addition = arith.AddfOp.create(operands=(self.before, total), result_types=(f64,), properties=_STRICT)
            block.insert_op_before(addition, op)
            total = addition.results[0]
        op.res.replace_all_uses_with(total)
        block.erase_op(op)

    def _for(self, op: scf.ForOp, total: SSAValue) -> SSAValue:
        op.operands = (*op.operands, total)
        self._through(op.body.block)
        return _add_result(op)

    def _if(self, op: scf.IfOp, total: SSAValue) -> SSAValue:
        if not op.false_region.blocks:
            op.false_region.add_block(Block((scf.YieldOp.create(location=op.location),)))
        if self.sums_arms and enclosing(op, scf.ForOp) is not None and not _reads_target(op):
            return self._if_added(op, total)
        for region in op.regions:
            _append(region.block, self.block(region.block, total))
        return _add_result(op)

    def _if_added(self, op: scf.IfOp, total: SSAValue) -> SSAValue:
        """The arms sum up on their own, and one addition follows: LLVM takes a loop with it for a sum."""
        for region in op.regions:
            block = region.block
            first = next(inner for inner in block.ops if inner in self.adding or inner is block.last_op)
            if isinstance(first, ad.TargetAddOp):
                start: SSAValue = first.value
                self.adding.discard(first)
                block.erase_op(first)
            else:
                zero = constant(0.0, f64, op.location)
                block.insert_op_before(zero, first)
                start = zero.result
            _append(block, self.block(block, start))
        part = _add_result(op)
        addition = arith.AddfOp.create(
            operands=(total, part), result_types=(f64,), properties=self.fastmath, location=op.location
        )
        addition.results[0].name_hint = "target"
        assert op.parent is not None
        op.parent.insert_op_after(addition, op)
        return addition.results[0]

    def _while(self, op: scf.WhileOp, total: SSAValue) -> SSAValue:
        op.operands = (*op.operands, total)
        for region in op.regions:
            self._through(region.block)
        return _add_result(op)

    def _through(self, block: Block) -> None:
        """Takes the total as the last block argument and passes it on at the end."""
        argument = block.insert_arg(f64, len(block.args))
        argument.name_hint = "target"
        _append(block, self.block(block, argument))


def _reads_target(op: Operation) -> bool:
    return any(isinstance(inner, ad.TargetOp) for inner in ops_within(op))


def _append(block: Block, total: SSAValue) -> None:
    end = block.last_op
    assert isinstance(end, scf.YieldOp | scf.ConditionOp)
    end.operands = (*end.operands, total)


def _add_result(op: Operation) -> SSAValue:
    op.results = SSAValues((*op.results, OpResult(f64, op, len(op.results))))
    op.results[-1].name_hint = "target"
    return op.results[-1]
