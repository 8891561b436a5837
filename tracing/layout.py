"""What is known of a frame before its values: the table of its function, made ready for readers, and its steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Argument, Block, Graph, Item
from ulam.tracing.uses import Use, uses_of

if TYPE_CHECKING:
    from ulam.tracing.overlay import Key


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
