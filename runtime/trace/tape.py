"""The records of one run with what is needed to read them; see `frames`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ulam.emit.trace_ops import record_bytes
from ulam.passes.trace.graph import ROOT, Graph
from ulam.runtime.errors import ArgumentError
from ulam.runtime.trace.frames import Frame, Layout
from ulam.runtime.trace.recorder import BlockRow, Recorder


class Tables:
    """The tables of a traced program by symbol, and what the recorder must know of their blocks."""

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = dict(graphs)
        self.layouts = {symbol: Layout(graph) for symbol, graph in graphs.items()}
        root = self.graphs[ROOT]
        self.stub, self.tick = root.stub, root.tick
        self.record_count = 1 + max(self.stub, *(max(layout.by_record) for layout in self.layouts.values()))
        self.rows = (BlockRow * self.record_count)()
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
        self._recorder: Recorder | None = recorder
        self.tables = tables
        self.arguments = list(arguments)
        self.failed = failed
        self.record_count = tables.record_count
        self.nodes_of_record = tables.nodes
        self._frames: WeakValueDictionary[int, Frame] = WeakValueDictionary()

    @property
    def recorder(self) -> Recorder:
        """What has the records. Raises ArgumentError once the trace is closed."""
        if self._recorder is None:
            raise ArgumentError("the trace is closed")
        return self._recorder

    def close(self) -> None:
        """Lets the records go."""
        self._recorder = None

    def block_at(self, place: int) -> int:
        """The number of the block whose record is at a place."""
        return int.from_bytes(self.recorder.bytes_at(place, 4), "little")

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
