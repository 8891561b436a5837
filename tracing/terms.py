"""The terms of the target of a run, in the order in which they were added."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from ulam.tracing.instrument.graph import ADDING
from ulam.tracing.node_kinds import TargetTerm
from ulam.tracing.tape.columns import InnerCall, batches, calls_in
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Batch
from ulam.tracing.trace import Trace

Path = tuple[tuple[str, int], ...]
"""The calls that lead to a frame: symbol of the calling function and number of the op."""


@dataclass(frozen=True)
class TracedTerm:
    """A node that adds to the target, and the calls that lead to it."""

    node: TargetTerm
    path: Path


def terms_of(trace: Trace) -> Iterator[TracedTerm]:
    """Each `~`, `target +=` and Jacobian term."""
    reached = _symbols_with_terms(trace)
    root = trace.root.frame
    stack: list[tuple[Path, Iterator[int | InnerCall], Frame]] = [((), _events(root, reached), root)]
    while stack:
        path, events, frame = stack[-1]
        event = next(events, None)
        if event is None:
            stack.pop()
        elif isinstance(event, InnerCall):
            inside = (*path, (frame.graph.symbol, event.item.index))
            stack.append((inside, _events(event.frame, reached), event.frame))
        else:
            node = trace.node(frame, event)
            assert isinstance(node, TargetTerm)
            yield TracedTerm(node, path)


def _symbols_with_terms(trace: Trace) -> set[str]:
    """The functions that add to the target, or call one that does."""
    graphs = trace.tape.tables.graphs
    items = {symbol: [item for block in graph.blocks for item in block.items] for symbol, graph in graphs.items()}
    found = {symbol for symbol in graphs if any(item.kind in ADDING for item in items[symbol])}
    while True:
        callers = {symbol for symbol in graphs if any(item.child in found for item in items[symbol])}
        if callers <= found:
            return found
        found |= callers


def _events(frame: Frame, reached: set[str]) -> Iterator[int | InnerCall]:
    """Positions of terms, and calls that may have some, in order."""
    return frame_events(frame, reached) if frame.graph.symbol in reached else iter(())


def frame_events(frame: Frame, symbols: Collection[str]) -> Iterator[int | InnerCall]:
    """Positions of the terms of a frame, and its calls of the functions with these symbols, in order."""
    offsets = {
        record: [n for n, item in enumerate(block.items, len(block.arguments)) if item.kind in ADDING]
        for record, block in frame.layout.by_record.items()
    }
    adding = [record for record, found in offsets.items() if found]
    if not adding and not any(frame.layout.children.values()):
        return
    for batch in batches(frame):
        calls = [call for call in calls_in(frame, batch) if call.item.child in symbols]
        positions = _positions(batch, adding, offsets)
        if frame.failed:
            positions = [position for position in positions if position <= frame.length]
        at = 0
        for call in calls:
            while at < len(positions) and positions[at] < call.position:
                yield positions[at]
                at += 1
            yield call
        yield from positions[at:]


def _positions(batch: Batch, adding: list[int], offsets: dict[int, list[int]]) -> list[int]:
    if not adding:
        return []
    steps = np.flatnonzero(np.isin(batch.blocks, adding))
    return [int(batch.positions[n]) + 1 + offset for n in steps for offset in offsets[int(batch.blocks[n])]]
