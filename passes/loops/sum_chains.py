"""Sums that loops carry: the additions between the beginning of an iteration and its end, through branches.

for n, s = s0: a = s + x; b = if c: yield a + y   else: yield a;  yield b      the chain of s:  a, a + y, b
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue, Use

from ulam.passes.analysis.nesting import ancestor_in, terminator

_BOUNDS = 3
"""Operands of a loop before what it carries."""

Chain = dict[arith.AddfOp | scf.IfOp, int]
"""Additions, and branches behind what is added in their arms, in program order. An addition: the number of the operand
that is the sum so far; a branch: the number of the result that is.
"""


def chain_of(loop: scf.ForOp, position: int) -> Chain | None:
    """What an iteration adds to a number that a loop carries; None if it does anything else with it.

    Loops inside may add to it, too; what they add is in their own chains.
    """
    chain: Chain = {}
    block = loop.body.block
    return chain if _follow(block.args[1 + position], block, chain) == position else None


def only_use(value: SSAValue) -> Use | None:
    """The use of a value that is used once."""
    use = value.first_use
    return use if use is not None and value.has_one_use() else None


def _follow(value: SSAValue, block: Block, chain: Chain) -> int | None:
    """Follows a number that is added to, to the end of a block: its position among what the block yields."""
    end = terminator(block)
    while True:
        readers = [(found, use) for use in value.uses if (found := ancestor_in(use.operation, block)) is not None]
        if not readers:
            return None
        op, use = readers[0]
        if isinstance(op, scf.IfOp) and use.operation is not op:
            if any(other is not op for other, _ in readers) or not op.false_region.blocks:
                return None
            ends = {_follow(value, region.block, chain) for region in op.regions}
            position = ends.pop()
            if position is None or ends:
                return None
            chain[op] = position
            value = op.results[position]
        elif len(readers) > 1 or use.operation is not op:
            return None
        elif op is end:
            return use.index
        elif isinstance(op, arith.AddfOp):
            chain[op] = use.index
            value = op.result
        elif isinstance(op, scf.ForOp) and use.index >= _BOUNDS and chain_of(op, use.index - _BOUNDS) is not None:
            value = op.results[use.index - _BOUNDS]
        else:
            return None
