"""Which kind of node is at a position: by the table of the function, and by what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulam.tracing.nodes import (
    ArgumentNode,
    Const,
    ConstantNode,
    DrawNode,
    ItemNode,
    JumpNode,
    NestedCallNode,
    Node,
    PrimitiveCallNode,
    Ref,
    ReturnNode,
    SpecialCallNode,
)
from ulam.tracing.tape.frames import Frame

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace


# ---------------------------------------------------------------- nodes of log densities


class ConstrainNode(SpecialCallNode):
    """A parameter of a model: from the unconstrained value to the one that the program sees."""

    __slots__ = ()

    @property
    def parameter(self) -> str:
        """Its name."""
        return self.item.text


class TargetTerm(ItemNode):
    """What adds to the target. `value` is the increment."""

    __slots__ = ()

    @property
    def target_after(self) -> Any:
        """The target behind it; MISSING if that was not reached."""
        assert self._where is not None
        return self.frame.target_after(self.item, self._where)


class TargetNode(TargetTerm):
    """`target += x`, `jacobian += x`, or the Jacobian adjustment of a parameter."""

    __slots__ = ()

    @property
    def increment(self) -> Ref | Const:
        """What is added; of the adjustment of a parameter, its unconstrained value."""
        return self.operands[0]

    @property
    def cause(self) -> str:
        """`target` or `jacobian`."""
        return self.item.name

    @property
    def parameter(self) -> str:
        """The parameter that is adjusted; empty for statements."""
        return self.item.text


class TildeNode(TargetTerm):
    """`left ~ distribution(arguments)`. Constants are dropped where the run was asked to."""

    __slots__ = ()

    @property
    def left(self) -> Ref | Const:
        """What is distributed so."""
        return self.operands[0]

    @property
    def distribution(self) -> str:
        """Its name in the statement."""
        return self.item.name

    @property
    def arguments(self) -> list[Ref | Const]:
        """Of the distribution: the operands without the left side."""
        return self.operands[1:]

    @property
    def observed(self) -> bool:
        """Whether the left side is data, by Stan's static rule; of an argument of a function, what was passed."""
        if self.item.observed:
            return True
        left = self.left
        while isinstance(left, Ref) and isinstance(node := left.node, ArgumentNode) and node.is_parameter:
            if node.is_data:
                return True
            left = node.source
        return False


class NestedTildeNode(TildeNode, NestedCallNode):
    """A `~` statement whose density is a function of the program that was entered: `children` are its nodes."""

    __slots__ = ()


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
