"""Values of loops, written once more where others need them, for iterations of which the numbers are known."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from ulam.dialects import rt
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.rewriting import applied_to, cloned


class NotKnown(Exception):
    """An element that cannot be computed where it is read."""


def copied_value(
    value: SSAValue,
    env: dict[SSAValue, SSAValue],
    around: scf.ForOp,
    write: OpWriter,
    instead: Callable[[rt.LoadOp, OpWriter], SSAValue | None] = lambda load, write: None,
) -> SSAValue:
    """What a value inside of a loop is for variables that `env` has; `instead`: of what is loaded."""
    if value in env or not is_inside(value, around):
        return env.get(value, value)
    op = value.owner
    if isinstance(op, Block):
        raise NotKnown
    if isinstance(op, rt.LoadOp) and (found := instead(op, write)) is not None:
        env[value] = found
    elif isinstance(op, scf.ForOp):
        for needed in free_values_of_op(op):
            env[needed] = copied_value(needed, env, around, write, instead)
        write.before(cloned(op, env))
    elif isinstance(op, (rt.LoadOp, rt.ViewOp)) or type(op) in PURE:
        operands = [copied_value(operand, env, around, write, instead) for operand in op.operands]
        env[value] = write.put(applied_to(op, operands))
    else:
        raise NotKnown
    return env[value]
