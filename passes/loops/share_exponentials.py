"""Functions of exp(-|z|) with the same z share it, and their logarithms are one.

    inv_logit(z), log_inv_logit(z), log1m_inv_logit(z), inv_logit(-z)
        →  q = exp(-|z|), t = 1 + q, l = log(t)
           (z < 0 ? q : 1) / t,   min(z, 0) - l,   -max(z, 0) - l,   (z > 0 ? q : 1) / t

Where two or more of them stand in one block, or in branches behind the first: after reverse mode, the logarithms of a
probability and their slopes, and what the constraint of a parameter between 0 and 1 is made of
(`logs_of_transforms`). Levels 3 and 4.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.exponentials import Groups, SharedExponentials, distance, shares
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.settled import EVALUATE


@record(frozen=True)
class ShareExponentials(ModulePass):
    """Computes one exponential and one logarithm for all functions of `evaluate` that are made of the same."""

    name = "share-exponentials"
    changes_only = EVALUATE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(evaluate_of(op, self.name))


def run_on(function: func.FuncOp) -> None:
    """Shares in every block of a function."""
    for block, groups in _groups(function).items():
        sharing = SharedExponentials(block, groups)
        for key, group in groups.items():
            live = [op for op in group if op.results[0].first_use is not None]
            if len(live) < 2:
                continue
            names = ", ".join(dict.fromkeys(op.function.data for op in live))
            remark_on(ShareExponentials.name, live[0], f"one exponential serves {names}", done=True)
            sharing.expand(key)


def _groups(function: func.FuncOp) -> dict[Block, Groups]:
    """What each block shares, with the branches inside as far as they come behind a first one of the block's own."""
    found: dict[Block, Groups] = {}
    for op in ops_within(function):
        if not shares(op) or op.parent is None:
            continue
        key = distance(op)
        home = block = op.parent
        while isinstance(branch := block.parent_op(), scf.IfOp) and branch.parent is not None:
            block = branch.parent
            if key in found.get(block, ()):
                home = block
                break
        found.setdefault(home, {}).setdefault(key, []).append(op)
    return found
