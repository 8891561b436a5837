"""Loops at the top of `evaluate`, and those in branches there of which data decide: the same, but they may not run.

    if (N >= 1) { ...; for n in 0:N: ... }     →     end = N >= 1 ? N : 0;  if (N >= 1) { ...; for n in 0:end: ... }

What is found out about a loop's data when data are bound stands in front of the branch: such a loop then has no rows
where it does not run. Of branches of which layouts decide (`coalesce-loops`) it is not known yet which arm runs: loops
there have all their rows.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.coalesced_rows import is_of_layouts
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE


def outermost_loops(block: Block, slices: DataSlices) -> list[scf.ForOp]:
    """The loops of a block, and of branches of which data decide, that stand in no other.

    Not nests that stand beside one loop with the same rows, which have no layout if that has none.
    """
    found: list[scf.ForOp] = []
    for op in block.ops:
        if type(op) is scf.ForOp:
            found.append(op)
        elif type(op) is scf.IfOp and slices.is_data(op.cond):
            for region in op.regions[:1] if is_of_layouts(op.cond) else op.regions:
                if region.blocks:
                    found += outermost_loops(region.block, slices)
    return found


def may_lift(loop: Operation, top: Block, slices: DataSlices) -> bool:
    """Whether all data that an op uses can be computed in front of the branches that it stands in."""
    return loop.parent is top or _needed(loop, top, slices) is not None


def lift(loop: scf.ForOp, top: Block, slices: DataSlices) -> None:
    """Computes the data that a loop uses, and its end, in front of the branches that it stands in."""
    if loop.parent is top:
        return
    lift_values(loop, top, slices)
    loop.operands = [loop.lb, where_it_runs(loop, loop.ub, loop.lb, top), *loop.operands[2:]]


def lift_values(loop: Operation, top: Block, slices: DataSlices) -> None:
    """Computes the data that an op uses, and whether it runs, in front of the branches that it stands in."""
    needed = _needed(loop, top, slices)
    anchor = ancestor_in(loop, top)
    assert needed is not None and anchor is not None
    for op in needed:
        op.detach()
        top.insert_op_before(op, anchor)


def where_it_runs(inside: Operation, value: SSAValue, otherwise: SSAValue, top: Block) -> SSAValue:
    """An integer where an op runs that stands in branches, another one where it does not; known in front of these."""
    anchor, location = ancestor_in(inside, top), inside.location
    assert anchor is not None
    while inside is not anchor:
        block, branch = inside.parent, inside.parent_op()
        assert isinstance(branch, scf.IfOp)
        if is_of_layouts(branch.cond):
            inside = branch
            continue
        ends = (value, otherwise) if branch.true_region.block is block else (otherwise, value)
        chosen = arith.SelectOp.create(operands=(branch.cond, *ends), result_types=(i64,), location=location)
        top.insert_op_before(chosen, anchor)
        value, inside = chosen.result, branch
    return value


def _needed(loop: Operation, top: Block, slices: DataSlices) -> list[Operation] | None:
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
