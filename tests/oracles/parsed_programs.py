"""Programs and parts of them through the parser: the tree, its text with all parentheses, or what is reported."""

from __future__ import annotations

import pytest

from ulam.frontend import syntax
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source

PROGRAM = """
functions { real f(real x) { return x * 2; } }
data { int<lower=0> N; array[N] real y; }
parameters { real mu; real<lower=0> sigma; }
model {
  for (n in 1:N) { if (y[n] > 0) target += f(y[n]); else y[n] ~ normal(mu, sigma) T[0, ]; }
}
generated quantities { tuple(real, int) t = (1.5, {2, 3}[1]); print("t", t.1); }
"""


def parse(text: str) -> syntax.Program:
    return parse_program(Source(text, "test.stan"))


def statements(text: str) -> list[syntax.Statement]:
    model = parse(f"model {{ {text} }}").model
    assert model is not None
    return model.statements


def statement(text: str) -> syntax.Statement:
    (result,) = statements(text)
    return result


def expression(text: str) -> syntax.Expression:
    result = statement(f"x = {text};")
    assert isinstance(result, syntax.Assignment)
    return result.value


def errors(text: str) -> list[tuple[int, int, str]]:
    source = Source(text, "test.stan")
    with pytest.raises(DiagnosticError) as caught:
        parse_program(source)
    return [(*source.position(d.span.start), d.code) for d in caught.value.diagnostics]


def error_text(text: str) -> str:
    with pytest.raises(DiagnosticError) as caught:
        parse_program(Source(text, "test.stan"))
    return str(caught.value)


def show(e: syntax.Expression) -> str:
    """An expression with all its parentheses, and none of those written."""
    match e:
        case syntax.Parenthesized():
            return show(e.inner)
        case syntax.Variable():
            return e.name
        case syntax.IntLiteral() | syntax.RealLiteral():
            return e.text
        case syntax.ImaginaryLiteral():
            return e.text + "i"
        case syntax.Unary(operator="'"):
            return f"({show(e.operand)}')"
        case syntax.Unary():
            return f"({e.operator}{show(e.operand)})"
        case syntax.Binary():
            return f"({show(e.left)} {e.operator} {show(e.right)})"
        case syntax.Conditional():
            return f"({show(e.condition)} ? {show(e.then)} : {show(e.otherwise)})"
        case syntax.Call():
            return f"{e.name}({_arguments(e)})"
        case syntax.Indexed():
            return f"{show(e.base)}[{', '.join(map(_show_index, e.indices))}]"
        case syntax.TupleProjection():
            return f"{show(e.base)}.{e.field}"
        case syntax.ArrayLiteral():
            return "{" + ", ".join(map(show, e.elements)) + "}"
        case syntax.RowVectorLiteral():
            return "[" + ", ".join(map(show, e.elements)) + "]"
        case syntax.TupleLiteral():
            return "(" + ", ".join(map(show, e.elements)) + ",)"
    raise AssertionError(type(e))


def _arguments(call: syntax.Call) -> str:
    shown = list(map(show, call.arguments))
    return f"{shown[0]} | {', '.join(shown[1:])}" if call.has_bar else ", ".join(shown)


def _show_index(index: syntax.Index) -> str:
    lower = "" if index.lower is None else show(index.lower)
    upper = "" if index.upper is None else show(index.upper)
    return lower if index.kind is syntax.IndexKind.SINGLE else f"{lower}:{upper}"
