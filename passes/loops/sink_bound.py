"""Entries of the bound table that one arm of a branch reads are read there.

    x = bound 3; if (c) f(x) else g()        →        if (c) {x = bound 3; f(x)} else g()

Layouts of the data have a branch with the loop as it was, and what this needs stands at the top of the function. Read
there, it would take registers, and be put away to the stack, in evaluations that do not come to it.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in
from ulam.passes.loops.function_passes import FunctionPass


@record(frozen=True)
class SinkBound(FunctionPass):
    """Moves what reads the bound table into the arm of a branch that alone uses it."""

    name = "sink-bound"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        for op in [op for op in function.body.block.ops if isinstance(op, rt.BoundOp)]:
            users = list(dict.fromkeys(use.operation for use in op.res.uses))
            block = _innermost(users, function.body.block) if users else function.body.block
            if block is not function.body.block:
                op.detach()
                assert block.first_op is not None
                block.insert_op_before(op, block.first_op)
                changed = True
        return changed


def _innermost(users: list[Operation], block: Block) -> Block:
    """The block of the innermost arm that has all of some ops, of branches that stand in no loop."""
    while True:
        branch = ancestor_in(users[0], block)
        if not isinstance(branch, scf.IfOp) or branch is users[0]:
            return block
        arms = [arm.block for arm in branch.regions if arm.blocks and ancestor_in(users[0], arm.block) is not None]
        if not arms or any(ancestor_in(user, arms[0]) is None for user in users[1:]):
            return block
        (block,) = arms
