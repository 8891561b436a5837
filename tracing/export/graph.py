"""What pictures of a trace show: calls with their nodes as far as there is room, and the edges between them.

Calls are taken breadth first, so that room goes to the upper levels; of one that does not fit, the beginning and the
end are shown, and a mark stands for what is left out. Only what is shown is read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.errors import ArgumentError
from ulam.runtime.output_files import write_text
from ulam.tracing.nodes import ArgumentNode, Const, ControlFlowNode, ItemNode, JumpNode, NestedCallNode, Node, Ref
from ulam.tracing.program_text import Location, Span
from ulam.tracing.tape.values import Digest
from ulam.tracing.trace import Trace

if TYPE_CHECKING:
    from ulam.tracing.instrument.graph import Graph

MAX_NODES = 2000
"""Nodes that a picture shows unless one asks for more."""

DATA, JUMP, CALL = "data", "jump", "call"


@dataclass(frozen=True)
class Gap:
    """Stands for nodes that are left out: `first` to `last` are their positions."""

    name: str
    first: int
    last: int

    @property
    def text(self) -> str:
        count = self.last - self.first + 1
        return f"… {count:,} node{'s' if count > 1 else ''}: @{self.first} to @{self.last} …"


@dataclass(frozen=True)
class Link:
    """From what uses to what is used: `data`, numbered by operand; of a jump, 0 is the condition.

    `jump`: from the node that comes next to the jump; `call`: from the first node inside to the call, and, numbered,
    from parameters to what was passed.
    """

    user: str
    used: str
    kind: str
    number: int | None = None


@dataclass
class Cluster:
    """A call and its nodes; `name` is the path of positions that leads to it, empty for the call at the top."""

    call: NestedCallNode
    name: str
    depth: int
    members: list[Node | Gap] = field(default_factory=list["Node | Gap"])
    inside: dict[int, Cluster] = field(default_factory=dict[int, "Cluster"])
    """By position of the call."""
    hidden: int = 0
    """Nodes of a call of which none are shown."""
    gap: Gap | None = None
    """Stands for members that are left out."""

    def path(self, position: int) -> str:
        """The name of the node at a position, shown or not."""
        return f"{self.name}/@{position}" if self.name else f"@{position}"


def top_of(what: Node | Trace) -> Node:
    """The node that an export begins with: the root of a trace."""
    if isinstance(what, Trace):
        return what.root
    if isinstance(what, Node):
        return what
    raise ArgumentError(f"a trace or a node of one is exported, not {type(what).__name__}")


def check_whole(trace: Trace, done: str) -> None:
    """Raises ArgumentError for a trace whose beginning was dropped, which cannot be `done`."""
    recorder = trace.tape.recorder
    if recorder.info().first_kept and recorder.replay is None:
        raise ArgumentError(f"only a trace whose beginning is kept can be {done}: use overflow='stop' or 'spill'")


class Picture:
    """A node and what is below it, `levels` levels deep (1: the node alone), with at most `max_nodes` nodes."""

    def __init__(self, what: Node | Trace, levels: int | None = None, max_nodes: int | None = MAX_NODES) -> None:
        if levels is not None and levels < 1:
            raise ArgumentError(f"levels is {levels}, but at least one is shown")
        if max_nodes is not None and max_nodes < 1:
            raise ArgumentError(f"max_nodes is {max_nodes}, but at least one is shown")
        self.node = top_of(what)
        self.spans = Spans()
        self.top: Cluster | None = None
        self.clusters: list[Cluster] = []
        """Parents before what is in them."""
        if isinstance(self.node, NestedCallNode) and levels != 1:
            self.top = Cluster(self.node, "", 1)
            self._fill(self.top, levels, max_nodes)

    def _fill(self, top: Cluster, levels: int | None, room: int | None) -> None:
        work = deque([top])
        while work:
            cluster = work.popleft()
            count = len(cluster.call.children)
            if room is not None and room < min(count, 3):
                cluster.hidden = count
                continue
            self.clusters.append(cluster)
            cluster.members = list(_members(cluster, count, room))
            cluster.gap = next((member for member in cluster.members if isinstance(member, Gap)), None)
            if room is not None:
                room -= len(cluster.members)
            if levels is not None and cluster.depth + 1 >= levels:
                continue
            for member in cluster.members:
                if isinstance(member, NestedCallNode) and member.children:
                    inside = Cluster(member, cluster.path(member.at), cluster.depth + 1)
                    cluster.inside[member.at] = inside
                    work.append(inside)

    def links(self) -> Iterator[Link]:
        """The edges between what is shown; one to a node that is left out leads to the mark in its place."""
        for cluster in self.clusters:
            seen: set[Link] = set()
            for link in self._links(cluster):
                if link.user != link.used and link not in seen:
                    if (gap := cluster.gap) and gap.name in (link.user, link.used):
                        seen.add(link)
                    yield link

    def _links(self, cluster: Cluster) -> Iterator[Link]:
        gap = cluster.gap

        def name(position: int) -> str:
            hidden = gap is not None and gap.first <= position <= gap.last
            return gap.name if gap is not None and hidden else cluster.path(position)

        last = len(cluster.call.children)
        for member in cluster.members:
            if isinstance(member, Gap):
                continue
            user = cluster.path(member.at)
            for number, operand in numbered_operands(member):
                if isinstance(operand, Ref):
                    yield Link(user, name(operand.position), DATA, number)
            if isinstance(member, JumpNode) and member.at < last:
                yield Link(name(member.at + 1), user, JUMP)
            inside = cluster.inside.get(member.at)
            if inside is not None and inside.members:
                yield Link(inside.path(1), user, CALL)
                for parameter in inside.members:
                    if isinstance(parameter, ArgumentNode) and parameter.is_parameter:
                        if isinstance(source := parameter.source, Ref):
                            yield Link(inside.path(parameter.at), name(source.position), CALL, parameter.at - 1)


def _members(cluster: Cluster, count: int, room: int | None) -> Iterator[Node | Gap]:
    call = cluster.call
    lost = call.body.gap if call.body is not None else None  # of a trace that does not have its middle
    keep = count if room is None or room >= count else room - 1
    first, last = keep - keep // 2 + 1, count - keep // 2
    if keep == count:
        first, last = lost or (1, 0)
    elif lost is not None:
        first, last = min(first, lost[0]), max(last, lost[1])
    for position in (*range(1, first), *range(last + 1, count + 1)):
        if position == last + 1 and first <= last:
            yield Gap(cluster.path(first), first, last)
        yield call[position]
    if first <= last == count:
        yield Gap(cluster.path(first), first, last)


def numbered_operands(node: Node) -> Iterable[tuple[int, Ref | Const]]:
    """What a node uses, each with its number: operands from 1, the condition of a jump is 0.

    An argument of a block uses what the jump has passed, numbered as in the jump.
    """
    if isinstance(node, JumpNode):
        condition = node.condition
        arguments = list(enumerate(node.arguments, 1))
        return arguments if condition is None else [(0, condition), *arguments]
    if isinstance(node, ArgumentNode):
        return () if node.is_parameter else [(node.place_in_jump, operand) for operand in node.operands]
    return enumerate(node.operands, 1)


class Spans:
    """Places in the source of many nodes; each place is looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Location], Span | None] = {}

    def of(self, node: Node) -> Span | None:
        """Of a jump, that of its condition."""
        if isinstance(node, ControlFlowNode):
            condition = node.condition if isinstance(node, JumpNode) else None
            return self.of(condition.node) if isinstance(condition, Ref) else None
        location = node.location
        if location is None:
            return self.of_function(node.trace, node.item.child) if isinstance(node, ItemNode) else None
        key = (node.frame.graph.symbol, location)
        if key not in self._known:
            self._known[key] = node.span
        return self._known[key]

    @staticmethod
    def of_function(trace: Trace, symbol: str) -> Span | None:
        """Where a function that was entered begins."""
        graph: Graph | None = trace.tape.tables.graphs.get(symbol)
        if graph is None or graph.place is None:
            return None
        place = graph.place
        return Span(place.file, place.line, place.column, place.column + 1)


def source_line(trace: Trace, span: Span) -> str:
    """The line of the source that a place is on; empty for a file that is not at hand."""
    if span.file != trace.source.filename:
        return ""
    lines = trace.source.text.split("\n")
    return lines[span.line - 1].strip() if span.line <= len(lines) else ""


def is_bad(node: Node) -> bool:
    """Whether its value has a NaN or an infinity that is not that of a variable which was never assigned."""
    if isinstance(node, ItemNode) and node.function == "declare":
        return False
    value = node.value
    if isinstance(value, float):
        return not np.isfinite(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and not np.isfinite(value).all()
    return isinstance(value, Digest) and value.nans + value.infinities > 0


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """The text; written to a file, too, if one is given."""
    if path is not None:
        write_text(path, text)
    return text
