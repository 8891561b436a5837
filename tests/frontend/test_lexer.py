"""Tokens: literals, operators by longest match, keywords, comments, includes, and characters that begin no token."""

from __future__ import annotations

from pathlib import Path

import pytest

from ulam.frontend.diagnostics import DiagnosticCollector
from ulam.frontend.parse.lexer import (
    DOT_INT,
    END,
    IDENTIFIER,
    IMAGINARY,
    INT,
    INVALID,
    REAL,
    STRING,
    tokenize,
)
from ulam.frontend.source import Source


def tokens(text: str) -> list[tuple[str, str]]:
    source = Source(text, "test.stan")
    collector = DiagnosticCollector(source)
    result = tokenize(source, collector)
    assert not collector.diagnostics
    assert result.kinds[-1] == END
    for part, start, end in zip(result.texts, result.starts, result.ends, strict=True):
        assert source.text[start:end] == part
    return list(zip(result.kinds, result.texts, strict=True))[:-1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0", INT),
        ("1_000_000", INT),
        ("1.", REAL),
        ("1.5", REAL),
        ("1_0.2_5e-1_0", REAL),
        ("2e3", REAL),
        (".5e2", REAL),
        (".5", DOT_INT),
        ("2i", IMAGINARY),
        ("2.5e1i", IMAGINARY),
        (".5i", IMAGINARY),
        ('"no // comment"', STRING),
        ("x_1", IDENTIFIER),
        ("T", IDENTIFIER),
        ("real_", IDENTIFIER),
        ("dataset", IDENTIFIER),
        ("simplex", "simplex"),
        ("generated quantities", "generated quantities"),
    ],
)
def test_single_token(text: str, kind: str) -> None:
    assert tokens(text) == [(kind, text)]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a.*b", [IDENTIFIER, ".*", IDENTIFIER]),
        ("a.*=b", [IDENTIFIER, ".*=", IDENTIFIER]),
        ("1./x", [REAL, "/", IDENTIFIER]),  # the dot belongs to the number
        ("a%/%b", [IDENTIFIER, "%/%", IDENTIFIER]),
        ("a%b", [IDENTIFIER, "%", IDENTIFIER]),
        ("a\\b", [IDENTIFIER, "\\", IDENTIFIER]),
        ("t.1.2", [IDENTIFIER, DOT_INT, DOT_INT]),
        ("x'", [IDENTIFIER, "'"]),
        ("a||b|c", [IDENTIFIER, "||", IDENTIFIER, "|", IDENTIFIER]),
        ("a<=b<c", [IDENTIFIER, "<=", IDENTIFIER, "<", IDENTIFIER]),
        ("2x", [INT, IDENTIFIER]),
        ("transformed \t data", ["transformed data"]),
        ("transformed\ndata", [IDENTIFIER, "data"]),  # a block keyword of two words stands on one line
        ("transformed datas", [IDENTIFIER, IDENTIFIER]),
        ("a // b\nc /* d // */ e /* \n */", [IDENTIFIER, IDENTIFIER, IDENTIFIER]),
        ("a /**/ / /***/ b", [IDENTIFIER, "/", IDENTIFIER]),
    ],
)
def test_sequences(text: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in tokens(text)] == kinds


@pytest.mark.parametrize(
    ("text", "code", "kinds"),
    [
        ("a # old\nb", "old-comment", [IDENTIFIER, IDENTIFIER]),
        ('a "open\nb', "unclosed-string", [IDENTIFIER, INVALID, IDENTIFIER]),
        ("a /* open\nb", "unclosed-comment", [IDENTIFIER]),
        ("_a", "invalid-name", [INVALID]),
        ("a & b", "invalid-character", [IDENTIFIER, INVALID, IDENTIFIER]),
        ("t.name", "invalid-character", [IDENTIFIER, INVALID, IDENTIFIER]),
        ("a \u2212 b", "invalid-character", [IDENTIFIER, INVALID, IDENTIFIER]),
        ("\u00e9", "invalid-name", [INVALID]),
        ("a @ b", "invalid-character", [IDENTIFIER, INVALID, IDENTIFIER]),
        ("a\x00b", "invalid-character", [IDENTIFIER, INVALID, IDENTIFIER]),
    ],
)
def test_invalid_characters(text: str, code: str, kinds: list[str]) -> None:
    source = Source(text, "test.stan")
    collector = DiagnosticCollector(source)
    result = tokenize(source, collector)
    assert [d.code for d in collector.diagnostics] == [code]
    assert result.kinds == [*kinds, END]


def test_include_directives_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "f.stan").write_text("b // last line has no end")
    source = Source('a #include "f.stan" c', str(tmp_path / "m.stan"))
    result = tokenize(source, DiagnosticCollector(source))
    assert result.texts == ["a", "b", "c", ""]
    places = [source.location(start) for start in result.starts[:3]]
    assert [(Path(p.file).name, p.line, p.column) for p in places] == [
        ("m.stan", 1, 1),
        ("f.stan", 1, 1),
        ("m.stan", 1, 21),
    ]
