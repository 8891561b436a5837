"""Logarithms of sums of exponentials in lowered code: log_sum_exp of two numbers, of elements, of a loop, and log_mix.

m + log(exp(x - m) + exp(y - m))      m + log(s), s the sum of exp(x[k] - m) over a loop
a > b ? a + log(v + w * exp(b - a)) : b + log(w + v * exp(a - b))
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator


@record
class LogSum:
    """`op` gives log(sum of w exp(x)) of the exponents `terms` and of `weights`, if there are any. `loop`: there is one
    term, of each iteration.
    """

    op: Operation
    terms: list[SSAValue]
    weights: list[SSAValue] | None = None
    loop: scf.ForOp | None = None


def log_sum(op: Operation) -> LogSum | None:
    if _is(op, "log_sum_exp"):
        return LogSum(op, _flat(op.operands))
    if type(op) is not arith.AddfOp:
        return None
    for shift, log in (op.operands, tuple(reversed(op.operands))):
        if _is(log.owner, "log"):
            (total,) = log.owner.operands  # type: ignore[union-attr]
            loop = total.owner
            if isinstance(loop, scf.ForOp):
                return _of_loop(op, loop, loop.results.index(total), shift)
            terms = _terms(total, shift)
            return LogSum(op, _flat(terms)) if terms else _mixture(op, total, shift)
    return None


def _flat(terms: Sequence[SSAValue]) -> list[SSAValue]:
    """Terms that are such logarithms themselves as the terms of these."""
    found: list[SSAValue] = []
    for term in terms:
        inner = log_sum(term.owner) if isinstance(term.owner, Operation) else None
        found += [term] if inner is None or inner.loop is not None or inner.weights is not None else inner.terms
    return found


def _mixture(op: Operation, total: SSAValue, shift: SSAValue) -> LogSum | None:
    """log(v exp(a) + w exp(b)) as `log_mix` has it: the larger one of a and b, and log(v + w exp(b - a)) or so."""
    first, scaled = _summands(total.owner)
    if first is None or scaled is None:
        return None
    weight, power = scaled
    if not _is(power.owner, "exp"):
        weight, power = power, weight
    top, one, other = shift.owner, first.owner, weight.owner
    if not (isinstance(top, arith.SelectOp) and isinstance(one, arith.SelectOp) and isinstance(other, arith.SelectOp)):
        return None
    gap = _not_zero(power.owner.operands[0]).owner if _is(power.owner, "exp") else None  # type: ignore[union-attr]
    if not isinstance(gap, arith.SelectOp) or not all(choice.cond is top.cond for choice in (one, other, gap)):
        return None
    is_gap = _is_difference(gap.lhs, top.rhs, top.lhs) and _is_difference(gap.rhs, top.lhs, top.rhs)
    if not is_gap or (one.lhs, one.rhs) != (other.rhs, other.lhs):
        return None
    return LogSum(op, [top.lhs, top.rhs], [one.lhs, one.rhs])


def _is_difference(value: SSAValue, left: SSAValue, right: SSAValue) -> bool:
    """Whether a value is `left - right`, of which nothing is written where one of them is 0."""
    op = value.owner
    if isinstance(op, arith.SubfOp):
        return op.lhs is left and op.rhs is right
    if isinstance(op, arith.NegfOp):
        return op.operand is right and known_constant(left) == 0
    return value is left and known_constant(right) == 0


def _summands(op: Operation | Block) -> tuple[SSAValue | None, tuple[SSAValue, SSAValue] | None]:
    """The a, and the b and c, of `a + b * c`."""
    if isinstance(op, rt.MathOp) and op.function.data == "fma":
        return op.operands[2], (op.operands[0], op.operands[1])
    if isinstance(op, arith.AddfOp):
        for first, product in (op.operands, tuple(reversed(op.operands))):
            if isinstance(product.owner, arith.MulfOp):
                return first, (product.owner.operands[0], product.owner.operands[1])
    return None, None


def _not_zero(value: SSAValue) -> SSAValue:
    """Of a choice between 0 and something else the latter."""
    op = value.owner
    if isinstance(op, scf.IfOp):
        position = op.results.index(value)
        choices = [terminator(region.block).operands[position] for region in op.regions]
    elif isinstance(op, arith.SelectOp):
        choices = [op.lhs, op.rhs]
    else:
        return value
    others = [choice for choice in choices if known_constant(choice) != 0]
    return others[0] if len(others) == 1 else value


def _is(op: Operation | Block, function: str) -> bool:
    return type(op) is rt.MathOp and op.function.data == function


def _terms(total: SSAValue, shift: SSAValue) -> list[SSAValue] | None:
    """The x_k of `exp(x_1 - shift) + exp(x_2 - shift) + ...`."""
    if known_constant(total) == 0:
        return []
    op = total.owner
    if isinstance(op, arith.AddfOp):
        left, right = (_terms(operand, shift) for operand in op.operands)
        return None if left is None or right is None else left + right
    exponent = _exponent(total, shift)
    return None if exponent is None else [exponent]


def _exponent(value: SSAValue, shift: SSAValue) -> SSAValue | None:
    """The x of `exp(x - shift)`."""
    if not _is(value.owner, "exp"):
        return None
    (difference,) = value.owner.operands  # type: ignore[union-attr]
    op = difference.owner
    return op.operands[0] if isinstance(op, arith.SubfOp) and op.operands[1] is shift else None


def _of_loop(op: Operation, loop: scf.ForOp, position: int, shift: SSAValue) -> LogSum | None:
    body = loop.body.block
    added = terminator(body).operands[position].owner
    if known_constant(loop.iter_args[position]) != 0 or not isinstance(added, arith.AddfOp):
        return None
    carried = body.args[1 + position]
    for before, term in (added.operands, tuple(reversed(added.operands))):
        if before is carried and (exponent := _exponent(term, shift)) is not None:
            return LogSum(op, [exponent], loop=loop)
    return None
