"""Which kind of node is at a position: by the table of the function, and by what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulam.tracing.frames import Frame
from ulam.tracing.nodes import (
    ArgumentNode,
    ConstantNode,
    DrawNode,
    ItemNode,
    JumpNode,
    NestedCallNode,
    Node,
    PrimitiveCallNode,
    ReturnNode,
    SpecialCallNode,
)
from ulam.tracing.target_nodes import ConstrainNode, NestedTildeNode, TargetNode, TildeNode

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

_KINDS: dict[str, type[ItemNode]] = {
    "special": SpecialCallNode, "target": TargetNode, "tilde": TildeNode, "constant": ConstantNode,
}  # fmt: skip


def make_node(trace: Trace, frame: Frame, position: int) -> Node:
    """The node at a position. Raises IndexError if there is none."""
    if position < 1:
        raise IndexError(f"position {position}")
    if position <= frame.head:
        return ArgumentNode(trace, frame, position, None)
    where = frame.spot(position)
    block = frame.block_at(where)
    if where.offset < len(block.arguments):
        return ArgumentNode(trace, frame, position, where)
    ordinal = where.offset - len(block.arguments)
    if ordinal < len(block.items):
        item = block.items[ordinal]
        kind = _KINDS.get(item.kind)
        entered = frame.is_entered(where, item)
        if item.kind == "tilde" and entered:
            kind = NestedTildeNode
        elif item.kind == "special" and item.text:
            kind = ConstrainNode
        elif kind is None:
            kind = NestedCallNode if entered else DrawNode if item.draws else PrimitiveCallNode
        return kind(trace, frame, position, where)
    return (JumpNode if block.edges[0].target else ReturnNode)(trace, frame, position, where)
