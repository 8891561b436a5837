"""Places: of a node in its function (`§b:%i`), and of an op in the source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

from ulam.tracing.instrument.graph import ADDING, Graph, Item, Operand, Place
from ulam.tracing.tape.recorder import DamagedTrace
from ulam.tracing.tape.values import value_text


@dataclass(frozen=True)
class Location:
    """Value number `number` of a block, or its edge number `number`."""

    block: int
    number: int
    is_edge: bool = False

    def __str__(self) -> str:
        return f"§{self.block}:{'&' if self.is_edge else '%'}{self.number}"


@dataclass(frozen=True)
class Span:
    """A piece of one line of the source; `column` and `end_column` count from 1, the latter behind the last one."""

    file: str
    line: int
    column: int
    end_column: int


class FunctionText:
    """A traced function: its table, the ops that it was made of (those of a loaded trace are gone), and its source."""

    def __init__(self, graph: Graph, ops: Mapping[int, Any], source: SourceText) -> None:
        self.graph = graph
        self._ops = ops
        self._source = source

    def __getitem__(self, location: Location) -> Any:
        """The op at a location: an xDSL op; the row of the table where there is none. Raises KeyError."""
        block = self._block(location)
        if location.is_edge:
            found = [edge for edge in block.edges if edge.number == location.number]
            if not found:
                raise KeyError(str(location))
            return found[0]
        if location.number in self._ops:
            return self._ops[location.number]
        for row in (*block.items, *block.arguments, *(self.graph.parameters if location.block == 1 else ())):
            if row.index == location.number:
                return row
        raise KeyError(str(location))

    def _block(self, location: Location) -> Any:
        if not 1 <= location.block <= len(self.graph.blocks):
            raise KeyError(str(location))
        return self.graph.blocks[location.block - 1]

    def item(self, location: Location) -> Item | None:
        """The row of an op."""
        return next((i for i in self._block(location).items if i.index == location.number), None)

    def span(self, location: Location) -> Span | None:
        """Where the op stands in the source: of an operator, the operator itself; of a call, the name.

        Of what adds to the target, the statement; of a parameter's transform, the parameter; of a jump or return, the
        first word of the statement that it comes from.
        """
        if location.is_edge:
            place = next((e.place for e in self._block(location).edges if e.number == location.number), None)
            return None if place is None else self._source.first_word(place)
        item = self.item(location)
        if item is None or item.place is None:
            return None
        if item.text:
            return self._source.word(item.place, item.text)
        if item.kind in ADDING:
            return self._source.statement(item.place)
        same = [
            other
            for block in self.graph.blocks
            for other in block.items
            if other.place == item.place and other.name == item.name
        ]
        return self._source.span(item.place, item.name, same.index(item))

    def __str__(self) -> str:
        """Block by block."""
        lines: list[str] = []
        for block in self.graph.blocks:
            arguments = [*(self.graph.parameters if block.number == 1 else ()), *block.arguments]
            heads = ", ".join(f"%{a.index}{' = ' + a.name if a.name else ''}" for a in arguments)
            lines.append(f"§{block.number}: ({heads})")
            for item in block.items:
                lines.append(f"  %{item.index} = {item.name}({', '.join(_operand(o) for o in item.operands)})")
            for edge in block.edges:
                if not edge.target:
                    lines.append(f"  &{edge.number} return{' ' + _operand(edge.value) if edge.value else ''}")
                    continue
                passed = f" ({', '.join(_operand(a) for a in edge.arguments)})" if edge.arguments else ""
                since = ""
                if edge.condition is not None:
                    since = f" {'if' if edge.holds else 'unless'} {_operand(edge.condition)}"
                lines.append(f"  &{edge.number} goto §{edge.target}{passed}{since}")
        return "\n".join(lines)


def _operand(operand: Operand) -> str:
    if operand.index:
        return f"%{operand.index}"
    return f"⟨{'unassigned' if operand.constant is None else value_text(operand.constant, operand.type)}⟩"


class SourceText:
    """The source of a traced program, for the places of operators."""

    def __init__(self, text: str, filename: str, include_paths: tuple[str, ...] = ()) -> None:
        self.text, self.filename, self.include_paths = text, filename, include_paths

    @cached_property
    def _parsed(self) -> tuple[Any, list[Any]]:
        """The source as the parser has it, and all nodes of its tree."""
        from ulam.frontend import syntax
        from ulam.frontend.diagnostics import DiagnosticError
        from ulam.frontend.parse.program import parse_program
        from ulam.frontend.source import Source
        from ulam.runtime.arguments import require_text

        require_text(self.filename, "what shows a trace")
        source = Source(self.text, self.filename, include_paths=self.include_paths)
        found: list[Any] = []
        try:
            work: list[Any] = [parse_program(source)]
        except DiagnosticError as error:
            raise DamagedTrace(f"the trace is damaged: its source is no program: {error}") from error
        while work:
            node = work.pop()
            if isinstance(node, list | tuple):
                work.extend(node)
            elif is_dataclass(node) and type(node).__module__ == syntax.__name__:
                found.append(node)
                work.extend(getattr(node, part.name) for part in fields(node))
        return source, found

    @cached_property
    def _operators(self) -> dict[tuple[int, int, str], list[tuple[int, int]]]:
        """Line, column and operator → where the operators of expressions that begin there stand, inner ones first."""
        from ulam.frontend import syntax

        source, nodes = self._parsed
        found: dict[tuple[int, int, str], list[tuple[int, int, int]]] = {}
        for node in nodes:
            if isinstance(node, syntax.Binary):
                begin = source.location(node.span.start)
                between = source.text[node.left.span.end : node.right.span.start]
                offset = between.find(node.operator)
                if offset >= 0:
                    place = source.location(node.left.span.end + offset)
                    key = (begin.line, begin.column, node.operator)
                    found.setdefault(key, []).append((node.span.end, place.line, place.column))
        return {key: [(line, column) for _, line, column in sorted(places)] for key, places in found.items()}

    @cached_property
    def _statements(self) -> dict[tuple[str, int, int], Span]:
        """File, line and column → the first line of the statement there, or with the truncation there, that adds to
        the target, without the semicolon.
        """
        from ulam.frontend import syntax

        source, nodes = self._parsed
        found: dict[tuple[str, int, int], Span] = {}
        for node in nodes:
            if isinstance(node, syntax.Tilde | syntax.TargetIncrement | syntax.JacobianIncrement):
                text = source.text[node.span.start : node.span.end].split("\n")[0].split("//")[0]
                truncation = getattr(node, "truncation", None)
                begins = [source.location(part.span.start) for part in (node, truncation) if part is not None]
                begin = Place(begins[0].file, begins[0].line, begins[0].column)
                span = self.word(begin, text.rstrip().removesuffix(";").rstrip())
                found.update({(at.file, at.line, at.column): span for at in begins})
        return found

    def statement(self, place: Place) -> Span:
        """Of the statement that begins at `place`, or whose truncation does."""
        return self._statements.get((place.file, place.line, place.column)) or self.word(place, " ")

    @staticmethod
    def word(place: Place, text: str) -> Span:
        """Of a text of one line that begins at `place`."""
        return Span(place.file, place.line, place.column, place.column + len(text))

    def first_word(self, place: Place) -> Span:
        """The word, or the character, that stands at a place."""
        lines = self.text.split("\n")
        line = lines[place.line - 1] if place.file == self.filename and place.line <= len(lines) else ""
        found = re.match(r"\w+", line[place.column - 1 :])
        return Span(place.file, place.line, place.column, place.column + (len(found[0]) if found else 1))

    def span(self, place: Place, name: str, number: int) -> Span:
        """Of the op called `name` of an expression that begins at `place`; `number`: which of several."""
        known = self._operators.get((place.line, place.column, name), []) if place.file == self.filename else []
        if number < len(known):
            line, column = known[number]
            return Span(place.file, line, column, column + len(name))
        lines = self.text.split("\n")
        line = lines[place.line - 1] if place.file == self.filename and place.line <= len(lines) else ""
        rest = line[place.column - 1 :]
        length = len(name) if rest.startswith(name) else 1
        return Span(place.file, place.line, place.column, place.column + length)
