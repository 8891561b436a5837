"""Calls of library functions that a pass makes: their types, and the definitions they mean.

Passes know nothing of the frontend; those that write calls of library functions ask for this module when they run, by
`passes.optimize.library_calls`. A definition that the program does not have yet becomes part of it, as if the program
had called the function.
"""

from __future__ import annotations

from functools import cache, lru_cache

from xdsl.ir import Attribute, Operation

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.frontend.check.program import checked
from ulam.frontend.functions import signatures
from ulam.frontend.functions.definitions import LibraryFunction, overloads, resolve
from ulam.frontend.lower.builder import dialect_type, stan_type
from ulam.frontend.lower.program import FunctionLowering
from ulam.frontend.stan_types import VOID, StanType
from ulam.library.derivatives import has_primitive

Types = tuple[Attribute, ...]


@lru_cache(maxsize=4096)
def call_types(name: str, arguments: Types) -> tuple[Types, Attribute] | None:
    """The formal types and the result of a library function for arguments of these types; None if none fits.

    Functions of library/*.stan that are not part of the language are known by their definitions.
    """
    types = tuple(map(stan_type, arguments))
    signature = signatures.unique_cheapest(name, types)
    if signature is not None:
        if overloads(name) and resolve(name, types) is None and not has_primitive(name):
            return None  # the library does not define it for these types yet
        return tuple(map(dialect_type, signature.arguments)), dialect_type(signature.result)
    function = None if signatures.exists(name) else resolve(name, types)
    if function is None or function.definition.result == VOID:
        return None
    formals = [dialect_type(a.type) for a in function.definition.arguments]
    promoted = [
        formal if (a, formal) == (stan.INT, stan.REAL) else a for a, formal in zip(arguments, formals, strict=True)
    ]
    return tuple(promoted), dialect_type(function.definition.result)


@cache
def binary_types(symbol: str, left: Attribute, right: Attribute) -> tuple[Types, Attribute] | None:
    """The operand types and the result of a binary operator."""
    found = signatures.binary_operator(symbol, stan_type(left), stan_type(right))
    return None if found is None else ((dialect_type(found[0]), dialect_type(found[1])), dialect_type(found[2]))


@cache
def unary_type(symbol: str, operand: Attribute) -> Attribute | None:
    """The result of a prefix operator or of `'`."""
    found = signatures.unary_operator(symbol, stan_type(operand))
    return None if found is None else dialect_type(found[1])


class LibraryDefinitions:
    """The library functions of one program; it is where their bodies find the functions that they call."""

    def __init__(self, program: stan.ProgramOp) -> None:
        self._program = program
        self._taken: set[str] = set()
        self._symbols: dict[tuple[str, Types], str] = {}
        self._needed: list[tuple[LibraryFunction, str]] = []
        for function in program.body.block.ops:
            if not isinstance(function, stan.FuncOp):
                continue
            self._taken.add(function.sym_name.data)
            if function.library is not None:
                inputs = tuple(function.function_type.inputs.data)
                self._symbols[function.stan_name.data, inputs] = function.sym_name.data

    def symbol(self, name: str, arguments: Types) -> str | None:
        """The symbol of the definition that a call means; None if the conversion to loops knows the function."""
        found = self.library_symbol(name, tuple(map(stan_type, arguments)))
        self._lower_needed()
        return found

    def add(self, name: str) -> None:
        """Makes a function part of the program that it calls by no op: one of those that transform parameters."""
        self._symbol_of(name, overloads(name)[0])
        self._lower_needed()

    def _lower_needed(self) -> None:
        while self._needed:
            function, symbol = self._needed.pop()
            lowering = FunctionLowering(function.source, self)
            self._append(lowering.lower_function(checked(function), symbol, library=True))

    def _append(self, function: Operation) -> None:
        """Puts a function before the blocks of the program."""
        body = self._program.body.block
        first = next((op for op in body.ops if isinstance(op, stan.BlockOp)), None)
        if first is None:
            body.add_op(function)
        else:
            body.insert_op_before(function, first)

    # ------------------------------------------------------------ what `Functions` asks for

    def library_symbol(self, name: str, arguments: tuple[StanType, ...]) -> str | None:
        function = resolve(name, arguments)
        if function is None or (function.definition.body is None and function.definition.external is None):
            return None
        return self._symbol_of(name, function)

    def _symbol_of(self, name: str, function: LibraryFunction) -> str:
        key = name, tuple(dialect_type(a.type) for a in function.definition.arguments)
        symbol = self._symbols.get(key)
        if symbol is None:
            symbol, number = function.symbol, 0
            while symbol in self._taken:
                number += 1
                symbol = f"{name}.{number}"
            self._taken.add(symbol)
            self._symbols[key] = symbol
            self._needed.append((function, symbol))
        return symbol

    def user_symbol(self, function: syntax.FunctionDefinition) -> str:
        raise AssertionError(f"library functions do not call '{function.name}'")

    def user_function(self, name: str, arguments: tuple[StanType, ...]) -> syntax.FunctionDefinition | None:
        return None
