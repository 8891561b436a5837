"""Squares, in the forms that lowered code has them."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.passes.rewriting import discard


def squares_of(value: SSAValue) -> list[Operation]:
    """The ops that square a value: by the function, or as a product with itself."""
    return [op for op in dict.fromkeys(use.operation for use in value.uses) if _squares(op, value)]


def pair_up(value: SSAValue) -> None:
    """Makes a square of a value that two products have one after the other: `(x * v) * v` is `x * square(v)` then."""
    for inner in [use.operation for use in value.uses]:
        if not isinstance(inner, arith.MulfOp) or len(uses := list(inner.result.uses)) != 1:
            continue
        factor = inner.operands[1] if inner.operands[0] is value else inner.operands[0]
        outer = uses[0].operation
        is_product = isinstance(outer, arith.MulfOp) or (isinstance(outer, rt.MathOp) and outer.function.data == "fma")
        if factor is value or not is_product or {*outer.operands[:2]} != {inner.result, value}:
            continue
        square = rt.MathOp("square", (value,), location=inner.location)
        assert outer.parent is not None
        outer.parent.insert_op_before(square, outer)
        outer.operands = [factor, square.res, *outer.operands[2:]]
        discard(inner)


def _squares(op: Operation, value: SSAValue) -> bool:
    if isinstance(op, rt.MathOp):
        return op.function.data == "square"
    return isinstance(op, arith.MulfOp) and op.operands[0] is value and op.operands[1] is value
