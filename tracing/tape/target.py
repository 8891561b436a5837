"""The target of a trace: all additions to it, in the order of the program, and what it is after each.

A sum in floating point depends on its order. Where an addition changes, those that follow are added anew, one after the
other, as the program does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.library.functions import kind_of
from ulam.tracing.instrument.graph import ADDING, Block, Item
from ulam.tracing.tape.overlay import Key, key_of

if TYPE_CHECKING:
    from ulam.tracing.tape.frames import Frame
    from ulam.tracing.tape.tape import Tables

Floats = npt.NDArray[np.float64]
_OFFSETS = 20
"""Bits of a code for the offset within a block; above them the run."""
Path = tuple[Key, ...]


def path_of(frame: Frame, *keys: Key) -> Path:
    """Where something is in the trace: the keys of the calls that it is in, outermost first, then its own."""
    found: list[Key] = []
    while frame.parent is not None:
        found.append(key_of(frame.parent.spot(frame.call)))
        frame = frame.parent
    return (*reversed(found), *keys)


def is_read(item: Item) -> bool:
    """Whether an op is `target()`."""
    return item.kind == "call" and item.name == "target" and not item.symbol


def is_hidden(item: Item) -> bool:
    """Whether an op may add to the target without being a term: a call of a function that was not entered."""
    return item.kind == "call" and not item.child and kind_of(item.name).may_add_target


@dataclass
class _Group:
    """Additions that follow each other in one frame: codes of their keys, number of the first."""

    frame: Frame
    codes: npt.NDArray[np.int64]
    start: int


def touching(tables: Tables) -> set[str]:
    """The traced functions that add to the target or read it, themselves or by what they call."""
    found: set[str] = set()
    grown = True
    while grown:
        grown = False
        for symbol, graph in tables.graphs.items():
            if symbol not in found and any(
                item.kind in ADDING or is_read(item) or item.child in found for b in graph.blocks for item in b.items
            ):
                found.add(symbol)
                grown = True
    return found


class Terms:
    """The additions to the target below a frame. `increments`: what is added; `reads`: each `target()`, with how many
    additions come before it.
    """

    def __init__(self, frame: Frame, touched: set[str]) -> None:
        self.touched = touched
        self._groups: list[_Group] = []
        self._parts: list[Floats] = []
        self._count = 0
        self.reads: list[tuple[Frame, Key, int]] = []
        stack = [self._walk(frame)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._walk(inner))
        self.increments: Floats = np.concatenate(self._parts) if self._parts else np.zeros(0)
        self._parts = []
        self._after: Floats | None = None
        self._known = 0  # of `_after`, how many are up to date
        self._index()

    # ------------------------------------------------------------ finding them

    def _walk(self, frame: Frame) -> Iterator[Frame]:
        """Notes those of a frame; gives the calls to be walked on the way."""
        plain: list[tuple[Block, list[tuple[int, Item]]]] = []
        for block in frame.graph.blocks:
            items = [
                (offset, item)
                for offset, item in enumerate(block.items, len(block.arguments))
                if item.kind in ADDING or is_read(item) or item.child in self.touched
            ]
            if items:
                plain.append((block, items))
        if all(item.kind in ADDING and item.child not in self.touched for _, items in plain for _, item in items):
            self._add_all(frame, plain)
            return
        runs = sorted((run, items) for block, items in plain for run in frame.runs.of(block).tolist())
        pending: list[int] = []
        for run, items in runs:
            for offset, item in items:
                code = run << _OFFSETS | offset
                if is_read(item):
                    self.reads.append((frame, (run, offset), self._count + len(pending)))
                    continue
                if item.child in self.touched:
                    self._flush(frame, pending)
                    child = frame.child(_spot((run, offset)))
                    if child is not None:
                        yield child
                if item.kind in ADDING:
                    pending.append(code)
        self._flush(frame, pending)

    def _flush(self, frame: Frame, pending: list[int]) -> None:
        if pending:
            values = [self._value(frame, code) for code in pending]
            self._add(frame, np.array(pending, np.int64), np.array(values, float))
            pending.clear()

    def _add(self, frame: Frame, codes: npt.NDArray[np.int64], values: Floats) -> None:
        self._groups.append(_Group(frame, codes, self._count))
        self._parts.append(values)
        self._count += len(codes)

    def _add_all(self, frame: Frame, plain: list[tuple[Block, list[tuple[int, Item]]]]) -> None:
        """Those of a frame without other calls that matter: from the records at once."""
        codes: list[npt.NDArray[np.int64]] = []
        values: list[Floats] = []
        places: npt.NDArray[np.int64] | None = None
        for block, items in plain:
            runs = frame.runs.of(block)
            for offset, item in items:
                here = (runs << _OFFSETS) | offset
                codes.append(here)
                if item.slot is None:
                    values.append(np.array([self._value(frame, code) for code in here.tolist()], float))
                    continue
                places = _places(frame) if places is None else places
                words = frame.recorder.words(places[runs // 2], item.slot + 1)
                values.append(np.ascontiguousarray(words[:, item.slot]).view(np.float64))
        if not codes:
            return
        joined, numbers = np.concatenate(codes), np.concatenate(values)
        order = np.argsort(joined)
        joined, numbers = joined[order], numbers[order]
        changes = frame.tape.changes.get(frame.place)
        for key, value in () if changes is None else changes.values.items():
            code = key[0] << _OFFSETS | key[1]
            at = int(np.searchsorted(joined, code))
            if key[0] >= 0 and at < len(joined) and joined[at] == code:
                numbers[at] = value
        kept = len(joined)
        if frame.failed:  # what was not reached adds nothing
            kept = int(np.searchsorted(joined, _last_code(frame), side="left"))
        if kept:
            self._add(frame, joined[:kept], numbers[:kept])

    @staticmethod
    def _value(frame: Frame, code: int) -> float:
        spot = _spot((code >> _OFFSETS, code & ((1 << _OFFSETS) - 1)))
        value = frame.item_value(frame.item_at(spot), spot)
        return float(value) if isinstance(value, float | int) else 0.0  # what was not reached adds nothing

    # ------------------------------------------------------------ looking them up

    def _index(self) -> None:
        self._of_frame: dict[int, list[_Group]] = {}
        for group in self._groups:
            self._of_frame.setdefault(group.frame.place, []).append(group)

    def find(self, place: int, key: Key) -> int | None:
        """The number of an addition."""
        code = key[0] << _OFFSETS | key[1]
        groups = self._of_frame.get(place)
        if not groups:
            return None
        n = bisect_right(groups, code, key=lambda group: int(group.codes[0])) - 1
        if n < 0:
            return None
        at = int(np.searchsorted(groups[n].codes, code))
        if at == len(groups[n].codes) or groups[n].codes[at] != code:
            return None
        return groups[n].start + at

    def before(self, path: Path) -> int:
        """How many additions come before a place."""
        low, high = 0, len(self.increments)
        while low < high:
            middle = (low + high) // 2
            if self._path(middle) < path:
                low = middle + 1
            else:
                high = middle
        return low

    def _path(self, number: int) -> Path:
        group = self._groups[bisect_right(self._groups, number, key=lambda g: g.start) - 1]
        code = int(group.codes[number - group.start])
        return path_of(group.frame, (code >> _OFFSETS, code & ((1 << _OFFSETS) - 1)))

    def target(self, count: int) -> float:
        """The target after so many additions."""
        return float(self._sums(count)[count])

    def _sums(self, count: int) -> Floats:
        """What it is before any addition, after the first, ...: up to date for `count` of them."""
        if self._after is None:
            self._after = np.zeros(len(self.increments) + 1)
            self._known = 0
        if count > self._known:
            part = self._after[self._known : count + 1].copy()
            part[1:] = self.increments[self._known : count]
            self._after[self._known : count + 1] = np.add.accumulate(part)
            self._known = count
        return self._after

    # ------------------------------------------------------------ changing them

    def copy(self) -> Terms:
        """Another list with the same contents."""
        made = Terms.__new__(Terms)
        made.touched, made.reads, made._count = self.touched, self.reads, self._count
        made._groups, made._parts, made._of_frame = self._groups, [], self._of_frame
        made.increments = self.increments.copy()
        made._after = self._sums(len(self.increments)).copy()
        made._known = self._known
        return made

    def set(self, number: int, value: float) -> None:
        """Another increment."""
        self.increments[number] = value
        self._known = min(self._known, number)

    def replace(self, begin: int, end: int, path: Path, other: Terms) -> None:
        """Puts those of a call that ran again in place of those from `begin` up to `end`, which it had before."""
        grown = len(other.increments) - (end - begin)
        head = [g for g in self._groups if g.start < begin]
        tail = [_Group(g.frame, g.codes, g.start + grown) for g in self._groups if g.start >= end]
        inner = [_Group(g.frame, g.codes, g.start + begin) for g in other._groups]
        self._groups = [*head, *inner, *tail]
        self.increments = np.concatenate([self.increments[:begin], other.increments, self.increments[end:]])
        after = self._sums(begin)[: begin + 1]
        self._after = np.concatenate([after, np.zeros(len(self.increments) - begin)])
        self._known = begin
        earlier = [read for read in self.reads if path_of(read[0], read[1]) < path]
        within = [(frame, key, count + begin) for frame, key, count in other.reads]
        last = (*path, (1 << 62, 0))
        later = [(f, k, count + grown) for f, k, count in self.reads if path_of(f, k) > last]
        self.reads = [*earlier, *within, *later]
        self._count = len(self.increments)
        self._index()


def _spot(key: Key) -> Any:
    from ulam.tracing.tape.layout import spot_of

    return spot_of(key)


def _last_code(frame: Frame) -> int:
    """Of the first op of a frame that was cut off which was not over."""
    step = frame.steps - 1
    return 2 * step << _OFFSETS | (len(frame.block(step).arguments) + frame.reached(step))


def _places(frame: Frame) -> npt.NDArray[np.int64]:
    parts: list[npt.NDArray[np.int64]] = []
    number = 0
    while (batch := frame.batch(number)) is not None:
        parts.append(batch.places)
        number += 1
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
