"""What the scalar ops of `arith` mean: predicates, values on constants, identities. All that folds asks here.

Ints wrap in two's complement, the smallest one divided by -1 too; what a real that becomes an int has no room for
is cut to the nearest int, and NaN is 0. Reals are IEEE doubles. No result is told of a division of ints by 0, of a
shift by more than the width, and where it is NaN: the sign of that depends on the processor.

A constant is known as a signed value of its type; an `i1` is 0 or 1.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType, LocationAttr, i64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ulam.dialects.attributes import integer, real
from ulam.dialects.integers import quotient, remainder, wrapped
from ulam.dialects.op_making import made

Known = int | float
Outcome = int | float | Literal["left", "right"] | None
"""What an op of two operands is: a constant, one of the operands, or None: not known."""

OpClass = type[Operation]

# ---------------------------------------------------------------- constants


def constant(value: Known, type_: Attribute, location: LocationAttr | None = None) -> arith.ConstantOp:
    """A constant of a type of integers or reals."""
    attribute = real(value) if isinstance(type_, Float64Type) else integer(int(value), type_)  # type: ignore[arg-type]
    return made(arith.ConstantOp, result_types=(type_,), properties={"value": attribute}, location=location)


def known_constant(value: SSAValue) -> Known | None:
    """The number that `value` is a constant of; None if it is not one."""
    owner = value.op if type(value) is OpResult else None
    if type(owner) is not arith.ConstantOp:
        return None
    attribute = owner.properties["value"]
    if isinstance(attribute, IntegerAttr):
        number = attribute.value.data
        return number & 1 if width_of(value.type) == 1 else number
    if isinstance(attribute, FloatAttr) and isinstance(value.type, Float64Type):
        return attribute.value.data
    return None


def constant_integer(value: SSAValue) -> int | None:
    """The integer that `value` is a constant of; None if it is not one."""
    known = known_constant(value)
    return known if isinstance(known, int) else None


def is_same_integer(a: SSAValue, b: SSAValue) -> bool:
    """Whether two integers are one value, or constants of one number."""
    return a is b or ((known := constant_integer(a)) is not None and known == constant_integer(b))


def not_clamped(end: SSAValue) -> SSAValue:
    """The number of which `end` is the maximum with 0, if it is that: a loop from 0 to either has as many rounds."""
    op = end.owner
    if isinstance(op, arith.MaxSIOp) and 0 in map(constant_integer, op.operands):
        return next((operand for operand in op.operands if constant_integer(operand) != 0), end)
    return end


def may_reassociate(op: arith.AddfOp | arith.MulfOp) -> bool:
    """Whether operations of this kind may be done in another order."""
    return FastMathFlag.REASSOC in op.fastmath.data


def width_of(type_: Attribute) -> int:
    """Bits of a type of integers; 64 for `index`."""
    return type_.width.data if isinstance(type_, IntegerType) else 64


def same_value(one: Known, other: Known) -> bool:
    """Whether two numbers are the same value of the same type; 0.0 and -0.0 are not."""
    return type(one) is type(other) and one == other and math.copysign(1, one) == math.copysign(1, other)


# ---------------------------------------------------------------- predicates

INTEGER_PREDICATES = tuple(arith.CMPI_COMPARISON_OPERATIONS)
FLOAT_PREDICATES = tuple(arith.CMPF_COMPARISON_OPERATIONS)
"""Names of predicates, by their numbers."""

CMPI = {name: IntegerAttr(number, i64) for number, name in enumerate(INTEGER_PREDICATES)}
CMPF = {name: IntegerAttr(number, i64) for number, name in enumerate(FLOAT_PREDICATES)}
"""The attributes of predicates, by name."""

COMPARISONS = {
    "==": ("eq", "oeq"), "!=": ("ne", "une"), "<": ("slt", "olt"), "<=": ("sle", "ole"), ">": ("sgt", "ogt"),
    ">=": ("sge", "oge"),
}  # fmt: skip
"""How a comparison is written → its predicates of ints, and of reals."""

SYMMETRIC_PREDICATES = frozenset(("eq", "ne", "false", "oeq", "one", "ord", "ueq", "une", "uno", "true"))
"""Predicates that hold for `a, b` where they hold for `b, a`."""

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def predicate_of(op: Operation) -> str:
    """The name of the predicate of a comparison."""
    names = INTEGER_PREDICATES if type(op) is arith.CmpiOp else FLOAT_PREDICATES
    number = op.properties["predicate"]
    assert isinstance(number, IntegerAttr)
    return names[number.value.data]


def compare_integers(predicate: str, a: int, b: int, width: int) -> bool:
    """The value of `arith.cmpi`."""
    if predicate in _RELATIONS:
        return _RELATIONS[predicate](a, b)
    if predicate[0] == "u":
        a, b = _unsigned(a, width), _unsigned(b, width)
    elif width == 1:
        a, b = -a, -b
    return _RELATIONS[predicate[1:]](a, b)


def compare_reals(predicate: str, a: float, b: float) -> bool:
    """The value of `arith.cmpf`: an ordered predicate is false if an operand is NaN, an unordered one is true."""
    if predicate in ("true", "false"):
        return predicate == "true"
    unordered = math.isnan(a) or math.isnan(b)
    if predicate in ("ord", "uno"):
        return unordered == (predicate == "uno")
    return predicate[0] == "u" if unordered else _RELATIONS[predicate[1:]](a, b)


# ---------------------------------------------------------------- two operands


def _unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


_SIGNED: dict[OpClass, Callable[[int, int], int | None]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.AndIOp: operator.and_,
    arith.OrIOp: operator.or_,
    arith.XOrIOp: operator.xor,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.DivSIOp: lambda a, b: quotient(a, b) if b else None,
    arith.RemSIOp: lambda a, b: remainder(a, b) if b else None,
}
"""Values on constants, before they wrap."""

_UNSIGNED: dict[OpClass, Callable[[int, int], int | None]] = {
    arith.MinUIOp: min,
    arith.MaxUIOp: max,
    arith.DivUIOp: lambda a, b: a // b if b else None,
    arith.RemUIOp: lambda a, b: a % b if b else None,
}

_SHIFTS: dict[OpClass, Callable[[int, int, int], int]] = {
    arith.ShLIOp: lambda a, n, width: a << n,
    arith.ShRSIOp: lambda a, n, width: a >> n,
    arith.ShRUIOp: lambda a, n, width: _unsigned(a, width) >> n,
}


def _divide(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if math.isnan(a) or a == 0.0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


_REAL: dict[OpClass, Callable[[float, float], float]] = {
    arith.AddfOp: operator.add,
    arith.SubfOp: operator.sub,
    arith.MulfOp: operator.mul,
    arith.DivfOp: _divide,
}

INTEGER_OPS = (*_SIGNED, *_UNSIGNED, *_SHIFTS)
REAL_OPS = tuple(_REAL)
"""Ops of two operands of one type, that of the result."""

COMMUTATIVE = frozenset[OpClass]((
    arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp,
    arith.MaxUIOp, arith.AddfOp, arith.MulfOp,
))  # fmt: skip

_INTEGER_RIGHT: dict[OpClass, dict[int, int | Literal["left"]]] = {
    arith.AddiOp: {0: "left"},
    arith.SubiOp: {0: "left"},
    arith.MuliOp: {0: 0, 1: "left"},
    arith.AndIOp: {0: 0, -1: "left"},
    arith.OrIOp: {0: "left", -1: -1},
    arith.XOrIOp: {0: "left"},
    arith.DivSIOp: {1: "left"},
    arith.RemSIOp: {1: 0, -1: 0},
}
_REAL_RIGHT: dict[OpClass, float] = {arith.AddfOp: -0.0, arith.SubfOp: 0.0, arith.MulfOp: 1.0, arith.DivfOp: 1.0}
"""What an op becomes if its right operand is this constant; a real op becomes its left operand. `x + 0.0` is not `x`:
-0.0 + 0.0 is 0.0."""

IF_SAME: dict[OpClass, int | Literal["left"]] = {
    arith.SubiOp: 0,
    arith.XOrIOp: 0,
    arith.AndIOp: "left",
    arith.OrIOp: "left",
    arith.MinSIOp: "left",
    arith.MaxSIOp: "left",
}
"""What an op becomes if both operands are the same value."""


def evaluate(op_class: OpClass, a: Known, b: Known, width: int = 64) -> Known | None:
    """The value of an op of two operands on constants; `width` of integers. None if it is not to be told."""
    if (real := _REAL.get(op_class)) is not None:
        value = real(a, b)
        return None if math.isnan(value) else value
    assert isinstance(a, int) and isinstance(b, int)
    if (signed := _SIGNED.get(op_class)) is not None:
        if width == 1 and op_class in (arith.MinSIOp, arith.MaxSIOp, arith.DivSIOp, arith.RemSIOp):
            a, b = -a, -b
        result = signed(a, b)
    elif (unsigned := _UNSIGNED.get(op_class)) is not None:
        result = unsigned(_unsigned(a, width), _unsigned(b, width))
    elif (shift := _SHIFTS.get(op_class)) is not None and 0 <= b < width:
        result = shift(a, b, width)
    else:
        return None
    return None if result is None else wrapped(result, width)


def simplify(op_class: OpClass, a: Known | None, b: Known | None, width: int = 64) -> Outcome:
    """What an op of two operands becomes if one of them or both are known constants."""
    if a is not None and b is not None:
        return evaluate(op_class, a, b, width)
    if b is not None:
        return _with_right(op_class, b, width)
    if a is None or op_class not in COMMUTATIVE:
        return None
    outcome = _with_right(op_class, a, width)
    return "right" if outcome == "left" else outcome


def _with_right(op_class: OpClass, b: Known, width: int) -> Outcome:
    if (neutral := _REAL_RIGHT.get(op_class)) is not None:
        return "left" if same_value(neutral, b) else None
    outcomes = _INTEGER_RIGHT.get(op_class)
    if outcomes is None:
        return None
    outcome = outcomes.get(-1) if width == 1 and b == 1 else None
    if outcome is None:
        outcome = outcomes.get(int(b))
    return wrapped(outcome, width) if isinstance(outcome, int) else outcome


# ---------------------------------------------------------------- one operand


def convert(op_class: OpClass, value: Known, source: Attribute, target: Attribute) -> Known | None:
    """The value of a conversion of a constant; None if it is not to be told."""
    width = width_of(target)
    if op_class in (arith.FPToSIOp, arith.FPToUIOp):
        return _to_integer(value, width, signed=op_class is arith.FPToSIOp)
    assert isinstance(value, int)
    signed = -value if width_of(source) == 1 else value
    unsigned = _unsigned(value, width_of(source))
    if op_class in (arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp):
        return wrapped(signed, width)
    if op_class is arith.ExtUIOp:
        return wrapped(unsigned, width)
    if isinstance(target, Float64Type) and op_class in (arith.SIToFPOp, arith.UIToFPOp):
        return float(signed if op_class is arith.SIToFPOp else unsigned)
    return None


CONVERSIONS = (
    arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.IndexCastOp, arith.SIToFPOp, arith.UIToFPOp, arith.FPToSIOp,
    arith.FPToUIOp,
)  # fmt: skip


def _to_integer(value: float, width: int, *, signed: bool) -> int:
    if math.isnan(value):
        return 0
    least, greatest = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    whole = int(value) if math.isfinite(value) else greatest if value > 0 else least
    return wrapped(min(max(whole, least), greatest), width)


def negate(value: float) -> float | None:
    """The value of `arith.negf`."""
    return None if math.isnan(value) else -value
