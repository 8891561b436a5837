"""Which ops of two versions of a function correspond: those of the same table, else those on the same lines.

Two versions of a program are aligned by their lines, as `diff` does, and the ops of lines that correspond by their
names, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from ulam.tracing.instrument.graph import Block, Graph, Item, Operand
from ulam.tracing.trace import Trace


def shape(graph: Graph) -> Any:
    """What readers see of a table, without places and numbers of records: of equal shapes, all corresponds."""
    return graph.name, [(p.index, p.type) for p in graph.parameters], [_block(block) for block in graph.blocks]


def _block(block: Block) -> Any:
    items = [
        (i.kind, i.name, _operands(i.operands), i.type, i.slot, i.derived, i.symbol, bool(i.child)) for i in block.items
    ]
    edges = [
        (e.number, e.target, _operands(e.arguments), _operands([e.condition] if e.condition else []), e.holds)
        for e in block.edges
    ]
    return block.number, [(a.index, a.type) for a in block.arguments], items, edges


def _operands(operands: list[Operand]) -> Any:
    return [(operand.index, repr(operand.constant), operand.type) for operand in operands]


class Alignment:
    """Of the functions of two traces."""

    def __init__(self, a: Trace, b: Trace) -> None:
        self.a, self.b = a, b
        self._same: dict[tuple[str, str], bool] = {}
        self._sites: dict[tuple[str, str], tuple[dict[int, int], dict[int, int]]] = {}

    def is_same(self, a: Graph, b: Graph) -> bool:
        """Whether two tables have the same blocks and ops."""
        key = (a.symbol, b.symbol)
        if key not in self._same:
            self._same[key] = a is b or shape(a) == shape(b)
        return self._same[key]

    def sites(self, a: Graph, b: Graph) -> tuple[dict[int, int], dict[int, int]]:
        """Number of a value of the first and of the second function → a number that corresponding ops share."""
        key = (a.symbol, b.symbol)
        if key not in self._sites:
            ours: dict[int, int] = {}
            theirs: dict[int, int] = {}
            first, second = _by_line(a), _by_line(b)
            for line, items in first.items():
                others = second.get(self._lines.get(line, -1) or -1, [])
                for item, other in _paired(items, others):
                    ours[item.index] = theirs[other.index] = len(ours)
            self._sites[key] = ours, theirs
        return self._sites[key]

    @cached_property
    def _lines(self) -> dict[int, int | None]:
        """Line of the first program → the corresponding one of the second; None where there is none."""
        first, second = self.a.source.text.split("\n"), self.b.source.text.split("\n")
        found: dict[int, int | None] = dict.fromkeys(range(1, len(first) + 1))
        stripped = [[line.strip() for line in lines] for lines in (first, second)]
        for kind, i, i_end, j, j_end in SequenceMatcher(None, *stripped, autojunk=False).get_opcodes():
            if kind == "equal" or i_end - i == j_end - j:
                found.update((i + n + 1, j + n + 1) for n in range(i_end - i))
                continue
            for n in range(i, i_end):  # lines that were changed, among others that are new or gone
                like = [m for m in range(j, j_end) if _alike(stripped[0][n], stripped[1][m])]
                if like:
                    found[n + 1] = like[0] + 1
                    j = like[0] + 1
        return found


def _paired(items: list[Item], others: list[Item]) -> Iterator[tuple[Item, Item]]:
    """The ops of a line that correspond: those with the same literals first, between them those of the same name."""
    exact = [[(i.kind, i.name, repr([o.constant for o in i.operands])) for i in some] for some in (items, others)]
    for kind, i, i_end, j, j_end in SequenceMatcher(None, *exact, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from zip(items[i:i_end], others[j:j_end], strict=True)
            continue
        names = [[(item.kind, item.name) for item in some] for some in (items[i:i_end], others[j:j_end])]
        for m, n, count in SequenceMatcher(None, *names, autojunk=False).get_matching_blocks():
            yield from zip(items[i + m : i + m + count], others[j + n : j + n + count], strict=True)


def _alike(a: str, b: str) -> bool:
    return bool(a and b) and SequenceMatcher(None, a, b, autojunk=False).ratio() > 0.6


def _by_line(graph: Graph) -> dict[int, list[Item]]:
    """The ops of each line."""
    found: dict[int, list[Item]] = {}
    for item in (item for block in graph.blocks for item in block.items):
        if item.place is not None:
            found.setdefault(item.place.line, []).append(item)
    return found
