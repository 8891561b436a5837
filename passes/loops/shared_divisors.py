"""Loops that divide by what no loop changes multiply by its inverse, which is divided for once, ahead of them.

    for i: ... x[i] / s ... y[i] / s ...    →    r = 1 / s      for i: ... x[i] * r ... y[i] * r ...

A division takes as long as four to eight products do, and its slopes divide twice more. A quotient may differ in its
last two bits. What an outer loop changes is left, and loops in a `while`: inner ones are short, often, and no division
is saved. Where the inverse of what is not 0 overflows (below 5.6e-309), it is the largest number instead, with no
slope, so that 0 / s is still 0. What is compared or rounded is divided as before: a quotient of 1 stays 1 there. Before
reverse mode, behind what looks for quotients.
"""

from __future__ import annotations

import sys

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within, parent_of
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses

_LARGEST = sys.float_info.max
_STEPS = frozenset("floor ceil round trunc fmod".split())
_KINDS = (arith.CmpfOp, arith.FPToSIOp)


@record(frozen=True)
class SharedDivisors(FunctionPass):
    """Multiplies by inverses where loops divide by what none of them changes, in all functions or in one."""

    name = "shared-divisors"

    def changes_function(self, function: func.FuncOp) -> bool:
        inverses: dict[tuple[SSAValue, scf.ForOp], SSAValue] = {}
        changed = False
        for op in [op for op in ops_within(function) if type(op) is arith.DivfOp]:
            loop = _outermost_loop(op)
            if loop is None or is_inside(op.rhs, loop) or known_constant(op.lhs) is not None or is_stepped(op):
                continue
            key = (op.rhs, loop)
            if key not in inverses:
                inverses[key] = inverse_of(op.rhs, OpWriter(loop))
                remark_on(self.name, op, "divided for once, ahead of the loop", done=True, subject="division")
            product = OpWriter(op).real(arith.MulfOp, op.lhs, inverses[key])
            replace_uses(op.result, product)
            discard(op)
            changed = True
        return changed


def _outermost_loop(op: Operation) -> scf.ForOp | None:
    """The outermost loop around `op`; None if there is none, or if it stands in a loop that is not counted."""
    found = None
    parent = parent_of(op)
    while isinstance(parent, scf.ForOp | scf.IfOp):
        found = parent if isinstance(parent, scf.ForOp) else found
        parent = parent_of(parent)
    return found if isinstance(parent, func.FuncOp) else None


def is_stepped(op: arith.DivfOp) -> bool:
    """Whether the quotient decides something, or is rounded: where it ends in its last bit matters then."""
    users = [use.operation for use in op.result.uses]
    rounds = any(isinstance(user, rt.MathOp) and user.function.data in _STEPS for user in users)
    return rounds or any(isinstance(user, _KINDS) for user in users)


def inverse_of(divisor: SSAValue, write: OpWriter) -> SSAValue:
    """One over it, finite unless it is 0."""
    number = known_constant(divisor)
    if isinstance(number, float) and 1 / _LARGEST < abs(number):
        return write.number(1 / number)
    inverse = write.real(arith.DivfOp, write.number(1.0), divisor)
    size = write.put(rt.MathOp("fabs", (inverse,)))
    overflows = write.both([write.compare("ogt", size, _LARGEST), write.compare("une", divisor, 0.0)])
    is_negative = write.compare("olt", divisor, 0.0)
    largest = _chosen(write, is_negative, write.number(-_LARGEST), write.number(_LARGEST))
    return _chosen(write, overflows, largest, inverse)


def _chosen(write: OpWriter, condition: SSAValue, one: SSAValue, other: SSAValue) -> SSAValue:
    return write.put(arith.SelectOp.create(operands=(condition, one, other), result_types=(f64,)))
