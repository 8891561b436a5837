"""Loops from 1 on, as programs have them, begin at 0, as those that vectors become do.

    for n in 1:N + 1: ... x[n - 1] ... n ...    →    for n in 0:N: ... x[n] ... n + 1 ...

Loops over the same rows have the same range then, and `fuse-loops` makes one of them, whichever way each is written:
`mu = exp(a + b * x)` with vectors, and `if (c[n]) target += f(y[n], mu[n])` row by row. Loops that read nothing at the
element before their number stay. Those from a later element on that store nothing are counted likewise, so that they
read what such loops have filled by the same numbers.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_STORES = (rt.StoreOp, rt.CopyOp, rt.FillOp, ad.AccumulateOp)


class LoopsFromZero(TellingPass):
    """Lets loops of `evaluate` that begin at 1 begin at 0."""

    name = "loops-from-zero"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        loops = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.ForOp]
        changed = False
        for loop in loops:
            first = constant_integer(loop.lb)
            if first is None or first < 1 or constant_integer(loop.step) != 1:
                continue
            if first == 1 or not any(isinstance(op, _STORES) for op in ops_within(loop)):
                changed = _begin_before(loop, first) or changed
        return changed


def _begin_before(loop: scf.ForOp, begin: int) -> bool:
    """Whether its iterations read what is before their number, so that they have been given other numbers."""
    body, block = loop.body.block, loop.parent
    variable, first = body.args[0], body.first_op
    before = [use.operation for use in variable.uses if _is_one_less(use.operation, variable)]
    if not before or first is None or block is None:
        return False
    others = [use for use in variable.uses if use.operation not in before]
    if others:
        number = integer(arith.AddiOp, variable, loop.step)
        body.insert_op_before(number, first)
        for use in others:
            use.operation.operands[use.index] = number.results[0]
    for op in before:
        replace_uses(op.results[0], variable)
        discard(op)
    lower = constant(begin - 1, i64)
    block.insert_op_before(lower, loop)
    loop.operands[0], loop.operands[1] = lower.result, _one_less(loop.ub, loop)
    return True


def _is_one_less(op: Operation, variable: SSAValue) -> bool:
    return isinstance(op, arith.SubiOp) and op.lhs is variable and constant_integer(op.rhs) == 1


def _one_less(value: SSAValue, loop: scf.ForOp) -> SSAValue:
    """An integer less 1, ahead of a loop."""
    op = value.owner
    if isinstance(op, arith.AddiOp):
        for one, other in (op.operands, tuple(op.operands)[::-1]):
            if constant_integer(one) == 1:
                return other
    assert loop.parent is not None
    less = integer(arith.SubiOp, value, loop.step)
    loop.parent.insert_op_before(less, loop)
    return less.results[0]
