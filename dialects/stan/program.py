"""Program structure and control flow of the `stan` dialect.

Two forms. In the *variable form* (what the frontend produces, what the levels' passes run on) names are
`!stan.var` values that are read and assigned; loops and branches carry nothing. In the *value form* (after
`structure-exits` and `promote-variables`) there is no break, continue or early return, and promoted variables are
SSA values carried by loops and yielded by branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FunctionType, IntegerType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.plain_operation import PlainOperation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.effects import IsLoop, LeavesLoop, Profiles, Returns
from ulam.dialects.stan.types import INT, element_of

if TYPE_CHECKING:
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer

BLOCK_KINDS = ("data", "transformed_data", "parameters", "transformed_parameters", "model", "generated_quantities")
"""Kinds of `stan.block`, in program order."""


def _types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in values]


def _verify_arguments(block: Block, expected: Sequence[Attribute], what: str) -> None:
    if _types(block.args) != list(expected):
        found = ", ".join(map(str, _types(block.args)))
        raise VerifyException(f"{what}: block arguments are ({found}), not ({', '.join(map(str, expected))})")


def _verify_end(region: Region, expected: Sequence[Attribute], leaves: bool) -> None:
    """The region ends in a `stan.yield` of `expected` types, or, if it may be left, in break, continue or return."""
    last = region.block.last_op
    if isinstance(last, YieldOp):
        if _types(last.operands) != list(expected):
            raise VerifyException(f"yields ({', '.join(map(str, _types(last.operands)))}), "
                                  f"not ({', '.join(map(str, expected))})")  # fmt: skip
    elif not (leaves and isinstance(last, (BreakOp, ContinueOp, ReturnOp))):
        raise VerifyException(f"a region ends in {last.name if last else 'nothing'} instead of stan.yield")


def _verify_inside(op: PlainOperation, *parents: type[PlainOperation]) -> None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, parents):
        if isinstance(parent, (FuncOp, BlockOp)):
            parent = None
            break
        parent = parent.parent_op()
    if parent is None:
        raise VerifyException(f"{op.name} is not inside {' or '.join(p.name for p in parents)}")


def _verify_loop(initial: Sequence[SSAValue], results: Sequence[SSAValue]) -> list[Attribute]:
    carried = _types(results)
    if _types(initial) != carried:
        raise VerifyException("types of initial values and results differ")
    return carried


@irdl_op_definition
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


@irdl_op_definition
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
        _verify_arguments(self.body.block, (), "block")
        if not isinstance(self.parent_op(), (ProgramOp, type(None))):
            raise VerifyException("stan.block is not inside stan.program")


@irdl_op_definition
class FuncOp(PlainOperation):
    """A function, of the program or of the library.

    Block arguments of `body` are the formals, as plain values (formals cannot be assigned). `data_only` has a 1
    for each formal declared `data`. A function without result has no output in `function_type`.
    `stan_name` is the name in the source (`sym_name` is made unique where functions are overloaded).
    `body` is empty (no block) for library functions that the lowering knows itself. `inlined`: nothing calls it any
    more, and no pass has to look at it. `model`: a block of the program, made a function to be traced.

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
    data_only = prop_def(DenseArrayBase)
    library = opt_prop_def(UnitAttr)
    inlined = opt_prop_def(UnitAttr)
    model = opt_prop_def(UnitAttr)
    body = region_def()
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_function(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_function(printer, self)

    def verify_(self) -> None:
        inputs = self.function_type.inputs.data
        data_only = cast("DenseArrayBase[IntegerType]", self.data_only)
        if len(self.argument_names) != len(inputs) or len(data_only) != len(inputs):
            raise VerifyException(f"{len(inputs)} arguments, {len(self.argument_names)} names, {len(data_only)} marks")
        if len(self.body.blocks) > 1:
            raise VerifyException("the body is one block")
        if self.body.blocks:
            _verify_arguments(self.body.block, inputs, "function")
            if not isinstance(self.body.block.last_op, ReturnOp):
                raise VerifyException("the body ends in stan.return")


# ---------------------------------------------------------------- control flow


@irdl_op_definition
class IfOp(PlainOperation):
    """`if (condition) then else otherwise`. The condition is an int (non-zero is true).

    Value form: both regions yield the values of `results`. Regions end in `stan.yield`, or, in the variable form,
    in `stan.break`, `stan.continue` or `stan.return`.

    ```mlir
    stan.if %n {
      stan.print print(%n : !stan.int)
    } else {
      stan.print print(%k : !stan.int)
    }
    ```
    """

    name = "stan.if"
    condition = operand_def(INT)
    res = var_result_def()
    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parser.parse_unresolved_operand()
        types = syntax.parse_result_types(parser)
        attributes = syntax.parse_rest(parser)
        then = syntax.parse_body(parser, YieldOp)
        if parser.parse_optional_keyword("else") is None:
            otherwise = Region(Block([YieldOp.create()]))
        else:
            otherwise = syntax.parse_body(parser, YieldOp)
        return cls.create(
            operands=syntax.resolve_ints(parser, condition),
            result_types=types,
            attributes=attributes,
            regions=[then, otherwise],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)
        syntax.print_result_types(printer, self)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.then)
        if printer.print_debuginfo or not syntax.does_nothing(self.otherwise):
            printer.print_string(" else")
            syntax.print_body(printer, self.otherwise)

    def verify_(self) -> None:
        for region in (self.then, self.otherwise):
            _verify_arguments(region.block, (), "branch")
            _verify_end(region, _types(self.results), leaves=not self.results)


@irdl_op_definition
class ForOp(PlainOperation):
    """`for (i in lower:upper) body`; bounds are evaluated once, lower then upper, before the first iteration.

    Block arguments of `body`: the loop variable (int), then one for each of `initial`; `stan.yield` passes the
    carried values on. `variable` is the name of the loop variable in the source.

    ```mlir
    %sum = stan.for %i = %n to %k iter_args(%s = %x : !stan.real) {
      %e = stan.index %v[%i] : !stan.vector -> !stan.real
      %next = stan.add %s, %e : !stan.real
      stan.yield %next : !stan.real
    }
    ```
    """

    name = "stan.for"
    variable = prop_def(StringAttr)
    lower = operand_def(INT)
    upper = operand_def(INT)
    initial = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(IsLoop(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        lower = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        upper = parser.parse_unresolved_operand()
        name = syntax.parse_source_name(parser, variable)
        arguments, initial = syntax.parse_carried(parser)
        attributes = syntax.parse_rest(parser)
        body = syntax.parse_body(parser, YieldOp, [variable.resolve(INT), *arguments])
        return cls.create(
            operands=[*syntax.resolve_ints(parser, lower, upper), *initial],
            result_types=_types(initial),
            properties={"variable": name},
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        variable, *carried = self.body.block.args
        printer.print_string(" ")
        printed = printer.print_ssa_value(variable)
        printer.print_string(" = ")
        printer.print_operand(self.lower)
        printer.print_string(" to ")
        printer.print_operand(self.upper)
        syntax.print_source_name(printer, self, printed)
        syntax.print_carried(printer, carried, self.initial)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        carried = _verify_loop(self.initial, self.results)
        _verify_arguments(self.body.block, [INT, *carried], "loop")
        _verify_end(self.body, carried, leaves=not carried)


@irdl_op_definition
class ForEachOp(PlainOperation):
    """`for (x in container) body`: elements of an array, entries of a vector or matrix (column-major).

    Block arguments as for `stan.for`, the first being the element.

    ```mlir
    stan.foreach %e in %v : !stan.vector {
      stan.target_add %e : !stan.real
    }
    ```
    """

    name = "stan.foreach"
    variable = prop_def(StringAttr)
    container = operand_def()
    initial = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(IsLoop(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        variable = parser.parse_argument(expect_type=False)
        parser.parse_keyword("in")
        container = syntax.parse_typed(parser)
        name = syntax.parse_source_name(parser, variable)
        arguments, initial = syntax.parse_carried(parser)
        attributes = syntax.parse_rest(parser)
        element = element_of(container.type)
        if element is None:
            parser.raise_error(f"{container.type} has no elements to loop over")
        body = syntax.parse_body(parser, YieldOp, [variable.resolve(element), *arguments])
        return cls.create(
            operands=[container, *initial],
            result_types=_types(initial),
            properties={"variable": name},
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        variable, *carried = self.body.block.args
        printer.print_string(" ")
        printed = printer.print_ssa_value(variable)
        printer.print_string(" in ")
        syntax.print_typed(printer, self.container)
        syntax.print_source_name(printer, self, printed)
        syntax.print_carried(printer, carried, self.initial)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        carried = _verify_loop(self.initial, self.results)
        element = element_of(self.container.type)
        if element is None:
            raise VerifyException(f"{self.container.type} has no elements to loop over")
        _verify_arguments(self.body.block, [element, *carried], "loop")
        _verify_end(self.body, carried, leaves=not carried)


@irdl_op_definition
class WhileOp(PlainOperation):
    """`while (condition) body`. The condition is a region, evaluated before every iteration.

    Block arguments of both regions: one for each of `initial`. `condition` ends in `stan.condition %c, %carried...`
    (what it passes goes to `body`, or to the results when the loop ends), `body` in `stan.yield`.

    ```mlir
    %r = stan.while iter_args(%s = %x : !stan.real) {
      %c = stan.lt %s, %y : (!stan.real, !stan.real) -> !stan.int
      stan.condition %c, %s : !stan.real
    } do (%s : !stan.real) {
      %next = stan.add %s, %s : !stan.real
      stan.yield %next : !stan.real
    }
    ```
    """

    name = "stan.while"
    initial = var_operand_def()
    res = var_result_def()
    condition = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(IsLoop(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arguments, initial = syntax.parse_carried(parser)
        attributes = syntax.parse_rest(parser)
        condition = syntax.parse_body(parser, None, arguments)
        parser.parse_keyword("do")
        names: Sequence[Parser.Argument] = ()
        if arguments:
            names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        body = syntax.parse_body(parser, YieldOp, names)
        return cls.create(
            operands=initial, result_types=_types(initial), attributes=attributes, regions=[condition, body]
        )

    def print(self, printer: Printer) -> None:
        syntax.print_carried(printer, self.condition.block.args, self.initial)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.condition)
        printer.print_string(" do")
        if self.body.block.args:
            printer.print_string(" (")
            printer.print_list(self.body.block.args, printer.print_block_argument)
            printer.print_string(")")
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        carried = _verify_loop(self.initial, self.results)
        for region in (self.condition, self.body):
            _verify_arguments(region.block, carried, "loop")
        last = self.condition.block.last_op
        if not isinstance(last, ConditionOp) or _types(last.arguments) != carried:
            raise VerifyException("the condition ends in a stan.condition that passes the carried values")
        _verify_end(self.body, carried, leaves=not carried)


@irdl_op_definition
class SelectOp(PlainOperation):
    """`condition ? then : otherwise`: only the chosen region is evaluated; each ends in `stan.yield %value`.

    ```mlir
    %r = stan.select %n -> (!stan.real) {
      stan.yield %x : !stan.real
    } else {
      stan.yield %y : !stan.real
    }
    ```
    """

    name = "stan.select"
    condition = operand_def(INT)
    res = result_def()
    then = region_def("single_block")
    otherwise = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        condition = parser.parse_unresolved_operand()
        types = syntax.parse_result_types(parser)
        attributes = syntax.parse_rest(parser)
        then = syntax.parse_body(parser, None)
        parser.parse_keyword("else")
        otherwise = syntax.parse_body(parser, None)
        return cls.create(
            operands=syntax.resolve_ints(parser, condition),
            result_types=types,
            attributes=attributes,
            regions=[then, otherwise],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)
        syntax.print_result_types(printer, self)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.then)
        printer.print_string(" else")
        syntax.print_body(printer, self.otherwise)

    def verify_(self) -> None:
        for region in (self.then, self.otherwise):
            _verify_arguments(region.block, (), "operand")
            _verify_end(region, _types(self.results), leaves=False)


@irdl_op_definition
class AndOp(PlainOperation):
    """`left && right`: `right` is a region, evaluated only if `left` is not 0. The result is 0 or 1.

    ```mlir
    %both = stan.and %n {
      stan.yield %k : !stan.int
    }
    ```
    """

    name = "stan.and"
    left = operand_def(INT)
    res = result_def(INT)
    right = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        left = parser.parse_unresolved_operand()
        attributes = syntax.parse_rest(parser)
        right = syntax.parse_body(parser, None)
        return cls.create(
            operands=syntax.resolve_ints(parser, left), result_types=(INT,), attributes=attributes, regions=[right]
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.left)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.right)

    def verify_(self) -> None:
        _verify_arguments(self.right.block, (), "operand")
        _verify_end(self.right, (INT,), leaves=False)


@irdl_op_definition
class OrOp(PlainOperation):
    """`left || right`: `right` is a region, evaluated only if `left` is 0. The result is 0 or 1.

    ```mlir
    %any = stan.or %n {
      stan.yield %k : !stan.int
    }
    ```
    """

    name = "stan.or"
    left = operand_def(INT)
    res = result_def(INT)
    right = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        left = parser.parse_unresolved_operand()
        attributes = syntax.parse_rest(parser)
        right = syntax.parse_body(parser, None)
        return cls.create(
            operands=syntax.resolve_ints(parser, left), result_types=(INT,), attributes=attributes, regions=[right]
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.left)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.right)

    def verify_(self) -> None:
        _verify_arguments(self.right.block, (), "operand")
        _verify_end(self.right, (INT,), leaves=False)


@irdl_op_definition
class ScopeOp(PlainOperation):
    """`{ ... }`: a local block, for passes that build one; the frontend puts its statements into the region around it
    (see `stan.declare`, `local`). The value form has none.

    ```mlir
    stan.scope {
      stan.print print(%n : !stan.int)
    }
    ```
    """

    name = "stan.scope"
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = syntax.parse_rest(parser)
        return cls.create(attributes=attributes, regions=[syntax.parse_body(parser, YieldOp)])

    def print(self, printer: Printer) -> None:
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        _verify_arguments(self.body.block, (), "scope")
        _verify_end(self.body, (), leaves=True)


@irdl_op_definition
class ProfileOp(PlainOperation):
    """`profile("name") { ... }`. Nothing moves across its edges. Value form: yields `results`.

    ```mlir
    stan.profile likelihood {
      stan.target_add %x : !stan.real
    }
    ```
    """

    name = "stan.profile"
    profile_name = prop_def(StringAttr)
    res = var_result_def()
    body = region_def("single_block")
    traits = traits_def(Profiles(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = syntax.parse_word(parser)
        types = syntax.parse_result_types(parser)
        attributes = syntax.parse_rest(parser)
        body = syntax.parse_body(parser, YieldOp)
        return cls.create(result_types=types, properties={"profile_name": name}, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        syntax.print_word(printer, self.profile_name.data)
        syntax.print_result_types(printer, self)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        _verify_arguments(self.body.block, (), "profile")
        _verify_end(self.body, _types(self.results), leaves=not self.results)


@irdl_op_definition
class YieldOp(PlainOperation):
    """Ends a region, with the values it passes on.

    ```mlir
    %any = stan.or %n {
      stan.yield %k : !stan.int
    }
    ```
    """

    name = "stan.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($arguments^ `:` type($arguments))? attr-dict"


@irdl_op_definition
class ConditionOp(PlainOperation):
    """Ends the condition of a `stan.while`: continue while `condition` is not 0, passing `arguments` on.

    ```mlir
    stan.while {
      stan.condition %n
    } do {
      stan.break
    }
    ```
    """

    name = "stan.condition"
    condition = operand_def(INT)
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "$condition (`,` $arguments^ `:` type($arguments))? attr-dict"

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), WhileOp):
            raise VerifyException("stan.condition ends the condition of a stan.while")


@irdl_op_definition
class BreakOp(PlainOperation):
    """`break;` Variable form only.

    ```mlir
    stan.for %i = %n to %k {
      stan.break
    }
    ```
    """

    name = "stan.break"
    traits = traits_def(IsTerminator(), LeavesLoop())
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        _verify_inside(self, ForOp, ForEachOp, WhileOp)


@irdl_op_definition
class ContinueOp(PlainOperation):
    """`continue;` Variable form only.

    ```mlir
    stan.for %i = %n to %k {
      stan.continue
    }
    ```
    """

    name = "stan.continue"
    traits = traits_def(IsTerminator(), LeavesLoop())
    assembly_format = "attr-dict"

    def verify_(self) -> None:
        _verify_inside(self, ForOp, ForEachOp, WhileOp)


@irdl_op_definition
class ReturnOp(PlainOperation):
    """`return e;` Value form: only as the last op of a function's body.

    ```mlir
    stan.func @one() -> (!stan.int) {
      %one = stan.constant 1 : i32
      stan.return %one : !stan.int
    }
    ```
    """

    name = "stan.return"
    value = opt_operand_def()
    traits = traits_def(IsTerminator(), Returns())
    assembly_format = "($value^ `:` type($value))? attr-dict"

    def verify_(self) -> None:
        _verify_inside(self, FuncOp)
        function = self.parent_op()
        while not isinstance(function, FuncOp):
            assert function is not None
            function = function.parent_op()
        if not isinstance(signature := function.properties.get("function_type"), FunctionType):
            return  # as the function's own verifier says
        expected = list(signature.outputs.data)
        if _types(self.operands) != expected:
            raise VerifyException(f"returns ({', '.join(map(str, _types(self.operands)))}), "
                                  f"not ({', '.join(map(str, expected))})")  # fmt: skip
