"""Directives of assembly formats that our dialects need besides xDSL's."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer


@irdl_custom_directive
class Word(CustomDirective):
    """A string that is written without quotes where it is a name: `exp`."""

    attribute: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.attribute.set(state, StringAttr(parser.parse_identifier_or_str_literal()))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        attribute = self.attribute.get(op)
        assert isinstance(attribute, StringAttr)
        printer.print_identifier_or_string_literal(attribute.data)


DIRECTIVES: dict[str, type[CustomDirective]] = {"Word": Word}
"""Name in a format → directive."""
