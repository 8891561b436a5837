"""Messages about a program: what is wrong, where, and what to do about it.

A message shows the file, line and column, the source line with a caret under the place, and, where one is known, a
way to mend it:

    model.stan:14:3: error: 'sigma' must be positive to be the scale of normal [scale-domain]
       14 |   y ~ normal(mu, sigma);
          |                  ^^^^^
       help: declare it `real<lower=0> sigma;`
"""

from __future__ import annotations

import re
from enum import StrEnum

from ulam.frontend.source import Source
from ulam.frontend.syntax import Span
from ulam.library.records import record

_SHOWN_WORD = 60
_LONG_WORD = re.compile(rf"[^\s/]{{{2 * _SHOWN_WORD}}}[^\s/]*?('?)(?=\s|/|\Z)")  # paths are longer than their parts
_SHOWN_INCLUSIONS = 5
_SHOWN_WIDTH = 140  # longer source lines are cut around the place


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@record(slots=True, frozen=True)
class Note:
    """A second place that matters to a message, as the opening brace of a block that is not closed."""

    message: str
    span: Span


@record(slots=True, frozen=True)
class Diagnostic:
    """One message. `code` names its kind in words, as `missing-semicolon`; `help` says how to mend the program."""

    severity: Severity
    message: str
    span: Span
    source: Source
    code: str
    help: str | None = None
    notes: tuple[Note, ...] = ()

    def as_dict(self) -> dict[str, str | int | None]:
        """The message as `ulam check --json` prints it; `end_column` is the column after the last character."""
        start = self.source.location(self.span.start)
        end_line, end_column = self.source.position(max(self.span.end, self.span.start))
        return {
            "file": start.file,
            "line": start.line,
            "column": start.column,
            "end_line": end_line,
            "end_column": end_column,
            "severity": str(self.severity),
            "code": self.code,
            "message": shortened(self.message),
            "fix": None if self.help is None else shortened(self.help),
        }


class DiagnosticError(Exception):
    """The program is wrong; carries all that was found in one run, in the order of the source text."""

    diagnostics: list[Diagnostic]

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = sorted(diagnostics, key=lambda d: d.span.start)

    def __str__(self) -> str:
        return "\n".join(render(d) for d in self.diagnostics)


class DiagnosticCollector:
    """Gathers the messages of one stage, so that one run reports more than the first."""

    __slots__ = ("diagnostics", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    def error(
        self, span: Span, message: str, code: str, help: str | None = None, notes: tuple[Note, ...] = ()
    ) -> Diagnostic:
        return self._add(Severity.ERROR, span, message, code, help, notes)

    def warning(
        self, span: Span, message: str, code: str, help: str | None = None, notes: tuple[Note, ...] = ()
    ) -> Diagnostic:
        return self._add(Severity.WARNING, span, message, code, help, notes)

    def _add(
        self, severity: Severity, span: Span, message: str, code: str, help: str | None, notes: tuple[Note, ...]
    ) -> Diagnostic:
        diagnostic = Diagnostic(severity, message, span, self.source, code, help, notes)
        self.diagnostics.append(diagnostic)
        return diagnostic

    @property
    def has_errors(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.diagnostics)

    def raise_errors(self) -> None:
        """Raises what was collected if there is an error among it."""
        if self.has_errors:
            raise DiagnosticError(self.diagnostics)


def shortened(text: str) -> str:
    """A message, or a name, number or string of the program that it shows: very long words are cut."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:_SHOWN_WORD]}...{word[1]}", text)


def render(diagnostic: Diagnostic) -> str:
    """The message as text of several lines, without a final line end."""
    source, span = diagnostic.source, diagnostic.span
    location = source.location(span.start)
    lines = [f"{location}: {diagnostic.severity}: {shortened(diagnostic.message)} [{diagnostic.code}]"]
    lines += excerpt(source, span)
    lines += [f"   note: {source.location(note.span.start)}: {shortened(note.message)}" for note in diagnostic.notes]
    inclusions = source.inclusions(span.start)
    lines += [f"   note: included from {inclusion}" for inclusion in inclusions[:_SHOWN_INCLUSIONS]]
    if len(inclusions) > _SHOWN_INCLUSIONS:
        lines.append(f"   note: and so on, {len(inclusions)} files deep")
    if diagnostic.help is not None:
        lines.append(f"   help: {shortened(diagnostic.help)}")
    return "\n".join(lines)


def excerpt(source: Source, span: Span) -> list[str]:
    """The source line of a place, and a line with carets under the part of the span that is on it.

    Of a file without text there is none.
    """
    if not source.text:
        return []
    line_number, column = source.position(span.start)
    text = source.line_at(span.start)
    begin = column - 1
    width = max(1, min(span.end - span.start, len(text) - begin))
    if len(text) > _SHOWN_WIDTH:
        cut = max(0, min(begin - _SHOWN_WIDTH // 3, len(text) - _SHOWN_WIDTH))
        end = min(cut + _SHOWN_WIDTH, len(text))
        width = max(1, min(width, end - begin))
        before, after = "..." if cut > 0 else "", "..." if end < len(text) else ""
        text = before + text[cut:end] + after
        begin += len(before) - cut
    # A tab stays a tab, so that the carets stand under the place at any tab width.
    padding = "".join("\t" if c == "\t" else " " for c in text[:begin])
    gutter = f"{line_number:>5}"
    return [f"{gutter} | {text}", f"{' ' * len(gutter)} | {padding}{'^' * width}"]
