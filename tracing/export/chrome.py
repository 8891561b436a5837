"""A trace for chrome://tracing, Perfetto and speedscope: an event where a call begins and one where it ends.

Format: "Trace Event Format" (Google): duration events `B` and `E`, counter events `C` for the target.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from ulam.runtime.errors import ArgumentError
from ulam.runtime.output_files import writing
from ulam.runtime.profiling.views import metadata_event
from ulam.runtime.versions import ulam_version
from ulam.tracing.export.graph import Spans, top_of
from ulam.tracing.node_kinds import TargetTerm
from ulam.tracing.nodes import ItemNode, NestedCallNode, Node
from ulam.tracing.tape.columns import InnerCall
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.values import MISSING, value_text
from ulam.tracing.terms import frame_events

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

MAX_CALLS = 500_000
"""Calls that are written to memory, unless one asks for more; files have no limit."""

Event = dict[str, Any]


def to_chrome_trace(
    what: Node | Trace, path: str | os.PathLike[str] | None = None, *, max_calls: int | None = MAX_CALLS
) -> str:
    """The calls of a trace, or of a node of one, as JSON; to a file, if `path` is given, piece by piece.

    Without a path, raises ArgumentError for more than `max_calls` calls (None: any number). Times are those of the run
    if the context has recorded some; else each node of the tape counts as a microsecond, which `otherData.clock` says.
    """
    node = top_of(what)
    if path is None:
        out = StringIO()
        _write(node, out, max_calls)
        return out.getvalue()
    with writing(path) as file:
        _write(node, file, None)
    return ""


def _write(node: Node, out: IO[str], max_calls: int | None) -> None:
    clock = "positions of the tape, not time" if _begin(node) is None else "time of the run"
    other = {"clock": clock, "exporter": f"ulam {ulam_version()}"}
    out.write(f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(other)}, "traceEvents": [')
    calls = 0
    for number, event in enumerate(_events(node)):
        calls += event["ph"] == "B"
        if max_calls is not None and calls > max_calls:
            raise ArgumentError(
                f"the trace has more than {max_calls:,} calls: give a file, which is written piece by piece, "
                "or max_calls=None"
            )
        out.write((",\n" if number else "\n") + json.dumps(event, ensure_ascii=False, allow_nan=False))
    out.write("\n]}\n")


def _events(node: Node) -> Iterator[Event]:
    process = os.getpid()
    yield metadata_event("process_name", process, 0, f"ulam: {node.trace.source.filename}")
    yield metadata_event("thread_name", process, 1, "tape")
    place, spans = {"pid": process, "tid": 1}, Spans()
    if not isinstance(node, ItemNode):
        raise ArgumentError(f"calls are exported as a Chrome trace, but {node} is none")
    for kind, at, inner in _timed(node):
        event: Event = {"ph": kind, "ts": at, **place}
        if kind == "B":
            event |= {"name": inner.function, "cat": "call", "args": _arguments(inner, spans)}
        elif kind == "C":
            event |= {"name": "target", "args": {"target": _target(inner)}}
        yield event


def _begin(node: Node) -> float | None:
    """When the call began; None if times are not kept, or not of the whole call."""
    interval = node.interval if isinstance(node, NestedCallNode) else None
    return None if interval is None else interval[0]


def _timed(node: ItemNode) -> Iterator[tuple[str, float, ItemNode]]:
    """The same as `_ends`, with times in microseconds where they are kept. Terms are where the clock was read last."""
    begin, last = _begin(node), 0.0
    for kind, at, inner in _ends(node):
        interval = inner.interval if begin is not None and kind != "C" and isinstance(inner, NestedCallNode) else None
        if begin is not None and interval is not None:
            # whole nanoseconds: rounding keeps the order of edges, so that what was nested stays nested
            last = max(last, round(1e9 * (interval[kind == "E"] - begin)) / 1e3)
        yield kind, at if begin is None else last, inner


def _ends(node: ItemNode) -> Iterator[tuple[str, int, ItemNode]]:
    """Beginning and end of each call, and terms of the target between: the kind of event, its time, its node."""
    yield "B", 0, node
    symbols = node.trace.tape.tables.graphs
    stack: list[tuple[ItemNode, Frame, Iterator[int | InnerCall]]] = []
    body = node.body if isinstance(node, NestedCallNode) else None
    if body is None:
        yield "E", 1, node
        return
    clock, last = 0, [0]
    stack.append((node, body, frame_events(body, symbols)))
    while stack:
        call, frame, events = stack[-1]
        event = next(events, None)
        at = frame.length if event is None else event.position if isinstance(event, InnerCall) else event
        clock += at - last[-1]
        last[-1] = at
        if event is None:
            yield "E", clock, call
            stack.pop()
            last.pop()
            continue
        inner = node.trace.node(frame, at)
        assert isinstance(inner, ItemNode)
        if isinstance(event, InnerCall):
            yield "B", clock, inner
            stack.append((inner, event.frame, frame_events(event.frame, symbols)))
            last.append(0)
        elif math.isfinite(_target(inner)):
            yield "C", clock, inner


def _target(node: ItemNode) -> float:
    """The target after a term; NaN where that is not known. Viewers draw finite counters only."""
    after = node.target_after if isinstance(node, TargetTerm) else MISSING
    return float(after) if isinstance(after, (float, int)) else math.nan


def _arguments(call: ItemNode, spans: Spans) -> dict[str, str]:
    span = spans.of(call)
    place = {} if span is None else {"place": f"{span.file}:{span.line}:{span.column}"}
    position = {} if call.is_root else {"position": f"@{call.at}"}
    return {**position, "value": value_text(call.value, call.type), **place}
