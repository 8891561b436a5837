"""Verifies that every value is defined before it is used. xDSL's own verification does not.

A value is visible after its op, in the same block and in the regions of later ops, not beyond an op that is isolated
from above; block arguments are visible in their block; across blocks of one region, definitions must dominate.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.passes import ModulePass
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException


class DominanceError(VerifyException):
    """A use in `op` that its definition does not dominate."""

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


class VerifyDominance(ModulePass):
    """Fails on the first use that its definition does not dominate; changes nothing."""

    name = "verify-dominance"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Raises VerifyException if a use at or below `op` is not dominated by its definition."""
    _verify_op(op, set(op.operands))


def _verify_op(op: Operation, visible: set[SSAValue]) -> None:
    for position, operand in enumerate(op.operands):
        if operand not in visible:
            raise DominanceError(
                f"operand {position} of {op.name} is used before its definition: {_describe(operand)}", op
            )
    if op.regions:
        seen_inside: set[SSAValue] = set() if op.has_trait(IsolatedFromAbove) else visible
        for region in op.regions:
            _verify_region(region, seen_inside)


def _verify_region(region: Region, visible: set[SSAValue]) -> None:
    blocks = list(region.blocks)
    dominance = DominanceInfo(region) if len(blocks) > 1 else None
    for block in blocks:
        inside = set(visible)
        if dominance is not None:
            for other in blocks:
                if other is not block and dominance.strictly_dominates(other, block):
                    inside.update(_definitions(other))
        inside.update(block.args)
        for op in block.ops:
            _verify_op(op, inside)
            inside.update(op.results)


def _definitions(block: Block) -> list[SSAValue]:
    values: list[SSAValue] = list(block.args)
    for op in block.ops:
        values += op.results
    return values


def _describe(value: SSAValue) -> str:
    name = f"%{value.name_hint}" if value.name_hint else "a value"
    owner = value.owner
    return f"{name}, argument of a block" if isinstance(owner, Block) else f"{name}, result of {owner.name}"
