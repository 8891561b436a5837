"""Which block or op something stands in."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ulam.dialects.walk import parent_of


def block_of(value: SSAValue) -> Block | None:
    """The block that defines a value."""
    if isinstance(value, OpResult):
        return value.op.parent
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def ancestor_in(op: Operation, block: Block) -> Operation | None:
    """The op of `block` that is `op` or has it inside; None if there is none."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = parent_of(current)
    return current


def enclosing(op: Operation, kinds: type[Operation] | tuple[type[Operation], ...]) -> Operation | None:
    """The innermost op of some classes that `op` stands in."""
    parent = parent_of(op)
    while parent is not None and not isinstance(parent, kinds):
        parent = parent_of(parent)
    return parent


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in the regions of `op`."""
    owner = value.op if isinstance(value, OpResult) else value.owner.parent_op()
    if owner is op:
        return not isinstance(value, OpResult)
    while owner is not None and owner is not op:
        owner = parent_of(owner)
    return owner is not None


def terminator(block: Block) -> Operation:
    """The last op of a block, which it must have."""
    end = block.last_op
    assert end is not None
    return end


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions of a module of lowered units, by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
