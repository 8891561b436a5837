"""The control-flow form of a traced function: basic blocks, numbered values, jumps with arguments.

This is what a reader needs to make the nodes of a trace from its records. Numbering (the printed `§b:%i`):

* Blocks are numbered from 1 in layout order: entry; of an `if` then, else, join; of a loop header, body, exit; `?:`,
  `&&` and `||` like `if`, with the value as argument of the join. An `else` that is not there has no block, nor has a
  join that nothing reaches.
* Values: %1 is the function, %2 ... its parameters; then, block by block, arguments and ops. Constants and promotions
  have no number.
* Arguments of a block are the variables that differ by where one came from and are read afterwards, in the order of
  their declarations, then those that the compiler has made.
* Edge &1 of a branch is the one where the condition does not hold, &2 the other.

Plain data, so that a saved trace can be read without the program.

Tables can be written as plain lists and dictionaries. `decoded` raises ValueError for whatever is not as `plain` writes
it, and `check_graphs` for tables that do not fit together: after both, a reader can rely on every number in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class ValueType:
    """`base`: int, real, bool (an int that is a truth value), vector, row_vector, matrix, void, or other (not kept)."""

    base: str
    array_rank: int = 0

    @property
    def rank(self) -> int:
        """How many sizes a value has."""
        return self.array_rank + {"vector": 1, "row_vector": 1, "matrix": 2}.get(self.base, 0)

    @property
    def is_int(self) -> bool:
        return self.base in ("int", "bool")

    @property
    def slots(self) -> int:
        """How many slots of a record a value takes."""
        return 0 if self.base in ("void", "other") else 1 + self.rank

    def __str__(self) -> str:
        return f"array[{',' * (self.array_rank - 1)}] {self.base}" if self.array_rank else self.base


BASES = (
    "int", "real", "bool", "vector", "row_vector", "matrix", "void", "other", "skipped", "function", "string",
)  # fmt: skip
"""What `ValueType.base` may be; the last three are of operands only."""

MOST_SLOTS = 1 << 24
"""A record has no more slots."""

VOID = ValueType("void")
SKIPPED = ValueType("skipped")
"""Of the value of an op that is no node."""

FUNCTION = ValueType("function")
"""Of a function that is passed on: its value is its name."""

OPAQUE = "opaque"
"""Name of the special form for a value that a higher-order function of the library has made: its operands are what it
is (the name of the argument of the function that is called, or `result`) and all that the library was given."""

ROOT = "trace.root"
"""Symbol of the function around the traced one: a single call. No function of a program has such a name."""


@dataclass(frozen=True)
class Operand:
    """What an op uses: value number `index`, or, if that is 0, `constant`. `type`: as which type it is used."""

    index: int
    constant: Any
    type: ValueType


@dataclass
class Argument:
    """An argument of a block. `name`: of the variable; empty for those that the compiler has made.

    `data`: a parameter that is given data only.
    """

    index: int
    type: ValueType
    name: str
    data: bool = False
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Place:
    """Where something stands in the source, as far as ops know: its beginning."""

    file: str
    line: int
    column: int


@dataclass
class Item:
    """An op of a block. Kinds: `call`, `special`, `target`, `tilde`, `constant`.

    Its value is in slot `slot` of the record, or is derived by the reader: `derived` says how (`DERIVED`). `child`:
    the table of the function that is entered here. `symbol`: of the function that is called; of indices and indexed
    assignments their kinds. `stream`: of an op that draws random numbers, the first of two slots: how many numbers the
    run had taken before it, and after it.

    `tilde` is a `~` statement: the call of the density, with the left side as first operand, which is data if
    `observed`, and the addition to the target. `target` is any other addition; its name is `target`, or `jacobian` for
    what counts only where the Jacobian adjustment is asked for. After both, the target is in slot `target_slot`.
    `unnormalized`: a density that may drop constants, in a run that was asked to.
    `text`: name of the parameter that `constrain` or `jacobian` is about.
    """

    index: int
    kind: str
    name: str
    operands: list[Operand]
    type: ValueType
    place: Place | None = None
    slot: int | None = None
    derived: str = ""
    child: str = ""
    throws: bool = False
    draws: bool = False
    symbol: str = ""
    stream: int | None = None
    text: str = ""
    target_slot: int | None = None
    observed: bool = False
    unnormalized: bool = False
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def calls_function(self) -> bool:
        """Whether it is an op of the library that is given a function of the program, its first operand."""
        return bool(self.operands) and self.operands[0].type == FUNCTION


KINDS = ("call", "special", "target", "tilde", "constant")

ADDING = ("target", "tilde")
"""Kinds of items that add to the target."""

DERIVED = ("condition", "increment", "declare", "assign", "operand", "dropped", "lost", "void")
"""`condition`: of a counted loop, by which block follows; `increment`: its operand and 1; `declare`: a container of
unassigned elements; `assign`: its first operand with elements replaced; `operand`: its only operand; `dropped`: 0, an
adjustment that was not asked for; `lost`: it is not recorded."""


@dataclass
class Edge:
    """A jump to block `target`, with arguments, or, where that is 0, a return of `value`.

    `condition`: what decides on it; `holds`: whether this is the edge where it does. `place`: of its statement, if it
    has one.
    """

    number: int
    target: int
    arguments: list[Operand] = field(default_factory=list[Operand])
    condition: Operand | None = None
    holds: bool = False
    value: Operand | None = None
    place: Place | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Block:
    """A basic block. `record`: its number among all blocks of the traced program; 0: it writes none.

    Headers of counted loops write none: that they ran, and how they went on, follows from the blocks around. The first
    block of the body of a `for` has the loop variable in slot `counter`. With timing, the first block of a function has
    the clock in slot `started`, the last one in `ended`.
    """

    number: int
    arguments: list[Argument] = field(default_factory=list[Argument])
    items: list[Item] = field(default_factory=list[Item])
    edges: list[Edge] = field(default_factory=list[Edge])
    record: int = 0
    slots: int = 0
    counter: int = -1
    started: int = -1
    ended: int = -1

    @property
    def nodes(self) -> int:
        """How many nodes of the tape one run of the block makes: arguments, ops, and the jump or return."""
        return len(self.arguments) + len(self.items) + 1


@dataclass
class Graph:
    """A traced function. `symbol` names the clone, `name` is its name in the source, `function` its symbol there.

    Of the root only: `stub` is the record of a call that is too deep to be entered, 0 if the depth is not counted at
    run time; `tick` are the seconds of a tick of the clock. `left_out`: some addition to the target is no node.
    `opaque`: it shows what a function of the library calls (see `higher_order`), not how that made its result.
    """

    symbol: str
    name: str
    function: str
    parameters: list[Argument]
    result: ValueType
    blocks: list[Block] = field(default_factory=list[Block])
    place: Place | None = None
    stub: int = 0
    tick: float = 0.0
    left_out: bool = False
    opaque: bool = False


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
    for each in known:
        if each.name in entry:
            made[each.name] = _value(_hints(kind)[each.name], entry[each.name], f"{where}.{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{where} has no entry '{each.name}'")
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
