"""Loops whose iterations all do the same run once.

    for t: for k: bad |= not (x[k] > 0)        →        for t in lb:min(ub, lb + 1): for k: bad |= not (x[k] > 0)

What a loop carries must be bits that are collected by `or`, of what neither its variable nor what it carries decides:
then the second iteration collects what the first one did. Such loops are left of checks where what they guarded has
moved away.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.remarks import remark_on


@record(frozen=True)
class IdleIterations(FunctionPass):
    """Runs loops once whose iterations all do the same, in all functions or in the one that is named."""

    name = "idle-iterations"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        for loop in ops_within(function):
            if isinstance(loop, scf.ForOp) and _is_idle(loop):
                remark_on(IdleIterations.name, loop, "it runs once: all iterations do the same", done=True)
                write = OpWriter(loop)
                second = write.put(integer(arith.AddiOp, loop.lb, write.whole(1)))
                loop.operands[1] = write.put(integer(arith.MinSIOp, loop.ub, second))
                changed = True
        return changed


def _is_idle(loop: scf.ForOp) -> bool:
    """Whether nothing changes behind the first iteration, of which there may be several."""
    body = loop.body.block
    if not loop.results or any(body.args[0].uses) or constant_integer(loop.step) != 1 or _runs_once(loop):
        return False
    for op in ops_within(loop):
        if op is not loop and type(op) not in (scf.ForOp, scf.YieldOp, rt.LoadOp, rt.ViewOp) and type(op) not in PURE:
            return False
    return all(
        after is argument or (after.type == i64 and _collects(argument, after))
        for argument, after in zip(body.args[1:], terminator(body).operands, strict=True)
    )


def _runs_once(loop: scf.ForOp) -> bool:
    limit = loop.ub.owner
    if not isinstance(limit, arith.MinSIOp) or not isinstance(limit.rhs.owner, arith.AddiOp):
        return False
    return limit.rhs.owner.lhs is loop.lb and constant_integer(limit.rhs.owner.rhs) == 1


def _collects(argument: SSAValue, result: SSAValue) -> bool:
    """Whether a result is an argument with more bits, and the argument decides nothing else."""
    pending, collected = [argument], {argument}
    while pending:
        value = pending.pop()
        for use in value.uses:
            op = use.operation
            if isinstance(op, arith.OrIOp):
                found = [op.result]
            elif isinstance(op, scf.ForOp) and use.index >= 3:
                found = [op.results[use.index - 3], op.body.block.args[use.index - 2]]
            elif isinstance(op, scf.YieldOp):
                parent = op.parent_op()
                if isinstance(parent, scf.ForOp) and parent.results[use.index] in collected:
                    continue
                if value is result:
                    continue
                return False
            else:
                return False
            for one in found:
                if one not in collected:
                    collected.add(one)
                    pending.append(one)
    return result in collected
