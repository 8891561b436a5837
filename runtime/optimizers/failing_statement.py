"""Which statement of a program makes its log density infinite or NaN.

A second program is compiled, in which a check of `target()` follows each statement of the model block that adds to it.
It is only made when initial values were refused and no statement reported an error itself.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ulam.runtime.errors import ProgramError, UlamError
from ulam.runtime.optimizers.line_search import Vector

if TYPE_CHECKING:
    from ulam.frontend.ast import Node, Program
    from ulam.frontend.source import Source
    from ulam.runtime.model import StanModel

MARK = "statement "
CHECK = 'if (is_nan(target()) || is_inf(target())) reject("{mark}{number} ", target());'
SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Place:
    """A statement: its text, shortened, and where it begins."""

    text: str
    file: str
    line: int
    column: int


class FailingStatements:
    """Finds, for points where the log density is not finite, the statement after which it is not."""

    def __init__(self, model: StanModel) -> None:
        restore, recipe = model.__reduce__()  # what a copy of the model is made of
        self._places: list[Place] = []
        self._model: StanModel | None = None
        try:
            text = self._checked_program(recipe[0], recipe[1], recipe[5].include_paths)
            if self._places:
                # The places shown are those of the program as written; the number in the message leads there.
                self._model = restore(text, recipe[1], recipe[2], recipe[3], True, *recipe[5:])
        except UlamError:
            pass  # without a second program there is no more to tell

    def find(self, theta: Vector) -> tuple[Place, float] | None:
        """The statement and the log density after it (with constants, without Jacobian), if they are known."""
        if self._model is None:
            return None
        try:
            with redirect_stdout(io.StringIO()):  # what the program prints was printed before
                self._model.log_density(theta, propto=False, jacobian=False)
        except ProgramError as error:
            found = re.match(rf"{MARK}(\d+) (\S+)", error.text)
            if found is not None:
                return self._places[int(found[1])], _number(found[2])
        return None

    def _checked_program(self, text: str, filename: str, include_paths: tuple[str, ...]) -> str:
        """The program with its includes in place, and a check after each statement of the model block."""
        from ulam.frontend.parser import parse_program
        from ulam.frontend.source import INCLUDE_DIRECTIVE, Source

        source = Source(text, filename, include_paths=include_paths)
        parts: list[str] = []
        at = 0
        for node in sorted(_increments(parse_program(source)), key=lambda node: node.span.start):
            check = CHECK.format(mark=MARK, number=len(self._places))
            self._places.append(_place(source, node))
            parts += [source.text[at : node.span.start], "{", _text(source, node), " ", check, "}"]
            at = node.span.end
        parts.append(source.text[at:])
        return re.sub(INCLUDE_DIRECTIVE, "", "".join(parts))


def _increments(program: Program) -> Iterator[Node]:
    """Statements of the model block that add to the target, or call a function that may."""
    from ulam.frontend import ast

    def walk(node: ast.Statement | None) -> Iterator[Node]:
        match node:
            case ast.Tilde() | ast.TargetIncrement() | ast.CallStatement():
                yield node
            case ast.Block() | ast.Profile():
                for inner in node.statements:
                    yield from walk(inner)
            case ast.If():
                yield from walk(node.then)
                yield from walk(node.otherwise)
            case ast.While() | ast.For() | ast.ForEach():
                yield from walk(node.body)
            case _:
                pass

    return walk(program.model)


def _text(source: Source, node: Node) -> str:
    return source.text[node.span.start : node.span.end]


def _place(source: Source, node: Node) -> Place:
    text = " ".join(_text(source, node).split())
    if len(text) > SHOWN_CHARACTERS:
        text = f"{text[: SHOWN_CHARACTERS - 3]}..."
    location = source.location(node.span.start)
    return Place(text, location.file, location.line, location.column)


def _number(text: str) -> float:
    """A number as a program prints it."""
    return {"inf": math.inf, "-inf": -math.inf}.get(text, math.nan)
