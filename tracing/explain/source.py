"""The source of a program as an explanation quotes it: statements with carets, loops around them, names of values.

Ops of a trace know where their expression or statement begins. Here these places lead back to the syntax tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

from ulam.frontend import syntax
from ulam.frontend.diagnostics import excerpt
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.runtime.arguments import require_text
from ulam.tracing.explain.parts import QuotedStatement
from ulam.tracing.instrument.graph import Place
from ulam.tracing.program_text import SourceText

SHOWN_CHARACTERS = 60

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

_Spot = tuple[str, int, int]


@dataclass
class Written:
    """A statement of the program: its node, the variables of the loops around it, innermost last."""

    node: syntax.Statement
    loops: tuple[str, ...]


class ProgramText:
    """A parsed program, looked up by place."""

    def __init__(self, text: SourceText) -> None:
        require_text(text.filename, "an explanation")
        self.source = Source(text.text, text.filename, include_paths=text.include_paths)
        self._program = parse_program(self.source)
        self._statements: dict[_Spot, list[Written]] = {}
        self._truncations: dict[_Spot, Written] = {}
        self._expressions: dict[_Spot, list[syntax.Expression]] = {}
        self._assigned: dict[int, syntax.Expression | str] = {}
        self._walk(self._program, ())

    # ------------------------------------------------------------ reading the tree

    def _walk(self, node: Any, loops: tuple[str, ...]) -> None:
        if isinstance(node, list | tuple):
            for part in node:
                self._walk(part, loops)
            return
        if not (is_dataclass(node) and type(node).__module__ == syntax.__name__):
            return
        if isinstance(node, syntax.Statement):
            self._note_statement(Written(node, loops))
        elif isinstance(node, syntax.Expression):
            self._expressions.setdefault(self._spot(node.span.start), []).append(node)
        inner = (*loops, node.variable) if isinstance(node, syntax.For | syntax.ForEach) else loops
        for part in fields(node):
            self._walk(getattr(node, part.name), inner if part.name == "body" else loops)

    def _note_statement(self, written: Written) -> None:
        node = written.node
        if isinstance(node, syntax.BlockStatement | syntax.Profile):
            return
        spot = self._spot(node.span.start)
        self._statements.setdefault(spot, []).append(written)
        if isinstance(node, syntax.Tilde) and node.truncation is not None:
            self._truncations[self._spot(node.truncation.span.start)] = written
        if isinstance(node, syntax.Declaration):
            self._statements.setdefault(self._spot(node.name_span.start), []).append(written)
            self._assigned_by(node.initial, node.name)
        if isinstance(node, syntax.Assignment) and node.operator == "=":
            self._assigned_by(node.value, node.target)

    def _assigned_by(self, value: syntax.Expression | None, target: syntax.Expression | str) -> None:
        while isinstance(value, syntax.Parenthesized):
            value = value.inner
        if value is not None:
            self._assigned[id(value)] = target

    def _spot(self, offset: int) -> _Spot:
        location = self.source.location(offset)
        return (location.file, location.line, location.column)

    # ------------------------------------------------------------ looking up

    def statement(self, place: Place | None) -> Written | None:
        """The innermost statement that begins at a place; of a truncation, its `~` statement."""
        if place is None:
            return None
        spot = (place.file, place.line, place.column)
        found = self._statements.get(spot)
        return found[-1] if found else self._truncations.get(spot)

    def place_of_tilde(self, place: Place | None) -> Place | None:
        """Where the `~` statement of a truncation begins."""
        found = self.statement(place)
        if found is None:
            return place
        file, line, column = self._spot(found.node.span.start)
        return Place(file, line, column)

    def is_truncation(self, place: Place | None) -> bool:
        """Whether the place is that of `T[...]`."""
        if place is None:
            return False
        spot = (place.file, place.line, place.column)
        return spot in self._truncations and spot not in self._statements

    def statement_around(self, file: str, line: int, column: int) -> Written | None:
        """The innermost statement that a place is in."""
        best: Written | None = None
        for written in self._written:
            begin = self._spot(written.node.span.start)
            end = self._spot(max(written.node.span.end - 1, written.node.span.start))
            if begin[0] == file and begin[1:] <= (line, column) <= end[1:]:
                if best is None or written.node.span.start >= best.node.span.start:
                    best = written
        return best

    @cached_property
    def _written(self) -> list[Written]:
        return [written for group in self._statements.values() for written in group]

    def expression(self, place: Place | None, name: str, number: int) -> syntax.Expression | None:
        """The expression at a place that an op called `name` computes; `number`: which of several, inner ones first."""
        if place is None:
            return None
        found = [e for e in self._expressions.get((place.file, place.line, place.column), []) if _op_name(e) == name]
        found.sort(key=lambda e: e.span.end)
        return found[min(number, len(found) - 1)] if found else None

    def assigned_target(self, expression: syntax.Expression | None) -> syntax.Expression | str | None:
        """What gets the value of an expression: a declared variable, or the left side of an assignment."""
        return None if expression is None else self._assigned.get(id(expression))

    # ------------------------------------------------------------ quoting

    def text(self, span: syntax.Span) -> str:
        """As written, in one line, without comments."""
        return " ".join(_COMMENT.sub(" ", self.source.text[span.start : span.end]).split())

    def quoted(self, written: Written) -> QuotedStatement:
        """A statement with its excerpt."""
        return self.quoted_span(written.node.span)

    def quoted_span(self, span: syntax.Span) -> QuotedStatement:
        """A piece of the program with its excerpt."""
        location = self.source.location(span.start)
        return QuotedStatement(
            shortened(self.text(span)), location.file, location.line, location.column,
            tuple(excerpt(self.source, span)),
        )  # fmt: skip


def shortened(text: str) -> str:
    """A statement as tables and messages show it."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."


_OP_NAMES: dict[type[syntax.Expression], str] = {
    syntax.Indexed: "index", syntax.ArrayLiteral: "array", syntax.RowVectorLiteral: "row_vector",
    syntax.TupleLiteral: "tuple", syntax.TupleProjection: "field",
}  # fmt: skip


def _op_name(expression: syntax.Expression) -> str:
    """The name that the op of an expression has in a trace."""
    match expression:
        case syntax.Call():
            return expression.name
        case syntax.Binary() | syntax.Unary():
            return expression.operator
        case _:
            return _OP_NAMES.get(type(expression), "")
