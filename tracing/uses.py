"""Where values of a frame are used: from the table of the function and the order of its blocks, not by nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Block, Graph

if TYPE_CHECKING:
    from ulam.tracing.frame_steps import FrameSteps


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
