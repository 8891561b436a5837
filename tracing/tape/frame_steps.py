"""Steps of a frame: which blocks ran, and where the records and positions of each are.

A frame is a row of *steps*: a step is one run of a block that writes a record, with the header of a counted loop
that it leads to, which writes none. Steps are read 4096 at a time; a checkpoint before each batch has the position
reached and where each block ran last, so any position is found without reading what is before.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Block, Item
from ulam.tracing.tape.layout import Batch, Runs, Scan, Spot, spot_of
from ulam.tracing.tape.overlay import SEGMENT, Key
from ulam.tracing.tape.recorder import CUT, DamagedTrace, Recorder

if TYPE_CHECKING:
    from ulam.tracing.tape.frames import Frame
    from ulam.tracing.tape.tape import Tape

_PROGRESS = 4
_BATCHES_KEPT = 8


class FrameSteps:
    """The steps and positions of one call; `Frame` has its values, too.

    `parent`: the frame of the caller, `call`: the position of the call there.
    """

    def __init__(self, tape: Tape, graph: str, place: int, parent: Frame | None, call: int) -> None:
        self.tape = tape
        self.layout = tape.layout(graph)
        self.graph = self.layout.graph
        self.place = place
        self.segment = place // SEGMENT
        self.parent = parent
        self.call = call
        self.in_opaque: bool = self.graph.opaque or (parent is not None and parent.in_opaque)
        """Whether it is the call of a higher-order function of the library, or a part of one."""
        self.head = 1 + len(self.graph.parameters)
        self.scan = tape.scan_of(place) or Scan(place % SEGMENT, self.head, tape.record_count)

    @property
    def recorder(self) -> Recorder:
        """What has the records of this call."""
        return self.tape.segment(self.segment)

    @cached_property
    def runs(self) -> Runs:
        """When its blocks ran; reads all."""
        return self.tape.runs(self)

    # ------------------------------------------------------------ steps

    def batch(self, number: int) -> Batch | None:
        """A batch of steps; None if the frame has fewer."""
        found = self.scan.batches.get(number)
        if found is not None:
            return found
        while number >= len(self.scan.starts):
            if self.scan.state < 0 or self.batch(len(self.scan.starts) - 1) is None:
                return None
        place, state, first, position = self.scan.starts[number]
        blocks, places, at, status = self.recorder.scan(place, state)
        if not len(blocks):
            self.scan.state = status
            return None
        if self.recorder.is_saved:
            self._check_order(number, blocks)
        nodes = self.tape.nodes_of_record[blocks]
        positions = position + np.cumsum(nodes) - nodes
        batch = Batch(first, blocks, places, positions, int(positions[-1] + nodes[-1]))
        if number == len(self.scan.starts) - 1:
            self.scan.state = status
            self.scan.steps = first + len(blocks)
            if status == CUT and self.scan.gap is None:
                self._resume(batch.end)
            if status >= 0:
                last = self.scan.last[number].copy()
                last[blocks] = np.arange(first, first + len(blocks))
                self.scan.starts.append((at, status, self.scan.steps, batch.end))
                self.scan.first_positions.append(batch.end)
                self.scan.last.append(last)
        if len(self.scan.batches) >= _BATCHES_KEPT:
            self.scan.batches.pop(next(iter(self.scan.batches)))
        self.scan.batches[number] = batch
        return batch

    def _check_order(self, number: int, blocks: npt.NDArray[np.int32]) -> None:
        """Raises DamagedTrace if the blocks of a batch do not follow each other in this function."""
        before = 0
        if number:
            previous = self.batch(number - 1)
            before = int(previous.blocks[-1]) if previous is not None else 0
        steps = np.concatenate(([before], blocks))
        pairs = steps[:-1].astype(np.int64) * self.layout.span + steps[1:]
        if np.any(steps >= self.layout.span) or not np.all(np.isin(pairs, self.layout.successions)):
            raise DamagedTrace(f"the trace is damaged: '{self.layout.graph.name}' has no such steps")

    def _resume(self, end: int) -> None:
        """Goes on behind records that were dropped, if the frame does."""
        found = self.recorder.resume(self.place % SEGMENT)
        if found is None:
            return
        place, steps, position = found
        self.scan.gap = (end + 1, self.head + position)
        self.scan.state = 0
        self.scan.starts.append((place, 0, steps, self.head + position))
        self.scan.first_positions.append(self.head + position)
        self.scan.last.append(np.full(self.tape.record_count, -1, np.int64))

    @property
    def gap(self) -> tuple[int, int] | None:
        """The positions that are not kept, first and last, of a frame that goes on behind them; reads all."""
        self._read_all()
        return self.scan.gap

    def _read_all(self) -> None:
        while self.scan.state >= 0 and self.batch(len(self.scan.starts) - 1) is not None:
            pass

    @cached_property
    def steps(self) -> int:
        """How many steps there are; reads all."""
        self._read_all()
        return self.scan.steps

    @cached_property
    def length(self) -> int:
        """How many positions there are; reads all. What was cut off is not counted."""
        steps = self.steps
        if not steps:
            return self.head
        number = len(self.scan.starts) - 1
        batch = self.batch(number) or self.batch(number - 1)
        assert batch is not None
        if not self.is_cut:
            return batch.end
        last = steps - 1
        return int(batch.positions[-1]) + self._nodes_reached(last)

    def _nodes_reached(self, step: int) -> int:
        """Of the last step of a frame that was cut off."""
        block, reached = self.block(step), self.reached(step)
        return len(block.arguments) + min(reached + 1, len(block.items)) if self.failed else block.nodes - 1

    @cached_property
    def failed(self) -> bool:
        """Whether an error ended the run while this call was open. The caller knows: it was in this call then."""
        if not self.tape.failed or self.parent is None:
            return self.tape.failed
        parent = self.parent
        if not parent.failed:
            return False
        spot = parent.spot(self.call)
        ordinal = spot.offset - len(parent.block_at(spot).arguments)
        return spot.step == parent.steps - 1 and parent.throwing(spot.step) == ordinal

    @property
    def is_cut(self) -> bool:
        """Whether the call did not get to its end, or the records end before."""
        self._read_all()
        return self.scan.state == CUT or self.failed

    def step(self, step: int) -> tuple[Batch, int]:
        """The batch of a step and its place there."""
        number = bisect_right(self.scan.starts, step, key=lambda start: start[2]) - 1
        batch = self.batch(number)
        while batch is not None and step >= batch.first + len(batch.blocks):
            number += 1
            batch = self.batch(number)
        if batch is None or step < batch.first:
            raise LookupError(f"step {step}")
        return batch, step - batch.first

    def has_step(self, step: int) -> bool:
        """Whether the frame got so far."""
        try:
            self.step(step)
        except LookupError:
            return False
        return True

    def block(self, step: int) -> Block:
        """The block that ran."""
        batch, n = self.step(step)
        return self.layout.by_record[int(batch.blocks[n])]

    def record_place(self, step: int) -> int:
        """Where the record of a step is."""
        batch, n = self.step(step)
        return int(batch.places[n])

    def reached(self, step: int) -> int:
        """How many ops of a block were over when the run was left; of a complete one, all."""
        block = self.block(step)
        if not self.failed or step + 1 < self.steps:
            return len(block.items)
        (progress,) = struct.unpack("<i", self.recorder.bytes_at(self.record_place(step) + _PROGRESS, 4))
        if progress == 0:
            return next((n for n, item in enumerate(block.items) if item.throws), len(block.items))
        return (progress - 1) // 2

    def throwing(self, step: int) -> int | None:
        """Which op of the last step threw; None if it was something in between."""
        if not self.failed or step + 1 < self.steps:
            return None
        (progress,) = struct.unpack("<i", self.recorder.bytes_at(self.record_place(step) + _PROGRESS, 4))
        return (progress - 1) // 2 if progress and (progress - 1) % 2 else None

    # ------------------------------------------------------------ positions

    def spot(self, position: int) -> Spot:
        """What is at a position behind the parameters."""
        number = bisect_right(self.scan.first_positions, position - 1) - 1
        batch = self.batch(number)
        while batch is not None and position > batch.end:
            number += 1
            batch = self.batch(number)
        if batch is None or ((self.scan.state < 0 or self.tape.failed) and position > self.length):
            raise IndexError(f"position {position}")
        if position <= int(batch.positions[0]):
            raise IndexError(f"position {position} was not kept")
        n = int(np.searchsorted(batch.positions, position, side="left")) - 1
        offset = position - int(batch.positions[n]) - 1
        block = self.layout.by_record[int(batch.blocks[n])]
        if offset < block.nodes:
            return Spot(batch.first + n, False, offset)
        return Spot(batch.first + n, True, offset - block.nodes)

    def position(self, step: int, in_header: bool, offset: int) -> int:
        """The inverse of `spot`."""
        batch, n = self.step(step)
        before = int(batch.positions[n]) + 1
        if in_header:
            before += self.layout.by_record[int(batch.blocks[n])].nodes
        return before + offset

    def block_at(self, spot: Spot) -> Block:
        """The block that a spot is in."""
        block = self.block(spot.step)
        return self.layout.header[block.record] if spot.in_header else block

    def item_at(self, spot: Spot) -> Item:
        """The op at a spot."""
        block = self.block_at(spot)
        return block.items[spot.offset - len(block.arguments)]

    def position_at(self, key: Key) -> int:
        """The position of a parameter, an argument of a block, or an op."""
        if key[0] < 0:
            return key[1] + 2
        spot = spot_of(key)
        return self.position(spot.step, spot.in_header, spot.offset)

    # ------------------------------------------------------------ definitions

    def last_run(self, records: list[int], before: int) -> int:
        """The last step up to `before`, included, whose block is one of `records`; -1 if there is none."""
        batch, n = self.step(before)
        blocks = batch.blocks[: n + 1]
        hits = np.flatnonzero(np.isin(blocks, records)) if len(records) > 1 else np.flatnonzero(blocks == records[0])
        if len(hits):
            return batch.first + int(hits[-1])
        number = bisect_right(self.scan.starts, batch.first, key=lambda start: start[2]) - 1
        return max(int(self.scan.last[number][r]) for r in records)

    def definition(self, index: int, spot: Spot) -> Spot:
        """Where value number `index` was defined last, seen from a spot. Not for the function and its parameters."""
        found = self.layout.definitions[index]
        if found.block.record:
            step = self.last_run([found.block.record], spot.step)
            return Spot(step, False, found.offset)
        records = self.layout.leading[found.block.number]
        if spot.in_header and self.block(spot.step).record in records and self.block_at(spot) is found.block:
            return Spot(spot.step, True, found.offset)
        return Spot(self.last_run(records, spot.step - (not spot.in_header)), True, found.offset)

    def position_of(self, index: int, spot: Spot) -> int:
        """The position of value number `index`, seen from a spot; 0 if it is not kept."""
        if index <= self.head:
            return index
        found = self.definition(index, spot)
        return self.position(found.step, found.in_header, found.offset) if found.step >= 0 else 0

    def entered_from(self, spot: Spot) -> Spot | None:
        """The end of the block before that at a spot; None at the entry, and where that is not kept."""
        if spot.in_header:
            return Spot(spot.step, False, self.block(spot.step).nodes - 1)
        if spot.step == 0 or not self.has_step(spot.step - 1):
            return None
        before = self.block(spot.step - 1)
        header = self.layout.header.get(before.record)
        if header is not None:
            return Spot(spot.step - 1, True, header.nodes - 1)
        return Spot(spot.step - 1, False, before.nodes - 1)
