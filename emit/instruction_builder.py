"""Arithmetic on LLVM values, written as Python expressions.

    def square_plus_one(f: InstructionBuilder, x: Value) -> Value:
        return f.fma(x, x, 1.0)

Used for the mathematical functions of `vector_math`, whose text is made when a module first uses them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ulam.emit.scalar_ops import float_literal
from ulam.library.records import record


@record(frozen=True)
class Value:
    """A double, an i64 or an i1; operators write instructions."""

    builder: InstructionBuilder
    name: str
    type: str

    def __add__(self, other: Operand) -> Value:
        return self.builder.binary("fadd", "add", self, other)

    def __radd__(self, other: float) -> Value:
        return self.builder.binary("fadd", "add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.builder.binary("fsub", "sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return self.builder.binary("fsub", "sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.builder.binary("fmul", "mul", self, other)

    def __rmul__(self, other: float) -> Value:
        return self.builder.binary("fmul", "mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.builder.binary("fdiv", "fdiv", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self.builder.binary("fdiv", "fdiv", other, self)

    def __neg__(self) -> Value:
        return self.builder.instruction("double", f"fneg double {self.name}")

    def __and__(self, other: Operand) -> Value:
        return self.builder.binary("and", "and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.builder.binary("or", "or", self, other)

    def __lshift__(self, count: int) -> Value:
        return self.builder.binary("shl", "shl", self, count)

    def __rshift__(self, count: int) -> Value:
        """Logical shift."""
        return self.builder.binary("lshr", "lshr", self, count)

    def __lt__(self, other: Operand) -> Value:
        return self.builder.compare("olt", "slt", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.builder.compare("ogt", "sgt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.builder.compare("ole", "sle", self, other)

    def equals(self, other: Operand) -> Value:
        """Ordered equality."""
        return self.builder.compare("oeq", "eq", self, other)


Operand = Value | float | int


class InstructionBuilder:
    """Collects the instructions of one function of doubles."""

    def __init__(self, fused: bool) -> None:
        self.fused = fused
        self.lines: list[str] = []
        self.intrinsics: set[str] = set()

    def argument(self, name: str) -> Value:
        """The double argument called `name`."""
        return Value(self, f"%{name}", "double")

    def instruction(self, type: str, text: str) -> Value:
        """Writes an instruction with a result."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return Value(self, name, type)

    def text(self, operand: Operand, type: str) -> str:
        """An operand as it is written, a Python number as a literal of `type`."""
        if isinstance(operand, Value):
            return operand.name
        return float_literal(float(operand)) if type == "double" else str(int(operand))

    def binary(self, real: str, integer: str, a: Operand, b: Operand) -> Value:
        """`real` or `integer`, by the operands' type."""
        t = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else "double"
        name = real if t == "double" else integer
        return self.instruction(t, f"{name} {t} {self.text(a, t)}, {self.text(b, t)}")

    def compare(self, real: str, integer: str, a: Value, b: Operand) -> Value:
        """A truth value; with NaN it is false."""
        t = a.type
        predicate = f"fcmp {real}" if t == "double" else f"icmp {integer}"
        return self.instruction("i1", f"{predicate} {t} {a.name}, {self.text(b, t)}")

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        """`a` if `condition`, else `b`; both are computed."""
        t = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else "double"
        return self.instruction(t, f"select i1 {condition.name}, {t} {self.text(a, t)}, {t} {self.text(b, t)}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """`a * b + c`, rounded once where the target has the instruction."""
        name = "llvm.fma.f64" if self.fused else "llvm.fmuladd.f64"
        return self.intrinsic(name, a, b, c)

    def intrinsic(self, name: str, *operands: Operand) -> Value:
        """A call of an intrinsic of doubles."""
        self.intrinsics.add(f"declare double @{name}({', '.join(['double'] * len(operands))})")
        arguments = ", ".join(f"double {self.text(a, 'double')}" for a in operands)
        return self.instruction("double", f"call double @{name}({arguments})")

    def absolute(self, x: Value) -> Value:
        """Without its sign."""
        return self.intrinsic("llvm.fabs.f64", x)

    def bits(self, x: Value) -> Value:
        """The 64 bits of a double."""
        return self.instruction("i64", f"bitcast double {x.name} to i64")

    def real(self, x: Value) -> Value:
        """The double with these 64 bits."""
        return self.instruction("double", f"bitcast i64 {x.name} to double")

    def at_least(self, x: Value, bound: float) -> Value:
        """The larger one; NaN stays."""
        return self.select(x < bound, bound, x)

    def at_most(self, x: Value, bound: float) -> Value:
        """The smaller one; NaN stays."""
        return self.select(x > bound, bound, x)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Estrin's scheme, lowest coefficient first: short chains, which matter where a value is alone."""
        terms: list[Operand] = list(coefficients)
        power = x
        while len(terms) > 1:
            paired: list[Operand] = [self.fma(terms[i + 1], power, terms[i]) for i in range(0, len(terms) - 1, 2)]
            if len(terms) % 2:
                paired.append(terms[-1])
            terms = paired
            if len(terms) > 1:
                power = power * power
        (result,) = terms
        assert isinstance(result, Value)
        return result


NAN = math.nan
INFINITY = math.inf
