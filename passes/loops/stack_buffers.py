"""Puts small buffers of loop bodies on the stack, where LLVM can keep their elements in registers.

    scf.for ... {
      %mark = rt.mark_arena
      %b = rt.alloc(%c3)             →    %b = rt.alloc(%c3) {stack}
      rt.release(%mark)
    }

Runs behind `release-arena`: where an iteration gives its memory back, no buffer of it is alive in the next. So one
place in the function's frame will do for all iterations.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within

MAXIMUM_ELEMENTS = 64
"""Of one buffer."""

_FRAME_ELEMENTS = 4096
"""Of all buffers of a module that are put on the stack here."""

_LOOPS = (scf.ForOp, scf.WhileOp)


class StackBuffers(ModulePass):
    """Puts small buffers of loop bodies on the stack."""

    name = "stack-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Changes allocations of loop bodies at or below `op` that give their memory back."""
    left = _FRAME_ELEMENTS
    for release in [inner for inner in ops_within(op) if type(inner) is rt.ReleaseOp]:
        block = release.parent
        assert block is not None
        if not isinstance(block.parent_op(), _LOOPS):
            continue
        still_takes = False
        for inner in _of_iteration(block):
            count = _constant_count(inner) if isinstance(inner, rt.AllocOp) else None
            if count is not None and count <= min(MAXIMUM_ELEMENTS, left):
                inner.properties["stack"] = UnitAttr()
                left -= count
            else:
                still_takes = still_takes or _takes(inner)
        mark = release.mark.owner
        if not still_takes and isinstance(mark, Operation) and mark.parent is block:
            for dead in (release, mark):
                dead.detach()
                dead.erase()


def _of_iteration(block: Block) -> Iterator[Operation]:
    """The ops of one iteration: those of inner loops as one."""
    for op in block.ops:
        yield op
        if op.regions and not isinstance(op, _LOOPS):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _of_iteration(inner)


def _constant_count(op: rt.AllocOp) -> int | None:
    return None if op.stack is not None else constant_integer(op.count)


def _takes(op: Operation) -> bool:
    """Whether an op leaves arena memory taken behind: loops may, if they do not give it back themselves."""
    if isinstance(op, _LOOPS):
        return any(isinstance(inner, rt.AllocOp | func.CallOp) and _unless_on_stack(inner) for inner in ops_within(op))
    return isinstance(op, rt.AllocOp | func.CallOp) and _unless_on_stack(op)


def _unless_on_stack(op: Operation) -> bool:
    return not isinstance(op, rt.AllocOp) or op.stack is None
