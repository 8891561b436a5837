"""Following data through a trace.

Every query visits a node once, in the order of the tape (backward: in the reverse order). Operands are found from the
table, users by one pass over the frame, whose result is kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import Flag, auto
from typing import Any

from ulam.runtime.errors import ArgumentError
from ulam.tracing.control import deciding_jump
from ulam.tracing.nodes import ArgumentNode, ItemNode, JumpNode, NestedCallNode, Node
from ulam.tracing.operands import Ref


class Axis(Flag):
    """Directions in the tree of nodes, and ways that data take: from siblings before, or from the caller."""

    PARENT = auto()
    CHILD = auto()
    PRECEDING = auto()
    FOLLOWING = auto()
    ANCESTOR = auto()
    DESCENDANT = auto()


def query(node: Node, axis: Axis) -> Iterator[Node]:
    """The nodes in one direction, in the order of the tape; ANCESTOR and PRECEDING begin with the nearest."""
    match axis:
        case Axis.PARENT:
            if node.parent is not None:
                yield node.parent
        case Axis.CHILD:
            yield from node.children
        case Axis.PRECEDING:
            for position in range(node.at - 1, 0, -1) if not node.is_root else ():
                yield node.trace.node(node.frame, position)
        case Axis.FOLLOWING:
            position = node.at
            while not node.is_root:
                position += 1
                try:
                    yield node.trace.node(node.frame, position)
                except IndexError:
                    return
        case Axis.ANCESTOR:
            current = node.parent
            while current is not None:
                yield current
                current = current.parent
        case Axis.DESCENDANT:
            stack = [iter(node.children)]
            while stack:
                child = next(stack[-1], None)
                if child is None:
                    stack.pop()
                    continue
                yield child
                stack.append(iter(child.children))
        case _:
            raise ArgumentError(f"query takes one axis, not {axis}")


def referenced(node: Node, axis: Axis = Axis.PRECEDING, numbered: bool = False) -> list[Any]:
    """The nodes whose values a node uses directly; literals are left out.

    Axes: PRECEDING, the same call; PARENT, from a parameter to what the caller passed; or both. `numbered` gives pairs:
    of a call the function would be 1, the first operand is 2; of a jump the condition is 0, the first argument 1; of a
    return the value is 1.
    """
    _check_axis(axis)
    found = [(n, operand.node) for n, operand in _numbered(node, axis) if isinstance(operand, Ref)]
    return found if numbered else [other for _, other in found]


def _check_axis(axis: Axis) -> None:
    if not axis or axis & ~(Axis.PRECEDING | Axis.PARENT):
        raise ArgumentError("data come along the axes PRECEDING and PARENT, or both")


def _numbered(node: Node, axis: Axis) -> list[tuple[int, Any]]:
    if isinstance(node, ArgumentNode):
        wanted = Axis.PARENT if node.is_parameter else Axis.PRECEDING
        if not axis & wanted:
            return []
        return [] if (source := node.source) is None else [(1, source)]
    if not axis & Axis.PRECEDING:
        return []
    if isinstance(node, JumpNode):
        pairs = list(enumerate(node.arguments, 1))
        return pairs if node.condition is None else [(0, node.condition), *pairs]
    first = 2 if isinstance(node, ItemNode) else 1
    return list(enumerate(node.operands, first))


def backward(
    node: Node,
    axis: Axis = Axis.PRECEDING,
    control: bool = False,
    visit: Callable[[Node], None] | None = None,
) -> list[Node]:
    """What a node's value was made of, directly or not: later nodes first, each once. `visit` is called for each.

    Along both axes the caller's nodes follow those of the call. `control`: also what decided that these nodes ran:
    jumps with their conditions, and what those were made of.
    """
    _check_axis(axis)
    if not control:
        return _collect(node, lambda n: referenced(n, axis), -1, visit)

    def step(current: Node) -> list[Node]:
        if isinstance(current, JumpNode) and current != node:  # it is here for what it decided, not for what it passed
            condition = current.condition
            found = [condition.node] if isinstance(condition, Ref) else []
        else:
            found = referenced(current, axis)
        jump = _decided_by(current, axis)
        return found if jump is None else [*found, jump]

    return _collect(node, step, -1, visit)


def _decided_by(node: Node, axis: Axis = Axis.PRECEDING) -> Node | None:
    """The jump that decided that a node ran; along PARENT, if none of its call did, the one that decided on that."""
    current: Node | None = node
    while current is not None and not current.is_root:
        if current.at > current.frame.head:
            position = deciding_jump(current.frame, current.frame.spot(current.at))
            if position:
                return current.trace.node(current.frame, position)
        if not axis & Axis.PARENT:
            return None
        current = current.parent
    return None


def dependents(node: Node, across: bool = False, control: bool = False) -> list[Node]:
    """The nodes of the same call that use its value directly; `across`: and parameters of calls it is passed to.

    `control`: of a jump, also the nodes that ran because it was taken; with `across`, and what ran in calls of them.
    """
    if node.is_root:
        return []
    users = _users(node)
    found = [node.trace.node(node.frame, position) for position in users.get(node.at, ())]
    if control and isinstance(node, JumpNode):
        decided = [node.trace.node(node.frame, position) for position in _decided(node).get(node.at, ())]
        if across:
            decided = [inner for outer in decided for inner in (outer, *_undecided_inside(outer))]
        return decided  # a jump has no value that anything else could use
    if across:
        found += [
            parameter
            for user in list(found)
            if isinstance(user, NestedCallNode)
            for parameter, operand in zip(user.call_arguments, user.arguments, strict=False)
            if isinstance(operand, Ref) and operand.node == node
        ]
    return found


def forward(
    node: Node, across: bool = False, control: bool = False, visit: Callable[[Node], None] | None = None
) -> list[Node]:
    """What was made of a node's value, directly or not, in the order of the tape, each once."""
    return _collect(node, lambda n: dependents(n, across, control), 1, visit)


def _users(node: Node) -> dict[int, list[int]]:
    """Position → positions of the nodes of the same call that use its value; one pass, then kept with the trace."""
    kept = node.trace.users
    found = kept.get(node.frame.place)
    if found is None:
        found = {}
        for position in range(1, node.frame.length + 1):
            for other in referenced(node.trace.node(node.frame, position)):
                entry = found.setdefault(other.at, [])
                if not entry or entry[-1] != position:
                    entry.append(position)
        kept[node.frame.place] = found
    return found


def _decided(node: Node) -> dict[int, list[int]]:
    """Position of a jump, or 0 → positions of the nodes of the same call that it decided on; one pass, then kept."""
    kept = node.trace.decided
    found = kept.get(node.frame.place)
    if found is None:
        frame, found = node.frame, dict[int, list[int]]()
        position = frame.head + 1
        while position <= frame.length:
            spot = frame.spot(position)
            count = frame.block_at(spot).nodes
            end = min(position + count, frame.length + 1)
            found.setdefault(deciding_jump(frame, spot), []).extend(range(position, end))
            position = end
        kept[frame.place] = found
    return found


def _undecided_inside(node: Node) -> list[Node]:
    """Of a call, the nodes that ran because it did, with those of calls among them."""
    found: list[Node] = []
    work = [node]
    while work:
        call = work.pop()
        if not isinstance(call, NestedCallNode) or not len(call):
            continue
        inside = call.children[0]
        inner = [call.trace.node(inside.frame, position) for position in _decided(inside).get(0, ())]
        found += inner
        work += inner
    return found


def _order(node: Node, sign: int) -> tuple[Any, ...]:
    """Deeper calls first when going back; within a call, by position."""
    path: list[int] = [node.at]
    frame = node.frame
    while frame.parent is not None:
        path.append(frame.call)
        frame = frame.parent
    return tuple(sign * p for p in reversed(path))


def _collect(
    node: Node, step: Callable[[Node], list[Node]], sign: int, visit: Callable[[Node], None] | None
) -> list[Node]:
    seen: set[Node] = {node}
    queue: list[tuple[tuple[Any, ...], int, Node]] = []
    count = 0

    def add(current: Node) -> None:
        nonlocal count
        for other in step(current):
            if other not in seen:
                seen.add(other)
                count += 1
                heapq.heappush(queue, (_order(other, sign), count, other))

    add(node)
    found: list[Node] = []
    while queue:
        _, _, current = heapq.heappop(queue)
        found.append(current)
        if visit is not None:
            visit(current)
        add(current)
    return found
