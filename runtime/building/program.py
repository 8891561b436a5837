"""A program that is built in Python: blocks, declarations, statements and functions.

    p = BuiltProgram("schools")
    with p.data:
        n = p.int("n", lower=0)
        y = p.vector("y", n)
    with p.parameters:
        mu = p.real("mu")
    with p.model:
        y.follows(p.fn.normal(mu, 1))
    model = p.model_with({"n": 2, "y": [1, 2]})

Every call makes nodes of the frontend's syntax tree, whose places are those of the Python code; the type checker and
the lowering are those of text, and so are their messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ulam.frontend import syntax
from ulam.frontend.parse.lexer import KEYWORDS
from ulam.library.functions import kind_of
from ulam.runtime.building.built_types import BuiltType, argument_type, result_type, sized_type, tuple_type
from ulam.runtime.building.places import PythonSource
from ulam.runtime.building.trees import copies
from ulam.runtime.building.values import BuiltFunction, BuiltValue, Operand, node_of, text_of
from ulam.runtime.data import DataSource
from ulam.runtime.errors import ArgumentError
from ulam.runtime.externals import forms, given
from ulam.runtime.interpreter_settings import compiling
from ulam.runtime.program import compile_errors

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.runtime.external_functions import External
    from ulam.runtime.model import StanModel

Targets = BuiltValue | tuple["Targets", ...]
"""What is assigned to: a variable, a part of one, or a tuple of these."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_ONLY_DECLARATIONS = ("data", "parameters")
_CONSTRAINED = (*_ONLY_DECLARATIONS, "transformed data", "transformed parameters", "generated quantities")
_FUNCTION, _LOCAL = "a function", "a local scope"


class FunctionNames:
    """Functions by name: `fn.normal_lpdf(y, mu, sigma)`; `fn.normal(mu, sigma)` for `follows`."""

    def __init__(self, program: BuiltProgram) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Callable[..., BuiltValue]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments: self._program.call(name, *arguments)


class BuiltProgram:
    """A Stan program that is being built. A block is entered by `with`; entered again, it goes on.

    `external`: functions that the program declares without a body, by name, as `StanModel` takes them.
    """

    def __init__(self, name: str = "model", *, external: Mapping[str, External] | None = None) -> None:
        self.name = name
        self.source = PythonSource(name)
        self.fn = FunctionNames(self)
        self._external = given(external)
        self._functions: list[syntax.FunctionDefinition] = []
        self._blocks: dict[str, syntax.BlockStatement] = {}
        self._open: list[tuple[str, list[syntax.Statement]]] = []  # where statements go, and what that is
        self._names = 0

    # ------------------------------------------------------------ blocks

    @property
    def data(self) -> AbstractContextManager[None]:
        """The block `data`."""
        return self._block("data")

    @property
    def transformed_data(self) -> AbstractContextManager[None]:
        """The block `transformed data`."""
        return self._block("transformed data")

    @property
    def parameters(self) -> AbstractContextManager[None]:
        """The block `parameters`."""
        return self._block("parameters")

    @property
    def transformed_parameters(self) -> AbstractContextManager[None]:
        """The block `transformed parameters`."""
        return self._block("transformed parameters")

    @property
    def model(self) -> AbstractContextManager[None]:
        """The block `model`."""
        return self._block("model")

    @property
    def generated_quantities(self) -> AbstractContextManager[None]:
        """The block `generated quantities`."""
        return self._block("generated quantities")

    @contextmanager
    def _block(self, name: str) -> Iterator[None]:
        if self._open:
            raise ArgumentError(f"block {name} begins inside of another")
        block = self._blocks.setdefault(name, syntax.BlockStatement([], span=self.here()))
        with self._inside(block.statements, name):
            yield

    @contextmanager
    def _inside(self, statements: list[syntax.Statement], where: str = _LOCAL) -> Iterator[None]:
        self._open.append((where, statements))
        try:
            yield
        finally:
            self._open.pop()

    @contextmanager
    def function(self, name: str, returns: str = "void", /, **arguments: str) -> Iterator[BuiltFunction]:
        """A function of the program; types are written as in Stan: `real`, `array[] int`, `data vector`."""
        body = syntax.BlockStatement([], span=self.here())
        made = self._function(name, returns, arguments, body)
        with self._inside(body.statements, _FUNCTION):
            yield made

    def declare_function(self, name: str, returns: str = "void", /, **arguments: str) -> BuiltFunction:
        """A function without a body: one that is defined later, or an external one."""
        return self._function(name, returns, arguments, None)

    def _function(
        self, name: str, returns: str, arguments: dict[str, str], body: syntax.BlockStatement | None
    ) -> BuiltFunction:
        if self._open:
            raise ArgumentError(f"function '{name}' begins inside of a block")
        span = self.here()
        formals = [
            syntax.FormalArgument(span, _checked(argument, "an argument"), type_, data_only)
            for argument, (data_only, type_) in ((key, argument_type(text)) for key, text in arguments.items())
        ]
        defined = syntax.FunctionDefinition(
            span, _checked(name, "a function"), span, result_type(returns), formals, body
        )
        self._functions.append(defined)
        return BuiltFunction(self, name, {each.name: self._variable(each.name) for each in formals})

    # ------------------------------------------------------------ declarations

    def type(
        self, base: str, *sizes: Operand, array: Operand | tuple[Operand, ...] = (), **constraint: Operand
    ) -> BuiltType:
        """A type, for `declare` and for the fields of tuples; `array` has the sizes of an array of it."""
        return sized_type(self, base, sizes, array, constraint)

    def tuple_type(self, *fields: BuiltType | str, array: Operand | tuple[Operand, ...] = ()) -> BuiltType:
        """The type of tuples with these fields: types, or names of those without sizes."""
        return tuple_type(self, fields, array)

    def declare(
        self,
        type: BuiltType | str,
        name: str,
        *sizes: Operand,
        array: Operand | tuple[Operand, ...] = (),
        initial: Operand | None = None,
        **constraint: Operand,
    ) -> BuiltValue:
        """A variable of any type of Stan; `array` has the sizes of an array of it, `constraint` its bounds."""
        if isinstance(type, BuiltType):
            if sizes or constraint or not isinstance(array, tuple) or array:
                raise ArgumentError(f"'{name}' has a type that is complete: it takes no sizes, arrays and constraints")
        else:
            type = sized_type(self, type, sizes, array, constraint)
        where = self._open[-1][0] if self._open else ""
        if type.is_constrained and where not in _CONSTRAINED:
            raise ArgumentError(f"'{name}' is a local variable: it cannot be constrained")
        if initial is not None and where in _ONLY_DECLARATIONS:
            raise ArgumentError(f"'{name}' cannot be given a value: variables of block {where} get theirs from outside")
        declared, value = type.node, None if initial is None else self.node(initial)
        self.add(lambda span: syntax.Declaration(declared, _checked(name, "a variable"), span, value, span=span))
        return self._variable(name)

    def int(self, name: str, **options: Any) -> BuiltValue:
        """A variable of type int; options as of `declare`."""
        return self.declare("int", name, **options)

    def real(self, name: str, **options: Any) -> BuiltValue:
        """A variable of type real."""
        return self.declare("real", name, **options)

    def complex(self, name: str, **options: Any) -> BuiltValue:
        """A complex number."""
        return self.declare("complex", name, **options)

    def vector(self, name: str, size: Operand, **options: Any) -> BuiltValue:
        """A vector."""
        return self.declare("vector", name, size, **options)

    def row_vector(self, name: str, size: Operand, **options: Any) -> BuiltValue:
        """A row vector."""
        return self.declare("row_vector", name, size, **options)

    def matrix(self, name: str, rows: Operand, columns: Operand, **options: Any) -> BuiltValue:
        """A matrix."""
        return self.declare("matrix", name, rows, columns, **options)

    def tuple(
        self,
        name: str,
        fields: Sequence[BuiltType | str],
        *,
        array: Operand | tuple[Operand, ...] = (),
        initial: Operand | None = None,
    ) -> BuiltValue:
        """A tuple; its fields are types, or names of those without sizes."""
        return self.declare(self.tuple_type(*fields, array=array), name, initial=initial)

    # ------------------------------------------------------------ statements

    def assign(self, targets: Targets, value: Operand, operator: str = "=") -> None:
        """Assigns to a variable, to a part of one, or to all of a tuple of these."""
        if isinstance(targets, BuiltValue):
            targets.set(value, operator)
            return
        if operator != "=":
            raise ArgumentError(f"a tuple cannot be assigned to with {operator}")
        self.add(lambda span: syntax.TupleAssignment(self._targets(targets), self.node(value), span=span))

    def _targets(self, targets: tuple[Targets, ...]) -> syntax.TupleLiteral:
        span = self.here()
        nodes = [each.assignable() if isinstance(each, BuiltValue) else self._targets(each) for each in targets]
        return syntax.TupleLiteral(nodes, span=span)

    def target(self, value: Operand) -> None:
        """`target += value`."""
        self.add(lambda span: syntax.TargetIncrement(self.node(value), span=span))

    def jacobian(self, value: Operand) -> None:
        """`jacobian += value`."""
        self.add(lambda span: syntax.JacobianIncrement(self.node(value), span=span))

    def run(self, call: BuiltValue) -> None:
        """A call of a function that returns nothing."""
        if not isinstance(call.node, syntax.Call):
            raise ArgumentError("a statement is a call")
        node = call.node
        self.add(lambda span: syntax.CallStatement(node, span=span))

    def return_(self, value: Operand | None = None) -> None:
        """Leaves a function."""
        self.add(lambda span: syntax.Return(None if value is None else self.node(value), span=span))

    def break_(self) -> None:
        """Leaves a loop."""
        self.add(lambda span: syntax.Break(span=span))

    def continue_(self) -> None:
        """Goes on with the next iteration of a loop."""
        self.add(lambda span: syntax.Continue(span=span))

    def print(self, *values: Operand) -> None:
        """Prints values and texts."""
        self._say(syntax.PrintKind.PRINT, values)

    def reject(self, *values: Operand) -> None:
        """Rejects the point, with a message."""
        self._say(syntax.PrintKind.REJECT, values)

    def fatal_error(self, *values: Operand) -> None:
        """Ends the run, with a message."""
        self._say(syntax.PrintKind.FATAL_ERROR, values)

    def _say(self, kind: syntax.PrintKind, values: tuple[Operand, ...]) -> None:
        if not values:
            raise ArgumentError(f"{kind.value} says nothing")
        self.add(lambda span: syntax.Print(kind, [self.node(value) for value in values], span=span))

    @contextmanager
    def for_(self, lower: Operand, upper: Operand, name: str | None = None) -> Iterator[BuiltValue]:
        """A loop over ints, both ends included."""
        variable, span = self._loop_variable(name), self.here()
        body = syntax.BlockStatement([], span=span)
        bounds = self.node(lower), self.node(upper)
        self.add(lambda span: syntax.For(variable, span, *bounds, body, span=span))
        with self._inside(body.statements):
            yield self._variable(variable)

    @contextmanager
    def foreach(self, container: Operand, name: str | None = None) -> Iterator[BuiltValue]:
        """A loop over the elements of a container."""
        variable, span = self._loop_variable(name), self.here()
        body = syntax.BlockStatement([], span=span)
        over = self.node(container)
        self.add(lambda span: syntax.ForEach(variable, span, over, body, span=span))
        with self._inside(body.statements):
            yield self._variable(variable)

    @contextmanager
    def while_(self, condition: Operand) -> Iterator[None]:
        """A loop as long as a condition holds."""
        body = syntax.BlockStatement([], span=self.here())
        asked = self.node(condition)
        self.add(lambda span: syntax.While(asked, body, span=span))
        with self._inside(body.statements):
            yield

    @contextmanager
    def if_(self, condition: Operand) -> Iterator[None]:
        """A branch; `else_if` and `else_` may follow it."""
        then = syntax.BlockStatement([], span=self.here())
        asked = self.node(condition)
        self.add(lambda span: syntax.If(asked, then, None, span=span))
        with self._inside(then.statements):
            yield

    @contextmanager
    def else_if(self, condition: Operand) -> Iterator[None]:
        """What is done instead, if another condition holds."""
        then = syntax.BlockStatement([], span=self.here())
        self._last_branch("else_if").otherwise = syntax.If(self.node(condition), then, None, span=self.here())
        with self._inside(then.statements):
            yield

    @contextmanager
    def else_(self) -> Iterator[None]:
        """What is done instead."""
        branch = self._last_branch("else_")
        otherwise = branch.otherwise = syntax.BlockStatement([], span=self.here())
        with self._inside(otherwise.statements):
            yield

    def _last_branch(self, what: str) -> syntax.If:
        last = self._open[-1][1][-1] if self._open and self._open[-1][1] else None
        while isinstance(last, syntax.If) and isinstance(last.otherwise, syntax.If):
            last = last.otherwise
        if not isinstance(last, syntax.If) or last.otherwise is not None:
            raise ArgumentError(f"{what} follows the branch of an if_ at once")
        return last

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Statements with variables of their own."""
        body = syntax.BlockStatement([], span=self.here())
        self.add(lambda span: body)
        with self._inside(body.statements):
            yield

    @contextmanager
    def profile(self, name: str) -> Iterator[None]:
        """A region that profiles measure."""
        statements: list[syntax.Statement] = []
        text = text_of(self, name).text
        self.add(lambda span: syntax.Profile(text, statements, span=span))
        with self._inside(statements):
            yield

    # ------------------------------------------------------------ expressions

    def call(self, name: str, *arguments: Operand) -> BuiltValue:
        """A call of a function of the library, or of the program."""
        span = self.here()
        nodes = [self.node(argument) for argument in arguments]
        has_bar = kind_of(name).is_probability and len(nodes) > 0
        return BuiltValue(self, syntax.Call(name, nodes, span, has_bar, span=span))

    def if_else(self, condition: Operand, then: Operand, otherwise: Operand) -> BuiltValue:
        """`condition ? then : otherwise`."""
        nodes = self.node(condition), self.node(then), self.node(otherwise)
        return BuiltValue(self, syntax.Conditional(*nodes, span=self.here()))

    def value(self, given: Operand) -> BuiltValue:
        """A value of Python as one of the program, for its operators and methods."""
        return BuiltValue(self, self.node(given))

    def row(self, *elements: Operand) -> BuiltValue:
        """A row vector of reals, or a matrix of row vectors: `[a, b]`."""
        return BuiltValue(self, syntax.RowVectorLiteral([self.node(each) for each in elements], span=self.here()))

    # ------------------------------------------------------------ what is made of it

    def module(self) -> ModuleOp:
        """The program in the `stan` dialect. Raises CompileError with all that the type checker finds."""
        from ulam.frontend.check.program import check_program
        from ulam.frontend.lower.program import lower_program
        from ulam.runtime.compiler import load_stages

        load_stages()
        with compile_errors(), compiling():
            tree = self._tree()
            check_program(tree, self.source, forms(self._external))
            return lower_program(tree, self.source)

    def stan(self) -> str:
        """The program as Stan."""
        from ulam.emit.stan_text import print_module

        module = self.module()
        with compiling():
            return print_module(module)

    def model_with(self, data: DataSource = None, **options: Any) -> StanModel:
        """The model with data; options are those of `StanModel`."""
        from ulam.runtime.model import StanModel

        if self._external:
            options = {"external": self._external, **options}
        return StanModel.from_module(self.module(), data, **options)

    def _tree(self) -> syntax.Program:
        functions = copies(self.source, self._functions)
        tree = syntax.Program(syntax.Span(0, 0), functions)
        for name, block in zip(self._blocks, copies(self.source, self._blocks.values()), strict=True):
            setattr(tree, name.replace(" ", "_"), block)
        return tree

    # ------------------------------------------------------------ for values

    def here(self) -> syntax.Span:
        """The place in the Python code that is at work."""
        return self.source.here()

    def node(self, given: Any) -> syntax.Expression:
        """The node of an operand."""
        return node_of(self, given)

    def add(self, make: Callable[[syntax.Span], syntax.Statement]) -> None:
        """Puts a statement where the program is being written."""
        if not self._open:
            raise ArgumentError("a statement belongs to a block: write it inside of `with program.model:`, or another")
        where, statements = self._open[-1]
        made = make(self.here())
        if where in _ONLY_DECLARATIONS and not isinstance(made, syntax.Declaration):
            raise ArgumentError(f"a statement belongs to block transformed {where}, not to block {where}")
        statements.append(made)

    def _variable(self, name: str) -> BuiltValue:
        return BuiltValue(self, syntax.Variable(name, span=self.here()))

    def _loop_variable(self, name: str | None) -> str:
        self._names += name is None
        return _checked(name or f"i{self._names}_", "a loop variable")


def _checked(name: str, what: str) -> str:
    if name in KEYWORDS:
        raise ArgumentError(f"'{name}' is a reserved word of Stan and cannot be the name of {what}")
    if _NAME.fullmatch(name) is None:
        raise ArgumentError(f"{name!r} cannot be the name of {what}: letters, digits and _, a letter first")
    return name
