"""What is known of a frame before its values: the table of its function, made ready for readers, and its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Argument, Block, Graph, Item

if TYPE_CHECKING:
    from ulam.tracing.tape.frame_steps import FrameSteps
    from ulam.tracing.tape.overlay import Key


# ---------------------------------------------------------------- where values are used


@dataclass(frozen=True)
class Use:
    """In a block: as operand `argument` of the op at `offset`, or at its end, where `edge` (from 0) is taken.

    At the end, `argument` is the argument passed; CONDITION and RESULT say that it is what decides, or is returned.
    """

    block: Block
    offset: int
    argument: int
    edge: int = -1


CONDITION, RESULT = -1, -2


def uses_of(graph: Graph) -> dict[int, list[Use]]:
    """Number of a value → where it is used."""
    found: dict[int, list[Use]] = {}
    for block in graph.blocks:
        for offset, item in enumerate(block.items, len(block.arguments)):
            for n, operand in enumerate(item.operands):
                found.setdefault(operand.index, []).append(Use(block, offset, n))
        end = block.nodes - 1
        for number, edge in enumerate(block.edges):
            if edge.condition is not None and number == 0:
                found.setdefault(edge.condition.index, []).append(Use(block, end, CONDITION, number))
            if edge.value is not None:
                found.setdefault(edge.value.index, []).append(Use(block, end, RESULT, number))
            for n, passed in enumerate(edge.arguments):
                found.setdefault(passed.index, []).append(Use(block, end, n, number))
    found.pop(0, None)
    return found


class Runs:
    """When the blocks of a frame ran: as keys without offset, `2 * step`, one more for the header that follows."""

    def __init__(self, frame: FrameSteps) -> None:
        parts: list[npt.NDArray[np.int32]] = []
        number = 0
        while (batch := frame.batch(number)) is not None:
            parts.append(batch.blocks)
            number += 1
        self.blocks = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        self._layout = frame.layout
        self.scan = frame.scan
        self._of: dict[int, npt.NDArray[np.int64]] = {}

    def of(self, block: Block) -> npt.NDArray[np.int64]:
        """All runs of a block, in order."""
        found = self._of.get(block.number)
        if found is None:
            if block.record:
                found = 2 * np.flatnonzero(self.blocks == block.record)
            else:
                found = 2 * np.flatnonzero(np.isin(self.blocks, self._layout.leading.get(block.number, []))) + 1
            self._of[block.number] = found
        return found

    def reached_by(self, index: int, run: int) -> Iterator[tuple[Use, npt.NDArray[np.int64]]]:
        """Uses of value number `index` as it was defined in a run (-1: a parameter), and the runs where they are it."""
        uses = self._layout.uses.get(index, ())
        if run < 0:
            for use in uses:
                yield use, self.of(use.block)
            return
        home = self._layout.definitions[index].block
        again = self.of(home)
        after = int(np.searchsorted(again, run, side="right"))
        end = int(again[after]) if after < len(again) else None
        for use in uses:
            if use.block is home:
                yield use, np.array([run])
                continue
            runs = self.of(use.block)
            first = int(np.searchsorted(runs, run, side="right"))
            last = len(runs) if end is None else int(np.searchsorted(runs, end, side="left"))
            yield use, runs[first:last]


@dataclass
class Definition:
    """Where a value of a function is defined: in a block, at a place among its arguments or ops."""

    block: Block
    offset: int
    what: Argument | Item


class Layout:
    """What readers ask of a table again and again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.by_record = {block.record: block for block in graph.blocks if block.record}
        self.first_record = min(self.by_record)
        self.definitions: dict[int, Definition] = {}
        for block in graph.blocks:
            for offset, argument in enumerate(block.arguments):
                self.definitions[argument.index] = Definition(block, offset, argument)
            for offset, item in enumerate(block.items, len(block.arguments)):
                self.definitions[item.index] = Definition(block, offset, item)
        self.header: dict[int, Block] = {}  # record number → the silent header that its block leads to
        self.leading: dict[int, list[int]] = {}  # number of a silent header → the records that lead to it
        self.nodes: dict[int, int] = {}
        for number, block in self.by_record.items():
            nodes = block.nodes
            for edge in block.edges:
                target = graph.blocks[edge.target - 1] if edge.target else None
                if target is not None and not target.record:
                    self.header[number] = target
                    self.leading.setdefault(target.number, []).append(number)
                    nodes += target.nodes
            self.nodes[number] = nodes
        self.slots: dict[int, list[Any]] = {}
        """What each block keeps, by record number; see `columns`."""
        self.children = {n: [i for i in block.items if i.child] for n, block in self.by_record.items()}

    @property
    def span(self) -> int:
        """Numbers of records are below this."""
        return 1 + max(self.by_record)

    @cached_property
    def successions(self) -> npt.NDArray[np.int64]:
        """Which record may follow which, as `before * span + after`; before the first one there is 0."""
        pairs = [self.graph.blocks[0].record]
        for number, block in self.by_record.items():
            header = self.header.get(number)
            edges = [*block.edges, *(header.edges if header is not None else ())]
            pairs += [number * self.span + self.graph.blocks[e.target - 1].record for e in edges if e.target]
        return np.array(pairs, np.int64)

    def header_before(self, body: Block) -> Block:
        """The header of the counted loop that a block is the body of."""
        return next(b for b in self.graph.blocks if not b.record and b.edges[1].target == body.number)

    def is_hidden(self, item: Item) -> bool:
        """Whether an op has a value, or uses one, of a type that is not kept."""
        return item.index in self._hidden

    @cached_property
    def _hidden(self) -> set[int]:
        items = [item for block in self.graph.blocks for item in block.items]
        return {i.index for i in items if any(t.base == "other" for t in (i.type, *(o.type for o in i.operands)))}

    @cached_property
    def uses(self) -> dict[int, list[Use]]:
        """Number of a value → where it is used."""
        return uses_of(self.graph)


@dataclass
class Batch:
    """Steps of a frame: the first one's number, blocks (record numbers), places, positions before each, and the end."""

    first: int
    blocks: npt.NDArray[np.int32]
    places: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    end: int


@dataclass(frozen=True)
class Spot:
    """A place within a step: in its own block, or in the header that follows; `offset` counts arguments, then ops."""

    step: int
    in_header: bool
    offset: int


def spot_of(key: Key) -> Spot:
    """The spot of a key that is no parameter's."""
    return Spot(key[0] // 2, bool(key[0] % 2), key[1])


class Scan:
    """The steps of a frame as far as they were read; the same for all versions that share its records.

    One entry per batch: `starts` has the place, the state of the scan, the number of the first step and the position
    before it, `last` where each block ran last before it.
    """

    def __init__(self, place: int, head: int, record_count: int) -> None:
        self.starts: list[tuple[int, int, int, int]] = [(place, 0, 0, head)]
        self.first_positions: list[int] = [head]
        self.last: list[npt.NDArray[np.int64]] = [np.full(record_count, -1, np.int64)]
        self.batches: dict[int, Batch] = {}
        self.state = 0
        self.steps = 0  # of all batches that were read
        self.gap: tuple[int, int] | None = None
