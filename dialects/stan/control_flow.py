"""Control flow of the `stan` dialect: branches, loops, operands that are not always evaluated, local blocks.

Two forms. In the *variable form* (what the frontend produces, what the levels' passes run on) names are
`!stan.var` values that are read and assigned; loops and branches carry nothing. In the *value form* (after
`structure-exits` and `promote-variables`) there is no break, continue or early return, and promoted variables are
SSA values carried by loops and yielded by branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Text, string
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.effects import IsLoop, Profiles
from ulam.dialects.stan.terminators import ConditionOp, YieldOp, types_of, verify_arguments, verify_end
from ulam.dialects.stan.type_attributes import INT, element_of

if TYPE_CHECKING:
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer


def _verify_loop(initial: Sequence[SSAValue], results: Sequence[SSAValue]) -> list[Attribute]:
    carried = types_of(results)
    if types_of(initial) != carried:
        raise VerifyException("types of initial values and results differ")
    return carried


@plain_operation
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

    def __init__(
        self,
        condition: SSAValue,
        then: Region,
        otherwise: Region,
        result_types: Sequence[Attribute] = (),
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(condition,), result_types=result_types, regions=(then, otherwise), location=location
        )

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
            verify_arguments(region.block, (), "branch")
            verify_end(region, types_of(self.results), leaves=not self.results)


@plain_operation
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

    def __init__(
        self,
        variable: Text,
        lower: SSAValue,
        upper: SSAValue,
        body: Region,
        initial: Sequence[SSAValue] = (),
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=(lower, upper, *initial),
            result_types=types_of(initial),
            properties={"variable": string(variable)},
            regions=(body,),
            location=location,
        )

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
            result_types=types_of(initial),
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
        verify_arguments(self.body.block, [INT, *carried], "loop")
        verify_end(self.body, carried, leaves=not carried)


@plain_operation
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

    def __init__(
        self,
        variable: Text,
        container: SSAValue,
        body: Region,
        initial: Sequence[SSAValue] = (),
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=(container, *initial),
            result_types=types_of(initial),
            properties={"variable": string(variable)},
            regions=(body,),
            location=location,
        )

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
            result_types=types_of(initial),
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
        verify_arguments(self.body.block, [element, *carried], "loop")
        verify_end(self.body, carried, leaves=not carried)


@plain_operation
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

    def __init__(
        self, condition: Region, body: Region, initial: Sequence[SSAValue] = (), *, location: LocationAttr | None = None
    ) -> None:
        give_parts(
            self, operands=initial, result_types=types_of(initial), regions=(condition, body), location=location
        )

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
            operands=initial, result_types=types_of(initial), attributes=attributes, regions=[condition, body]
        )

    def print(self, printer: Printer) -> None:
        syntax.print_carried(printer, self.condition.block.args, self.initial)
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.condition)
        printer.print_string(" do")
        if self.body.block.args:
            printer.print_string(" (")
            printer.print_list(self.body.block.args, partial(syntax.print_argument, printer))
            printer.print_string(")")
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        carried = _verify_loop(self.initial, self.results)
        for region in (self.condition, self.body):
            verify_arguments(region.block, carried, "loop")
        last = self.condition.block.last_op
        if not isinstance(last, ConditionOp) or types_of(last.arguments) != carried:
            raise VerifyException("the condition ends in a stan.condition that passes the carried values")
        verify_end(self.body, carried, leaves=not carried)


@plain_operation
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

    def __init__(
        self,
        condition: SSAValue,
        then: Region,
        otherwise: Region,
        result_type: Attribute,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(condition,), result_types=(result_type,), regions=(then, otherwise), location=location
        )

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
            verify_arguments(region.block, (), "operand")
            verify_end(region, types_of(self.results), leaves=False)


class _Logical(PlainOperation):
    """An operator whose right operand is evaluated only if the left one does not decide."""

    left = operand_def(INT)
    res = result_def(INT)
    right = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, left: SSAValue, right: Region, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(left,), result_types=(INT,), regions=(right,), location=location)

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
        verify_arguments(self.right.block, (), "operand")
        verify_end(self.right, (INT,), leaves=False)


@plain_operation
class AndOp(_Logical):
    """`left && right`: `right` is a region, evaluated only if `left` is not 0. The result is 0 or 1.

    ```mlir
    %both = stan.and %n {
      stan.yield %k : !stan.int
    }
    ```
    """

    name = "stan.and"


@plain_operation
class OrOp(_Logical):
    """`left || right`: `right` is a region, evaluated only if `left` is 0. The result is 0 or 1.

    ```mlir
    %any = stan.or %n {
      stan.yield %k : !stan.int
    }
    ```
    """

    name = "stan.or"


@plain_operation
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

    def __init__(self, body: Region, *, location: LocationAttr | None = None) -> None:
        give_parts(self, regions=(body,), location=location)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = syntax.parse_rest(parser)
        return cls.create(attributes=attributes, regions=[syntax.parse_body(parser, YieldOp)])

    def print(self, printer: Printer) -> None:
        syntax.print_rest(printer, self)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        verify_arguments(self.body.block, (), "scope")
        verify_end(self.body, (), leaves=True)


@plain_operation
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

    def __init__(
        self, name: Text, body: Region, result_types: Sequence[Attribute] = (), *, location: LocationAttr | None = None
    ) -> None:
        give_parts(
            self,
            result_types=result_types,
            properties={"profile_name": string(name)},
            regions=(body,),
            location=location,
        )

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
        verify_arguments(self.body.block, (), "profile")
        verify_end(self.body, types_of(self.results), leaves=not self.results)
