"""The walk over nested ops.

xDSL's own (`Operation.walk`) takes time in proportion to the depth for every op: where a pass walks every level of a
deep nest, such as a long chain of `else if`, that makes the cube of its length. On ordinary functions, too, it costs
several times as much.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, Region


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
            for block in reversed(region.blocks):
                inner = block.last_op
                while inner is not None:
                    pending.append(inner)
                    inner = inner.prev_op
