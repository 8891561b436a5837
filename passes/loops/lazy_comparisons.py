"""Branches that do nothing but compare become selections: lazy `&&` and `||` of values that are there before.

    c = if a > 0: yield b > 0  else: yield false    →    c = select(a > 0, b > 0, false)

Loops over rows have fewer branches then, and `unique-rows` and others take them for straight code. Levels 3 and 4:
what is no branch is also fused with other loops, which changes the order of sums.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i1

from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_COMPARES = (
    arith.ConstantOp, arith.CmpfOp, arith.CmpiOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.SelectOp,
    arith.ExtUIOp, scf.YieldOp,
)  # fmt: skip
_MOST = 10
"""Ops of both arms that are cheaper than a branch."""


class LazyComparisons(TellingPass):
    """Makes selections of branches in `evaluate` that choose truth values."""

    name = "lazy-comparisons"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        branches = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.IfOp]
        changed = False
        for branch in reversed(branches):  # inner ones first
            if branch.results and all(result.type == i1 for result in branch.results) and _only_compares(branch):
                _select(branch)
                changed = True
        return changed


def _only_compares(op: scf.IfOp) -> bool:
    """Whether both arms do nothing but compare values that are there before. None of it can fail."""
    count = 0
    for region in op.regions:
        for inner in region.block.ops:
            count += 1
            if not isinstance(inner, _COMPARES) or count > _MOST:
                return False
    return True


def _select(op: scf.IfOp) -> None:
    """Does what is in both arms, and selects: what an arm computes from values that have no meaning where it is not
    taken does not count then, as it would in a bitwise `and`.
    """
    block = op.parent
    assert block is not None
    arms = [region.block for region in op.regions]
    ends = [tuple(terminator(arm).operands) for arm in arms]
    for arm in arms:
        for inner in ops_of(arm):
            if not isinstance(inner, scf.YieldOp):
                inner.detach()
                block.insert_op_before(inner, op)
    for result, one, other in zip(op.results, *ends, strict=True):
        chosen = arith.SelectOp.create(operands=(op.cond, one, other), result_types=(i1,), location=op.location)
        block.insert_op_before(chosen, op)
        replace_uses(result, chosen.result)
    discard(op)
