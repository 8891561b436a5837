"""Tells emission which loops cannot be widened, and which profit from several accumulators.

`masked_tail`: the body evaluates functions; what is left over after the last full vector is then computed by one more,
masked, instead of by a scalar loop, which for few elements takes most of the time and whose code takes long to make.
So is that of any loop whose number of iterations is known, small, and no multiple of a vector's length. Not in nests,
whose inner loops often have two or three iterations.
`serial`: iterations depend on each other, or the body branches; what runs there is a chain of scalar operations, for
which libm's functions are faster than our own widened ones (levels 3 and 4). `interleave`: a short body that only sums,
bound by the latency of the addition unless several sums run side by side.
Measured in docs/architecture.md, "Math functions".
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, f64, i64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.passes.analysis.constants import constant_integer
from ulam.passes.analysis.nesting import terminator
from ulam.passes.lower.tables import is_costly_function

_SERIAL_OPS = (rt.KernelOp, rt.CheckOp, func.CallOp, rt.AllocOp, rt.MarkOp, rt.CopyOp, rt.FillOp)
_SHORT = 12
_INTERLEAVE = IntegerAttr(4, i64)
_LANES = 8
_MASKING = 1.3  # time of a masked iteration of a cheap loop, in that of one without a mask


def run_on(op: Operation) -> None:
    """Marks the loops at or below `op`."""
    for loop in op.walk():
        if isinstance(loop, scf.ForOp) and "cold" not in loop.attributes:
            if _is_serial(loop):
                loop.attributes["serial"] = UnitAttr()
            elif isinstance(loop.parent_op(), func.FuncOp) and _has_costly_rest(loop):
                loop.attributes["masked_tail"] = UnitAttr()
            elif _is_short_sum(loop.body.block):
                loop.attributes["interleave"] = _INTERLEAVE
            elif isinstance(loop.parent_op(), func.FuncOp) and any(map(is_costly_function, loop.body.block.ops)):
                loop.attributes["masked_tail"] = UnitAttr()


def _has_costly_rest(loop: scf.ForOp) -> bool:
    """Whether what is left over after the last full vector, one by one, takes longer than masks for all iterations."""
    lower, upper, step = (constant_integer(value) for value in (loop.lb, loop.ub, loop.step))
    if lower is None or upper is None or not step:
        return False
    vectors, rest = divmod(len(range(lower, upper, step)), _LANES)
    return vectors > 0 and rest > 0 and vectors + rest > _MASKING * (vectors + 1)


def _is_serial(loop: scf.ForOp) -> bool:
    body = loop.body.block
    for op in body.ops:
        if op.regions or isinstance(op, _SERIAL_OPS):
            return True
    end = terminator(body)
    return any(
        argument.type == f64 and not _is_sum(argument, yielded)
        for argument, yielded in zip(body.args[1:], end.operands, strict=True)
    )


def _is_sum(argument: SSAValue, yielded: SSAValue) -> bool:
    """`argument + ...` and nothing else, with re-association allowed; or a value that is merely passed on."""
    if yielded is argument:
        return True
    uses = list(argument.uses)
    current = argument
    while len(uses) == 1 and isinstance(add := uses[0].operation, arith.AddfOp) and _may_reassociate(add):
        current = add.result
        uses = list(current.uses)
        if current is yielded:
            return all(isinstance(use.operation, scf.YieldOp) for use in uses)
    return False


def _may_reassociate(op: arith.AddfOp) -> bool:
    return FastMathFlag.REASSOC in op.fastmath.data


def _is_short_sum(body: Block) -> bool:
    count = sum(1 for _ in body.ops)
    has_sum = any(a.type == f64 for a in body.args[1:]) or any(isinstance(op, ad.AccumulateOp) for op in body.ops)
    return count <= _SHORT and has_sum and not any(isinstance(op, rt.MathOp | arith.DivfOp) for op in body.ops)
