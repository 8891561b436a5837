"""Free values: what a region uses but does not define.

The order is that of first use in program order, so everything built from it is deterministic.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects.walk import blocks_of, following_op, operand_tuple


def free_values(*regions: Region) -> list[SSAValue]:
    """Values used inside `regions` (and the regions nested in them) that are defined outside all of them."""
    free: list[SSAValue] = []
    known: set[int] = set()
    for region in regions:
        for block in region.blocks:
            _visit_block(block, known, free)
    return free


def free_values_of_op(op: Operation) -> list[SSAValue]:
    """The operands of `op` and the free values of its regions, each once."""
    free: dict[SSAValue, None] = dict.fromkeys(op.operands)
    for value in free_values(*op.regions):
        free[value] = None
    return list(free)


def _visit_block(block: Block, known: set[int], free: list[SSAValue]) -> None:
    """`known` are values that are defined inside, or in `free`, by identity: to hash one takes longer."""
    known.update(map(id, block.args))
    op = block.first_op
    while op is not None:
        for operand in operand_tuple(op):
            if id(operand) not in known:
                known.add(id(operand))
                free.append(operand)
        if op.regions:
            for inner in blocks_of(op):
                _visit_block(inner, known, free)
        known.update(map(id, op.results))
        op = following_op(op)
