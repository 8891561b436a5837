"""Whether what a loop carries is a sum: what it was, and what was added to it, in branches and loops inside, too."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects.scalar_ops import may_reassociate
from ulam.passes.analysis.nesting import terminator

Chain = dict[SSAValue, Operation | None]
"""The values from one on that is added to, and the ops that they are results of; the first one has none."""


def sum_chain(
    argument: SSAValue, value: SSAValue, is_addition: Callable[[Operation], bool] | None = None
) -> Chain | None:
    """The values from `argument` to `value`, if each is the one before and something added; otherwise None.

    `is_addition`: which ops add, those whose order may change unless told otherwise.
    """
    found = _SumChain(is_addition or may_move)
    return found.chain if found.reaches(argument, value) else None


def may_move(op: Operation) -> bool:
    """Whether an op adds, and the order of such ops may change."""
    if isinstance(op, arith.AddfOp):
        return may_reassociate(op)
    return isinstance(op, arith.OrIOp) and op.result.type == i64


class _SumChain:
    """Looks at each value once: two that come one after the other may both be read by two."""

    def __init__(self, is_addition: Callable[[Operation], bool]) -> None:
        self._is_addition = is_addition
        self._known: dict[tuple[SSAValue, SSAValue], bool] = {}
        self.chain: Chain = {}

    def reaches(self, argument: SSAValue, value: SSAValue) -> bool:
        key = (argument, value)
        if key not in self._known:
            step = None if value is argument else self._step(argument, value)
            self._known[key] = step is not None or value is argument
            if self._known[key]:
                self.chain[value] = step
        return self._known[key]

    def _step(self, argument: SSAValue, value: SSAValue) -> Operation | None:
        """The op that `value` is the result of, if it adds something to `argument`."""
        op = value.owner
        if isinstance(op, Block):
            return None
        if isinstance(op, scf.ForOp):
            k = op.results.index(value)
            body = op.body.block
            pairs = [(argument, op.iter_args[k]), (body.args[k + 1], terminator(body).operands[k])]
        elif isinstance(op, scf.IfOp):
            k = op.results.index(value)
            pairs = [(argument, terminator(region.block).operands[k]) for region in op.regions if region.blocks]
            if len(pairs) < 2:
                return None
        elif self._is_addition(op):
            return op if any(self.reaches(argument, operand) for operand in op.operands) else None
        else:
            return None
        return op if all(self.reaches(first, last) for first, last in pairs) else None


def lone_sum(loop: scf.ForOp, position: int) -> Chain | None:
    """The values of what a loop carries at a position, if it is a sum that nothing else reads."""
    body = loop.body.block
    chain = sum_chain(body.args[1 + position], terminator(body).operands[position])
    return chain if chain is not None and _is_alone(chain, loop, position) else None


def _is_alone(chain: Chain, loop: scf.ForOp, position: int) -> bool:
    """Whether nothing but the sum itself reads its values."""
    steps = set(chain.values())
    for value in chain:
        for use in value.uses:
            user = use.operation
            if isinstance(user, scf.YieldOp):
                parent = user.parent_op()
                if parent is loop:
                    if use.index != position:
                        return False
                elif parent is None or parent.results[use.index] not in chain:
                    return False
            elif isinstance(user, scf.ForOp):
                if use.index < 3 or user.results[use.index - 3] not in chain:
                    return False
            elif user not in steps or sum(operand is value for operand in user.operands) != 1:
                return False
            elif sum(operand in chain for operand in user.operands) != 1:
                return False
    return True
