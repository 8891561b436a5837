"""Copies of the records of a version, with what differs from its base in its place: as those of one run."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.emit.trace_ops import PROGRESS_OFFSET, record_bytes
from ulam.tracing.instrument.graph import Block, Item, ValueType
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Spot, spot_of
from ulam.tracing.tape.overlay import FrameChanges, Key
from ulam.tracing.tape.recorder import CHUNK_BYTES, NO_DRAWS, Draws, Recorder
from ulam.tracing.tape.tape import Tables, Tape
from ulam.tracing.tape.values import MISSING, Digest, digest
from ulam.tracing.versions import draws_of

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace


# ---------------------------------------------------------------- records that are not made by a run
#
# They are written as emitted code and the recorder would (see c/trace.h), twice, at the same places: as they are shown,
# large containers being digests, and whole.

IN_ITEM = 1
"""See `ulam.tracing.instrument.instrument`."""


@dataclass
class Record:
    """The record of one run of a block; `place` is where it begins."""

    place: int
    shown: bytearray
    whole: bytearray

    def put(self, slot: int, data: bytes) -> None:
        """The same in both."""
        at = record_bytes(slot)
        self.shown[at : at + len(data)] = data
        self.whole[at : at + len(data)] = data

    def reached(self, ordinal: int, *, runs: bool = True) -> None:
        """So many ops are over; `runs`: and the next one runs."""
        for image in (self.shown, self.whole):
            struct.pack_into("<i", image, PROGRESS_OFFSET, 2 * ordinal + IN_ITEM * runs + 1)


class RecordWriter:
    """Records one after the other, as those of one run."""

    def __init__(self, tables: Tables, copied: int) -> None:
        self._tables, self._copied = tables, copied
        self._chunk_bytes = max(CHUNK_BYTES, tables.longest)
        self._records: list[Record] = []
        self._next = 0
        self._sides = (bytearray(), bytearray())

    def begin(self, block: Block) -> Record:
        """The record of a block, all zero."""
        size = record_bytes(block.slots)
        if self._next % self._chunk_bytes + size > self._chunk_bytes:
            self._next += self._chunk_bytes - self._next % self._chunk_bytes
        header = struct.pack("<q", block.record) + bytes(size - 8)
        record = Record(self._next, bytearray(header), bytearray(header))
        self._records.append(record)
        self._next += size
        return record

    def put(self, record: Record, slot: int, type_: ValueType, value: Any) -> None:
        """A value in its slot. `value`: whole; a digest if there is nothing else."""
        if not type_.rank:
            record.put(slot, struct.pack("<q", value) if type_.is_int else struct.pack("<d", value))
            return
        shown = value
        if not isinstance(value, Digest) and value.size > self._copied:
            shown = digest(value, type_)
        sizes = value.sizes if isinstance(value, Digest) else value.shape
        for image, side, form in zip((record.shown, record.whole), self._sides, (shown, value), strict=True):
            at = len(side)
            side += _contents(form, type_)
            side += bytes(-len(side) % 8)
            data = struct.pack(f"<{1 + type_.rank}q", at, *sizes)
            image[record_bytes(slot) : record_bytes(slot) + len(data)] = data

    def finish(self) -> tuple[Recorder, Recorder]:
        """Recorders that have the records: as shown, and whole."""
        return self._recorder("shown", self._sides[0]), self._recorder("whole", self._sides[1])

    def _recorder(self, form: str, side: bytearray) -> Recorder:
        chunks: list[bytearray] = []
        for record in self._records:
            number, offset = divmod(record.place, self._chunk_bytes)
            if number == len(chunks):
                chunks.append(bytearray())
            assert len(chunks[number]) == offset
            chunks[number] += getattr(record, form)
        made = Recorder(self._chunk_bytes, "stop", self._chunk_bytes)
        made.begin(self._tables.rows)
        made.lend([bytes(chunk) for chunk in chunks], bytes(side))
        return made


def _contents(value: Any, type_: ValueType) -> bytes:
    if isinstance(value, Digest):
        first = (*value.first, 0.0, 0.0, 0.0)[:3]
        numbers = (value.least, value.greatest, value.nans, value.infinities, *first, value.last)
        return struct.pack("<2q8d", 1, value.count, *numbers)
    ordered = np.swapaxes(value, -1, -2) if type_.base == "matrix" else value
    kind = np.int32 if type_.is_int else np.float64
    return struct.pack("<2q", 0, value.size) + np.ascontiguousarray(ordered, kind).tobytes()


Read = Callable[[Frame, Item, Spot], Any]
Caller = tuple[int, Key]
"""The place of a call's caller, and of the call there."""
NO_CALLER: Caller = (-1, (-1, -1))


def no_draws(_frame: Frame, _spot: Spot) -> Draws:
    """Of calls that draw nothing."""
    return NO_DRAWS


@dataclass
class Stream:
    """Random numbers: what a call had drawn (`given`), and what it has drawn now."""

    given: Draws
    taken: list[Draws] = field(default_factory=list[Draws])
    count: int = 0

    def add(self, draws: Draws) -> None:
        """An op has drawn, or had."""
        self.taken.append(draws)
        self.count += len(draws)

    @property
    def left(self) -> Draws:
        """What can be drawn again."""
        return self.given[self.count :]

    @property
    def drawn(self) -> Draws:
        """All that was drawn."""
        return Draws.joined(self.taken)


class FrameCopier:
    """Writes what calls did. `read`: the value of an op; `draws_of`: what one has drawn.

    `fixed`: of each frame, by its new place, what was set; `places`: that place by the old one.
    """

    def __init__(
        self, writer: RecordWriter, stream: Stream, read: Read, draws_of: Callable[[Frame, Spot], Draws]
    ) -> None:
        self.writer, self.stream = writer, stream
        self._read, self._draws_of = read, draws_of
        self.fixed: dict[int, FrameChanges] = {}
        self.places: dict[int, int] = {}
        self._last: tuple[int, Record | None] = (-1, None)

    def copy(self, frame: Frame, stop: Key | None, caller: Caller) -> tuple[int, Record | None]:
        """A call, up to a key; its place, and its last record."""
        stack = [self._steps(frame, stop, caller)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._steps(inner[0], None, inner[1]))
        return self._last

    def _steps(self, frame: Frame, stop: Key | None, caller: Caller) -> Iterator[tuple[Frame, Caller]]:
        """Writes the records one by one; gives calls that come in between."""
        steps = frame.steps if stop is None else stop[0] // 2 + 1
        place = -1
        record: Record | None = None
        for step in range(steps):
            block = frame.block(step)
            record = self.writer.begin(block)
            if step == 0:
                place = record.place
                self.places[frame.place] = place
                self._keep_fixed(place, caller, frame, stop)
            if block.counter >= 0:
                counter = frame.layout.header_before(block).arguments[-1]
                record.put(block.counter, struct.pack("<q", frame.value(counter.index, Spot(step, False, 0))))
            for inner, call in self._items(frame, step, block, record, stop):
                yield inner, (place, call)
        self._last = (place, record)

    def _items(
        self, frame: Frame, step: int, block: Block, record: Record, stop: Key | None
    ) -> Iterator[tuple[Frame, Key]]:
        is_last = frame.failed and step == frame.steps - 1
        reached, throwing = frame.reached(step), frame.throwing(step)
        if is_last and stop is None:
            record.reached(reached, runs=throwing is not None)
        for ordinal, item in enumerate(block.items):
            key = (2 * step, len(block.arguments) + ordinal)
            if (stop is not None and key >= stop) or ordinal > reached or (ordinal == reached and throwing is None):
                return
            spot, begin = spot_of(key), self.stream.count
            child = frame.child(spot) if item.child else None
            if child is not None:
                yield child, key
            elif item.child and frame.tape.tables.stub:
                self.writer.begin(Block(0, record=frame.tape.tables.stub))  # it was too deep
            elif item.stream is not None:
                self.stream.add(self._draws_of(frame, spot))
            if item.stream is not None:
                record.put(item.stream, struct.pack("<2q", begin, self.stream.count))
            if ordinal == reached:
                return
            value = self._read(frame, item, spot) if item.slot is not None else MISSING
            if item.slot is not None and value is not MISSING:
                self.writer.put(record, item.slot, item.type, value)
            elif item.slot is not None and item.type.rank:
                record.put(item.slot, struct.pack("<q", -1))
            if item.target_slot is not None:
                record.put(item.target_slot, struct.pack("<d", frame.target_after(item, spot)))

    def _keep_fixed(self, place: int, caller: Caller, frame: Frame, stop: Key | None) -> None:
        """What was set stays so."""
        made = self.fixed[place] = FrameChanges(*caller)
        changes = frame.tape.changes.get(frame.place)
        if changes is None:
            return
        for key in changes.fixed:
            if stop is None or key < stop:
                made.fixed.add(key)
                made.values[key] = changes.values[key]


def flat(trace: Trace) -> Trace:
    """The same version with all records in one piece; what was set where nothing is recorded stays beside them."""
    tape = trace.tape
    if tape.in_one_piece or not (tape.changes or tape.terms is not None):
        return trace
    segments = draws_of(trace)

    def drawn(frame: Frame, spot: Spot) -> Draws:
        taken = frame.draws_taken(spot)
        return segments[taken.segment][taken.begin : taken.end]

    root = trace.root.frame
    writer = RecordWriter(tape.tables, trace.context.max_copy)
    copier = FrameCopier(writer, Stream(trace.draws), lambda f, item, spot: f.item_value(item, spot), drawn)
    copier.copy(root, None, NO_CALLER)
    shown, _ = writer.finish()
    made = trace.same_program(Tape(shown, tape.tables, tape.arguments, tape.failed))
    made.tape.changes.add(copier.fixed, 0, *NO_CALLER)
    made.draws, made.error = trace.draws, trace.error
    made.move_metadata(copier.places)
    return made
