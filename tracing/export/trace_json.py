"""A trace as JSON, and back: `trace.schema.json`, beside this file, says what each entry means.

    {"version": 1, "source": ..., "functions": {"h.traced": ...}, "frames": [{"function": "h.traced", ...}, ...]}

Nothing is lost but the payloads of NaNs: numbers are written in the shortest form that reads back; those that are not
finite are strings. What follows from the blocks that ran and the tables of the functions is not written.

Reading writes the records once more that the run had written, for the same readers.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ulam.emit.trace_ops import record_bytes
from ulam.runtime.errors import ArgumentError
from ulam.runtime.output_files import writing
from ulam.tracing.contexts import TraceContext
from ulam.tracing.copying import flat
from ulam.tracing.export.graph import check_whole, top_of
from ulam.tracing.instrument.graph import ROOT, Block, Graph, ValueType, check_graphs, decoded
from ulam.tracing.instrument.graph import plain as plain_graph
from ulam.tracing.program_text import SourceText
from ulam.tracing.tape.columns import (
    CONTAINER,
    COUNT,
    INT,
    REAL,
    Rows,
    Slot,
    batches,
    calls_of,
    rows_of,
    slots_of,
    too_deep,
)
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Layout
from ulam.tracing.tape.overlay import Changes, FrameChanges
from ulam.tracing.tape.recorder import CHUNK_BYTES, DRAW_KINDS, UNIFORM, DamagedTrace, Draws, Recorder
from ulam.tracing.tape.tape import Tables, Tape
from ulam.tracing.tape.values import MISSING, Digest
from ulam.tracing.trace import SavedError, Trace, TraceError, origin

if TYPE_CHECKING:
    from ulam.tracing.nodes import Node


VERSION = 1
MAX_NODES = 1_000_000
"""Nodes that are written to memory, unless one asks for more; files have no limit."""

ERROR = ("type", "text", "message")
"""Entries of an error; the message is the text without the place."""


def schema() -> dict[str, Any]:
    """The JSON Schema of what `to_json` writes."""
    return json.loads((Path(__file__).parent / "trace.schema.json").read_text(encoding="utf-8"))


def to_json(
    what: Node | Trace, path: str | os.PathLike[str] | None = None, *, max_nodes: int | None = MAX_NODES
) -> str:
    """The whole trace (also that of a node) as text; to a file, if `path` is given, piece by piece.

    Raises ArgumentError for a trace whose beginning was not kept, and, without a path, for one of more than `max_nodes`
    nodes (None: any number).
    """
    trace = flat(top_of(what).trace)
    check_whole(trace, "written as JSON")
    if path is None:
        out = io.StringIO()
        _write(trace, out, max_nodes)
        return out.getvalue()
    with writing(path) as file:
        _write(trace, file, None)
    return ""


def _write(trace: Trace, out: IO[str], max_nodes: int | None) -> None:
    graphs = {symbol: _graph(plain_graph(graph)) for symbol, graph in trace.tape.tables.graphs.items()}
    error = None
    if trace.error is not None:
        error = dict(zip(ERROR, trace.error.entry, strict=True))
    head = {
        "version": VERSION,
        "source": {"file": trace.source.filename, "text": trace.source.text},
        "self_node": trace.context.self_node,
        "arguments": [plain(value) for value in trace.tape.arguments],
        "error": error,
        "scripted": trace.draws.scripted,
        "draws": [_draw(int(kind), value) for kind, value in zip(trace.draws.kinds, trace.draws.values, strict=True)],
        "functions": graphs,
    }
    out.write(_text(head)[:-1] + ',\n"frames": [')
    metadata: list[list[Any]] = []
    fixed: list[list[Any]] = []
    noted: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for (place, position), entries in trace.noted.items():
        noted.setdefault(place, []).append((position, entries))
    count = 0
    for number, (frame, caller) in enumerate(frames_of(trace)):
        count += 0 if max_nodes is None else frame.length
        if max_nodes is not None and count > max_nodes:
            raise ArgumentError(
                f"the trace has more than {max_nodes:,} nodes: give a file, which is written piece by piece, "
                "or max_nodes=None"
            )
        out.write(",\n" if number else "\n")
        _write_frame(frame, caller, out)
        fixed += [[number, *entry] for entry in _fixed(frame)]
        for position, entries in noted.get(frame.place, ()):
            metadata.append([number, position, {str(k): _metadata(v) for k, v in entries.items()}])
    out.write('],\n"metadata": ' + _text(metadata))
    out.write((',\n"set": ' + _text(fixed) if fixed else "") + "}\n")


def _fixed(frame: Frame) -> Iterator[list[Any]]:
    """What an update has set in a frame: run, offset, type, value."""
    changes = frame.tape.changes.get(frame.place)
    if changes is None:
        return
    for key in sorted(changes.fixed):
        type_ = frame.type_at(key)
        yield [*key, type_.base, type_.array_rank, plain(changes.values[key])]


def frames_of(trace: Trace) -> Iterator[tuple[Frame, tuple[int, int] | None]]:
    """All frames, callers first; with each the number of its caller among them, and the position of the call."""
    root = trace.root.frame
    yield root, None
    count = 1
    stack = [(0, calls_of(root))]
    while stack:
        number, calls = stack[-1]
        call = next(calls, None)
        if call is None:
            stack.pop()
            continue
        yield call.frame, (number, call.position)
        stack.append((count, calls_of(call.frame)))
        count += 1


def _write_frame(frame: Frame, caller: tuple[int, int] | None, out: IO[str]) -> None:
    number_of = {record: block.number for record, block in frame.layout.by_record.items()}
    out.write(f'{{"function": {json.dumps(frame.graph.symbol)}, "caller": {json.dumps(caller)}, "blocks": [')
    for batch in batches(frame):
        out.write(", " if batch.first else "")
        out.write(", ".join(str(number_of[int(b)]) for b in batch.blocks))
    out.write('], "values": [')
    for batch in batches(frame):
        rows: list[list[Any]] = [[]] * len(batch.blocks)
        for block in rows_of(frame, batch):
            for step, values in zip(block.steps - batch.first, _values(block), strict=True):
                rows[step] = values
        out.write((", " if batch.first else "") + _text(rows)[1:-1])
    out.write("]")
    if frame.failed:
        last = frame.steps - 1
        thrown = frame.throwing(last)
        out.write(f', "reached": {frame.reached(last)}, "threw": {json.dumps(thrown is not None)}')
    if deep := list(too_deep(frame)):
        out.write(f', "too_deep": {json.dumps(deep)}')
    out.write("}")


def _values(rows: Rows) -> Iterator[list[Any]]:
    """The values of each step of some that ran the same block."""
    columns = [_column(rows, slot, column) for slot, column in zip(rows.slots, rows.columns, strict=True)]
    found = [list(values) for values in zip(*columns, strict=True)] if columns else [[] for _ in rows.steps]
    reached = rows.incomplete
    if reached is not None:
        found[-1] = [None if slot.ordinal >= reached else v for slot, v in zip(rows.slots, found[-1], strict=True)]
    yield from found


def _column(rows: Rows, slot: Slot, column: Any) -> list[Any]:
    if slot.kind != CONTAINER:
        found = column.tolist()
        return found if slot.kind != REAL or all(map(math.isfinite, found)) else [plain(v) for v in found]
    last, reached = len(rows.steps) - 1, rows.incomplete
    found: list[Any] = []
    for row in range(len(rows.steps)):
        skipped = row == last and reached is not None and slot.ordinal >= reached
        found.append(None if skipped else plain(rows.container(slot, row)))
    return found


# ---------------------------------------------------------------- values


def plain(value: Any) -> Any:
    """A value of a trace as JSON has it."""
    if value is MISSING:
        return ""
    if isinstance(value, float):
        if value != value:
            return "NaN"
        return value if abs(value) != float("inf") else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, np.ndarray):
        return {"sizes": list(value.shape), "elements": [plain(v) for v in value.ravel().tolist()]}
    if isinstance(value, Digest):
        digest = {
            "least": plain(value.least), "greatest": plain(value.greatest), "nans": value.nans,
            "infinities": value.infinities, "first": [plain(v) for v in value.first], "last": plain(value.last),
        }  # fmt: skip
        return {"sizes": list(value.sizes), "digest": digest}
    return value


def valued(entry: Any, type_: ValueType) -> Any:
    """The inverse of `plain`, for a value of a type."""
    if entry is None:
        return MISSING
    if isinstance(entry, dict) and "digest" in entry:
        digest = entry["digest"]
        first = tuple(float(v) for v in digest["first"])
        return Digest(
            tuple(entry["sizes"]), float(digest["least"]), float(digest["greatest"]), int(digest["nans"]),
            int(digest["infinities"]), first, float(digest["last"]),
        )  # fmt: skip
    if isinstance(entry, dict):
        flat = np.array([float(v) for v in entry["elements"]]) if not type_.is_int else np.array(entry["elements"])
        return flat.astype(np.int32 if type_.is_int else np.float64).reshape(entry["sizes"])
    return int(entry) if type_.is_int else float(entry)


def _draw(kind: int, value: np.uint64) -> Any:
    if kind == UNIFORM:
        return float(np.array([value]).view(np.float64)[0])
    return {DRAW_KINDS[kind]: hex(int(value))}


def drawn(entries: list[Any], scripted: bool) -> Draws:
    """The inverse: random numbers as they were drawn."""
    values, kinds = np.zeros(len(entries), np.uint64), np.zeros(len(entries), np.uint8)
    for n, entry in enumerate(entries):
        if isinstance(entry, dict):
            ((kind, bits),) = entry.items()
            kinds[n], values[n] = DRAW_KINDS.index(kind), int(bits, 16)
        else:
            kinds[n], values[n] = UNIFORM, np.array([float(entry)]).view(np.uint64)[0]
    return Draws(values, kinds, scripted)


def _graph(entry: Any) -> Any:
    """A table with its constants as `instrument.graph.plain` writes them, which has a form of its own for what is not
    finite."""
    if isinstance(entry, dict):
        if set(entry) == {"real"}:
            return plain(float(entry["real"]))
        return {
            key: {str(k): _metadata(v) for k, v in value.items()} if key == "metadata" else _graph(value)
            for key, value in entry.items()
        }
    return [_graph(value) for value in entry] if isinstance(entry, list) else entry


def graph_of(entry: Any) -> Graph:
    """The inverse."""
    return decoded(_with_reals(entry))


def _with_reals(entry: Any) -> Any:
    if isinstance(entry, Mapping):
        made = {key: _with_reals(value) for key, value in entry.items()}
        if {"constant", "type"} <= set(made) and isinstance(made["constant"], str) and made["type"][0] == "real":
            made["constant"] = {"real": made["constant"]}
        return made
    return [_with_reals(value) for value in entry] if isinstance(entry, list) else entry


def _metadata(value: Any) -> Any:
    """What a user has noted; what JSON does not have as its text, which is what listings show."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return str(value)
    return value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


__all__ = ["MAX_NODES", "VERSION", "drawn", "frames_of", "graph_of", "plain", "schema", "to_json", "valued"]


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
