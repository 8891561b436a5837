"""Fewer loops in `evaluate`: small ones unrolled, others fused; what an iteration stored is not loaded again."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ulam.library.records import record
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.nested import NestedPass


@record(frozen=True)
class FuseLoops(NestedPass):
    """Unrolls small loops of `evaluate`, fuses others; as needed before reverse mode, or as may be done behind it.

    `reassociate`: sums may change their order.
    """

    name = "fuse-loops"

    before_reverse_mode: bool = False
    reassociate: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        evaluate_of(op, self.name)
        super().apply(ctx, op)

    def pipeline(self) -> str:
        options = "reassociate=true function=evaluate" if self.reassociate else "function=evaluate"
        if self.before_reverse_mode:
            return (
                'if-changed{passes="unroll-small{function=evaluate}" then="fold,cse"},'
                f'if-changed{{passes="loop-fusion{{before-reverse-mode=true {options}}}" then="cse,dce"}}'
            )
        # What is dead by now goes in the end.
        return f'if-changed{{passes="loop-fusion{{{options}}}" then="cse"}}'
