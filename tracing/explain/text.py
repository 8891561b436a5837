"""An explanation as text, lines and tables: plain for a pipe; for a terminal in colours, by rich, and in lines that fit
its width.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ulam.runtime.results import plain_table
from ulam.runtime.terminal import console, is_decorated
from ulam.tracing.explain.parts import (
    WORDS,
    Cause,
    Elements,
    QuotedStatement,
    ShownElement,
    Step,
    Term,
    Tries,
    kind_of,
    short_text,
)

if TYPE_CHECKING:
    from ulam.tracing.explain.explanation import Explanation


SHOWN_PARAMETERS = 10
SHOWN_TERMS = 40
SHOWN_FAILURES = 10
INDENT = "   "
LEAST_WIDTH = 16

OK, BAD, PLACE, SOURCE, CARET, FACT, PLAIN, QUIET, CUT = (
    "ok", "bad", "place", "source", "caret", "fact", "plain", "quiet", "cut",
)  # fmt: skip
"""What a line is, for colours. SOURCE and CARET come in pairs; a CUT one is cut where it is too long."""


@dataclass(frozen=True)
class TextLine:
    """A line of text; `kind` is one of the names above. Of a PLACE, `lead` is what stands before the message."""

    text: str
    kind: str = PLAIN
    lead: str = ""


@dataclass(frozen=True)
class Table:
    """Header and rows; columns in `left` are set to the left; rows in `bad` are not finite.

    Column `elastic` is shortened where the table is too wide.
    """

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    left: tuple[int, ...]
    elastic: int
    bad: frozenset[int] = frozenset()

    def text(self, width: int | None = None) -> str:
        """Columns separated by two spaces, in lines of at most `width` characters if that is possible."""
        rows = self.rows
        if width is not None:
            widths = [max(map(len, column)) for column in zip(self.header, *rows, strict=True)]
            excess = sum(widths) + 2 * (len(widths) - 1) - width
            room = max(widths[self.elastic] - max(excess, 0), LEAST_WIDTH)
            rows = [tuple(cut(cell, room) if n == self.elastic else cell for n, cell in enumerate(row)) for row in rows]
        return plain_table(self.header, rows, self.left)


def plain_text(explanation: Explanation) -> str:
    """All of it without colours, for a pipe."""
    parts = [part.text() if isinstance(part, Table) else f"{part.lead}{part.text}" for part in document(explanation)]
    return "\n".join(line.rstrip() for part in parts for line in part.split("\n"))


def cut(text: str, width: int) -> str:
    """The text, shortened to so many characters."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def fitted(source: str, carets: str, width: int) -> tuple[str, str]:
    """A source line and its carets, cut around these to so many characters."""
    gutter = source.find("|") + 2
    text, marks = source[gutter:], carets[gutter:]
    room = width - gutter
    if len(text) <= room or room < LEAST_WIDTH or "\t" in text:
        return source, carets
    first = len(marks) - len(marks.lstrip())
    start = min(max(0, first - room // 4), len(text) - room + 3)
    before, after = "..." if start else "", "..." if start + room < len(text) + 3 else ""
    shown = text[start : start + room - len(before) - len(after)]
    marks = marks[start : start + len(shown)]
    return f"{source[:gutter]}{before}{shown}{after}", f"{carets[:gutter]}{' ' * len(before)}{marks}"


def document(e: Explanation) -> Iterator[TextLine | Table]:
    """The lines and tables, in their order."""
    if e.tries is not None:
        yield from _tries(e.tries)
        if e.tries.failed:
            yield TextLine("")
            yield TextLine(f"Point {e.tries.first}, the first that fails:", QUIET)
    yield TextLine(headline(e), OK if e.outcome == "finite" else BAD, f"{e.model}: ")
    for cause in e.causes:
        yield TextLine("")
        yield from _cause(cause)
    if e.terms:
        yield TextLine("")
        yield terms_table(e)
    if e.parameters:
        yield TextLine("")
        yield from _parameters(e)
    if e.printed:
        yield TextLine("")
        yield TextLine("The program printed:", QUIET)
        yield from (TextLine(INDENT + line) for line in e.printed.splitlines())
    for note in e.notes:
        yield TextLine("")
        yield TextLine(f"note: {note}")


def headline(e: Explanation) -> str:
    """The outcome in a sentence."""
    value = "" if e.log_density is None else value_text(e.log_density)
    match e.outcome:
        case "finite":
            return f"the log density is finite, {value}" + (", and so is its gradient" if e.gradient else "")
        case "nan":
            return "the log density is NaN, not a number"
        case "-inf":
            return "the log density is -infinity: the density is 0"
        case "+inf":
            return "the log density is +infinity"
        case "rejected":
            return "the point is rejected: a check of the program failed"
        case "failed":
            return "the program failed"
        case _:
            return f"the log density is finite, {value}, but its gradient is not"


def value_text(value: float) -> str:
    """A number in tables: eight digits; NaN and infinities by name."""
    kind = kind_of(value)
    return f"{value + 0.0:.8g}" if kind == "finite" else {"nan": "NaN"}.get(kind, kind)


# ---------------------------------------------------------------- several points


def _tries(tries: Tries) -> Iterator[TextLine]:
    if not tries.failed:
        yield TextLine(f"None of {tries.total} points fails ({tries.where}).", OK)
        return
    verb = "fails" if tries.failed == 1 else "fail"
    yield TextLine(f"{tries.failed} of {tries.total} points {verb} ({tries.where}):", BAD)
    width = len(str(tries.total))
    for failure in tries.failures[:SHOWN_FAILURES]:
        at = failure.statement
        where = "" if at is None else f" at line {at.line}: {at.text.removesuffix(';')}"
        yield TextLine(f"{INDENT}{failure.count:>{width}} of {tries.total} fail{where}", CUT)
        yield TextLine(f"{INDENT}{' ' * width}        {failure.text}", FACT)
    if len(tries.failures) > SHOWN_FAILURES:
        yield TextLine(f"{INDENT}and for {len(tries.failures) - SHOWN_FAILURES} more reasons")


# ---------------------------------------------------------------- causes


def _cause(cause: Cause) -> Iterator[TextLine]:
    loop = ", ".join(f"{name} = {value}" for name, value in cause.loop.items())
    message = f"{cause.message}, at {loop}" if loop else cause.message
    lead = "error: " if cause.statement is None else f"{cause.statement.where}: error: "
    yield TextLine(message, PLACE, lead)
    if cause.statement is not None:
        yield from _excerpt(cause.statement)
    for call in cause.calls:
        yield TextLine(f"{INDENT}called at {call.where}: {call.text}")
    if cause.elements is not None:
        yield from _elements(cause.elements)
    for text in cause.notes:
        yield TextLine(INDENT + text, FACT)
    for text in cause.arguments:
        yield TextLine(INDENT + text)
    for number, birth in enumerate(cause.births):
        yield from _birth(birth, cause.statement, number)
    for step in cause.slice:
        yield TextLine(f"{INDENT}{_line_of(step)}{step.text}")


def _excerpt(at: QuotedStatement) -> Iterator[TextLine]:
    for number, text in enumerate(at.excerpt):
        yield TextLine(text, CARET if number % 2 else SOURCE)


def _birth(birth: Step, statement: QuotedStatement | None, number: int) -> Iterator[TextLine]:
    what = WORDS.get(kind_of(birth.value), "not finite") if isinstance(birth.value, float) else "not finite"
    first = "first" if number == 0 else "then" if what == WORDS["nan"] else "also"
    yield TextLine(f"{INDENT}{first} {what}{_at(birth, statement)}: {birth.text}", FACT)
    if birth.at is not None and birth.at != statement:
        yield from _excerpt(birth.at)


def _at(step: Step, statement: QuotedStatement | None) -> str:
    """Where a step is: the line, of another file also its name."""
    if step.at is None or step.at.line <= 0:
        return ""
    same = statement is None or statement.file == step.at.file
    return f" at line {step.at.line}" if same else f" at {step.at.where}"


def _line_of(step: Step) -> str:
    return "" if step.at is None or step.at.line <= 0 else f"line {step.at.line}: "


def _elements(elements: Elements) -> Iterator[TextLine]:
    guilty = [element for element in elements.shown if element.reason]
    for element in guilty:
        yield TextLine(INDENT + element.reason, FACT)
    verb = "is" if elements.guilty == 1 else "are"
    count = f"{elements.guilty} of {elements.count} elements {verb} not finite" if elements.guilty else ""
    others = [element for element in elements.shown if not element.reason]
    if others and elements.guilty:
        listed = "; ".join(map(_element, others))
        rest = elements.count - elements.guilty - len(others)
        listed += f"; {rest} more" if rest else ""
        yield TextLine(f"{INDENT}{count}; others: {listed}")
    elif elements.guilty > len(guilty):
        yield TextLine(INDENT + count)


def _element(element: ShownElement) -> str:
    value = f" = {short_text(element.value)}" if isinstance(element.value, int | float) else ""
    return f"{element.name}{value}: {value_text(element.increment)}"


# ---------------------------------------------------------------- tables


def terms_table(e: Explanation) -> Table:
    """The terms, ranked."""
    several = any(term.count > 1 for term in e.terms)
    header = ["line", "statement", *(["times", "worst"] if several else []), "increment"]
    header += ["full", "dropped"] if e.propto else []
    header.append("target after")
    rows: list[tuple[str, ...]] = []
    for term in e.terms[:SHOWN_TERMS]:
        row = [str(term.statement.line) if term.statement.line > 0 else "", term.label]
        row += [str(term.count) if term.count > 1 else "", _worst(term)] if several else []
        row.append(value_text(term.increment))
        if e.propto:
            row += ["" if number is None else value_text(number) for number in (term.full, term.dropped)]
        rows.append((*row, value_text(term.target_after)))
    if len(e.terms) > SHOWN_TERMS:
        rows.append(("", f"... and {len(e.terms) - SHOWN_TERMS} more", *[""] * (len(header) - 2)))
    bad = frozenset(n for n, term in enumerate(e.terms[:SHOWN_TERMS]) if not math.isfinite(term.increment))
    return Table(tuple(header), rows, (1, 3) if several else (1,), 1, bad)


def _worst(term: Term) -> str:
    """The worst iteration of a loop."""
    if term.count == 1:
        return ""
    at = ", ".join(f"{name}={value}" for name, value in term.worst.items())
    value = f"{term.worst_increment:.4g}" if math.isfinite(term.worst_increment) else value_text(term.worst_increment)
    return f"{at}: {value}" if at else value


def _parameters(e: Explanation) -> Iterator[TextLine | Table]:
    shown = e.parameters[:SHOWN_PARAMETERS]
    differs = any(p.constrained is not None and p.constrained != p.value for p in shown)
    rows: list[tuple[str, ...]] = [
        (
            p.name,
            value_text(p.value),
            *(["" if p.constrained is None else value_text(p.constrained)] if differs else []),
        )
        for p in shown
    ]
    header = ("parameter", "unconstrained", *(["constrained"] if differs else []))
    if len(e.parameters) > len(shown):
        rows.append((f"... and {len(e.parameters) - len(shown)} more", *[""] * (len(header) - 1)))
    yield Table(header, rows, (0,), 0)


STYLES = {
    OK: "bold green", BAD: "bold red", PLACE: "bold", SOURCE: "", CARET: "bold red",
    FACT: "yellow", PLAIN: "", QUIET: "dim", CUT: "",
}  # fmt: skip
LEAD, HEADER, RULE = "bold", "bold", "dim"


def print_explanation(explanation: Explanation, file: TextIO | None = None) -> None:
    """With colours if `file` is a terminal, else as plain text."""
    stream: TextIO = file or sys.stdout
    if not is_decorated(stream):
        print(plain_text(explanation), file=stream)
        return
    from rich.text import Text

    shown = console(stream)
    for pieces in _lines(explanation, shown.width):
        line = Text()
        for piece, style in pieces:
            line.append(piece, style=style)
        shown.print(line)


def _lines(explanation: Explanation, width: int) -> Iterator[list[tuple[str, str]]]:
    """The lines, each as pieces with their styles."""
    parts = list(document(explanation))
    for number, part in enumerate(parts):
        if isinstance(part, Table):
            yield from _table(part, width)
            continue
        shown = part.text
        if part.kind in (SOURCE, CARET):
            first = number if part.kind == SOURCE else number - 1
            pair = [other.text for other in parts[first : first + 2] if isinstance(other, TextLine)]
            shown = fitted(pair[0], pair[1], width)[number - first]
        if part.kind == CUT:
            shown = cut(shown, width)
        yield [(part.lead, LEAD), (shown, STYLES[part.kind])]


def _table(table: Table, width: int) -> Iterator[list[tuple[str, str]]]:
    header, *rows = table.text(width).split("\n")
    yield [(header, HEADER)]
    yield [("─" * min(max(map(len, (header, *rows))), width), RULE)]
    for number, row in enumerate(rows):
        yield [(row, "red" if number in table.bad else "")]
