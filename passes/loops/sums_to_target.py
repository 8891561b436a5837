"""Sums that loops carry, and that only the target gets, become additions to the target.

    s = 0; for n: s = s + f(n)      target += -s      →      for n: target += -f(n)      target += -0

What adds logarithms then multiplies (`logs_to_products`), whether the program adds to the target, to a variable, or
calls a function that does. Through nests of loops, negations, sums and factors that are constants. What is read in
another way, as compensated sums are, stays; so does the number that the sum begins with.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, Operation, SSAValue, Use

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, known_constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.rewriting import discard, replace_uses

_BOUNDS = 3
"""Operands of a loop before what it carries."""
_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}


def sums_to_target(function: func.FuncOp, logarithms: frozenset[str]) -> None:
    """Adds to the target what the loops of a function carry to it, in loops that call one of some functions."""
    for loop in list(ops_within(function)):
        if isinstance(loop, scf.ForOp) and any(
            isinstance(op, rt.MathOp) and op.function.data in logarithms for op in loop.body.block.ops
        ):
            for position, argument in enumerate(tuple(loop.body.block.args[1:])):
                if argument.type == f64:
                    _sum(loop, position)


def _sum(loop: scf.ForOp, position: int) -> None:
    additions = _additions(loop, position)
    if not additions:
        return
    scale = _scale(loop, position)
    if scale is None:
        return
    for op, term in additions:
        block = op.parent
        assert block is not None
        _add(op, term, scale)
        replace_uses(op.result, op.lhs if op.rhs is term else op.rhs)
        discard(op)


def _additions(loop: scf.ForOp, position: int) -> list[tuple[arith.AddfOp, SSAValue]] | None:
    """The additions to a number that a loop carries, and their terms; None if it is more than a sum.

    Loops inside may add to it, too.
    """
    body = loop.body.block
    last = terminator(body).operands[position]
    additions: list[tuple[arith.AddfOp, SSAValue]] = []
    value: SSAValue = body.args[1 + position]
    while True:
        use = _only_use(value)
        if use is None:
            return None
        if value is last:
            return additions
        op = use.operation
        if op.parent is not body:
            return None
        if isinstance(op, arith.AddfOp):
            additions.append((op, op.operands[1 - use.index]))
            value = op.result
        elif isinstance(op, scf.ForOp) and use.index >= _BOUNDS and _additions(op, use.index - _BOUNDS) is not None:
            value = op.results[use.index - _BOUNDS]
        else:
            return None


def _add(before: Operation, term: SSAValue, scale: float) -> None:
    """Adds a term, times a number, to the target."""
    block = before.parent
    assert block is not None
    if scale == -1.0:
        negated = arith.NegfOp.create(
            operands=(term,), result_types=(f64,), properties=_STRICT, location=before.location
        )
        block.insert_op_before(negated, before)
        term = negated.results[0]
    elif scale != 1.0:
        factor = constant(scale, f64)
        product = arith.MulfOp.create(
            operands=(factor.result, term), result_types=(f64,), properties=_STRICT, location=before.location
        )
        block.insert_ops_before([factor, product], before)
        term = product.results[0]
    block.insert_op_before(ad.TargetAddOp(term, location=before.location), before)


def _scale(loop: scf.ForOp, position: int) -> float | None:
    """What a result of a loop is multiplied by on its way to the target; None if it goes elsewhere, too."""
    scale = 1.0
    value: SSAValue = loop.results[position]
    while True:
        use = _only_use(value)
        if use is None:
            return None
        op = use.operation
        if isinstance(op, ad.TargetAddOp):
            return scale
        if isinstance(op, scf.YieldOp):
            outer = op.parent_op()
            if not isinstance(outer, scf.ForOp) or _additions(outer, use.index) is None:
                return None
            loop, position = outer, use.index
            value = outer.results[position]
            continue
        if op.parent is not loop.parent:
            return None
        if isinstance(op, arith.NegfOp):
            scale = -scale
        elif isinstance(op, arith.SubfOp):
            scale = -scale if use.index == 1 else scale
        elif isinstance(op, arith.MulfOp):
            number = known_constant(op.operands[1 - use.index])
            if number is None:
                return None
            scale *= float(number)
        elif isinstance(op, rt.MathOp) and op.function.data == "fma":
            if use.index < 2:
                number = known_constant(op.operands[1 - use.index])
                if number is None:
                    return None
                scale *= float(number)
        elif not isinstance(op, arith.AddfOp):
            return None
        value = op.results[0]


def _only_use(value: SSAValue) -> Use | None:
    use = value.first_use
    return use if use is not None and value.has_one_use() else None
