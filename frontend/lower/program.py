"""AST → `stan` dialect, variable form: one `stan.program` of functions and blocks.

Begin with `lower_program`. What a program calls of `library/*.stan` becomes part of it, as `stan.func`s that have the
`library` property. Source: DESIGN, sections 3 and 6; Stan Reference Manual, "Program blocks".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.frontend.check.program import checked
from ulam.frontend.functions.definitions import LibraryFunction, overloads, resolve
from ulam.frontend.lower.builder import dialect_type
from ulam.frontend.lower.expressions import Callees
from ulam.frontend.lower.statements import StatementLowering
from ulam.frontend.lower.tuples import Fields, Part
from ulam.frontend.source import Source
from ulam.frontend.stan_types import VOID, StanType
from ulam.frontend.syntax import ConstraintKind
from ulam.library.constraints import transform_functions

_UNCHECKED = (ConstraintKind.NONE, ConstraintKind.OFFSET_MULTIPLIER)


def lower_program(program: syntax.Program, source: Source) -> ModuleOp:
    """Lowers a type-checked program; raises DiagnosticError for what is not supported yet."""
    return ProgramLowering(program, source).lower()


class ProgramLowering:
    """One program: its symbols, and the library functions it turns out to need."""

    def __init__(self, program: syntax.Program, source: Source) -> None:
        self.program = program
        self.source = source
        self.definitions = [f for f in program.functions if f.body is not None or f.external is not None]
        self._taken: set[str] = set()
        self._user_symbols = {_signature(f): self._symbol(f.name) for f in self.definitions}
        self._library_symbols: dict[LibraryFunction, str] = {}
        self._needed: list[LibraryFunction] = []

    def lower(self) -> ModuleOp:
        functions: list[Operation] = []
        for f in self.definitions:
            functions.append(FunctionLowering(self.source, self).lower_function(f, self.user_symbol(f)))
        blocks = self._blocks()
        self._need_transforms()
        while self._needed:
            needed, self._needed = self._needed, []
            for f in needed:
                lowering = FunctionLowering(f.source, self)
                functions.append(lowering.lower_function(checked(f), self._library_symbols[f], library=True))
        body = Block([*functions, *blocks])
        return ModuleOp([stan.ProgramOp(PurePath(self.source.name).stem or "program", Region(body))])

    def _blocks(self) -> list[Operation]:
        outer: dict[str, Attribute] = {}
        blocks: list[Operation] = []
        for kind in stan.program.BLOCK_KINDS:
            block = getattr(self.program, kind)
            if block is not None:
                lowering = BlockLowering(self.source, self, kind, outer)
                blocks.append(lowering.lower_block(block))
                outer = outer | lowering.declared
        return blocks

    def _need_transforms(self) -> None:
        """Asks for the functions that transform parameters, and for those that check other variables."""
        for kind in stan.program.BLOCK_KINDS:
            block = getattr(self.program, kind)
            if block is None or kind == "model":
                continue
            for declaration in block.statements:
                if isinstance(declaration, syntax.Declaration):
                    for constraint in _constraints(declaration.sized_type):
                        for name in _transform_functions(constraint, kind == "parameters"):
                            self._need(overloads(name)[0], name)

    # ------------------------------------------------------------ symbols

    def _symbol(self, name: str, wanted: str | None = None) -> str:
        """A symbol not taken yet: `wanted`, else `name`, `name.1`, ..."""
        symbol, number = wanted or name, 0
        while symbol in self._taken:
            number += 1
            symbol = f"{name}.{number}"
        self._taken.add(symbol)
        return symbol

    def user_symbol(self, function: syntax.FunctionDefinition) -> str:
        return self._user_symbols[_signature(function)]

    def user_function(self, name: str, arguments: tuple[StanType, ...]) -> syntax.FunctionDefinition | None:
        """The user's function of exactly these argument types."""
        for function in self.definitions:
            if _signature(function) == (name, arguments):
                return function
        return None

    def library_symbol(self, name: str, arguments: tuple[StanType, ...]) -> str | None:
        function = resolve(name, arguments)
        if function is None or (function.definition.body is None and function.definition.external is None):
            return None  # the conversion to loops knows it
        return self._need(function, name)

    def _need(self, function: LibraryFunction, name: str) -> str:
        symbol = self._library_symbols.get(function)
        if symbol is None:
            symbol = self._library_symbols[function] = self._symbol(name, function.symbol)
            self._needed.append(function)
        return symbol


def _transform_functions(constraint: syntax.Constraint, is_parameter: bool) -> list[str]:
    """Names of the library functions that a declared constraint needs."""
    lower, upper = constraint.lower is not None, constraint.upper is not None
    return transform_functions(constraint.kind.value, lower=lower, upper=upper, is_parameter=is_parameter)


def _constraints(sized: syntax.SizedType) -> Iterator[syntax.Constraint]:
    """The constraint of a type; of a tuple, those of its fields."""
    yield sized.constraint
    for field in sized.fields:
        yield from _constraints(field)


def _signature(function: syntax.FunctionDefinition) -> tuple[str, tuple[StanType, ...]]:
    return function.name, tuple(a.type for a in function.arguments)


# ---------------------------------------------------------------- functions


class FunctionLowering(StatementLowering):
    """One function, of the program or of the library. Formals are values: Stan forbids assigning them."""

    _result: Attribute | None = None

    def result_type(self) -> Attribute | None:
        return self._result

    def lower_function(self, f: syntax.FunctionDefinition, symbol: str, library: bool = False) -> Operation:
        arguments = [dialect_type(a.type) for a in f.arguments]
        self._result = None if f.result == VOID else dialect_type(f.result)

        def build() -> None:
            for argument, value in zip(f.arguments, self.block.args, strict=True):
                value.name_hint = argument.name
                self.names[argument.name] = value
            if f.external is not None:
                self._external(f, f.external)
                return
            assert f.body is not None
            self.sequence(f.body.statements)
            if not self.ended():
                self._end(f)

        body = self.region(build, arguments)
        outputs = [] if self._result is None else [self._result]
        return stan.FuncOp(
            symbol,
            [a.name for a in f.arguments],
            arguments,
            outputs,
            body,
            stan_name=f.name,
            data_only=[int(a.data_only) for a in f.arguments],
            library=library,
            location=self.location(f.span),
        )

    def _external(self, f: syntax.FunctionDefinition, kernel: str) -> None:
        """The body of an external function: it hands its arguments on."""
        arguments = self.block.args
        call = stan.CallOp(kernel, arguments, self._result, [int(not a.data_only) for a in f.arguments])
        self.emit(stan.ReturnOp(self.value(call, f.span)), f.span)

    def _end(self, f: syntax.FunctionDefinition) -> None:
        """The end of a body that does not end in a return.

        Only a function without result gets there, unless the last statement is a `reject`, or a loop that Stan's rule
        takes to return but that may end without.
        """
        span = syntax.Span(max(f.span.start, f.span.end - 1), f.span.end)
        if self._result is None:
            self.emit(stan.ReturnOp(), span)
            return
        last = self.block.last_op
        if not (isinstance(last, stan.PrintOp) and last.kind.data != "print"):
            text = stan.ConstantOp(f"the end of function '{f.name}' was reached without a return")
            self.emit(stan.PrintOp("fatal_error", [self.value(text, span)]), span)
        sizes = [self.int_constant(span, 0) for _ in range(stan.dimensions(self._result))]
        self.emit(stan.ReturnOp(self.value(stan.UninitializedOp(self._result, sizes), span)), span)


# ---------------------------------------------------------------- blocks


class BlockLowering(StatementLowering):
    """One program block. `outer` are the variables of the blocks before it, by name, with their types."""

    def __init__(self, source: Source, functions: Callees, kind: str, outer: dict[str, Attribute]) -> None:
        super().__init__(source, functions)
        self.kind = kind
        self.outer = outer
        self.declared: dict[str, Attribute] = {}
        self._globals: dict[str, Operation] = {}

    def variable(self, name: str, span: syntax.Span) -> Part:
        found = self.names.get(name)
        return self._global(name, self.outer[name], span) if found is None else found

    def _global(self, name: str, type_: Attribute, span: syntax.Span) -> Part:
        """A variable of an earlier block."""
        if isinstance(type_, stan.TupleType):
            return Fields([self._global(f"{name}.{n}", field, span) for n, field in enumerate(type_.elements, 1)])
        op = self._globals.get(name)
        if op is None:
            op = self._globals[name] = stan.GlobalOp(name, stan.var_of(type_), location=self.location(span))
        return op.results[0]

    def is_local(self) -> bool:
        return self._depth > 0 and self.block is self._top and self.kind != "model"

    def lower_block(self, block: syntax.BlockStatement) -> Operation:
        self._top = self.block
        declarations = [s for s in block.statements if isinstance(s, syntax.Declaration)]
        if self.kind in ("data", "parameters"):
            for declaration in declarations:
                self._external(declaration)
        else:
            self.sequence(block.statements)
            if self.kind != "model":
                for declaration in declarations:
                    self._check(declaration.sized_type, declaration.name, declaration.name_span)
        self.declared = {d.name: dialect_type(d.sized_type.type) for d in declarations}
        if used := [op for op in self._globals.values() if op.results[0].first_use is not None]:
            # In front of everything, so that the whole block may use them.
            first = self._top.first_op
            if first is None:
                self._top.add_ops(used)
            else:
                self._top.insert_ops_before(used, first)
        return stan.BlockOp(self.kind, Region(self._top), location=self.location(block.span))

    def _external(self, s: syntax.Declaration) -> None:
        """A variable of the data block, with its check, or a parameter."""
        if self.kind == "parameters":
            self.declare(s, with_bounds=True, is_parameter=True)
            return
        self.declare(s, with_bounds=True)
        self._check(s.sized_type, s.name, s.name_span)

    # ------------------------------------------------------------ checks

    def _check(self, sized: syntax.SizedType, name: str, span: syntax.Span) -> None:
        """The check of a constrained variable's value, of a tuple those of its fields.

        Bounds are evaluated here, but those of data where they are declared.
        """

        def check(sized: syntax.SizedType, name: str, variable: Part) -> None:
            if isinstance(variable, Fields):
                for number, (field, part) in enumerate(zip(sized.fields, variable.parts, strict=True), 1):
                    check(field, f"{name}.{number}", part)
                return
            constraint = sized.constraint
            if constraint.kind in _UNCHECKED:
                return
            value = self.value(stan.ReadOp(variable), span)
            declaration = variable.owner
            if self.kind == "data":
                assert isinstance(declaration, stan.DeclareOp)
                bounds = declaration.lower, declaration.upper
            else:
                bounds = self.bound(constraint.lower, value.type), self.bound(constraint.upper, value.type)
            self.emit(stan.CheckOp(name, constraint.kind.value, value, *bounds), span)

        check(sized, name, self.names[name])
