"""The scalar part of the emission table: each `arith` op and the LLVM instruction it becomes.

Integers wrap, as Stan's do. A division whose divisor may be -1 is written so that `INT_MIN / -1` wraps too, where the
bare instruction would trap; that the divisor is not 0 is tested before (`rt.check`).
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation

from ulam.emit.errors import EmissionError

if TYPE_CHECKING:
    from ulam.emit.llvm_text import Emit, FunctionEmitter

# op → instruction; both operands and the result have one type
INTEGER_BINARY: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
    arith.ShRSIOp: "ashr",
    arith.ShRUIOp: "lshr",
    arith.DivUIOp: "udiv",
    arith.RemUIOp: "urem",
}

# op → instruction, whether levels 3 and 4 may contract it to a fused multiply-add
FLOAT_BINARY: dict[type[Operation], tuple[str, bool]] = {
    arith.AddfOp: ("fadd", True),
    arith.SubfOp: ("fsub", True),
    arith.MulfOp: ("fmul", True),
    arith.DivfOp: ("fdiv", False),
}

# op → intrinsic of two operands, without its type suffix
INTRINSIC_BINARY: dict[type[Operation], str] = {
    arith.MinSIOp: "smin",
    arith.MaxSIOp: "smax",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
}

CONVERSIONS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext",
    arith.ExtUIOp: "zext",
    arith.TruncIOp: "trunc",
    arith.ExtFOp: "fpext",
    arith.TruncFOp: "fptrunc",
    arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp",
    arith.BitcastOp: "bitcast",
}

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip

INTRINSIC_SUFFIX = {"double": "f64", "float": "f32"}


def intrinsic_suffix(llvm_type: str) -> str:
    """`double` → `f64`; `i32` stays."""
    return INTRINSIC_SUFFIX.get(llvm_type, llvm_type)


def float_literal(value: float) -> str:
    """A double as LLVM writes it exactly: its 64 bits. Small whole numbers and short decimals stay readable."""
    text = repr(value)
    if len(text) <= 6 and "e" not in text and "n" not in text:
        return text
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _constant(e: FunctionEmitter, op: Operation) -> None:
    value = op.properties["value"]
    (result,) = op.results
    if isinstance(value, FloatAttr):
        e.names[result] = float_literal(value.value.data)
    elif isinstance(value, IntegerAttr):
        number = value.value.data
        if isinstance(value.type, IntegerType) and value.type.width.data == 1:
            e.names[result] = "true" if number else "false"
        else:
            e.names[result] = str(number)
    else:
        raise EmissionError(f"constant of type {result.type} cannot be emitted: only scalars can", op)


# What is computed here if both operands are literals: sizes and bounds of small containers, mostly.
FOLDS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "smin": min,
    "smax": max,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}
RIGHT_IDENTITIES = {"add": "0", "sub": "0", "mul": "1"}


def is_number(name: str) -> bool:
    """Whether the name of an integer value is a literal."""
    return name[0] in "-0123456789"


def wrapped(value: int, llvm_type: str) -> str:
    """The literal of `value` in two's complement."""
    width = int(llvm_type[1:])
    value &= (1 << width) - 1
    return str(value - (1 << width) if value >> (width - 1) else value)


def _integer_binary(instruction: str) -> Emit:
    fold = FOLDS.get(instruction)
    identity = RIGHT_IDENTITIES.get(instruction)

    def emit(e: FunctionEmitter, op: Operation) -> None:
        a, b = e.operands(op)
        x, y, t = e.names[a], e.names[b], e.type(a)
        if is_number(y):
            if fold is not None and is_number(x):
                e.names[op.results[0]] = wrapped(fold(int(x), int(y)), t)
                return
            if y == identity:
                e.names[op.results[0]] = x
                return
        e.line(f"{e.define(op.results[0])} = {instruction} {t} {x}, {y}")

    return emit


def _float_binary(instruction: str, contractible: bool) -> Emit:
    def emit(e: FunctionEmitter, op: Operation) -> None:
        a, b = e.operands(op)
        flags = e.fast_math(op) if contractible and e.contract else ""
        e.line(f"{e.define(op.results[0])} = {instruction} {flags}{e.type(a)} {e.names[a]}, {e.names[b]}")

    return emit


def _intrinsic_binary(name: str) -> Emit:
    def emit(e: FunctionEmitter, op: Operation) -> None:
        a, b = e.operands(op)
        t = e.type(a)
        fold = FOLDS.get(name)
        if fold is not None and is_number(e.names[a]) and is_number(e.names[b]):
            e.names[op.results[0]] = str(fold(int(e.names[a]), int(e.names[b])))
            return
        callee = f"llvm.{name}.{intrinsic_suffix(t)}"
        e.module.declare(callee, f"declare {t} @{callee}({t}, {t})")
        e.line(f"{e.define(op.results[0])} = call {t} @{callee}({t} {e.names[a]}, {t} {e.names[b]})")

    return emit


def _negate(e: FunctionEmitter, op: Operation) -> None:
    (a,) = e.operands(op)
    flags = e.fast_math(op) if e.contract else ""
    e.line(f"{e.define(op.results[0])} = fneg {flags}{e.type(a)} {e.names[a]}")


def _signed_division(instruction: str) -> Emit:
    """`sdiv` and `srem`, defined for a divisor of -1 also where the dividend is the smallest integer."""

    def emit(e: FunctionEmitter, op: Operation) -> None:
        a, b = e.operands(op)
        t, x, y = e.type(a), e.names[a], e.names[b]
        result = e.define(op.results[0])
        if y[0] != "%" and y != "-1":
            e.line(f"{result} = {instruction} {t} {x}, {y}")
            return
        minus_one, divisor, quotient = e.temporary(), e.temporary(), e.temporary()
        e.line(f"{minus_one} = icmp eq {t} {y}, -1")
        e.line(f"{divisor} = select i1 {minus_one}, {t} 1, {t} {y}")
        e.line(f"{quotient} = {instruction} {t} {x}, {divisor}")
        wrapped = "0"
        if instruction == "sdiv":
            wrapped = e.temporary()
            e.line(f"{wrapped} = sub {t} 0, {x}")
        e.line(f"{result} = select i1 {minus_one}, {t} {wrapped}, {t} {quotient}")

    return emit


def _compare(instruction: str, predicates: tuple[str, ...]) -> Emit:
    def emit(e: FunctionEmitter, op: Operation) -> None:
        a, b = e.operands(op)
        predicate = op.properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        name = predicates[predicate.value.data]
        fold = COMPARISONS.get(name)
        if fold is not None and is_number(e.names[a]) and is_number(e.names[b]):
            e.names[op.results[0]] = "true" if fold(int(e.names[a]), int(e.names[b])) else "false"
            return
        e.line(f"{e.define(op.results[0])} = {instruction} {name} {e.type(a)} {e.names[a]}, {e.names[b]}")

    return emit


def _select(e: FunctionEmitter, op: Operation) -> None:
    condition, a, b = e.operands(op)
    if (test := e.names[condition]) in ("true", "false"):
        e.names[op.results[0]] = e.names[a if test == "true" else b]
        return
    t = e.type(a)
    e.line(f"{e.define(op.results[0])} = select i1 {e.names[condition]}, {t} {e.names[a]}, {t} {e.names[b]}")


def _convert(instruction: str) -> Emit:
    def emit(e: FunctionEmitter, op: Operation) -> None:
        (a,) = e.operands(op)
        (result,) = op.results
        if instruction in ("sext", "trunc") and is_number(e.names[a]) and e.type(result) != "i1":
            e.names[result] = wrapped(int(e.names[a]), e.type(result))
            return
        e.line(f"{e.define(result)} = {instruction} {e.type(a)} {e.names[a]} to {e.type(result)}")

    return emit


def _index_cast(e: FunctionEmitter, op: Operation) -> None:
    (a,) = e.operands(op)
    (result,) = op.results
    source, target = e.type(a), e.type(result)
    if source == target:
        e.names[result] = e.names[a]
    else:
        instruction = "sext" if int(source[1:]) < int(target[1:]) else "trunc"
        e.line(f"{e.define(result)} = {instruction} {source} {e.names[a]} to {target}")


def _float_to_integer(name: str) -> Emit:
    """Saturates (NaN gives 0), where the plain instruction gives poison for what does not fit."""

    def emit(e: FunctionEmitter, op: Operation) -> None:
        (a,) = e.operands(op)
        (result,) = op.results
        source, target = e.type(a), e.type(result)
        callee = f"llvm.{name}.sat.{target}.{intrinsic_suffix(source)}"
        e.module.declare(callee, f"declare {target} @{callee}({source})")
        e.line(f"{e.define(result)} = call {target} @{callee}({source} {e.names[a]})")

    return emit


def scalar_table() -> dict[type[Operation], Emit]:
    """Op class → emitter, for all `arith` ops that are supported."""
    table: dict[type[Operation], Emit] = {
        arith.ConstantOp: _constant,
        arith.NegfOp: _negate,
        arith.DivSIOp: _signed_division("sdiv"),
        arith.RemSIOp: _signed_division("srem"),
        arith.CmpiOp: _compare("icmp", INTEGER_PREDICATES),
        arith.CmpfOp: _compare("fcmp", FLOAT_PREDICATES),
        arith.SelectOp: _select,
        arith.IndexCastOp: _index_cast,
        arith.FPToSIOp: _float_to_integer("fptosi"),
        arith.FPToUIOp: _float_to_integer("fptoui"),
    }
    table |= {op: _integer_binary(name) for op, name in INTEGER_BINARY.items()}
    table |= {op: _float_binary(name, contractible) for op, (name, contractible) in FLOAT_BINARY.items()}
    table |= {op: _intrinsic_binary(name) for op, name in INTRINSIC_BINARY.items()}
    table |= {op: _convert(name) for op, name in CONVERSIONS.items()}
    return table
