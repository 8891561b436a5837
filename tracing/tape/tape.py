"""The records of one run with what is needed to read them; see `frames`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ulam.emit.trace_ops import record_bytes
from ulam.runtime.errors import ArgumentError
from ulam.runtime.native import array_of
from ulam.tracing.instrument.graph import ROOT, Graph, ValueType
from ulam.tracing.tape.frame_steps import FrameSteps
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Layout, Runs, Scan
from ulam.tracing.tape.overlay import SEGMENT, Changes
from ulam.tracing.tape.recorder import BlockRow, Recorder
from ulam.tracing.tape.target import Terms
from ulam.tracing.tape.values import digest


class Tables:
    """The tables of a traced program by symbol, and what the recorder must know of their blocks."""

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = dict(graphs)
        self.layouts = {symbol: Layout(graph) for symbol, graph in graphs.items()}
        root = self.graphs[ROOT]
        self.stub, self.tick = root.stub, root.tick
        self.record_count = 1 + max(self.stub, *(max(layout.by_record) for layout in self.layouts.values()))
        self.rows = array_of(BlockRow, self.record_count)
        self.nodes = np.zeros(self.record_count, np.int64)
        for layout in self.layouts.values():
            for number, block in layout.by_record.items():
                returns = any(not edge.target for edge in block.edges)
                nodes = self.nodes[number] = layout.nodes[number]
                self.rows[number] = BlockRow(
                    record_bytes(block.slots), nodes, len(layout.children[number]), int(returns)
                )
        if self.stub:
            self.rows[self.stub] = BlockRow(record_bytes(0), 0, 0, 1)
        self.longest = max(row.bytes for row in self.rows)
        """Bytes of the longest record."""


class Tape:
    """The records of one run. `arguments`: of the traced function; `failed`: whether an error ended the run."""

    def __init__(self, recorder: Recorder, tables: Tables, arguments: Sequence[Any], failed: bool) -> None:
        self.segments: dict[int, Recorder] = {0: recorder}
        """By number: the run, and, of a version, calls that ran again."""
        self.tables = tables
        self.arguments = list(arguments)
        self.failed = failed
        self.in_one_piece = True
        """Whether segment 0 has all that is recorded: not of a version."""
        self.changes = Changes()
        """Of a version: what its base does not have."""
        self.terms: Terms | None = None
        """Of a version: the additions to the target, where they are not as recorded."""
        self.copied: int | None = None
        """Of a version: containers of more elements are shown as digests; None: all are whole."""
        self.record_count = tables.record_count
        self.nodes_of_record = tables.nodes
        self._runs: dict[int, Runs] = {}
        self._frames: WeakValueDictionary[int, Frame] = WeakValueDictionary()

    @property
    def recorder(self) -> Recorder:
        """What has the records. Raises ArgumentError once the trace is closed."""
        return self.segment(0)

    def segment(self, number: int) -> Recorder:
        """What has the records of a segment. Raises ArgumentError once the trace is closed."""
        if not self.segments:
            raise ArgumentError("the trace is closed")
        return self.segments[number]

    def close(self) -> None:
        """Lets the records go."""
        self.segments = {}

    def as_recorded(self, value: Any, type_: ValueType) -> Any:
        """A value as records would have it: large containers as digests."""
        if self.copied is None or not isinstance(value, np.ndarray) or value.size <= self.copied:
            return value
        return digest(value, type_)

    def scan_of(self, place: int) -> Scan | None:
        """The steps of a frame that some version has read."""
        found = self._runs.get(place)
        return None if found is None else found.scan

    def runs(self, frame: FrameSteps) -> Runs:
        """When the blocks of a frame ran: found once for all versions that share its records."""
        found = self._runs.get(frame.place)
        if found is None:
            found = self._runs[frame.place] = Runs(frame)
        return found

    def drop_runs(self, segments: Collection[int]) -> None:
        """Forgets when blocks ran in other segments."""
        for place in [place for place in self._runs if place // SEGMENT not in segments]:
            del self._runs[place]

    def version(self) -> Tape:
        """A tape that shares the records, to be changed."""
        made = Tape(self.recorder, self.tables, self.arguments, self.failed)
        made.segments = dict(self.segments)
        made.changes = Changes(self.changes)
        made.copied, made.terms, made.in_one_piece = self.copied, self.terms, False
        made._runs = self._runs
        return made

    def take_over(self, version: Tape) -> None:
        """Becomes what a version is; frames that are there stay."""
        self.segments, self.arguments = dict(version.segments), list(version.arguments)
        self.changes, self.failed = version.changes, version.failed
        self.copied, self.terms, self.in_one_piece = version.copied, version.terms, False
        self._forget_values()

    def set_failed(self, failed: bool) -> None:
        """Of a version: whether an error ends it."""
        self.failed = failed
        self._forget_values()

    def _forget_values(self) -> None:
        for frame in self._frames.values():
            frame.forget_values()

    def block_at(self, place: int) -> int:
        """The number of the block whose record is at a place."""
        return int.from_bytes(self.segment(place // SEGMENT).bytes_at(place % SEGMENT, 4), "little")

    def is_stub(self, place: int) -> bool:
        """Whether a call that begins here was too deep to be entered."""
        return bool(self.tables.stub) and self.block_at(place) == self.tables.stub

    def layout(self, symbol: str) -> Layout:
        """The table of a function."""
        return self.tables.layouts[symbol]

    def frame(self, symbol: str, place: int, parent: Frame | None = None, call: int = 0) -> Frame:
        """The frame whose records begin at `place`."""
        found = self._frames.get(place)
        if found is None:
            found = self._frames[place] = Frame(self, symbol, place, parent, call)
        return found
