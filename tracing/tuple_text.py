"""Values of tuple type in listings: a trace keeps their fields only, by the nodes that made them.

    @19: ⟨tuple⟩(@5, @6) = (1.5, [1, 2])        of the values of @5 and @6
    @20: ⟨complex⟩(@7, @8) = 1.5 + 2.0i         the two parts of a complex number

The same values as users ask for them: `whole_value`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.nodes import ArgumentNode, Const, ItemNode, NestedCallNode, Node, Ref, ReturnNode
from ulam.tracing.tape.values import MISSING, Digest, complex_text, value_text


@dataclass
class _Leaf:
    """A value that is no tuple."""

    value: Any
    type: ValueType


@dataclass
class _Fields:
    """A tuple; a complex number is one, too."""

    parts: list[_Parts]
    is_complex: bool = False


_Parts = _Leaf | _Fields

_OF_TUPLES = "other"
_DEEPEST = 60
"""Of nodes that hand a tuple on; beyond, it is not looked for."""
_TUPLES = ("tuple", "complex")


def tuple_text(node: Node) -> str | None:
    """The text of a node's value if it is a tuple whose fields are known."""
    if node.type.base != _OF_TUPLES or node.value is not MISSING:
        return None
    parts = _parts(node, _DEEPEST)
    return None if parts is None else _text(parts)


def whole_value(node: Node) -> Any:
    """A node's value; a tuple of Python, or complex numbers, where it is put together from others. MISSING as there."""
    if node.type.base != _OF_TUPLES or node.value is not MISSING:
        return node.value
    parts = _parts(node, _DEEPEST)
    return MISSING if parts is None else _whole(parts)


def _whole(parts: _Parts) -> Any:
    if isinstance(parts, _Leaf):
        return parts.value
    values = tuple(map(_whole, parts.parts))
    if not parts.is_complex:
        return values
    real, imag = values
    if not isinstance(real, np.ndarray):
        return MISSING if isinstance(real, Digest) else complex(real, imag)
    made = np.empty(real.shape, complex)
    made.real, made.imag = real, imag
    return made


def _text(parts: _Parts) -> str:
    if isinstance(parts, _Leaf):
        return value_text(parts.value, parts.type)
    if parts.is_complex:
        real, imag = parts.parts
        assert isinstance(real, _Leaf) and isinstance(imag, _Leaf)
        return complex_text(real.value, imag.value)
    return f"({', '.join(map(_text, parts.parts))})"


def _parts(node: Node, depth: int) -> _Parts | None:
    """None: some of the fields were made where the trace does not say."""
    if node.value is not MISSING:
        return _Leaf(node.value, node.type)
    if isinstance(node, ReturnNode):
        return None if node.result is None else _of(node.result, depth)
    if isinstance(node, ArgumentNode):
        return _of_parameter(node, depth)
    if isinstance(node, NestedCallNode) and node.children:
        last = node.children[-1]
        return _parts(last, depth) if isinstance(last, ReturnNode) else None
    if not isinstance(node, ItemNode):
        return None
    if node.item.name in _TUPLES:
        found = [_of(operand, depth) for operand in node.operands]
        return None if None in found else _Fields([p for p in found if p is not None], node.item.name == "complex")
    if node.item.name != "field":
        return _of_fields_behind(node, depth)
    whole, number = node.operands
    parts = _of(whole, depth)
    return parts.parts[int(number.value) - 1] if isinstance(parts, _Fields) else None


def _of_fields_behind(node: ItemNode, depth: int) -> _Parts | None:
    """What a call of the library gave, if its fields, and a complex number of them, are taken right behind it."""
    parent = node.parent
    if parent is None:
        return None
    siblings = parent.children
    fields: list[_Parts] = []
    for position in range(node.at, len(siblings)):
        behind = siblings[position]
        if not isinstance(behind, ItemNode):
            break
        operands = behind.operands
        of_it = [isinstance(o, Ref) and o.node == node for o in operands]
        if behind.item.name == "field" and of_it[0] and operands[1].value == len(fields) + 1:
            part = _parts(behind, 0)
            if part is None:
                return None
            fields.append(part)
            continue
        if behind.item.name == "complex" and len(fields) == 2:
            return _parts(behind, depth)
        break
    return _Fields(fields) if fields else None


def _of(operand: Ref | Const, depth: int) -> _Parts | None:
    if isinstance(operand, Ref):
        return _parts(operand.node, depth - 1) if depth else None
    return None if operand.value is MISSING else _Leaf(operand.value, operand.type)


def _of_parameter(node: ArgumentNode, depth: int) -> _Parts | None:
    """What the call was given."""
    call = node.parent if node.is_parameter else None
    return None if call is None or node.number < 2 else _of(call.operands[node.number - 2], depth)
