"""The terms of a log density: every addition to the target of a trace, gathered by statement and ranked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ulam.passes.trace.graph import ADDING, Graph, Place
from ulam.runtime.trace.explain_birth import tape_order
from ulam.runtime.trace.explain_names import Names
from ulam.runtime.trace.explanation import Statement, Term
from ulam.runtime.trace.frames import Frame
from ulam.runtime.trace.nodes import NestedCallNode, Node, TargetNode, TargetTerm, TildeNode
from ulam.runtime.trace.values import MISSING


class Additions:
    """The additions to the target of a run, in the order in which they were made.

    Only blocks that add, or call what does, are looked at; nodes are made when they are asked for.
    """

    def __init__(self, root: NestedCallNode) -> None:
        self._adding = adding_symbols(root.trace.tape.tables.graphs)
        self._places: list[tuple[Frame, int]] = []
        self._trace = root.trace
        if root.body is not None:
            self._collect(root.body)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> TargetTerm:
        frame, position = self._places[number]
        node = self._trace.node(frame, position)
        assert isinstance(node, TargetTerm)
        return node

    def __iter__(self) -> Iterator[TargetTerm]:
        return (self[n] for n in range(len(self)))

    def first_not_finite(self) -> TargetTerm | None:
        """The addition that made the target infinite or NaN: it stays so, so it is searched by halves."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            after = self[middle].target_after
            if after is MISSING or math.isfinite(after):
                low = middle + 1
            else:
                high = middle
        return self[low] if low < len(self) else None

    def _collect(self, frame: Frame) -> None:
        wanted = self._ordinals(frame.graph)
        records = np.array(sorted(wanted))
        length = frame.length
        number = 0
        while (batch := frame.batch(number)) is not None:
            number += 1
            for n in np.flatnonzero(np.isin(batch.blocks, records)):
                before = int(batch.positions[n]) + 1
                for offset in wanted[int(batch.blocks[n])]:
                    if before + offset > length:
                        return
                    self._note(frame, before + offset)

    def _note(self, frame: Frame, position: int) -> None:
        node = self._trace.node(frame, position)
        if isinstance(node, NestedCallNode) and node.item.child in self._adding and node.body is not None:
            self._collect(node.body)
        if isinstance(node, TargetTerm) and node.value is not MISSING:
            self._places.append((frame, position))

    def _ordinals(self, graph: Graph) -> dict[int, list[int]]:
        """Record number of a block → offsets of its ops that add, or call what adds."""
        return {
            block.record: offsets
            for block in graph.blocks
            if block.record
            and (
                offsets := [
                    offset
                    for offset, item in enumerate(block.items, len(block.arguments))
                    if item.kind in ADDING or item.child in self._adding
                ]
            )
        }


def adding_symbols(graphs: dict[str, Graph]) -> frozenset[str]:
    """The traced functions that add to the target, themselves or through what they call."""
    adding: set[str] = set()
    while True:
        more = {
            symbol
            for symbol, graph in graphs.items()
            if symbol not in adding
            and any(i.kind in ADDING or i.child in adding for block in graph.blocks for i in block.items)
        }
        if not more:
            return frozenset(adding)
        adding |= more


# ---------------------------------------------------------------- loops


def loop_values(node: Node, names: Names) -> dict[str, int]:
    """The variables of the loops around a node, outermost first, also of those around the calls that led to it."""
    found: dict[str, int] = {}
    chain: list[Node] = [node]
    while (parent := chain[-1].parent) is not None and not parent.is_root:
        chain.append(parent)
    for current in reversed(chain):
        item = getattr(current, "item", None)
        written = names.written_at(item.place) if item is not None else None
        for variable in written.loops if written is not None else ():
            value = _counter(current, variable)
            if value is not None:
                found[variable] = value
    return found


def _counter(node: Node, variable: str) -> int | None:
    """The value of a loop variable, seen from a node: of the loop that ran last, if several have the name."""
    frame, where = node.frame, node.where
    if where is None:
        return None
    found = [
        (frame.definition(argument.index, where).step, argument.index)
        for block in frame.graph.blocks
        if not block.record
        for argument in block.arguments
        if argument.name == variable
    ]
    step, index = max(found, default=(-1, 0))
    value = frame.value(index, where) if step >= 0 else None
    return value if isinstance(value, int) else None


def calls_of(node: Node, names: Names) -> list[Statement]:
    """The statements that called the function that a node is in, innermost first."""
    found: list[Statement] = []
    parent = node.parent
    while parent is not None and not parent.is_root:
        statement = names.statement_of(parent.item.place)
        if statement is not None:
            found.append(statement)
        parent = parent.parent
    return found


# ---------------------------------------------------------------- gathering


@dataclass
class _Gathered:
    """A statement's additions. `guilty`: the first of them that is not finite."""

    kind: str
    place: Place | None
    parameter: str
    order: int
    increments: list[float] = field(default_factory=list[float])
    after: float = math.nan
    worst: TargetTerm | None = None
    worst_value: float = math.inf
    guilty: TargetTerm | None = None
    not_finite: int = 0

    def add(self, node: TargetTerm, value: float) -> None:
        self.increments.append(value)
        wrong = not math.isfinite(value)
        self.not_finite += wrong
        if wrong and self.guilty is None:
            self.guilty = self.worst = node
            self.worst_value = value
        elif self.guilty is None and (self.worst is None or value < self.worst_value):
            self.worst, self.worst_value = node, value
        self.after = _float(node.target_after)


def terms_of(additions: Additions, names: Names) -> tuple[list[Term], list[TargetTerm]]:
    """The terms, ranked, and the first addition of each that is not finite, in order of occurrence."""
    gathered: dict[tuple[Any, ...], _Gathered] = {}
    for node in additions:
        kind = kind_of_term(node, names)
        parameter = node.parameter if isinstance(node, TargetNode) else ""
        key = (kind, node.item.place, parameter)
        entry = gathered.get(key)
        if entry is None:
            entry = gathered[key] = _Gathered(kind, node.item.place, parameter, len(gathered))
        entry.add(node, _float(node.value))
    entries = list(gathered.values())
    wrong = [entry for entry in entries if entry.guilty is not None]
    wrong.sort(key=lambda entry: _occurrence(entry.guilty))
    right = sorted((e for e in entries if e.guilty is None), key=lambda e: (-abs(math.fsum(e.increments)), e.order))
    terms = [_term(entry, names) for entry in (*wrong, *right)]
    return terms, [entry.guilty for entry in wrong if entry.guilty is not None]


def _occurrence(node: TargetTerm | None) -> tuple[int, ...]:
    assert node is not None
    return tape_order(node)


def kind_of_term(node: TargetTerm, names: Names) -> str:
    """`tilde`, `jacobian`, `truncation` or `target`."""
    if isinstance(node, TildeNode):
        return "tilde"
    if isinstance(node, TargetNode) and node.cause == "jacobian":
        return "jacobian"
    return "truncation" if names.text.is_truncation(node.item.place) else "target"


def _term(entry: _Gathered, names: Names) -> Term:
    statement = names.statement_of(entry.place) or Statement("", "", 0, 0)
    node = entry.guilty if entry.guilty is not None else entry.worst
    several = len(entry.increments) > 1
    return Term(
        entry.kind, statement, total(entry.increments),
        _float(entry.guilty.target_after) if entry.guilty is not None else entry.after,
        parameter=entry.parameter, count=len(entry.increments), not_finite=entry.not_finite,
        worst=loop_values(node, names) if several and node is not None else {},
        worst_increment=entry.worst_value,
    )  # fmt: skip


def total(numbers: Sequence[float]) -> float:
    """The sum in the order of execution, as the program adds."""
    result = 0.0
    for number in numbers:
        result += number
    return result


def _float(value: Any) -> float:
    return math.nan if value is MISSING or value is None else float(value)
