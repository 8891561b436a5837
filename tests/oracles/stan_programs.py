"""Random small functions in the variable form of the `stan` dialect: nested loops, exits, variables, prints.

A program is nested tuples, so that hypothesis can shrink it; `build` makes a `stan.func` of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    IntAttr,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import stan

NAMES = ("a", "b", "c")

_expressions = st.one_of(
    st.tuples(st.just("constant"), st.integers(-1, 3)),
    st.tuples(st.just("read"), st.sampled_from(NAMES)),
    st.tuples(st.just("add"), st.sampled_from(NAMES), st.integers(-1, 2)),
    st.tuples(st.just("parity"), st.sampled_from(NAMES)),
    st.tuples(st.just("less"), st.sampled_from(NAMES), st.integers(0, 4)),
    st.tuples(st.just("both"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)

_leaves = st.one_of(
    st.tuples(st.just("assign"), st.sampled_from(NAMES), _expressions),
    st.tuples(st.just("print"), _expressions),
    st.tuples(st.just("part"), st.sampled_from(NAMES), _expressions),
    st.tuples(st.just("break")),
    st.tuples(st.just("continue")),
    st.tuples(st.just("return"), _expressions),
)


def _statements(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    bodies = st.lists(inner, max_size=4)
    return st.one_of(
        st.tuples(st.just("if"), _expressions, bodies, bodies),
        st.tuples(st.just("for"), _expressions, _expressions, bodies),
        st.tuples(st.just("foreach"), bodies),
        st.tuples(st.just("while"), _expressions, bodies),
        st.tuples(st.just("scope"), st.sampled_from(NAMES), bodies),
        st.tuples(st.just("profile"), bodies),
    )


programs = st.lists(st.recursive(_leaves, _statements, max_leaves=20), max_size=6)
"""Bodies of functions `int f(array[] int x)`."""

ARRAY = stan.ArrayType(IntAttr(1), stan.INT)
SIZE = 3
"""Of the array that is assigned in part."""

OpT = TypeVar("OpT", bound=Operation)


@dataclass
class _Builder:
    """Writes ops at the end of `block`."""

    block: Block
    variables: dict[str, SSAValue]
    array: SSAValue
    part: SSAValue
    in_loop: bool = False
    counters: list[int] = field(default_factory=lambda: [0])

    def emit(self, op: OpT) -> OpT:
        self.block.add_op(op)
        return op

    def constant(self, value: int) -> SSAValue:
        return self.emit(stan.ConstantOp(value)).res

    def read(self, name: str) -> SSAValue:
        return self.emit(stan.ReadOp(self.variables[name])).res

    def binary(self, symbol: str, left: SSAValue, right: int) -> SSAValue:
        return self.emit(stan.BINARY_OPERATORS[symbol](left, self.constant(right), stan.INT)).res

    def declare(self, name: str, type_: Attribute = stan.INT, sizes: tuple[SSAValue, ...] = ()) -> SSAValue:
        return self.emit(stan.DeclareOp(name, type_, sizes)).res

    def expression(self, e: tuple[Any, ...]) -> SSAValue:
        if e[0] == "constant":
            return self.constant(e[1])
        read = self.read(e[1])
        match e[0]:
            case "read":
                return read
            case "add":
                return self.binary("+", read, e[2])
            case "parity":
                return self.binary("%", read, 2)
            case "less":
                return self.binary("<", read, e[2])
            case _:
                inner = self.inside()
                inner.emit(stan.YieldOp(inner.read(e[2])))
                return self.emit(stan.AndOp(read, Region(inner.block))).res

    def inside(self, *arguments: Attribute, loop: bool | None = None) -> _Builder:
        in_loop = self.in_loop if loop is None else loop
        return _Builder(Block(arg_types=arguments), dict(self.variables), self.array, self.part, in_loop, self.counters)

    def statements(self, statements: list[Any], *, closed: bool = True) -> Block:
        for statement in statements:
            if not self.statement(statement):
                return self.block
        if closed:
            self.emit(stan.YieldOp())
        return self.block

    def statement(self, s: tuple[Any, ...]) -> bool:
        """Writes a statement; whether the next one is reached."""
        match s[0]:
            case "assign":
                self.emit(stan.AssignOp(self.variables[s[1]], self.expression(s[2])))
            case "print":
                self.emit(stan.PrintOp("print", (self.expression(s[1]),)))
            case "part":
                index = self.binary("+", self.binary("%", self.read(s[1]), SIZE), 1)
                self.emit(stan.AssignOp(self.part, self.expression(s[2]), ("single",), (index,)))
            case "break" | "continue":
                if self.in_loop:
                    self.emit(stan.BreakOp() if s[0] == "break" else stan.ContinueOp())
                    return False
            case "return":
                self.emit(stan.ReturnOp(self.expression(s[1])))
                return False
            case _:
                self.compound(s)
        return True

    def compound(self, s: tuple[Any, ...]) -> None:
        self.counters[0] += 1
        name = f"i{self.counters[0]}"
        match s[0]:
            case "if":
                condition = self.expression(s[1])
                then, otherwise = (Region(self.inside().statements(s[n])) for n in (2, 3))
                self.emit(stan.IfOp(condition, then, otherwise))
            case "for":
                lower, upper = self.expression(s[1]), self.expression(s[2])
                body = self.inside(stan.INT, loop=True)
                body.emit(stan.PrintOp("print", (body.block.args[0],)))
                self.emit(stan.ForOp(name, lower, upper, Region(body.statements(s[3]))))
            case "foreach":
                body = self.inside(stan.INT, loop=True)
                body.emit(stan.PrintOp("print", (body.block.args[0],)))
                self.emit(stan.ForEachOp(name, self.array, Region(body.statements(s[1]))))
            case "while":
                condition = self.inside()
                condition.emit(stan.ConditionOp(condition.expression(s[1])))
                body = self.inside(loop=True)
                self.emit(stan.WhileOp(Region(condition.block), Region(body.statements(s[2]))))
            case "scope":
                inner = self.inside()
                inner.variables[s[1]] = inner.declare(s[1])
                self.emit(stan.ScopeOp(Region(inner.statements(s[2]))))
            case _:
                self.emit(stan.ProfileOp("p", Region(self.inside().statements(s[1]))))


def build(program: list[Any]) -> ModuleOp:
    """A module with one function `int f(array[] int x, array[] int y)`; `y` has `SIZE` elements."""
    block = Block(arg_types=(ARRAY, ARRAY))
    x, y = block.args
    builder = _Builder(block, {}, x, x)
    builder.part = builder.declare("part", ARRAY, (builder.constant(SIZE),))
    builder.emit(stan.AssignOp(builder.part, y))
    for number, name in enumerate(NAMES):
        builder.variables[name] = builder.declare(name)
        if number:
            builder.emit(stan.AssignOp(builder.variables[name], builder.constant(number)))
    builder.statements(program, closed=False)
    last = block.last_op
    if not isinstance(last, stan.ReturnOp):
        for name in NAMES:
            builder.emit(stan.PrintOp("print", (builder.read(name),)))
        builder.emit(stan.PrintOp("print", (builder.emit(stan.ReadOp(builder.part)).res,)))
        builder.emit(stan.ReturnOp(builder.read("a")))
    function = stan.FuncOp("f", ("x", "y"), (ARRAY, ARRAY), (stan.INT,), Region(block))
    return ModuleOp([function])


__all__ = ["ARRAY", "NAMES", "SIZE", "build", "programs"]
