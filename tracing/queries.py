"""Following data through a trace.

Every query visits a node once, in the order of the tape (backward: in the reverse order). Operands are found from the
table, users by one pass over the frame, whose result is kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import Flag, auto
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ulam.runtime.errors import ArgumentError
from ulam.tracing.instrument.graph import Graph
from ulam.tracing.nodes import ArgumentNode, ItemNode, JumpNode, NestedCallNode, Node, Ref
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Spot

if TYPE_CHECKING:
    from ulam.tracing.tape.layout import Layout


# ---------------------------------------------------------------- control dependence
#
# Which jump decided that a node ran. A block depends on an edge if it surely runs once that edge is taken, and might
# not before (Ferrante, Ottenstein and Warren, "The program dependence graph and its use in optimization"). A node
# depends on the last jump along such an edge.

_EXIT = 0


def post_dominators(graph: Graph) -> dict[int, int]:
    """Number of a block → the blocks that every way from it to a return leads through, itself included, as bits."""
    successors = {block.number: {edge.target for edge in block.edges} for block in graph.blocks}
    everything = (1 << (len(graph.blocks) + 1)) - 1
    found = {number: everything for number in successors}
    found[_EXIT] = 1
    changed = True
    while changed:
        changed = False
        for number in sorted(successors, reverse=True):
            common = everything
            for other in successors[number]:
                common &= found[other]
            if (now := common | 1 << number) != found[number]:
                found[number] = now
                changed = True
    return found


def control_dependences(graph: Graph) -> dict[int, dict[int, set[int]]]:
    """Number of a block → the blocks that decide whether it runs, each with the numbers of the edges to it."""
    after = post_dominators(graph)
    found: dict[int, dict[int, set[int]]] = {block.number: {} for block in graph.blocks}
    for block in graph.blocks:
        if len(block.edges) < 2:
            continue
        for edge in block.edges:
            for number, deciding in found.items():
                follows_anyway = number != block.number and after[block.number] >> number & 1
                if edge.target and after[edge.target] >> number & 1 and not follows_anyway:
                    deciding.setdefault(block.number, set()).add(edge.number)
    return found


@lru_cache(maxsize=64)
def _of_layout(layout: Layout) -> dict[int, dict[int, set[int]]]:
    return control_dependences(layout.graph)


def deciding_jump(frame: Frame, spot: Spot) -> int:
    """The position of the jump that decided that the block at a spot ran; 0: the call itself did."""
    layout = frame.layout
    best: Spot | None = None
    for number, edges in _of_layout(layout)[frame.block_at(spot).number].items():
        at = _last(frame, number, spot)
        if at is None or (best is not None and (at.step, at.in_header) <= (best.step, best.in_header)):
            continue
        taken = frame.edge_taken(at)
        if taken is not None and taken.number in edges:
            best = at
    if best is None:
        return 0
    return frame.position(best.step, best.in_header, frame.block_at(best).nodes - 1)


def _last(frame: Frame, number: int, spot: Spot) -> Spot | None:
    """The last run of a block before the one at a spot."""
    layout = frame.layout
    block = layout.graph.blocks[number - 1]
    if block.record:
        records, in_header = [block.record], False
        before = spot.step if spot.in_header else spot.step - 1
    else:
        records, in_header = layout.leading[number], True
        before = spot.step - 1
    if before < 0:
        return None
    step = frame.last_run(records, before)
    return None if step < 0 else Spot(step, in_header, 0)


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
