"""The functions and blocks of a `stan` module, wherever they stand: in a program, or alone in a module (tests)."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ulam.dialects import stan

Body = stan.FuncOp | stan.BlockOp


def bodies(op: Operation) -> Iterator[Body]:
    """Every `stan.func` with a body and every `stan.block` at or below `op`, in program order."""
    if isinstance(op, stan.FuncOp | stan.BlockOp):
        if op.regions[0].blocks:
            yield op
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.regions:
                    yield from bodies(inner)
