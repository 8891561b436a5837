"""Executes functions over arith, scf, rt and ad.target_add: the reference for passes that must not change results."""

from __future__ import annotations

import math
import struct
from typing import Any

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import predicate_of


class Left(Exception):
    """The function was left by a check."""


class _OutOfFuel(Exception):
    """The program ran for too long."""


def bits(value: Any) -> Any:
    """Floats by their bits, so that 0.0 is not -0.0; one NaN is as good as another."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, list | tuple):
        return [bits(v) for v in value]
    return value


def _wrap(value: int, type_: Any) -> int:
    width = type_.width.data if isinstance(type_, IntegerType) else 64
    if width == 1:
        return value & 1
    half = 1 << (width - 1)
    return (value + half) % (1 << width) - half


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        if a == 0.0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


_RELATIONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _compare(predicate: str, a: float, b: float) -> bool:
    """Predicates of reals, and the signed ones of ints."""
    if predicate in ("eq", "ne", *(f"s{relation}" for relation in _RELATIONS)):
        return _RELATIONS[predicate[-2:]](a, b)
    if predicate in ("true", "false"):
        return predicate == "true"
    unordered = a != a or b != b
    if predicate in ("uno", "ord"):
        return unordered == (predicate == "uno")
    assert type(a) is float, f"unsigned {predicate}"
    return predicate[0] == "u" if unordered else _RELATIONS[predicate[1:]](a, b)


_SIMPLE = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": _divide,
    "arith.negf": lambda a: -a,
    "arith.select": lambda c, a, b: a if c else b,
    "arith.sitofp": float,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
}


class Interpreter:
    """One run of one function. A buffer is (list, offset)."""

    def __init__(self, fuel: int = 100_000) -> None:
        self.values: dict[SSAValue, Any] = {}
        self.added: list[float] = []  # to the target
        self.fuel = fuel
        self.executed: dict[str, int] = {}

    def call(self, function: func.FuncOp, *arguments: Any) -> list[Any]:
        block = function.body.block
        self.values.update(zip(block.args, arguments, strict=True))
        return self.block(block)

    def block(self, block: Block) -> list[Any]:
        for op in block.ops:
            self.fuel -= 1
            if self.fuel < 0:
                raise _OutOfFuel
            self.executed[op.name] = self.executed.get(op.name, 0) + 1
            if isinstance(op, scf.YieldOp | scf.ConditionOp | func.ReturnOp):
                return [self.values[v] for v in op.operands]
            self.op(op, [self.values[v] for v in op.operands])
        return []

    def op(self, op: Operation, operands: list[Any]) -> None:
        match op:
            case arith.ConstantOp():
                self.set(op, op.value.value.data)  # type: ignore[union-attr]
            case arith.CmpiOp() | arith.CmpfOp():
                self.set(op, int(_compare(predicate_of(op), *operands)))
            case rt.AllocOp():
                self.set(op, ([0.0] * operands[0], 0))
            case rt.ViewOp():
                (memory, start), offset = operands
                self.set(op, (memory, start + offset))
            case rt.LoadOp():
                (memory, start), index = operands
                self.set(op, memory[start + index])
            case rt.StoreOp():
                value, (memory, start), index = operands
                memory[start + index] = value
            case ad.AccumulateOp():
                (memory, start), index, value = operands
                memory[start + index] += value
            case rt.CheckOp():
                if not operands[0]:
                    raise Left(op.properties["site"])
            case ad.TargetAddOp():
                self.added.append(operands[0])
            case scf.ForOp() | scf.IfOp() | scf.WhileOp():
                self.values.update(zip(op.results, self.control(op, operands), strict=True))
            case _:
                self.set(op, _SIMPLE[op.name](*operands))

    def set(self, op: Operation, value: Any) -> None:
        type_ = op.results[0].type
        self.values[op.results[0]] = _wrap(value, type_) if isinstance(value, int) else value

    def control(self, op: Operation, operands: list[Any]) -> list[Any]:
        if isinstance(op, scf.IfOp):
            region = op.true_region if operands[0] else op.false_region
            return self.block(region.block) if region.blocks else []
        if isinstance(op, scf.ForOp):
            lower, upper, step, *carried = operands
            for i in range(lower, upper, step):
                self.values.update(zip(op.body.block.args, [i, *carried], strict=True))
                carried = self.block(op.body.block)
            return carried
        assert isinstance(op, scf.WhileOp)
        while True:
            self.values.update(zip(op.before_region.block.args, operands, strict=True))
            condition, *passed = self.block(op.before_region.block)
            if not condition:
                return passed
            self.values.update(zip(op.after_region.block.args, passed, strict=True))
            operands = self.block(op.after_region.block)
