"""A whole frame read at once, for sweeps over it: where each operand was defined, for all runs of a block in one go.

Readers of single nodes look definitions up one by one (see `frames`); a sweep asks for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.emit.trace_ops import record_bytes
from ulam.runtime.errors import ArgumentError
from ulam.tracing.instrument.graph import Block, Item, Operand
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Spot
from ulam.tracing.tape.values import MISSING, Digest, converted, is_mesh, selector

# ---------------------------------------------------------------- arrays that are changed in place


class Versions:
    """An array that is changed in place. `mark` names its present state, `state` gives it back later.

    Changes are logged from the first mark on: memory grows with what was changed, not with the array.
    """

    __slots__ = ("array", "_log", "_at", "_marked")

    def __init__(self, array: npt.NDArray[np.float64]) -> None:
        self.array = array
        self._log: list[tuple[Any, Any, Any]] = []
        self._at = 0
        self._marked = False

    def mark(self) -> int:
        """The number of the present state."""
        self._marked = True
        return self._at

    def add(self, at: Any, value: Any) -> None:
        """`array[at] += value`; where an element is named twice it gets both."""
        old = np.array(self.array[at]) if self._marked else None
        if isinstance(at, tuple) and any(isinstance(a, np.ndarray) for a in at):
            np.add.at(self.array, at, value)
        else:
            self.array[at] += value
        self._changed(at, old)

    def set(self, at: Any, value: Any) -> None:
        """`array[at] = value`."""
        old = np.array(self.array[at]) if self._marked else None
        self.array[at] = value
        self._changed(at, old)

    def _changed(self, at: Any, old: Any) -> None:
        if old is None:
            return
        if self._at != len(self._log):
            raise RuntimeError("only the last state may be changed")
        self._log.append((at, old, np.array(self.array[at])))
        self._at += 1

    def state(self, number: int) -> npt.NDArray[np.float64]:
        """A copy of the array as it was when `mark` gave the number."""
        while self._at > number:
            self._at -= 1
            at, old, _ = self._log[self._at]
            self.array[at] = old
        while self._at < number:
            at, _, new = self._log[self._at]
            self.array[at] = new
            self._at += 1
        return self.array.copy()


_KEPT = 32
"""Containers that are at hand, as they were read."""

Place = tuple[int, bool, int]
"""Step, whether in the header that follows it, offset among arguments and ops: as `frames.Spot`."""


class FrameValues:
    """Definitions and values of one frame. Raises ArgumentError for a frame that is not kept whole.

    `parameters`: their values, by number of the value, as far as they are known.
    """

    def __init__(self, frame: Frame, parameters: Mapping[int, Any] | None = None) -> None:
        if frame.gap is not None:
            raise ArgumentError("a part of the trace was not kept: track with more room (limit_bytes)")
        self.frame = frame
        batches = []
        while (batch := frame.batch(len(batches))) is not None:
            batches.append((batch.blocks, batch.positions, batch.places))
        none = [(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))]
        self.blocks, self.positions, self._places = (np.concatenate(p) for p in zip(*(batches or none), strict=True))
        """Of each step the block, the position before its first node, and where its record is."""
        self.steps = len(self.blocks)
        order = np.argsort(self.blocks, kind="stable")
        records, first = np.unique(self.blocks[order], return_index=True)
        self._runs = dict(zip(records.tolist(), np.split(order, first[1:]), strict=True))
        self.run = np.empty(self.steps, np.int64)
        """Which run of its block each step is."""
        for steps in self._runs.values():
            self.run[steps] = np.arange(len(steps))
        self._leading: dict[int, npt.NDArray[np.int64]] = {}
        self._found: dict[tuple[int, bool, int], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
        self._parameters: dict[int, Any] = dict(parameters or {})
        self._containers: dict[Place, Any] = {}
        self._chains: dict[Place, tuple[Versions, int]] = {}
        self._columns: dict[tuple[int, int], list[Any]] = {}

    # ------------------------------------------------------------ definitions

    def block(self, step: int, in_header: bool) -> Block:
        """The block that ran."""
        record = int(self.blocks[step])
        layout = self.frame.layout
        return layout.header[record] if in_header else layout.by_record[record]

    def has_header(self, step: int) -> bool:
        """Whether a step includes the header of a counted loop."""
        return int(self.blocks[step]) in self.frame.layout.header

    def base(self, step: int, in_header: bool) -> int:
        """The position before the first node of a block."""
        before = int(self.positions[step])
        return before + self.frame.layout.by_record[int(self.blocks[step])].nodes if in_header else before

    def defined(self, index: int, step: int, in_header: bool) -> tuple[int, int]:
        """Position and step of the definition of value number `index` (not a parameter), as seen from a block."""
        key = (int(self.blocks[step]), in_header, index)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._define(*key)
        run = self.run[step]
        return int(found[0][run]), int(found[1][run])

    def _define(self, record: int, in_header: bool, index: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """For all runs of a block."""
        layout = self.frame.layout
        what = layout.definitions[index]
        users = self._runs[record]
        if what.block.record:
            candidates = self._runs.get(what.block.record, np.zeros(0, np.int64))
            where = np.searchsorted(candidates, users, side="right") - 1
        else:
            candidates = self._leading_to(what.block.number)
            same = in_header and layout.header[record] is what.block
            where = np.searchsorted(candidates, users, side="right" if same or in_header else "left") - 1
        if len(where) and where.min() < 0:
            raise ArgumentError("a part of the trace was not kept: track with more room (limit_bytes)")
        steps = candidates[where]
        positions = self.positions[steps] + 1 + what.offset
        if not what.block.record:
            nodes = np.zeros(self.frame.tape.record_count, np.int64)
            for number in layout.leading[what.block.number]:
                nodes[number] = layout.by_record[number].nodes
            positions = positions + nodes[self.blocks[steps]]
        return positions, steps

    def _leading_to(self, header: int) -> npt.NDArray[np.int64]:
        found = self._leading.get(header)
        if found is None:
            runs = [self._runs[r] for r in self.frame.layout.leading[header] if r in self._runs]
            found = self._leading[header] = np.sort(np.concatenate(runs)) if runs else np.zeros(0, np.int64)
        return found

    def source(self, step: int, in_header: bool) -> tuple[int, bool] | None:
        """The block that ran before, whose jump entered this one: its step, and whether it was a header."""
        if in_header:
            return step, False
        return None if step == 0 else (step - 1, self.has_header(step - 1))

    def passed(self, step: int, in_header: bool, offset: int) -> tuple[Operand, int, bool] | None:
        """What argument number `offset` of a block was given, and from where that is seen."""
        before = self.source(step, in_header)
        if before is None:
            return None
        edges = self.block(*before).edges
        target = self.block(step, in_header).number
        edge = edges[0]
        if len(edges) == 2 and edges[0].target == edges[1].target:
            taken = self.frame.edge_taken(Spot(*before, 0))
            assert taken is not None
            edge = taken
        elif len(edges) == 2 and edges[0].target != target:
            edge = edges[1]
        return edge.arguments[offset], *before

    # ------------------------------------------------------------ values

    def value(self, operand: Operand, step: int, in_header: bool) -> Any:
        """The value of an operand."""
        if not operand.index:
            return self.frame.operand(operand, Spot(step, in_header, 0))
        if not self._as_recorded:
            return converted(self._changed(operand.index, step, in_header), operand.type)
        origin = self._origin(operand.index, step, in_header)
        return converted(origin[1] if origin[0] is None else self._made(origin[0]), operand.type)

    def shape(self, operand: Operand, step: int, in_header: bool) -> tuple[int, ...]:
        """The sizes of a container."""
        if operand.index and self._as_recorded:
            place, given = self._origin(operand.index, step, in_header)
            value = given if place is None else self._chain(place) if self._is_assigned(place) else self._made(place)
            if isinstance(value, tuple):
                return value[0].array.shape
        else:
            value = self.value(operand, step, in_header)
        return value.sizes if isinstance(value, Digest) else np.shape(value)

    def _origin(self, index: int, step: int, in_header: bool) -> tuple[Place | None, Any]:
        """The op that made a value, through arguments of blocks; or, without one, the value."""
        frame = self.frame
        while True:
            if index <= frame.head:
                return None, self.parameter(index)
            _, step = self.defined(index, step, in_header)
            what = frame.layout.definitions[index]
            in_header = not what.block.record
            if isinstance(what.what, Item):
                return (step, in_header, what.offset), None
            spot = Spot(step, in_header, what.offset)
            if what.what.type.is_int and not what.what.type.rank:
                count = self._count(step, what.offset) if in_header else None
                return None, frame.value(index, spot) if count is None else count
            passed = self.passed(step, in_header, what.offset)
            assert passed is not None
            operand, step, in_header = passed
            if not operand.index:
                return None, frame.operand(operand, spot)
            index = operand.index

    def _count(self, step: int, offset: int) -> int | None:
        """The variable of a `for` loop, from the record of the body that follows; None for other arguments."""
        header = self.block(step, True)
        if offset != len(header.arguments) - 1 or step + 1 >= self.steps:
            return None
        body = self.block(step + 1, False)
        if body.counter < 0 or body.number != header.edges[1].target:
            return None
        return self._column(body.record, body.counter, True)[self.run[step + 1]]

    @property
    def _as_recorded(self) -> bool:
        """Whether no update has put other values in the place of those recorded."""
        return not self.frame.tape.changes

    def _changed(self, index: int, step: int, in_header: bool) -> Any:
        """A value of a frame that was updated: read one by one."""
        return self.parameter(index) if index <= self.frame.head else self.frame.value(index, Spot(step, in_header, 0))

    def _column(self, record: int, slot: int, is_int: bool) -> list[Any]:
        """A slot of all runs of a block, as ints or reals."""
        found = self._columns.get((record, slot))
        if found is None:
            words = self.frame.recorder.words_at(self._places[self._runs[record]] + record_bytes(slot))
            found = (words.astype(np.int32) if is_int else words.view(np.float64)).tolist()
            self._columns[record, slot] = found
        return found

    def parameter(self, index: int) -> Any:
        """The value of a parameter, or the name of the function."""
        if index not in self._parameters:
            frame = self.frame
            self._parameters[index] = frame.graph.name if index == 1 else frame.parameter(index - 2)
        return self._parameters[index]

    def _item(self, place: Place) -> Item:
        block = self.block(place[0], place[1])
        return block.items[place[2] - len(block.arguments)]

    def _is_assigned(self, place: Place) -> bool:
        return self._item(place).derived == "assign"

    def _made(self, place: Place) -> Any:
        """The result of an op."""
        item = self._item(place)
        if item.derived == "assign":
            versions, number = self._chain(place)
            return versions.state(number)
        if not item.type.rank:
            if item.slot is None:
                return self.frame.item_value(item, Spot(*place))
            return self._column(int(self.blocks[place[0]]), item.slot, item.type.is_int)[self.run[place[0]]]
        found = self._containers.get(place)
        if found is None:
            found = self.frame.item_value(item, Spot(*place))
            if len(self._containers) >= _KEPT:
                self._containers.pop(next(iter(self._containers)))
            self._containers[place] = found
        return found

    def _chain(self, place: Place) -> tuple[Versions, int]:
        """Of a container whose elements were replaced, one after the other: all its states."""
        found = self._chains.get(place)
        if found is not None:
            return found
        steps: list[Place] = []
        value: Any = None
        while True:
            steps.append(place)
            first = self._item(place).operands[0]
            if not first.index:
                value = self.value(first, place[0], place[1])
                break
            origin, value = self._origin(first.index, place[0], place[1])
            if origin is None:
                break
            if not self._is_assigned(origin):
                value = self._made(origin)
                break
            if (known := self._chains.get(origin)) is not None:
                value = known[0].state(known[1])  # another way from there: with an array of its own
                break
            place = origin
        if value is MISSING or isinstance(value, Digest):
            raise not_kept(self._item(steps[-1]).name)
        versions = Versions(np.array(value))
        for place in reversed(steps):
            item = self._item(place)
            operands = [self.value(o, place[0], place[1]) for o in item.operands[1:]]
            if any(o is MISSING or isinstance(o, Digest) for o in operands):
                raise not_kept(item.name)
            versions.mark()
            *indices, new = operands
            at = selector(item.symbol.split(","), indices, versions.array.shape)
            versions.set(at, np.reshape(new, versions.array[at].shape) if is_mesh(at) else new)
            self._chains[place] = (versions, versions.mark())
        return self._chains[steps[0]]


def not_kept(name: str) -> ArgumentError:
    """The error where a value was recorded as a digest, or not at all."""
    return ArgumentError(f"an operand of '{name}' was not kept: use TraceContext(containers=\"copy\"), and room enough")
