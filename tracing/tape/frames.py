"""Frames: one call, as positions and values, from the records that it wrote.

Values are read from the record of their step, or follow from it: from conditions, from the iterations of a loop before,
from the operands of the call. What an update has changed is looked up first.

Containers that a loop fills element by element are read in one go:

    for (n in 1:N) z[n] = f(x[n]);

What `z` is after an iteration follows from the assignments before, which may be very many. Where the body of a counted
loop is one block, with scalars that it kept as indices and value, they are read as columns.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.dialects.integers import wrapped
from ulam.tracing.instrument.graph import SKIPPED, Block, Edge, Item, Operand, ValueType
from ulam.tracing.tape.frame_steps import FrameSteps
from ulam.tracing.tape.layout import Spot, spot_of
from ulam.tracing.tape.overlay import SEGMENT, Key, Taken, key_of, parameter_key
from ulam.tracing.tape.values import (
    MISSING,
    Digest,
    converted,
    from_digest,
    from_elements,
    replaced,
    unassigned,
)

if TYPE_CHECKING:
    from ulam.tracing.tape.layout import Spot
    from ulam.tracing.tape.tape import Tape


_HEADER = 8
_REAL = ValueType("real")
_KNOWN_KEPT = 64


@dataclass(frozen=True)
class _Origin:
    """Where a value was made: an op at `where`, or, without an op, `value`. `type`: what it is passed on as."""

    item: Item | None
    where: Spot
    value: Any
    type: ValueType | None


class Frame(FrameSteps):
    """One call: its steps, and its values."""

    def __init__(self, tape: Tape, graph: str, place: int, parent: Frame | None, call: int) -> None:
        super().__init__(tape, graph, place, parent, call)
        self._parameters: dict[int, Any] = {}
        self._known: dict[tuple[int, int], Any] = {}  # counts and containers, by step and place in it

    def changed(self, key: Key) -> Any:
        """What an update has put in place of a value; MISSING if there is nothing."""
        changes = self.tape.changes.get(self.place)
        return MISSING if changes is None else changes.values.get(key, MISSING)

    def forget_values(self) -> None:
        """Values that were worked out are worked out again: an update has changed what they are made of."""
        self._known.clear()
        self._parameters.clear()
        for name in ("failed", "length"):  # cached properties
            self.__dict__.pop(name, None)

    # ------------------------------------------------------------ edges

    def edge_taken(self, spot: Spot) -> Edge | None:
        """The edge by which the block at a spot was left; None if it never was, or that is not known."""
        block = self.block_at(spot)
        if len(block.edges) == 1:
            return block.edges[0]
        if not spot.in_header and block.record in self.layout.header:
            raise AssertionError("a header is reached by a plain jump")
        if block.edges[0].target == block.edges[1].target:
            assert block.edges[0].condition is not None
            truth = self.operand(block.edges[0].condition, spot)
            return None if truth is MISSING else next(e for e in block.edges if e.holds == bool(truth))
        if not self.has_step(spot.step + 1):
            return None
        following = self.block(spot.step + 1).number
        return next((e for e in block.edges if e.target == following), None)

    # ------------------------------------------------------------ values

    def operand(self, operand: Operand, spot: Spot) -> Any:
        """The value of an operand, seen from a spot."""
        if not operand.index:
            if operand.type == SKIPPED:
                return MISSING
            if operand.constant is None:
                return unassigned(operand.type, (0,) * operand.type.rank)
            return converted(operand.constant, operand.type)
        return converted(self.value(operand.index, spot), operand.type)

    def value(self, index: int, spot: Spot) -> Any:
        """The value of value number `index`, seen from a spot."""
        found = self._origin(index, spot)
        value = found.value if found.item is None else self.item_value(found.item, found.where)
        return value if found.type is None else converted(value, found.type)

    def _origin(self, index: int, spot: Spot) -> _Origin:
        """Where a value was made: through arguments of blocks, to an op or to something that is known."""
        type_: ValueType | None = None
        while True:
            if index == 1:
                return _Origin(None, spot, self.graph.name, None)
            if index <= self.head:
                return _Origin(None, spot, self.parameter(index - 2), type_)
            where = self.definition(index, spot)
            if where.step < 0:
                return _Origin(None, spot, MISSING, None)
            what = self.layout.definitions[index].what
            if isinstance(what, Item):
                return _Origin(what, where, None, type_)
            if (given := self.changed(key_of(where))) is not MISSING:
                return _Origin(None, where, given, type_)
            counter = self._counter(where)
            if counter is not None:
                return _Origin(None, where, counter, type_)
            source = self.entered_from(where)
            edge = None if source is None else self.edge_taken(source)
            if source is None or edge is None:
                return _Origin(None, where, MISSING, None)
            passed = edge.arguments[where.offset]
            type_ = type_ or what.type
            if not passed.index:
                return _Origin(None, where, self.operand(passed, source), type_)
            index, spot = passed.index, source

    def _counter(self, where: Spot) -> int | None:
        """The loop variable of a `for`, from the record of the body that follows; None for other arguments."""
        if not where.in_header:
            return None
        header = self.block_at(where)
        if where.offset != len(header.arguments) - 1 or not self.has_step(where.step + 1):
            return None
        body = self.block(where.step + 1)
        if body.counter < 0 or body.number != header.edges[1].target:
            return None
        return struct.unpack("<i", self._slot(where.step + 1, body.counter, 4))[0]

    def _slot(self, step: int, slot: int, count: int) -> bytes:
        return self.recorder.bytes_at(self.record_place(step) + _HEADER + 8 * slot, count)

    def parameter(self, number: int) -> Any:
        """The value of a parameter: of the caller's operand, or of its caller's."""
        frame, types, wanted = self, list[ValueType](), number
        while frame.parent is not None:
            if (value := frame._parameters.get(number, MISSING)) is not MISSING:
                break
            types.append(frame.graph.parameters[number].type)
            if (value := frame.changed(parameter_key(number))) is not MISSING:
                break
            operand, spot = frame.parent.operand_of_call(frame.call, number)
            frame = frame.parent
            if not 1 < operand.index <= frame.head:
                value = frame.operand(operand, spot)
                break
            types.append(operand.type)
            number = operand.index - 2
        else:
            value = self.tape.arguments[number]
        for type_ in reversed(types):
            value = converted(value, type_)
        self._parameters[wanted] = value
        return value

    def operand_of_call(self, position: int, number: int) -> tuple[Operand, Spot]:
        """An operand of the call at a position, and from where it is seen."""
        spot = self.spot(position)
        block = self.block_at(spot)
        return block.items[spot.offset - len(block.arguments)].operands[number], spot

    def item_value(self, item: Item, where: Spot) -> Any:
        """The result of an op."""
        if self.tape.changes and (given := self.changed(key_of(where))) is not MISSING:
            return self.tape.as_recorded(given, item.type) if item.slot is not None else given
        block = self.block_at(where)
        ordinal = where.offset - len(block.arguments)
        if not where.in_header and ordinal >= self.reached(where.step):
            return MISSING
        if item.slot is not None:
            return self._stored(item.type, where.step, item.slot)
        if item.derived == "condition":
            edge = self.edge_taken(where)
            return MISSING if edge is None else int(edge.holds)
        if item.derived in ("increment", "assign"):
            return self._accumulated(item, where)
        operands = [self.operand(o, where) for o in item.operands]
        if any(o is MISSING for o in operands) or item.derived in ("void", "lost", ""):
            return MISSING if item.derived != "void" else None
        if item.derived == "dropped":
            return 0.0
        if item.derived == "declare":
            return unassigned(item.type, _all_sizes(item.type, operands))
        return operands[0]

    def target_after(self, item: Item, where: Spot) -> Any:
        """The target behind an op that adds to it."""
        if self.tape.terms is not None and (found := self.tape.terms.find(self.place, key_of(where))) is not None:
            return self.tape.terms.target(found + 1)
        block = self.block_at(where)
        if item.target_slot is None or where.offset - len(block.arguments) >= self.reached(where.step):
            return MISSING
        return self._stored(_REAL, where.step, item.target_slot)

    def _accumulated(self, item: Item, where: Spot) -> Any:
        """What a count, or a container whose elements are replaced, has become: from the last known value on."""
        asked = where
        steps: list[tuple[Item, Spot]] = []
        fills: dict[int, Fill] = {}
        while True:
            value: Any = self._known.get((where.step, where.offset), MISSING)
            if value is MISSING:
                value = self.changed(key_of(where))
            if value is not MISSING:
                break
            if item.derived == "assign" and (fill := fill_before(self, item, where)) is not None:
                fills[len(steps)] = fill
                where = Spot(fill.first, False, where.offset)
            steps.append((item, where))
            first = item.operands[0]
            if not first.index:
                value = self.operand(first, where)
                break
            origin = self._origin(first.index, where)
            if origin.item is None or origin.item.derived != item.derived:
                value = self.value(first.index, where)
                break
            item, where = origin.item, origin.where
        if isinstance(value, np.ndarray) and steps:
            value = np.array(value)
        for number, (item, where) in reversed(list(enumerate(steps))):
            if value is MISSING or isinstance(value, Digest):
                return MISSING
            if number in fills:
                fills[number].apply(value)
                continue
            if item.derived == "increment":
                value = wrapped(int(value) + 1)
                continue
            operands = [value, *(self.operand(o, where) for o in item.operands[1:])]
            value = MISSING if any(o is MISSING for o in operands) else self._replaced(operands, item)
        if len(self._known) >= _KNOWN_KEPT:
            self._known.pop(next(iter(self._known)))
        if steps:
            self._known[asked.step, asked.offset] = value
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # readers have the same array
        return value

    def _replaced(self, operands: list[Any], item: Item) -> Any:
        """What an assignment to elements makes; in a damaged trace they may not be there."""
        if not self.recorder.is_saved:
            return replaced(operands, item.symbol.split(","))
        try:
            return replaced(operands, item.symbol.split(","))
        except (IndexError, ValueError, TypeError, AttributeError) as error:
            raise self.recorder.absent(f"an assignment that cannot be: {error}") from error

    def stored(self, item: Item, step: int) -> Any:
        """What an op kept in a step that got so far; MISSING for a container that there was no room for."""
        assert item.slot is not None
        if self.tape.changes:
            block = self.block(step)
            given = self.changed((2 * step, len(block.arguments) + block.items.index(item)))
            if given is not MISSING:
                return self.tape.as_recorded(given, item.type)
        return self._stored(item.type, step, item.slot)

    def _stored(self, type_: ValueType, step: int, slot: int) -> Any:
        data = self._slot(step, slot, 8 * type_.slots)
        if not type_.rank:
            return struct.unpack("<i" if type_.is_int else "<d", data[: 4 if type_.is_int else 8])[0]
        at, *sizes = struct.unpack(f"<{1 + type_.rank}q", data)
        if at < 0:
            return MISSING
        if self.recorder.is_saved and min(sizes) < 0:
            raise self.recorder.absent(f"a container of sizes {sizes}")
        try:
            is_digest, count = struct.unpack("<2q", self.recorder.side(at, 16))
        except LookupError:  # of a ring
            return MISSING
        if is_digest:
            return from_digest(tuple(sizes), self.recorder.side(at + 16, 64))
        kind = np.int32 if type_.is_int else np.float64
        contents = self.recorder.side(at + 16, count * (4 if type_.is_int else 8))
        if self.recorder.is_saved and math.prod(sizes) != count:
            raise self.recorder.absent(f"a container of sizes {sizes} with {count} elements")
        return from_elements(type_, tuple(sizes), np.frombuffer(contents, kind))

    # ------------------------------------------------------------ calls

    def child_place(self, spot: Spot, item: Item) -> int:
        """Where the records of an entered call begin; -1 if there are none, or it was too deep to be entered."""
        return self.child_places(spot.step)[self.layout.children[self.block(spot.step).record].index(item)]

    def child_places(self, step: int) -> list[int]:
        """The same of all calls of a step that are entered."""
        block = self.block(step)
        items = self.layout.children[block.record]
        base = self.segment * SEGMENT
        found = self.recorder.children(self.record_place(step), len(items))
        places = [-1 if p < 0 or self.tape.is_stub(base + p) else base + p for p in found]
        changes = self.tape.changes.get(self.place)
        if changes is None or not changes.calls:
            return places
        keys = [(2 * step, len(block.arguments) + block.items.index(item)) for item in items]
        return [changes.calls.get(key, place) for key, place in zip(keys, places, strict=True)]

    def too_deep(self, step: int) -> list[bool]:
        """Which of them were not entered, as that was too deep: where it is decided at run time."""
        items = self.layout.children[self.block(step).record]
        base = self.segment * SEGMENT
        found = self.recorder.children(self.record_place(step), len(items))
        return [p >= 0 and self.tape.is_stub(base + p) for p in found]

    def child(self, spot: Spot) -> Frame | None:
        """The frame of the call at a spot; None if it was not entered, or nothing of it is kept."""
        item = self.item_at(spot)
        if not item.child or (place := self.child_place(spot, item)) < 0:
            return None
        return self.tape.frame(item.child, place, self, self.position(spot.step, spot.in_header, spot.offset))

    def type_at(self, key: Key) -> ValueType:
        """The type of a parameter, an argument of a block, or the value of an op."""
        if key[0] < 0:
            return self.graph.parameters[key[1]].type
        spot = spot_of(key)
        block = self.block_at(spot)
        count = len(block.arguments)
        return block.arguments[spot.offset].type if spot.offset < count else block.items[spot.offset - count].type

    def value_at(self, key: Key) -> Any:
        """The value of such a thing."""
        if key[0] < 0:
            return self.parameter(key[1])
        spot = spot_of(key)
        arguments = self.block_at(spot).arguments
        if spot.offset < len(arguments):
            return self.value(arguments[spot.offset].index, spot)
        return self.item_value(self.item_at(spot), spot)

    def is_entered(self, spot: Spot, item: Item) -> bool:
        """Whether a call has nodes of its own: where the depth is counted at run time, not all calls of a site do."""
        if not item.child or not self.tape.tables.stub:
            return bool(item.child)
        return self.child_place(spot, item) >= 0

    def seconds(self) -> tuple[float, float] | None:
        """When the call began and ended, by the clock of the run; None if that is not kept."""
        block = self.block(0)
        if block.started < 0 or self.is_cut or not self.tape.tables.tick:
            return None
        last = self.block(self.steps - 1)
        ticks = (
            struct.unpack("<q", self._slot(step, slot, 8))[0]
            for step, slot in ((0, block.started), (self.steps - 1, last.ended))
        )
        began, ended = (tick * self.tape.tables.tick for tick in ticks)
        return began, ended

    # ------------------------------------------------------------ draws

    def recorded_draws(self, spot: Spot) -> Taken:
        """The random numbers that the op at a spot took when it was recorded."""
        stream = self.item_at(spot).stream
        assert stream is not None
        begin, end = struct.unpack("<2q", self._slot(spot.step, stream, 16))
        return Taken(self.segment, begin, end)

    def draws_taken(self, spot: Spot) -> Taken:
        """The random numbers that the op at a spot has its value of."""
        changes = self.tape.changes.get(self.place)
        found = None if changes is None else changes.draws.get(key_of(spot))
        return found or self.recorded_draws(spot)


def _all_sizes(type_: ValueType, given: list[Any]) -> tuple[int, ...]:
    """Sizes of a declared container: a square one has one."""
    sizes = [max(int(size), 0) for size in given]
    return tuple(sizes + sizes[-1:] * (type_.rank - len(sizes)))


LEAST = 8
"""Fewer assignments in a row are replayed one by one."""


@dataclass(frozen=True)
class Fill:
    """Assignments in a row, the first in step `first`: the indices from 0, one array for each, and the new elements."""

    first: int
    indices: tuple[npt.NDArray[np.int64], ...]
    values: npt.NDArray[Any]

    def apply(self, container: npt.NDArray[Any]) -> None:
        """Makes the assignments."""
        container[self.indices] = self.values  # of equal indices the last one counts, as in the program


def fill_before(frame: Frame, item: Item, where: Spot) -> Fill | None:
    """The assignments to the same container in the iterations up to `where`, that included; None if they are others."""
    if where.in_header or (item.type.base == "matrix" and item.type.array_rank):
        return None
    if frame.tape.changes.get(frame.place) is not None:  # an update's values are not in the records
        return None
    block = frame.block_at(where)
    kinds = item.symbol.split(",")
    if any(kind != "single" for kind in kinds) or len(kinds) != item.type.rank or not _carries(frame, block, item):
        return None
    places = _steps_in_a_row(frame, block, where.step)
    if len(places) < LEAST:
        return None
    columns = [_column(frame, block, item, operand, where, places) for operand in item.operands[1:]]
    if any(column is None for column in columns):
        return None
    *indices, values = [column for column in columns if column is not None]
    return Fill(where.step - len(places) + 1, tuple(i.astype(np.int64) - 1 for i in indices), values)


def _carries(frame: Frame, block: Block, item: Item) -> bool:
    """Whether the block is the whole body of a counted loop that hands its container on to the next iteration."""
    header = frame.layout.header.get(block.record)
    if header is None or block.counter < 0 or header.edges[1].target != block.number:
        return False
    container = item.operands[0].index
    for offset, argument in enumerate(header.arguments):
        if argument.index == container:
            return block.edges[0].arguments[offset].index == item.index
    return False


def _steps_in_a_row(frame: Frame, block: Block, last: int) -> npt.NDArray[np.int64]:
    """The places of the records of a block that ran in a row up to step `last`, from the first on."""
    parts: list[npt.NDArray[np.int64]] = []
    step = last
    while step >= 0:
        batch, n = frame.step(step)
        others = np.flatnonzero(batch.blocks[: n + 1] != block.record)
        first = int(others[-1]) + 1 if len(others) else 0
        parts.append(batch.places[first : n + 1])
        step = batch.first - 1
        if first or not frame.has_step(step):
            break
    return np.concatenate(parts[::-1]) if parts else np.zeros(0, np.int64)


def _column(
    frame: Frame, block: Block, item: Item, operand: Operand, where: Spot, places: npt.NDArray[np.int64]
) -> npt.NDArray[Any] | None:
    """A scalar operand in each of these records; None if they do not have it."""
    if operand.type.rank:
        return None
    header = frame.layout.header[block.record]
    found = frame.layout.definitions.get(operand.index)
    if found is None or (found.block is not block and found.block is not header):  # the same in all iterations
        value = frame.operand(operand, where)
        return None if value is MISSING else np.full(len(places), value)
    if operand.index == header.arguments[-1].index:
        return _ints(frame, places, block.counter)
    if found.block is not block or not isinstance(found.what, Item) or found.what.slot is None:
        return None
    if found.offset >= len(block.arguments) + block.items.index(item):
        return None  # of the iteration before
    slot, type_ = found.what.slot, found.what.type
    if type_.rank or type_.slots != 1:
        return None
    return _ints(frame, places, slot) if type_.is_int else _words(frame, places, slot).view(np.float64)


def _words(frame: Frame, places: npt.NDArray[np.int64], slot: int) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(frame.recorder.words(places, slot + 1)[:, slot])


def _ints(frame: Frame, places: npt.NDArray[np.int64], slot: int) -> npt.NDArray[np.int32]:
    return _words(frame, places, slot).astype(np.uint64).astype(np.uint32).view(np.int32)
