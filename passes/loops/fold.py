"""Folding: ops whose result is known become constants or one of their operands.

Branches and loops that are known dissolve, too. Results never change, to the last bit: integers wrap; floating-point
operations are done in IEEE double precision and only where the result is not NaN (whose sign would depend on the
machine); `x + 0.0` stays, as -0.0 + 0.0 is 0.0.
One forward walk: operands are folded before their users.

    arith.addi %x, 0 → %x        arith.mulf %x, 1.0 → %x        scf.if true → its first region
    scf.for 0 to 1 → its body    a carried value that never changes → its initial value
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.passes.loops.effects import functions
from ulam.passes.rewriting import discard, replace_uses

Known = int | float
"""A constant; ints are as signed values of their type, i1 is 0 or 1."""

Folded = SSAValue | int | float | None
"""What an op becomes: a value, a constant of its type, or None: nothing is known."""


@dataclass(frozen=True)
class Fold(ModulePass):
    """Computes what is known, and applies identities of single ops."""

    name = "fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Folds every function at or below `op`."""
    for function in functions(op):
        for block in function.body.blocks:
            _fold_block(block)


def _fold_block(block: Block) -> None:
    op = block.first_op
    while op is not None:
        if (control := _CONTROL.get(type(op))) is not None:
            op = control(op, block)
            continue
        following = op.next_op
        if (fold := _FOLDERS.get(type(op))) is not None:
            folded = fold(op)
            if folded is not None:
                _replace(op, block, folded)
        op = following


def _replace(op: Operation, block: Block, folded: SSAValue | int | float) -> None:
    result = op.results[0]
    if not isinstance(folded, SSAValue):
        constant = arith.ConstantOp.create(
            result_types=(result.type,), properties={"value": _attribute(folded, result.type)}, location=op.location
        )
        block.insert_op_before(constant, op)
        folded = constant.results[0]
    replace_uses(result, folded)
    discard(op)


def _attribute(value: int | float, type_: Attribute) -> Attribute:
    if isinstance(type_, IntegerType):
        return IntegerAttr(int(value), type_)
    assert isinstance(type_, Float64Type)
    return FloatAttr(float(value), type_)


def _known(value: SSAValue) -> Known | None:
    """The constant that `value` is."""
    owner = value.owner
    if type(owner) is not arith.ConstantOp:
        return None
    attribute = owner.properties["value"]
    if isinstance(attribute, IntegerAttr):
        number = attribute.value.data
        return number & 1 if _width(value) == 1 else number
    if isinstance(attribute, FloatAttr) and isinstance(value.type, Float64Type):
        return attribute.value.data
    return None


def _known_int(value: SSAValue) -> int | None:
    known = _known(value)
    return known if isinstance(known, int) else None


def _width(value: SSAValue) -> int:
    """Bits of an integer value; 64 for `index`."""
    return value.type.width.data if isinstance(value.type, IntegerType) else 64


def _wrap(value: int, width: int) -> int:
    """The signed value of the low `width` bits; of one bit, the bit."""
    if width == 1:
        return value & 1
    half = 1 << (width - 1)
    return ((value + half) & ((1 << width) - 1)) - half


# ---------------------------------------------------------------- integers

_INTEGER: dict[type[Operation], Callable[[int, int], int | None]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.DivSIOp: lambda a, b: _divide(a, b),
    arith.RemSIOp: lambda a, b: None if b == 0 else a - b * (_divide(a, b) or 0),
}
"""Values on constants, before they wrap."""

_RIGHT: dict[type[Operation], dict[int, int | str]] = {
    arith.AddiOp: {0: "left"},
    arith.SubiOp: {0: "left"},
    arith.MuliOp: {0: 0, 1: "left"},
    arith.AndIOp: {0: 0, -1: "left"},
    arith.OrIOp: {0: "left", -1: -1},
    arith.XOrIOp: {0: "left"},
    arith.DivSIOp: {1: "left"},
    arith.RemSIOp: {1: 0, -1: 0},
}
"""What an op becomes if its right operand is a constant: its left one, or a constant."""

_COMMUTATIVE = (arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp)

_SAME: dict[type[Operation], int | str] = {
    arith.SubiOp: 0,
    arith.XOrIOp: 0,
    arith.AndIOp: "left",
    arith.OrIOp: "left",
    arith.MinSIOp: "left",
    arith.MaxSIOp: "left",
}
"""What an op becomes if both operands are the same value."""


def _divide(a: int, b: int) -> int | None:
    """Integer division, rounded towards zero."""
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _fold_integer(op: Operation) -> Folded:
    cls = type(op)
    left, right = op.operands
    width = _width(left)
    if left is right and (outcome := _SAME.get(cls)) is not None:
        return left if outcome == "left" else int(outcome)
    a, b = _known_int(left), _known_int(right)
    if a is not None and b is not None:
        value = _INTEGER[cls](a, b)
        if value is None or (cls is arith.DivSIOp and value != _wrap(value, width)):
            return None  # undefined
        return _wrap(value, width)
    if a is not None and cls in _COMMUTATIVE:
        left, right, b = right, left, a
    if b is None:
        return None
    if cls is arith.XOrIOp:
        inner = left.owner
        if type(inner) is arith.XOrIOp and _known_int(inner.operands[1]) == b:
            return inner.operands[0]
    outcome = _RIGHT.get(cls, {}).get(-1 if width == 1 and b == 1 else b)
    if outcome is None and width == 1:
        outcome = _RIGHT.get(cls, {}).get(b)
    if outcome == "left":
        return left
    return None if outcome is None else _wrap(int(outcome), width)


_INTEGER_PREDICATES: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)
"""Signed predicates of arith.cmpi, by number; the unsigned ones follow."""

_TRUE_IF_SAME = frozenset((0, 3, 5, 7, 9))


def _predicate(op: Operation) -> int:
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    return predicate.value.data


def _fold_cmpi(op: Operation) -> Folded:
    left, right = op.operands
    predicate = _predicate(op)
    if left is right:
        return int(predicate in _TRUE_IF_SAME)
    b = _known_int(right)
    if b is None:
        return None
    a = _known_int(left)
    width = _width(left)
    if a is None:
        is_extended_bool = type(left.owner) is arith.ExtUIOp and _width(left.owner.operands[0]) == 1
        return left.owner.operands[0] if predicate == 1 and b == 0 and is_extended_bool else None  # type: ignore[union-attr]
    if width == 1 and 2 <= predicate <= 5:
        a, b = -a, -b
    if predicate >= len(_INTEGER_PREDICATES):
        predicate -= 4
        mask = (1 << width) - 1
        a, b = a & mask, b & mask
    return int(_INTEGER_PREDICATES[predicate](a, b))


def _fold_extension(op: Operation) -> Folded:
    value = _known_int(op.operands[0])
    if value is None:
        return None
    width = _width(op.operands[0])
    if type(op) is arith.ExtUIOp:
        return value & ((1 << width) - 1)
    return -value if width == 1 else value


def _fold_truncation(op: Operation) -> Folded:
    operand = op.operands[0]
    width = _width(op.results[0])
    if (value := _known_int(operand)) is not None:
        return _wrap(value, width)
    owner = operand.owner
    if type(owner) in (arith.ExtSIOp, arith.ExtUIOp) and owner.operands[0].type == op.results[0].type:  # type: ignore[union-attr]
        return owner.operands[0]  # type: ignore[union-attr]
    return None


# ---------------------------------------------------------------- floating point


def _is_zero(value: Known | None, sign: float) -> bool:
    return value == 0.0 and value is not None and math.copysign(1.0, value) == sign


def _finish(value: float) -> float | None:
    return None if math.isnan(value) else value


def _fold_addf(op: Operation) -> Folded:
    a, b = _known(op.operands[0]), _known(op.operands[1])
    if a is not None and b is not None:
        return _finish(a + b)
    if _is_zero(b, -1.0):
        return op.operands[0]
    return op.operands[1] if _is_zero(a, -1.0) else None


def _fold_subf(op: Operation) -> Folded:
    a, b = _known(op.operands[0]), _known(op.operands[1])
    if a is not None and b is not None:
        return _finish(a - b)
    return op.operands[0] if _is_zero(b, 1.0) else None


def _fold_mulf(op: Operation) -> Folded:
    a, b = _known(op.operands[0]), _known(op.operands[1])
    if a is not None and b is not None:
        return _finish(a * b)
    if b == 1.0:
        return op.operands[0]
    return op.operands[1] if a == 1.0 else None


def _fold_divf(op: Operation) -> Folded:
    a, b = _known(op.operands[0]), _known(op.operands[1])
    if a is not None and b:
        return _finish(a / b)
    return op.operands[0] if b == 1.0 else None


def _fold_negf(op: Operation) -> Folded:
    operand = op.operands[0]
    value = _known(operand)
    if value is not None:
        return _finish(-value)
    owner = operand.owner
    return owner.operands[0] if type(owner) is arith.NegfOp else None


_FLOAT_PREDICATES: tuple[Callable[[float, float], bool], ...] = (
    lambda a, b: False,
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a < b or a > b,
    lambda a, b: a == a and b == b,
)
"""Ordered predicates of arith.cmpf, by number. Number 15 - n is the negation of number n."""


def _fold_cmpf(op: Operation) -> Folded:
    a, b = _known(op.operands[0]), _known(op.operands[1])
    predicate = _predicate(op)
    if predicate in (0, 15):
        return predicate // 15
    if a is None or b is None:
        return None
    if predicate < len(_FLOAT_PREDICATES):
        return int(_FLOAT_PREDICATES[predicate](a, b))
    return int(not _FLOAT_PREDICATES[_NEGATED[predicate]](a, b))


_NEGATED = {8: 6, 9: 5, 10: 4, 11: 3, 12: 2, 13: 1, 14: 7}
"""Unordered predicate (ueq, ugt, uge, ult, ule, une, uno) → the ordered one that is its negation."""


def _fold_to_float(op: Operation) -> Folded:
    value = _known_int(op.operands[0])
    if value is None or not isinstance(op.results[0].type, Float64Type):
        return None
    return float(-value if _width(op.operands[0]) == 1 else value)


def _fold_to_integer(op: Operation) -> Folded:
    value = _known(op.operands[0])
    if value is None or not math.isfinite(value):
        return None
    truncated = int(value)
    return truncated if _wrap(truncated, _width(op.results[0])) == truncated else None


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
    value = _known(op.operands[0])
    if value is None or not math.isfinite(value) or (op.function.data == "sqrt" and value < 0.0):
        return None
    return function(float(value))


# ---------------------------------------------------------------- the rest


def _fold_select(op: Operation) -> Folded:
    condition, then, otherwise = op.operands
    if then is otherwise:
        return then
    known = _known_int(condition)
    if known is not None:
        return then if known else otherwise
    if _width(then) == 1 and _known_int(then) == 1 and _known_int(otherwise) == 0:
        return condition
    return None


def _fold_view(op: Operation) -> Folded:
    return op.operands[0] if _known_int(op.operands[1]) == 0 else None


def _fold_is_null(op: Operation) -> Folded:
    owner = op.operands[0].owner
    if type(owner) is rt.NullOp:
        return 1
    return 0 if isinstance(owner, rt.AllocOp | rt.AllocBoundOp) else None


_FOLDERS: dict[type[Operation], Callable[[Operation], Folded]] = {
    **dict.fromkeys(_INTEGER, _fold_integer),
    arith.CmpiOp: _fold_cmpi,
    arith.ExtSIOp: _fold_extension,
    arith.ExtUIOp: _fold_extension,
    arith.TruncIOp: _fold_truncation,
    arith.AddfOp: _fold_addf,
    arith.SubfOp: _fold_subf,
    arith.MulfOp: _fold_mulf,
    arith.DivfOp: _fold_divf,
    arith.NegfOp: _fold_negf,
    arith.CmpfOp: _fold_cmpf,
    arith.SIToFPOp: _fold_to_float,
    arith.FPToSIOp: _fold_to_integer,
    arith.SelectOp: _fold_select,
    rt.MathOp: _fold_math,
    rt.ViewOp: _fold_view,
    rt.IsNullOp: _fold_is_null,
}


# ---------------------------------------------------------------- control flow


def _fold_check(op: Operation, block: Block) -> Operation | None:
    """A check that is known to hold goes."""
    following = op.next_op
    if _known_int(op.operands[0]) == 1:
        discard(op)
    return following


def _fold_if(op: Operation, block: Block) -> Operation | None:
    assert isinstance(op, scf.IfOp)
    condition = _known_int(op.cond)
    if condition is not None:
        region = op.true_region if condition else op.false_region
        if not region.blocks:
            following = op.next_op
            discard(op)
            return following
        return _inline(op, block, region.block, ())
    for region in op.regions:
        for nested in region.blocks:
            _fold_block(nested)
    if op.results:
        then, otherwise = op.true_region.block.last_op, op.false_region.block.last_op
        assert then is not None and otherwise is not None
        for result, one, other in zip(op.results, then.operands, otherwise.operands, strict=True):
            if one is other:
                replace_uses(result, one)
    return op.next_op


def _fold_for(op: Operation, block: Block) -> Operation | None:
    assert isinstance(op, scf.ForOp)
    lower, upper, step = _known_int(op.lb), _known_int(op.ub), _known_int(op.step)
    if lower is not None and upper is not None:
        if lower >= upper:
            following = op.next_op
            for result, initial in zip(op.results, op.iter_args, strict=True):
                replace_uses(result, initial)
            discard(op)
            return following
        if step is not None and 0 < upper - lower <= step:
            return _inline(op, block, op.body.block, (op.lb, *op.iter_args))
    body = op.body.block
    end = body.last_op
    assert end is not None
    for result, argument, initial, passed in zip(op.results, body.args[1:], op.iter_args, end.operands, strict=True):
        if passed is argument or passed is initial:
            replace_uses(argument, initial)
            replace_uses(result, initial)
    _fold_block(body)
    return op.next_op


def _fold_while(op: Operation, block: Block) -> Operation | None:
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
            replace_uses(argument, initial)
    for result, argument, value in zip(op.results, after.args, condition.args, strict=True):
        if not _is_defined_in(value, before):
            replace_uses(argument, value)
            replace_uses(result, value)
    _fold_block(before)
    _fold_block(after)
    return op.next_op


def _is_defined_in(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return owner is block if isinstance(owner, Block) else owner.parent is block


def _inline(op: Operation, block: Block, body: Block, arguments: tuple[SSAValue, ...]) -> Operation | None:
    """Puts the ops of `body` in the place of `op`; returns the first of them, to go on with."""
    for argument, value in zip(body.args, arguments, strict=True):
        replace_uses(argument, value)
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
        replace_uses(result, value)
    discard(op)
    return first if first is not None else following


_CONTROL: dict[type[Operation], Callable[[Operation, Block], Operation | None]] = {
    scf.IfOp: _fold_if,
    scf.ForOp: _fold_for,
    scf.WhileOp: _fold_while,
    rt.CheckOp: _fold_check,
}
"""Ops that may go, or dissolve into the block; each function returns the op to go on with."""
