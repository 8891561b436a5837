"""Compares the frames of two runs, and of the calls in them, in the order in which they became known.

Which ops correspond: those of the same table. Two versions of a program are aligned by their lines, as `diff` does, and
the ops of lines that correspond by their names, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Block, Edge, Graph, Item, Operand
from ulam.tracing.tape.columns import (
    CONTAINER,
    REAL,
    VALUE,
    CallPlace,
    Rows,
    Slot,
    batches,
    call_places,
    rows_of,
    scalar_column,
    slots_of,
)
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Batch, Layout, Spot
from ulam.tracing.tape.overlay import SEGMENT
from ulam.tracing.tape.tape import Tape
from ulam.tracing.tape.values import MISSING, same
from ulam.tracing.trace import Trace


def shape(graph: Graph) -> Any:
    """What readers see of a table, without places and numbers of records: of equal shapes, all corresponds."""
    return graph.name, [(p.index, p.type) for p in graph.parameters], [_block(block) for block in graph.blocks]


def _block(block: Block) -> Any:
    items = [
        (i.kind, i.name, _operands(i.operands), i.type, i.slot, i.derived, i.symbol, bool(i.child)) for i in block.items
    ]
    edges = [
        (e.number, e.target, _operands(e.arguments), _operands([e.condition] if e.condition else []), e.holds)
        for e in block.edges
    ]
    return block.number, [(a.index, a.type) for a in block.arguments], items, edges


def _operands(operands: list[Operand]) -> Any:
    return [(operand.index, repr(operand.constant), operand.type) for operand in operands]


class Alignment:
    """Of the functions of two traces."""

    def __init__(self, a: Trace, b: Trace) -> None:
        self.a, self.b = a, b
        self._same: dict[tuple[str, str], bool] = {}
        self._sites: dict[tuple[str, str], tuple[dict[int, int], dict[int, int]]] = {}

    def is_same(self, a: Graph, b: Graph) -> bool:
        """Whether two tables have the same blocks and ops."""
        key = (a.symbol, b.symbol)
        if key not in self._same:
            self._same[key] = a is b or shape(a) == shape(b)
        return self._same[key]

    def sites(self, a: Graph, b: Graph) -> tuple[dict[int, int], dict[int, int]]:
        """Number of a value of the first and of the second function → a number that corresponding ops share."""
        key = (a.symbol, b.symbol)
        if key not in self._sites:
            ours: dict[int, int] = {}
            theirs: dict[int, int] = {}
            first, second = _by_line(a), _by_line(b)
            for line, items in first.items():
                others = second.get(self._lines.get(line, -1) or -1, [])
                for item, other in _paired(items, others):
                    ours[item.index] = theirs[other.index] = len(ours)
            self._sites[key] = ours, theirs
        return self._sites[key]

    @cached_property
    def _lines(self) -> dict[int, int | None]:
        """Line of the first program → the corresponding one of the second; None where there is none."""
        first, second = self.a.source.text.split("\n"), self.b.source.text.split("\n")
        found: dict[int, int | None] = dict.fromkeys(range(1, len(first) + 1))
        stripped = [[line.strip() for line in lines] for lines in (first, second)]
        for kind, i, i_end, j, j_end in SequenceMatcher(None, *stripped, autojunk=False).get_opcodes():
            if kind == "equal" or i_end - i == j_end - j:
                found.update((i + n + 1, j + n + 1) for n in range(i_end - i))
                continue
            for n in range(i, i_end):  # lines that were changed, among others that are new or gone
                like = [m for m in range(j, j_end) if _alike(stripped[0][n], stripped[1][m])]
                if like:
                    found[n + 1] = like[0] + 1
                    j = like[0] + 1
        return found


def _paired(items: list[Item], others: list[Item]) -> Iterator[tuple[Item, Item]]:
    """The ops of a line that correspond: those with the same literals first, between them those of the same name."""
    exact = [[(i.kind, i.name, repr([o.constant for o in i.operands])) for i in some] for some in (items, others)]
    for kind, i, i_end, j, j_end in SequenceMatcher(None, *exact, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from zip(items[i:i_end], others[j:j_end], strict=True)
            continue
        names = [[(item.kind, item.name) for item in some] for some in (items[i:i_end], others[j:j_end])]
        for m, n, count in SequenceMatcher(None, *names, autojunk=False).get_matching_blocks():
            yield from zip(items[i + m : i + m + count], others[j + n : j + n + count], strict=True)


def _alike(a: str, b: str) -> bool:
    return bool(a and b) and SequenceMatcher(None, a, b, autojunk=False).ratio() > 0.6


def _by_line(graph: Graph) -> dict[int, list[Item]]:
    """The ops of each line."""
    found: dict[int, list[Item]] = {}
    for item in (item for block in graph.blocks for item in block.items):
        if item.place is not None:
            found.setdefault(item.place.line, []).append(item)
    return found


@dataclass(frozen=True)
class Found:
    """A value that differs: where it is in each frame."""

    a: tuple[Frame, int]
    b: tuple[Frame, int]


@dataclass(frozen=True)
class Parted:
    """Two frames go different ways: the positions of the jumps; None in a frame that ended there.

    Of two versions of a function, of what comes next where only one has a branch.
    """

    a: tuple[Frame, int | None]
    b: tuple[Frame, int | None]


@dataclass(frozen=True)
class _Calls:
    a: Frame
    b: Frame


_Event = Found | Parted | _Calls


@dataclass
class Comparison:
    """What is compared, and how much was."""

    alignment: Alignment
    rtol: float
    limit: int = 0
    """Values that differ, after which those of short calls are only counted."""
    values: int = 0
    differing: int = 0
    frames: int = 0

    def events(self, a: Frame, b: Frame) -> Iterator[Found | Parted]:
        """All differences of two frames and of the calls that both make, in order."""
        stack = [self._frames(a, b)]
        while stack:
            event = next(stack[-1], None)
            if event is None:
                stack.pop()
            elif isinstance(event, _Calls):
                stack.append(self._frames(event.a, event.b))
            else:
                self.differing += isinstance(event, Found)
                yield event

    def _frames(self, a: Frame, b: Frame) -> Iterator[_Event]:
        self.frames += 1
        if self.alignment.is_same(a.graph, b.graph):
            return self._alike(a, b)
        return self._by_lines(a, b)

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two values are the same up to `rtol`; of NaNs, all are."""
        if a is MISSING or b is MISSING:
            return True
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            return a.shape == b.shape and bool(np.all(~self._unequal(a, b)))
        if isinstance(a, float) and isinstance(b, float):
            return same(a, b) or not self._unequal(np.array([a]), np.array([b]))[0]
        return same(a, b) or a == b

    def _unequal(self, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        if a.dtype.kind != "f" or b.dtype.kind != "f":
            return a != b
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(a - b) <= self.rtol * np.maximum(np.abs(a), np.abs(b))) if self.rtol else a != b
        return far & (a != b) & ~(np.isnan(a) & np.isnan(b))

    # ------------------------------------------------------------ the same function

    def _alike(self, a: Frame, b: Frame) -> Iterator[_Event]:
        """Block by block, until the blocks differ."""
        numbers = [_block_numbers(frame) for frame in (a, b)]
        for first, second in zip_longest(batches(a), batches(b)):
            if first is None or second is None:
                longer = first or second
                assert longer is not None
                yield self._parted(a, b, longer.first)
                return
            count = min(len(first.blocks), len(second.blocks))
            unequal = np.flatnonzero(numbers[0][first.blocks[:count]] != numbers[1][second.blocks[:count]])
            common = int(unequal[0]) if len(unequal) else count
            yield from self._steps(a, b, _cut(first, common), _cut(second, common))
            if common < max(len(first.blocks), len(second.blocks)):
                yield self._parted(a, b, first.first + common)
                return

    @staticmethod
    def _parted(a: Frame, b: Frame, step: int) -> Parted:
        ends: list[tuple[Frame, int | None]] = []
        for frame in (a, b):
            source = frame.entered_from(Spot(step, False, 0)) if frame.has_step(step) else None
            at = None if source is None else frame.position(source.step, source.in_header, source.offset)
            ends.append((frame, at))
        return Parted(*ends)

    def _steps(self, a: Frame, b: Frame, first: Batch, second: Batch) -> Iterator[_Event]:
        """Steps that ran the same blocks: values that differ and calls, by position."""
        positions: list[npt.NDArray[np.int64]] = []
        for rows, others in zip(rows_of(a, first), rows_of(b, second), strict=True):
            before = first.positions[rows.steps - first.first] + 1 + len(rows.block.arguments)
            for n, slot in enumerate(rows.slots):
                if slot.role == VALUE:
                    differ = self._differing(rows, others, slot, n)
                    positions.append(before[differ] + slot.ordinal)
        positions.append(self._fixed(a, b, first))
        found = np.unique(np.concatenate(positions))
        at = 0
        calls, others = list(call_places(a, first)), list(call_places(b, second))
        leaves = compare_leaves(a, b, calls, others, self._same_calls, self._unequal)
        theirs = {other.position: other for other in others}
        for call in calls:
            until = int(np.searchsorted(found, call.position, side="left")) if at < len(found) else at
            yield from (Found((a, int(p)), (b, int(p))) for p in found[at:until])
            at = until
            differing = leaves.differing.get(call.position)
            if differing is not None and (not differing or self.differing >= self.limit):
                self.frames += 1
                self.values += leaves.values[call.position]
                self.differing += differing
            elif call.position in theirs:
                yield _Calls(call.frame_in(a), theirs[call.position].frame_in(b))
        yield from (Found((a, int(p)), (b, int(p))) for p in found[at:])

    def _same_calls(self, item: Item, other: Item) -> bool:
        graphs = self.alignment.a.tape.tables.graphs, self.alignment.b.tape.tables.graphs
        return self.alignment.is_same(graphs[0][item.child], graphs[1][other.child])

    def _fixed(self, a: Frame, b: Frame, batch: Batch) -> npt.NDArray[np.int64]:
        """Positions of what an update has set in one of them, where the records do not have it."""
        found: list[int] = []
        for frame in (a, b):
            changes = frame.tape.changes.get(frame.place)
            for key in () if changes is None else sorted(changes.fixed):
                step = max(key[0] // 2, 0)
                here = batch.first <= step < batch.first + len(batch.blocks)
                if here and not self.equal(a.value_at(key), b.value_at(key)):
                    found.append(frame.position_at(key))
        return np.array(found, np.int64)

    def _differing(self, rows: Rows, others: Rows, slot: Slot, n: int) -> npt.NDArray[np.bool_]:
        ends = [end for end in (rows.incomplete, others.incomplete) if end is not None]
        reached = [end for end in ends if slot.ordinal >= end]
        count = len(rows.steps) - bool(reached)
        self.values += count
        if slot.kind == CONTAINER:
            pairs = ((rows.container(slot, row), others.container(slot, row)) for row in range(count))
            found = np.array([not self.equal(x, y) for x, y in pairs], bool)
        else:
            x, y = rows.columns[n][:count], others.columns[n][:count]
            found = self._unequal(x, y) if slot.kind == REAL else x != y
        return np.append(found, np.zeros(len(rows.steps) - count, bool)).astype(bool)

    # ------------------------------------------------------------ two versions of a function

    def _by_lines(self, a: Frame, b: Frame) -> Iterator[_Event]:
        """Op by op, those left out that the other version does not have, until a branch goes another way."""
        ours, theirs = self.alignment.sites(a.graph, b.graph)
        for first, second in zip_longest(_visited(a, ours), _visited(b, theirs)):
            if first is None or second is None or first.site != second.site or first.holds != second.holds:
                yield Parted((a, first and first.position), (b, second and second.position))
                return
            if first.holds is not None:
                continue
            assert first.item is not None and second.item is not None
            if first.item.type.slots:
                self.values += 1
                if not self.equal(a.item_value(first.item, first.spot), b.item_value(second.item, second.spot)):
                    yield Found((a, first.position), (b, second.position))
            if first.item.child and second.item.child:
                places = a.child_place(first.spot, first.item), b.child_place(second.spot, second.item)
                if min(places) >= 0:
                    yield _Calls(
                        a.tape.frame(first.item.child, places[0], a, first.position),
                        b.tape.frame(second.item.child, places[1], b, second.position),
                    )


@dataclass(frozen=True)
class _Visit:
    """An op that ran (`item`), or a branch that was decided (`holds`), that both versions have."""

    site: int
    position: int
    spot: Spot
    item: Item | None = None
    holds: bool | None = None


def _visited(frame: Frame, sites: dict[int, int]) -> Iterator[_Visit]:
    for batch in batches(frame):
        for n, number in enumerate(batch.blocks):
            step, at = batch.first + n, int(batch.positions[n])
            own = frame.layout.by_record[int(number)]
            for block in (own, frame.layout.header.get(own.record)):
                if block is None:
                    continue
                in_header = block is not own
                for offset, item in enumerate(block.items, len(block.arguments)):
                    if item.index in sites:
                        spot = Spot(step, in_header, offset)
                        yield _Visit(sites[item.index], at + offset + 1, spot, item)
                at += block.nodes
                spot = Spot(step, in_header, block.nodes - 1)
                edge = frame.edge_taken(spot) if len(block.edges) > 1 else None
                if isinstance(edge, Edge) and edge.condition is not None and edge.condition.index in sites:
                    yield _Visit(sites[edge.condition.index], at, spot, None, edge.holds)


def _block_numbers(frame: Frame) -> npt.NDArray[np.int64]:
    """Number of a record → number of its block."""
    found = np.zeros(frame.tape.record_count, np.int64)
    for record, block in frame.layout.by_record.items():
        found[record] = block.number
    return found


def _cut(batch: Batch, count: int) -> Batch:
    if count == len(batch.blocks):
        return batch
    return Batch(batch.first, batch.blocks[:count], batch.places[:count], batch.positions[:count], batch.end)


# ---------------------------------------------------------------- many calls without branches at once


Unequal = Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Leaves:
    """By position of the call: how many values differ; and how many were compared in each."""

    differing: dict[int, int]
    values: dict[int, int]


def compare_leaves(
    a: Frame, b: Frame, calls: Sequence[CallPlace], others: Sequence[CallPlace], same: Callable[[Item, Item], bool],
    unequal: Unequal,
) -> Leaves:  # fmt: skip
    """The calls of two frames that can be compared so. `same`: whether two calls enter functions that are alike."""
    found = Leaves({}, {})
    if not (_is_plain(a.tape) and _is_plain(b.tape)):
        return found
    groups: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    theirs = {other.position: other for other in others}
    for call in calls:
        other = theirs.get(call.position)
        if other is not None and max(call.place, other.place) < SEGMENT:
            key = (call.item.child, other.item.child)
            if key in groups or same(call.item, other.item):
                groups.setdefault(key, []).append((call.position, call.place, other.place))
    for (first, _), members in groups.items():
        slots = _scalars(a.tape.layout(first))
        if slots is None:
            continue
        positions, *places = np.array(members, np.int64).T
        width = len(slots) and 1 + max(slot.slot for slot in slots)
        words = [tape.recorder.words(p, width) for tape, p in zip((a.tape, b.tape), places, strict=True)]
        count = np.zeros(len(members), np.int64)
        for slot in slots:
            count += unequal(*(scalar_column(w, slot) for w in words))
        found.differing.update(zip(positions.tolist(), count.tolist(), strict=True))
        found.values.update(dict.fromkeys(positions.tolist(), len(slots)))
    return found


def _is_plain(tape: Tape) -> bool:
    """Whether its records are all there is to know."""
    return not tape.failed and not tape.changes and tape.terms is None


def _scalars(layout: Layout) -> list[Slot] | None:
    """What a call keeps that has one block and no calls; None for other functions."""
    (block, *more) = layout.graph.blocks
    if more or any(layout.children.values()):
        return None
    slots = [slot for slot in slots_of(layout, block) if slot.role == VALUE]
    return None if any(slot.kind == CONTAINER for slot in slots) else slots
