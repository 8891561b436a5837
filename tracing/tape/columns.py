"""Many values of a trace at a time: the steps of a frame batch by batch, the scalars of each block as columns."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Block, Item, ValueType
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Batch, Layout, Spot

_REAL = ValueType("real")
INT, REAL, CONTAINER, COUNT = "int", "real", "container", "count"
VALUE, TARGET, STREAM, COUNTER, CLOCK = "value", "target", "stream", "counter", "clock"


@dataclass(frozen=True)
class Slot:
    """A value that a block keeps. `role`: the result of `item`, the target after it, how many random numbers had been
    taken before or after it; or, without an item, the variable of a loop, or the clock at the ends of a call.
    """

    slot: int
    kind: str
    role: str
    item: Item | None = None
    ordinal: int = -1


def slots_of(layout: Layout, block: Block) -> list[Slot]:
    """What a block keeps, in the order of the slots; kept with the table."""
    found = layout.slots.get(block.record)
    if found is None:
        found = layout.slots[block.record] = _slots(block)
    return found


def _slots(block: Block) -> list[Slot]:
    found: list[Slot] = []
    for n, item in enumerate(block.items):
        if item.slot is not None:
            kind = CONTAINER if item.type.rank else INT if item.type.is_int else REAL
            found.append(Slot(item.slot, kind, VALUE, item, n))
        if item.target_slot is not None:
            found.append(Slot(item.target_slot, REAL, TARGET, item, n))
        if item.stream is not None:
            found += [Slot(slot, COUNT, STREAM, item, n) for slot in (item.stream, item.stream + 1)]
    if block.counter >= 0:
        found.append(Slot(block.counter, INT, COUNTER))
    found += [Slot(slot, COUNT, CLOCK) for slot in (block.started, block.ended) if slot >= 0]
    return sorted(found, key=lambda slot: slot.slot)


def batches(frame: Frame) -> Iterator[Batch]:
    """All steps of a frame, some thousands at a time."""
    number = 0
    while (batch := frame.batch(number)) is not None:
        yield batch
        number += 1


@dataclass(frozen=True)
class Rows:
    """The steps of a batch that ran one block: their numbers, and a column of values for each slot of `slots`.

    Columns of containers are empty: `container` reads them one by one. Of a run that failed, the last step has values
    for `reached` ops only; `complete` is False where that matters.
    """

    frame: Frame
    block: Block
    steps: npt.NDArray[np.int64]
    slots: list[Slot]
    columns: list[npt.NDArray[Any]]

    def container(self, slot: Slot, row: int) -> Any:
        """The container in a slot; MISSING where it was not kept."""
        assert slot.item is not None
        return self.frame.stored(slot.item, int(self.steps[row]))

    @property
    def incomplete(self) -> int | None:
        """Of the last step of a frame that an error ended, how many ops were over; None for others."""
        last = int(self.steps[-1])
        if not self.frame.failed or last != self.frame.steps - 1:
            return None
        return self.frame.reached(last)


def rows_of(frame: Frame, batch: Batch) -> Iterator[Rows]:
    """The steps of a batch, block by block."""
    alone = len(batch.blocks) == 1  # most calls are short
    for number in batch.blocks if alone else np.unique(batch.blocks):
        block = frame.layout.by_record[int(number)]
        steps = np.zeros(1, np.int64) if alone else np.flatnonzero(batch.blocks == number)
        slots = slots_of(frame.layout, block)
        words = _words(frame, block, steps + batch.first, batch.places[steps])
        columns = [scalar_column(words, slot) for slot in slots]
        yield Rows(frame, block, steps + batch.first, slots, columns)


def _words(
    frame: Frame, block: Block, steps: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """What steps of a block keep: a row of slots for each. Of a version, scalars are as an update has made them."""
    found = frame.recorder.words(places, block.slots)
    changes, terms = frame.tape.changes.get(frame.place), frame.tape.terms
    if changes is None and terms is None:
        return found
    found = found.copy()
    rows = {int(step): row for row, step in enumerate(steps.tolist())}
    for (run, offset), value in () if changes is None else changes.values.items():
        row, ordinal = rows.get(run // 2), offset - len(block.arguments)
        if row is not None and run % 2 == 0 and 0 <= ordinal < len(block.items):
            item = block.items[ordinal]
            if item.slot is not None and not item.type.rank:
                found[row, item.slot] = _word(value, item.type)
    if block.counter >= 0 and changes is not None:
        counter = frame.layout.header_before(block).arguments[-1]
        for step, row in rows.items():
            found[row, block.counter] = frame.value(counter.index, Spot(step, False, 0))
    for offset, item in enumerate(block.items, len(block.arguments)):
        if terms is not None and item.target_slot is not None:
            for step, row in rows.items():
                if (number := terms.find(frame.place, (2 * step, offset))) is not None:
                    found[row, item.target_slot] = _word(terms.target(number + 1), _REAL)
    return found


def _word(value: Any, type_: ValueType) -> int:
    """A scalar as a slot has it."""
    return int(value) if type_.is_int else struct.unpack("<q", struct.pack("<d", value))[0]


def scalar_column(words: npt.NDArray[np.int64], slot: Slot) -> npt.NDArray[Any]:
    """The values in a slot of rows of words; none for a container."""
    if slot.kind == CONTAINER:
        return np.zeros(0)
    column = np.ascontiguousarray(words[:, slot.slot])
    if slot.kind == COUNT:
        return column
    return column.view(np.float64) if slot.kind == REAL else column.astype(np.int32)


def too_deep(frame: Frame) -> Iterator[int]:
    """Positions of the calls that were not entered, as they were too deep, where that is decided at run time."""
    if not frame.tape.tables.stub:
        return
    for batch in batches(frame):
        for n, number in enumerate(batch.blocks):
            items = frame.layout.children[int(number)]
            block = frame.layout.by_record[int(number)]
            deep = frame.too_deep(batch.first + n) if items else ()
            for item, is_deep in zip(items, deep, strict=True):
                if is_deep:
                    yield int(batch.positions[n]) + 1 + len(block.arguments) + block.items.index(item)


@dataclass(frozen=True)
class InnerCall:
    """A recorded call of a frame: the op, its position, and its frame."""

    item: Item
    position: int
    frame: Frame


def calls_of(frame: Frame) -> Iterator[InnerCall]:
    """The calls of a frame that were entered, in order."""
    if any(frame.layout.children.values()):
        for batch in batches(frame):
            yield from calls_in(frame, batch)


def calls_in(frame: Frame, batch: Batch) -> Iterator[InnerCall]:
    """Those of some steps."""
    for call in call_places(frame, batch):
        yield InnerCall(call.item, call.position, call.frame_in(frame))


@dataclass(frozen=True)
class CallPlace:
    """A recorded call: the op, its position, and where its frame begins."""

    item: Item
    position: int
    place: int

    def frame_in(self, caller: Frame) -> Frame:
        """The frame, of a call of `caller`."""
        return caller.tape.frame(self.item.child, self.place, caller, self.position)


def call_places(frame: Frame, batch: Batch) -> Iterator[CallPlace]:
    """The calls of some steps that were entered, in order."""
    calling = [number for number, items in frame.layout.children.items() if items]
    for n in np.flatnonzero(np.isin(batch.blocks, calling)) if calling else ():
        number = int(batch.blocks[n])
        items = frame.layout.children[number]
        block = frame.layout.by_record[number]
        for item, place in zip(items, frame.child_places(batch.first + int(n)), strict=True):
            if place >= 0:
                position = int(batch.positions[n]) + 1 + len(block.arguments) + block.items.index(item)
                yield CallPlace(item, position, place)
