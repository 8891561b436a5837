"""xDSL's parser, which gives ops that say no place their place in the text: messages about them have a line."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError

_UNKNOWN = "is not registered"


class LocatingParser(Parser):
    """See above. `first_line` is that of the text in its file."""

    def __init__(self, context: Context, text: str, name: str, first_line: int = 1) -> None:
        super().__init__(context, text, name)
        self._name = StringAttr(name)
        self._text = text
        self._line = first_line
        self._start = 0  # of the line
        self._placed: list[ParseError] = []

    def parse_operation(self) -> Operation:
        span = self._current_token.span
        location = self._location(span.start)
        try:
            op = super().parse_operation()
        except ParseError as error:
            if error.msg.endswith(_UNKNOWN) and error not in self._placed:
                error = ParseError(span, error.msg)  # xDSL tells what follows
            self._placed.append(error)
            raise error from None
        except DiagnosticException:
            raise
        except Exception as error:  # formats that xDSL reads trust that counts and classes fit
            raise ParseError(span, f"no such operation: {error}") from error
        if isinstance(op.location, UnknownLoc):
            op.location = location
        return op

    def _location(self, position: int) -> FileLineColLoc:
        """The place of a position; those of ops come in order."""
        self._line += self._text.count("\n", self._start, position)
        self._start = max(self._start, position)
        column = position - (self._text.rfind("\n", 0, position) + 1) + 1
        return FileLineColLoc(self._name, IntAttr(self._line), IntAttr(column))
