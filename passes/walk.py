"""A walk over nested ops.

xDSL's own (`Operation.walk`) takes time in proportion to the depth for every op: where a pass walks every level of a
deep nest, such as a long chain of `else if`, that makes the cube of its length.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation


def ops_within(root: Operation) -> Iterator[Operation]:
    """`root` and all ops below it, in program order. The ops must not change meanwhile."""
    pending = [root]
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
