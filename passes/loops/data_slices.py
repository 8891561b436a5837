"""What of a loop nest depends on data alone, and copies of just that part.

A *slice* is a nest of loops and branches copied from a top-level op with only some of its ops: those asked for, what
they are computed from, and the loops and branches around them, all depending on data alone. Placed before the original
it may run ahead of it: when data are bound (see `hoist_data`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.dialects import scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.passes.loops.effects import PURE
from ulam.passes.rewriting import cloned

AfterCopy = Callable[[Operation, Operation, dict[SSAValue, SSAValue]], None]


class DataSlices:
    """Of one function: which values depend on data alone."""

    def __init__(self) -> None:
        self._data: dict[SSAValue, bool] = {}

    def is_data(self, value: SSAValue) -> bool:
        """Whether a value depends on data alone, and on nothing that a loop carries."""
        known = self._data.get(value)
        if known is None:
            self._data[value] = False  # while it is being found out
            known = self._data[value] = self._find_out(value)
        return known

    def has_data_control(self, op: Operation) -> bool:
        """Whether op is a loop whose bounds, or a branch whose condition, are data."""
        if isinstance(op, scf.ForOp):
            return self.is_data(op.lb) and self.is_data(op.ub)
        return isinstance(op, scf.IfOp) and self.is_data(op.cond)

    def _find_out(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return isinstance(loop, scf.ForOp) and value.index == 0 and self.has_data_control(loop)
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            return self.is_data_buffer(op.buffer) and self.is_data(op.index)
        return type(op) in PURE and all(self.is_data(o) for o in op.operands)

    def is_data_buffer(self, buffer: SSAValue) -> bool:
        """Whether what a buffer holds is data, and it is the same one in all iterations."""
        while isinstance(buffer.owner, rt.ViewOp):
            if not self.is_data(buffer.owner.offset):
                return False
            buffer = buffer.owner.buffer
        return isinstance(buffer.owner, rt.BoundOp)

    def copy(self, nest: Operation, wanted: Collection[Operation], after: AfterCopy | None = None) -> Operation:
        """The slice of `nest` for the ops `wanted`, not placed yet.

        `after(original, copy, values)` is called for each copied op of `wanted`, when the copy is in its block;
        `values` maps original values to copied ones.
        """
        needed: set[Operation] = set()
        for op in wanted:
            _need(op, needed, nest)
        return _copy(nest, set(wanted), needed, {}, after)


def _need(op: Operation, needed: set[Operation], nest: Operation) -> None:
    """What must be copied along with `op`: inside `nest`, all that computes its operands, and what is around it."""
    work: list[Operation] = [op]
    while work:
        current = work.pop()
        if current in needed or current is nest or not nest.is_ancestor(current):
            continue
        needed.add(current)
        parent = current.parent_op()
        if parent is not None:
            work.append(parent)
        for operand in _control(current):
            if isinstance(operand.owner, Operation):
                work.append(operand.owner)


def _control(op: Operation) -> Collection[SSAValue]:
    """Bounds of a loop, condition of a branch, operands of other ops."""
    if isinstance(op, scf.ForOp):
        return (op.lb, op.ub, op.step)
    return (op.cond,) if isinstance(op, scf.IfOp) else op.operands


def _copy(
    op: Operation,
    wanted: set[Operation],
    needed: set[Operation],
    values: dict[SSAValue, SSAValue],
    after: AfterCopy | None,
) -> Operation:
    if isinstance(op, scf.ForOp):
        body = Block(arg_types=[i64])
        values[op.body.block.args[0]] = body.args[0]
        _copy_block(op.body.block, body, wanted, needed, values, after)
        operands = [values.get(o, o) for o in (op.lb, op.ub, op.step)]
        return scf.ForOp.create(operands=operands, regions=[Region(body)], location=op.location)
    if isinstance(op, scf.IfOp):
        regions = []
        for region in op.regions:
            block = Block()
            if region.blocks:
                _copy_block(region.block, block, wanted, needed, values, after)
            else:
                block.add_op(scf.YieldOp.create())
            regions.append(Region(block))
        return scf.IfOp.create(operands=[values.get(op.cond, op.cond)], regions=regions, location=op.location)
    return cloned(op, values)


def _copy_block(
    source: Block,
    target: Block,
    wanted: set[Operation],
    needed: set[Operation],
    values: dict[SSAValue, SSAValue],
    after: AfterCopy | None,
) -> None:
    for op in source.ops:
        if op in needed:
            copy = _copy(op, wanted, needed, values, after)
            target.add_op(copy)
            if after is not None and op in wanted:
                after(op, copy, values)
    target.add_op(scf.YieldOp.create())
