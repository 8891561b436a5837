"""What is wrong with a program, told the way that Stan's clients look for: `Semantic error in 'f.stan', line ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulam.frontend.diagnostics import Diagnostic, DiagnosticError, Severity, render
from ulam.frontend.source import Source
from ulam.runtime.interpreter_settings import compiling

if TYPE_CHECKING:
    from ulam.frontend import syntax

UNDEFINED = "undefined-function"
"""The code of messages about functions that are declared only."""

SYNTAX, SEMANTIC, WARNING = "Syntax error", "Semantic error", "Warning"


def message(diagnostic: Diagnostic, kind: str) -> str:
    """A message with the place in words; the lines of the program that follow are those of `ulam check`."""
    place = diagnostic.source.location(diagnostic.span.start)
    _, *shown = render(diagnostic).split("\n")
    head = f"{kind} in '{place.file}', line {place.line}, column {place.column}: {diagnostic.message}"
    return "\n".join([head, *shown])


def checked(source: Source, *ignored: str) -> tuple[syntax.Program | None, list[str]]:
    """The typed tree, None if there are errors, and messages. Errors with the codes `ignored` are none."""
    from ulam.frontend.check.program import check_program
    from ulam.frontend.parse.program import parse_program

    kind, tree = SYNTAX, None
    try:
        with compiling():
            tree = parse_program(source)
            kind = SEMANTIC
            found = check_program(tree, source) or []
    except DiagnosticError as error:
        found = error.diagnostics
    found = [each for each in found if each.code not in ignored]
    errors = any(each.severity is Severity.ERROR for each in found)
    told = [message(each, kind if each.severity is Severity.ERROR else WARNING) for each in found]
    return None if errors else tree, told
