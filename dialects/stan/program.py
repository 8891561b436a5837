"""Program structure of the `stan` dialect: the program, its blocks and functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i8,
)
from xdsl.ir import Attribute, Region
from xdsl.irdl import opt_prop_def, prop_def, region_def, traits_def
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Flags, Text, flags, string, units
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.terminators import ReturnOp, verify_arguments

if TYPE_CHECKING:
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer

BLOCK_KINDS = ("data", "transformed_data", "parameters", "transformed_parameters", "model", "generated_quantities")
"""Kinds of `stan.block`, in program order."""


@plain_operation
class ProgramOp(PlainOperation):
    """A Stan program: `stan.func`s, then `stan.block`s in program order.

    ```mlir
    stan.program @m {
      stan.block data {
        %N = stan.declare N : !stan.var<!stan.int>
      }
    }
    ```
    """

    name = "stan.program"
    sym_name = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), SymbolTable(), NoTerminator(), IsolatedFromAbove())

    def __init__(self, name: Text, body: Region, *, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"sym_name": string(name)}, regions=(body,), location=location)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        attributes = syntax.parse_rest(parser)
        body = syntax.parse_body(parser, None)
        return cls.create(properties={"sym_name": name}, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        seen = -1
        for op in self.body.block.ops:
            if isinstance(op, BlockOp):
                place = BLOCK_KINDS.index(op.kind.data) if op.kind.data in BLOCK_KINDS else -1
                if place <= seen:
                    raise VerifyException(f"block {op.kind.data} is unknown, repeated or out of order")
                seen = place
            elif not isinstance(op, FuncOp):
                raise VerifyException(f"{op.name} in a program, outside of its functions and blocks")


@plain_operation
class BlockOp(PlainOperation):
    """One block of the program; `kind` is `data`, `transformed_data`, `parameters`, `transformed_parameters`,
    `model` or `generated_quantities`. Variables declared in it at its top level are global: other blocks refer to
    them with `stan.global`.

    ```mlir
    stan.block model {
      %one = stan.constant 1.0 : f64
      stan.target_add %one : !stan.real
    }
    ```
    """

    name = "stan.block"
    kind = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), IsolatedFromAbove())

    def __init__(self, kind: Text, body: Region, *, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"kind": string(kind)}, regions=(body,), location=location)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kind = syntax.parse_word(parser)
        attributes = syntax.parse_rest(parser)
        body = syntax.parse_body(parser, None)
        return cls.create(properties={"kind": kind}, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        syntax.print_word(printer, self.kind.data)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        verify_arguments(self.body.block, (), "block")
        if not isinstance(self.parent_op(), (ProgramOp, type(None))):
            raise VerifyException("stan.block is not inside stan.program")


@plain_operation
class FuncOp(PlainOperation):
    """A function, of the program or of the library.

    Block arguments of `body` are the formals, as plain values (formals cannot be assigned). `data_only` has a 1
    for each formal declared `data`. A function without result has no output in `function_type`.
    `stan_name` is the name in the source (`sym_name` is made unique where functions are overloaded).
    `body` is empty (no block) for library functions that the lowering knows itself. `inlined`: nothing calls it (any
    more), and no pass has to look at it. `model`: a block of the program, made a function to be traced.

    ```mlir
    stan.func @half(x %x: !stan.real) -> (!stan.real) {
      %two = stan.constant 2.0 : f64
      %h = stan.div %x, %two : !stan.real
      stan.return %h : !stan.real
    }
    ```
    """

    name = "stan.func"
    sym_name = prop_def(StringAttr)
    stan_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    argument_names = prop_def(ArrayAttr[StringAttr])
    data_only = prop_def(DenseArrayBase.constr(i8))
    library = opt_prop_def(UnitAttr)
    inlined = opt_prop_def(UnitAttr)
    model = opt_prop_def(UnitAttr)
    body = region_def()
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    def __init__(
        self,
        symbol: Text,
        argument_names: Sequence[Text],
        inputs: Sequence[Attribute],
        outputs: Sequence[Attribute],
        body: Region,
        *,
        stan_name: Text | None = None,
        data_only: Flags | None = None,
        library: bool = False,
        model: bool = False,
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {
            "sym_name": string(symbol),
            "stan_name": string(symbol if stan_name is None else stan_name),
            "function_type": FunctionType.from_lists(inputs, outputs),
            "argument_names": ArrayAttr([string(name) for name in argument_names]),
            "data_only": flags((0,) * len(inputs) if data_only is None else data_only),
            **units(library=library, model=model),
        }
        give_parts(self, properties=properties, regions=(body,), location=location)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_function(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_function(printer, self)

    def verify_(self) -> None:
        inputs = self.function_type.inputs.data
        names, marks = len(self.argument_names), len(self.data_only)
        if names != len(inputs) or marks != len(inputs):
            raise VerifyException(f"{len(inputs)} arguments, {names} names, {marks} marks")
        if len(self.body.blocks) > 1:
            raise VerifyException("the body is one block")
        if self.body.blocks:
            verify_arguments(self.body.block, inputs, "function")
            if not isinstance(self.body.block.last_op, ReturnOp):
                raise VerifyException("the body ends in stan.return")
