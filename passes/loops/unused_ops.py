"""Takes out of a loop what nothing in it needs any more, once a part of it has gone elsewhere."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.passes.loops.effects import PURE
from ulam.passes.rewriting import discard


def discard_unused(loop: scf.ForOp) -> None:
    """Takes out what only computes, and is not used."""
    for op in reversed(list(ops_within(loop))):
        if op is not loop and not any(result.first_use for result in op.results) and _only_computes(op):
            discard(op)


def _only_computes(op: Operation) -> bool:
    if isinstance(op, scf.IfOp):
        return all(isinstance(inner, scf.YieldOp) for region in op.regions for inner in region.block.ops)
    return type(op) in PURE or isinstance(op, rt.LoadOp)
