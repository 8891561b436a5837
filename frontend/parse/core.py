"""What all parts of the parser share: the position in the tokens, errors, and going on after one.

The parser is a chain of classes, one file each: cursor → expressions → types → statements → program (`parser.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn, TypeVar

from ulam.frontend.diagnostics import Diagnostic, DiagnosticCollector, DiagnosticError, Note
from ulam.frontend.parse.lexer import (
    BLOCK_KEYWORDS,
    DOT_INT,
    END,
    IDENTIFIER,
    IMAGINARY,
    INT,
    INVALID,
    KEYWORDS,
    REAL,
    STRING,
    TYPE_KEYWORDS,
    UNCLOSED_COMMENT,
    UNCLOSED_STRING,
    tokenize,
)
from ulam.frontend.source import Source
from ulam.frontend.syntax import Span

MAX_NESTING = 200  # expressions and statements inside one another; keeps every recursive walk within Python's stack
# Each `else if`, and each `?:` behind a `:`, stands inside of the one before: a tree as deep as the row is long, which
# every walk has to descend.
MAX_BRANCHES = 1000
MAX_ERRORS = 25

T = TypeVar("T")

_BLOCKS = frozenset(BLOCK_KEYWORDS)
# A line that begins with one of these begins a statement: parsing goes on there after an error.
_STATEMENT_STARTS = frozenset((
    *TYPE_KEYWORDS, "if", "for", "while", "break", "continue", "return", "print", "reject", "fatal_error", "profile",
    "target", "jacobian",
))  # fmt: skip


class SyntaxProblem(Exception):
    """A statement cannot be read on; it has been reported."""


class TooManyProblems(Exception):
    """Nothing more is to be reported."""


class TokenCursor:
    """A position in the tokens of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.collector = DiagnosticCollector(source)
        for problem in source.problems:
            if problem.is_error:  # the type checker reports the others
                self.collector.error(Span(problem.start, problem.end), problem.message, problem.code, problem.help)
        tokens = tokenize(source, self.collector)
        self.kinds, self.texts, self.starts, self.ends = tokens.kinds, tokens.texts, tokens.starts, tokens.ends
        self.at = 0
        self.depth = 0  # expressions and statements that are being read
        # Lines with lexical errors: what the parser says about them is a consequence.
        self._invalid_lines = {source.text.count("\n", 0, d.span.start) for d in self.collector.diagnostics}
        # What is not closed swallows braces: what is said of the end of the text is a consequence.
        self._ends_early = any(d.code in (UNCLOSED_COMMENT, UNCLOSED_STRING) for d in self.collector.diagnostics)
        self._last_reported = -1

    # -------------------------------------------------------------- tokens

    def span_from(self, start: int) -> Span:
        """The span from an offset to the end of the token read last."""
        return Span(start, self.ends[self.at - 1])

    def token_span(self) -> Span:
        return Span(self.starts[self.at], self.ends[self.at])

    def accept(self, kind: str) -> bool:
        if self.kinds[self.at] == kind:
            self.at += 1
            return True
        return False

    def expect(self, kind: str, after: str) -> None:
        """Reads a token; `after` names what it belongs to, as in "expected ')' <after the arguments>, found ..."."""
        if self.kinds[self.at] != kind:
            self.fail_expected(f"'{kind}' {after}")
        self.at += 1

    def starts_line(self, at: int) -> bool:
        """Whether a token is the first of its line."""
        if at == 0:
            return True
        between = self.source.text[self.ends[at - 1] : self.starts[at]]
        return "\n" in between or "\r" in between

    def name(self, what: str) -> tuple[str, Span]:
        """Reads a new name; `what` says of what, as "a variable"."""
        at = self.at
        kind = self.kinds[at]
        if kind != IDENTIFIER:
            if kind in KEYWORDS:
                help = f"choose another name, as `{kind.replace(' ', '_')}_`"
                message = f"'{kind}' is a reserved word of Stan and cannot be the name of {what}"
                self.fail(message, "reserved-word", help)
            help = None
            if at > 0 and self.kinds[at - 1] == ">" and kind != END:
                help = "`>` ends a constraint; in its expressions, put comparisons in parentheses"
            self.fail_expected(f"the name of {what}", help)
        self.at = at + 1
        return self.texts[at], Span(self.starts[at], self.ends[at])

    def found(self) -> str:
        """The current token in words, for messages."""
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == END:
            return "the end of the file"
        if kind == IDENTIFIER:
            return f"the name '{text}'"
        if kind in (INT, REAL, DOT_INT, IMAGINARY):
            return f"the number {text}"
        if kind == STRING:
            return f"the string {text}"
        if kind == INVALID:
            return f"'{text}'"
        return f"'{kind}'"

    # -------------------------------------------------------------- errors

    def report(
        self, span: Span, message: str, code: str = "syntax", help: str | None = None, notes: tuple[Note, ...] = ()
    ) -> None:
        """Reports an error, unless it follows from another one."""
        text = self.source.text
        if self._ends_early and span.start >= len(text):
            return
        if self._invalid_lines and text.count("\n", 0, span.start) in self._invalid_lines:
            return
        self.collector.error(span, message, code, help, notes)
        if len(self.collector.diagnostics) >= MAX_ERRORS:
            raise TooManyProblems

    def fail(
        self,
        message: str,
        code: str = "syntax",
        help: str | None = None,
        span: Span | None = None,
        notes: tuple[Note, ...] = (),
    ) -> NoReturn:
        """Reports an error, by default at the current token, and gives up the statement."""
        # After an error, constructs around it may stumble over the same token: they have nothing to add.
        if self.at != self._last_reported:
            self._last_reported = self.at
            self.report(span or self.token_span(), message, code, help, notes)
        raise SyntaxProblem

    def fail_expected(self, what: str, help: str | None = None, notes: tuple[Note, ...] = ()) -> NoReturn:
        self.fail(f"expected {what}, found {self.found()}", "syntax", help or self._typical_mistake(), None, notes)

    def _typical_mistake(self) -> str | None:
        """What is often meant by the current token, where it is wrong."""
        kind = self.kinds[self.at]
        before = self.kinds[self.at - 1] if self.at > 0 else ""
        if kind == "=":
            return "equality is tested with `==`"
        if kind == "*" and before == "*":
            return "powers are written with `^`"
        if kind == "!" or (kind == "=" and before == "!"):
            return "inequality is tested with `!=`"
        if kind == IDENTIFIER:
            word = {"and": "&&", "or": "||", "not": "!", "elseif": "else if", "elif": "else if"}.get(
                self.texts[self.at]
            )
            if word is not None:
                return f"write `{word}`"
            if before in (INT, REAL) and self.starts[self.at] == self.ends[self.at - 1]:
                return f"products are written with `*`: {self.texts[self.at - 1]} * {self.texts[self.at]}"
        if kind == "|":
            return "the logical operator is `||`; a single `|` follows the first argument of a density only"
        return None

    def fail_branches(self) -> NoReturn:
        help = "split the branches into groups, by ranges"
        self.fail(f"more than {MAX_BRANCHES} branches in a row", "nesting", help)

    def fail_nesting(self) -> NoReturn:
        span = self.token_span() if self.at < len(self.kinds) else Span(len(self.source.text), len(self.source.text))
        self.report(
            span,
            f"expressions or statements are nested more than {MAX_NESTING} deep",
            "nesting",
            "give names to parts of the expression, or move statements to a function",
        )
        raise TooManyProblems

    # -------------------------------------------------------------- going on after an error

    def recover(self, began: int) -> None:
        """Moves to where the next statement seems to begin: at least one token after `began`."""
        kinds = self.kinds
        if self.at == began and kinds[began] not in (END, "}"):
            self._skip_one()
        while True:
            kind = kinds[self.at]
            if kind == ";":
                self.at += 1
                return
            if kind in (END, "}") or (kind in _BLOCKS and kinds[self.at + 1] == "{"):
                return
            if kind in _STATEMENT_STARTS and self.starts_line(self.at):
                return
            self._skip_one()
            if kind == "{" and kinds[self.at] not in (";", "else") and self.starts_line(self.at):
                return  # behind the body of a statement whose head was wrong

    def _skip_one(self) -> None:
        """Skips a token, and with an opening brace all up to the closing one."""
        kinds = self.kinds
        open_braces = 0
        while True:
            kind = kinds[self.at]
            if kind == END or (kind in _BLOCKS and kinds[self.at + 1] == "{"):
                return
            self.at += 1
            if kind == "{":
                open_braces += 1
            elif kind == "}":
                open_braces -= 1
            if open_braces <= 0:
                return


def _first(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """The first `MAX_ERRORS`, the last of which says that there are more."""
    if len(diagnostics) < MAX_ERRORS:
        return diagnostics
    last = diagnostics[MAX_ERRORS - 1]
    note = Note(f"only the first {MAX_ERRORS} errors are shown", last.span)
    return [*diagnostics[: MAX_ERRORS - 1], replace(last, notes=(*last.notes, note))]


def parse_all(source: Source, parser: TokenCursor, parse: Callable[[], T]) -> T:
    """Runs a parser over the whole text; raises what was found wrong."""
    collector = parser.collector
    result: T | None = None
    with suppress(TooManyProblems):
        try:
            result = parse()
        except RecursionError:
            # The caller's own stack left less room than MAX_NESTING levels need.
            parser.fail_nesting()
    if collector.has_errors:
        raise DiagnosticError(_first(DiagnosticError(collector.diagnostics).diagnostics))
    assert result is not None, "the parser stopped without a message"
    return result
