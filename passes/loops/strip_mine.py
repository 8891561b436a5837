"""Runs the rows of a nest side by side: its outer loop in strips, each strip inside of the inner loops.

    for i: { s = 0; for j: { s += f(x[i, j]) }; y[i] = g(s) }
    →   for strips of rows:
          for row: s[row] = 0
          for j: for row: s[row] += f(x[first + row, j])
          for row: y[first + row] = g(s[row])

This is strip-mining, distribution and interchange in one. LLVM widens inner loops only: where these have five
iterations, or each needs what the last one computed, nothing is widened, although the rows have nothing to do with each
other. What a row carries from one part of its body to the next becomes an array with an element for each row of the
strip; sums that all rows add to go through all parts (`row_nests`). Memory that a row takes for itself is taken for the
strip, element by element: LLVM does not widen such loops, so that alone is worth it where inner loops are straight code
by now. A branch with loops inside is run arm by arm, if any row of the strip takes the arm; parts of it leave out the
rows that do not. Additions to elements that data decide about get parts of their own, which stay scalar; loads of such
elements of a row's memory begin a part. Data with one row behind the other are transposed, once, when they are bound.

Where memory could be touched in another order, sizes decide when the loop begins (`index_forms`): the loop as it was is
kept for when they do not allow it, for few rows, and for long columns that are neighbours in memory. Idea: outer-loop
vectorization, Nuzman and Zaks, "Outer-loop vectorization: revisited for short SIMD architectures", PACT 2008.
"""

from __future__ import annotations

from itertools import islice

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.coalesced_rows import is_of_layouts
from ulam.passes.loops.data_branches import lift_values, may_lift
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.even_rows import EvenRows
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.merged_flags import merge_flags
from ulam.passes.loops.row_columns import RowColumns
from ulam.passes.loops.row_nests import CALLS, SCALAR, SHORT_COLUMNS, SIZE, NotApplicable, RowNest
from ulam.passes.loops.strips import Strips
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES


@record(frozen=True)
class StripMine(TellingPass):
    """Runs rows of nests of loops in `evaluate` side by side, where inner loops are too short to be widened."""

    name = "strip-mine"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        done = _visit(evaluate.body.block, may_transpose=True)
        if any(strips.tables or strips.is_even for strips in done):
            set_slots(module, hoist_data(evaluate, slots_of(module)))
        return bool(done)


def _visit_nests(branch: scf.IfOp, top: Block) -> list[Strips]:
    """The same for nests that stand where the loop over their rows does not run: data are transposed as ahead of it."""
    slices = DataSlices()
    arm = branch.false_region.block
    loops = [op for op in ops_of(arm) if type(op) is scf.ForOp]
    are_lifted = all([may_lift(op, top, slices) for op in loops])
    if are_lifted:
        for op in loops:
            lift_values(op, top, slices)
    done = _visit(arm, may_transpose=are_lifted, unless=branch.cond)
    for op in [op for strips in done if are_lifted and strips.tables for op in strips.ahead]:
        op.detach()
        top.insert_op_before(op, branch)
    return done


def _visit(
    block: Block, *, may_transpose: bool, unless: SSAValue | None = None, groups: scf.ForOp | None = None
) -> list[Strips]:
    """`unless`: what says that the block does not run; `groups`: the loop over groups of rows that it stands in."""
    done: list[Strips] = []
    for op in ops_of(block):
        if type(op) is scf.ForOp and not rt.LoopAttr.is_cold(op):
            if not any(isinstance(inner, SCALAR) for inner in ops_within(op.body.block)):
                continue
            try:
                merge_flags(op)
                _hoist(op)
                strips = _of_changed_copy(op, groups, may_transpose=may_transpose and unless is None)
                strips = strips or Strips(RowNest(op, may_transpose), op, unless=unless)
                told = strips.replace()
            except NotApplicable as why:
                if str(why):
                    remark_on(StripMine.name, op, f"its iterations do not run side by side: {why}", done=False)
            else:
                remark_on(StripMine.name, op, told, done=True)
                done.append(strips)
                continue
        regions = list(op.regions)
        if may_transpose and unless is None and isinstance(op, scf.IfOp) and is_of_layouts(op.cond):
            done += _visit_nests(op, block)
            regions.pop()
        for region in regions:
            for inner in region.blocks:
                done += _visit(inner, may_transpose=False, groups=groups or _over_groups(op, may_transpose))
    return done


def _over_groups(op: Operation, may_transpose: bool) -> scf.ForOp | None:
    """A loop over groups of rows, ahead of which data may be prepared."""
    if isinstance(op, scf.ForOp) and may_transpose and rt.LoopAttr.kind_of(op)[0] == "groups":
        return op
    return None


def _of_changed_copy(op: scf.ForOp, groups: scf.ForOp | None, *, may_transpose: bool) -> Strips | None:
    """Strips of a copy of a nest whose inner loops are of one size, or do less; None if there is nothing to gain.

    Sizes of rows are compared where data may be prepared: ahead of the nest, or of the loop over groups around it.
    """
    outer = op.parent
    is_uneven = (may_transpose or groups is not None) and EvenRows.may_gain(op)
    if not (is_uneven or RowColumns.may_gain(op)) or outer is None or _has_more_ops(op, SIZE):
        return None
    if any(isinstance(inner, CALLS) for inner in ops_within(op.body.block)):
        return None  # rows are not side by side, whatever is done to loops in them
    nest = cloned(op)
    outer.insert_op_before(nest, op)
    even, columns = EvenRows(nest, groups or nest), RowColumns(nest)
    try:
        is_even = is_uneven and even.change()
        if is_even:
            _hoist(nest)
        if columns.change() or is_even:
            _hoist(nest)
            strips = Strips(RowNest(nest, may_transpose), op, is_even)
            strips.require(even, columns)
            if is_even:
                columns.done.append(f"its rows are as long as the longest, if each has 1 to {SHORT_COLUMNS} iterations")
            for message in dict.fromkeys(columns.done):
                remark_on(StripMine.name, op, message, done=True)
            return strips
    except NotApplicable as why:
        if is_uneven and str(why):
            remark_on(StripMine.name, op, f"its rows are not made even: {why}", done=False)
    discard(nest)
    even.undo()
    return None


def _has_more_ops(nest: scf.ForOp, number: int) -> bool:
    return next(islice(ops_within(nest.body.block), number, None), None) is not None


def _hoist(nest: scf.ForOp) -> None:
    """Moves what is the same in all iterations in front of the loop: sizes that are tested there."""
    block = nest.parent
    assert block is not None
    for op in ops_of(nest.body.block):
        if is_speculatable(op) and not any(is_inside(operand, nest) for operand in op.operands):
            op.detach()
            block.insert_op_before(op, nest)
