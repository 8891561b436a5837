"""Values in full of what a trace has only a digest of: the run that has recorded it runs once more, keeping all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ulam.runtime.errors import ArgumentError
from ulam.tracing.frames import Frame
from ulam.tracing.instrument.graph import Item, Operand
from ulam.tracing.layout import Spot
from ulam.tracing.tape import Tape
from ulam.tracing.values import MISSING, Digest, converted
from ulam.tracing.version import whole_tape

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace


class FullValues:
    """Values of the frames of one tape. Raises ArgumentError for those that were not kept at all."""

    def __init__(self, trace: Trace, tape: Tape) -> None:
        self._trace, self._tape = trace, tape
        self._whole: Tape | None = None

    def _frame(self, frame: Frame) -> Frame:
        """The same frame where all containers are kept."""
        if self._whole is None:
            self._whole = whole_tape(self._trace, self._tape)
        chain: list[Frame] = []
        current: Frame | None = frame
        while current is not None:
            chain.append(current)
            current = current.parent
        found: Frame | None = None
        for inner in reversed(chain):
            found = self._whole.frame(inner.graph.symbol, inner.place, found, inner.call)
        assert found is not None
        return found

    def _kept(self, frame: Frame, what: str, read: Callable[[Frame], Any]) -> Any:
        value = read(frame)
        if isinstance(value, Digest) or value is MISSING:
            value = read(self._frame(frame))
        if isinstance(value, Digest) or value is MISSING:
            raise ArgumentError(f"the trace cannot be updated: {what} was not kept")
        return value

    def operand(self, frame: Frame, operand: Operand, spot: Spot) -> Any:
        """What an op at a spot uses."""
        return self._kept(frame, "an operand", lambda f: f.operand(operand, spot))

    def item(self, frame: Frame, item: Item, spot: Spot) -> Any:
        """The value of an op."""
        return self._kept(frame, f"the value of '{item.name}'", lambda f: f.item_value(item, spot))

    def parameter(self, frame: Frame, number: int) -> Any:
        """The value of a parameter, counted from 0."""
        return self._kept(frame, "an argument", lambda f: f.parameter(number))

    def value(self, frame: Frame, index: int, spot: Spot) -> Any:
        """Value number `index`, seen from a spot."""
        return self._kept(frame, "a value", lambda f: f.value(index, spot))

    def result(self, frame: Frame) -> Any:
        """What a call has returned."""
        step = frame.steps - 1
        block = frame.block(step)
        returned = block.edges[0].value
        if returned is None:
            return None
        return converted(self.operand(frame, returned, Spot(step, False, block.nodes - 1)), frame.graph.result)
