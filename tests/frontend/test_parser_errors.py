"""What the parser reports about wrong programs, and programs that are large or deep."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_programs import PROGRAM, error_text, errors, expression, parse, show
from work import lines_executed

from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.core import MAX_ERRORS, MAX_NESTING


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("data { real x[3]; }", "old-array-syntax", "`array[3] real x;`"),
        ("data { vector<lower=0>[K] x[M, N]; }", "old-array-syntax", "`array[M, N] vector<lower=0>[K] x;`"),
        ("data { array[M] vector[K] x[N]; }", "old-array-syntax", "`array[N, M] vector[K] x;`"),
        ("data { real[3] x; }", "old-array-syntax", "array[N] real x"),
        ("functions { real f(real[,] x) { } }", "old-array-syntax", "`array[,] real`"),
        ("functions { real[] f() { } }", "old-array-syntax", "`array[] real`"),
        ("functions { real f(real x[]) { } }", "old-array-syntax", "`array[] real x`"),
        ("functions { real f(vector[N] x) { } }", "function-type", "has no sizes"),
        ("functions { real f(simplex x) { } }", "function-type", "write `vector`"),
        ("functions { real f(real<lower=0> x) { } }", "function-type", "no constraint"),
        ("functions { f(real x) { } }", "syntax", "has no result type"),
        ("functions { real f(real x) x = 1; }", "syntax", "the body of the function 'f'"),
        ("model { x <- 1; }", "old-assignment", "write `=`"),
        ("model { x[1] <- y + 2; }", "old-assignment", "write `=`"),
        ("model { real x <- 1; }", "old-assignment", "write `=`"),
        ("model { increment_log_prob(a + b); }", "old-increment-log-prob", "`target += a + b;`"),
        ("model { # c\n }", "old-comment", "//"),
        ("model { x = 1 }", "missing-semicolon", "';'"),
        ("model { x = 1\n y = 2; }", "missing-semicolon", "';'"),
        ("model { if (a = b) { } }", "syntax", "`==`"),
        ("model { x = a ** b; }", "syntax", "`^`"),
        ("model { x = 2y; }", "syntax", "2 * y"),
        ("model { x = a and b; }", "syntax", "`&&`"),
        ("model { x++; }", "syntax", "`x += 1;`"),
        ("model { x + 1; }", "syntax", "not a statement"),
        ("model { (x) = 1; }", "not-assignable", "cannot be assigned to"),
        ("model { (a, 1) = b; }", "not-assignable", "cannot be assigned to"),
        ("model { (a, b) += c; }", "syntax", "tuple"),
        ("model { x = a'[1]; }", "syntax", "parentheses"),
        ("model { x = {}; }", "syntax", "without elements"),
        ("model { x = f(a,); }", "syntax", "found ')'"),
        ('model { x = "s"; }', "syntax", "a string is allowed only in"),
        ("model { print(); }", "syntax", "expected an expression"),
        ("model { real<lower=0> x; }", "local-constraint", "cannot be constrained"),
        ("model { simplex[3] x; }", "local-constraint", "write `vector`"),
        ("model { int real; }", "reserved-word", "'real'"),
        ("model { x = offset; }", "reserved-word", "'offset'"),
        ("model { target = 1; }", "syntax", "`target += ...;`"),
        ("model { x = target; }", "reserved-word", "`target()`"),
        ("model { for (int i in 1:2) { } }", "syntax", "for (i in ...)"),
        ("model { else x = 1; }", "syntax", "no 'if'"),
        ("model { data real x; }", "syntax", "arguments of functions only"),
        ("model { flaot x; }", "unknown-type", "'flaot'"),
        ("model { real x, int y; }", "syntax", "one type"),
        ("model { vector x; }", "syntax", "`vector[N] x;`"),
        ("model { matrix[3] x; }", "syntax", "two sizes"),
        ("model { array[2] array[3] real x; }", "syntax", "all sizes at once"),
        ("data { real<lower=0, offset=1> x; }", "syntax", "'upper' after 'lower'"),
        ("data { int<offset=1> x; }", "syntax", "'lower' or 'upper'"),
        ("data { real<lower=a > b> x; }", "syntax", "parentheses"),
        ("data { real<lower=a ? 1 : 2> x; }", "syntax", "parentheses"),
        ("data { simplex<lower=0>[2] x; }", "syntax", "constrained by itself"),
        ("data { real x = 1; }", "syntax", "transformed data"),
        ("parameters { x = 1; }", "syntax", "expected a declaration"),
        ("model { } data { }", "block-order", "before the model block"),
        ("model { } model { }", "block-order", "one model block only"),
        ("modle { }", "syntax", "expected a block"),
        ("transformed\ndata { }", "syntax", "on one line"),
        ("model { } }", "syntax", "brace too many"),
        ("model { {", "unclosed", "the end of the file"),
        ("model { if (a) { x = 1; \n generated quantities { }", "unclosed", "1:16: the block begins here"),
        ("model { /* x }", "unclosed-comment", "`*/`"),
        ("model { x = \u201ca\u201d; }", "invalid-character", "U+201C"),
    ],
)
def test_message(text: str, code: str, said: str) -> None:
    message = error_text(text)
    assert f"[{code}]" in message.splitlines()[0], message
    assert said in message


def test_messages_do_not_repeat() -> None:
    for text in ("model { {{{{", "model { /* x", 'model { print("a); }', "model { x = \u201ca\u201d; y = 2 }"):
        assert error_text(text).count("error:") <= 2, text


def test_several_errors_in_one_run() -> None:
    text = """data {
  int N
  real y[N];
}
model {
  mu ~ normal(0, 1)
  x <- 2;
  if (x = 1) {
    y = 1;
  } else {
    z = ;
  }
  good = 1;
  vector[3 v;
  w = 1;
}
generated quantities {
  real a = ;
}
"""
    assert errors(text) == [
        (2, 8, "missing-semicolon"),
        (3, 9, "old-array-syntax"),
        (6, 20, "missing-semicolon"),
        (7, 5, "old-assignment"),
        (8, 9, "syntax"),
        (14, 12, "syntax"),
        (18, 12, "syntax"),
    ]


def test_number_of_errors_is_limited() -> None:
    assert len(errors("model {\n" + "x = ;\n" * 1000 + "}")) == MAX_ERRORS
    assert len(errors("model {\n" + "# old\n" * 1000 + "}")) == MAX_ERRORS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = " + "(" * 20_000, "1" + ")" * 20_000 + ";"),
        ("x = " + "[" * 20_000, "]" * 20_000 + ";"),
        ("x = " + "f(" * 20_000, ";"),
        ("x = " + "x[" * 20_000, ";"),
        ("x = " + "a ? b : " * 20_000, "b;"),
        ("{" * 20_000, "}" * 20_000),
        ("if (a) " * 20_000, ";"),
        ("for (i in 1:2) {" * 20_000, ""),
        ("if (a) ; else " * 20_000, ";"),
    ],
)
def test_deep_nesting_is_reported(before: str, after: str) -> None:
    assert "[nesting]" in error_text(f"model {{ {before}{after} }}")


@pytest.mark.parametrize("row", ["a + {}b", "a ^ {}b", "a .* {}b", "a && {}b", "- {}b", "! {}b"])
def test_operators_in_a_row_have_no_limit(row: str) -> None:
    repeated, last = row.split("{}")

    def work(count: int) -> int:
        text = f"model {{ x = {repeated * count}{last}; }}"
        return lines_executed(lambda: parse(text))

    work(1)
    assert work(4000) < 2.05 * work(2000)
    assert work(100) > 100  # something is counted


def test_operators_in_a_row_are_grouped_as_a_few_are() -> None:
    assert show(expression("a ^ b ^ c .^ d")) == show(expression("a ^ (b ^ (c .^ d))"))
    assert show(expression("-a ^ -b ^ c'")) == show(expression("-(a ^ (-(b ^ (c'))))"))
    assert show(expression("- - !a * b")) == show(expression("(-(-(!a))) * b"))
    assert show(expression("a - b + c")) == show(expression("(a - b) + c"))


def test_nesting_below_the_limit() -> None:
    depth = MAX_NESTING - 5
    assert show(expression("(" * depth + "a" + ")" * depth)) == "a"


@settings(max_examples=200)
@given(st.data())
def test_any_text_is_parsed_or_reported(data: st.DataObject) -> None:
    """Programs with a few pieces put in, replaced or taken out end in a tree or in messages, nothing else."""
    text = PROGRAM
    pieces = st.sampled_from(
        "{ } ( ) [ ] < > ; , = ~ | ' \" /* // # real array if else for 1 .1 x \u00e9 #include".split()
    )
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        removed = data.draw(st.integers(0, 6))
        text = text[:at] + data.draw(pieces) + text[at + removed :]
    try:
        parse(text)
    except DiagnosticError as error:
        assert error.diagnostics and str(error)


def test_end_of_the_text_behind_the_head_of_a_loop() -> None:
    """The statement's first token is the end of the text, behind which there is no other."""
    assert "[syntax]" in error_text("model { for (i in 1:3)")
    assert "[unclosed-comment]" in error_text("model { for (i in 1:3) /*")


def test_work_grows_with_the_text() -> None:
    def work(count: int) -> int:
        lines = (f"  x[{i}] = normal_lpdf(y[{i}] | mu + {i} * beta[{i}], s) + 2 ^ {i};\n" for i in range(count))
        text = f"model {{\n{''.join(lines)}}}"
        return lines_executed(lambda: parse(text))

    work(1)
    assert work(200) < 2.05 * work(100)
