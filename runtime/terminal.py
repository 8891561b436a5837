"""What a stream shows: colours and tables by rich on a terminal, plain text elsewhere; text that is safe to show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

color = "auto"
"""`always`, `never`, or `auto`: on terminals. The option `--color` of the commands sets it."""


program_output: TextIO | None = None
"""Where programs print; None is standard output."""


@contextmanager
def programs_print_to(stream: TextIO) -> Iterator[None]:
    """What programs print goes to this stream meanwhile, of all threads."""
    global program_output
    before, program_output = program_output, stream
    try:
        yield
    finally:
        program_output = before


def show_printed(text: str) -> None:
    """Shows what a program has printed."""
    (program_output or sys.stdout).write(text)


def is_decorated(stream: TextIO) -> bool:
    """Whether tables and texts for this stream are drawn by rich."""
    return color == "always" or (color == "auto" and stream.isatty())


def is_coloured(stream: TextIO) -> bool:
    """The same, for messages that have nothing but colours to add: https://no-color.org."""
    if color != "auto":
        return color == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_animated(stream: TextIO) -> bool:
    """Whether lines that change may be shown: on a terminal only."""
    return color != "never" and stream.isatty() and os.environ.get("TERM") != "dumb"


def progress_stream() -> TextIO:
    """Where progress is shown: on standard error, but in notebooks, which show that as errors."""
    in_notebook = "ipykernel" in sys.modules and not sys.stderr.isatty()
    return sys.stdout if in_notebook else sys.stderr


def console(stream: TextIO) -> Console:
    """Rich's console for a decorated stream."""
    from rich.console import Console

    return Console(file=stream, highlight=False, force_terminal=True if color == "always" else None)


def print_pieces(lines: Iterable[Iterable[tuple[str, str]]], stream: TextIO) -> None:
    """Lines of pieces, each a text and its style, at their full length."""
    from rich.text import Text

    shown = console(stream)
    for line in lines:
        shown.print(Text.assemble(*line), soft_wrap=True)


def escaped(text: str) -> str:
    """The text on one line: control characters, line ends and what is no character as Python writes them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
