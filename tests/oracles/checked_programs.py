"""Programs and expressions through the type checker: the typed tree, or what it reports."""

from __future__ import annotations

import pytest

from ulam.frontend import syntax
from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import Diagnostic, DiagnosticError
from ulam.frontend.functions.support import NOT_SUPPORTED
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source


def check(text: str) -> syntax.Program:
    """The typed tree. What is only not supported yet is typed all the same."""
    source = Source(text, "test.stan")
    program = parse_program(source)
    try:
        check_program(program, source)
    except DiagnosticError as error:
        if mistakes(error):
            raise
    return program


def mistakes(error: DiagnosticError) -> list[Diagnostic]:
    return [d for d in error.diagnostics if d.severity == "error" and d.code != NOT_SUPPORTED]


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(DiagnosticError) as caught:
        check(text)
    return mistakes(caught.value)


def warnings(text: str) -> list[str]:
    source = Source(text, "test.stan")
    return [d.code for d in check_program(parse_program(source), source)]


DATA = """
data {
  int N; int K;
  array[N] int n; array[N] real xs; array[N, K] int table;
  real x; vector[N] v; row_vector[N] r; matrix[N, K] m; array[K] vector[N] vs; array[K] matrix[N, K] ms;
}
parameters { real p; vector[N] q; matrix[N, K] pm; }
"""


def expression(text: str) -> syntax.Expression:
    """The expression, checked in a model block after `DATA`."""
    program = check(DATA + f"model {{ print({text}); }}")
    assert program.model is not None
    statement = program.model.statements[0]
    assert isinstance(statement, syntax.Print)
    return statement.arguments[0]
