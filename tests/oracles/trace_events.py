"""What a trace tells, in the form of the log of `traced_random_programs.Oracle`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ulam.trace import JumpNode, NestedCallNode
from ulam.tracing.nodes import ItemNode
from ulam.tracing.tape.values import same


def events(node: NestedCallNode) -> list[tuple[Any, ...]]:
    """What a trace tells, in the form of the oracle's log."""
    found: list[tuple[Any, ...]] = []
    for child in node.children:
        if isinstance(child, NestedCallNode):
            found.append(("enter", child.function))
            found += events(child)
            found.append(("op", child.function, child.value))
        elif isinstance(child, JumpNode):
            if child.condition is not None:
                assert child.edge is not None
                found.append(("branch", child.edge.holds))
        elif isinstance(child, ItemNode) and child.function != "declare":
            found.append(("op", child.function, child.value))
    return found


def agrees(event: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    value, wanted = event[-1], expected[-1]
    if isinstance(wanted, list):
        wanted = np.array(wanted, np.int32 if isinstance(wanted[0], int) else np.float64)
    return event[:-1] == expected[:-1] and (same(value, wanted) or value == wanted or _both_nan(value, wanted))


def _both_nan(a: Any, b: Any) -> bool:
    return isinstance(a, float) and isinstance(b, float) and a != a and b != b
