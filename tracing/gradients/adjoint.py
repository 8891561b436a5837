"""Adjoints on the tape: the derivative of a run's result with respect to every value of the run.

The tape is walked backwards, calls from their end, each node once. What a node adds to the adjoints of its operands is
its pullback at the recorded values, compiled by the rules of the AD dialect (`op_library`). A block's arguments pass
their adjoints to what the jump passed, parameters to what the caller did. Ints and conditions have none.

Time and memory are linear in the length of the tape. A container that is changed element by element has one array of
adjoints, with the history of its changes (`versions`).
Source: A. Griewank, A. Walther, "Evaluating Derivatives", section 3.2.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.library.functions import kind_of
from ulam.runtime.errors import ArgumentError
from ulam.runtime.names import part_positions
from ulam.tracing.gradients.moves import move_back, place_of_element
from ulam.tracing.gradients.op_library import NoDerivative
from ulam.tracing.instrument.graph import SKIPPED, Graph, Item, Operand, ValueType
from ulam.tracing.nodes import JumpNode, NestedCallNode, Node
from ulam.tracing.tape.frame_values import FrameValues, Versions
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Spot
from ulam.tracing.tape.values import MISSING, converted, is_mesh, selector

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

_Walk = Generator["_Walk", None, None]
"""A frame being walked; it gives the frames of calls, to be walked before it goes on."""


def has_adjoint(type_: ValueType) -> bool:
    """Whether values of a type have an adjoint: reals and containers of them."""
    return type_.base in ("real", "vector", "row_vector", "matrix")


def _carries(type_: ValueType) -> bool:
    """Whether adjoints go through values of a type: tuples have none of their own, but their fields may."""
    return has_adjoint(type_) or type_.base == "other"


Fields = dict[tuple[int, ...], Any]
"""The adjoint of a tuple: those of its fields that have one, by the way to them (`t.2.1` is (2, 1))."""


class FrameAdjoints:
    """The adjoints of one frame by position: of reals in `scalars`, where `reached`; of containers states of arrays."""

    __slots__ = ("scalars", "reached", "containers", "tuples", "done")

    def __init__(self, length: int) -> None:
        self.scalars = array("d", bytes(8 * (length + 1)))
        self.reached = bytearray(length + 1)
        self.containers: dict[int, Versions] = {}
        self.tuples: dict[int, Fields] = {}
        self.done: dict[int, tuple[Versions, int]] = {}

    def give(self, position: int, value: Any) -> None:
        """Adds to an adjoint. An array stays the caller's; `Versions` may be changed from now on."""
        self.reached[position] = 1
        if isinstance(value, Versions):
            if position not in self.containers:
                self.containers[position] = value
                return
            value = value.array
        if isinstance(value, dict):
            fields = self.tuples.setdefault(position, {})
            for way, part in value.items():
                fields[way] = fields[way] + part if way in fields else part
        elif not isinstance(value, np.ndarray):
            self.scalars[position] += value
        elif (found := self.containers.get(position)) is not None:
            found.add((...,), value)
        else:
            self.containers[position] = Versions(np.array(value))

    def take(self, position: int, type_: ValueType) -> Any:
        """A whole adjoint, complete now, to be given on; kept for readers as it is."""
        if type_.base == "other":
            return self.tuples.pop(position)
        if not type_.rank:
            return self.scalars[position]
        versions = self.containers.pop(position)
        self.done[position] = (versions, versions.mark())
        return versions


class Adjoints:
    """The adjoints of a trace, seen from `node` with `seed`."""

    def __init__(self, trace: Trace, node: Node, seed: Any) -> None:
        self.trace = trace
        self.node = node
        self.target = 0.0
        """Of the target at the place that the walk has reached."""
        self.broken: tuple[Node, int, Any] | None = None
        """The first node of the walk that passed on what is not finite, though its own adjoint is: with which operand,
        and what that got."""
        self.adding = _adding(trace.tape.tables.graphs)
        if is_density(trace) and any(graph.left_out for graph in trace.tape.tables.graphs.values()):
            raise ArgumentError(
                "not all that is added to the target was recorded: `record` needs tilde and target, and no Skip"
            )
        self._frames: dict[int, FrameAdjoints] = {}
        self.library = trace.op_library
        self._seed(seed)
        self._walk()

    def of(self, node: Node) -> Any:
        """See `Node.adjoint`."""
        if node.trace is not self.trace:
            raise ArgumentError("the node is of another trace")
        if isinstance(node, JumpNode) or not has_adjoint(node.type):
            return None
        if node.frame.in_opaque:
            return None
        found = self._frames.get(node.frame.place)
        if not node.type.rank:
            return 0.0 if found is None else found.scalars[node.at]
        if found is not None and (kept := found.done.get(node.at)) is not None:
            return kept[0].state(kept[1])
        if found is not None and (live := found.containers.get(node.at)) is not None:
            return live.array.copy()
        return np.zeros(np.shape(node.value))

    def gradient(self) -> Any:
        """See `Trace.adjoint`."""
        root = self.trace.root.frame
        parameters = root.graph.parameters
        found = [self.of(self.trace.node(root, number + 2)) for number in range(len(parameters))]
        if not is_density(self.trace):
            return {parameter.name: value for parameter, value in zip(parameters, found, strict=True)}
        return as_point(self.trace, [v for p, v in zip(parameters, found, strict=True) if not p.data])

    # ------------------------------------------------------------ the walk

    def _frame(self, frame: Frame) -> FrameAdjoints:
        found = self._frames.get(frame.place)
        if found is None:
            found = self._frames[frame.place] = FrameAdjoints(frame.length)
        return found

    def _seed(self, seed: Any) -> None:
        node = self.node
        if not has_adjoint(node.type):
            raise ArgumentError(f"the adjoint of {node} is asked for, but only reals and containers of them have one")
        if node.frame.in_opaque:
            raise NoDerivative(f"{node} is a part of what the library did: how its arguments led there is not recorded")
        value = node.value
        if value is MISSING:
            raise ArgumentError(f"{node} has no value: the run failed, or it was not kept")
        if np.shape(seed) != np.shape(value):
            raise ArgumentError(f"the seed has shape {np.shape(seed)}, the value {np.shape(value)}")
        self._frame(node.frame).give(node.at, np.array(seed, float) if node.type.rank else float(seed))

    def _walk(self) -> None:
        """Frames from the node's on outwards, the node's up to the node; within them calls as a whole."""
        frame, spot = self.node.frame, self.node._where
        while True:
            stack: list[_Walk] = [_Sweep(self, frame).run(spot)]
            while stack:
                following = next(stack[-1], None)
                if following is None:
                    stack.pop()
                else:
                    stack.append(following)
            if frame.parent is None:
                return
            call, frame = frame.call, frame.parent
            spot = frame.spot(call)
            spot = Spot(spot.step, spot.in_header, spot.offset - 1)


def as_point(trace: Trace, values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """What a log density's parameters have, one after the other, in the order of the unconstrained vector."""
    point = np.concatenate([np.zeros(0), *(np.reshape(value, -1) for value in values)])
    if trace.density is not None:
        places = part_positions(trace.density.model.parameter_variables())
        point[np.concatenate([np.zeros(0, np.intp), *places])] = point.copy()
    return point


def is_density(trace: Trace) -> bool:
    """Whether a model's log density was traced."""
    return trace.root.item.symbol.startswith("log_prob.")  # names in programs have no points


def _adding(graphs: Mapping[str, Graph]) -> set[str]:
    """The functions that add to the target, or call others that do."""
    items = {symbol: [item for block in graph.blocks for item in block.items] for symbol, graph in graphs.items()}
    found = {symbol for symbol, own in items.items() if any(item.kind in ("target", "tilde") for item in own)}
    while more := {s for s, own in items.items() if s not in found and any(item.child in found for item in own)}:
        found |= more
    return found


def _adds_unseen(item: Item) -> bool:
    """Whether an op is a call that has no nodes of its own, of a function that adds to the target."""
    return item.kind == "call" and kind_of(item.name).may_add_target


class _Sweep:
    """The walk over one frame."""

    def __init__(self, adjoints: Adjoints, frame: Frame, parameters: Mapping[int, Any] | None = None) -> None:
        self.all = adjoints
        self.frame = frame
        self.adjoints = adjoints._frame(frame)
        self.values = FrameValues(frame, parameters)

    def run(self, start: Spot | None) -> _Walk:
        """From `start`, included, to the beginning; None: a node among the parameters."""
        if start is not None:
            step, in_header, last = start.step, start.in_header, start.offset
            while step >= 0:
                yield from self._block(step, in_header, last)
                last = 1 << 60
                if in_header:
                    in_header = False
                else:
                    step -= 1
                    in_header = step >= 0 and self.values.has_header(step)
        self._to_caller()

    def _block(self, step: int, in_header: bool, last: int) -> _Walk:
        """The nodes of one run of a block, up to offset `last`."""
        block = self.values.block(step, in_header)
        base = self.values.base(step, in_header)
        count = len(block.arguments)
        adjoints = self.adjoints
        if last >= count + len(block.items) and not block.edges[0].target and block.edges[0].value is not None:
            self._return(block.edges[0].value, step, in_header, base + block.nodes)
        for ordinal in range(min(last - count + 1, len(block.items)) - 1, -1, -1):
            item = block.items[ordinal]
            position = base + 1 + count + ordinal
            if item.kind in ("target", "tilde") and self.all.target and item.derived != "dropped":
                adjoints.give(position, self.all.target)
            adds = bool(self.all.target) and (item.child in self.all.adding or _adds_unseen(item))
            if not adjoints.reached[position] and not adds:
                continue
            spot = Spot(step, in_header, count + ordinal)
            if item.child and not self._is_opaque(item) and self.frame.is_entered(spot, item):
                yield self._enter(item, position, step, in_header)
            else:
                self._item(item, position, step, in_header)
        for offset in range(min(last + 1, count) - 1, -1, -1):
            position = base + 1 + offset
            if adjoints.reached[position] and (passed := self.values.passed(step, in_header, offset)) is not None:
                self._give(*passed, adjoints.take(position, block.arguments[offset].type))

    def _is_opaque(self, item: Item) -> bool:
        return self.frame.tape.tables.graphs[item.child].opaque

    def _return(self, value: Operand, step: int, in_header: bool, position: int) -> None:
        """The adjoint of a call goes to what it returned."""
        if self.frame.parent is not None and not self.adjoints.reached[position]:
            outside = self.all._frame(self.frame.parent)
            call = self.frame.call
            if not outside.reached[call]:
                return
            self.adjoints.give(position, outside.take(call, self.frame.graph.result))
        if self.adjoints.reached[position]:
            self._give(value, step, in_header, self.adjoints.take(position, self.frame.graph.result))

    # ------------------------------------------------------------ operands

    def _position(self, operand: Operand, step: int, in_header: bool) -> int:
        """Of an operand that has an adjoint; 0 for others."""
        index = operand.index
        if operand.type == SKIPPED:
            raise ArgumentError("the context leaves out an op that the result is made of: its derivative is not known")
        if index < 2:
            return 0
        if index <= self.frame.head:
            return index if _carries(self.frame.graph.parameters[index - 2].type) else 0
        if not _carries(self.frame.layout.definitions[index].what.type):
            return 0
        return self.values.defined(index, step, in_header)[0]

    def _give(self, operand: Operand, step: int, in_header: bool, value: Any) -> None:
        """Adds to the adjoint of an operand; see `FrameAdjoints.give`."""
        position = self._position(operand, step, in_header)
        if position:
            self.adjoints.give(position, value)

    def _to_caller(self) -> None:
        """Adjoints of parameters go to what the caller passed."""
        frame = self.frame
        if frame.parent is None:
            return
        outside = _Outside(self.all, frame.parent, frame.parent.spot(frame.call))
        for number, parameter in enumerate(frame.graph.parameters):
            position = number + 2
            if not self.adjoints.reached[position]:
                continue
            value, target = self.adjoints.take(position, parameter.type), outside.position(outside.operand(number))
            if target:
                outside.adjoints.give(target, value)

    def _enter(self, item: Item, position: int, step: int, in_header: bool) -> _Walk:
        """The call at a position. Its parameters are known before it is walked, however deep it is."""
        node = self.all.trace.node(self.frame, position)
        assert isinstance(node, NestedCallNode)
        body = node.body
        if body is None or body.is_cut:
            raise ArgumentError("a part of the trace was not kept: track with more room (limit_bytes)")
        given = {
            number: converted(self.values.value(operand, step, in_header), parameter.type)
            for number, (operand, parameter) in enumerate(zip(item.operands, body.graph.parameters, strict=True), 2)
        }
        return _Sweep(self.all, body, given).run(body.spot(body.length))

    # ------------------------------------------------------------ ops

    def _item(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """An op whose value has an adjoint."""
        special = item.kind == "special"
        if item.kind == "call" and item.name == "target":
            self.all.target += self.adjoints.scalars[position]
        elif special and item.name == "index_assign":
            self._index_assign(item, position, step, in_header)
        elif (item.kind, item.name) in (("call", "index"), ("special", "element")):
            self._index(item, position, step, in_header)
        elif item.kind == "target" and not item.text:
            self._addition(item, position, step, in_header)
        elif item.kind == "call" and item.name in ("tuple", "complex", "field"):
            self._tuple(item, position, step, in_header)
        elif item.derived == "declare":
            self.adjoints.take(position, item.type)
        else:
            self._pull_back(item, position, step, in_header)

    def _cotangent(self, item: Item, position: int) -> Any:
        """The adjoint of an op's value, complete now: a float, or an array to be read."""
        if not item.type.rank:
            return self.adjoints.scalars[position]
        if not self.adjoints.reached[position]:
            return np.zeros(np.shape(self.all.trace.node(self.frame, position).value))
        return self.adjoints.take(position, item.type).array

    def _tuple(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """`(a, b)` and `t.1`."""
        value = self.adjoints.take(position, item.type)
        if isinstance(value, Versions):
            value = value.array.copy()
        fields: Fields = value if isinstance(value, dict) else {(): value}
        if item.name == "field":
            operand, number = item.operands
            self._give(operand, step, in_header, {(number.constant, *way): part for way, part in fields.items()})
            return
        inner: dict[int, Fields] = {}
        for (number, *way), part in fields.items():
            if way:
                inner.setdefault(number, {})[tuple(way)] = part
            else:
                self._give(item.operands[number - 1], step, in_header, part)
        for number, parts in inner.items():
            self._give(item.operands[number - 1], step, in_header, parts)

    def _addition(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """`target += x`: of a container, the sum of its elements."""
        (operand,) = item.operands
        cotangent = self._cotangent(item, position)
        if operand.type.rank and not item.type.rank:
            cotangent = np.full(self.values.shape(operand, step, in_header), cotangent)
        self._give(operand, step, in_header, cotangent)

    def _pull_back(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """By the op's pullback."""
        if item.type.base == "other":
            self._pull_back_fields(item, position, step, in_header)
            return
        self._pull(item, position, step, in_header, self._cotangent(item, position))

    def _pull_back_fields(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """Of a function of the library that gives a tuple: field by field."""
        value = self.adjoints.take(position, item.type)
        assert isinstance(value, dict)
        for (number, *_), part in value.items():
            self._pull(item, position, step, in_header, part, number)

    def _pull(
        self, item: Item, position: int, step: int, in_header: bool, cotangent: Any, number: int = 0
    ) -> None:  # fmt: skip
        operands = [self.values.value(operand, step, in_header) for operand in item.operands]
        try:
            adjoints = self.all.library.pullback(item, operands, cotangent, self.all.target, number=number)
        except NoDerivative as problem:
            raise NoDerivative(f"{self.all.trace.node(self.frame, position)}: {problem}") from None
        for number, (operand, adjoint) in enumerate(zip(item.operands, adjoints, strict=True)):
            if adjoint is not None:
                if self.all.broken is None and not np.isfinite(adjoint).all() and np.isfinite(cotangent).all():
                    self.all.broken = (self.all.trace.node(self.frame, position), number, adjoint)
                self._give(operand, step, in_header, adjoint)

    def _indices(self, item: Item, count: int, step: int, in_header: bool) -> list[Any]:
        return [self.values.value(operand, step, in_header) for operand in item.operands[1:count]]

    def _index(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """`x[i]`: adds to elements of x's adjoint, in place."""
        cotangent = self._cotangent(item, position)
        container = item.operands[0]
        target = self._position(container, step, in_header)
        if not target:
            return
        if (versions := self.adjoints.containers.get(target)) is None:
            shape = self.values.shape(container, step, in_header)
            self.adjoints.give(target, versions := Versions(np.zeros(shape)))
        indices = self._indices(item, len(item.operands), step, in_header)
        if item.kind == "special":
            at = place_of_element(container.type, int(indices[0]), versions.array.shape)
        else:
            at = selector(item.symbol.split(",") if item.symbol else [], indices, versions.array.shape)
        versions.add(at, np.reshape(cotangent, versions.array[at].shape) if is_mesh(at) else cotangent)

    def _index_assign(self, item: Item, position: int, step: int, in_header: bool) -> None:
        """`x[i] = v`: the adjoint of these elements goes to v, that of the others to x as it was before, in place."""
        versions = self.adjoints.take(position, item.type)
        *_, value = item.operands
        indices = self._indices(item, len(item.operands) - 1, step, in_header)
        at = selector(item.symbol.split(","), indices, versions.array.shape)
        if self._position(value, step, in_header):
            if any(isinstance(a, np.ndarray) and len(np.unique(a)) < a.size for a in at):
                operands = [np.zeros(versions.array.shape), *indices, self.values.value(value, step, in_header)]
                self._give(value, step, in_header, move_back(item, operands, versions.array)[-1])
            elif value.type.rank:
                shape = self.values.shape(value, step, in_header)
                self._give(value, step, in_header, np.reshape(versions.array[at], shape))
            else:
                self._give(value, step, in_header, float(np.reshape(versions.array[at], ())))
        versions.set(at, 0.0)
        self._give(item.operands[0], step, in_header, versions)


class _Outside:
    """Where the operands of a call are, in the frame of the caller."""

    def __init__(self, adjoints: Adjoints, frame: Frame, spot: Spot) -> None:
        self.frame, self.spot = frame, spot
        self.adjoints = adjoints._frame(frame)
        block = frame.block_at(spot)
        self._item = block.items[spot.offset - len(block.arguments)]

    def operand(self, number: int) -> Operand:
        return self._item.operands[number]

    def position(self, operand: Operand) -> int:
        """Of an operand that has an adjoint; 0 for others."""
        index, frame = operand.index, self.frame
        if index < 2:
            return 0
        if index <= frame.head:
            return index if _carries(frame.graph.parameters[index - 2].type) else 0
        if not _carries(frame.layout.definitions[index].what.type):
            return 0
        return frame.position_of(index, self.spot)


def find_adjoints(trace: Trace, seed: Any = 1.0, node: Node | None = None) -> Any:
    """See `Trace.adjoint`."""
    trace.adjoints = Adjoints(trace, trace.root if node is None else node, seed)
    return trace.adjoints.gradient()


def adjoint_of(node: Node) -> Any:
    """See `Node.adjoint`."""
    if node.trace.adjoints is None:
        raise ArgumentError("there are no adjoints yet: call trace.adjoint() first")
    return node.trace.adjoints.of(node)
