"""Which values an update sets: checks of what users ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import ArgumentError
from ulam.tracing.argument_values import argument_name, as_taken, checked
from ulam.tracing.instrument.graph import Item, Operand, ValueType
from ulam.tracing.nodes import ArgumentNode, ControlFlowNode, ItemNode, Node
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Spot
from ulam.tracing.tape.overlay import Key, key_of, parameter_key
from ulam.tracing.tape.tape import Tape
from ulam.tracing.tape.values import MISSING, Digest, converted
from ulam.tracing.versions import whole_tape

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace


# ---------------------------------------------------------------- values in full


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


@dataclass(frozen=True)
class ValueSetting:
    """A value to be set: of value number `index` at `key` of a frame of the old version."""

    node: Node
    frame: Frame
    key: Key
    index: int
    old: Any
    value: Any
    is_op: bool = False


def settings(
    trace: Trace, changes: Mapping[Node, Any], arguments: Mapping[str, Any]
) -> tuple[dict[int, Any], list[ValueSetting]]:
    """Arguments of the traced function, by number, and other values. Raises ArgumentError."""
    given: dict[int, Any] = {}
    inside: list[ValueSetting] = []
    for name, value in arguments.items():
        number = _parameter(trace, name)
        what = argument_name(trace.root.function, name)
        given[number] = _value(what, _parameters(trace)[number].type, trace.tape.arguments[number], value)
    if not isinstance(changes, Mapping):
        raise ArgumentError(f"what is to change is a mapping of nodes to values, not {type(changes).__name__}")
    for node, value in changes.items():
        if not isinstance(node, Node):
            raise ArgumentError(f"only nodes have values that can change, not {type(node).__name__}")
        if node.trace is not trace:
            raise ArgumentError(f"'{node}' is a node of another trace")
        made = _setting(node, value)
        if made.key[0] < 0 and node.parent is not None and node.parent.is_root:
            if made.index - 2 in given:
                raise ArgumentError(f"'{_parameters(trace)[made.index - 2].name}' is given twice")
            given[made.index - 2] = made.value
        else:
            inside.append(made)
    return given, inside


def _parameters(trace: Trace) -> Any:
    return trace.root.frame.graph.parameters


def _parameter(trace: Trace, name: str) -> int:
    names = [parameter.name for parameter in _parameters(trace)]
    if name not in names:
        close = get_close_matches(name, names, n=1)
        known = ", ".join(names) or "none"
        hint = f"; did you mean '{close[0]}'?" if close else f"; its arguments: {known}"
        raise ArgumentError(f"'{trace.root.function}' has no argument '{name}'{hint}")
    return names.index(name)


def _setting(node: Node, value: Any) -> ValueSetting:
    if node.is_root:
        raise ArgumentError("the call that was tracked cannot be set: nothing is made of its value")
    if isinstance(node, ControlFlowNode):
        what = "a jump" if node.value is None else "a return"
        raise ArgumentError(f"'{node}' is {what}: it has no value of its own that could be set")
    if isinstance(node, ArgumentNode) and node.number == 1 and node.is_parameter:
        raise ArgumentError(f"'{node}' is the function itself: it cannot be changed")
    type_ = node.type
    if type_.base in ("void", "other", "function"):
        raise ArgumentError(f"'{node}' has no value that could be set")
    if node.frame.in_opaque:
        raise ArgumentError(f"'{node}' is a part of what the library did: what would follow from it is not recorded")
    old = node.value
    if isinstance(old, Digest):
        raise ArgumentError(
            f"'{node}' was kept as a digest only: use TraceContext(containers=\"copy\"), or change what it is made of"
        )
    if old is MISSING:
        raise ArgumentError(f"'{node}' has no value: the run did not get there, or it was not kept")
    value = _value(f"'{node}'", type_, old, value)
    if isinstance(node, ArgumentNode):
        if node.is_parameter:
            return ValueSetting(node, node.frame, parameter_key(node.at - 2), node.at, old, value)
        index = node.number
    else:
        assert isinstance(node, ItemNode)
        index = node.item.index
    return ValueSetting(
        node, node.frame, key_of(node.frame.spot(node.at)), index, old, value, isinstance(node, ItemNode)
    )


def _value(what: str, type_: ValueType, old: Any, value: Any) -> Any:
    """A value as the trace would have it. Raises ArgumentError if it has another type or other sizes."""
    return as_taken(checked(what, type_, value, np.shape(old)), type_)
