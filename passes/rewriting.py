"""Replacing and discarding ops, without the checks that make xDSL's own methods slow."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, Region, SSAValue


def replace_uses(value: SSAValue, by: SSAValue) -> None:
    """Lets all users of `value` use `by`, which takes over its name if it has none."""
    if value is by:
        return
    while (use := value.first_use) is not None:
        use.operation.operands[use.index] = by
    if by.name_hint is None:
        by.name_hint = value.name_hint


def discard(op: Operation) -> None:
    """Takes `op` out of its block for good. The caller knows that nothing but dead code uses its results."""
    op.detach()
    op.drop_all_references()


def rebuild(op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]) -> Operation:
    """The same op with other operands and further results, in its place; its regions move over."""
    regions: list[Region] = [op.detach_region(r) for r in list(op.regions)]
    new = type(op).create(
        operands=operands,
        result_types=result_types,
        properties=op.properties,
        attributes=op.attributes,
        regions=regions,
        location=op.location,
    )
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    for result, replacement in zip(op.results, new.results, strict=False):
        replacement.name_hint = result.name_hint
        result.replace_all_uses_with(replacement)
    op.detach()
    op.erase()
    return new
