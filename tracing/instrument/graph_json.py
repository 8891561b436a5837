"""Tables of traced programs as plain lists and dictionaries, and back; what is read is checked.

`decoded` raises ValueError for whatever is not as `plain` writes it, and `check_graphs` for tables that do not fit
together: after both, a reader can rely on every number in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ulam.tracing.instrument.graph import (
    BASES,
    DERIVED,
    KINDS,
    MOST_SLOTS,
    ROOT,
    Block,
    Edge,
    Graph,
    Item,
    Operand,
    ValueType,
)

_INT = 1 << 62
"""Numbers are below this."""


def plain(value: Any) -> Any:
    """A table, or a part of one, as values that JSON has."""
    if isinstance(value, ValueType):
        return [value.base, value.array_rank]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"real": repr(value)}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


# ---------------------------------------------------------------- reading


def decoded(entry: Any) -> Graph:
    """The inverse of `plain`. Raises ValueError."""
    return _object(Graph, entry, "graph")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _object(kind: Any, entry: Any, where: str) -> Any:
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where} is not an object")
    known = fields(kind)
    if unknown := set(entry) - {field.name for field in known}:
        raise ValueError(f"{where} has an entry {min(map(str, unknown))!r}")
    made: dict[str, Any] = {}
    for field in known:
        if field.name in entry:
            made[field.name] = _value(_hints(kind)[field.name], entry[field.name], f"{where}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{where} has no entry '{field.name}'")
    return kind(**made)


def _value(kind: Any, entry: Any, where: str) -> Any:
    if kind is ValueType:
        return _type(entry, where)
    origin = get_origin(kind)
    if origin is list:
        (element,) = get_args(kind)
        return [_value(element, e, f"{where}[{n}]") for n, e in enumerate(_of(list, entry, where))]
    if origin is dict:
        if not all(isinstance(key, str) for key in _of(dict, entry, where)):
            raise ValueError(f"{where} has keys that are no texts")
        return entry
    if origin in (Union, UnionType):
        (inner,) = (argument for argument in get_args(kind) if argument is not NoneType)
        return None if entry is None else _value(inner, entry, where)
    if kind is Any:
        return _constant(entry, where)
    if kind is float:
        return float(_of((int, float), _constant(entry, where), where))
    if kind in (int, str, bool):
        return _of(kind, entry, where)
    return _object(kind, entry, where)


def _of(kind: Any, entry: Any, where: str) -> Any:
    if not isinstance(entry, kind) or (kind is int and (isinstance(entry, bool) or not -_INT < entry < _INT)):
        raise ValueError(f"{where} is {entry!r:.40}")
    return entry


def _type(entry: Any, where: str) -> ValueType:
    match entry:
        case [str(base), int(rank)] if base in BASES and 0 <= rank < 100:
            return ValueType(base, rank)
        case _:
            raise ValueError(f"{where} is no type: {entry!r:.40}")


def _constant(entry: Any, where: str) -> Any:
    match entry:
        case {"real": str(text)}:
            return float(text)
        case None | bool() | int() | float() | str():
            return entry
        case _:
            raise ValueError(f"{where} is no constant: {entry!r:.40}")


# ---------------------------------------------------------------- tables that fit together


def check_graphs(graphs: Mapping[str, Graph]) -> None:
    """Raises ValueError for tables by symbol that no program has: numbers of what is not there."""
    if ROOT not in graphs:
        raise ValueError("there is no table of the whole trace")
    records: set[int] = set()
    for symbol, graph in graphs.items():
        if graph.symbol != symbol:
            raise ValueError(f"the table of {symbol!r} is of {graph.symbol!r}")
        _Check(graph, graphs).run()
        numbers = [block.record for block in graph.blocks if block.record]
        if not numbers or len(set(numbers)) != len(numbers) or records & set(numbers):
            raise ValueError(f"the numbers of the records of {symbol!r} are not its own")
        records |= set(numbers)
    root = graphs[ROOT]
    if max(records) > 1 << 24 or not 0 <= root.stub <= 1 << 24 or root.stub in records:
        raise ValueError("a number of a record is too large")
    calls = [item for block in root.blocks for item in block.items if item.child]
    if len(calls) != 1:
        raise ValueError("the whole trace is not one call")


class _Check:
    """Of one table."""

    def __init__(self, graph: Graph, graphs: Mapping[str, Graph]) -> None:
        self.graph, self.graphs = graph, graphs
        made = [*graph.parameters, *(a for b in graph.blocks for a in (*b.arguments, *b.items) if a.index)]
        self.values = {1, *(value.index for value in made)}
        self.distinct = len(self.values) == 1 + len(made)

    def run(self) -> None:
        graph = self.graph
        first = [parameter.index for parameter in graph.parameters]
        self._require(self.distinct and first == list(range(2, 2 + len(first))), "a value has two numbers")
        self._require([block.number for block in graph.blocks] == list(range(1, 1 + len(graph.blocks))), "blocks")
        self._require(bool(graph.blocks) and graph.blocks[0].record > 0, "the first block writes no record")
        for block in graph.blocks:
            self._block(block)

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise ValueError(f"the table of {self.graph.symbol!r} is wrong: {what}")

    def _block(self, block: Block) -> None:
        slots = block.slots
        self._require(block.record >= 0 and 0 <= slots <= MOST_SLOTS, "the size of a record")
        self._require(all(-1 <= s < slots for s in (block.counter, block.started, block.ended)), "a slot")
        for item in block.items:
            self._item(item, slots)
        for edge in block.edges:
            self._edge(edge)
        targets = [edge.target for edge in block.edges]
        self._require(len(targets) <= 2 and len(set(targets)) == len(targets), "the edges of a block")
        if not block.record:
            self._require(len(targets) == 2 and 0 not in targets, "a header leads to one block")

    def _item(self, item: Item, slots: int) -> None:
        self._require(item.kind in KINDS and item.derived in ("", *DERIVED), f"an op of kind {item.kind!r:.40}")
        for operand in item.operands:
            self._operand(operand)
        self._require(item.slot is None or 0 <= item.slot <= slots - item.type.slots, "a slot")
        self._require(item.stream is None or 0 <= item.stream < slots - 1, "a slot")
        self._require(item.target_slot is None or 0 <= item.target_slot < slots, "a slot")
        if item.derived in ("operand", "increment", "assign"):
            self._require(bool(item.operands), "an op without operands")
        if item.child:
            self._require(item.child in self.graphs, f"there is no function {item.child!r:.40}")
            parameters = self.graphs[item.child].parameters
            self._require(len(item.operands) >= len(parameters), f"a call of {item.child!r:.40}")

    def _edge(self, edge: Edge) -> None:
        self._require(edge.number in (1, 2) and 0 <= edge.target <= len(self.graph.blocks), "a jump")
        if edge.target:
            arguments = self.graph.blocks[edge.target - 1].arguments
            self._require(len(edge.arguments) == len(arguments), "a jump with other arguments than its target has")
        for operand in (*edge.arguments, edge.condition, edge.value):
            if operand is not None:
                self._operand(operand)

    def _operand(self, operand: Operand) -> None:
        self._require(not operand.index or operand.index in self.values, f"there is no value %{operand.index}")


__all__ = ["check_graphs", "decoded", "plain"]
