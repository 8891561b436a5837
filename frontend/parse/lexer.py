"""From source text to tokens: one regular expression, one pass.

A token is an entry in four parallel lists (kind, text, start, end), which costs a fraction of an object per token. The
kind of punctuation, operators and keywords is their text (`transformed data` is one keyword, with one blank); the other
kinds are the constants below.
Source: Stan Reference Manual, "Character encoding", "Comments", "Whitespace", "Variables", "Literals".
"""

from __future__ import annotations

import re

from ulam.frontend.diagnostics import DiagnosticCollector
from ulam.frontend.encoding import NOT_UTF8, REPLACEMENT, SAVE_AS_UTF8
from ulam.frontend.source import INCLUDE_DIRECTIVE, Source
from ulam.frontend.syntax import Span
from ulam.library.records import record

IDENTIFIER = "identifier"
INT = "integer"
REAL = "real number"
DOT_INT = "dot and integer"  # `.5`: a number, or a tuple's component after an expression
IMAGINARY = "imaginary number"
STRING = "string"
INVALID = "invalid"  # reported by the lexer
END = "end of file"

UNCLOSED_COMMENT = "unclosed-comment"  # code of the error that ends the tokens early
UNCLOSED_STRING = "unclosed-string"

BLOCK_KEYWORDS = (
    "functions", "data", "transformed data", "parameters", "transformed parameters", "model", "generated quantities",
)  # fmt: skip
TYPE_KEYWORDS = (
    "int", "real", "complex", "vector", "row_vector", "matrix", "complex_vector", "complex_row_vector",
    "complex_matrix", "ordered", "positive_ordered", "simplex", "unit_vector", "sum_to_zero_vector",
    "sum_to_zero_matrix", "cholesky_factor_corr", "cholesky_factor_cov", "corr_matrix", "cov_matrix",
    "column_stochastic_matrix", "row_stochastic_matrix", "array", "tuple",
)  # fmt: skip
OTHER_KEYWORDS = (
    "void", "if", "else", "while", "for", "in", "break", "continue", "return", "profile", "print", "reject",
    "fatal_error", "target", "jacobian", "lower", "upper", "offset", "multiplier",
)  # fmt: skip
KEYWORDS = frozenset((*BLOCK_KEYWORDS, *TYPE_KEYWORDS, *OTHER_KEYWORDS))
_KIND_OF_WORD = {word: word for word in KEYWORDS}

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_EXPONENT = rf"(?:[eE][+-]?{_DIGITS})"
_TOKEN = re.compile(
    r"(?:[ \t\r\n\f]+|//[^\r\n]*|/\*.*?\*/|" + INCLUDE_DIRECTIVE + r")*"
    r"(?:"
    r"(?P<word>(?:transformed[ \t\f]+(?:data|parameters)|generated[ \t\f]+quantities)(?![A-Za-z0-9_])"
    r"|[A-Za-z][A-Za-z0-9_]*)"
    rf"|(?P<number>{_DIGITS}(?:\.(?:{_DIGITS})?)?{_EXPONENT}?i?|\.{_DIGITS}{_EXPONENT}?i?)"
    r"|(?P<comment>/\*)"  # a closed one has been skipped
    r"|(?P<operator>\.\*=|\./=|%/%|[=!<>+\-*/]=|&&|\|\||\.[*/^]|[{}()\[\]<>,;|?:!\-+^'*/%\\=~])"
    r'|(?P<string>"[^"\r\n]*")'
    r"|(?P<end>\Z)"
    r"|(?P<invalid>\#[^\r\n]*|\"[^\"\r\n]*|_+[A-Za-z0-9_]*|.)"
    r")",
    re.DOTALL | re.ASCII,
)

# First character of what begins no token → message, code, help.
_INVALID_BEGINNINGS = {
    "#": ("a comment begins with `//`, not with `#`", "old-comment", "write `//` in place of `#`"),
    '"': ("this string is not closed on its line", UNCLOSED_STRING, 'close it with `"`'),
    "_": ("the name '{}' begins with `_`", "invalid-name", "begin names with a letter"),
    "&": ("`&` is not an operator", "invalid-character", "the logical operator is `&&`"),
    ".": ("a `.` stands alone here", "invalid-character",
          "components of tuples are numbered, as in `t.1`; element-wise operators are `.*`, `./`, `.^`"),
}  # fmt: skip

# Characters that text processors put in place of the plain ones.
_LOOKALIKES = {
    "\u2212": "-", "\u2013": "-", "\u2014": "-", "\u00d7": "*", "\u22c5": "*", "\u00f7": "/", "\u2018": "'",
    "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u223c": "~",
    "\uff1b": ";", "\uff0c": ",", "\uff08": "(", "\uff09": ")", "\u00a0": " ",
}  # fmt: skip


@record(slots=True)
class Tokens:
    """The tokens of a text; the last one has the kind `END`."""

    kinds: list[str]
    texts: list[str]
    starts: list[int]
    ends: list[int]


def tokenize(source: Source, collector: DiagnosticCollector) -> Tokens:
    """All tokens of `source`; characters that begin no token are reported and stand as `INVALID` tokens."""
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    unseen: set[str] = set()
    add_kind, add_text, add_start, add_end = kinds.append, texts.append, starts.append, ends.append
    kind_of_word = _KIND_OF_WORD.get
    for match in _TOKEN.finditer(source.text):
        group = match.lastgroup
        assert group is not None  # every alternative is a named group
        text = match[group]
        if group == "word":
            kind = kind_of_word(text)
            if kind is None:
                kind = " ".join(text.split()) if " " in text or "\t" in text or "\f" in text else IDENTIFIER
        elif group == "operator":
            kind = text
        elif group == "number":
            kind = _kind_of_number(text)
        elif group == "string":
            kind = STRING
        elif group == "end":
            kind = END
        elif group == "comment":
            start = match.start(group)
            collector.error(
                Span(start, start + 2), "this comment is not closed", UNCLOSED_COMMENT, "close it with `*/`"
            )
            add_kind(END)
            add_text("")
            add_start(len(source.text))
            add_end(len(source.text))
            break
        else:
            start = match.start(group)
            # One message for a name with several such letters, and for each character that cannot be seen.
            follows = ends and kinds[-1] == INVALID and start == ends[-1] and text.isalpha()
            if not follows and text not in unseen:
                _report_invalid(text, start, collector)
            if text == REPLACEMENT or not text.isprintable():
                unseen.add(text)
            if text[0] == "#":
                continue  # taken for a comment
            kind = INVALID
        add_kind(kind)
        add_text(text)
        add_start(match.start(group))
        add_end(match.end())
        if kind == END:
            break
    return Tokens(kinds, texts, starts, ends)


def _kind_of_number(text: str) -> str:
    if text[-1] == "i":
        return IMAGINARY
    if text[0] == ".":
        return REAL if "e" in text or "E" in text else DOT_INT
    if text.isdigit() or text.replace("_", "").isdigit():
        return INT
    return REAL


def _report_invalid(text: str, start: int, collector: DiagnosticCollector) -> None:
    first = text[0]
    span = Span(start, start + (1 if first == "#" else len(text)))
    if first in _INVALID_BEGINNINGS:
        message, code, help = _INVALID_BEGINNINGS[first]
        message = message.format(text)
    elif first in _LOOKALIKES:
        message, code = f"'{first}' (U+{ord(first):04X}) is not a character of Stan's language", "invalid-character"
        help = f"write `{_LOOKALIKES[first]}`"
    elif first.isalpha():
        message, code = f"'{first}' is not a letter of Stan's names", "invalid-name"
        help = "names are made of a to z, A to Z, 0 to 9 and `_`"
    elif first == REPLACEMENT:
        message, code, help = NOT_UTF8, "encoding", SAVE_AS_UTF8.format("ISO-8859-1")
    elif first.isprintable():
        message, code, help = f"'{first}' is not a character of Stan's language", "invalid-character", None
    else:
        message, code = f"U+{ord(first):04X} is not a character of Stan's language", "invalid-character"
        help = "delete it, and others of the kind; most editors do not show it"
    collector.error(span, message, code, help)
