"""Checks of data leave the loops and branches of `evaluate` for loops and branches of their own.

    for n { check(y[n] > 0); t += f(y[n], theta) }   →   for n { check(y[n] > 0) }; for n { t += f(y[n], theta) }

The first of the two depends on data alone, so `hoist-data` moves it to `bind`. Which checks are separated: those whose
operands are data, and of which data alone decide whether they run (`data_slices`).
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.dialects.walk import ops_of
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class SeparateDataChecks(TellingPass):
    """Gives checks of data within loops and branches of `evaluate` loops and branches of their own."""

    name = "separate-data-checks"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return separate_data_checks(evaluate_of(module, self.name))


def separate_data_checks(function: func.FuncOp) -> bool:
    """Moves checks of data out of top-level loops and branches into such of their own; whether there were any."""
    slices = DataSlices()
    found = False
    for op in ops_of(function.body.block):
        if not isinstance(op, scf.ForOp | scf.IfOp):
            continue
        checks: list[Operation] = []
        _collect(op, slices, checks)
        if not checks:
            continue
        found = True
        function.body.block.insert_op_before(slices.copy(op, checks), op)
        for check in checks:
            check.detach()
            check.erase()
    return found


def _collect(op: Operation, slices: DataSlices, checks: list[Operation]) -> None:
    """Checks of data at or below `op`, as far as only data decide whether they run."""
    if isinstance(op, rt.CheckOp):
        if all(slices.is_data(o) for o in op.operands):
            checks.append(op)
    elif slices.has_data_control(op):
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    _collect(inner, slices, checks)
