"""Dead code: ops, loop-carried values and branch results that nothing needs, and writes to memory that nothing reads.

Marks what is needed, beginning with the ops that have an effect, and erases the rest. A value that a loop carries is
needed only if the loop's body or what follows uses it for something other than carrying it on. A write to a buffer from
`rt.alloc` is needed only if something that is needed mentions the buffer otherwise than by writing to it.
`scf.while` stays (it might not end), and so does every check.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.passes.analysis.effects_low import ANYTHING, EFFECTS, Effect, root, written_buffer
from ulam.passes.rewriting import discard

_ROOT_EFFECTS = Effect.WRITE | Effect.LEAVE | Effect.ORDERED
_BOUNDS = 3  # operands of scf.for before its initial values


@dataclass(frozen=True)
class DeadCodeElimination(ModulePass):
    """The pass."""

    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Erases dead code in every function at or below `op`."""
    for function in (op,) if isinstance(op, func.FuncOp) else op.walk():
        if isinstance(function, func.FuncOp) and function.body.blocks:
            _Liveness().function(function)


@dataclass
class _Liveness:
    """What of one function is needed."""

    ops: set[Operation] = field(default_factory=set[Operation])
    values: set[SSAValue] = field(default_factory=set[SSAValue])  # results of ops with regions, block arguments
    pending: dict[Operation, list[Operation]] = field(default_factory=dict[Operation, list[Operation]])
    work: list[Operation | SSAValue] = field(default_factory=list[Operation | SSAValue])

    def function(self, function: func.FuncOp) -> None:
        self.ops.add(function)
        for block in function.body.blocks:
            self._find_roots(block)
        work = self.work
        while work:
            item = work.pop()
            if isinstance(item, Operation):
                self._mark_op(item)
            else:
                self._mark_value(item)
        for block in function.body.blocks:
            self._sweep(block)

    # ------------------------------------------------------------ marking

    def _find_roots(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            if op.regions:
                for region in op.regions:
                    for nested in region.blocks:
                        self._find_roots(nested)
                if not isinstance(op, scf.ForOp | scf.IfOp):
                    self.work.append(op)
            else:
                effect = EFFECTS.get(type(op), ANYTHING)
                if effect & _ROOT_EFFECTS:
                    self._root(op)
                elif type(op) is func.ReturnOp:
                    self.work.append(op)
            op = op.next_op

    def _root(self, op: Operation) -> None:
        """An op with an effect is needed, unless it only writes to a buffer of this function that is not needed."""
        buffer = written_buffer(op)
        if buffer is not None:
            source = root(buffer)
            owner = source.owner if isinstance(source, SSAValue) else None
            if isinstance(owner, rt.AllocOp):
                self.pending.setdefault(owner, []).append(op)
                return
        self.work.append(op)

    def _mark_op(self, op: Operation) -> None:
        """`op` is needed, and what it needs; of ops with regions, that they run, not their results."""
        if op in self.ops:
            return
        self.ops.add(op)
        if isinstance(op, scf.ForOp):
            self.work += op.operands[:_BOUNDS]
        elif isinstance(op, scf.WhileOp):
            end = op.before_region.block.last_op
            assert isinstance(end, scf.ConditionOp)
            self.work.append(end.condition)
        elif isinstance(op, scf.IfOp):
            self.work.append(op.cond)
        else:
            self.work += op.operands
            for region in op.regions:  # an op that is not known here: all of it is needed
                for block in region.blocks:
                    self.work += block.ops
        if type(op) is rt.AllocOp:
            self.work += self.pending.pop(op, ())
        parent = op.parent_op()
        if parent is not None and parent not in self.ops:
            self.work.append(parent)

    def _mark_value(self, value: SSAValue) -> None:
        owner = value.owner
        if isinstance(owner, Operation):
            if not owner.regions:
                if owner not in self.ops:
                    self.work.append(owner)
                return
            if value in self.values:
                return
            self.values.add(value)
            self.work.append(owner)
            assert isinstance(value, OpResult)
            self._mark_result(owner, value.index)
            return
        if value in self.values:
            return
        self.values.add(value)
        parent = owner.parent_op()
        assert isinstance(value, BlockArgument)
        if isinstance(parent, scf.ForOp) and value.index > 0:
            self._mark_carried(parent, value.index - 1)
        elif isinstance(parent, scf.WhileOp):
            self._mark_while_argument(parent, owner, value.index)

    def _mark_result(self, op: Operation, index: int) -> None:
        """Result `index` of `op` is needed."""
        if isinstance(op, scf.ForOp):
            self._mark_carried(op, index)
        elif isinstance(op, scf.WhileOp):
            end = op.before_region.block.last_op
            assert isinstance(end, scf.ConditionOp)
            self.work.append(end.args[index])
        elif isinstance(op, scf.IfOp):
            for region in op.regions:
                self.work.append(_yielded(region.block)[index])

    def _mark_carried(self, op: scf.ForOp, index: int) -> None:
        self.work += (op.operands[_BOUNDS + index], _yielded(op.body.block)[index], op.body.block.args[index + 1])

    def _mark_while_argument(self, op: scf.WhileOp, block: Block, index: int) -> None:
        if block.parent is op.before_region:
            self.work += (op.operands[index], _yielded(op.after_region.block)[index])
        else:
            end = op.before_region.block.last_op
            assert isinstance(end, scf.ConditionOp)
            self.work.append(end.args[index])

    # ------------------------------------------------------------ erasing

    def _sweep(self, block: Block) -> None:
        op = block.last_op
        while op is not None:
            previous = op.prev_op
            if op in self.ops:
                if op.regions:
                    self._trim(op)
                    for region in op.regions:
                        for nested in region.blocks:
                            self._sweep(nested)
            elif not EFFECTS.get(type(op), ANYTHING) & Effect.CONTROL:
                discard(op)  # its users, if any, were dead and are gone
            op = previous

    def _trim(self, op: Operation) -> None:
        """Drops results and carried values of `op` that are not needed."""
        if isinstance(op, scf.ForOp):
            arguments = op.body.block.args
            keep = [result in self.values or arguments[i + 1] in self.values for i, result in enumerate(op.results)]
            if not all(keep):
                _trim_terminator(op.body.block, keep, 0)
                _trim_arguments(op.body.block, keep, 1)
                op.operands = _kept(op.operands, keep, _BOUNDS)
                _trim_results(op, keep)
        elif isinstance(op, scf.IfOp):
            keep = [result in self.values for result in op.results]
            if not all(keep):
                for region in op.regions:
                    _trim_terminator(region.block, keep, 0)
                _trim_results(op, keep)
        elif isinstance(op, scf.WhileOp):
            self._trim_while(op)

    def _trim_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        keep = [argument in self.values for argument in before.args]
        if not all(keep):
            _trim_terminator(after, keep, 0)
            op.operands = _kept(op.operands, keep, 0)
            _trim_arguments(before, keep, 0)
        keep = [
            result in self.values or argument in self.values
            for result, argument in zip(op.results, after.args, strict=True)
        ]
        if not all(keep):
            _trim_terminator(before, keep, 1)
            _trim_arguments(after, keep, 0)
            _trim_results(op, keep)


def _yielded(block: Block) -> tuple[SSAValue, ...]:
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    return tuple(end.operands)


def _kept(operands: object, keep: list[bool], first: int) -> tuple[SSAValue, ...]:
    """`operands` without those that, counted from `first`, are not to be kept."""
    values: tuple[SSAValue, ...] = tuple(operands)  # type: ignore[arg-type]
    return (*values[:first], *(value for value, kept in zip(values[first:], keep, strict=True) if kept))


def _trim_terminator(block: Block, keep: list[bool], first: int) -> None:
    end = block.last_op
    assert end is not None
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
