"""Gives back, at the end of an iteration or of a function that others call, the arena memory that it took.

Only where nothing outlives it: no buffer is carried, yielded or returned, kept for the reverse sweep, or stored. So a
loop over a million observations uses the memory of one iteration, and finds it in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt

_OUTLIVES = (ad.KeepOp, ad.PushOp, func.ReturnOp, scf.YieldOp, scf.ConditionOp)
# Not calls: a function hands buffers on in what it returns, and nowhere else.
_MARK = rt.MarkType()


@dataclass(frozen=True)
class ReleaseArena(ModulePass):
    """The pass."""

    name = "release-arena"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Adds marks and releases to all loops and functions at or below `op` that allow it."""
    for inner in list(op.walk()):
        if isinstance(inner, scf.ForOp):
            _release(inner.body.block)
        elif isinstance(inner, scf.WhileOp):
            _release(inner.after_region.block)
        elif isinstance(inner, func.FuncOp) and "entry" not in inner.attributes and inner.body.blocks:
            _release(inner.body.block)


def _release(block: Block) -> None:
    takes = False
    for op in block.walk():
        if isinstance(op, rt.AllocOp) and op.stack is None:
            takes = True
        elif isinstance(op, func.CallOp):
            takes = takes or any(isinstance(r.type, rt.BufferType) for r in op.results)
        elif isinstance(op, _OUTLIVES) and _passes_buffer(op, block):
            return
        elif isinstance(op, rt.StoreOp) and isinstance(op.value.type, rt.BufferType):
            return
        elif isinstance(op, rt.ReleaseOp) and op.parent is block:
            return
    if not takes or block.first_op is None or block.last_op is None:
        return
    mark = rt.MarkOp.create(result_types=(_MARK,))
    block.insert_op_before(mark, block.first_op)
    block.insert_op_before(rt.ReleaseOp.create(operands=(mark.res,)), block.last_op)


def _passes_buffer(op: Operation, block: Block) -> bool:
    """Whether a buffer leaves by `op`; what an inner region yields stays inside of `block`."""
    if isinstance(op, scf.YieldOp | scf.ConditionOp) and op.parent is not block:
        return False
    operands = op.operands[2:] if isinstance(op, ad.KeepOp) else op.operands
    return any(isinstance(o.type, rt.BufferType) for o in operands)
