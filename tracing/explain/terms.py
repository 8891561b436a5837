"""The terms of a log density: every addition to the target of a trace, gathered by statement and ranked."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.copying import flat
from ulam.tracing.explain.names import Names, loop_counter
from ulam.tracing.explain.parts import QuotedStatement, Term
from ulam.tracing.instrument.graph import ADDING, Block, Graph, Item, Place, ValueType
from ulam.tracing.node_kinds import TargetTerm
from ulam.tracing.nodes import NestedCallNode, Node
from ulam.tracing.tape.frames import Frame

REAL = ValueType("real")


@dataclass
class TermRun:
    """Additions of one op in one frame: their positions, what they added, and the target behind them."""

    frame: Frame
    item: Item
    positions: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]

    def order(self, number: int) -> tuple[int, ...]:
        """A key that sorts additions in the order in which they were made."""
        return (*frame_order(self.frame), int(self.positions[number]))


class Additions:
    """The additions to the target of a run, by op and frame.

    Only blocks that add, or call what does, are looked at; numbers are read block by block, not node by node.
    """

    def __init__(self, root: NestedCallNode) -> None:
        root = _in_one_piece(root)
        self._trace = root.trace
        self._adding = adding_symbols(root.trace.tape.tables.graphs)
        self.runs: list[TermRun] = []
        if root.body is not None:
            self._collect(root.body)

    def first_not_finite(self) -> TargetTerm | None:
        """The addition that made the target infinite or NaN."""
        wrong = [(run, int(np.argmin(np.isfinite(run.after)))) for run in self.runs if not np.isfinite(run.after).all()]
        if not wrong:
            return None
        run, number = min(wrong, key=lambda found: found[0].order(found[1]))
        return self.node(run, number)

    def node(self, run: TermRun, number: int) -> TargetTerm:
        """The node of an addition."""
        found = self._trace.node(run.frame, int(run.positions[number]))
        assert isinstance(found, TargetTerm)
        return found

    def _collect(self, frame: Frame) -> None:
        wanted = self._wanted(frame.graph)
        last = frame.steps - 1
        cut = frame.reached(last) if frame.failed and last >= 0 else None
        number = 0
        while (batch := frame.batch(number)) is not None:
            number += 1
            for record, block in wanted.items():
                chosen = np.flatnonzero(batch.blocks == record)
                if not len(chosen):
                    continue
                ends_here = cut is not None and batch.first + int(chosen[-1]) == last
                for ordinal, item in enumerate(block.items):
                    steps = chosen[:-1] if ends_here and cut is not None and ordinal >= cut else chosen
                    positions = batch.positions[steps] + 1 + len(block.arguments) + ordinal
                    if item.child in self._adding:
                        entered = chosen if ends_here and ordinal == cut else steps
                        self._enter(frame, batch.positions[entered] + 1 + len(block.arguments) + ordinal)
                    if item.kind in ADDING and len(steps):
                        self._add(frame, block, ordinal, batch.places[steps], positions)

    def _enter(self, frame: Frame, positions: npt.NDArray[np.int64]) -> None:
        for position in positions:
            node = self._trace.node(frame, int(position))
            if isinstance(node, NestedCallNode) and node.body is not None:
                self._collect(node.body)

    def _add(
        self, frame: Frame, block: Block, ordinal: int, places: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]
    ) -> None:
        item = block.items[ordinal]
        assert item.target_slot is not None
        after = _reals(frame, places, item.target_slot)
        values = self._values(frame, block, item, places)
        if values is None:
            values = np.array([float(self._trace.node(frame, int(p)).value) for p in positions])
        self.runs.append(TermRun(frame, item, positions, values, after))

    @staticmethod
    def _values(
        frame: Frame, block: Block, item: Item, places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64] | None:
        """What was added, where it is in the same records; else None."""
        slot = item.slot
        if slot is None and item.derived == "operand":
            operand = item.operands[0]
            if not operand.index:
                return None if operand.constant is None else np.full(len(places), float(operand.constant))
            found = frame.layout.definitions.get(operand.index)
            if found is not None and found.block is block and isinstance(found.what, Item):
                slot = found.what.slot if found.what.type == REAL else None
        return None if slot is None else _reals(frame, places, slot)

    def _wanted(self, graph: Graph) -> dict[int, Block]:
        """The blocks that add, or call what adds, by their record numbers."""
        return {
            block.record: block
            for block in graph.blocks
            if block.record and any(i.kind in ADDING or i.child in self._adding for i in block.items)
        }


def _reals(frame: Frame, places: npt.NDArray[np.int64], slot: int) -> npt.NDArray[np.float64]:
    """The reals in a slot of many records."""
    return frame.recorder.words(places, slot + 1)[:, slot].copy().view(np.float64)


def _in_one_piece(root: NestedCallNode) -> NestedCallNode:
    found = flat(root.trace).root
    assert isinstance(found, NestedCallNode)
    return found


def frame_order(frame: Frame) -> tuple[int, ...]:
    """Where the call of a frame stands among those of the run."""
    path: list[int] = []
    while frame.parent is not None:
        path.append(frame.call)
        frame = frame.parent
    return tuple(reversed(path))


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
            value = loop_counter(current, variable)
            if value is not None:
                found[variable] = value
    return found


def calls_of(node: Node, names: Names) -> list[QuotedStatement]:
    """The statements that called the function that a node is in, innermost first; calls by `reduce_sum` are its own."""
    found: list[QuotedStatement] = []
    parent = node.parent
    while parent is not None and not parent.is_root:
        statement = names.statement_of(parent.item.place)
        caller = parent.parent
        is_of_library = caller is not None and not caller.is_root and caller.item.calls_function
        if statement is not None and not is_of_library:
            found.append(statement)
        parent = caller
    return found


# ---------------------------------------------------------------- gathering


@dataclass
class _Gathered:
    """A statement's additions; those of a truncation belong to its `~`, and are in `truncations`."""

    kind: str
    place: Place | None
    parameter: str
    order: int
    runs: list[TermRun] = field(default_factory=list[TermRun])
    truncations: list[TermRun] = field(default_factory=list[TermRun])

    def first_wrong(self) -> tuple[TermRun, int] | None:
        """The first addition that is not finite."""
        runs = [*self.runs, *self.truncations]
        wrong = [(r, int(np.argmin(np.isfinite(r.values)))) for r in runs if not np.isfinite(r.values).all()]
        return min(wrong, key=lambda found: found[0].order(found[1]), default=None)

    def last(self) -> tuple[TermRun, int]:
        """The last addition."""
        runs = [*self.runs, *self.truncations]
        return max(((run, len(run.values) - 1) for run in runs), key=lambda found: found[0].order(found[1]))

    @cached_property
    def executions(self) -> list[tuple[TermRun, npt.NDArray[np.float64]]]:
        """What each execution of the statement has added, with its truncation."""
        if not self.truncations:
            return [(run, run.values) for run in self.runs]
        return [(run, run.values + self._truncation_of(run)) for run in self.runs]

    def _truncation_of(self, run: TermRun) -> npt.NDArray[np.float64]:
        """What the truncation has added after each addition of a run, in the same call."""
        found = np.zeros(len(run.values))
        for other in self.truncations:
            if other.frame.place == run.frame.place:
                np.add.at(found, np.searchsorted(run.positions, other.positions) - 1, other.values)
        return found

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """Of all executions, in the order of the tape as far as they are of one frame."""
        return np.concatenate([values for _, values in self.executions])

    def least(self) -> tuple[TermRun, int, float]:
        """The execution that added least, of finite ones."""
        each = [(run, int(np.argmin(values)), float(values.min())) for run, values in self.executions]
        return min(each, key=lambda found: found[2])


def terms_of(additions: Additions, names: Names) -> tuple[list[Term], list[TargetTerm]]:
    """The terms, ranked, and the first addition of each that is not finite, in order of occurrence."""
    gathered: dict[tuple[Any, ...], _Gathered] = {}
    for run in additions.runs:
        kind, place = kind_of_term(run.item, names), run.item.place
        truncates = kind == "truncation"
        if truncates:
            kind, place = "tilde", names.text.place_of_tilde(place)
        key = (kind, place, run.item.text)
        entry = gathered.setdefault(key, _Gathered(kind, place, run.item.text, len(gathered)))
        (entry.truncations if truncates else entry.runs).append(run)
    wrong: list[tuple[tuple[int, ...], _Gathered, TargetTerm]] = []
    right: list[tuple[float, int, _Gathered]] = []
    for entry in gathered.values():
        if (found := entry.first_wrong()) is not None:
            wrong.append((found[0].order(found[1]), entry, additions.node(*found)))
        else:
            right.append((-abs(total(entry.values)), entry.order, entry))
    wrong.sort(key=lambda found: found[0])
    right.sort(key=lambda found: found[:2])
    terms = [_term(entry, additions, names) for entry in (*(w[1] for w in wrong), *(r[2] for r in right))]
    return terms, [node for _, _, node in wrong]


def kind_of_term(item: Item, names: Names) -> str:
    """`tilde`, `jacobian`, `truncation` or `target`."""
    if item.kind == "tilde":
        return "tilde"
    if item.name == "jacobian":
        return "jacobian"
    return "truncation" if names.text.is_truncation(item.place) else "target"


def _term(entry: _Gathered, additions: Additions, names: Names) -> Term:
    statement = names.statement_of(entry.place) or QuotedStatement("", "", 0, 0)
    values = entry.values
    guilty = entry.first_wrong()
    after, number = guilty or entry.last()
    run, least, increment = (*guilty, float(after.values[number])) if guilty is not None else entry.least()
    truncated = [run.values for run in entry.truncations]
    return Term(
        entry.kind, statement, total(values), float(after.after[number]), parameter=entry.parameter,
        count=len(values), not_finite=int(np.count_nonzero(~np.isfinite(values))),
        worst=loop_values(additions.node(run, least), names) if len(values) > 1 else {}, worst_increment=increment,
        truncation=total(np.concatenate(truncated)) if truncated else None,
    )  # fmt: skip


def total(numbers: npt.NDArray[np.float64]) -> float:
    """The sum in the order of execution, as the program adds."""
    return float(np.cumsum(numbers)[-1]) if len(numbers) else 0.0
