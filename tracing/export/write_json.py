"""A trace as JSON, and back: `trace.schema.json`, beside this file, says what each entry means.

    {"version": 1, "source": ..., "functions": {"h.traced": ...}, "frames": [{"function": "h.traced", ...}, ...]}

Nothing is lost but the payloads of NaNs: numbers are written in the shortest form that reads back; those that are not
finite are strings. What follows from the blocks that ran and the tables of the functions is not written.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import ArgumentError
from ulam.runtime.output_files import writing
from ulam.tracing.copying import flat
from ulam.tracing.export.graph import check_whole, top_of
from ulam.tracing.instrument.graph import Graph, ValueType
from ulam.tracing.instrument.graph_json import decoded
from ulam.tracing.instrument.graph_json import plain as plain_graph
from ulam.tracing.tape.columns import CONTAINER, REAL, Rows, Slot, batches, calls_of, rows_of, too_deep
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.recorder import DRAW_KINDS, UNIFORM, Draws
from ulam.tracing.tape.values import MISSING, Digest
from ulam.tracing.trace import Trace

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
    """A table with its constants as `plain` writes them; `graph_json.plain` has its own form for what is not finite."""
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
