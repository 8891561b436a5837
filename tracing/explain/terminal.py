"""An explanation on a terminal: in colours, and in lines that fit its width, by rich."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

from ulam.runtime.terminal import console, is_decorated
from ulam.tracing.explain import text
from ulam.tracing.explain.explanation import Explanation

STYLES = {
    text.OK: "bold green", text.BAD: "bold red", text.PLACE: "bold", text.SOURCE: "", text.CARET: "bold red",
    text.FACT: "yellow", text.PLAIN: "", text.QUIET: "dim", text.CUT: "",
}  # fmt: skip
LEAD, HEADER, RULE = "bold", "bold", "dim"


def print_explanation(explanation: Explanation, file: TextIO | None = None) -> None:
    """With colours if `file` is a terminal, else as plain text."""
    stream: TextIO = file or sys.stdout
    if not is_decorated(stream):
        print(text.plain_text(explanation), file=stream)
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
    parts = list(text.document(explanation))
    for number, part in enumerate(parts):
        if isinstance(part, text.Table):
            yield from _table(part, width)
            continue
        shown = part.text
        if part.kind in (text.SOURCE, text.CARET):
            first = number if part.kind == text.SOURCE else number - 1
            pair = [other.text for other in parts[first : first + 2] if isinstance(other, text.TextLine)]
            shown = text.fitted(pair[0], pair[1], width)[number - first]
        if part.kind == text.CUT:
            shown = text.cut(shown, width)
        yield [(part.lead, LEAD), (shown, STYLES[part.kind])]


def _table(table: text.Table, width: int) -> Iterator[list[tuple[str, str]]]:
    header, *rows = table.text(width).split("\n")
    yield [(header, HEADER)]
    yield [("─" * min(max(map(len, (header, *rows))), width), RULE)]
    for number, row in enumerate(rows):
        yield [(row, "red" if number in table.bad else "")]
