"""Programs of text, built once more by the public methods of `ulam.build.Program`.

    program = rebuilt(parse_program(source), "name")

A node of the tree is the call that makes one like it: what the language has and the methods lack fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ulam
from ulam.frontend import syntax

OPERATORS = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "%/%": "__floordiv__", "%": "__mod__",
    "^": "__pow__", ".*": "times", "./": "over", ".^": "power", "\\": "solve", "==": "__eq__", "!=": "__ne__",
    "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__", "&&": "__and__", "||": "__or__",
}  # fmt: skip
PREFIXES = {"-": "__neg__", "+": "__pos__", "!": "__invert__"}
BLOCKS = ("data", "transformed_data", "parameters", "transformed_parameters", "model", "generated_quantities")
LIMITS = ("lower", "upper", "offset", "multiplier")


def rebuilt(tree: syntax.Program, name: str = "m", **options: Any) -> Any:
    """The built program of a tree that the type checker has not seen."""
    return _Rebuilder(tree, name, options).program


def plain(module: Any) -> str:
    """A module without places and its name."""
    without = re.sub(r"loc\((?:[^()]|\([^()]*\))*\)", "", str(module))
    return re.sub(r"(stan\.program) @\S+ \{", r"\1 {", without)


class _Rebuilder:
    def __init__(self, tree: syntax.Program, name: str, options: dict[str, Any]) -> None:
        self.program = p = ulam.build.Program(name, **options)
        self.values: dict[str, Any] = {}
        for function in tree.functions:
            self.function(function)
        for block in BLOCKS:
            found = getattr(tree, block)
            if found is not None:
                known = dict(self.values)
                with getattr(p, block):
                    self.statements(found.statements)
                if block == "model":
                    self.values = known

    def function(self, node: syntax.FunctionDefinition) -> None:
        formals = {each.name: "data " * each.data_only + str(each.type) for each in node.arguments}
        if node.body is None:
            self.values[node.name] = self.program.declare_function(node.name, str(node.result), **formals)
            return
        with self.program.function(node.name, str(node.result), **formals) as made:
            self.values[node.name] = made
            with self.scope():
                self.values |= {name: getattr(made, name) for name in formals}
                self.statements(node.body.statements)

    @contextmanager
    def scope(self) -> Iterator[None]:
        known = dict(self.values)
        yield
        self.values = known

    def statements(self, nodes: Sequence[syntax.Statement]) -> None:
        for node in nodes:
            getattr(self, type(node).__name__)(node)

    def body(self, node: syntax.Statement) -> None:
        with self.scope():
            self.statements(node.statements if isinstance(node, syntax.BlockStatement) else [node])

    def expression(self, node: Any) -> Any:
        return None if node is None else getattr(self, type(node).__name__)(node)

    def all_of(self, nodes: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(map(self.expression, nodes))

    def value(self, node: Any) -> Any:
        return self.program.value(self.expression(node))

    # ------------------------------------------------------------ statements

    def Declaration(self, node: syntax.Declaration) -> None:
        initial = self.expression(node.initial)
        self.values[node.name] = self.program.declare(self.type(node.sized_type), node.name, initial=initial)

    def type(self, node: syntax.SizedType) -> Any:
        array = self.all_of(node.array_sizes)
        if node.base == "tuple":
            return self.program.tuple_type(*map(self.type, node.fields), array=array)
        limits = {word: self.expression(getattr(node.constraint, word)) for word in LIMITS}
        given = {word: value for word, value in limits.items() if value is not None}
        return self.program.type(node.base, *self.all_of(node.sizes), array=array, **given)

    def Assignment(self, node: syntax.Assignment) -> None:
        self.program.assign(self.expression(node.target), self.expression(node.value), node.operator)

    def TupleAssignment(self, node: syntax.TupleAssignment) -> None:
        self.program.assign(self.expression(node.targets), self.expression(node.value))

    def TargetIncrement(self, node: syntax.TargetIncrement) -> None:
        self.program.target(self.expression(node.value))

    def JacobianIncrement(self, node: syntax.JacobianIncrement) -> None:
        self.program.jacobian(self.expression(node.value))

    def Tilde(self, node: syntax.Tilde) -> None:
        limits = (None, None) if node.truncation is None else (node.truncation.lower, node.truncation.upper)
        distribution = self.program.call(node.distribution, *self.all_of(node.arguments))
        self.value(node.variate).follows(distribution, *self.all_of(limits))

    def CallStatement(self, node: syntax.CallStatement) -> None:
        self.program.run(self.expression(node.call))

    def Print(self, node: syntax.Print) -> None:
        getattr(self.program, node.kind.value)(*self.all_of(node.arguments))

    def BlockStatement(self, node: syntax.BlockStatement) -> None:
        with self.program.scope():
            self.body(node)

    def Profile(self, node: syntax.Profile) -> None:
        with self.program.profile(node.name), self.scope():
            self.statements(node.statements)

    def If(self, node: syntax.If) -> None:
        with self.program.if_(self.expression(node.condition)):
            self.body(node.then)
        while isinstance(node.otherwise, syntax.If):
            node = node.otherwise
            with self.program.else_if(self.expression(node.condition)):
                self.body(node.then)
        if node.otherwise is not None:
            with self.program.else_():
                self.body(node.otherwise)

    def While(self, node: syntax.While) -> None:
        with self.program.while_(self.expression(node.condition)):
            self.body(node.body)

    def For(self, node: syntax.For) -> None:
        lower, upper = self.all_of((node.lower, node.upper))
        with self.scope(), self.program.for_(lower, upper, node.variable) as self.values[node.variable]:
            self.body(node.body)

    def ForEach(self, node: syntax.ForEach) -> None:
        container = self.expression(node.container)
        with self.scope(), self.program.foreach(container, node.variable) as self.values[node.variable]:
            self.body(node.body)

    def Break(self, node: syntax.Break) -> None:
        self.program.break_()

    def Continue(self, node: syntax.Continue) -> None:
        self.program.continue_()

    def Return(self, node: syntax.Return) -> None:
        self.program.return_(self.expression(node.value))

    def Empty(self, node: syntax.Empty) -> None:
        pass

    # ------------------------------------------------------------ expressions

    def IntLiteral(self, node: syntax.IntLiteral) -> int:
        return int(node.text)

    def RealLiteral(self, node: syntax.RealLiteral) -> float:
        return float(node.text)

    def ImaginaryLiteral(self, node: syntax.ImaginaryLiteral) -> complex:
        return complex(0, float(node.text))

    def StringLiteral(self, node: syntax.StringLiteral) -> str:
        return node.text

    def Variable(self, node: syntax.Variable) -> Any:
        return self.values[node.name]

    def Unary(self, node: syntax.Unary) -> Any:
        value = self.value(node.operand)
        return value.T if node.operator == "'" else getattr(value, PREFIXES[node.operator])()

    def Binary(self, node: syntax.Binary) -> Any:
        """Operators in a row from the left, however many."""
        row: list[syntax.Binary] = []
        left: syntax.Expression = node
        while isinstance(left, syntax.Binary):
            row.append(left)
            left = left.left
        value = self.value(left)
        for each in reversed(row):
            value = getattr(value, OPERATORS[each.operator])(self.expression(each.right))
        return value

    def Conditional(self, node: syntax.Conditional) -> Any:
        return self.program.if_else(*self.all_of((node.condition, node.then, node.otherwise)))

    def Indexed(self, node: syntax.Indexed) -> Any:
        return self.value(node.base)[tuple(map(self.index, node.indices))]

    def index(self, node: syntax.Index) -> Any:
        lower, upper = self.all_of((node.lower, node.upper))
        plain = node.kind in (syntax.IndexKind.SINGLE, syntax.IndexKind.MULTIPLE)
        return lower if plain else slice(lower, upper)

    def TupleProjection(self, node: syntax.TupleProjection) -> Any:
        return self.value(node.base).field(node.field)

    def ArrayLiteral(self, node: syntax.ArrayLiteral) -> list[Any]:
        return list(self.all_of(node.elements))

    def RowVectorLiteral(self, node: syntax.RowVectorLiteral) -> Any:
        return self.program.row(*self.all_of(node.elements))

    def TupleLiteral(self, node: syntax.TupleLiteral) -> tuple[Any, ...]:
        return self.all_of(node.elements)

    def Call(self, node: syntax.Call) -> Any:
        return self.program.call(node.name, *self.all_of(node.arguments))

    def Parenthesized(self, node: syntax.Parenthesized) -> Any:
        return self.expression(node.inner)
