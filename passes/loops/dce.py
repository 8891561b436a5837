"""Dead code: ops, loop-carried values and branch results that nothing needs, and writes to memory that nothing reads.

Marks what is needed, beginning with the ops that have an effect, and erases the rest. A value that a loop carries is
needed only if the loop's body or what follows uses it for something other than carrying it on. A write to a buffer from
`rt.alloc` is needed only if something that is needed mentions the buffer otherwise than by writing to it.
`scf.while` stays (it might not end), and so does every check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.core import SSAValues

from ulam.dialects import rt
from ulam.dialects.walk import blocks_of, following_op, item, operand_at, operand_tuple, previous_op
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import (
    ANYTHING_BITS,
    EFFECT_BITS,
    PURE,
    Effect,
    root,
    written_buffer,
)
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.rewriting import discard

_ROOT_EFFECTS = int(Effect.WRITE | Effect.LEAVE | Effect.ORDERED)
_TERMINATOR = int(Effect.CONTROL)
_BOUNDS = 3  # operands of scf.for before its initial values
_OF_BOUNDS = slice(_BOUNDS)

_CONTROL: dict[type, Callable[[Operation], Sequence[SSAValue]]] = {
    scf.ForOp: lambda op: item(operand_tuple(op), _OF_BOUNDS),
    scf.IfOp: lambda op: (operand_at(op, 0),),
    scf.WhileOp: lambda op: (_condition(op).condition,),
}
"""What ops with regions need to run, whatever of their results is needed."""


@record(frozen=True)
class Dce(FunctionPass):
    """Erases ops, stores and carried values that nobody needs, in all functions or in the one that is named."""

    name = "dce"
    settles = True

    def changes_function(self, function: func.FuncOp) -> bool:
        liveness = _Liveness()
        liveness.function(function)
        return liveness.changed


@record
class _Liveness:
    """What of one function is needed. Ops, values and blocks are noted by identity: the fastest to look up."""

    ops: set[int] = field(default_factory=set[int])
    values: set[int] = field(default_factory=set[int])  # results of scf ops, block arguments
    blocks: set[int] = field(default_factory=set[int])  # blocks that have needed ops
    pending: dict[int, list[Operation]] = field(default_factory=dict[int, list[Operation]])  # writes, by rt.alloc
    changed: bool = False
    new_ops: list[Operation] = field(default_factory=list[Operation])
    new_values: list[SSAValue] = field(default_factory=list[SSAValue])

    def function(self, function: func.FuncOp) -> None:
        self.ops.add(id(function))
        for block in function.body.blocks:
            self._find_roots(block)
        while self.new_ops or self.new_values:
            while self.new_ops:
                self._propagate_op(self.new_ops.pop())
            while self.new_values:
                self._propagate_value(self.new_values.pop())
        for block in function.body.blocks:
            self._sweep(block)

    # ------------------------------------------------------------ marking

    def _find_roots(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            cls = type(op)
            if cls in PURE:
                pass  # most are
            elif op.regions:
                for nested in blocks_of(op):
                    self._find_roots(nested)
                if cls is not scf.ForOp and cls is not scf.IfOp:
                    self._need_op(op)
            elif EFFECT_BITS.get(cls, ANYTHING_BITS) & _ROOT_EFFECTS:
                self._root(op)
            elif cls is func.ReturnOp:
                self._need_op(op)
            op = following_op(op)

    def _root(self, op: Operation) -> None:
        """An op with an effect is needed, unless it only writes to a buffer of this function that is not needed."""
        buffer = written_buffer(op)
        if buffer is not None:
            source = root(buffer)
            owner = None if isinstance(source, str) else source.owner
            if type(owner) is rt.AllocOp:
                self.pending.setdefault(id(owner), []).append(op)
                return
        self._need_op(op)

    def _need_op(self, op: Operation) -> None:
        """`op` is to run; of scf ops no result is needed by that."""
        if id(op) not in self.ops:
            self.ops.add(id(op))
            self.new_ops.append(op)

    def _need(self, value: SSAValue) -> None:
        owner = value.op if type(value) is OpResult else value.owner
        cls = type(owner)
        if cls is Block or cls in _CONTROL:
            if id(value) not in self.values:
                self.values.add(id(value))
                self.new_values.append(value)
        elif id(owner) not in self.ops:
            self.ops.add(id(owner))
            self.new_ops.append(owner)  # type: ignore[arg-type]

    def _propagate_op(self, op: Operation) -> None:
        """What an op needs to run."""
        cls = type(op)
        if cls in _CONTROL:
            for value in _CONTROL[cls](op):
                self._need(value)
        else:
            for value in operand_tuple(op):
                self._need(value)
            for region in op.regions:  # an op that is not known here: all of it is needed
                for block in region.blocks:
                    for inner in block.ops:
                        self._need_op(inner)
            if cls is rt.AllocOp:
                for write in self.pending.pop(id(op), ()):
                    self._need_op(write)
        block = op.parent
        if block is not None and id(block) not in self.blocks:
            self.blocks.add(id(block))
            parent = block.parent_op()
            if parent is not None:
                self._need_op(parent)

    def _propagate_value(self, value: SSAValue) -> None:
        """What the value of a result of an scf op, or of a block argument, comes from."""
        if type(value) is OpResult:
            owner = value.op
            self._need_op(owner)
            if type(owner) is scf.ForOp:
                self._need_carried(owner, value.index)
            elif type(owner) is scf.WhileOp:
                self._need(_condition(owner).args[value.index])
            else:
                for region in owner.regions:
                    self._need(operand_at(terminator(region.block), value.index))
            return
        owner = value.owner
        assert isinstance(value, BlockArgument) and isinstance(owner, Block)
        parent = owner.parent_op()
        if isinstance(parent, scf.ForOp) and value.index > 0:
            self._need_carried(parent, value.index - 1)
        elif isinstance(parent, scf.WhileOp):
            if owner.parent is parent.before_region:
                self._need(parent.operands[value.index])
                self._need(terminator(parent.after_region.block).operands[value.index])
            else:
                self._need(_condition(parent).args[value.index])

    def _need_carried(self, op: Operation, index: int) -> None:
        body = op.regions[0].block
        operands, passed = operand_tuple(op), operand_tuple(terminator(body))
        self._need(operands[_BOUNDS + index])
        self._need(passed[index])
        self._need(body.args[index + 1])

    # ------------------------------------------------------------ erasing

    def _sweep(self, block: Block) -> None:
        op = block.last_op
        while op is not None:
            previous = previous_op(op)
            if id(op) in self.ops:
                if op.regions:
                    self._trim(op)
                    for nested in blocks_of(op):
                        self._sweep(nested)
            elif not EFFECT_BITS.get(type(op), ANYTHING_BITS) & _TERMINATOR:
                self.changed = True
                discard(op)  # its users, if any, were dead and are gone
            op = previous

    def _trim(self, op: Operation) -> None:
        """Drops results and carried values of `op` that are not needed."""
        if type(op) is scf.ForOp:
            arguments = op.body.block.args
            keep = [self._is_needed(r) or self._is_needed(a) for r, a in zip(op.results, arguments[1:], strict=True)]
            if self._drops(keep):
                _trim_terminator(op.body.block, keep, 0)
                _trim_arguments(op.body.block, keep, 1)
                op.operands = _kept(op.operands, keep, _BOUNDS)
                _trim_results(op, keep)
        elif type(op) is scf.IfOp:
            keep = [self._is_needed(result) for result in op.results]
            if self._drops(keep):
                for region in op.regions:
                    _trim_terminator(region.block, keep, 0)
                _trim_results(op, keep)
        elif type(op) is scf.WhileOp:
            self._trim_while(op)

    def _drops(self, keep: list[bool]) -> bool:
        """Whether something is not kept, and goes now."""
        drops = not all(keep)
        self.changed = self.changed or drops
        return drops

    def _is_needed(self, value: SSAValue) -> bool:
        return id(value) in self.values

    def _trim_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        keep = [self._is_needed(argument) for argument in before.args]
        if self._drops(keep):
            _trim_terminator(after, keep, 0)
            op.operands = _kept(op.operands, keep, 0)
            _trim_arguments(before, keep, 0)
        keep = [self._is_needed(r) or self._is_needed(a) for r, a in zip(op.results, after.args, strict=True)]
        if self._drops(keep):
            _trim_terminator(before, keep, 1)
            _trim_arguments(after, keep, 0)
            _trim_results(op, keep)


def _condition(op: Operation) -> scf.ConditionOp:
    end = op.regions[0].block.last_op
    assert isinstance(end, scf.ConditionOp)
    return end


def _kept(operands: object, keep: list[bool], first: int) -> tuple[SSAValue, ...]:
    """`operands` without those that, counted from `first`, are not to be kept."""
    values: tuple[SSAValue, ...] = tuple(operands)  # type: ignore[arg-type]
    return (*values[:first], *(value for value, kept in zip(values[first:], keep, strict=True) if kept))


def _trim_terminator(block: Block, keep: list[bool], first: int) -> None:
    end = terminator(block)
    end.operands = _kept(end.operands, keep, first)


def _trim_arguments(block: Block, keep: list[bool], first: int) -> None:
    """Uses that are left are in ops that are dead themselves and about to go."""
    for argument, kept in zip(block.args[first:], keep, strict=True):
        if not kept:
            block.erase_arg(argument, safe_erase=False)


def _trim_results(op: Operation, keep: list[bool]) -> None:
    results = [result for result, kept in zip(op.results, keep, strict=True) if kept]
    for result, kept in zip(op.results, keep, strict=True):
        if not kept:
            result.erase(safe_erase=False)
    for index, result in enumerate(results):
        result.index = index
    op.results = SSAValues(results)
