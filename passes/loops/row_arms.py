"""Branches on data of a row: those whose arms become loops of their own, and what rows read in one arm alone."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import Arms, are_apart, arms_around, is_inside
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.row_loops import LoopOverRows, RowColumn
from ulam.passes.loops.tables import is_costly_function

_MOST_BRANCHES = 4
"""Of a chain that become loops; the runtime's kernel takes up to eight arms."""


def chain_of_branches(rows: LoopOverRows) -> list[scf.IfOp]:
    """The first branch on data of a row that has something costly in its arms, and those that follow in its else."""
    chain: list[scf.IfOp] = []
    block: Block | None = rows.body
    while block is not None and len(chain) < _MOST_BRANCHES:
        branch = _first_branch(block, rows)
        if branch is None:
            break
        chain.append(branch)
        block = branch.false_region.block if branch.false_region.blocks else None
    return chain


def _first_branch(block: Block, rows: LoopOverRows) -> scf.IfOp | None:
    """The first branch on data of a row that is costly; branches that are alike for all rows may stand around it, as
    far as one arm of them is costly.
    """
    for branch in rows.branches:
        if branch.parent is not block or not _is_costly(branch):
            continue
        if is_inside(branch.cond, rows.loop):
            if branch.cond.owner is not rows.body:
                return branch
            continue
        arms = [region.block for region in branch.regions if region.blocks and any(map(_is_costly, region.block.ops))]
        if len(arms) == 1 and (found := _first_branch(arms[0], rows)) is not None:
            return found
    return None


def _is_costly(op: Operation) -> bool:
    """Whether there is something costly in an op, or in its arms."""
    return any(isinstance(inner, arith.DivfOp) or is_costly_function(inner) for inner in ops_within(op))


def in_one_memory(rows: LoopOverRows) -> list[list[RowColumn]]:
    """The columns, together those that may be missing and of which each row reads one at most, in one of several arms:
    which arm that is, its data say, and they are columns, too.
    """
    found: list[list[RowColumn]] = []
    for column in rows.columns:
        arms = [_arms_of_row(load, rows) for load in column.loads]
        for others in found if column.may_be_missing else ():
            loads = [load for other in others for load in other.loads]
            if others[0].may_be_missing and loads[0].res.type == column.loads[0].res.type:
                if all(are_apart(mine, _arms_of_row(load, rows)) for mine in arms for load in loads):
                    others.append(column)
                    break
        else:
            found.append([column])
    return found


def only_chooses(value: SSAValue, branches: Sequence[scf.IfOp]) -> bool:
    """Whether nothing is computed of a value but conditions of branches."""
    ops = [use.operation for use in value.uses]
    return all(
        op in branches or (type(op) in PURE and all(only_chooses(result, branches) for result in op.results))
        for op in ops
    )


def _arms_of_row(op: Operation, rows: LoopOverRows) -> Arms:
    """The branches on data of the row that an op stands in, with the arm."""
    return {branch: arm for branch, arm in arms_around(op, rows.loop).items() if branch in rows.branches}
