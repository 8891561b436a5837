"""Messages of the commands, to standard error: in colours where it is a terminal, else the same as plain text."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from ulam.runtime import terminal

Piece = tuple[str, str]
"""A text and its style."""

SEVERITIES = {"error": "bold red", "warning": "bold magenta", "note": "bold cyan", "help": "bold green"}
BOLD, GUTTER, CARET = "bold", "blue", "bold red"

_HEAD = re.compile(r"^(?P<place>.*?: |)(?P<severity>error|warning)(?P<colon>: )(?P<message>.*?)(?P<code> \[[\w-]+\]|)$")
_GUTTER = re.compile(r"^ *\d* \| ")
_CARETS = re.compile(r"^ * \| \s*\^+$")
_HINT = re.compile(r"^( +)(help|note)(: )(.*)$")


def tell(severity: str, text: str, command: str = "ulam") -> None:
    """`ulam: error: text`, on each line of the text."""
    for line in text.splitlines() or [""]:
        show(f"{command}: {severity}: {terminal.escaped(line)}")


@contextmanager
def warnings_told(command: str = "ulam") -> Iterator[None]:
    """Python's warnings are messages of the command meanwhile."""

    def told(message: Warning | str, *_: object, **__: object) -> None:
        tell("warning", str(message), command)

    with warnings.catch_warnings():
        warnings.showwarning = told
        yield


def show(text: str, stream: TextIO | None = None) -> None:
    """Lines of messages, rendered before, behind what has been printed so far."""
    file = stream or sys.stderr
    if file is sys.stderr:
        with suppress(OSError, ValueError):  # a pipe that nobody reads is told of at the end
            sys.stdout.flush()
    if terminal.is_coloured(file):
        terminal.print_pieces(map(pieces, text.split("\n")), file)
    else:
        print(text, file=file)


def pieces(line: str) -> Iterator[Piece]:
    """A line of a message with its styles; the texts together are the line."""
    if gutter := _GUTTER.match(line):
        yield gutter[0], GUTTER
        yield line[gutter.end() :], CARET if _CARETS.match(line) else ""
    elif hint := _HINT.match(line):
        yield hint[1], ""
        yield hint[2], SEVERITIES[hint[2]]
        yield hint[3] + hint[4], ""
    elif head := _HEAD.match(line):
        yield head["place"], BOLD
        yield head["severity"], SEVERITIES[head["severity"]]
        yield head["colon"], ""
        yield head["message"], BOLD
        yield head["code"], "dim"
    else:
        yield line, ""
