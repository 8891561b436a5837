"""Flags of inner loops go on with that of the loop around: `f | (inner != 0)`, with `inner` from 0, is one number."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects.scalar_ops import CMPI, constant_integer
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import is_before, terminator
from ulam.passes.rewriting import discard, replace_uses


def merge_flags(nest: scf.ForOp) -> None:
    """Lets inner loops go on with the flag of the loop around them."""
    for loop in [op for op in ops_within(nest.body.block) if type(op) is scf.ForOp]:
        for k, result in enumerate(loop.results):
            if result.type == i64 and constant_integer(loop.iter_args[k]) == 0:
                _merge_flag(loop, k, result)


def _merge_flag(loop: scf.ForOp, position: int, result: SSAValue) -> None:
    path: list[Operation] = []
    value = result
    for cls in (arith.CmpiOp, arith.XOrIOp, arith.ExtUIOp, arith.OrIOp):
        uses = list(value.uses)
        if len(uses) != 1 or not isinstance(op := uses[0].operation, cls) or op.parent is not loop.parent:
            return
        path.append(op)
        value = op.results[0]
    compared, inverted, widened, merged = path
    if compared.properties["predicate"] != CMPI["eq"] or 0 not in map(constant_integer, compared.operands):
        return
    if not any(constant_integer(operand) in (1, -1) for operand in inverted.operands):
        return
    body = loop.body.block
    if not _is_flag(body.args[position + 1], terminator(body).operands[position]):
        return
    (flag,) = (operand for operand in merged.operands if operand is not widened.results[0])
    owner = flag.owner
    if isinstance(owner, Operation) and owner.parent is loop.parent and not is_before(owner, loop):
        return
    loop.operands[3 + position] = flag
    replace_uses(merged.results[0], result)
    for op in reversed(path):
        discard(op)


def _is_flag(argument: SSAValue, value: SSAValue) -> bool:
    """Whether `value` is `argument`, or 1 is set in it."""
    if value is argument:
        return True
    op = value.owner
    if isinstance(op, arith.OrIOp):
        one, other = op.operands
        return any(
            isinstance(b.owner, arith.ExtUIOp) and _is_flag(argument, a) for a, b in ((one, other), (other, one))
        )
    if isinstance(op, scf.ForOp):
        k = op.results.index(value)
        body = op.body.block
        return _is_flag(argument, op.iter_args[k]) and _is_flag(body.args[k + 1], terminator(body).operands[k])
    return False
