"""The text of the boxes of a picture: what a node is, and below, its value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulam.tracing.export.graph import Cluster
from ulam.tracing.listing import line_of
from ulam.tracing.nodes import ArgumentNode, JumpNode, Node
from ulam.tracing.operands import Ref
from ulam.tracing.values import Digest, value_text

MAX_CHARACTERS = 46
MAX_ELEMENTS = 3


def label_of(node: Node, inside: Cluster | None = None) -> list[str]:
    """One or two lines."""
    lines = [shortened(line) for line in _lines(node)]
    if inside is not None and inside.hidden:
        lines.append(f"{inside.hidden:,} nodes inside")
    return lines


def _lines(node: Node) -> list[str]:
    head = "" if node.is_root else f"@{node.at} "
    if isinstance(node, ArgumentNode):
        if node.number == 1 and node.is_parameter:
            return [head.strip(), node.name]
        source = node.source if node.is_parameter else None
        passed = f" ← {source} of the caller" if isinstance(source, Ref) and not _at_top(node) else ""
        if (jump := node.jump) is not None:
            passed = f" ← @{jump.at}#{node.place_in_jump}"
        value = node.value
        told = _brief(value) if isinstance(value, np.ndarray | Digest) else value_text(value, node.type)
        return [f"{head}{node.name}{passed}", f"= {told}"]
    text = line_of(node, short=True).removeprefix(f"@{node.at}: ")
    if isinstance(node, JumpNode):
        target, _, reason = text.partition(" since ")
        return [head + target, *([f"since {reason}"] if reason else [])]
    if isinstance(node.value, np.ndarray | Digest) and " = ✗ " not in text:
        return [head + text.rpartition(" = ")[0], f"= {_brief(node.value)}"]
    what, equals, value = text.partition(" = ✗ ") if " = ✗ " in text else text.rpartition(" = ")
    if not equals:
        return [head + text]
    return [head + what, f"= {'✗ ' if '✗' in equals else ''}{value}"]


def _brief(value: np.ndarray[Any, Any] | Digest) -> str:
    """A container with six digits of its elements: there is no room for more."""
    if isinstance(value, Digest):
        return f"[{', '.join(f'{v:.6g}' for v in value.first)}, …] ({'×'.join(map(str, value.sizes))})"
    shown = [f"{v:.6g}" for v in value.ravel()[: MAX_ELEMENTS + 1].tolist()]
    if value.size <= MAX_ELEMENTS + 1 and value.ndim == 1:
        return f"[{', '.join(shown)}]"
    sizes = "×".join(map(str, value.shape))
    return f"[{', '.join([*shown[:MAX_ELEMENTS], *(['…'] if value.size > MAX_ELEMENTS else [])])}] ({sizes})"


def _at_top(node: Node) -> bool:
    parent = node.parent
    return parent is None or parent.is_root


def shortened(text: str, most: int = MAX_CHARACTERS) -> str:
    """Text with its middle left out."""
    if len(text) <= most:
        return text
    return f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"
