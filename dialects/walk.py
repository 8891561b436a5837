"""The walk over nested ops.

xDSL's own (`Operation.walk`) takes time in proportion to the depth for every op: where a pass walks every level of a
deep nest, such as a long chain of `else if`, that makes the cube of its length. On ordinary functions, too, it costs
several times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from xdsl.ir import Block, Operation, Region, SSAValue

operand_tuple: Callable[[Operation], tuple[SSAValue, ...]] = attrgetter("_operands")
"""The operands as a plain tuple: an `OpOperands` view costs several times as much to make and to go through."""
previous_op: Callable[[Operation], Operation | None] = attrgetter("_prev_op")
following_op: Callable[[Operation], Operation | None] = attrgetter("_next_op")
"""`prev_op` and `next_op`, which are properties, at half their cost: for what is done to every op."""
_last_block: Callable[[Region], Block | None] = attrgetter("_last_block")
_previous_block: Callable[[Block], Block | None] = attrgetter("_prev_block")
_last_op: Callable[[Block], Operation | None] = attrgetter("_last_op")


def ops_within(root: Operation | Block | Region) -> Iterator[Operation]:
    """All ops below `root`, and itself if it is one, in program order. The ops must not change meanwhile."""
    pending: list[Operation] = []
    if isinstance(root, Operation):
        pending.append(root)
    else:
        for block in (root,) if isinstance(root, Block) else reversed(root.blocks):
            pending += reversed(block.ops)
    while pending:
        op = pending.pop()
        yield op
        if not op.regions:
            continue
        for region in reversed(op.regions):
            block = _last_block(region)
            while block is not None:
                inner = _last_op(block)
                while inner is not None:
                    pending.append(inner)
                    inner = previous_op(inner)
                block = _previous_block(block)
