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

from ulam.passes.trace.graph import Graph
from ulam.runtime.errors import ArgumentError, UlamError
from ulam.runtime.output_files import writing
from ulam.runtime.trace.contexts import TraceContext
from ulam.runtime.trace.copying import flat
from ulam.runtime.trace.overlay import Changes, FrameChanges
from ulam.runtime.trace.program_text import SourceText
from ulam.runtime.trace.recorder import Draws, Recorder
from ulam.runtime.trace.tape import Tables, Tape
from ulam.runtime.trace.trace import Trace, TraceError

VERSION = 2
_MAGIC = b"ULAM-TRACE "
_DIGEST = hashlib.sha256().digest_size


class DamagedTrace(UlamError):
    """A file that is no saved trace, or that does not have the contents that it was written with."""


class SavedError(UlamError):
    """The error of a run whose trace was saved: `name` is the class of the exception that it was.

    `message` is its text without the place, as listings have it.
    """

    def __init__(self, name: str, text: str, message: str) -> None:
        self.name, self.message = name, message
        super().__init__(text)

    @classmethod
    def entry(cls, error: TraceError) -> list[str]:
        """What is saved: the arguments of the constructor."""
        return [error.name, str(error.exception), error.message]


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
        "graphs": {symbol: graph.to_json() for symbol, graph in trace.tape.tables.graphs.items()},
        "arguments": [_plain(value) for value in trace.tape.arguments],
        "failed": trace.failed,
        "set": [
            [place, made.caller, made.call, [[*key, _plain(made.values[key])] for key in sorted(made.fixed)]]
            for place, made in trace.tape.changes.items()
        ],
        "error": None if trace.error is None else SavedError.entry(trace.error),
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
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DamagedTrace(
            f"'{name}' has a right checksum, but is no trace: {type(error).__name__}: {error}"
        ) from error


def _read(rest: bytes, length: int) -> Any:
    head = json.loads(rest[:length])
    at = length

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return rest[at - count : at]

    recorder = Recorder(max(head["chunk_bytes"], 4096), "stop", head["chunk_bytes"])
    tables = Tables({symbol: Graph.from_json(entry) for symbol, entry in head["graphs"].items()})
    recorder.begin(tables.rows)
    chunks = [take(count) for count in head["chunks"]]
    recorder.lend(chunks, take(head["side"]), head["side_first"])
    tape = Tape(recorder, tables, [_value(entry) for entry in head["arguments"]], head["failed"])
    tape.changes = Changes({place: _changes(*entry) for place, *entry in head.get("set", ())})
    trace = Trace(tape, TraceContext(self_node=head["self_node"]), SourceText(*head["source"]), {})
    count = head["draws"]
    values, kinds = np.frombuffer(take(8 * count), np.uint64), np.frombuffer(take(count), np.uint8)
    trace.draws = Draws(values, kinds, head["scripted"])
    if head["error"] is not None:
        from ulam.runtime.trace.trace import origin

        trace.error = TraceError(SavedError(*head["error"]), None)
        trace.error = TraceError(trace.error.exception, origin(trace))
    return trace.root


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
