"""Traces in files: a head of JSON (tables, arguments, source), then the records as they were.

ULAM-TRACE version, byte order, length of the head, head, chunks, contents of containers, draws, SHA-256 of all this
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ulam.runtime.errors import ArgumentError
from ulam.runtime.output_files import writing
from ulam.tracing.contexts import TraceContext
from ulam.tracing.copying import flat
from ulam.tracing.instrument.graph import ROOT, Graph, check_graphs, decoded, plain
from ulam.tracing.program_text import SourceText
from ulam.tracing.tape.overlay import Changes, FrameChanges
from ulam.tracing.tape.recorder import DRAW_KINDS, UNIFORM, DamagedTrace, Draws, Recorder
from ulam.tracing.tape.tape import Tables, Tape
from ulam.tracing.trace import SavedError, Trace, TraceError, origin

VERSION = 2
_MAGIC = b"ULAM-TRACE "
_DIGEST = hashlib.sha256().digest_size


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Writes a trace. Raises ArgumentError for one that was not kept whole."""
    trace = flat(trace)
    recorder = trace.tape.recorder.whole()
    info = recorder.info()
    if info.first_kept:
        raise ArgumentError("only a trace whose beginning is kept can be saved: use overflow='stop' or 'spill'")
    chunks = [ctypes.string_at(*recorder.chunk(n)) for n in range(info.chunks)]
    kept = info.side_bytes - info.side_first
    side = recorder.side(info.side_first, kept) if kept else b""
    head = {
        "graphs": {symbol: plain(graph) for symbol, graph in trace.tape.tables.graphs.items()},
        "arguments": [_plain(value) for value in trace.tape.arguments],
        "failed": trace.failed,
        "set": [
            [place, made.caller, made.call, [[*key, _plain(made.values[key])] for key in sorted(made.fixed)]]
            for place, made in trace.tape.changes.items()
        ],
        "error": None if trace.error is None else trace.error.entry,
        "source": [trace.source.text, trace.source.filename],
        "chunk_bytes": info.chunk_bytes,
        "chunks": [len(chunk) for chunk in chunks],
        "side": len(side),
        "side_first": info.side_first,
        "draws": len(trace.draws),
        "scripted": trace.draws.scripted,
        "self_node": trace.context.self_node,
    }
    text = json.dumps(head).encode()
    parts = [_MAGIC, f"{VERSION} {sys.byteorder} {len(text)}\n".encode(), text, *chunks, side]
    parts += [trace.draws.values.tobytes(), trace.draws.kinds.tobytes()]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    with writing(path, binary=True) as file:
        file.writelines([*parts, digest.digest()])


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as saved traces do."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def load(path: str | os.PathLike[str]) -> Any:
    """The root of a saved trace. Needs no compiler. Raises DamagedTrace."""
    data = Path(path).read_bytes()
    name = os.fspath(path)
    if not data.startswith(_MAGIC):
        raise DamagedTrace(f"'{name}' is no saved trace")
    line, _, rest = data[len(_MAGIC) : -_DIGEST].partition(b"\n")
    found = re.fullmatch(rb"(\d+) (little|big) (\d+)", line)
    if found is None:
        raise DamagedTrace(f"'{name}' is damaged: it does not say which version it is of")
    version, order, length = int(found[1]), found[2].decode(), int(found[3])
    if version != VERSION or order != sys.byteorder:
        raise DamagedTrace(
            f"'{name}' was written by another version of ulam or kind of machine (version {version}, {order}-endian; "
            f"here {VERSION}, {sys.byteorder}-endian)"
        )
    if len(data) < _DIGEST or hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise DamagedTrace(f"'{name}' is damaged: its checksum is wrong")
    try:
        return _read(rest, length)
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise DamagedTrace(
            f"'{name}' has a right checksum, but is no trace: {type(error).__name__}: {error}"
        ) from error


def _read(rest: bytes, length: int) -> Any:
    head = json.loads(rest[:length])
    at = length

    def take(count: int) -> bytes:
        nonlocal at
        if not 0 <= count <= len(rest) - at:
            raise ValueError(f"{count} bytes are not there")
        at += count
        return rest[at - count : at]

    recorder = Recorder(max(head["chunk_bytes"], 4096), "stop", head["chunk_bytes"])
    graphs = {symbol: decoded(entry) for symbol, entry in head["graphs"].items()}
    check_graphs(graphs)
    tables = Tables(graphs)
    recorder.begin(tables.rows)
    chunks = [take(count) for count in head["chunks"]]
    recorder.lend(chunks, take(head["side"]), head["side_first"])
    tape = Tape(recorder, tables, _arguments(head["arguments"], graphs[ROOT]), bool(head["failed"]))
    tape.changes = Changes({int(place): _changes(*entry) for place, *entry in head.get("set", ())})
    text, filename = map(str, head["source"])
    trace = Trace(tape, TraceContext(self_node=bool(head["self_node"])), SourceText(text, filename), {})
    count = head["draws"]
    values, kinds = np.frombuffer(take(8 * count), np.uint64), np.frombuffer(take(count), np.uint8)
    if np.any(kinds >= len(DRAW_KINDS)) or not np.isfinite(values[kinds == UNIFORM].view(np.float64)).all():
        raise ValueError("a random number is none")
    trace.draws = Draws(values, kinds, bool(head["scripted"]))
    if head["error"] is not None:
        name, message, short = map(str, head["error"])
        trace.error = TraceError(SavedError(name, message, short), None)
        trace.error = TraceError(trace.error.exception, origin(trace))
    return trace.root


def _arguments(entries: Sequence[Any], root: Graph) -> list[Any]:
    """Of the traced function: a value for each parameter, of its type."""
    values = [_value(entry) for entry in entries]
    for value, parameter in zip(values, root.parameters, strict=True):
        if np.ndim(value) != parameter.type.rank or not np.issubdtype(np.asarray(value).dtype, np.number):
            raise ValueError(f"the argument '{parameter.name}' is not of type {parameter.type}")
    return values


def _changes(caller: int, call: Sequence[int], fixed: Sequence[Sequence[Any]]) -> FrameChanges:
    """What an update had set in a frame."""
    made = FrameChanges(caller, (call[0], call[1]))
    for run, offset, value in fixed:
        made.values[run, offset] = _value(value)
        made.fixed.add((run, offset))
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"kind": str(value.dtype), "sizes": list(value.shape), "elements": value.tobytes().hex()}
    return {"real": value.hex()} if isinstance(value, float) else value


def _value(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    if "real" in entry:
        return float.fromhex(entry["real"])
    return np.frombuffer(bytes.fromhex(entry["elements"]), entry["kind"]).reshape(entry["sizes"])
