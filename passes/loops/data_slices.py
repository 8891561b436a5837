"""What of a loop nest depends on data alone, and copies of just that part.

A *slice* is a nest of loops and branches copied from a top-level op with only some of its ops: those asked for, what
they are computed from, and the loops and branches around them, all depending on data alone. Placed before the original
it may run ahead of it: when data are bound (see `hoist_data`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import operand_tuple
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import PURE
from ulam.passes.rewriting import cloned

AfterCopy = Callable[[Operation, Operation, dict[SSAValue, SSAValue]], None]
AfterValue = Callable[[SSAValue, SSAValue, Block, dict[SSAValue, SSAValue]], None]


class DataSlices:
    """Of one function: which values depend on data alone."""

    def __init__(self) -> None:
        self._data: dict[SSAValue, bool] = {}

    def is_data(self, value: SSAValue) -> bool:
        """Whether a value depends on data alone, and on nothing that a loop carries. Branches of data may give it."""
        known = self._data.get(value)
        if known is None:
            self._data[value] = False  # while it is being found out
            known = self._data[value] = self._find_out(value)
        return known

    def has_data_control(self, op: Operation) -> bool:
        """Whether op is a loop whose bounds, or a branch whose condition, are data."""
        if type(op) is scf.ForOp:
            return self.is_data(op.lb) and self.is_data(op.ub)
        return type(op) is scf.IfOp and self.is_data(op.cond)

    def _find_out(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return isinstance(loop, scf.ForOp) and value.index == 0 and self.has_data_control(loop)
        op = value.owner
        assert isinstance(op, Operation)
        if type(op) in PURE:
            return all(map(self.is_data, operand_tuple(op)))
        if type(op) is rt.LoadOp:
            return self.is_data_buffer(op.buffer) and self.is_data(op.index)
        if isinstance(op, scf.IfOp):
            assert isinstance(value, OpResult)
            ends = [terminator(region.block).operands[value.index] for region in op.regions]
            return self.is_data(op.cond) and all(map(self.is_data, ends))
        return False

    def is_data_buffer(self, buffer: SSAValue) -> bool:
        """Whether what a buffer holds is data, and it is the same one in all iterations."""
        while isinstance(buffer.owner, rt.ViewOp):
            if not self.is_data(buffer.owner.offset):
                return False
            buffer = buffer.owner.buffer
        return isinstance(buffer.owner, rt.BoundOp)

    def copy(
        self,
        nest: Operation,
        wanted: Collection[Operation],
        after: AfterCopy | None = None,
        values: Collection[SSAValue] = (),
        after_value: AfterValue | None = None,
    ) -> Operation:
        """The slice of `nest` for the ops `wanted`, not placed yet, and for `values` that loops carry or branches give.

        `after(original, copy, values)` is called for each copied op of `wanted`, when the copy is in its block;
        `values` maps original values to copied ones. `after_value(original, copy, block, values)`, of one of `values`,
        may add to the block.
        """
        needed = _Needed(nest)
        needed.add(wanted, values)
        return _Copy(frozenset(wanted), frozenset(values), needed, after, after_value).op(nest)


class _Needed:
    """What must be copied along with some ops and values: all inside of a nest that computes them or is around."""

    def __init__(self, nest: Operation) -> None:
        self._nest = nest
        self.ops: set[Operation] = set()
        self.results: dict[Operation, set[int]] = {}
        """Of loops and branches: which results, or carried values."""

    def add(self, ops: Iterable[Operation], values: Iterable[SSAValue]) -> None:
        self._work: list[SSAValue] = list(values)
        for op in ops:
            self._add_op(op)
            if isinstance(op, scf.IfOp):
                for k in range(len(op.results)):
                    self._add_result(op, k)
        while self._work:
            self._add_value(self._work.pop())

    def _add_op(self, op: Operation) -> None:
        """`op`, its operands (bounds of a loop, the condition of a branch), and what is around it."""
        current: Operation | None = op
        while (
            current is not None
            and current not in self.ops
            and current is not self._nest
            and self._nest.is_ancestor(current)
        ):
            self.ops.add(current)
            self._work += _control(current)
            current = current.parent_op()

    def _add_value(self, value: SSAValue) -> None:
        if isinstance(value, OpResult):
            self._add_op(value.op)
            if isinstance(value.op, scf.ForOp | scf.IfOp) and self._nest.is_ancestor(value.op):
                self._add_result(value.op, value.index)
        elif isinstance(value, BlockArgument) and value.index > 0:
            loop = value.owner.parent_op()
            if isinstance(loop, scf.ForOp) and self._nest.is_ancestor(loop):
                self._add_op(loop)
                self._add_result(loop, value.index - 1)

    def _add_result(self, op: scf.ForOp | scf.IfOp, k: int) -> None:
        known = self.results.setdefault(op, set())
        if k not in known:
            known.add(k)
            self._work += [terminator(region.block).operands[k] for region in op.regions]
            if isinstance(op, scf.ForOp):
                self._work.append(op.iter_args[k])


def _control(op: Operation) -> Collection[SSAValue]:
    """Bounds of a loop, condition of a branch, operands of other ops."""
    if isinstance(op, scf.ForOp):
        return (op.lb, op.ub, op.step)
    return (op.cond,) if isinstance(op, scf.IfOp) else op.operands


class _Copy:
    """Copies what is needed of a nest."""

    def __init__(
        self,
        wanted: Collection[Operation],
        wanted_values: Collection[SSAValue],
        needed: _Needed,
        after: AfterCopy | None,
        after_value: AfterValue | None,
    ) -> None:
        self._wanted, self._wanted_values, self._needed = wanted, wanted_values, needed
        self._after, self._after_value = after, after_value
        self._values: dict[SSAValue, SSAValue] = {}

    def op(self, op: Operation) -> Operation:
        """A copy of an op, not placed yet."""
        kept = sorted(self._needed.results.get(op, ()))
        if isinstance(op, scf.ForOp):
            copy = self._loop(op, kept)
        elif isinstance(op, scf.IfOp):
            copy = self._branch(op, kept)
        else:
            return cloned(op, self._values)
        self._values.update((op.results[k], result) for k, result in zip(kept, copy.results, strict=True))
        return copy

    def _loop(self, op: scf.ForOp, kept: list[int]) -> Operation:
        types = [op.results[k].type for k in kept]
        source, body = op.body.block, Block(arg_types=[i64, *types])
        self._values[source.args[0]] = body.args[0]
        for k, argument in zip(kept, body.args[1:], strict=True):
            self._put(source.args[1 + k], argument, body)
        starts = [self._values.get(start, start) for start in (op.iter_args[k] for k in kept)]
        self._block(source, body, kept)
        operands = [self._values.get(o, o) for o in (op.lb, op.ub, op.step)]
        return scf.ForOp.create(
            operands=[*operands, *starts], result_types=types, regions=[Region(body)], location=op.location
        )

    def _branch(self, op: scf.IfOp, kept: list[int]) -> Operation:
        regions: list[Region] = []
        for region in op.regions:
            block = Block()
            if region.blocks:
                self._block(region.block, block, kept)
            else:
                block.add_op(scf.YieldOp.create())
            regions.append(Region(block))
        return scf.IfOp.create(
            operands=[self._values.get(op.cond, op.cond)],
            result_types=[op.results[k].type for k in kept],
            regions=regions,
            location=op.location,
        )

    def _block(self, source: Block, target: Block, kept: list[int]) -> None:
        for op in source.ops:
            if op not in self._needed.ops:
                continue
            copy = self.op(op)
            target.add_op(copy)
            if self._after is not None and op in self._wanted:
                self._after(op, copy, self._values)
            for result in op.results if op.regions else ():
                if result in self._values:
                    self._put(result, self._values[result], target)
        ends = [terminator(source).operands[k] for k in kept]
        target.add_op(scf.YieldOp.create(operands=[self._values.get(end, end) for end in ends]))

    def _put(self, value: SSAValue, copied: SSAValue, block: Block) -> None:
        self._values[value] = copied
        if self._after_value is not None and value in self._wanted_values:
            self._after_value(value, copied, block, self._values)
