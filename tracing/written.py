"""Records that are not made by a run: written as emitted code and the recorder would (see c/trace.h).

Everything is written twice, at the same places: as it is shown, large containers being digests, and whole.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulam.emit.trace_ops import PROGRESS_OFFSET, record_bytes
from ulam.tracing.instrument.graph import Block, ValueType
from ulam.tracing.recorder import CHUNK_BYTES, Recorder
from ulam.tracing.tape import Tables
from ulam.tracing.values import Digest, digest

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
