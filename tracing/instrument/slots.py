"""Which slots the record of a block has: what of it is kept."""

from __future__ import annotations

from collections.abc import Sequence

from ulam.tracing.instrument.choices import Form
from ulam.tracing.instrument.flow import FlowBlock
from ulam.tracing.instrument.graph import ADDING, ROOT, Item


def _is_kept(item: Item, form: Form) -> bool:
    """Whether the value of a node is to be recorded, or to be found from what is."""
    if item.derived == "assign":
        return "elements" in form.recorded
    kind = "draws" if item.draws else "values"
    return bool(item.derived) or item.kind in ADDING or kind in form.recorded


def assign_slots(symbol: str, blocks: Sequence[FlowBlock], returns: Sequence[FlowBlock], form: Form) -> None:
    """Gives slots to the ops of a function, to the variables of its counted loops, and to the clock."""
    for block in blocks:
        made = block.made
        for item in made.items:
            if symbol != ROOT and not _is_kept(item, form):  # the result of the whole is always there
                item.derived = "lost"
            if not item.derived and item.type.slots:
                item.slot = made.slots
                made.slots += item.type.slots
            if item.stream is not None:
                item.stream = made.slots
                made.slots += 2
            if item.kind in ADDING:
                item.target_slot = made.slots
                made.slots += 1
        if block.counter is not None:
            made.counter = made.slots
            made.slots += 1
    if not form.timing or symbol == ROOT:
        return
    blocks[0].made.started = blocks[0].made.slots
    blocks[0].made.slots += 1
    for block in returns:
        block.made.ended = block.made.slots
        block.made.slots += 1
