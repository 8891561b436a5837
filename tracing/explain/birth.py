"""Where a value stopped being finite: followed backwards through a trace, element by element of containers.

A *birth* is a node whose value is not finite though what it uses is. The way back leads through calls (to what they
return, and from their parameters to the caller's operands), through arguments of blocks to the jump that passed them,
and through indexed assignments to the one that set the element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ulam.tracing.gradients.moves import is_move, moved
from ulam.tracing.node_kinds import ConstrainNode
from ulam.tracing.nodes import ArgumentNode, Const, ItemNode, NestedCallNode, Node, Ref, ReturnNode
from ulam.tracing.tape.frames import fill_before
from ulam.tracing.tape.values import MISSING, Digest

Element = tuple[int, ...] | None
"""Which element of a container is meant, from 0; None: the scalar, or any."""

ELEMENTWISE = frozenset(("+", "-", ".*", "./", ".^", "!", "'"))
WITH_SCALAR = frozenset(("*", "/"))
"""Operators that go element by element if one side is a scalar."""

RESHAPES = frozenset(("to_vector", "to_row_vector"))
"""Functions that list the elements of a matrix by column, of other containers in their order."""

MOST_VISITED = 2_000
MOST_SLICED = 200


@dataclass(frozen=True)
class Followed:
    """A value that is looked at: of a node, or a literal that nobody assigned; and which element."""

    node: Node
    element: Element

    @property
    def value(self) -> Any:
        return element_of(self.node.value, self.element)


def is_finite(value: Any) -> bool:
    """Whether a value is finite, all elements of a container are; what is not kept counts as finite."""
    if value is MISSING or value is None or isinstance(value, str):
        return True
    if isinstance(value, Digest):
        return value.nans + value.infinities == 0
    return bool(np.isfinite(value).all())


def is_nan(value: Any) -> bool:
    """Whether a value, or an element of it, is NaN."""
    if isinstance(value, Digest):
        return value.nans > 0
    return not is_finite(value) and bool(np.isnan(value).any())


def element_of(value: Any, element: Element) -> Any:
    """The element of a container; the value itself for None."""
    if element is None or not isinstance(value, np.ndarray) or len(element) > value.ndim:
        return value
    return value[element]


def first_wrong(value: Any, nan: bool = False) -> Element:
    """The first element that is not finite (with `nan`: that is NaN, if there is one), in the order of memory."""
    if not isinstance(value, np.ndarray):
        return None
    wrong = np.isnan(value) if nan and np.isnan(value).any() else ~np.isfinite(value)
    found = np.argwhere(wrong)
    return tuple(int(i) for i in found[0]) if len(found) else None


# ---------------------------------------------------------------- one step back


def sources(at: Followed) -> list[tuple[Ref | Const, Element]]:
    """What a value was made of: operands, and which of their elements as far as that is known."""
    node, element = at.node, at.element
    if isinstance(node, ArgumentNode):
        source = node.source
        return [] if source is None else [(source, element)]
    if isinstance(node, NestedCallNode) and node.body is not None:
        result = returned(node)
        return [] if result is None else [(result, element)]
    if isinstance(node, ReturnNode):
        return [] if node.result is None else [(node.result, element)]
    if not isinstance(node, ItemNode):
        return []
    if node.function == "field" and (part := _field(node)) is not None:
        return [(part, element)]
    if is_move(node.item):
        return _of_move(node, element)
    return [(operand, _same_element(node, operand, element)) for operand in node.operands]


def _field(node: ItemNode) -> Ref | Const | None:
    """The part of a tuple that `t.1` gives, if the tuple was put together in the same call."""
    whole, number = node.operands
    if isinstance(whole, Ref) and isinstance(whole.node, ItemNode) and whole.node.function in ("tuple", "complex"):
        return whole.node.operands[int(number.value) - 1]
    return None


def returned(call: NestedCallNode) -> Ref | Const | None:
    """What a call that was entered gave back; None if it did not get so far."""
    if not len(call):
        return None
    last = call[-1]
    return last.result if isinstance(last, ReturnNode) else None


def _of_move(node: ItemNode, element: Element) -> list[tuple[Ref | Const, Element]]:
    """Of an op that only moves elements: the one operand that the element came from."""
    if element is not None and node.function == "index_assign" and _is_single(node):
        return [_before_assignments(node, element)]
    operands = node.operands
    carrying = _CARRYING.get(node.function)
    if element is None and node.type.rank:
        return [(operand, None) for operand in operands]
    values = [operand.value for operand in operands]
    if any(value is MISSING or isinstance(value, Digest) for value in values):
        return [(operand, None) for operand in operands]
    chosen = range(len(operands)) if carrying is None else [n % len(operands) for n in carrying]
    labels, starts, count = list(values), dict[int, int](), 0
    for n in chosen:
        starts[n] = count
        shape = np.shape(values[n])
        size = int(np.prod(shape))
        labels[n] = np.arange(count, count + size).reshape(shape)
        count += size
    way = np.asarray(moved(node.item, labels))
    found = int(way[element] if element is not None and way.ndim else way)
    number = max((n for n in chosen if starts[n] <= found), key=lambda n: starts[n])
    inner = np.unravel_index(found - starts[number], np.shape(values[number])) if np.shape(values[number]) else None
    return [(operands[number], None if inner is None else tuple(int(i) for i in inner))]


def _is_single(node: Node) -> bool:
    """Whether a node assigns to `x[i]` or `x[i, j]`, with ints."""
    if not isinstance(node, ItemNode) or node.function != "index_assign":
        return False
    return set(node.item.symbol.split(",")) == {"single"}


def _before_assignments(node: ItemNode, element: tuple[int, ...]) -> tuple[Ref | Const, Element]:
    """Goes back through assignments to other elements, which may be many; reads no container on the way."""
    current: Node = node
    while True:
        if isinstance(current, ItemNode) and _is_single(current):
            current = _in_loop(current, element)
            container, *indices, value = current.operands
            at = tuple(int(index.value) - 1 for index in indices)
            if element[: len(at)] == at:
                return value, element[len(at) :] or None
        else:
            assert isinstance(current, ArgumentNode) and current.source is not None
            container = current.source
        if not isinstance(container, Ref):
            return container, element
        current = container.node
        passes = isinstance(current, ArgumentNode) and not current.is_parameter and current.source is not None
        if not passes and not _is_single(current):
            return container, element


def _in_loop(node: ItemNode, element: tuple[int, ...]) -> ItemNode:
    """Of a loop that fills a container: the last iteration that assigned to an element, else the first of all."""
    assert node.where is not None
    fill = fill_before(node.frame, node.item, node.where)
    if fill is None or len(element) < len(fill.indices):
        return node
    hits = np.logical_and.reduce([index == at for index, at in zip(fill.indices, element, strict=False)])
    found = np.flatnonzero(hits)
    step = fill.first + (int(found[-1]) if len(found) else 0)
    other = node.trace.node(node.frame, node.frame.position(step, False, node.where.offset))
    assert isinstance(other, ItemNode)
    return other


_CARRYING: dict[str, tuple[int, ...]] = {"index": (0,), "index_assign": (0, -1), "element": (0,)}
"""Which operands of moving ops have the elements; the others are indices. Of literals, all do."""


def _same_element(node: ItemNode, operand: Ref | Const, element: Element) -> Element:
    """The same element of an operand of the same shape, where an op goes element by element."""
    if element is None:
        return None
    shape, own = np.shape(_array(operand.value)), np.shape(_array(node.value))
    if node.function in RESHAPES and len(own) == 1:
        return reshaped(shape, element[0])
    if node.function == "'":
        return element[::-1]
    return element if shape == own and _is_elementwise(node) else None


def _is_elementwise(node: ItemNode) -> bool:
    """Whether each element of the result is made of the same elements of the operands."""
    if node.function in WITH_SCALAR:
        return any(not operand_rank(operand) for operand in node.operands)
    return node.function in ELEMENTWISE or takes_scalars(node.function, len(node.operands))


@lru_cache(maxsize=512)
def takes_scalars(function: str, arity: int) -> bool:
    """Whether a function of the library is one of reals; of containers it then goes element by element."""
    from ulam.frontend.functions import signatures
    from ulam.frontend.stan_types import REAL

    found = signatures.overloads(function)
    return found is not None and found.exact((REAL,) * arity) is not None


def operand_rank(operand: Ref | Const) -> int:
    """How many sizes an operand has."""
    return operand.node.type.rank if isinstance(operand, Ref) else operand.type.rank


def reshaped(shape: tuple[int, ...], position: int) -> Element:
    """The element of a container that is at a position of `to_vector` of it."""
    if not shape:
        return None
    return tuple(int(i) for i in np.unravel_index(position, shape, order="F"))


def _array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else 0.0


# ---------------------------------------------------------------- the way back


def births(node: Node, element: Element = None) -> list[Followed]:
    """The nodes where a value that `node` uses stopped being finite, in the order of the tape.

    Where `node` itself is the first, it is the only one. A NaN is followed through NaNs as long as there are some: the
    other values that are not finite, such as bounds that are infinite, did no harm. A node that made a NaN of
    infinities is among those given, behind them.
    """
    found: list[Followed] = []
    seen: set[tuple[Node, Element]] = set()
    work = [Followed(node, element)]
    while work and len(seen) < MOST_VISITED:
        current = work.pop()
        if (current.node, current.element) in seen:
            continue
        seen.add((current.node, current.element))
        before = list(wrong_sources(current))
        work += before
        if not before or (is_nan(current.value) and not any(is_nan(other.value) for other in before)):
            found.append(current)
    return sorted(found, key=lambda f: tape_order(f.node))


def wrong_sources(at: Followed) -> Iterator[Followed]:
    """The nodes that a value which is not finite has this from; a NaN has it from NaNs, if there are some."""
    wrong: list[Followed] = []
    for operand, element in sources(at):
        value = element_of(operand.value, element)
        if not isinstance(operand, Ref) or is_finite(value):
            continue
        if element is None or isinstance(value, np.ndarray):
            element = (element or ()) + (first_wrong(value, is_nan(at.value)) or ()) or None
        wrong.append(Followed(operand.node, element))
    if is_nan(at.value) and any(is_nan(f.value) for f in wrong):
        wrong = [f for f in wrong if is_nan(f.value)]
    yield from wrong


def tape_order(node: Node) -> tuple[int, ...]:
    """A key that sorts nodes in the order in which they ran."""
    path = [node.at]
    frame = node.frame
    while frame.parent is not None:
        path.append(frame.call)
        frame = frame.parent
    return tuple(reversed(path))


# ---------------------------------------------------------------- what a value was made of


def slice_of(operand: Ref | Const, element: Element, most: int) -> list[Followed]:
    """The nodes that an operand's value was made of, nearest first, at most so many.

    Calls that were entered, jumps, and the unconstrained form of parameters are passed over.
    """
    found: list[Followed] = []
    if not isinstance(operand, Ref):
        return found
    of_ints = operand.node.type.is_int
    seen: set[tuple[Node, Element]] = set()
    work = [Followed(operand.node, element)]
    while work and len(found) < most and len(seen) < MOST_SLICED:
        current = work.pop(max(range(len(work)), key=lambda n: tape_order(work[n].node)))
        node = current.node
        if (node, current.element) in seen or (node.type.is_int and not of_ints):
            continue
        seen.add((node, current.element))
        if current.element is None and isinstance(node, ItemNode) and node.function == "index_assign":
            found.append(current)  # of all its elements there may be too many
            continue
        if not is_passed_over(node):
            found.append(current)
        for other, inner in sources(current):
            if isinstance(other, Ref) and not (isinstance(node, ConstrainNode) and _is_given(other)):
                work.append(Followed(other.node, inner))
    return found


def _is_given(operand: Ref) -> bool:
    """Of a parameter's transform: whether an operand is the unconstrained value, or a size."""
    node = operand.node
    return node.type.is_int or (isinstance(node, ArgumentNode) and not isinstance(node.source, Ref))


_SIGNS = ("-", "+")
_HANDS_ON = frozenset(("'", "field", "tuple", "complex"))


def is_passed_over(node: Node) -> bool:
    """Whether a node only hands on a value, as a parameter, an index or a call that was entered; or counts a loop."""
    if isinstance(node, ArgumentNode):
        return not node.is_parameter or isinstance(node.source, Ref)
    if isinstance(node, NestedCallNode) and node.body is not None:
        return True
    if isinstance(node, ItemNode):
        if node.function in _SIGNS and len(node.item.operands) == 1:
            return True
        return is_move(node.item) or node.item.derived in ("increment", "declare") or node.function in _HANDS_ON
    return isinstance(node, ReturnNode)
