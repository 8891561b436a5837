"""Loops at the top of `evaluate`, and those in branches there of which data decide: the same, but they may not run.

    if (N >= 1) { ...; for n in 0:N: ... }     →     end = N >= 1 ? N : 0;  if (N >= 1) { ...; for n in 0:end: ... }

What is found out about a loop's data when data are bound stands in front of the branch: such a loop then has no rows
where it does not run.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE


def outermost_loops(block: Block, slices: DataSlices) -> list[scf.ForOp]:
    """The loops of a block, and of branches of which data decide, that stand in no other."""
    found: list[scf.ForOp] = []
    for op in block.ops:
        if type(op) is scf.ForOp:
            found.append(op)
        elif type(op) is scf.IfOp and slices.is_data(op.cond):
            for region in op.regions:
                if region.blocks:
                    found += outermost_loops(region.block, slices)
    return found


def may_lift(loop: scf.ForOp, top: Block, slices: DataSlices) -> bool:
    """Whether all data that a loop uses can be computed in front of the branches that it stands in."""
    return loop.parent is top or _needed(loop, top, slices) is not None


def lift(loop: scf.ForOp, top: Block, slices: DataSlices) -> None:
    """Computes the data that a loop uses, and its end, in front of the branches that it stands in."""
    if loop.parent is top:
        return
    needed = _needed(loop, top, slices)
    anchor = ancestor_in(loop, top)
    assert needed is not None and anchor is not None
    for op in needed:
        op.detach()
        top.insert_op_before(op, anchor)
    end = loop.ub
    inside: Operation = loop
    while inside is not anchor:
        block, branch = inside.parent, inside.parent_op()
        assert isinstance(branch, scf.IfOp)
        ends = (end, loop.lb) if branch.true_region.block is block else (loop.lb, end)
        chosen = arith.SelectOp.create(operands=(branch.cond, *ends), result_types=(i64,), location=loop.location)
        top.insert_op_before(chosen, anchor)
        end, inside = chosen.result, branch
    loop.operands = [loop.lb, end, *loop.operands[2:]]


def _needed(loop: scf.ForOp, top: Block, slices: DataSlices) -> list[Operation] | None:
    """The ops inside of branches that compute data for a loop, and conditions around it, in order; None if one of them
    may be undefined where the loop does not run.
    """
    anchor = ancestor_in(loop, top)
    assert anchor is not None
    work = [value for value in free_values_of_op(loop) if slices.is_data(value) or slices.is_data_buffer(value)]
    branch = loop.parent_op()
    while isinstance(branch, scf.IfOp) and branch is not anchor:
        work.append(branch.cond)
        branch = branch.parent_op()
    found: dict[Operation, None] = {}
    if not _visit(work, anchor, found):
        return None
    return list(found)


def _visit(values: list[SSAValue], anchor: Operation, found: dict[Operation, None]) -> bool:
    """Finds what computes values inside of an op, operands first; whether it can be computed anywhere."""
    for value in values:
        op = value.owner
        if not is_inside(value, anchor) or op in found:
            continue
        if not isinstance(op, Operation) or type(op) not in PURE or not _visit(list(op.operands), anchor, found):
            return False
        found[op] = None
    return True
