"""Reads the JSON that `json` writes: writes the records once more that the run had written, for the same readers."""

from __future__ import annotations

import json
import os
import struct
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ulam.emit.trace_ops import record_bytes
from ulam.tracing.contexts import TraceContext
from ulam.tracing.export.write_json import ERROR, VERSION, drawn, graph_of, valued
from ulam.tracing.instrument.graph import ROOT, Block, ValueType
from ulam.tracing.instrument.graph_json import check_graphs
from ulam.tracing.program_text import SourceText
from ulam.tracing.tape.columns import CONTAINER, COUNT, INT, REAL, slots_of
from ulam.tracing.tape.layout import Layout
from ulam.tracing.tape.overlay import Changes, FrameChanges
from ulam.tracing.tape.recorder import CHUNK_BYTES, DamagedTrace, Recorder
from ulam.tracing.tape.tape import Tables, Tape
from ulam.tracing.tape.values import MISSING, Digest
from ulam.tracing.trace import SavedError, Trace, TraceError, origin

_FORMATS = {REAL: "<d", INT: "<i", COUNT: "<q"}


def from_json(source: str | os.PathLike[str] | Mapping[str, Any]) -> Trace:
    """The trace that `to_json` has written, given as text, as a file, or as what a JSON reader made of it.

    Needs no compiler. Raises DamagedTrace for what is no such JSON.
    """
    if isinstance(source, Mapping):
        entry: Any = source
    else:
        text = source
        if not isinstance(source, str) or not source.lstrip().startswith("{"):
            text = Path(source).read_text(encoding="utf-8")
        try:
            entry = json.loads(str(text))
        except ValueError as error:
            raise DamagedTrace(f"the trace is not valid JSON: {error}") from None
    if not isinstance(entry, Mapping) or entry.get("version") != VERSION:
        found = entry.get("version") if isinstance(entry, Mapping) else type(entry).__name__
        raise DamagedTrace(f"a trace in JSON has version {VERSION}, found {found!r}")
    try:
        return _trace(entry)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, struct.error) as error:
        what = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
        raise DamagedTrace(f"this is no trace in JSON: {what}") from error


def _trace(entry: Mapping[str, Any]) -> Trace:
    graphs = {symbol: graph_of(graph) for symbol, graph in entry["functions"].items()}
    check_graphs(graphs)
    tables = Tables(graphs)
    records = _Records(tables, entry["frames"])
    records.write()
    recorder = Recorder(1 << 62, "stop", records.chunk_bytes)
    recorder.begin(tables.rows)
    recorder.lend([bytes(chunk) for chunk in records.chunks], bytes(records.side))
    types = [parameter.type for parameter in tables.graphs[ROOT].parameters]
    arguments = [valued(value, type_) for value, type_ in zip(entry["arguments"], types, strict=True)]
    error = entry["error"]
    source = SourceText(entry["source"]["text"], entry["source"]["file"])
    context = TraceContext(self_node=bool(entry["self_node"]))
    trace = Trace(Tape(recorder, tables, arguments, error is not None), context, source, {})
    trace.draws = drawn(entry["draws"], bool(entry["scripted"]))
    for number, position, noted in entry["metadata"]:
        trace.noted[records.places[number], position] = dict(noted)
    _fix(trace, records, entry)
    if error is not None:
        exception = SavedError(*(error[name] for name in ERROR))
        trace.error = TraceError(exception, None)
        trace.error = TraceError(exception, origin(trace))
    return trace


def _fix(trace: Trace, records: _Records, entry: Mapping[str, Any]) -> None:
    """What an update had set stays so."""
    found: dict[int, FrameChanges] = {}
    for number, run, offset, base, rank, value in entry.get("set", ()):
        made = found.setdefault(records.places[number], FrameChanges(-1, (-1, -1)))
        made.values[run, offset] = valued(value, ValueType(base, rank))
        made.fixed.add((run, offset))
    trace.tape.changes = Changes(found)


class _Records:
    """The records of all frames, in the order in which they were written: `chunks`, and contents of containers."""

    def __init__(self, tables: Tables, frames: list[Any]) -> None:
        self.tables = tables
        self.frames = frames
        largest = max(record_bytes(b.slots) for layout in tables.layouts.values() for b in layout.by_record.values())
        self.chunk_bytes = max(CHUNK_BYTES, largest)
        self.chunks = [bytearray()]
        self.side = bytearray()
        self.places: list[int] = [-1] * len(frames)
        self.ended = False
        """Whether a frame has ended before its return: nothing follows it."""
        self.called: list[deque[tuple[int, int]]] = [deque() for _ in frames]
        for number, frame in enumerate(frames):
            if (frame["caller"] is None) != (number == 0) or (number and not 0 <= frame["caller"][0] < number):
                raise ValueError(f"frame {number} has no caller before it")
            if number:
                self.called[frame["caller"][0]].append((frame["caller"][1], number))
        if not frames or frames[0]["function"] != ROOT:
            raise ValueError(f"the first frame is that of {ROOT}")

    def write(self) -> None:
        """Fills the chunks."""
        stack = [self._frame(0)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._frame(inner))
        if left := sum(map(len, self.called)):
            raise ValueError(f"{left} frames are not those of a call that there is")

    def _frame(self, number: int) -> Iterator[int]:
        """Writes the records of a frame; gives the number of each that is called, when it is time to write that."""
        frame = self.frames[number]
        layout = self.tables.layouts[frame["function"]]
        blocks = {block.number: block for block in layout.by_record.values()}
        ran, values = frame["blocks"], frame["values"]
        if len(ran) != len(values) or not ran or blocks[ran[0]].record != layout.first_record:
            raise ValueError(f"frame {number} does not have values for each of its blocks, from the first on")
        position = 1 + len(layout.graph.parameters)
        returned = False
        for step, (ran_block, kept) in enumerate(zip(ran, values, strict=True)):
            block = blocks[ran_block]
            if self.ended or returned:
                raise ValueError(f"frame {number} goes on behind its end")
            if step and not _follows(layout, blocks[ran[step - 1]], block):
                raise ValueError(f"frame {number}: no jump leads from block {ran[step - 1]} to block {ran_block}")
            progress = 0
            if step == len(ran) - 1 and "reached" in frame:
                progress = 2 * int(frame["reached"]) + int(bool(frame["threw"])) + 1
            self._record(number, layout, block, kept, progress)
            for item in layout.children[block.record]:
                at = position + 1 + len(block.arguments) + block.items.index(item)
                calls = self.called[number]
                if calls and calls[0][0] == at:
                    inner = calls.popleft()[1]
                    if self.frames[inner]["function"] != item.child:
                        raise ValueError(f"frame {inner} is of another function than the call at @{at}")
                    yield inner
                elif at in frame.get("too_deep", ()) and self.tables.stub:
                    self._append(struct.pack("<ii", self.tables.stub, 0))
                elif not self.ended and not progress:
                    self.ended = True
            position += layout.nodes[block.record]
            returned = not block.edges[0].target
        if not returned or "reached" in frame:
            self.ended = True

    def _record(self, frame: int, layout: Layout, block: Block, kept: list[Any], progress: int) -> None:
        slots = slots_of(layout, block)
        if len(kept) != len(slots):
            raise ValueError(
                f"frame {frame}: a run of block {block.number} keeps {len(slots)} values, found {len(kept)}"
            )
        record = bytearray(record_bytes(block.slots))
        struct.pack_into("<ii", record, 0, block.record, progress)
        for slot, entry in zip(slots, kept, strict=True):
            at = record_bytes(slot.slot)
            if slot.kind == CONTAINER:
                assert slot.item is not None
                self._container(record, at, valued(entry, slot.item.type), slot.item.type)
            elif entry is not None:
                struct.pack_into(_FORMATS[slot.kind], record, at, float(entry) if slot.kind == REAL else int(entry))
        place = self._append(bytes(record))
        if self.places[frame] < 0:
            self.places[frame] = place

    def _append(self, record: bytes) -> int:
        """Writes a record; where it is."""
        if len(self.chunks[-1]) + len(record) > self.chunk_bytes:
            self.chunks.append(bytearray())
        place = (len(self.chunks) - 1) * self.chunk_bytes + len(self.chunks[-1])
        self.chunks[-1] += record
        return place

    def _container(self, record: bytearray, at: int, value: Any, type_: ValueType) -> None:
        if value is MISSING:
            struct.pack_into("<q", record, at, -1)
            return
        sizes = value.sizes if isinstance(value, Digest) else value.shape
        if len(sizes) != type_.rank:
            raise ValueError(f"a {type_} has {type_.rank} sizes, found {len(sizes)}")
        struct.pack_into(f"<{1 + len(sizes)}q", record, at, len(self.side), *sizes)
        if isinstance(value, Digest):
            self.side += struct.pack("<2q", 1, value.count)
            numbers = (value.least, value.greatest, value.nans, value.infinities, *value.first, value.last)
            self.side += struct.pack("<8d", *numbers)
            return
        ordered = np.swapaxes(value, -1, -2) if type_.base == "matrix" else value
        self.side += struct.pack("<2q", 0, value.size) + np.ascontiguousarray(ordered).tobytes()
        self.side += bytes(-len(self.side) % 8)


def _follows(layout: Layout, before: Block, after: Block) -> bool:
    """Whether a jump leads from one block to another, or by way of a header that writes no record."""
    header = layout.header.get(before.record)
    edges = (header or before).edges
    return any(edge.target == after.number for edge in edges)
