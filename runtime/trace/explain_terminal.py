"""An explanation on a terminal: colours, and tables that fit its width, by rich."""

from __future__ import annotations

import sys
from typing import TextIO

from ulam.runtime.trace import explain_text as text
from ulam.runtime.trace.explanation import Explanation

STYLES = {
    text.OK: "bold green", text.BAD: "bold red", text.PLACE: "bold", text.SOURCE: "", text.CARET: "bold red",
    text.FACT: "yellow", text.PLAIN: "", text.QUIET: "dim",
}  # fmt: skip


def print_explanation(explanation: Explanation, file: TextIO | None = None) -> None:
    """With colours if `file` is a terminal, else as plain text."""
    stream: TextIO = file or sys.stdout
    if not stream.isatty():
        print(text.plain_text(explanation), file=stream)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    for part in text.document(explanation):
        if isinstance(part, text.Line):
            line = Text(part.lead, style="bold")
            line.append(part.text, style=STYLES[part.kind])
            console.print(line, soft_wrap=part.kind in (text.SOURCE, text.CARET))
            continue
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column, title in enumerate(part.header):
            left = column in part.left
            table.add_column(
                title, justify="left" if left else "right", no_wrap=True, overflow="ellipsis" if left else "fold",
                min_width=None if left else max(len(title), *(len(row[column]) for row in part.rows)),
            )  # fmt: skip
        for number, row in enumerate(part.rows):
            table.add_row(*(Text(cell) for cell in row), style="red" if number in part.bad else None)
        console.print(table)
