"""Control dependence: which jump decided that a node ran.

A block depends on an edge if it surely runs once that edge is taken, and might not before (Ferrante, Ottenstein and
Warren, "The program dependence graph and its use in optimization"). A node depends on the last jump along such an edge.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ulam.tracing.frames import Frame
from ulam.tracing.instrument.graph import Graph
from ulam.tracing.layout import Spot

if TYPE_CHECKING:
    from ulam.tracing.layout import Layout

_EXIT = 0


def post_dominators(graph: Graph) -> dict[int, int]:
    """Number of a block → the blocks that every way from it to a return leads through, itself included, as bits."""
    successors = {block.number: {edge.target for edge in block.edges} for block in graph.blocks}
    everything = (1 << (len(graph.blocks) + 1)) - 1
    found = {number: everything for number in successors}
    found[_EXIT] = 1
    changed = True
    while changed:
        changed = False
        for number in sorted(successors, reverse=True):
            common = everything
            for other in successors[number]:
                common &= found[other]
            if (now := common | 1 << number) != found[number]:
                found[number] = now
                changed = True
    return found


def control_dependences(graph: Graph) -> dict[int, dict[int, set[int]]]:
    """Number of a block → the blocks that decide whether it runs, each with the numbers of the edges to it."""
    after = post_dominators(graph)
    found: dict[int, dict[int, set[int]]] = {block.number: {} for block in graph.blocks}
    for block in graph.blocks:
        if len(block.edges) < 2:
            continue
        for edge in block.edges:
            for number, deciding in found.items():
                follows_anyway = number != block.number and after[block.number] >> number & 1
                if edge.target and after[edge.target] >> number & 1 and not follows_anyway:
                    deciding.setdefault(block.number, set()).add(edge.number)
    return found


@lru_cache(maxsize=64)
def _of_layout(layout: Layout) -> dict[int, dict[int, set[int]]]:
    return control_dependences(layout.graph)


def deciding_jump(frame: Frame, spot: Spot) -> int:
    """The position of the jump that decided that the block at a spot ran; 0: the call itself did."""
    layout = frame.layout
    best: Spot | None = None
    for number, edges in _of_layout(layout)[frame.block_at(spot).number].items():
        at = _last(frame, number, spot)
        if at is None or (best is not None and (at.step, at.in_header) <= (best.step, best.in_header)):
            continue
        taken = frame.edge_taken(at)
        if taken is not None and taken.number in edges:
            best = at
    if best is None:
        return 0
    return frame.position(best.step, best.in_header, frame.block_at(best).nodes - 1)


def _last(frame: Frame, number: int, spot: Spot) -> Spot | None:
    """The last run of a block before the one at a spot."""
    layout = frame.layout
    block = layout.graph.blocks[number - 1]
    if block.record:
        records, in_header = [block.record], False
        before = spot.step if spot.in_header else spot.step - 1
    else:
        records, in_header = layout.leading[number], True
        before = spot.step - 1
    if before < 0:
        return None
    step = frame.last_run(records, before)
    return None if step < 0 else Spot(step, in_header, 0)
