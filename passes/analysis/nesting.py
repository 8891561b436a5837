"""Which block or op something stands in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key, reduce

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ulam.dialects.walk import ops_of, parent_of


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


def is_before(op: Operation, other: Operation) -> bool:
    """Whether an op stands ahead of another one in the same block.

    Looked for from both, in both directions at once: it takes as many steps as there are ops in between, or to the
    nearest end of the block. xDSL's `is_before_in_block` goes to the end of the block where it does not find the other.
    """
    if op is other or op.parent is None or op.parent is not other.parent:
        return False
    ahead, behind, ahead_of_other, behind_other = op, op, other, other
    while True:
        following, previous = behind.next_op, ahead.prev_op
        if following is None or previous is other:
            return False
        if following is other or previous is None:
            return True
        ahead, behind = previous, following
        following, previous = behind_other.next_op, ahead_of_other.prev_op
        if following is None or previous is op:
            return True
        if following is op or previous is None:
            return False
        ahead_of_other, behind_other = previous, following


class OpOrder:
    """Which ops of a block stand ahead of which, for many questions: each block is numbered once.

    Meanwhile ops may come and go, but not move.
    """

    def __init__(self) -> None:
        self._numbers: dict[Block, dict[Operation, int]] = {}

    def is_before(self, op: Operation, other: Operation) -> bool:
        """Whether an op stands ahead of another one in the same block."""
        block = op.parent
        if block is None or other.parent is not block:
            return False
        numbers = self._numbers.get(block)
        if numbers is None:
            numbers = self._numbers[block] = {each: n for n, each in enumerate(ops_of(block))}
        first, second = numbers.get(op), numbers.get(other)
        return is_before(op, other) if first is None or second is None else first < second

    def last(self, ops: Iterable[Operation]) -> Operation:
        """The last of some ops of one block, at least one."""
        return reduce(lambda op, other: other if self.is_before(op, other) else op, ops)


def in_order(ops: Iterable[Operation]) -> list[Operation]:
    """Ops of one block as they stand there."""
    return sorted(ops, key=cmp_to_key(lambda op, other: -1 if is_before(op, other) else 1))


def enclosing(op: Operation, kinds: type[Operation] | tuple[type[Operation], ...]) -> Operation | None:
    """The innermost op of some classes that `op` stands in."""
    parent = parent_of(op)
    while parent is not None and not isinstance(parent, kinds):
        parent = parent_of(parent)
    return parent


Arms = dict[Operation, Block]
"""Branches, with an arm of each."""


def arms_around(op: Operation, outer: Operation) -> Arms:
    """The branches between two ops, with the arm that the first stands in; the innermost first."""
    found: Arms = {}
    while (block := op.parent) is not None and (around := block.parent_op()) is not outer:
        assert around is not None
        if isinstance(around, scf.IfOp):
            found[around] = block
        op = around
    return found


def are_apart(first: Arms, second: Arms) -> bool:
    """Whether nothing does both what stands in some arms and what stands in others."""
    return any(second.get(branch, arm) is not arm for branch, arm in first.items())


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
