"""The tree of programs: precedence, every statement and declaration. Wrong ones: test_parser_errors.py."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_programs import PROGRAM, expression, parse, show, statement, statements

from ulam.frontend import syntax
from ulam.frontend.parse.program import parse_functions, parse_program
from ulam.frontend.source import Source
from ulam.frontend.stan_types import StanType

# ---------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a ^ b ^ c", "(a ^ (b ^ c))"),
        ("-a ^ b", "(-(a ^ b))"),
        ("a ^ -b * c", "((a ^ (-b)) * c)"),
        ("a ^ -b ^ c", "(a ^ (-(b ^ c)))"),
        ("-a * b", "((-a) * b)"),
        ("!a == b", "((!a) == b)"),
        ("-a'", "(-(a'))"),
        ("a' * b'", "((a') * (b'))"),
        ("a ^ b'", "(a ^ (b'))"),
        ("a * b %/% c", "(a * (b %/% c))"),  # integer division binds more tightly than the product
        ("a \\ b * c", "((a \\ b) * c)"),
        ("-a %/% b", "((-a) %/% b)"),
        ("a .* b ./ c", "((a .* b) ./ c)"),
        ("a || b && c", "(a || (b && c))"),
        ("a == b < c", "(a == (b < c))"),
        ("a < b < c", "((a < b) < c)"),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a ? b ? c : d : e", "(a ? (b ? c : d) : e)"),
        ("a || b ? c : d || e", "((a || b) ? c : (d || e))"),
        ("- - a", "(-(-a))"),
        ("f(x)[1].2", "f(x)[1].2"),
        ("x[1, 2:, :3, 4:5, :, ]", "x[1, 2:, :3, 4:5, :, :]"),
        ("x[]", "x[:]"),
        ("x[a ? b : c : d]", "x[(a ? b : c):d]"),
        ("normal_lpdf(y | mu, sigma)", "normal_lpdf(y | mu, sigma)"),
        ("f(y | )", "f(y | )"),
        ("target()", "target()"),
        ("{1, 2}", "{1, 2}"),
        ("[[1, 2], [3, 4]]'", "([[1, 2], [3, 4]]')"),
        ("[]", "[]"),
        ("(a, b).1", "(a, b,).1"),
        ("(a,)", "(a,)"),
        ("((a))", "a"),
        ("1_000 + .5 + 1_0.5e3 + 2i", "(((1000 + .5) + 10.5e3) + 2i)"),
        ("T[1]", "T[1]"),
        ("t.1.2", "t.1.2"),
    ],
)
def test_expression(text: str, tree: str) -> None:
    assert show(expression(text)) == tree


# The table of the reference manual, loosest first, written down once more and apart from the parser's.
LEVELS: list[tuple[tuple[str, ...], str]] = [
    (("||",), "left"),
    (("&&",), "left"),
    (("==", "!="), "left"),
    (("<", "<=", ">", ">="), "left"),
    (("+", "-"), "left"),
    (("*", "/", "%", ".*", "./"), "left"),
    (("%/%", "\\"), "left"),
    (("prefix",), "none"),
    (("^", ".^"), "right"),
    (("'",), "none"),
]
LEVEL = {operator: level for level, (operators, _) in enumerate(LEVELS) for operator in operators}
RIGHT = {operator for operators, side in LEVELS for operator in operators if side == "right"}
CONDITIONAL, PREFIX, POSTFIX, OPERAND = -1, LEVEL["prefix"], LEVEL["'"], len(LEVELS)
BINARY = sorted(set(LEVEL) - {"prefix", "'"})


@st.composite
def written_expressions(draw: st.DrawFn, depth: int = 4) -> tuple[str, str, int]:
    """An expression as text with the fewest parentheses, with all of them, and the level of its outermost operator."""
    kind = draw(st.sampled_from(("leaf", "binary", "binary", "prefix", "'", "?", "call", "index"))) if depth else "leaf"

    def operand(least: int) -> tuple[str, str]:
        text, full, level = draw(written_expressions(depth - 1))
        return (text if level >= least else f"({text})"), full

    if kind == "binary":
        operator = draw(st.sampled_from(BINARY))
        level = LEVEL[operator]
        left, full_left = operand(level + (operator in RIGHT))
        right, full_right = operand(level + (operator not in RIGHT))
        return f"{left} {operator} {right}", f"({full_left} {operator} {full_right})", level
    if kind == "prefix":
        operator = draw(st.sampled_from("-+!"))
        text, full = operand(PREFIX)
        return f"{operator}{text}", f"({operator}{full})", PREFIX
    if kind == "'":
        text, full = operand(POSTFIX)
        return f"{text}'", f"({full}')", POSTFIX
    if kind == "?":
        (a, full_a), (b, full_b), (c, full_c) = operand(0), operand(CONDITIONAL), operand(CONDITIONAL)
        return f"{a} ? {b} : {c}", f"({full_a} ? {full_b} : {full_c})", CONDITIONAL
    if kind == "call":
        (a, full_a), (b, full_b) = operand(CONDITIONAL), operand(CONDITIONAL)
        return f"f({a}, {b})", f"f({full_a}, {full_b})", OPERAND
    if kind == "index":
        (a, full_a), (b, full_b) = operand(OPERAND), operand(0)
        return f"{a}[{b}, :]", f"{full_a}[{full_b}, :]", OPERAND
    leaf = draw(st.sampled_from(("x", "y2", "3", "1.5", "2i")))
    return leaf, leaf, OPERAND


@settings(max_examples=300)
@given(written_expressions())
def test_fewest_parentheses_are_read_back(written: tuple[str, str, int]) -> None:
    text, full, _ = written
    assert show(expression(text)) == full


# ---------------------------------------------------------------- statements


def test_assignments() -> None:
    for operator in ("=", "+=", "-=", "*=", "/=", ".*=", "./="):
        s = statement(f"x[1].2 {operator} y;")
        assert isinstance(s, syntax.Assignment) and s.operator == operator and show(s.target) == "x[1].2"
    s = statement("(a, b[2], (c, d.1)) = e;")
    assert isinstance(s, syntax.TupleAssignment) and show(s.targets) == "(a, b[2], (c, d.1,),)"


def test_increments() -> None:
    assert isinstance(statement("target += x;"), syntax.TargetIncrement)
    s = parse("transformed parameters { jacobian += x; }").transformed_parameters
    assert s is not None and isinstance(s.statements[0], syntax.JacobianIncrement)


@pytest.mark.parametrize(
    ("truncation", "limits"),
    [("", None), (" T[1, 2]", ("1", "2")), (" T[1, ]", ("1", None)), (" T[, 2]", (None, "2")), (" T[,]", None)],
)
def test_tilde(truncation: str, limits: tuple[str | None, str | None] | None) -> None:
    s = statement(f"a + b[1] ~ normal(0, s){truncation};")
    assert isinstance(s, syntax.Tilde) and s.distribution == "normal" and show(s.variate) == "(a + b[1])"
    assert [show(a) for a in s.arguments] == ["0", "s"]
    if limits is None:
        assert s.truncation is None
    else:
        assert s.truncation is not None
        assert tuple(e and show(e) for e in (s.truncation.lower, s.truncation.upper)) == limits


def test_array_literal_as_variate_is_not_a_block() -> None:
    assert isinstance(statement("{a, b} ~ normal(0, 1);"), syntax.Tilde)
    assert isinstance(statement("{ a ~ normal(0, 1); }"), syntax.BlockStatement)
    assert isinstance(statement("{ }"), syntax.BlockStatement)
    assert isinstance(statement("{ { } }"), syntax.BlockStatement)


def test_loops() -> None:
    loop = statement("for (i in 1:N) for (x in xs) while (a < b) { break; continue; }")
    assert isinstance(loop, syntax.For) and loop.variable == "i" and show(loop.upper) == "N"
    each = loop.body
    assert isinstance(each, syntax.ForEach) and each.variable == "x" and show(each.container) == "xs"
    inner = each.body
    assert isinstance(inner, syntax.While) and isinstance(inner.body, syntax.BlockStatement)
    assert [type(s) for s in inner.body.statements] == [syntax.Break, syntax.Continue]


def test_else_belongs_to_the_nearest_if() -> None:
    outer = statement("if (a) if (b) x = 1; else x = 2; else if (c) x = 3;")
    assert isinstance(outer, syntax.If) and isinstance(outer.then, syntax.If) and outer.then.otherwise is not None
    assert isinstance(outer.otherwise, syntax.If) and outer.otherwise.otherwise is None


def test_prints_and_profile() -> None:
    for keyword in ("print", "reject", "fatal_error"):
        s = statement(f'{keyword}("x // is", x, " ");')
        assert isinstance(s, syntax.Print) and s.kind.value == keyword
        assert isinstance(s.arguments[0], syntax.StringLiteral) and s.arguments[0].text == "x // is"
    s = statement('profile("part") { x = 1; ; }')
    assert isinstance(s, syntax.Profile) and s.name == "part"
    assert [type(x) for x in s.statements] == [syntax.Assignment, syntax.Empty]


def test_calls_as_statements() -> None:
    s = statement("f(x, 1);")
    assert isinstance(s, syntax.CallStatement) and s.call.name == "f"


# ---------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("text", "type_", "base", "sizes"),
    [
        ("int x;", "int", "int", 0),
        ("complex x;", "complex", "complex", 0),
        ("vector[N] x;", "vector", "vector", 1),
        ("complex_matrix[M, N] x;", "complex_matrix", "complex_matrix", 2),
        ("array[2] real x;", "array[] real", "real", 0),
        ("array[A, B] simplex[K] x;", "array[,] vector", "simplex", 1),
        ("cholesky_factor_corr[K] x;", "matrix", "cholesky_factor_corr", 1),
        ("cholesky_factor_cov[K] x;", "matrix", "cholesky_factor_cov", 1),
        ("cholesky_factor_cov[K, L] x;", "matrix", "cholesky_factor_cov", 2),
        ("row_stochastic_matrix[K, L] x;", "matrix", "row_stochastic_matrix", 2),
        ("tuple(real, array[2] int) x;", "tuple(real, array[] int)", "tuple", 0),
        (
            "array[3] tuple(int<lower=0>, tuple(real, vector[2])) x;",
            "array[] tuple(int, tuple(real, vector))",
            "tuple",
            0,
        ),
    ],
)
def test_declared_types(text: str, type_: str, base: str, sizes: int) -> None:
    data = parse(f"data {{ {text} }}").data
    assert data is not None
    (declaration,) = data.statements
    assert isinstance(declaration, syntax.Declaration)
    written = declaration.sized_type
    assert (str(written.type), written.base, len(written.sizes)) == (type_, base, sizes)


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("real", "none", {}),
        ("real<lower=0>", "bounds", {"lower": "0"}),
        ("real<upper=-a^2, lower=b[1]>", "bounds", {"lower": "b[1]", "upper": "(-(a ^ 2))"}),
        ("real<multiplier=s, offset=m>", "offset_multiplier", {"offset": "m", "multiplier": "s"}),
        ("real<lower=(a > b)>", "bounds", {"lower": "(a > b)"}),
        ("int<lower=1, upper=f(a < b, c)>", "bounds", {"lower": "1", "upper": "f((a < b), c)"}),
        ("corr_matrix[2]", "corr_matrix", {}),
        ("sum_to_zero_vector[2]", "sum_to_zero_vector", {}),
    ],
)
def test_constraints(text: str, kind: str, values: dict[str, str]) -> None:
    block = parse(f"data {{ {text} x; }}").data
    assert block is not None and isinstance(block.statements[0], syntax.Declaration)
    constraint = block.statements[0].sized_type.constraint
    assert constraint.kind.value == kind
    present = {n: getattr(constraint, n) for n in ("lower", "upper", "offset", "multiplier")}
    assert {n: show(e) for n, e in present.items() if e is not None} == values


def test_several_names_share_their_type() -> None:
    text = "transformed data { array[2] real a, b = {1, 2}, c; }"
    block = parse(text).transformed_data
    assert block is not None
    first, second, third = block.statements
    assert isinstance(first, syntax.Declaration) and isinstance(second, syntax.Declaration)
    assert isinstance(third, syntax.Declaration)
    assert first.sized_type is second.sized_type is third.sized_type
    assert (first.name, second.name, third.name) == ("a", "b", "c")
    assert first.initial is None and second.initial is not None
    assert text[second.name_span.start : second.name_span.end] == "b"


def test_declarations_stand_anywhere() -> None:
    found = [type(s) for s in statements("x = 1; real y = 2; if (x) real z; { int i; }")]
    assert found == [syntax.Assignment, syntax.Declaration, syntax.If, syntax.BlockStatement]


# ---------------------------------------------------------------- functions and programs


def test_functions() -> None:
    text = """
    real f(data array[,] real x, tuple(int, real) t, vector v);
    void g() { return; }
    array[] vector h_lpdf(real T) { return {[T]'}; }
    """
    f, g, h = parse_functions(Source(text, "lib.stan"))
    assert f.body is None and [str(a.type) for a in f.arguments] == ["array[,] real", "tuple(int, real)", "vector"]
    assert [a.data_only for a in f.arguments] == [True, False, False]
    assert str(g.result) == "void" and g.body is not None and not g.arguments
    assert str(h.result) == "array[] vector" and h.arguments[0].name == "T"
    assert [d.name for d in parse(f"functions {{ {text} }}").functions] == ["f", "g", "h_lpdf"]


def test_blocks() -> None:
    program = parse("data { } transformed data { int N = 1; } model { } generated quantities { }")
    assert program.data is not None and program.data.statements == []
    assert program.transformed_data is not None and program.parameters is None
    assert program.model is not None and program.generated_quantities is not None
    assert parse(" // nothing\n").model is None


def _nodes(value: object) -> list[syntax.SyntaxNode]:
    if isinstance(value, list):
        return [n for v in value for n in _nodes(v)]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, syntax.SyntaxNode):
        return []
    assert is_dataclass(value)
    return [value, *(n for f in fields(value) for n in _nodes(getattr(value, f.name)))]


def test_every_node_has_its_text() -> None:
    source = Source(PROGRAM, "test.stan")
    nodes = _nodes(parse_program(source))
    assert len(nodes) > 60
    for node in nodes:
        text = PROGRAM[node.span.start : node.span.end]
        if isinstance(node, syntax.Program):
            continue
        assert text == text.strip(), (node, text)
        if isinstance(node, syntax.Variable):
            assert text == node.name
        elif isinstance(node, syntax.Binary):
            assert text.startswith(PROGRAM[node.left.span.start : node.left.span.end]) and node.operator in text
        elif isinstance(node, syntax.Statement) and not isinstance(
            node, (syntax.BlockStatement, syntax.If, syntax.For, syntax.Declaration)
        ):
            assert text.endswith(";")
    assert not any(isinstance(getattr(n, "type", None), Enum) for n in nodes)
    assert all(isinstance(n.type, StanType) for n in nodes if isinstance(n, syntax.SizedType))
