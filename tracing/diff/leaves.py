"""Compares many calls of a function without branches and calls at once: there are often very many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.columns import CONTAINER, VALUE, CallPlace, Slot, scalar_column, slots_of
from ulam.tracing.frames import Frame
from ulam.tracing.instrument.graph import Item
from ulam.tracing.layout import Layout
from ulam.tracing.overlay import SEGMENT
from ulam.tracing.tape import Tape

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
