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
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
