"""Executes functions of the `stan` dialect over ints and lists, in variable form and in value form.

The reference for passes that must not change what a program does: run before and after, compare results and prints.
"""

from __future__ import annotations

import math
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan

UNINITIALIZED = -(2**31)


class _Exit(Exception):
    """A break, continue or return under way."""

    def __init__(self, op: Operation, value: Any = None) -> None:
        super().__init__(op.name)
        self.op = op
        self.value = value


class _OutOfFuel(Exception):
    """The program ran for too long."""


def _wrap(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


_BINARY = {
    "+": lambda a, b: _wrap(a + b),
    "-": lambda a, b: _wrap(a - b),
    "*": lambda a, b: _wrap(a * b),
    "%": lambda a, b: int(math.fmod(a, b)),  # the sign of the dividend
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}


class Interpreter:
    """One run of one function or block."""

    def __init__(self, fuel: int = 20_000) -> None:
        self.values: dict[SSAValue, Any] = {}
        self.variables: dict[SSAValue, Any] = {}
        self.printed: list[Any] = []
        self.defined: dict[str, Any] = {}
        self.fuel = fuel

    def call(self, function: stan.FuncOp, *arguments: Any) -> Any:
        block = function.body.block
        self.values.update(zip(block.args, arguments, strict=True))
        try:
            self.block(block)
        except _Exit as leave:
            return leave.value
        return None

    def block(self, block: Block) -> tuple[Any, ...]:
        """Executes a block; the values that its terminator passes on."""
        for op in block.ops:
            self.fuel -= 1
            if self.fuel < 0:
                raise _OutOfFuel
            if isinstance(op, stan.YieldOp | stan.ConditionOp):
                return tuple(self.values[v] for v in op.operands)
            self.op(op)
        return ()

    def op(self, op: Operation) -> None:
        operands: list[Any] = [self.values.get(v) for v in op.operands]
        match op:
            case stan.ConstantOp():
                self.values[op.res] = op.value.value.data  # type: ignore[union-attr]
            case stan.DeclareOp():
                self.values[op.res] = op.res
                self.variables[op.res] = UNINITIALIZED
            case stan.UninitializedOp():
                self.values[op.res] = UNINITIALIZED
            case stan.ReadOp():
                self.values[op.res] = self.variables[op.var]
            case stan.AssignOp():
                self.assign(op, operands)
            case stan.AssertShapeOp():
                assert len(operands[0]) == operands[1], "shape"
                self.values[op.res] = operands[0]
            case stan.DefineOp():
                self.defined[op.var_name.data] = operands[0]
            case stan.IndexOp():
                self.values[op.res] = operands[0][operands[1] - 1]
            case stan.CallOp():
                assert op.callee.data in ("size", "num_elements", "to_vector")
                self.values[op.results[0]] = operands[0] if op.callee.data == "to_vector" else len(operands[0])
            case stan.PrintOp():
                self.printed.append(tuple(operands))
            case stan.ReturnOp():
                raise _Exit(op, operands[0] if operands else None)
            case stan.BreakOp() | stan.ContinueOp():
                raise _Exit(op)
            case _ if op.regions:
                self.control(op, operands)
            case _:
                symbol = getattr(op, "SYMBOL", None)
                assert symbol in _BINARY, op.name
                self.values[op.results[0]] = _BINARY[symbol](*operands)

    def assign(self, op: stan.AssignOp, operands: list[Any]) -> None:
        if op.indices:
            self.variables[op.var] = list(self.variables[op.var])
            self.variables[op.var][operands[2] - 1] = operands[1]
        else:
            self.variables[op.var] = operands[1]

    def control(self, op: Operation, operands: list[Any]) -> None:
        results: tuple[Any, ...]
        match op:
            case stan.IfOp() | stan.SelectOp():
                results = self.block((op.then if operands[0] else op.otherwise).block)
            case stan.AndOp():
                results = (int(bool(operands[0]) and bool(self.block(op.right.block)[0])),)
            case stan.OrOp():
                results = (int(bool(operands[0]) or bool(self.block(op.right.block)[0])),)
            case stan.ScopeOp() | stan.ProfileOp():
                results = self.block(op.body.block)
            case stan.ForOp():
                results = self.iterate(op.body.block, range(operands[0], operands[1] + 1), operands[2:])
            case stan.ForEachOp():
                results = self.iterate(op.body.block, operands[0], operands[1:])
            case stan.WhileOp():
                results = self.loop(op, tuple(operands))
            case _:
                raise AssertionError(op.name)
        self.values.update(zip(op.results, results, strict=True))

    def iterate(self, body: Block, elements: Any, carried: Any) -> tuple[Any, ...]:
        for element in elements:
            self.values.update(zip(body.args, (element, *carried), strict=True))
            try:
                carried = self.block(body)
            except _Exit as leave:
                if isinstance(leave.op, stan.ReturnOp):
                    raise
                if isinstance(leave.op, stan.BreakOp):
                    break
        return tuple(carried)

    def loop(self, op: stan.WhileOp, carried: tuple[Any, ...]) -> tuple[Any, ...]:
        while True:
            self.values.update(zip(op.condition.block.args, carried, strict=True))
            condition, *passed = self.block(op.condition.block)
            carried = tuple(passed)
            if not condition:
                return carried
            self.values.update(zip(op.body.block.args, carried, strict=True))
            try:
                carried = self.block(op.body.block)
            except _Exit as leave:
                if isinstance(leave.op, stan.ReturnOp):
                    raise
                if isinstance(leave.op, stan.BreakOp):
                    return carried
