"""Replacing and discarding ops, without the checks that make xDSL's own methods slow.

Why passes are single walks of our own with these, and not patterns: docs/architecture.md, "Our own passes".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import SSAValues

from ulam.dialects.op_making import append, made, set_operand
from ulam.dialects.walk import operand_tuple
from ulam.passes.analysis.nesting import ancestor_in

OpT = TypeVar("OpT", bound=Operation)
_NO_RESULTS = SSAValues[OpResult](())


def replace_uses(value: SSAValue, by: SSAValue) -> None:
    """Lets all users of `value` use `by`, which takes over its name if it has none."""
    if value is by:
        return
    while (use := value.first_use) is not None:
        set_operand(use, by)
    if by.name_hint is None:
        by.name_hint = value.name_hint


def discard(op: Operation) -> None:
    """Takes `op` out of its block for good. The caller knows that nothing but dead code uses its results.

    It has none then: results know their op, and while both know each other only Python's cyclic collector, which does
    not run during a compile, gives their memory back.
    """
    op.detach()
    op.drop_all_references()
    if not op.regions:
        op.results = _NO_RESULTS


def applied_to(op: OpT, operands: Sequence[SSAValue], result_types: Sequence[Attribute] | None = None) -> OpT:
    """The same op, without regions, on other operands; `result_types` if they differ."""
    types = [result.type for result in op.results] if result_types is None else result_types
    return made(type(op), operands, types, op.properties, op.attributes, (), op.location)


def rebuild(op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]) -> Operation:
    """The same op with other operands and further results, in its place; its regions move over."""
    regions: list[Region] = [op.detach_region(r) for r in list(op.regions)]
    new = made(type(op), operands, result_types, op.properties, op.attributes, regions, op.location)
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    for result, replacement in zip(op.results, new.results, strict=False):
        replacement.name_hint = result.name_hint
        result.replace_all_uses_with(replacement)
    op.detach()
    op.erase()
    return new


def with_body(op: Operation, body: Block) -> Operation:
    """The same op, of neither operands nor results, with another body; that of `op` stays there."""
    return made(type(op), (), (), op.properties, op.attributes, [Region(body)], op.location)


def cloned(op: OpT, mapping: dict[SSAValue, SSAValue] | None = None) -> OpT:
    """A copy of an op and its regions, as `Operation.clone` makes it: that takes longer for what is deeper nested."""
    return cast(OpT, copies((op,), {} if mapping is None else mapping)[0])


def copies(ops: Iterable[Operation], mapping: dict[SSAValue, SSAValue]) -> list[Operation]:
    """Copies of ops that follow one another, regions included, with locations and names.

    Operands that `mapping` knows are replaced; it learns the results of the copies.
    """
    copied: list[Operation] = []
    for op in ops:
        new = made(
            type(op),
            [mapping.get(operand, operand) for operand in operand_tuple(op)],
            [result.type for result in op.results],
            op.properties,
            op.attributes,
            [copy_region(region, mapping) for region in op.regions] if op.regions else (),
            op.location,
        )
        for old_result, new_result in zip(op.results, new.results, strict=True):
            if (hint := old_result.name_hint) is not None:
                new_result.name_hint = hint
            mapping[old_result] = new_result
        copied.append(new)
    return copied


def copy_region(region: Region, mapping: dict[SSAValue, SSAValue]) -> Region:
    """A copy of a region of at most one block; see `copies`."""
    if not region.blocks:
        return Region()
    block = region.block
    new = Block(arg_types=[argument.type for argument in block.args])
    for old_argument, new_argument in zip(block.args, new.args, strict=True):
        new_argument.name_hint = old_argument.name_hint
        new_argument.location = old_argument.location
        mapping[old_argument] = new_argument
    for op in copies(block.ops, mapping):
        append(new, op)
    return Region(new)


def take_arm(branch: scf.IfOp, arm: Region) -> None:
    """Puts an arm in the place of its branch."""
    block = branch.parent
    assert block is not None
    if arm.blocks:
        end = arm.block.last_op
        assert end is not None
        for result, value in zip(branch.results, end.operands, strict=True):
            replace_uses(result, value)
        discard(end)
        for op in list(arm.block.ops):
            op.detach()
            block.insert_op_before(op, branch)
    discard(branch)


def sink_into_arm(op: Operation) -> bool:
    """Moves an op to the begin of the innermost arm of a branch that alone uses it, of branches that stand in no other
    region; whether there is one."""
    users = list(dict.fromkeys(use.operation for result in op.results for use in result.uses))
    block = innermost_arm(users, op.parent)
    if block is None or block is op.parent:
        return False
    op.detach()
    assert block.first_op is not None
    block.insert_op_before(op, block.first_op)
    return True


def innermost_arm(ops: Sequence[Operation], block: Block | None) -> Block | None:
    """The innermost arm that has ops inside, of branches in a block that stand in no other region; or the block."""
    inner = block
    while inner is not None:
        block = inner
        arms = {_arm_of(op, block) for op in ops}
        inner = arms.pop() if len(arms) == 1 else None
    return block


def _arm_of(op: Operation, block: Block) -> Block | None:
    """The arm of a branch in `block` that has an op inside; None if it is not in one."""
    branch = ancestor_in(op, block)
    if not isinstance(branch, scf.IfOp) or branch is op:
        return None
    return next(arm for region in branch.regions for arm in region.blocks if ancestor_in(op, arm) is not None)
