"""The walk over nested ops.

xDSL's own (`Operation.walk`) takes time in proportion to the depth for every op: where a pass walks every level of a
deep nest, such as a long chain of `else if`, that makes the cube of its length. On ordinary functions, too, it costs
several times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import cast

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

operand_tuple: Callable[[Operation], tuple[SSAValue, ...]] = attrgetter("_operands")
"""The operands as a plain tuple: an `OpOperands` view costs several times as much to make and to go through."""
previous_op: Callable[[Operation], Operation | None] = attrgetter("_prev_op")
following_op: Callable[[Operation], Operation | None] = attrgetter("_next_op")
"""`prev_op` and `next_op`, which are properties, at half their cost: for what is done to every op."""
first_op: Callable[[Block], Operation | None] = attrgetter("_first_op")


def result_of(op: Operation) -> OpResult:
    """The only result of an op: to index its tuple of results takes three times as long."""
    (result,) = op.results
    return result


def operand_at(op: Operation, index: int) -> SSAValue:
    """`op.operands[index]`, in a third of the time."""
    return item(operand_tuple(op), index)


item = tuple.__getitem__
"""An element of a tuple: xDSL's tuples of values have a function in Python for it."""


def parent_of(op: Operation) -> Operation | None:
    """The op that has a region in which `op` stands."""
    block = op.parent
    region = block.parent if block is not None else None
    return region.parent if region is not None else None


def ops_of(block: Block) -> list[Operation]:
    """The ops of a block, in order: xDSL's view goes through them twice to make a list."""
    found: list[Operation] = []
    op = block._first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def blocks_of(op: Operation) -> list[Block]:
    """The blocks of an op's regions, in order."""
    found: list[Block] = []
    for region in op.regions:
        block = region._first_block
        while block is not None:
            found.append(block)
            block = block._next_block
    return found


def ops_within(root: Operation | Block | Region) -> Iterator[Operation]:
    """All ops below `root`, and itself if it is one, in program order. The ops must not change meanwhile."""
    waiting: list[Operation] = []  # firsts of chains of ops, those that come next at the end
    if type(root) is Region:
        _add_chains((root,), waiting)
    elif type(root) is Block:
        if root._first_op is not None:
            waiting.append(root._first_op)
    else:
        outermost = cast(Operation, root)
        yield outermost
        _add_chains(outermost.regions, waiting)
    while waiting:
        op: Operation | None = waiting.pop()
        while op is not None:
            following = op._next_op
            yield op
            if op.regions:
                if following is not None:
                    waiting.append(following)
                _add_chains(op.regions, waiting)
                break
            op = following


def _add_chains(regions: Sequence[Region], waiting: list[Operation]) -> None:
    for region in regions[::-1]:
        block = region._last_block
        while block is not None:
            if block._first_op is not None:
                waiting.append(block._first_op)
            block = block._prev_block
