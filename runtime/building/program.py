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
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from ulam.frontend import syntax
from ulam.frontend.parse.declared_types import TYPE_FORMS
from ulam.frontend.parse.lexer import KEYWORDS
from ulam.frontend.stan_types import BASIC_TYPES, VOID, StanType, TupleType, array_of
from ulam.library.functions import kind_of
from ulam.runtime.building.places import PythonSource
from ulam.runtime.building.values import BuiltValue, Operand, copied, node_of
from ulam.runtime.compiler import compiling
from ulam.runtime.data import DataSource
from ulam.runtime.errors import ArgumentError
from ulam.runtime.program import compile_errors

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.runtime.model import StanModel

BLOCKS = ("data", "transformed_data", "parameters", "transformed_parameters", "model", "generated_quantities")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_UNSIZED = re.compile(r"(?P<data>data )?(?:array\[(?P<commas>,*)\] )?(?P<base>\w+)")
_BOUNDS, _SHIFTS = ("lower", "upper"), ("offset", "multiplier")


class FunctionNames:
    """Functions by name: `fn.normal_lpdf(y, mu, sigma)`; `fn.normal(mu, sigma)` for `follows`."""

    def __init__(self, program: BuiltProgram) -> None:
        self._program = program

    def __getattr__(self, name: str) -> Callable[..., BuiltValue]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments: self._program.call(name, *arguments)


class BuiltFunction:
    """A function of the program: its arguments as attributes within its body; called, a value."""

    def __init__(self, program: BuiltProgram, name: str, arguments: dict[str, BuiltValue]) -> None:
        self._program, self._name, self._arguments = program, name, arguments

    def __getattr__(self, name: str) -> BuiltValue:
        if name in self._arguments:
            return self._arguments[name]
        raise AttributeError(f"function '{self._name}' has no argument '{name}'")

    def __call__(self, *arguments: Operand) -> BuiltValue:
        return self._program.call(self._name, *arguments)


class BuiltProgram:
    """A Stan program that is being built. A block is entered by `with`, once."""

    def __init__(self, name: str = "model") -> None:
        self.name = name
        self.source = PythonSource(name)
        self.fn = FunctionNames(self)
        self._functions: list[syntax.FunctionDefinition] = []
        self._blocks: dict[str, syntax.BlockStatement] = {}
        self._open: list[list[syntax.Statement]] = []
        self._names = 0

    # ------------------------------------------------------------ blocks

    @property
    def data(self) -> AbstractContextManager[None]:
        """The block `data`."""
        return self._block("data")

    @property
    def transformed_data(self) -> AbstractContextManager[None]:
        """The block `transformed data`."""
        return self._block("transformed_data")

    @property
    def parameters(self) -> AbstractContextManager[None]:
        """The block `parameters`."""
        return self._block("parameters")

    @property
    def transformed_parameters(self) -> AbstractContextManager[None]:
        """The block `transformed parameters`."""
        return self._block("transformed_parameters")

    @property
    def model(self) -> AbstractContextManager[None]:
        """The block `model`."""
        return self._block("model")

    @property
    def generated_quantities(self) -> AbstractContextManager[None]:
        """The block `generated quantities`."""
        return self._block("generated_quantities")

    @contextmanager
    def _block(self, name: str) -> Iterator[None]:
        if self._open:
            raise ArgumentError(f"block {name.replace('_', ' ')} begins inside of another")
        block = self._blocks.setdefault(name, syntax.BlockStatement([], span=self.here()))
        with self._inside(block.statements):
            yield

    @contextmanager
    def _inside(self, statements: list[syntax.Statement]) -> Iterator[None]:
        self._open.append(statements)
        try:
            yield
        finally:
            self._open.pop()

    @contextmanager
    def function(self, name: str, returns: str = "void", **arguments: str) -> Iterator[BuiltFunction]:
        """A function of the program; types are written as in Stan: `real`, `array[] int`, `data vector`."""
        if self._open:
            raise ArgumentError(f"function '{name}' begins inside of a block")
        span = self.here()
        formals = [self._formal(argument, text) for argument, text in arguments.items()]
        body = syntax.BlockStatement([], span=span)
        result = VOID if returns == "void" else _unsized(returns)[1]
        self._functions.append(
            syntax.FunctionDefinition(span, _checked(name, "a function"), span, result, formals, body)
        )
        values = {each.name: self._variable(each.name) for each in formals}
        with self._inside(body.statements):
            yield BuiltFunction(self, name, values)

    def _formal(self, name: str, text: str) -> syntax.FormalArgument:
        data_only, type_ = _unsized(text)
        return syntax.FormalArgument(self.here(), _checked(name, "an argument"), type_, data_only)

    # ------------------------------------------------------------ declarations

    def declare(
        self,
        base: str,
        name: str,
        *sizes: Operand,
        array: Operand | tuple[Operand, ...] = (),
        initial: Operand | None = None,
        **constraint: Operand,
    ) -> BuiltValue:
        """A variable of any type of Stan; `array` has the sizes of an array of it, `constraint` its bounds."""
        form = TYPE_FORMS.get(base)
        if form is None:
            raise ArgumentError(f"there is no type '{base}'; types are {', '.join(TYPE_FORMS)}")
        if not form.fewest_sizes <= len(sizes) <= form.most_sizes:
            raise ArgumentError(f"'{base}' has {form.fewest_sizes} sizes, but {len(sizes)} are given")
        span = self.here()
        outer = array if isinstance(array, tuple) else (array,)
        kind = form.constraint if not constraint else self._kind(base, set(constraint))
        limits = {word: self.node(value) for word, value in constraint.items()}
        declared = syntax.SizedType(
            span, base, [self.node(size) for size in outer], [self.node(size) for size in sizes],
            syntax.Constraint(span, kind, **limits), [], array_of(form.type, len(outer)),
        )  # fmt: skip
        value = None if initial is None else self.node(initial)
        self.add(lambda span: syntax.Declaration(declared, _checked(name, "a variable"), span, value, span=span))
        return self._variable(name)

    @staticmethod
    def _kind(base: str, words: set[str]) -> syntax.ConstraintKind:
        if TYPE_FORMS[base].constraint is not syntax.ConstraintKind.NONE:
            raise ArgumentError(f"'{base}' is constrained by itself, it takes no bounds")
        if words <= set(_BOUNDS):
            return syntax.ConstraintKind.BOUNDS
        if words <= set(_SHIFTS) and base != "int":
            return syntax.ConstraintKind.OFFSET_MULTIPLIER
        raise ArgumentError(f"a constraint is lower and upper, or offset and multiplier, found {', '.join(words)}")

    def int(self, name: str, **options: Any) -> BuiltValue:
        """A variable of type int; options as of `declare`."""
        return self.declare("int", name, **options)

    def real(self, name: str, **options: Any) -> BuiltValue:
        """A variable of type real."""
        return self.declare("real", name, **options)

    def vector(self, name: str, size: Operand, **options: Any) -> BuiltValue:
        """A vector."""
        return self.declare("vector", name, size, **options)

    def row_vector(self, name: str, size: Operand, **options: Any) -> BuiltValue:
        """A row vector."""
        return self.declare("row_vector", name, size, **options)

    def matrix(self, name: str, rows: Operand, columns: Operand, **options: Any) -> BuiltValue:
        """A matrix."""
        return self.declare("matrix", name, rows, columns, **options)

    def tuple(self, name: str, fields: Sequence[str], *, initial: Operand | None = None) -> BuiltValue:
        """A tuple of scalars, by the names of their types."""
        span = self.here()
        types = [array_of(TYPE_FORMS[each].type, 0) for each in fields]
        parts = [
            syntax.SizedType(span, each, [], [], syntax.Constraint(span, syntax.ConstraintKind.NONE), [], type_)
            for each, type_ in zip(fields, types, strict=True)
        ]
        none = syntax.Constraint(span, syntax.ConstraintKind.NONE)
        declared = syntax.SizedType(span, "tuple", [], [], none, parts, TupleType(_fixed(types)))
        value = None if initial is None else self.node(initial)
        self.add(lambda span: syntax.Declaration(declared, _checked(name, "a variable"), span, value, span=span))
        return self._variable(name)

    # ------------------------------------------------------------ statements

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
        last = self._open[-1][-1] if self._open and self._open[-1] else None
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
        self.add(lambda span: syntax.Profile(name, statements, span=span))
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
            check_program(tree, self.source)
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

        return StanModel.from_module(self.module(), data, **options)

    def _tree(self) -> syntax.Program:
        tree = syntax.Program(syntax.Span(0, 0), [copied(function) for function in self._functions])
        for name, block in self._blocks.items():
            setattr(tree, name, copied(block))
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
        self._open[-1].append(make(self.here()))

    def _variable(self, name: str) -> BuiltValue:
        return BuiltValue(self, syntax.Variable(name, span=self.here()))

    def _loop_variable(self, name: str | None) -> str:
        self._names += name is None
        return _checked(name or f"i{self._names}", "a loop variable")


def _fixed(types: list[StanType]) -> tuple[StanType, ...]:
    return tuple(types)


def _checked(name: str, what: str) -> str:
    if name in KEYWORDS:
        raise ArgumentError(f"'{name}' is a reserved word of Stan and cannot be the name of {what}")
    if _NAME.fullmatch(name) is None:
        raise ArgumentError(f"{name!r} cannot be the name of {what}: letters, digits and _, a letter first")
    return name


def _unsized(text: str) -> tuple[bool, StanType]:
    """Whether a type of an argument is `data`, and the type."""
    found = _UNSIZED.fullmatch(text.strip())
    if found is None or found["base"] not in BASIC_TYPES:
        raise ArgumentError(f"no type of an argument: {text!r}; write it as `data array[,] int`")
    commas = found["commas"]
    return found["data"] is not None, array_of(BASIC_TYPES[found["base"]], 0 if commas is None else len(commas) + 1)
