"""Functions of exp(-|z|) with the same z share it, and their logarithms are one.

    inv_logit(z), log_inv_logit(z), log1m_inv_logit(z), inv_logit(-z)
        →  q = exp(-|z|), t = 1 + q, l = log(t)
           (z < 0 ? q : 1) / t,   min(z, 0) - l,   -max(z, 0) - l,   (z > 0 ? q : 1) / t

Where two or more of them stand in one block: after reverse mode, the logarithms of a probability and their slopes, and
what the constraint of a parameter between 0 and 1 is made of (`logs_of_transforms`). Levels 3 and 4.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.exponentials import SharedExponentials
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on


@record(frozen=True)
class ShareExponentials(ModulePass):
    """Computes one exponential and one logarithm for all functions of `evaluate` that are made of the same."""

    name = "share-exponentials"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(evaluate_of(op, self.name))


def run_on(function: func.FuncOp) -> None:
    """Shares in every block of a function."""
    blocks: dict[Block, None] = {}
    for op in ops_within(function):
        if isinstance(op, rt.MathOp) and op.parent is not None:
            blocks.setdefault(op.parent)
    for block in blocks:
        sharing = SharedExponentials(block)
        for key, group in sharing.groups.items():
            live = [op for op in group if op.results[0].first_use is not None]
            if len(live) < 2:
                continue
            names = ", ".join(dict.fromkeys(op.function.data for op in live))
            remark_on(ShareExponentials.name, live[0], f"one exponential serves {names}", done=True)
            sharing.expand(key)
