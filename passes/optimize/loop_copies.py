"""Copying the body of a loop to the place of the loop: what both unrolling passes share.

An iteration may be written out if nothing in the body leaves the loop (`break`, `continue` at its own level) and the
end of the body can be reached: behind a copy that always returns, no other statement could stand.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.passes.analysis.literals import evaluate
from ulam.passes.rewriting import copies
from ulam.passes.variable_form import constant, literal_of, mark_local


def int_literal(value: SSAValue) -> int | None:
    """The int that a literal, or an operator on such, stands for."""
    op = value.owner
    if value.type != stan.INT or not isinstance(op, Operation) or op.regions:
        return None
    if isinstance(op, stan.ConstantOp):
        number = literal_of(value)
    else:
        operands = [number for operand in op.operands if (number := int_literal(operand)) is not None]
        is_operator = operands and len(operands) == len(op.operands) and not isinstance(op, stan.CallOp)
        number = evaluate(op, operands) if is_operator else None
    return number if isinstance(number, int) else None


def never_ends(block: Block) -> bool:
    """Whether the end of a region is never reached, since the region always leaves by break, continue or return."""
    last = block.last_op
    if not isinstance(last, stan.YieldOp):
        return True
    before = last.prev_op
    return isinstance(before, stan.IfOp) and never_ends(before.then.block) and never_ends(before.otherwise.block)


def without_end(block: Block) -> list[Operation]:
    """The statements of a region: its ops but for the terminator."""
    ops = ops_of(block)
    ops.pop()
    return ops


def write_copies(body: Iterable[Operation], mapping: dict[SSAValue, SSAValue], before: Operation) -> list[Operation]:
    """Writes copies of statements before an op; what they declare is local, at the top level of a block too."""
    new = copies(body, mapping)
    block = before.parent
    assert block is not None
    block.insert_ops_before(new, before)
    if isinstance(block.parent_op(), stan.BlockOp):
        for op in new:
            mark_local(op)
    return new


def spread_literal(op: stan.ConstantOp) -> None:
    """Gives each use of a literal one of its own, as if it were written there; the given one goes."""
    number = literal_of(op.results[0])
    assert number is not None
    for use in list(op.results[0].uses):
        user = use.operation
        own = constant(number, op.location)
        assert user.parent is not None
        user.parent.insert_op_before(own, user)
        user.operands[use.index] = own.results[0]
    assert op.parent is not None
    op.parent.erase_op(op)
