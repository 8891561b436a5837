"""Finding nodes by their values, names and places: `trace.find`. Records are scanned in C.

Values are found where they are made, at ops: not again at the jumps, parameters and returns that pass them on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.emit.trace_ops import record_bytes
from ulam.runtime.errors import ArgumentError
from ulam.tracing.copying import flat
from ulam.tracing.instrument.graph import Graph, Item
from ulam.tracing.nodes import ItemNode, Node
from ulam.tracing.program_text import Location, Span
from ulam.tracing.queries import Axis, query
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Layout
from ulam.tracing.tape.recorder import ANY_VALUE, CONTAINER, INT, PROBE, REAL, Level
from ulam.tracing.tape.values import MISSING, Digest

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

ALL, NONFINITE, BETWEEN = 0, 1, 2
Order = tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """What is looked for. `limits`: of values; `begin`, `end`: nodes, both included."""

    test: int
    names: tuple[str, ...] | None
    place: Callable[[Span], bool] | None
    limits: tuple[float, float] = (0.0, 0.0)
    begin: Order | None = None
    end: Order | None = None

    def takes(self, order: Order) -> bool:
        """Whether a place of the tape is within what was asked for."""
        return (self.begin is None or self.begin <= order) and (self.end is None or order <= self.end)


def find(
    trace: Trace, nonfinite: bool, function: str | Collection[str] | None, span: Span | int | Sequence[int] | None,
    between: Sequence[Any] | None,
) -> Iterator[Node]:  # fmt: skip
    """See `Trace.find`."""
    if (whole := flat(trace)) is not trace:  # a version: its records are searched in one piece
        ends = [same_node(whole, n) if isinstance(n, Node) and n.trace is trace else n for n in between or ()]
        found = find(whole, nonfinite, function, span, None if between is None else ends)
        return (same_node(trace, node) for node in found)
    test, limits, begin, end = (NONFINITE if nonfinite else ALL), (0.0, 0.0), None, None
    if between is not None:
        if len(between) != 2:
            raise ArgumentError(f"between takes two values, or two nodes, not {len(between)}")
        low, high = between
        if isinstance(low, Node) and isinstance(high, Node):
            if low.trace is not trace or high.trace is not trace:
                raise ArgumentError("between takes nodes of the same trace")
            begin, end = order_of(low), order_of(high)
        elif isinstance(low, int | float) and isinstance(high, int | float):
            if nonfinite:
                raise ArgumentError("values between two numbers are finite: ask for one or the other")
            test, limits = BETWEEN, (float(low), float(high))
        else:
            raise ArgumentError("between takes two numbers, or two nodes")
    names = None if function is None else (function,) if isinstance(function, str) else tuple(function)
    wanted = Wanted(test, names, None if span is None else _place_test(span), limits, begin, end)
    is_changed = trace.tape.changes or trace.tape.terms is not None
    return _walk(trace, wanted) if is_changed else _scan(trace, wanted)


def _place_test(span: Span | int | Sequence[int]) -> Callable[[Span], bool]:
    if isinstance(span, Span):
        return lambda s: (
            (s.file, s.line) == (span.file, span.line) and (s.column < span.end_column and span.column < s.end_column)
        )
    first, last = (span, span) if isinstance(span, int) else span
    return lambda s: first <= s.line <= last


def order_of(node: Node) -> Order:
    """Where a node is on the tape: positions from the outermost call to its own."""
    path, frame = [node.at], node.frame
    while frame.parent is not None:
        path.append(frame.call)
        frame = frame.parent
    return tuple(reversed(path))


def same_node(trace: Trace, node: Node) -> Node:
    """The node at the same place of the tape in another trace of the same contents."""
    *calls, at = order_of(node)
    frame = trace.root.frame
    for call in calls:
        inner = frame.child(frame.spot(call))
        assert inner is not None
        frame = inner
    return trace.node(frame, at)


# ---------------------------------------------------------------- probes


def _kind(item: Item, test: int) -> int | None:
    """How the value of an op is looked at; None: not at all."""
    if test == ALL:
        return ANY_VALUE
    if item.slot is None:
        return None
    if item.type.rank:
        return CONTAINER if test == NONFINITE and not item.type.is_int else None
    return (INT if test == BETWEEN else None) if item.type.is_int else REAL


def _is_named(name: str, pattern: str) -> bool:
    """Operators (`*`, `.*`) are no patterns."""
    return name == pattern or (any(c.isalnum() for c in pattern) and fnmatchcase(name, pattern))


def _selected(trace: Trace, graph: Graph, block: int, item: Item, wanted: Wanted) -> bool:
    if wanted.names is not None and not any(_is_named(item.name, name) for name in wanted.names):
        return False
    if wanted.place is None:
        return True
    span = trace.text_of(graph).span(Location(block, item.index))
    return span is not None and wanted.place(span)


def _probes(trace: Trace, wanted: Wanted) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Slot, kind and place among the nodes of a record, of all that is looked at; and where each block's begin."""
    by_record: dict[int, list[tuple[int, int, int]]] = {}

    def add(layout: Layout, number: int, block: Any, before: int) -> None:
        for ordinal, item in enumerate(block.items):
            kind = _kind(item, wanted.test)
            if kind is not None and _selected(trace, layout.graph, block.number, item, wanted):
                slot = record_bytes(item.slot or 0)
                by_record.setdefault(number, []).append((slot, kind, before + len(block.arguments) + ordinal + 1))

    root = trace.root.frame.layout
    for layout in trace.tape.tables.layouts.values():
        for number, block in layout.by_record.items():
            if layout is not root or trace.root.item.child == "":
                add(layout, number, block, 0)
            header = layout.header.get(number)
            if header is not None and wanted.test == ALL:  # it has no slots
                add(layout, number, header, block.nodes)
    probes: list[tuple[int, int, int]] = []
    starts = [0]
    for number in range(trace.tape.record_count):
        probes += by_record.get(number, [])
        starts.append(len(probes))
    return probes, starts


# ---------------------------------------------------------------- the scan


def _walk(trace: Trace, wanted: Wanted) -> Iterator[Node]:
    """The same, node by node: of a version whose values are not those of the records."""
    for node in query(trace.root, Axis.DESCENDANT):
        if not isinstance(node, ItemNode) or node.location is None or not wanted.takes(order_of(node)):
            continue
        is_looked_at = _kind(node.item, wanted.test) is not None
        if is_looked_at and _selected(trace, node.frame.graph, node.location.block, node.item, wanted):
            if _passes(node, wanted):
                yield node


def _passes(node: ItemNode, wanted: Wanted) -> bool:
    if wanted.test == ALL:
        return node.finished or node.threw
    value = node.value
    if value is MISSING:
        return False
    if isinstance(value, Digest):
        return bool(value.nans or value.infinities)
    if wanted.test == BETWEEN:
        return wanted.limits[0] <= value <= wanted.limits[1]
    return not bool(np.all(np.isfinite(value)))


def _scan(trace: Trace, wanted: Wanted) -> Iterator[Node]:
    probes, starts = _probes(trace, wanted)
    if not probes:
        return
    table = np.array([(slot, kind) for slot, kind, _ in probes], PROBE)
    search = trace.tape.recorder.search(table, np.array(starts, np.int64), wanted.test, wanted.limits)
    # A record has what its block did before and after the calls that are in it: nodes wait for those of the calls.
    waiting: list[tuple[Order, Frame]] = []
    for probe, levels in search:
        frame, path = _frame(trace, levels)
        start = frame.head + levels[-1].position
        frontier = (*path, start)
        while waiting and waiting[0][0] < frontier:
            yield from _node(trace, wanted, *heapq.heappop(waiting))
        if wanted.end is not None and wanted.end < frontier:
            break
        order = (*path, start + probes[probe][2])
        if wanted.takes(order):
            heapq.heappush(waiting, (order, frame))
    while waiting:
        yield from _node(trace, wanted, *heapq.heappop(waiting))


def _node(trace: Trace, wanted: Wanted, order: Order, frame: Frame) -> Iterator[Node]:
    """The node, unless the run ended before it."""
    try:
        node = trace.node(frame, order[-1])
    except IndexError:  # behind the last that a run that failed got to
        return
    assert isinstance(node, ItemNode)
    if not trace.failed or node.finished or (wanted.test == ALL and node.threw):
        yield node


def _frame(trace: Trace, levels: Sequence[Level]) -> tuple[Frame, list[int]]:
    """The innermost call, and the positions of the calls that lead to it."""
    frame, path = trace.root.frame, list[int]()
    for level, inner in zip(levels, levels[1:], strict=False):
        block = frame.layout.by_record[trace.tape.block_at(level.latest)]
        item = frame.layout.children[block.record][level.call]
        position = frame.head + level.position + len(block.arguments) + block.items.index(item) + 1
        frame = trace.tape.frame(item.child, inner.first, frame, position)
        path.append(position)
    return frame, path
