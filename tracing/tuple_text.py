"""Values of tuple type in listings: a trace keeps their fields only, by the nodes that made them.

    @19: ⟨tuple⟩(@5, @6) = (1.5, [1, 2])      of the values of @5 and @6
"""

from __future__ import annotations

from ulam.tracing.nodes import ArgumentNode, Const, ItemNode, NestedCallNode, Node, Ref, ReturnNode
from ulam.tracing.tape.values import MISSING, value_text

Parts = str | list["Parts"]
"""The text of a value, or those of a tuple's fields."""

_OF_TUPLES = "other"
_DEEPEST = 60
"""Of nodes that hand a tuple on; beyond, it is not looked for."""


def tuple_text(node: Node) -> str | None:
    """The text of a node's value if it is a tuple whose fields are known."""
    if node.type.base != _OF_TUPLES or node.value is not MISSING:
        return None
    parts = _parts(node, _DEEPEST)
    return None if parts is None else _text(parts)


def _text(parts: Parts) -> str:
    return parts if isinstance(parts, str) else f"({', '.join(map(_text, parts))})"


def _parts(node: Node, depth: int) -> Parts | None:
    """None: some of the fields were made where the trace does not say."""
    if node.value is not MISSING:
        return value_text(node.value, node.type)
    if isinstance(node, ReturnNode):
        return None if node.result is None else _of(node.result, depth)
    if isinstance(node, ArgumentNode):
        return _of_parameter(node, depth)
    if isinstance(node, NestedCallNode):
        last = node.children[-1] if node.children else None
        return _parts(last, depth) if isinstance(last, ReturnNode) else None
    if not isinstance(node, ItemNode) or node.item.name not in ("tuple", "field"):
        return None
    if node.item.name == "tuple":
        found = [_of(operand, depth) for operand in node.operands]
        return None if None in found else [part for part in found if part is not None]
    whole, number = node.operands
    parts = _of(whole, depth)
    return parts[int(number.value) - 1] if isinstance(parts, list) else None


def _of(operand: Ref | Const, depth: int) -> Parts | None:
    if isinstance(operand, Ref):
        return _parts(operand.node, depth - 1) if depth else None
    return None if operand.value is MISSING else value_text(operand.value, operand.type)


def _of_parameter(node: ArgumentNode, depth: int) -> Parts | None:
    """What the call was given."""
    call = node.parent if node.is_parameter else None
    return None if call is None or node.number < 2 else _of(call.operands[node.number - 2], depth)
