"""Folding: ops whose result is known become constants or one of their operands.

Branches and loops that are known dissolve, too. Results never change, to the last bit; `dialects.scalar_ops` tells what
ops are on constants.
One forward walk: operands are folded before their users.

    arith.addi %x, 0 → %x        arith.mulf %x, 1.0 → %x        scf.if true → its first region
    scf.for 0 to 1 → its body    a carried value that never changes → its initial value
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects import arith, func, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import (
    CONVERSIONS,
    IF_SAME,
    INTEGER_OPS,
    REAL_OPS,
    compare_integers,
    compare_reals,
    constant,
    constant_integer,
    convert,
    known_constant,
    negate,
    predicate_of,
    simplify,
    width_of,
)
from ulam.dialects.walk import blocks_of, following_op, operand_tuple
from ulam.library.records import record
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.rewriting import discard, replace_uses

Folded = SSAValue | int | float | None
"""What an op becomes: a value, a constant of its type, or None: nothing is known."""


@record(frozen=True)
class Fold(FunctionPass):
    """Computes what is known, and applies identities of single ops, in all functions or in the one that is named."""

    name = "fold"
    settles = True

    def changes_function(self, function: func.FuncOp) -> bool:
        folding = _Folding()
        for block in function.body.blocks:
            folding.block(block)
        return folding.changed


class _Folding:
    """The walk through a function."""

    def __init__(self) -> None:
        self.changed = False

    def block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            if (control := _CONTROL.get(type(op))) is not None:
                op = control(op, block, self)
                continue
            following = following_op(op)
            if (fold := _FOLDERS.get(type(op))) is not None:
                folded = fold(op)
                if folded is not None:
                    self._replace(op, block, folded)
            op = following

    def _replace(self, op: Operation, block: Block, folded: SSAValue | int | float) -> None:
        result = op.results[0]
        if not isinstance(folded, SSAValue):
            new = constant(folded, result.type, op.location)
            block.insert_op_before(new, op)
            folded = new.results[0]
        self.replace_uses(result, folded)
        self.discard(op)

    def replace_uses(self, value: SSAValue, by: SSAValue) -> None:
        """Lets all users of `value` use `by`."""
        self.changed = self.changed or (value is not by and value.first_use is not None)
        replace_uses(value, by)

    def discard(self, op: Operation) -> None:
        """Takes an op out of its block for good."""
        self.changed = True
        discard(op)


# ---------------------------------------------------------------- scalars


def _fold_binary(op: Operation) -> Folded:
    cls = type(op)
    left, right = operand_tuple(op)
    a, b = known_constant(left), known_constant(right)
    if a is None and b is None:
        outcome = IF_SAME.get(cls) if left is right else None
    else:
        outcome = simplify(cls, a, b, width_of(left.type))
        if outcome is None and cls is arith.XOrIOp and b is not None:
            inner = left.owner
            return inner.operands[0] if type(inner) is cls and known_constant(inner.operands[1]) == b else None  # type: ignore[union-attr]
    return left if outcome == "left" else right if outcome == "right" else outcome


def _fold_cmpi(op: Operation) -> Folded:
    left, right = operand_tuple(op)
    predicate, width = predicate_of(op), width_of(left.type)
    if left is right:
        return int(compare_integers(predicate, 0, 0, width))
    a, b = constant_integer(left), constant_integer(right)
    if b is None:
        return None
    if a is not None:
        return int(compare_integers(predicate, a, b, width))
    owner = left.owner
    if predicate == "ne" and b == 0 and type(owner) is arith.ExtUIOp and width_of(owner.input.type) == 1:
        return owner.input
    return None


def _fold_cmpf(op: Operation) -> Folded:
    a, b = known_constant(op.operands[0]), known_constant(op.operands[1])
    predicate = predicate_of(op)
    if predicate in ("false", "true"):
        return int(predicate == "true")
    return None if a is None or b is None else int(compare_reals(predicate, a, b))


def _fold_conversion(op: Operation) -> Folded:
    operand, target = op.operands[0], op.results[0].type
    if (value := known_constant(operand)) is not None:
        return convert(type(op), value, operand.type, target)
    owner = operand.owner
    if type(op) is arith.TruncIOp and type(owner) in (arith.ExtSIOp, arith.ExtUIOp):
        source = owner.operands[0]  # type: ignore[union-attr]
        return source if source.type == target else None
    return None


def _fold_negf(op: Operation) -> Folded:
    operand = op.operands[0]
    if (value := known_constant(operand)) is not None:
        return negate(value)
    owner = operand.owner
    return owner.operands[0] if type(owner) is arith.NegfOp else None


_EXACT_MATH: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,  # correctly rounded
    "fabs": math.fabs,
    "abs": math.fabs,
    "floor": lambda x: math.copysign(float(math.floor(x)), x),
    "ceil": lambda x: math.copysign(float(math.ceil(x)), x),
    "trunc": lambda x: math.copysign(float(math.trunc(x)), x),
}
"""Functions whose value does not depend on who computes it, for finite arguments."""


def _fold_math(op: Operation) -> Folded:
    assert isinstance(op, rt.MathOp)
    function = _EXACT_MATH.get(op.function.data)
    if function is None or len(op.operands) != 1:
        return None
    value = known_constant(op.operands[0])
    if value is None or not math.isfinite(value) or (op.function.data == "sqrt" and value < 0.0):
        return None
    return function(float(value))


# ---------------------------------------------------------------- the rest


def _fold_select(op: Operation) -> Folded:
    condition, then, otherwise = op.operands
    if then is otherwise:
        return then
    known = constant_integer(condition)
    if known is not None:
        return then if known else otherwise
    if width_of(then.type) == 1 and constant_integer(then) == 1 and constant_integer(otherwise) == 0:
        return condition
    return None


def _fold_view(op: Operation) -> Folded:
    return op.operands[0] if constant_integer(op.operands[1]) == 0 else None


def _fold_is_null(op: Operation) -> Folded:
    owner = op.operands[0].owner
    if type(owner) is rt.NullOp:
        return 1
    return 0 if isinstance(owner, rt.AllocOp | rt.AllocBoundOp) else None


_FOLDERS: dict[type[Operation], Callable[[Operation], Folded]] = {
    **dict.fromkeys((*INTEGER_OPS, *REAL_OPS), _fold_binary),
    **dict.fromkeys(CONVERSIONS, _fold_conversion),
    arith.CmpiOp: _fold_cmpi,
    arith.NegfOp: _fold_negf,
    arith.CmpfOp: _fold_cmpf,
    arith.SelectOp: _fold_select,
    rt.MathOp: _fold_math,
    rt.ViewOp: _fold_view,
    rt.IsNullOp: _fold_is_null,
}


# ---------------------------------------------------------------- control flow


def _fold_check(op: Operation, block: Block, folding: _Folding) -> Operation | None:
    """A check that is known to hold goes."""
    following = op.next_op
    if constant_integer(op.operands[0]) == 1:
        folding.discard(op)
    return following


def _fold_if(op: Operation, block: Block, folding: _Folding) -> Operation | None:
    assert isinstance(op, scf.IfOp)
    condition = constant_integer(op.cond)
    if condition is not None:
        region = op.true_region if condition else op.false_region
        if not region.blocks:
            following = op.next_op
            folding.discard(op)
            return following
        return _inline(op, block, folding, region.block, ())
    for nested in blocks_of(op):
        folding.block(nested)
    if op.results:
        then, otherwise = op.true_region.block.last_op, op.false_region.block.last_op
        assert then is not None and otherwise is not None
        for result, one, other in zip(op.results, then.operands, otherwise.operands, strict=True):
            if one is other:
                folding.replace_uses(result, one)
    return op.next_op


def _fold_for(op: Operation, block: Block, folding: _Folding) -> Operation | None:
    assert isinstance(op, scf.ForOp)
    first, last, by, *_ = operand_tuple(op)
    lower, upper, step = constant_integer(first), constant_integer(last), constant_integer(by)
    if lower is not None and upper is not None:
        if lower >= upper:
            following = op.next_op
            for result, initial in zip(op.results, op.iter_args, strict=True):
                folding.replace_uses(result, initial)
            folding.discard(op)
            return following
        if step is not None and 0 < upper - lower <= step:
            return _inline(op, block, folding, op.body.block, (op.lb, *op.iter_args))
    body = op.body.block
    end = body.last_op
    assert end is not None
    carried = zip(op.results, body.args[1:], op.iter_args, end.operands, strict=True) if op.results else ()
    for result, argument, initial, passed in carried:
        if passed is argument or passed is initial:
            folding.replace_uses(argument, initial)
            folding.replace_uses(result, initial)
    folding.block(body)
    return op.next_op


def _fold_while(op: Operation, block: Block, folding: _Folding) -> Operation | None:
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    condition, end = before.last_op, after.last_op
    assert isinstance(condition, scf.ConditionOp) and end is not None
    passed = list(condition.args)
    for argument, initial, next_value in zip(before.args, op.arguments, tuple(end.operands), strict=True):
        unchanged = next_value is initial or any(
            next_value is after.args[i] and passed[i] is argument for i in range(len(passed))
        )
        if unchanged:
            folding.replace_uses(argument, initial)
    for result, argument, value in zip(op.results, after.args, condition.args, strict=True):
        if not _is_defined_in(value, before):
            folding.replace_uses(argument, value)
            folding.replace_uses(result, value)
    folding.block(before)
    folding.block(after)
    return op.next_op


def _is_defined_in(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return owner is block if isinstance(owner, Block) else owner.parent is block


def _inline(
    op: Operation, block: Block, folding: _Folding, body: Block, arguments: tuple[SSAValue, ...]
) -> Operation | None:
    """Puts the ops of `body` in the place of `op`; returns the first of them, to go on with."""
    for argument, value in zip(body.args, arguments, strict=True):
        folding.replace_uses(argument, value)
    end = body.last_op
    assert end is not None
    results = tuple(end.operands)
    first: Operation | None = None
    for inner in list(body.ops):
        if inner is end:
            break
        inner.detach()
        block.insert_op_before(inner, op)
        first = first or inner
    following = op.next_op
    for result, value in zip(op.results, results, strict=True):
        folding.replace_uses(result, value)
    folding.discard(op)
    return first if first is not None else following


_CONTROL: dict[type[Operation], Callable[[Operation, Block, _Folding], Operation | None]] = {
    scf.IfOp: _fold_if,
    scf.ForOp: _fold_for,
    scf.WhileOp: _fold_while,
    rt.CheckOp: _fold_check,
}
"""Ops that may go, or dissolve into the block; each function returns the op to go on with."""
