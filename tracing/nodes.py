"""Nodes: what users see of a trace. A node is a frame and a position; everything else is looked up when asked for.

What is read of several nodes, printed or worked out, is in modules that import this one; `face` has it as methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ulam.tracing.instrument.graph import FUNCTION, VOID, Argument, Edge, Item, Operand, ValueType
from ulam.tracing.program_text import FunctionText, Location, Span
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Spot
from ulam.tracing.tape.values import converted, same, value_text

if TYPE_CHECKING:
    from ulam.tracing.face import ItemMethods, NodeMethods
    from ulam.tracing.trace import Trace
else:  # `face` puts them in
    ItemMethods = NodeMethods = object


# ---------------------------------------------------------------- what a node uses


@dataclass(frozen=True)
class Ref:
    """An operand that is another node of the same frame: `@position`."""

    node: Node

    @property
    def position(self) -> int:
        return self.node.position or 0

    @property
    def value(self) -> Any:
        return self.node.value

    def __str__(self) -> str:
        return f"@{self.position}"


@dataclass(frozen=True, eq=False)
class Const:
    """An operand that is a literal, or that was given from outside: `⟨value⟩`."""

    value: Any
    type: ValueType = VOID

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self.type == other.type and same(self.value, other.value)

    def __hash__(self) -> int:
        value = self.value
        return hash((value.tobytes() if isinstance(value, np.ndarray) else value, self.type))

    def __str__(self) -> str:
        return f"⟨{value_text(self.value, self.type)}⟩"


# ---------------------------------------------------------------- the nodes of a call


class Children(Sequence["Node"]):
    """The nodes of a call, made when they are asked for; counted from 0."""

    def __init__(self, trace: Trace, frame: Frame) -> None:
        self._trace, self._frame = trace, frame

    def __len__(self) -> int:
        return self._frame.length

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = index + 1 if index >= 0 else len(self) + index + 1
        if position < 1:
            raise IndexError(f"there are {len(self)} nodes; {index} is not one of them")
        try:
            return self._trace.node(self._frame, position)
        except IndexError:
            raise IndexError(f"there are {len(self)} nodes; {index} is not one of them") from None

    def __iter__(self) -> Iterator[Node]:
        position = 1
        while True:
            try:
                node = self._trace.node(self._frame, position)
            except IndexError:
                gap = self._frame.gap
                if gap is None or not gap[0] <= position <= gap[1]:
                    return
                position = gap[1] + 1
                continue
            yield node
            position += 1


class Node(NodeMethods):
    """One step of a run. Two nodes are equal if they are the same place of the same trace."""

    __slots__ = ("frame", "at", "trace", "_where", "__weakref__")

    def __init__(self, trace: Trace, frame: Frame, at: int, where: Spot | None) -> None:
        self.trace = trace
        self.frame = frame
        self.at = at
        self._where = where

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return self.trace is other.trace and self.frame.place == other.frame.place and self.at == other.at

    def __hash__(self) -> int:
        return hash((id(self.trace), self.frame.place, self.at))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    # ------------------------------------------------------------ place

    @property
    def is_root(self) -> bool:
        """Whether this is the call that was tracked."""
        return self.frame.parent is None

    @property
    def position(self) -> int | None:
        """The printed `@i`, from 1 within its call; None for the root."""
        return None if self.is_root else self.at

    @property
    def where(self) -> Spot | None:
        """The step of its frame that it belongs to; None for parameters."""
        return self._where

    @property
    def parent(self) -> NestedCallNode | None:
        """The call that the node is a part of."""
        if self.frame.parent is None:
            return None
        found = self.trace.node(self.frame.parent, self.frame.call)
        assert isinstance(found, NestedCallNode)
        return found

    @property
    def location(self) -> Location | None:
        """Block and value (`§b:%i`), or block and edge (`§b:&k`); None for the root."""
        return None

    @property
    def ir(self) -> FunctionText:
        """The function that the node was recorded from: `node.ir[node.location]` is its op."""
        return self.trace.text_of(self.frame.graph)

    @property
    def span(self) -> Span | None:
        """Where it stands in the source."""
        location = self.location
        return None if location is None else self.ir.span(location)

    # ------------------------------------------------------------ what it is

    @property
    def value(self) -> Any:
        """Its value; MISSING if it was never reached or is not kept, None if it has none."""
        return None

    @property
    def type(self) -> ValueType:
        """The type of its value."""
        return VOID

    @property
    def children(self) -> Sequence[Node]:
        """The nodes of a call that was entered; none for others."""
        return ()

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary of one's own, made on first use; what the context put there is in it."""
        return self.trace.metadata_of(self)

    @property
    def site_metadata(self) -> Mapping[str, Any]:
        """What the context says of all nodes of this place of the program."""
        return {}

    @property
    def operands(self) -> list[Ref | Const]:
        """What it uses, in order."""
        return []

    def operand(self, operand: Operand) -> Ref | Const:
        """An operand as seen from this node."""
        assert self._where is not None
        if operand.index and not self.is_root:
            position = self.frame.position_of(operand.index, self._where)
            if position:
                return Ref(self.trace.node(self.frame, position))
        return Const(self.frame.operand(operand, self._where), operand.type)


class DataFlowNode(Node):
    """A node with a value."""

    __slots__ = ()


class ControlFlowNode(Node):
    """A jump or a return."""

    __slots__ = ()


class ArgumentNode(DataFlowNode):
    """The function itself (@1), a parameter, or an argument of a block."""

    __slots__ = ()

    @property
    def is_parameter(self) -> bool:
        """Whether it is the function or a parameter, not an argument of a block."""
        return self._where is None

    @property
    def number(self) -> int:
        """Of the value in its function: 1 is the function."""
        argument = self._argument
        return 1 if argument is None else argument.index

    @property
    def _argument(self) -> Argument | None:
        if self._where is None:
            return None if self.at == 1 else self.frame.graph.parameters[self.at - 2]
        return self.frame.block_at(self._where).arguments[self._where.offset]

    @property
    def site_metadata(self) -> Mapping[str, Any]:
        argument = self._argument
        return {} if argument is None else argument.metadata

    @property
    def is_data(self) -> bool:
        """Whether it is a parameter that is given data only."""
        argument = self._argument
        return argument is not None and argument.data

    @property
    def name(self) -> str:
        """Of the variable; empty if the compiler has made it."""
        argument = self._argument
        return self.frame.graph.name if argument is None else argument.name

    @property
    def location(self) -> Location:
        if self._where is None:
            return Location(1, self.at)
        return Location(self.frame.block_at(self._where).number, self.number)

    @property
    def type(self) -> ValueType:
        argument = self._argument
        return FUNCTION if argument is None else argument.type

    @property
    def value(self) -> Any:
        if self._where is not None:
            return self.frame.value(self.number, self._where)
        return self.frame.graph.name if self.at == 1 else self.frame.parameter(self.at - 2)

    @property
    def jump(self) -> JumpNode | None:
        """The jump that passed the value of a block's argument; None for parameters."""
        if self._where is None:
            return None
        source = self.frame.entered_from(self._where)
        if source is None:
            return None
        found = self.trace.node(self.frame, self.frame.position(source.step, source.in_header, source.offset))
        assert isinstance(found, JumpNode)
        return found

    @property
    def place_in_jump(self) -> int:
        """The printed `#j`: which argument of the jump it is, from 1."""
        assert self._where is not None
        return self._where.offset + 1

    @property
    def source(self) -> Ref | Const | None:
        """What the jump passed; of a parameter, what the caller did."""
        if self._where is not None:
            jump = self.jump
            return None if jump is None else jump.arguments[self._where.offset]
        parent = self.parent
        if parent is None or self.at == 1:
            return None
        return parent.operands[self.at - 2]

    @property
    def operands(self) -> list[Ref | Const]:
        if self._where is None or (source := self.source) is None:
            return []
        return [source]


class ItemNode(DataFlowNode, ItemMethods):
    """An op."""

    __slots__ = ()

    @property
    def item(self) -> Item:
        """Its row of the table."""
        assert self._where is not None
        return self.frame.item_at(self._where)

    @property
    def location(self) -> Location | None:
        if self.is_root:
            return None
        assert self._where is not None
        return Location(self.frame.block_at(self._where).number, self.item.index)

    @property
    def function(self) -> str:
        """The name of what is called: of a function, an operator, or a special form."""
        return self.item.name

    @property
    def arguments(self) -> list[Ref | Const]:
        """The operands."""
        return self.operands

    @property
    def operands(self) -> list[Ref | Const]:
        return [self.operand(operand) for operand in self.item.operands]

    @property
    def type(self) -> ValueType:
        return self.item.type

    @property
    def value(self) -> Any:
        assert self._where is not None
        return self.frame.item_value(self.item, self._where)

    @property
    def site_metadata(self) -> Mapping[str, Any]:
        return self.item.metadata

    @property
    def finished(self) -> bool:
        """Whether it was over when the run ended."""
        assert self._where is not None
        ordinal = self._where.offset - len(self.frame.block_at(self._where).arguments)
        return self._where.in_header or ordinal < self.frame.reached(self._where.step)

    @property
    def threw(self) -> bool:
        """Whether an error came from here (for a call that was entered: from inside)."""
        if not self.trace.failed:
            return False
        assert self._where is not None
        ordinal = self._where.offset - len(self.frame.block_at(self._where).arguments)
        return not self._where.in_header and self.frame.throwing(self._where.step) == ordinal


class ConstantNode(ItemNode):
    """A literal, where the context has them as nodes."""

    __slots__ = ()


class PrimitiveCallNode(ItemNode):
    """A call that was not entered."""

    __slots__ = ()


class SpecialCallNode(ItemNode):
    """An indexed assignment, a check, `print`, `reject`, a declaration, a step of a loop over elements."""

    __slots__ = ()


class DrawNode(PrimitiveCallNode):
    """A call that draws random numbers."""

    __slots__ = ()


class NestedCallNode(PrimitiveCallNode):
    """A call that was entered. `node[4]` is the node printed as `@4`."""

    __slots__ = ()

    @property
    def body(self) -> Frame | None:
        """The frame of the call; None if nothing of it is kept."""
        assert self._where is not None
        place = self.frame.child_place(self._where, self.item)
        if place < 0:
            return None
        return self.frame.tape.frame(self.item.child, place, self.frame, self.at)

    @property
    def is_opaque(self) -> bool:
        """Whether its nodes are what a function of the library calls, and do not tell how its value was made."""
        return self.frame.tape.tables.graphs[self.item.child].opaque

    @property
    def time(self) -> float | None:
        """How long the call took, in seconds; None without `timing`, and where it did not get to its end."""
        span = self.interval
        return None if span is None else span[1] - span[0]

    @property
    def interval(self) -> tuple[float, float] | None:
        """When it began and ended, in seconds of one clock for the whole run."""
        body = self.body
        return None if body is None else body.seconds()

    @property
    def children(self) -> Sequence[Node]:
        body = self.body
        return () if body is None else Children(self.trace, body)

    @property
    def call_arguments(self) -> list[ArgumentNode]:
        """The nodes of the parameters, inside."""
        count = len(self.item.operands)
        found = [self[n] for n in range(2, 2 + count)] if self.body is not None else []
        return [node for node in found if isinstance(node, ArgumentNode)]

    @overload
    def __getitem__(self, position: int) -> Node: ...
    @overload
    def __getitem__(self, position: list[int] | slice) -> list[Node]: ...
    def __getitem__(self, position: int | list[int] | slice) -> Node | list[Node]:
        """By printed position, from 1; -1 is the last. Raises IndexError."""
        children = self.children
        if isinstance(position, list):
            return [self[p] for p in position]
        if isinstance(position, slice):
            count = len(children)
            start, stop, step = position.start, position.stop, position.step or 1
            begin = 1 if start is None else start if start > 0 else count + 1 + start
            end = count + 1 if stop is None else stop if stop > 0 else count + 1 + stop
            return [self[p] for p in range(max(begin, 1), min(end, count + 1), step)]
        if position == 0:
            raise IndexError("positions count from 1: there is no node 0")
        try:
            return children[position - 1] if position > 0 else children[position]
        except IndexError:
            raise IndexError(f"there is no node {position}: the call has {len(children)}") from None

    def __len__(self) -> int:
        return len(self.children)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Node]:
        return iter(self.children)


class JumpNode(ControlFlowNode):
    """A jump that was taken."""

    __slots__ = ()

    @property
    def edge(self) -> Edge | None:
        """Its row of the table."""
        assert self._where is not None
        return self.frame.edge_taken(self._where)

    @property
    def location(self) -> Location | None:
        assert self._where is not None
        edge = self.edge
        number = self.frame.block_at(self._where).number
        return None if edge is None else Location(number, edge.number, is_edge=True)

    @property
    def site_metadata(self) -> Mapping[str, Any]:
        edge = self.edge
        return {} if edge is None else edge.metadata

    @property
    def target(self) -> int:
        """The number of the block that it leads to."""
        edge = self.edge
        return 0 if edge is None else edge.target

    @property
    def arguments(self) -> list[Ref | Const]:
        """What it passes to the arguments of that block."""
        edge = self.edge
        return [] if edge is None else [self.operand(a) for a in edge.arguments]

    @property
    def condition(self) -> Ref | Const | None:
        """What decided on it; None if nothing did."""
        edge = self.edge
        return None if edge is None or edge.condition is None else self.operand(edge.condition)

    @property
    def operands(self) -> list[Ref | Const]:
        condition = self.condition
        return self.arguments if condition is None else [condition, *self.arguments]


class ReturnNode(ControlFlowNode):
    """The end of a call."""

    __slots__ = ()

    @property
    def _edge(self) -> Edge:
        assert self._where is not None
        return self.frame.block_at(self._where).edges[0]

    @property
    def location(self) -> Location:
        assert self._where is not None
        return Location(self.frame.block_at(self._where).number, 1, is_edge=True)

    @property
    def site_metadata(self) -> Mapping[str, Any]:
        return self._edge.metadata

    @property
    def result(self) -> Ref | Const | None:
        """What is returned."""
        value = self._edge.value
        return None if value is None else self.operand(value)

    @property
    def operands(self) -> list[Ref | Const]:
        result = self.result
        return [] if result is None else [result]

    @property
    def type(self) -> ValueType:
        return self.frame.graph.result

    @property
    def value(self) -> Any:
        """What is returned."""
        value = self._edge.value
        assert self._where is not None
        return None if value is None else converted(self.frame.operand(value, self._where), self.type)
