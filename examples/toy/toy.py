"""Toy: a language of one page on ulam's dialect `stan`. README.md goes through this file, chapter by chapter."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

import ulam
from ulam.ir import stan

# -------------------------------------------------------------------- 1. the language: text to trees

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*)|([a-z]\w*)|([-+*/^(),=~]))")


class Tree(NamedTuple):
    """A number, a name, a call `f(x, ...)` or an operator with its operands."""

    kind: str
    text: str
    parts: tuple[Tree, ...] = ()


class Parser:
    """An expression, by precedence: `^` binds more than `*` and `/`, and these more than `+` and `-`."""

    def __init__(self, text: str) -> None:
        self.tokens = [found[found.lastindex or 0] for found in TOKEN.finditer(text)]

    def accept(self, wanted: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else ""

    def expression(self, operators: tuple[str, ...] = ("+-", "*/", "^")) -> Tree:
        if not operators:
            return self.operand()
        left = self.expression(operators[1:])
        while symbol := self.accept(operators[0]):
            left = Tree("operator", symbol, (left, self.expression(operators[1:])))
        return left

    def operand(self) -> Tree:
        text = self.tokens.pop(0)
        parts = [] if text != "(" and not self.accept("(") else [self.expression()]
        while parts and self.accept(","):
            parts.append(self.expression())
        self.accept(")" if parts else "")
        if text == "(":
            return parts[0]
        return Tree("call" if parts else "number" if text[0].isdigit() else "name", text, tuple(parts))


# -------------------------------------------------------------------- 2. trees to ops of the dialect `stan`

DECLARATION = re.compile(r"(data|unknown|positive) (.*)")


class Lowering:
    """The module of a program. Data are vectors of one size `n`; all else is as large as what it is made of."""

    def __init__(self, text: str, file: str) -> None:
        lines = [(number, line.split("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
        found = [(number, DECLARATION.match(line)) for number, line in lines]
        self.file = file
        self.declared = [
            (number, each[1], name.strip()) for number, each in found if each for name in each[2].split(",")
        ]
        self.statements = [(number, line) for number, line in lines if line and not DECLARATION.match(line)]
        self.types = {name: stan.VECTOR if kind == "data" else stan.REAL for _, kind, name in self.declared}

    def module(self) -> ModuleOp:
        slowing = stan.FuncOp("slowing", ["x"], [stan.VECTOR], [stan.VECTOR], Region())  # no body: see chapter 4
        blocks = [self.block(kind) for kind in ("data", "parameters", "model")]
        return ModuleOp([stan.ProgramOp("toy", Region(Block([slowing, *blocks])))])

    def block(self, kind: str) -> stan.BlockOp:
        self.ops: list[Operation] = []
        self.variables: dict[str, SSAValue] = {}
        self.place: FileLineColLoc | None = None
        n = stan.DeclareOp("n", stan.INT) if kind == "data" else stan.GlobalOp("n", stan.VarType(stan.INT))
        self.size = self.add(stan.ReadOp(self.add(n)))
        for number, *parts in self.statements if kind == "model" else self.declared:
            self.place = FileLineColLoc(StringAttr(self.file), IntAttr(number), IntAttr(1))
            if kind == "model":
                self.statement(parts[0])
            elif (kind == "data") == (parts[0] == "data"):
                self.declaration(*parts)
        return stan.BlockOp(kind, Region(Block(self.ops)))

    def add(self, op: Operation) -> SSAValue:
        op.location = self.place or op.location
        self.ops.append(op)
        return op.results[0] if op.results else op.operands[0]

    def declaration(self, kind: str, name: str) -> None:
        if kind == "data":
            self.add(stan.DeclareOp(name, stan.VECTOR, [self.size]))
        elif kind == "unknown":
            self.add(stan.ParameterOp(name, stan.REAL))
        else:
            zero = self.add(stan.ConstantOp(0.0))
            self.add(stan.ParameterOp(name, stan.REAL, (), "bounds", (zero, None, None, None)))

    def statement(self, line: str) -> None:
        name, symbol, rest = re.split(r"\s*([=~])\s*", line, maxsplit=1)
        tree = Parser(rest).expression()
        if symbol == "=":
            value = self.value(tree)
            sizes = [self.size] if value.type == stan.VECTOR else []
            self.variables[name] = self.add(stan.DeclareOp(name, value.type, sizes))
            self.add(stan.AssignOp(self.variables[name], value))
        else:
            parts = [self.value(part) for part in (Tree("name", name), *tree.parts)]
            density = stan.CallOp(f"{tree.text}_lpdf", parts, stan.REAL, [1] * len(parts), unnormalized=True)
            self.add(stan.TargetAddOp(self.add(density), tilde=True))

    def value(self, tree: Tree) -> SSAValue:
        if tree.kind == "number":
            return self.add(stan.ConstantOp(float(tree.text)))
        if tree.kind == "name":
            return self.add(stan.ReadOp(self.variable(tree.text)))
        parts = [self.value(part) for part in tree.parts]
        vectors = [part.type == stan.VECTOR for part in parts]
        type_ = stan.VECTOR if any(vectors) else stan.REAL
        if tree.kind == "call":
            return self.add(stan.CallOp(tree.text, parts, type_, [1] * len(parts), user=tree.text == "slowing"))
        by_element = vectors[1] and tree.text in "*/^" or any(vectors) and tree.text == "^"
        return self.add(stan.BINARY_OPERATORS["." * by_element + tree.text](parts[0], parts[1], type_))

    def variable(self, name: str) -> SSAValue:
        if name not in self.variables:
            if name not in self.types:
                raise SyntaxError(f"{self.file}: '{name}' is not declared")
            self.variables[name] = self.add(stan.GlobalOp(name, stan.VarType(self.types[name])))
        return self.variables[name]


# -------------------------------------------------------------------- 3. a pass


@ulam.register_pass
class Squares(ModulePass):
    """`x ^ 2` becomes `square(x)`, which needs no logarithm."""

    name = "toy-squares"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        powers = stan.BINARY_OPERATORS["^"], stan.BINARY_OPERATORS[".^"]
        for power in [inner for inner in op.walk() if isinstance(inner, powers)]:
            base, exponent = power.operands
            if isinstance(exponent.owner, stan.ConstantOp) and exponent.owner.value == stan.ConstantOp(2.0).value:
                square = stan.CallOp("square", [base], power.results[0].type, [1], location=power.location)
                Rewriter.replace_op(power, square)


# -------------------------------------------------------------------- 4. a function with its derivative


def slowing(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.abs(x))


def slowing_pullback(x: np.ndarray, adjoint: np.ndarray) -> np.ndarray:
    return adjoint / (1 + np.abs(x)) ** 2


SLOWING = ulam.external(slowing, slowing_pullback, shape="x")

# -------------------------------------------------------------------- 5. to machine code, and a run


def compiled(text: str, data: dict[str, Any], file: str = "program.toy", **options: Any) -> ulam.StanModel:
    """The model of a Toy program."""
    module = Lowering(text, file).module()
    return ulam.StanModel.from_module(module, data, external={"slowing": SLOWING}, **options)


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[2]).read_text())
    model = compiled(Path(sys.argv[1]).read_text(), given, sys.argv[1])
    print(model.optimize(seed=1))
