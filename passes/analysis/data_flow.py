"""Data-flow analysis: the fixpoint of transfer functions over a flow graph, forward or backward.

An analysis says what holds at the boundary, how facts of several paths are joined, and what a node does to them.
`None` stands for a place that no path has reached yet. Nodes are visited in program order (backward: in reverse) until
nothing changes, which for structured control flow takes the depth of the loops plus two sweeps.

Sets are bits of an int (`solve_sets`); anything else is an `Analysis`. Source: Kam and Ullman 1977; Aho, Lam, Sethi,
Ullman, "Compilers", section 9.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ulam.passes.analysis.flow_graph import FlowGraph, Node

State = TypeVar("State")


class Analysis(Protocol[State]):
    """A forward analysis, or a backward one (`solve(..., backward=True)`). States are never changed in place."""

    def boundary(self) -> State:
        """What holds before the first op (backward: after the last one)."""
        ...

    def join(self, one: State, other: State) -> State:
        """What holds where two paths meet."""
        ...

    def transfer(self, node: Node, state: State) -> State:
        """What holds after a node's ops (backward: before them)."""
        ...

    def along(self, node: Node, successor: int, state: State) -> State | None:
        """What holds on the edge to the successor of that position; None if it is never taken. Forward only."""
        ...


@dataclass
class Solution(Generic[State]):
    """States by node number. `before`: at the node's first op, `after`: behind its last. None: never reached."""

    before: list[State | None]
    after: list[State | None]


def solve(graph: FlowGraph, analysis: Analysis[State], *, backward: bool = False) -> Solution[State]:
    """The greatest fixpoint."""
    count = len(graph.nodes)
    before: list[State | None] = [None] * count
    after: list[State | None] = [None] * count
    entering, leaving = (after, before) if backward else (before, after)
    start = graph.exit if backward else graph.entry
    order = list(reversed(graph.nodes)) if backward else graph.nodes
    changed = True
    while changed:
        changed = False
        for node in order:
            state = analysis.boundary() if node is start else None
            for incoming in _incoming(node, analysis, leaving, backward):
                state = incoming if state is None else analysis.join(state, incoming)
            if state is None:
                continue
            entering[node.number] = state
            result = analysis.transfer(node, state)
            if result != leaving[node.number]:
                leaving[node.number] = result
                changed = True
    return Solution(before, after)


def _incoming(node: Node, analysis: Analysis[State], leaving: Sequence[State | None], backward: bool) -> list[State]:
    found: list[State] = []
    if backward:
        for successor in node.successors:
            if (state := leaving[successor.number]) is not None:
                found.append(state)
        return found
    for predecessor in node.predecessors:
        state = leaving[predecessor.number]
        if state is None:
            continue
        for position, successor in enumerate(predecessor.successors):
            if successor is node and (passed := analysis.along(predecessor, position, state)) is not None:
                found.append(passed)
    return found


def solve_sets(
    graph: FlowGraph,
    gen: Sequence[int],
    kill: Sequence[int],
    *,
    backward: bool = False,
    intersect: bool = False,
    everything: int = 0,
    boundary: int = 0,
) -> Solution[int]:
    """Sets as bits of an int: a node passes on `gen | (set & ~kill)`.

    With `intersect` a fact must hold on all paths; `everything` is then the set of all facts. Nodes that are never
    reached hold everything (union: nothing).
    """
    top = everything if intersect else 0
    count = len(graph.nodes)
    entering, leaving = [top] * count, [top] * count
    start = graph.exit if backward else graph.entry
    changed = True
    while changed:
        changed = False
        for node in reversed(graph.nodes) if backward else graph.nodes:
            number = node.number
            neighbours = node.successors if backward else node.predecessors
            if node is start:
                state = boundary
                if not intersect:
                    for neighbour in neighbours:
                        state |= leaving[neighbour.number]
            elif intersect:
                state = everything
                for neighbour in neighbours:
                    state &= leaving[neighbour.number]
            else:
                state = 0
                for neighbour in neighbours:
                    state |= leaving[neighbour.number]
            entering[number] = state
            result = gen[number] | (state & ~kill[number])
            if result != leaving[number]:
                leaving[number] = result
                changed = True
    before, after = (leaving, entering) if backward else (entering, leaving)
    return Solution(list(before), list(after))
