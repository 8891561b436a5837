"""What a node uses: another node, or a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.tracing.instrument.graph import VOID, ValueType
from ulam.tracing.values import same, value_text

if TYPE_CHECKING:
    from ulam.tracing.nodes import Node


@dataclass(frozen=True)
class Ref:
    """An operand that is another node of the same frame: `@position`."""

    node: Node

    @property
    def position(self) -> int:
        return self.node.position or 0

    @property
    def value(self) -> Any:
        return self.node.value

    def __str__(self) -> str:
        return f"@{self.position}"


@dataclass(frozen=True, eq=False)
class Const:
    """An operand that is a literal, or that was given from outside: `⟨value⟩`."""

    value: Any
    type: ValueType = VOID

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self.type == other.type and same(self.value, other.value)

    def __hash__(self) -> int:
        value = self.value
        return hash((value.tobytes() if isinstance(value, np.ndarray) else value, self.type))

    def __str__(self) -> str:
        return f"⟨{value_text(self.value, self.type)}⟩"
