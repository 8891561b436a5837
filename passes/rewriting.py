"""Replacing and discarding ops, without the checks that make xDSL's own methods slow."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue


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
