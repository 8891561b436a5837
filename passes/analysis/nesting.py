"""Which block or op something stands in."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue


def block_of(value: SSAValue) -> Block | None:
    """The block that defines a value."""
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def ancestor_in(op: Operation, block: Block) -> Operation | None:
    """The op of `block` that is `op` or has it inside; None if there is none."""
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


def enclosing(op: Operation, kinds: type[Operation] | tuple[type[Operation], ...]) -> Operation | None:
    """The innermost op of some classes that `op` stands in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kinds):
        parent = parent.parent_op()
    return parent


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in the regions of `op`."""
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return parent is not None and op.is_ancestor(parent)
    return owner is not op and op.is_ancestor(owner)


def terminator(block: Block) -> Operation:
    """The last op of a block, which it must have."""
    end = block.last_op
    assert end is not None
    return end


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions of a module of lowered units, by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
