"""The printed form of traces.

⟨f⟩(⟨1.0⟩) = 1.8414709848078965
  @1: [Arg:§1:%1] f
  @2: [Arg:§1:%2] 1.0
  @3: [§1:%3] ⟨sin⟩(@2) = 0.8414709848078965
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from ulam.tracing.node_kinds import TargetNode, TildeNode
from ulam.tracing.nodes import (
    ArgumentNode,
    ConstantNode,
    ItemNode,
    JumpNode,
    NestedCallNode,
    Node,
    ReturnNode,
    SpecialCallNode,
)
from ulam.tracing.tape.values import MISSING, value_text
from ulam.tracing.tuple_text import tuple_text

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

STYLES = ("seed", "full")
INDENT = "  "


def print_levels(
    node: Node | Trace, n: int | None = None, file: TextIO | None = None, style: str = "seed", source: bool = False
) -> None:
    """Prints a node, or a whole trace, and what is below it; `n`: how many levels, 1 for the node alone, None for all.

    `style` "full" adds types, the place of arguments in the caller, and the reason of both edges of a branch.
    `source` adds the line and column of the source.
    """
    out = file if file is not None else sys.stdout
    for line in lines_of(node, n, style, source):
        out.write(line + "\n")


def format_levels(node: Node | Trace, n: int | None = None, style: str = "seed", source: bool = False) -> str:
    """What `print_levels` prints, without the last line end."""
    return "\n".join(lines_of(node, n, style, source))


def lines_of(node: Node | Trace, n: int | None = None, style: str = "seed", source: bool = False) -> Iterator[str]:
    """The lines one by one, as nodes are read."""
    if not isinstance(node, Node):
        node = node.root
    if style not in STYLES:
        raise ValueError(f"style is one of {', '.join(STYLES)}, not {style!r}")
    if n is not None and n < 1:
        raise ValueError(f"n is {n}, but at least one level is printed")
    stack: list[tuple[int, Iterator[Node]]] = [(0, iter((node,)))]
    hides_self = not node.trace.context.self_node
    while stack:
        depth, nodes = stack[-1]
        current = next(nodes, None)
        if current is None:
            stack.pop()
            continue
        if hides_self and depth and isinstance(current, ArgumentNode) and current.number == 1:
            continue
        yield INDENT * depth + line_of(current, style=style, source=source)
        if isinstance(current, NestedCallNode) and (n is None or depth + 1 < n):
            stack.append((depth + 1, iter(current.children)))


def line_of(node: Node, *, short: bool = False, style: str = "seed", source: bool = False) -> str:
    """One line; `short`: without the location."""
    head = "" if node.is_root else f"@{node.at}: "
    if not short and not node.is_root:
        tag = "Arg:" if isinstance(node, ArgumentNode) else "Const:" if isinstance(node, ConstantNode) else ""
        head += f"[{tag}{node.location}] "
    text = head + _body(node, style)
    if node.trace.has_metadata(node):
        text += "  [" + ", ".join(f"{k} = {v}" for k, v in node.metadata.items()) + "]"
    if source and (span := node.span) is not None:
        text += f"  ({span.file}:{span.line}:{span.column})"
    return text


def _value(node: Node, style: str) -> str:
    text = tuple_text(node) or value_text(node.value, node.type)
    return f"{text}::{node.type}" if style == "full" else text


def _body(node: Node, style: str) -> str:
    if isinstance(node, ArgumentNode):
        return _argument(node, style)
    if isinstance(node, ReturnNode):
        result = node.result
        if result is None:
            return "return"
        text = f"return {result}"
        return f"{text} = {_value(node, style)}" if str(result).startswith("@") else text
    if isinstance(node, JumpNode):
        return _jump(node, style)
    if isinstance(node, ConstantNode):
        return _value(node, style)
    assert isinstance(node, ItemNode)
    operands = ", ".join(map(str, node.operands))
    if isinstance(node, TargetNode):
        text = f"target += {operands}" if node.cause == "target" else f"$({node.cause})({operands})"
    elif isinstance(node, TildeNode):
        arguments = ", ".join(map(str, node.arguments))
        text = f"{node.left} {'⩪' if node.observed else '~'} ⟨{node.distribution}⟩({arguments})"
    elif isinstance(node, SpecialCallNode):
        text = f"$({node.function})({operands})"
    else:
        text = f"⟨{node.function}⟩({operands})"
    return text + _result(node, style)


def _result(node: ItemNode, style: str) -> str:
    error = node.trace.error
    if error is not None and (node.threw or (node.is_root and node.value is MISSING)):
        return f" = ✗ {error.message}"
    return "" if node.type.base == "void" else f" = {_value(node, style)}"


def _argument(node: ArgumentNode, style: str) -> str:
    jump = node.jump
    if jump is not None:
        return f"@{jump.at}#{node.place_in_jump} = {_value(node, style)}"
    parent = node.parent
    if style == "full" and parent is not None and not parent.is_root and node.number > 1:
        return f"@{parent.at}#{node.number - 1} = {_value(node, style)}"
    return _value(node, style)


def _jump(node: JumpNode, style: str) -> str:
    edge = node.edge
    if edge is None:
        return "goto ?"
    arguments = node.arguments
    text = f"goto §{edge.target}" + (f" ({', '.join(map(str, arguments))})" if arguments else "")
    if edge.condition is not None and (not edge.holds or style == "full"):
        condition = node.condition
        assert condition is not None
        type_ = edge.condition.type
        is_number = type_.base == "int" and condition.value is not MISSING
        decided = value_text(condition.value, type_) if is_number else "true" if edge.holds else "false"
        text += f" since {condition} == {decided}"
    return text
