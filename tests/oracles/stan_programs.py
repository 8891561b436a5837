"""Random small functions in the variable form of the `stan` dialect: nested loops, exits, variables, prints.

A program is nested tuples, so that hypothesis can shrink it; `build` makes a `stan.func` of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i32,
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
_NO_SEGMENTS = DenseArrayBase.from_list(i32, [0, 0, 0, 0, 0])


@dataclass
class _Builder:
    """Writes ops at the end of `block`."""

    block: Block
    variables: dict[str, SSAValue]
    array: SSAValue
    part: SSAValue
    in_loop: bool = False
    counters: list[int] = field(default_factory=lambda: [0])

    def emit(
        self,
        cls: type[Operation],
        operands: tuple[SSAValue, ...] = (),
        types: tuple[Attribute, ...] = (),
        properties: Mapping[str, Attribute] | None = None,
        regions: tuple[Block, ...] = (),
    ) -> Operation:
        op = cls.create(
            operands=operands,
            result_types=types,
            properties=properties or {},
            regions=[Region(block) for block in regions],
        )
        self.block.add_op(op)
        return op

    def value(self, cls: type[Operation], *operands: SSAValue) -> SSAValue:
        return self.emit(cls, operands, (stan.INT,)).results[0]

    def constant(self, value: int) -> SSAValue:
        return self.emit(stan.ConstantOp, (), (stan.INT,), {"value": IntegerAttr(value, i32)}).results[0]

    def declare(self, name: str, type_: Attribute = stan.INT) -> SSAValue:
        properties: dict[str, Attribute] = {
            "var_name": StringAttr(name),
            "constraint": StringAttr("none"),
            "operandSegmentSizes": _NO_SEGMENTS,
        }
        result = self.emit(stan.DeclareOp, (), (stan.VarType(type_),), properties).results[0]
        result.name_hint = name
        return result

    def assign(self, variable: SSAValue, value: SSAValue) -> None:
        self.emit(stan.AssignOp, (variable, value), (), {"kinds": ArrayAttr[StringAttr](())})

    def expression(self, e: tuple[Any, ...]) -> SSAValue:
        operators = stan.BINARY_OPERATORS
        if e[0] == "constant":
            return self.constant(e[1])
        read = self.value(stan.ReadOp, self.variables[e[1]])
        match e[0]:
            case "read":
                return read
            case "add":
                return self.value(operators["+"], read, self.constant(e[2]))
            case "parity":
                return self.value(operators["%"], read, self.constant(2))
            case "less":
                return self.value(operators["<"], read, self.constant(e[2]))
            case _:
                inner = self.inside()
                inner.emit(stan.YieldOp, (inner.value(stan.ReadOp, self.variables[e[2]]),))
                return self.emit(stan.AndOp, (read,), (stan.INT,), None, (inner.block,)).results[0]

    def inside(self, *arguments: Attribute, loop: bool | None = None) -> _Builder:
        in_loop = self.in_loop if loop is None else loop
        return _Builder(Block(arg_types=arguments), dict(self.variables), self.array, self.part, in_loop, self.counters)

    def statements(self, statements: list[Any], *, closed: bool = True) -> Block:
        for statement in statements:
            if not self.statement(statement):
                return self.block
        if closed:
            self.emit(stan.YieldOp)
        return self.block

    def statement(self, s: tuple[Any, ...]) -> bool:
        """Writes a statement; whether the next one is reached."""
        match s[0]:
            case "assign":
                self.assign(self.variables[s[1]], self.expression(s[2]))
            case "print":
                self.emit(stan.PrintOp, (self.expression(s[1]),), (), {"kind": StringAttr("print")})
            case "part":
                index = self.value(stan.BINARY_OPERATORS["%"], self.expression(("read", s[1])), self.constant(3))
                index = self.value(stan.BINARY_OPERATORS["+"], index, self.constant(1))
                kinds = {"kinds": ArrayAttr((StringAttr("single"),))}
                self.emit(stan.AssignOp, (self.part, self.expression(s[2]), index), (), kinds)
            case "break" | "continue":
                if self.in_loop:
                    self.emit(stan.BreakOp if s[0] == "break" else stan.ContinueOp)
                    return False
            case "return":
                self.emit(stan.ReturnOp, (self.expression(s[1]),))
                return False
            case _:
                self.compound(s)
        return True

    def compound(self, s: tuple[Any, ...]) -> None:
        self.counters[0] += 1
        name = StringAttr(f"i{self.counters[0]}")
        match s[0]:
            case "if":
                condition = self.expression(s[1])
                branches = (self.inside().statements(s[2]), self.inside().statements(s[3]))
                self.emit(stan.IfOp, (condition,), (), None, branches)
            case "for":
                bounds = (self.expression(s[1]), self.expression(s[2]))
                body = self.inside(stan.INT, loop=True)
                body.emit(stan.PrintOp, (body.block.args[0],), (), {"kind": StringAttr("print")})
                self.emit(stan.ForOp, bounds, (), {"variable": name}, (body.statements(s[3]),))
            case "foreach":
                body = self.inside(stan.INT, loop=True)
                body.emit(stan.PrintOp, (body.block.args[0],), (), {"kind": StringAttr("print")})
                self.emit(stan.ForEachOp, (self.array,), (), {"variable": name}, (body.statements(s[1]),))
            case "while":
                condition = self.inside()
                condition.emit(stan.ConditionOp, (condition.expression(s[1]),))
                body = self.inside(loop=True)
                self.emit(stan.WhileOp, (), (), None, (condition.block, body.statements(s[2])))
            case "scope":
                inner = self.inside()
                inner.variables[s[1]] = inner.declare(s[1])
                self.emit(stan.ScopeOp, (), (), None, (inner.statements(s[2]),))
            case _:
                properties: dict[str, Attribute] = {"profile_name": StringAttr("p")}
                self.emit(stan.ProfileOp, (), (), properties, (self.inside().statements(s[1]),))


def build(program: list[Any]) -> ModuleOp:
    """A module with one function `int f(array[] int x, array[] int y)`."""
    block = Block(arg_types=(ARRAY, ARRAY))
    x, y = block.args
    builder = _Builder(block, {}, x, x)
    builder.part = builder.declare("part", ARRAY)
    builder.assign(builder.part, y)
    for number, name in enumerate(NAMES):
        builder.variables[name] = builder.declare(name)
        if number:
            builder.assign(builder.variables[name], builder.constant(number))
    builder.statements(program, closed=False)
    last = block.last_op
    if not isinstance(last, stan.ReturnOp):
        for name in NAMES:
            builder.emit(stan.PrintOp, (builder.expression(("read", name)),), (), {"kind": StringAttr("print")})
        whole = builder.emit(stan.ReadOp, (builder.part,), (ARRAY,)).results
        builder.emit(stan.PrintOp, (whole[0],), (), {"kind": StringAttr("print")})
        builder.emit(stan.ReturnOp, (builder.expression(("read", "a")),))
    function = stan.FuncOp.create(
        properties={
            "sym_name": StringAttr("f"),
            "stan_name": StringAttr("f"),
            "function_type": FunctionType.from_lists([ARRAY, ARRAY], [stan.INT]),
            "argument_names": ArrayAttr((StringAttr("x"), StringAttr("y"))),
            "data_only": DenseArrayBase.from_list(i32, [0, 0]),
        },
        regions=(Region(block),),
    )
    return ModuleOp([function])


__all__ = ["ARRAY", "NAMES", "build", "programs"]
