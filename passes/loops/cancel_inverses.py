"""Functions that undo each other, where only lowered code shows it.

    square(sqrt(x))  →  x          log(sqrt(x))  →  log(x) / 2

    for t, s = s0: ... square(s) ... yield sqrt(v)    →    for t, q = square(s0): ... q ... yield v

In loops that divide by the root its logarithm stays, whose slope is that quotient.

The root may be one that the iteration before has taken (`carry-stores` makes those seen that went through memory). Only
where x cannot be negative (`value_ranges`): else the root is NaN, and so is the result. At x = 0 the slope becomes
that of x; it was 0 times infinity.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import BlockArgument, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, terminator
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.squares import pair_up, squares_of
from ulam.passes.loops.value_ranges import ValueRanges
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, rebuild, replace_uses


@record(frozen=True)
class CancelInverses(FunctionPass):
    """Cancels squares and logarithms of square roots, of all functions or of the one that is named."""

    name = "cancel-inverses"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        roots = [op for op in ops_within(function) if isinstance(op, rt.MathOp) and op.function.data == "sqrt"]
        if roots:
            ranges = ValueRanges(function)
            for found in roots:
                changed = _cancel(found, ranges) or changed
        return changed


def _cancel(root: rt.MathOp, ranges: ValueRanges) -> bool:
    """Cancels what is done to a root, in this iteration and in the next."""
    for value in (root.res, *_carried(root)):
        pair_up(value)
    squares = {value: found for value in (root.res, *_carried(root)) if (found := squares_of(value))}
    users = [use.operation for use in root.res.uses]
    # In a loop an inverse that is there is the slope of the logarithm of the root, too.
    divides = enclosing(root, scf.ForOp) is not None and any(_is(user, "inv") for user in users)
    logs = [] if divides else [user for user in users if _is(user, "log")]
    if not logs and not squares:
        return False
    (radicand,) = root.operands
    if not ranges.is_never_negative(radicand):
        remark(CancelInverses.name, root.location, "square root", "its argument may be negative", done=False)
        return False
    for value, users in squares.items():
        square = _carry(value, radicand) if isinstance(value, BlockArgument) else radicand
        for user in users:
            replace_uses(user.results[0], square)
            discard(user)
    for log in logs:
        _halve(log, radicand)
    remark(CancelInverses.name, root.location, "square root", "what undoes it is left out", done=True)
    return True


def _is(op: Operation, function: str) -> bool:
    return isinstance(op, rt.MathOp) and op.function.data == function


def _carried(root: rt.MathOp) -> list[BlockArgument]:
    """What the root of the iteration before is called, in loops that carry it."""
    return [
        loop.body.block.args[1 + use.index]
        for use in root.res.uses
        if isinstance(use.operation, scf.YieldOp)
        and isinstance(loop := use.operation.parent_op(), scf.ForOp)
        and root.parent is loop.body.block
    ]


def _carry(root: BlockArgument, radicand: SSAValue) -> SSAValue:
    """Carries the radicand beside its root; its value at the beginning of an iteration."""
    body = root.owner
    loop = body.parent_op()
    assert isinstance(loop, scf.ForOp) and loop.parent is not None
    start = rt.MathOp("square", (loop.iter_args[root.index - 1],), location=loop.location)
    loop.parent.insert_op_before(start, loop)
    argument = body.insert_arg(f64, len(body.args))
    end = terminator(body)
    end.operands = [*end.operands, radicand]
    rebuild(loop, [*loop.operands, start.res], [*(result.type for result in loop.results), f64])
    return argument


def _halve(log: Operation, radicand: SSAValue) -> None:
    assert log.parent is not None
    half = constant(0.5, f64)
    new = rt.MathOp("log", (radicand,), location=log.location)
    product = arith.MulfOp.create(
        operands=(half.result, new.res), result_types=(f64,), properties={"fastmath": arith.FastMathFlagsAttr("none")}
    )
    log.parent.insert_ops_before([half, new, product], log)
    replace_uses(log.results[0], product.result)
    discard(log)
