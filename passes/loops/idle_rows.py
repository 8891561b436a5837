"""Rows with which a loop does nothing, as data say: all that it does stands in arms of branches that they do not take.

for n: if seen[n]: target += f(eta[n], y[n])
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad
from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import arms_around, terminator
from ulam.passes.loops.data_slices import DataSlices


def working_arms(loops: Sequence[scf.ForOp], slices: DataSlices) -> dict[scf.ForOp, list[Block]] | None:
    """For loops over rows, the arms of branches of data in which they add to the target and to what they carry; None if
    one does so in all rows.
    """
    found: dict[scf.ForOp, list[Block]] = {}
    for loop in loops:
        body = loop.body.block
        works: list[Operation | Block] = [op for op in ops_within(body) if isinstance(op, ad.TargetAddOp)]
        for end, carried in zip(terminator(body).operands, body.args[1:], strict=True):
            works += _changes(end, carried, body)
        arms = [_innermost_arm(work, loop, slices) for work in works]
        for arm in arms:
            if arm is None:
                return None
            found.setdefault(loop, []).append(arm)
    return {loop: list(dict.fromkeys(arms)) for loop, arms in found.items()}


def _changes(value: SSAValue, carried: SSAValue, block: Block, neutral: int = 0) -> list[Operation | Block]:
    """Where a flag that a loop carries is set: in a block that has an op for it, or arms of branches. `neutral`: what
    does not set it.
    """
    if value is carried or known_constant(value) == neutral:
        return []
    op = value.owner
    if isinstance(op, arith.AndIOp if neutral else arith.OrIOp):
        return [where for operand in op.operands for where in _changes(operand, carried, block, neutral)]
    if isinstance(op, arith.ExtUIOp):
        return _changes(op.input, carried, block, neutral)
    if isinstance(op, arith.XOrIOp) and known_constant(op.rhs) == 1:
        return _changes(op.lhs, carried, block, 1 - neutral)
    if not isinstance(op, scf.IfOp):
        return [block]
    position = op.results.index(value)
    arms = (region.block for region in op.regions)
    return [where for arm in arms for where in _changes(terminator(arm).operands[position], carried, arm, neutral)]


def _innermost_arm(work: Operation | Block, loop: scf.ForOp, slices: DataSlices) -> Block | None:
    """The innermost arm of branches of data, with nothing else around, in which a row does something; None if it stands
    in none.
    """
    found: Block | None = None
    inside = work if isinstance(work, Operation) else work.last_op
    assert inside is not None
    for branch, arm in reversed(arms_around(inside, loop).items()):
        around = loop.body.block if found is None else found
        if branch.parent is not around or not isinstance(branch, scf.IfOp) or not slices.is_data(branch.cond):
            break
        found = arm
    return found
