"""Loops whose conditions do more than tell whether to go on, ahead of differentiation.

    while (f_lp(x) > 0) body    →    go = f_lp(x) > 0;  while (go) { body;  go = f_lp(x) > 0; }

The reverse sweep runs through the bodies of loops only. So what a condition adds to the target, or what it computes for
the body, is moved there: once before the loop, and to the end of the body.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad
from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.autodiff.activity import is_real
from ulam.passes.rewriting import copies, discard, replace_uses


def rotate_loops(block: Block) -> None:
    """Leaves the loops within `block` with conditions that hand on what they are given, inner loops first."""
    for op in ops_of(block):
        if not op.regions:
            continue
        for region in op.regions:
            for inner in region.blocks:
                rotate_loops(inner)
        if isinstance(op, scf.WhileOp) and _does_more(op.before_region.block):
            _rotate(op)


def _does_more(condition: Block) -> bool:
    """Whether a condition adds to the target, or hands on a number or a container other than those it was given."""
    if any(type(inner) is ad.TargetAddOp for op in condition.ops for inner in ops_within(op)):
        return True
    return any(is_real(value) and value.owner is not condition for value in terminator(condition).operands[1:])


def _rotate(op: scf.WhileOp) -> None:
    """Carried from now on: whether to go on, and what the condition handed on."""
    assert op.parent is not None
    end = terminator(op.after_region.block)
    first = _written_before(op, op, op.arguments)
    again = _written_before(end, op, end.operands)
    end.operands = again
    types = [value.type for value in first]
    head = Block(arg_types=types)
    head.add_op(scf.ConditionOp(head.args[0], *head.args))
    body = op.detach_region(op.after_region)
    body.block.insert_arg(types[0], 0)
    loop = scf.WhileOp(first, types, Region(head), body)
    loop.location = op.location
    loop.attributes = {**op.attributes}
    op.parent.insert_op_before(loop, op)
    for old, new in zip(op.results, loop.results[1:], strict=True):
        replace_uses(old, new)
    discard(op)


def _written_before(place: Operation, loop: scf.WhileOp, given: Sequence[SSAValue]) -> list[SSAValue]:
    """Writes the condition of `loop` at another place; what it says and what it hands on there."""
    condition = loop.before_region.block
    assert place.parent is not None
    values: dict[SSAValue, SSAValue] = dict(zip(condition.args, given, strict=True))
    *ops, end = condition.ops
    place.parent.insert_ops_before(copies(ops, values), place)
    return [values.get(value, value) for value in end.operands]
