"""Data-flow analysis: the fixpoint of transfer functions over a flow graph, forward or backward.

An analysis says what holds at the boundary, how facts of several paths are joined, and what a node does to them.
`None` stands for a place that no path has reached yet. Nodes are visited in program order (backward: in reverse), again
if what comes into them has changed: a loop is done with before what follows it.

Sets are bits of an int (`solve_sets`); anything else is an `Analysis`. Source: Kam and Ullman 1977; Aho, Lam, Sethi,
Ullman, "Compilers", section 9.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from xdsl.ir import Operation

from ulam.library.records import record
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode

Step = Callable[[Operation], tuple[int, int]]
"""The facts that an op makes hold, and those that it ends, as bits: behind it `facts & ~ended | made` hold."""

State = TypeVar("State")


class Analysis(Protocol[State]):
    """A forward analysis, or a backward one (`solve(..., backward=True)`). States are never changed in place."""

    def boundary(self) -> State:
        """What holds before the first op (backward: after the last one)."""
        ...

    def join(self, one: State, other: State) -> State:
        """What holds where two paths meet."""
        ...

    def transfer(self, node: FlowNode, state: State) -> State:
        """What holds after a node's ops (backward: before them)."""
        ...

    def along(self, node: FlowNode, successor: int, state: State) -> State | None:
        """What holds on the edge to the successor of that position; None if it is never taken. Forward only."""
        ...


@record
class Solution(Generic[State]):
    """States by node number. `before`: at the node's first op, `after`: behind its last. None: never reached."""

    before: list[State | None]
    after: list[State | None]


def solve(
    graph: FlowGraph, analysis: Analysis[State], users: Sequence[Collection[int]] = (), *, backward: bool = False
) -> Solution[State]:
    """The greatest fixpoint. `users`: of each node those that look at more of it than the state behind it."""
    count = len(graph.nodes)
    entering: list[State | None] = [None] * count
    leaving: list[State | None] = [None] * count
    passed: list[list[State | None]] = [[None] * len(_following(node, backward)) for node in graph.nodes]  # by edge
    start = graph.exit if backward else graph.entry
    sources = _edges_into(graph, backward)
    pending = [-start.number if backward else start.number]  # the nodes to visit, in the order of the analysis
    waits = {start.number}
    while pending:
        number = abs(heappop(pending))
        waits.discard(number)
        node = graph.nodes[number]
        state = analysis.boundary() if node is start else None
        for source, position in sources[number]:
            if (incoming := passed[source][position]) is not None:
                state = incoming if state is None else analysis.join(state, incoming)
        assert state is not None
        entering[number] = state
        leaving[number] = result = analysis.transfer(node, state)
        changed = [user for user in users[number] if entering[user] is not None] if users else []
        edges = passed[number]
        for position, following in enumerate(_following(node, backward)):
            new = result if backward else analysis.along(node, position, result)
            if new is None or new == edges[position]:
                continue
            edges[position] = new
            changed.append(following.number)
        for other in changed:
            if other not in waits:
                waits.add(other)
                heappush(pending, -other if backward else other)
    before, after = (leaving, entering) if backward else (entering, leaving)
    return Solution(before, after)


def _following(node: FlowNode, backward: bool) -> list[FlowNode]:
    return node.predecessors if backward else node.successors


def _edges_into(graph: FlowGraph, backward: bool) -> list[list[tuple[int, int]]]:
    """Of each node, the nodes that states come from, with the position of the edge among theirs."""
    sources: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
    for node in graph.nodes:
        for position, following in enumerate(_following(node, backward)):
            sources[following.number].append((node.number, position))
    return sources


def composed(ops: Iterable[Operation], step: Step, ended: int = 0) -> tuple[int, int]:
    """The facts that ops one after the other make hold, and those that they end; `ended`: before the first."""
    made = 0
    for op in ops:
        new, old = step(op)
        made = made & ~old | new
        ended = (ended | old) & ~new
    return made, ended


def facts_along(ops: Iterable[Operation], step: Step, facts: int) -> Iterator[tuple[Operation, int]]:
    """Each op with the facts that hold where the analysis comes to it, given those at the first."""
    for op in ops:
        yield op, facts
        made, ended = step(op)
        facts = facts & ~ended | made


def solve_sets(
    graph: FlowGraph,
    effects: Sequence[tuple[int, int]],
    *,
    backward: bool = False,
    intersect: bool = False,
    everything: int = 0,
    boundary: int = 0,
) -> Solution[int]:
    """Sets as bits of an int: a node passes on `made | (set & ~ended)`, its `effects`.

    With `intersect` a fact must hold on all paths; `everything` is then the set of all facts. Nodes that are never
    reached hold everything (union: nothing).
    """
    top = everything if intersect else 0
    count = len(graph.nodes)
    entering, leaving = [top] * count, [top] * count
    start = graph.exit if backward else graph.entry
    waiting = bytearray(b"\1") * count  # nodes whose neighbours have changed since they were visited
    changed = True
    while changed:
        changed = False
        for node in reversed(graph.nodes) if backward else graph.nodes:
            number = node.number
            if not waiting[number]:
                continue
            waiting[number] = 0
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
            made, ended = effects[number]
            result = made | (state & ~ended)
            if result != leaving[number]:
                leaving[number] = result
                changed = True
                for neighbour in node.predecessors if backward else node.successors:
                    waiting[neighbour.number] = 1
    before, after = (leaving, entering) if backward else (entering, leaving)
    return Solution(list(before), list(after))
