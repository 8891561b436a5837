"""Containers that a loop fills element by element, read in one go.

    for (n in 1:N) z[n] = f(x[n]);

What `z` is after an iteration follows from the assignments before, which may be very many. Where the body of a counted
loop is one block, with scalars that it kept as indices and value, they are read as columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import Block, Item, Operand
from ulam.tracing.tape.values import MISSING

if TYPE_CHECKING:
    from ulam.tracing.tape.frames import Frame
    from ulam.tracing.tape.layout import Spot

LEAST = 8
"""Fewer assignments in a row are replayed one by one."""


@dataclass(frozen=True)
class Fill:
    """Assignments in a row, the first in step `first`: the indices from 0, one array for each, and the new elements."""

    first: int
    indices: tuple[npt.NDArray[np.int64], ...]
    values: npt.NDArray[Any]

    def apply(self, container: npt.NDArray[Any]) -> None:
        """Makes the assignments."""
        container[self.indices] = self.values  # of equal indices the last one counts, as in the program


def fill_before(frame: Frame, item: Item, where: Spot) -> Fill | None:
    """The assignments to the same container in the iterations up to `where`, that included; None if they are others."""
    if where.in_header or (item.type.base == "matrix" and item.type.array_rank):
        return None
    if frame.tape.changes.get(frame.place) is not None:  # an update's values are not in the records
        return None
    block = frame.block_at(where)
    kinds = item.symbol.split(",")
    if any(kind != "single" for kind in kinds) or len(kinds) != item.type.rank or not _carries(frame, block, item):
        return None
    places = _steps_in_a_row(frame, block, where.step)
    if len(places) < LEAST:
        return None
    columns = [_column(frame, block, item, operand, where, places) for operand in item.operands[1:]]
    if any(column is None for column in columns):
        return None
    *indices, values = [column for column in columns if column is not None]
    return Fill(where.step - len(places) + 1, tuple(i.astype(np.int64) - 1 for i in indices), values)


def _carries(frame: Frame, block: Block, item: Item) -> bool:
    """Whether the block is the whole body of a counted loop that hands its container on to the next iteration."""
    header = frame.layout.header.get(block.record)
    if header is None or block.counter < 0 or header.edges[1].target != block.number:
        return False
    container = item.operands[0].index
    for offset, argument in enumerate(header.arguments):
        if argument.index == container:
            return block.edges[0].arguments[offset].index == item.index
    return False


def _steps_in_a_row(frame: Frame, block: Block, last: int) -> npt.NDArray[np.int64]:
    """The places of the records of a block that ran in a row up to step `last`, from the first on."""
    parts: list[npt.NDArray[np.int64]] = []
    step = last
    while step >= 0:
        batch, n = frame.step(step)
        others = np.flatnonzero(batch.blocks[: n + 1] != block.record)
        first = int(others[-1]) + 1 if len(others) else 0
        parts.append(batch.places[first : n + 1])
        step = batch.first - 1
        if first or not frame.has_step(step):
            break
    return np.concatenate(parts[::-1]) if parts else np.zeros(0, np.int64)


def _column(
    frame: Frame, block: Block, item: Item, operand: Operand, where: Spot, places: npt.NDArray[np.int64]
) -> npt.NDArray[Any] | None:
    """A scalar operand in each of these records; None if they do not have it."""
    if operand.type.rank:
        return None
    header = frame.layout.header[block.record]
    found = frame.layout.definitions.get(operand.index)
    if found is None or (found.block is not block and found.block is not header):  # the same in all iterations
        value = frame.operand(operand, where)
        return None if value is MISSING else np.full(len(places), value)
    if operand.index == header.arguments[-1].index:
        return _ints(frame, places, block.counter)
    if found.block is not block or not isinstance(found.what, Item) or found.what.slot is None:
        return None
    if found.offset >= len(block.arguments) + block.items.index(item):
        return None  # of the iteration before
    slot, type_ = found.what.slot, found.what.type
    if type_.rank or type_.slots != 1:
        return None
    return _ints(frame, places, slot) if type_.is_int else _words(frame, places, slot).view(np.float64)


def _words(frame: Frame, places: npt.NDArray[np.int64], slot: int) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(frame.recorder.words(places, slot + 1)[:, slot])


def _ints(frame: Frame, places: npt.NDArray[np.int64], slot: int) -> npt.NDArray[np.int32]:
    return _words(frame, places, slot).astype(np.uint64).astype(np.uint32).view(np.int32)
