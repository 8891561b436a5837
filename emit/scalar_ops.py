"""The scalar part of the emission table: each `arith` op and the LLVM instruction it becomes.

Integers wrap, as Stan's do. A division whose divisor may be -1 is written so that `INT_MIN / -1` wraps too, where the
bare instruction would trap; that the divisor is not 0 is tested before (`rt.check`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation

from ulam.dialects.scalar_ops import compare_integers, convert, predicate_of, simplify
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

_OF_INTEGERS = ("sext", "zext", "trunc", "sitofp", "uitofp")

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


def bits_of_literal(text: str) -> int:
    """What `float_literal` wrote, as the 64 bits of an integer with a sign."""
    given = int(text, 16).to_bytes(8, "little") if text.startswith("0x") else struct.pack("<d", float(text))
    return struct.unpack("<q", given)[0]


def _constant(e: FunctionEmitter, op: Operation) -> None:
    value = op.properties["value"]
    (result,) = op.results
    if isinstance(value, FloatAttr):
        e.names[result] = float_literal(value.value.data)
    elif isinstance(value, IntegerAttr):
        number = value.value.data
        e.names[result] = _integer_literal(number, e.type(result))
    else:
        raise EmissionError(f"constant of type {result.type} cannot be emitted: only scalars can", op)


def known_integer(name: str) -> int | None:
    """The integer that the name of an integer value is a literal of."""
    if name[0] in "-0123456789":
        return int(name)
    return _BITS.get(name)


_BITS = {"true": 1, "false": 0}


def _integer_literal(value: int, llvm_type: str) -> str:
    if llvm_type == "i1":
        return "true" if value else "false"
    return str(value)


def _is_simple(e: FunctionEmitter, op: Operation) -> bool:
    """Whether the result is known, as sizes and bounds of small containers are: it is a literal or an operand then."""
    a, b = op.operands
    x, y = e.names[a], e.names[b]
    known_x, known_y = known_integer(x), known_integer(y)
    if known_x is None and known_y is None:
        return False
    t = e.type(a)
    outcome = simplify(type(op), known_x, known_y, int(t[1:]))
    if outcome is None:
        return False
    e.names[op.results[0]] = x if outcome == "left" else y if outcome == "right" else _integer_literal(int(outcome), t)
    return True


def _integer_binary(instruction: str) -> Emit:
    def emit(e: FunctionEmitter, op: Operation) -> None:
        a, b = e.operands(op)
        if not _is_simple(e, op):
            e.line(f"{e.define(op.results[0])} = {instruction} {e.type(a)} {e.names[a]}, {e.names[b]}")

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
        if t[0] == "i" and _is_simple(e, op):
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
        if _is_simple(e, op):
            return
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


def _compare_integers(e: FunctionEmitter, op: Operation) -> None:
    a, b = e.operands(op)
    predicate, t = predicate_of(op), e.type(a)
    x, y = known_integer(e.names[a]), known_integer(e.names[b])
    if x is not None and y is not None:
        e.names[op.results[0]] = "true" if compare_integers(predicate, x, y, int(t[1:])) else "false"
    else:
        e.line(f"{e.define(op.results[0])} = icmp {predicate} {t} {e.names[a]}, {e.names[b]}")


def _compare_reals(e: FunctionEmitter, op: Operation) -> None:
    a, b = e.operands(op)
    e.line(f"{e.define(op.results[0])} = fcmp {predicate_of(op)} {e.type(a)} {e.names[a]}, {e.names[b]}")


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
        if instruction in _OF_INTEGERS and (known := known_integer(e.names[a])) is not None:
            value = convert(type(op), known, a.type, result.type)
            if value is not None:
                is_real = isinstance(value, float)
                e.names[result] = float_literal(value) if is_real else _integer_literal(value, e.type(result))
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
        arith.CmpiOp: _compare_integers,
        arith.CmpfOp: _compare_reals,
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
