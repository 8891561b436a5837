"""How two runs differ: where their paths part first, in which values, and in which terms of the target.

diff(track(h, 2.0, 2), track(h, 2.0, 3)).first_divergent_edge      @24, false and true

Calls are aligned by the path of calls that leads to them, their blocks one by one until they differ. Two versions of a
program are aligned by their lines. Every node is read once; of values that differ, the first ones are kept.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from ulam.runtime.errors import ArgumentError
from ulam.runtime.results import plain_table
from ulam.tracing.diff.frames import Alignment, Comparison, Found, Parted
from ulam.tracing.export.graph import check_whole, source_line, top_of
from ulam.tracing.export.svg_layout import shortened
from ulam.tracing.export.trace_json import plain
from ulam.tracing.listing import line_of
from ulam.tracing.node_kinds import TargetNode
from ulam.tracing.nodes import ArgumentNode, Const, ItemNode, JumpNode, NestedCallNode, Node, Ref
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.values import value_text
from ulam.tracing.terms import terms_of
from ulam.tracing.trace import Trace

LIMIT = 100
"""Values that differ, of which a difference has the nodes."""
SHOWN = 8
"""Rows of each kind that its text has."""


@dataclass(frozen=True)
class Divergence:
    """Where two runs of a call go different ways: the jumps, and what decided on them.

    None for a run that ended there. Of two versions of a program, what comes next where only one of them has a branch.
    """

    a: Node | None
    b: Node | None

    @property
    def nodes(self) -> tuple[Node | None, Node | None]:
        """What decided: the conditions of the jumps, where these have one."""
        first, second = (_condition(node) for node in (self.a, self.b))
        return first, second

    @property
    def is_decided(self) -> bool:
        """Whether a condition makes the difference."""
        return any(isinstance(node, JumpNode) for node in (self.a, self.b))

    @property
    def node(self) -> Node | None:
        """What decided, in the first run, or, where that has ended, in the second."""
        first, second = self.nodes
        return first or second

    @property
    def values(self) -> tuple[str, str]:
        """The values of the condition, as listings write them."""
        first, second = (_truth(node) for node in (self.a, self.b))
        return first, second

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": None if self.node is None else _place(self.node),
            "values": list(self.values),
            "edges": [None if node is None else line_of(node) for node in (self.a, self.b)],
        }


@dataclass(frozen=True)
class ValueDifference:
    """Two nodes that correspond, with different values. `delta`: second less first, of containers the greatest."""

    a: Node
    b: Node

    @property
    def delta(self) -> float | None:
        return _delta(self.a.value, self.b.value)

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": _place(self.a), "other": _place(self.b), "values": [plain(self.a.value), plain(self.b.value)],
            "delta": plain(self.delta),
        }  # fmt: skip


@dataclass(frozen=True)
class TermDifference:
    """A term of the target in both runs; None in one that does not have it. `delta`: second less first."""

    a: Node | None
    b: Node | None
    delta: float

    @property
    def node(self) -> Node:
        found = self.a or self.b
        assert found is not None
        return found

    def to_dict(self) -> dict[str, Any]:
        values = [None if node is None else plain(node.value) for node in (self.a, self.b)]
        return {"node": _place(self.node), "values": values, "delta": plain(self.delta)}


@dataclass
class Diff:
    """What `diff` found. `values`: the first ones that differ, without `arguments`; `terms`: of the target, by |Δ|."""

    a: Node
    b: Node
    arguments: list[ValueDifference] = field(default_factory=list[ValueDifference])
    divergences: list[Divergence] = field(default_factory=list[Divergence])
    parted: int = 0
    """Calls that go different ways; `divergences` are the first of them."""
    values: list[ValueDifference] = field(default_factory=list[ValueDifference])
    compared: int = 0
    differing: int = 0
    terms: list[TermDifference] = field(default_factory=list[TermDifference])
    result: ValueDifference | None = None

    @property
    def first_divergent_edge(self) -> Divergence | None:
        """Where the runs go different ways first; None if they never do."""
        return self.divergences[0] if self.divergences else None

    @property
    def identical(self) -> bool:
        """Whether nothing differs."""
        return not (self.arguments or self.divergences or self.differing or self.result) and not any(
            term.delta for term in self.terms
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return {
            "identical": self.identical,
            "a": line_of(self.a),
            "b": line_of(self.b),
            "arguments": [difference.to_dict() for difference in self.arguments],
            "result": None if self.result is None else self.result.to_dict(),
            "first_divergent_edge": self.divergences[0].to_dict() if self.divergences else None,
            "divergences": [divergence.to_dict() for divergence in self.divergences],
            "calls_that_part": self.parted,
            "values_compared": self.compared,
            "values_that_differ": self.differing,
            "values": [difference.to_dict() for difference in self.values],
            "terms": [term.to_dict() for term in self.terms],
        }

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"<Diff: {'identical' if self.identical else f'{self.differing} values, {self.parted} edges'}>"


def diff(a: Node | Trace, b: Node | Trace, rtol: float = 0, *, limit: int = LIMIT) -> Diff:
    """How the run `b` differs from the run `a` of the same function, or of a changed version of it.

    Reals are the same if they differ by at most `rtol` times the larger of them; NaN is the same as NaN. Of values that
    differ and of calls that part, the first `limit` are kept, and all are counted. Raises ArgumentError.
    """
    if not 0 <= rtol < 1:
        raise ArgumentError(f"rtol is {rtol}, but must be at least 0 and less than 1")
    first, second = top_of(a), top_of(b)
    for node in (first, second):
        if not isinstance(node, ItemNode):
            raise ArgumentError(f"calls are compared, but {node} is none")
        check_whole(node.trace, "compared")
    assert isinstance(first, ItemNode) and isinstance(second, ItemNode)
    if first.function != second.function:
        raise ArgumentError(f"calls of one function are compared, not of '{first.function}' and '{second.function}'")
    found = Diff(first, second)
    comparison = Comparison(Alignment(first.trace, second.trace), rtol, limit)
    _compare_ends(found, comparison, first, second)
    if isinstance(first, NestedCallNode) and isinstance(second, NestedCallNode):
        frames = first.body, second.body
        if frames[0] is not None and frames[1] is not None:
            _compare_frames(found, comparison, frames[0], frames[1], limit)
    found.compared, found.differing = comparison.values, comparison.differing
    found.terms = _terms(first.trace, second.trace, comparison.alignment) if first.is_root and second.is_root else []
    return found


def _compare_ends(found: Diff, comparison: Comparison, first: ItemNode, second: ItemNode) -> None:
    """The arguments, and the value, of the calls that are compared."""
    pairs = zip(_parameters(first), _parameters(second), strict=False)
    found.arguments = [ValueDifference(x, y) for x, y in pairs if not comparison.equal(x.value, y.value)]
    if not comparison.equal(first.value, second.value) or (first.threw != second.threw):
        found.result = ValueDifference(first, second)


def _parameters(call: ItemNode) -> list[ArgumentNode]:
    return call.call_arguments if isinstance(call, NestedCallNode) else []


def _compare_frames(found: Diff, comparison: Comparison, a: Frame, b: Frame, limit: int) -> None:
    traces = found.a.trace, found.b.trace

    def node(number: int, place: tuple[Frame, int | None]) -> Node | None:
        return None if place[1] is None else traces[number].node(place[0], place[1])

    for event in comparison.events(a, b):
        if isinstance(event, Parted):
            found.parted += 1
            if len(found.divergences) < limit:
                found.divergences.append(Divergence(node(0, event.a), node(1, event.b)))
        elif isinstance(event, Found) and len(found.values) < limit:
            first, second = node(0, event.a), node(1, event.b)
            assert first is not None and second is not None
            found.values.append(ValueDifference(first, second))


def _terms(a: Trace, b: Trace, alignment: Alignment) -> list[TermDifference]:
    """The terms of both, the n-th run of one with the n-th run of the other."""
    graphs = {graph.name: graph for graph in b.tape.tables.graphs.values()}

    def keys(trace: Trace, number: int) -> Iterator[tuple[Any, Node]]:
        count: Counter[Any] = Counter()
        for term in terms_of(trace):
            path = (*term.path, (term.node.frame.graph.symbol, term.node.item.index))
            key: list[Any] = []
            for symbol, index in path:
                graph = trace.tape.tables.graphs[symbol]
                other = graphs.get(graph.name)
                site: Any = index
                if other is not None:
                    first = alignment.a.tape.tables.graphs.get(symbol, graph) if number == 0 else _named(a, graph.name)
                    if first is not None and not alignment.is_same(first, other):
                        site = alignment.sites(first, other)[number].get(index, (number, index))
                key.append((graph.name, site))
            place = tuple(key)
            count[place] += 1
            yield (place, count[place]), term.node

    first, second = dict(keys(a, 0)), dict(keys(b, 1))
    pairs = [(node, second.pop(key, None)) for key, node in first.items()] + [(None, node) for node in second.values()]
    return sorted((_term(x, y) for x, y in pairs), key=_weight)


def _named(trace: Trace, name: str) -> Any:
    return next((graph for graph in trace.tape.tables.graphs.values() if graph.name == name), None)


def _term(a: Node | None, b: Node | None) -> TermDifference:
    values = [0.0 if node is None else _number(node.value) for node in (a, b)]
    delta = _delta(*values)
    return TermDifference(a, b, float("nan") if delta is None else delta)


def _weight(term: TermDifference) -> float:
    return -abs(term.delta) if term.delta == term.delta else -float("inf")


def _number(value: Any) -> float:
    """An increment; of a container, the sum that is added."""
    try:
        return float(np.sum(value))
    except (TypeError, ValueError):
        return float("nan")


def _delta(a: Any, b: Any) -> float | None:
    try:
        first, second = np.asarray(a, float), np.asarray(b, float)
    except (TypeError, ValueError):
        return None
    if first.shape != second.shape or not first.size:
        return None
    with np.errstate(invalid="ignore"):
        deltas = np.where((first == second) | (np.isnan(first) & np.isnan(second)), 0.0, second - first).ravel()
    return float(deltas[np.argmax(np.where(np.isnan(deltas), np.inf, np.abs(deltas)))])


# ---------------------------------------------------------------- text


def _condition(node: Node | None) -> Node | None:
    condition = node.condition if isinstance(node, JumpNode) else None
    return condition.node if isinstance(condition, Ref) else node


def _truth(node: Node | None) -> str:
    """The value that decided on a jump."""
    if node is None:
        return "ended"
    if not isinstance(node, JumpNode) or node.edge is None or node.edge.condition is None:
        return value_text(node.value, node.type)
    type_ = node.edge.condition.type
    condition = node.condition
    assert isinstance(condition, Ref | Const)
    return value_text(int(node.edge.holds) if type_.base == "bool" else condition.value, type_)


def _place(node: Node) -> dict[str, Any]:
    """Where a node is: path of positions, location, and place in the source."""
    span = node.span
    return {
        "path": path_of(node),
        "line": line_of(node),
        "source": None if span is None else {"file": span.file, "line": span.line, "column": span.column},
    }


def path_of(node: Node) -> str:
    """The positions of the calls that lead to a node, and its own: `@4/@7`; empty for the root."""
    parts: list[str] = []
    current: Node | None = node
    while current is not None and not current.is_root:
        parts.append(f"@{current.at}")
        current = current.parent
    return "/".join(reversed(parts))


def _lines(found: Diff) -> Iterator[str]:
    name = found.a.function if isinstance(found.a, ItemNode) else str(found.a)
    if found.identical:
        yield f"{name}: no difference ({found.compared:,} values compared)"
        return
    yield f"a: {line_of(found.a, short=True)}"
    yield f"b: {line_of(found.b, short=True)}"
    edge = found.first_divergent_edge
    if edge is not None and edge.node is not None:
        yield ""
        calls = f"; {found.parted:,} calls go different ways" if found.parted > 1 else ""
        first, second = edge.values
        told = f"is {first} in a, {second} in b" if edge.is_decided else "comes next in one, not in the other"
        yield f"first divergent edge: {_named_node(edge.node)} {told}{calls}"
        yield from _source(edge.node)
        for which, node in (("a", edge.a), ("b", edge.b)):
            yield f"  {which}: {'the run ended here' if node is None else line_of(node)}"
    yield ""
    before = "until the paths part, " if found.parted else ""
    yield f"values: {before}{found.differing:,} of {found.compared:,} differ"
    if found.arguments or found.values:
        yield from _value_rows([*found.arguments, *found.values], found.differing + len(found.arguments))
    changed = [term for term in found.terms if term.delta]
    if found.terms:
        yield ""
        yield f"terms of target: {len(changed):,} of {len(found.terms):,} differ"
    if changed:
        rows = [_term_row(term) for term in changed[:SHOWN]]
        yield from _indented(plain_table(("line", "term", "a", "b", "b - a"), rows, (0, 1)))
        yield from _more(len(changed))


def _value_rows(differences: list[ValueDifference], count: int) -> Iterator[str]:
    rows: list[tuple[str, ...]] = []
    for difference in differences[:SHOWN]:
        node = difference.a
        name = f" {node.name}" if isinstance(node, ArgumentNode) else f" ⟨{getattr(node, 'function', '')}⟩"
        values = [value_text(n.value, n.type) for n in (difference.a, difference.b)]
        delta = difference.delta
        rows.append((path_of(node) + name, _short_place(node), *values, "" if delta is None else f"{delta:.6g}"))
    yield from _indented(plain_table(("node", "line", "a", "b", "b - a"), rows, (0, 1)))
    yield from _more(count)


def _term_row(term: TermDifference) -> tuple[str, ...]:
    node = term.node
    span = node.span
    text = source_line(node.trace, span) if span is not None else ""
    if isinstance(node, TargetNode) and node.parameter:
        text = f"Jacobian term of {node.parameter}"
    values = ["none" if n is None else value_text(n.value, n.type) for n in (term.a, term.b)]
    return (_short_place(node), shortened(text or line_of(node, short=True)), *values, f"{term.delta:.6g}")


def _short_place(node: Node) -> str:
    span = node.span
    return "" if span is None else f"{PurePath(span.file).name}:{span.line}"


def _named_node(node: Node) -> str:
    path = path_of(node)
    above, _, _ = path.rpartition("/")
    return f"{above + '/' if above else ''}{str(node).rpartition(' = ')[0] or node}"


def _source(node: Node) -> Iterator[str]:
    span = node.span
    if span is not None:
        yield f"  {os.fspath(span.file)}:{span.line}:{span.column}: {source_line(node.trace, span)}"


def _indented(text: str) -> Iterator[str]:
    yield from (f"  {line}" for line in text.split("\n"))


def _more(count: int) -> Iterator[str]:
    if count > SHOWN:
        yield f"  ... and {count - SHOWN:,} more"
