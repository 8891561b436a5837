"""Gives back, at the end of an iteration or of a function that others call, the arena memory that it took.

Only where nothing outlives it: no buffer is carried, yielded or returned, kept for the reverse sweep, or stored. So a
loop over a million observations uses the memory of one iteration, and finds it in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.kept_buffers import keeps_buffer

_MARK = rt.MarkType()


class ReleaseArena(ModulePass):
    """Gives arena memory back at the end of iterations and of functions that others call."""

    name = "release-arena"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Adds marks and releases to all loops and functions at or below `op` that allow it."""
    for region in op.regions:
        for block in region.blocks:
            _visit(block, _gives_back(op, region))


def _gives_back(op: Operation, region: Region) -> bool:
    """Whether the region is a loop's body, or the body of a function that others call."""
    cls = type(op)
    if cls is func.FuncOp:
        return not rt.EntryAttr.marks(op)
    return cls is scf.ForOp or (isinstance(op, scf.WhileOp) and region is op.after_region)


def _visit(block: Block, gives_back: bool) -> tuple[bool, bool]:
    """Treats the blocks inside and then `block`; whether it takes memory, and whether a buffer outlives it otherwise
    than by its terminator."""
    takes = outlives = released = False
    op = block.first_op
    while op is not None:
        for region in op.regions:
            for inner in region.blocks:
                inner_takes, inner_outlives = _visit(inner, _gives_back(op, region))
                takes, outlives = takes or inner_takes, outlives or inner_outlives
        cls = type(op)
        if cls is rt.AllocOp:
            takes = takes or "stack" not in op.properties
        elif cls is func.CallOp:
            takes = takes or _any_buffer(op.results)
        elif cls is rt.ReleaseOp:
            released = True
        else:
            outlives = outlives or keeps_buffer(op)
        op = op.next_op
    end = block.last_op
    if gives_back and takes and not outlives and not released and end is not None and not _any_buffer(end.operands):
        mark = rt.MarkOp()
        block.insert_op_before(mark, block.first_op or end)
        block.insert_op_before(rt.ReleaseOp(mark.res), end)
    return takes, outlives


def _any_buffer(values: Iterable[SSAValue]) -> bool:
    return any(type(value.type) is rt.BufferType for value in values)
