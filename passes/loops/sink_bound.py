"""Entries of the bound table that one arm of a branch reads are read there.

    x = bound 3; if (c) f(x) else g()        →        if (c) {x = bound 3; f(x)} else g()

Layouts of the data have a branch with the loop as it was, and what this needs stands at the top of the function. Read
there, it would take registers, and be put away to the stack, in evaluations that do not come to it.
"""

from __future__ import annotations

from xdsl.dialects import func

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.rewriting import sink_into_arm


@record(frozen=True)
class SinkBound(FunctionPass):
    """Moves what reads the bound table into the arm of a branch that alone uses it."""

    name = "sink-bound"

    def changes_function(self, function: func.FuncOp) -> bool:
        reads = [op for op in function.body.block.ops if isinstance(op, rt.BoundOp)]
        return any([sink_into_arm(op) for op in reads])
