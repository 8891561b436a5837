"""Terms of the tables: read as Stan reads them, and wrong ones refused with the place and the reason."""

from __future__ import annotations

import pytest

from ulam.library.terms import Application, Name, Number, TableError, Term, read_term, read_terms

A, B, C = Name("a"), Name("b"), Name("c")


def binary(symbol: str, left: Term, right: Term) -> Application:
    return Application(symbol, (left, right))


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("a + b * c", binary("+", A, binary("*", B, C))),
        ("a - b - c", binary("-", binary("-", A, B), C)),
        ("(a - b) / c", binary("/", binary("-", A, B), C)),
        ("a * b'", binary("*", A, Application("'", (B,)))),
        ("-a ^ 2", Application("neg", (binary("pow", A, Number(2)),))),
        ("-a * b", binary("*", Application("neg", (A,)), B)),
        ("-2.5e-1", Number(-0.25)),
        ("!a", Application("!", (A,))),
        ("a < b ? 1 : b == c ? 2 : 3", Application("?", (binary("<", A, B), Number(1), Application(
            "?", (binary("==", B, C), Number(2), Number(3)))))),
        ("f(a | -0.5)", Application("f", (A, Number(-0.5)))),
        ("f()", Application("f", ())),
        ("unchecked f(a)", Application("f", (A,), unchecked=True)),
        ("f(a) as g", Application("f", (A,), meaning="g")),
        ("multiply(a, b)", binary("*", A, B)),
    ],
)  # fmt: skip
def test_terms_are_read_as_stan_reads_them(text: str, term: Term) -> None:
    assert read_term(text, "table", {"multiply": "*"}) == term
    assert read_terms(f"{text},c", "table", {"multiply": "*"}) == [term, C]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a term, found 'the end'"),
        ("a +", "expected a term, found 'the end'"),
        ("a + )", "expected a term, found ')'"),
        ("a b", "unexpected 'b'"),
        ("f(a", "expected ')', found 'the end'"),
        ("(a, b)", "expected ')', found ','"),
        ("a ? b", "expected ':', found 'the end'"),
        ("unchecked a", "expected '(', found 'the end'"),
        ("f(a) as", "expected a term, found 'the end'"),
        ("a, b", "more than one term"),
        ("a $ b", "cannot read 'a $ b'"),
    ],
)
def test_errors_tell_row_and_reason(text: str, message: str) -> None:
    with pytest.raises(TableError) as error:
        read_term(text, "derivatives.txt, row 'f'")
    assert str(error.value).startswith(f"derivatives.txt, row 'f': {message}")
