"""Functions that are made of ops of another one (`rt.part`): what they take along, and what they are called with."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.ir import Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.op_making import set_operand
from ulam.dialects.walk import operand_tuple, ops_within
from ulam.passes.analysis.nesting import terminator

COPIED = (arith.ConstantOp, rt.BoundOp, rt.ConstantsOp, rt.StringOp, rt.NullOp)
"""What a part has copies of; all other values are passed to it."""
WRITES_BOUND = (rt.SetBoundOp, rt.AllocBoundOp)
"""A function with one of these stays whole: what is read of the bound table may change."""


def part_of(region: Region, results: Sequence[SSAValue], name: str, like: Operation) -> func.FuncOp:
    """The function `name` of a region, which returns `results`."""
    body = region.block
    body.add_op(func.ReturnOp(*results))
    return func.FuncOp.create(
        properties={
            "sym_name": StringAttr(name),
            "function_type": FunctionType.from_lists([a.type for a in body.args], [r.type for r in results]),
            "sym_visibility": StringAttr("private"),
        },
        attributes=rt.PartAttr().as_attributes(),
        regions=[region],
        location=like.location,
    )


def bring_in(region: Region, free: Sequence[SSAValue], passed: Sequence[SSAValue]) -> None:
    """Makes arguments of the values of `free` that are `passed`, in that order; of the others there are copies."""
    body = region.block
    first = terminator(body) if body.first_op is None else body.first_op
    known: dict[int, SSAValue] = {}  # by identity: to hash a value takes longer
    for value in passed:
        argument = known[id(value)] = body.insert_arg(value.type, len(body.args))
        argument.name_hint = value.name_hint
    for value in free:
        if id(value) not in known:
            assert isinstance(value.owner, COPIED)
            copy = value.owner.clone()
            body.insert_op_before(copy, first)
            known[id(value)] = copy.results[0]
    for op in ops_within(region):
        for operand, use in zip(operand_tuple(op), op._operand_uses, strict=True):
            if (inside := known.get(id(operand))) is not None:
                set_operand(use, inside)


def takes_stack(op: Operation) -> bool:
    """Whether `op` takes memory on the stack that may be in use behind it."""
    if isinstance(op, rt.AllocOp):
        return op.stack is not None
    is_loop = isinstance(op, scf.ForOp | scf.WhileOp)
    return not is_loop and any(map(takes_stack, (o for r in op.regions for b in r.blocks for o in b.ops)))
