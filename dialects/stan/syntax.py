"""How the ops of the `stan` dialect are written that xDSL's declarative formats do not reach.

    %z = stan.add %x, %y : !stan.real
    %e = stan.index %m[%i, %a to %b] : !stan.matrix -> !stan.row_vector
    %s = stan.for %n = %a to %b iter_args(%t = %zero : !stan.real) { ... }

A region that passes nothing on is written without its `stan.yield`, as in the `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    StringAttr,
    UnitAttr,
    UnknownLoc,
    i8,
)
from xdsl.irdl import IRDLOperation

from ulam.dialects.stan.type_attributes import INT, array_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, Region, SSAValue
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer

OpT = TypeVar("OpT", bound=IRDLOperation)

# ---------------------------------------------------------------- attributes


def print_rest(printer: Printer, op: Operation) -> None:
    """The attributes that are no part of an op's definition."""
    printer.print_op_attributes(op.attributes, print_keyword=True)


def parse_rest(parser: Parser) -> dict[str, Attribute]:
    found = parser.parse_optional_attr_dict_with_keyword()
    return {} if found is None else dict(found.data)


def print_word(printer: Printer, text: str) -> None:
    """A string, without quotes where it is a name."""
    printer.print_string(" ")
    printer.print_identifier_or_string_literal(text)


def parse_word(parser: Parser) -> StringAttr:
    return StringAttr(parser.parse_identifier_or_str_literal())


def print_flags(printer: Printer, op: Operation, names: Iterable[str]) -> None:
    """The unit properties that an op has."""
    for name in names:
        if name in op.properties:
            printer.print_string(f" {name}")


def parse_flags(parser: Parser, names: Iterable[str]) -> dict[str, Attribute]:
    return {name: UnitAttr() for name in names if parser.parse_optional_keyword(name) is not None}


def print_texts(printer: Printer, op: Operation, names: Iterable[str]) -> None:
    """The optional strings that an op has, after their names."""
    for name in names:
        if isinstance(text := op.properties.get(name), StringAttr):
            printer.print_string(f" {name}")
            print_word(printer, text.data)


def parse_texts(parser: Parser, names: Iterable[str]) -> dict[str, Attribute]:
    return {name: parse_word(parser) for name in names if parser.parse_optional_keyword(name) is not None}


# ---------------------------------------------------------------- operands and types


def print_operator(printer: Printer, op: Operation) -> None:
    """Operands, and one type if all are of it."""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)
    print_rest(printer, op)
    printer.print_string(" : ")
    types = {value.type for value in (*op.operands, *op.results)}
    if len(types) == 1:
        printer.print_attribute(types.pop())
    else:
        printer.print_function_type(op.operand_types, op.result_types)


def parse_operator(cls: type[OpT], parser: Parser) -> OpT:
    start = parser.pos
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    attributes = parse_rest(parser)
    parser.parse_punctuation(":")
    signature = parser.parse_optional_function_type()
    if signature is None:
        inputs = outputs = [parser.parse_type()]
        inputs = inputs * len(operands)
    else:
        inputs, outputs = signature.inputs.data, signature.outputs.data
    resolved = parser.resolve_operands(operands, inputs, start)
    return cls.create(operands=resolved, result_types=outputs, attributes=attributes)


def print_typed(printer: Printer, value: SSAValue) -> None:
    """`%x : !stan.real`."""
    printer.print_operand(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


def parse_typed(parser: Parser) -> SSAValue:
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return parser.resolve_operand(operand, parser.parse_type())


def print_list_in(printer: Printer, values: Sequence[SSAValue], brackets: str) -> None:
    """Operands of known types in brackets; nothing if there are none."""
    if values:
        with printer.delimited(*brackets):
            printer.print_list(values, printer.print_operand)


def parse_sizes(parser: Parser) -> Sequence[SSAValue]:
    found = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return [parser.resolve_operand(operand, INT) for operand in found or ()]


# ---------------------------------------------------------------- declarations

BOUNDS = ("lower", "upper", "offset", "multiplier")
"""Operands of a constraint, in their order."""


def print_constrained(printer: Printer, op: IRDLOperation, names: Sequence[str] = BOUNDS) -> None:
    """The constraint, if there is one, and its operands: `bounds lower(%a : !stan.real)`."""
    constraint = op.properties["constraint"]
    if isinstance(constraint, StringAttr) and constraint.data != "none":
        print_word(printer, constraint.data)
    for name in names:
        if (value := getattr(op, name)) is not None:
            printer.print_string(f" {name}")
            with printer.in_parens():
                print_typed(printer, value)


def parse_constrained(
    parser: Parser, stop: Sequence[str], names: Sequence[str] = BOUNDS
) -> tuple[StringAttr, list[Sequence[SSAValue]]]:
    """The constraint and, by name, its operands. `stop`: what may come instead of a constraint."""
    groups: list[Sequence[SSAValue]] = []
    constraint = "none"
    ahead = parser._current_token.text  # pyright: ignore[reportPrivateUsage]
    if ahead not in stop and ahead not in names:
        constraint = parser.parse_optional_identifier_or_str_literal() or constraint
    for name in names:
        if parser.parse_optional_keyword(name) is None:
            groups.append(())
        else:
            with parser.in_parens():
                groups.append((parse_typed(parser),))
    return StringAttr(constraint), groups


DECLARED = ("local", "data_only")
_DECLARED_TEXTS = ("memory", "field_ranks", "source_name")


def print_declaration(printer: Printer, op: IRDLOperation) -> None:
    """`stan.declare y[%n] bounds lower(%zero : !stan.real) local : !stan.var<!stan.vector>`."""
    name = op.properties["var_name"]
    assert isinstance(name, StringAttr)
    print_word(printer, name.data)
    print_list_in(printer, getattr(op, "sizes"), "[]")  # noqa: B009
    print_constrained(printer, op)
    print_texts(printer, op, _DECLARED_TEXTS)
    print_flags(printer, op, DECLARED)
    print_rest(printer, op)
    printer.print_string(" : ")
    printer.print_attribute(op.results[0].type)


def parse_declaration(cls: type[OpT], parser: Parser) -> OpT:
    properties: dict[str, Attribute] = {"var_name": parse_word(parser)}
    sizes = parse_sizes(parser)
    stop = (*_DECLARED_TEXTS, *DECLARED, "attributes")
    properties["constraint"], groups = parse_constrained(parser, stop)
    properties |= parse_texts(parser, _DECLARED_TEXTS) | parse_flags(parser, DECLARED)
    attributes = parse_rest(parser)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    return cls.build(operands=[sizes, *groups], result_types=[type_], properties=properties, attributes=attributes)


def print_check(printer: Printer, op: IRDLOperation) -> None:
    """`stan.check sigma %s : !stan.real bounds lower(%zero : !stan.real)`."""
    name = op.properties["var_name"]
    assert isinstance(name, StringAttr)
    print_word(printer, name.data)
    printer.print_string(" ")
    print_typed(printer, op.operands[0])
    print_constrained(printer, op, BOUNDS[:2])
    print_rest(printer, op)


def parse_check(cls: type[OpT], parser: Parser) -> OpT:
    name = parse_word(parser)
    value = parse_typed(parser)
    constraint, groups = parse_constrained(parser, ("attributes",), BOUNDS[:2])
    return cls.build(
        operands=[value, *groups],
        properties={"var_name": name, "constraint": constraint},
        attributes=parse_rest(parser),
    )


# ---------------------------------------------------------------- indices


def print_indices(printer: Printer, kinds: object, operands: Sequence[SSAValue]) -> None:
    """`[%i, %a to %b, %a to, to %b, :, multiple %indices]`; nothing if there are none."""
    left = list(operands)
    if not isinstance(kinds, ArrayAttr) or not kinds.data:
        return
    with printer.in_square_brackets():
        for position, kind in enumerate(kinds.data):
            printer.print_string(", " if position else "")
            assert isinstance(kind, StringAttr)
            _print_index(printer, kind.data, left)


def _print_index(printer: Printer, kind: str, left: list[SSAValue]) -> None:
    if kind == "all":
        printer.print_string(":")
        return
    printer.print_string({"multiple": "multiple ", "to": "to "}.get(kind, ""))
    printer.print_operand(left.pop(0))
    if kind in ("between", "from"):
        printer.print_string(" to")
    if kind == "between":
        printer.print_string(" ")
        printer.print_operand(left.pop(0))


def parse_indices(parser: Parser) -> tuple[ArrayAttr[StringAttr], list[SSAValue]]:
    """Kinds and operands of indices."""
    kinds: list[StringAttr] = []
    operands: list[SSAValue] = []

    def operand(type_: Attribute = INT) -> None:
        operands.append(parser.resolve_operand(parser.parse_unresolved_operand(), type_))

    def index() -> None:
        if parser.parse_optional_punctuation(":") is not None:
            kinds.append(StringAttr("all"))
        elif parser.parse_optional_keyword("multiple") is not None:
            operand(array_of(INT, 1))
            kinds.append(StringAttr("multiple"))
        elif parser.parse_optional_keyword("to") is not None:
            operand()
            kinds.append(StringAttr("to"))
        else:
            operand()
            kinds.append(StringAttr(_rest_of_index()))

    def _rest_of_index() -> str:
        if parser.parse_optional_keyword("to") is None:
            return "single"
        if (upper := parser.parse_optional_unresolved_operand()) is None:
            return "from"
        operands.append(parser.resolve_operand(upper, INT))
        return "between"

    parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, index)
    return ArrayAttr(kinds), operands


def print_index(printer: Printer, op: Operation) -> None:
    """`stan.index %m[%i] : !stan.matrix -> !stan.row_vector`."""
    printer.print_string(" ")
    printer.print_operand(op.operands[0])
    print_indices(printer, op.properties["kinds"], op.operands[1:])
    print_rest(printer, op)
    printer.print_string(" : ")
    printer.print_attribute(op.operands[0].type)
    printer.print_string(" -> ")
    printer.print_attribute(op.results[0].type)


def parse_index(cls: type[OpT], parser: Parser) -> OpT:
    value = parser.parse_unresolved_operand()
    kinds, indices = parse_indices(parser)
    attributes = parse_rest(parser)
    parser.parse_punctuation(":")
    operands = [parser.resolve_operand(value, parser.parse_type()), *indices]
    parser.parse_punctuation("->")
    result = parser.parse_type()
    return cls.create(operands=operands, result_types=[result], properties={"kinds": kinds}, attributes=attributes)


def print_assign(printer: Printer, op: Operation) -> None:
    """`stan.assign %x[%i] = %v : !stan.var<!stan.vector>, !stan.real`."""
    variable, value = op.operands[:2]
    printer.print_string(" ")
    printer.print_operand(variable)
    print_indices(printer, op.properties["kinds"], op.operands[2:])
    printer.print_string(" = ")
    printer.print_operand(value)
    print_rest(printer, op)
    printer.print_string(" : ")
    printer.print_list((variable.type, value.type), printer.print_attribute)


def parse_assign(cls: type[OpT], parser: Parser) -> OpT:
    variable = parser.parse_unresolved_operand()
    kinds, indices = parse_indices(parser)
    parser.parse_punctuation("=")
    value = parser.parse_unresolved_operand()
    attributes = parse_rest(parser)
    parser.parse_punctuation(":")
    first = parser.resolve_operand(variable, parser.parse_type())
    parser.parse_punctuation(",")
    second = parser.resolve_operand(value, parser.parse_type())
    return cls.create(operands=[first, second, *indices], properties={"kinds": kinds}, attributes=attributes)


# ---------------------------------------------------------------- regions


def print_argument(printer: Printer, argument: SSAValue) -> None:
    """An argument of a block with its type, and without a place, for which `parse_argument` has no room."""
    printer.print_ssa_value(argument)
    printer.print_string(": ")
    printer.print_attribute(argument.type)


def print_body(printer: Printer, region: Region, arguments: bool = False) -> None:
    """A region, without the `stan.yield` at its end if that says nothing."""
    printer.print_string(" ")
    shown = printer.print_debuginfo or not _ends_plainly(region)
    printer.print_region(
        region, print_entry_block_args=arguments, print_empty_block=False, print_block_terminators=shown
    )


def _ends_plainly(region: Region) -> bool:
    last = region.blocks.first.last_op if region.blocks.first is not None else None
    return last is not None and last.name == "stan.yield" and not last.operands and not last.attributes


def does_nothing(region: Region) -> bool:
    """Whether a region has an empty `stan.yield` alone."""
    return region.block.first_op is region.block.last_op and _ends_plainly(region)


def parse_body(
    parser: Parser, end: type[Operation] | None, arguments: Sequence[Parser.Argument] | None = None
) -> Region:
    """A region of one block, with `end` behind what does not end by itself."""
    from xdsl.ir import Block

    region = parser.parse_region(arguments)
    if not region.blocks:
        region.add_block(Block())
    if end is not None and ((last := region.block.last_op) is None or not _is_terminator(last)):
        region.block.add_op(end.create(location=UnknownLoc()))
    return region


def _is_terminator(op: Operation) -> bool:
    from xdsl.traits import IsTerminator

    return op.has_trait(IsTerminator)


def print_result_types(printer: Printer, op: Operation) -> None:
    """`-> (!stan.real, !stan.int)`; nothing if there are none."""
    if op.results:
        printer.print_string(" -> (")
        printer.print_list([result.type for result in op.results], printer.print_attribute)
        printer.print_string(")")


def parse_result_types(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation("->") is None:
        return []
    return list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))


def print_carried(printer: Printer, arguments: Sequence[SSAValue], initial: Sequence[SSAValue]) -> None:
    """` iter_args(%t = %zero : !stan.real)`; nothing if nothing is carried."""
    if not initial:
        return
    printer.print_string(" iter_args(")
    for position, (argument, value) in enumerate(zip(arguments, initial, strict=True)):
        printer.print_string(", " if position else "")
        printer.print_ssa_value(argument)
        printer.print_string(" = ")
        print_typed(printer, value)
    printer.print_string(")")


def parse_carried(parser: Parser) -> tuple[list[Parser.Argument], list[SSAValue]]:
    arguments: list[Parser.Argument] = []
    initial: list[SSAValue] = []

    def carried() -> None:
        name = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        initial.append(parse_typed(parser))
        arguments.append(name.resolve(initial[-1].type))

    if parser.parse_optional_keyword("iter_args") is not None:
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, carried)
    return arguments, initial


def print_source_name(printer: Printer, op: Operation, printed: str) -> None:
    """` named n` where the loop variable is not written by its name in the source."""
    name = op.properties["variable"]
    assert isinstance(name, StringAttr)
    if name.data != printed:
        printer.print_string(" named")
        print_word(printer, name.data)


def parse_source_name(parser: Parser, printed: Parser.UnresolvedArgument) -> StringAttr:
    if parser.parse_optional_keyword("named") is not None:
        return parse_word(parser)
    return StringAttr(printed.name.text[1:])


def print_function(printer: Printer, op: Operation) -> None:
    """`stan.func @f(x %x : !stan.real, data y %y : !stan.vector) -> (!stan.real) stan_name f { ... }`."""
    signature, names, marks = (op.properties[name] for name in ("function_type", "argument_names", "data_only"))
    symbol, source = op.properties["sym_name"], op.properties["stan_name"]
    assert isinstance(signature, FunctionType) and isinstance(names, ArrayAttr) and isinstance(marks, DenseArrayBase)
    assert isinstance(symbol, StringAttr) and isinstance(source, StringAttr)
    body = op.regions[0]
    values = body.block.args if body.blocks else ()
    printer.print_string(" ")
    printer.print_symbol_name(symbol.data)
    printer.print_string("(")
    for position, (name, type_, mark) in enumerate(
        zip(names.data, signature.inputs.data, marks.get_values(), strict=True)
    ):
        assert isinstance(name, StringAttr)
        printer.print_string((", " if position else "") + ("data " if mark else ""))
        if name.data == "data":
            printer.print_string_literal(name.data)
        else:
            printer.print_identifier_or_string_literal(name.data)
        if values:
            printer.print_string(" ")
            printer.print_ssa_value(values[position])
        printer.print_string(": ")
        printer.print_attribute(type_)
    printer.print_string(")")
    if signature.outputs.data:
        printer.print_string(" -> (")
        printer.print_list(signature.outputs.data, printer.print_attribute)
        printer.print_string(")")
    if source.data != symbol.data:
        printer.print_string(" stan_name")
        print_word(printer, source.data)
    print_flags(printer, op, FUNCTION_MARKS)
    print_rest(printer, op)
    if body.blocks:
        print_body(printer, body)


FUNCTION_MARKS = ("library", "inlined", "model")


def parse_function(cls: type[OpT], parser: Parser) -> OpT:
    from xdsl.ir import Region

    symbol = parser.parse_symbol_name()
    names: list[StringAttr] = []
    marks: list[int] = []
    types: list[Attribute] = []
    arguments: list[Parser.Argument] = []

    def argument() -> None:
        marks.append(int(parser.parse_optional_keyword("data") is not None))
        names.append(parse_word(parser))
        value = parser.parse_optional_argument(expect_type=False)
        parser.parse_punctuation(":")
        types.append(parser.parse_type())
        if value is not None:
            arguments.append(value.resolve(types[-1]))

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    outputs = parse_result_types(parser)
    source = symbol if parser.parse_optional_keyword("stan_name") is None else parse_word(parser)
    properties: dict[str, Attribute] = {
        "sym_name": symbol,
        "stan_name": source,
        "function_type": FunctionType.from_lists(types, outputs),
        "argument_names": ArrayAttr(names),
        "data_only": DenseArrayBase.from_list(i8, marks),
    }
    properties |= parse_flags(parser, FUNCTION_MARKS)
    attributes = parse_rest(parser)
    body = parser.parse_optional_region(arguments)
    return cls.create(properties=properties, attributes=attributes, regions=[Region() if body is None else body])


def resolve_ints(parser: Parser, *operands: UnresolvedOperand) -> list[SSAValue]:
    """Operands that are ints."""
    return [parser.resolve_operand(operand, INT) for operand in operands]
