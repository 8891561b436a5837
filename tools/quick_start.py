"""Command lines that are answered without typer: help, and `ulam check` of files.

To import typer takes longer than to answer them. Their words and exit statuses are those that typer gives; all other
command lines, completion of shells among them, are typer's.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ulam.tools import commands

ABOUT = "Compiles Stan programs to native code and runs them."
VERSION_HELP = "Show the version."
COMMAND_HELP = ("--help", "Show this and exit.")
_GENERAL = (
    ("--version", VERSION_HELP),
    ("--install-completion", "Install completion for the current shell."),
    ("--show-completion", "Show completion for the current shell, to copy it or customize the installation."),
    ("--help", "Show this message and exit."),
)
_WIDEST, _NARROWEST = 78, 50
_WIDEST_NAME = 30
_LEAST_USAGE, _USAGE_BELOW = 20, 11
"""Room for a usage, or else it is below, and so far to the right."""


def quickly(words: Sequence[str]) -> Callable[[], int] | None:
    """What answers a command line; None: typer."""
    if list(words) == ["--help"]:
        return lambda: _show(general_help(_width()))
    if len(words) == 2 and words[1] == "--help" and words[0] in commands.COMMANDS:
        return lambda: _show(command_help(words[0], _width()))
    if len(words) > 1 and words[0] == "check" and all(word and not word.startswith("-") for word in words[1:]):
        values = {"models": [Path(word) for word in words[1:]], "json": None, "include_path": None, "color": "auto"}
        return lambda: _executed("check", values)
    return None


def _executed(name: str, values: dict[str, Any]) -> int:
    from ulam.tools.running import execute

    return execute(name, values)


def _show(text: str) -> int:
    sys.stdout.write(text)
    return 0


# ---------------------------------------------------------------- help


def general_help(width: int) -> str:
    """What `ulam --help` prints."""
    room = width - 6 - max(map(len, commands.COMMANDS))
    rows = [(name, shortened(command.help, room)) for name, command in commands.COMMANDS.items()]
    return "".join(_page("ulam", "[OPTIONS] COMMAND [ARGS]...", ABOUT, width, Options=_GENERAL, Commands=rows))


def command_help(name: str, width: int) -> str:
    """What `ulam NAME --help` prints."""
    arguments, rows = commands.help_rows(name)
    usage = " ".join(["[OPTIONS]", *(written for written, _ in arguments)])
    rows = [*rows, COMMAND_HELP]
    return "".join(_page(f"ulam {name}", usage, commands.COMMANDS[name].help, width, Arguments=arguments, Options=rows))


def shortened(text: str, room: int) -> str:
    """The first sentence of a help text, in so many characters."""
    first, point, _ = " ".join(text.split("\n\n")[0].split()).partition(". ")
    sentence = first + point.rstrip()
    if len(sentence) <= room:
        return sentence
    shown = ""
    for word in sentence.split():
        longer = f"{shown} {word}".lstrip()
        if len(longer) + len("...") > room:
            break
        shown = longer
    return f"{shown}..."


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")  # as shutil, which takes a while to import
    width = int(columns) if columns.isdecimal() else 0
    if not width:
        with suppress(OSError, AttributeError, ValueError):
            width = os.get_terminal_size(sys.__stdout__.fileno()).columns  # pyright: ignore[reportOptionalMemberAccess]
    return max(min((width or _WIDEST + 2) - 2, _WIDEST), _NARROWEST)


def _page(command: str, usage: str, about: str, width: int, **sections: Sequence[tuple[str, str]]) -> Iterator[str]:
    begin = f"Usage: {command} "
    indent = " " * len(begin)
    if len(begin) + _LEAST_USAGE > width:
        yield f"{begin}\n"
        begin = indent = " " * _USAGE_BELOW
    yield textwrap.fill(usage, width, initial_indent=begin, subsequent_indent=indent) + "\n\n"
    paragraphs = (" ".join(paragraph.split("\n")) for paragraph in about.split("\n\n"))
    yield "\n\n".join(
        textwrap.fill(text, width, initial_indent="  ", subsequent_indent="  ", replace_whitespace=False)
        for text in paragraphs
    )
    yield "\n"
    for title, rows in sections.items():
        if rows:
            yield f"\n{title}:\n"
            yield from _rows(rows, width)


def _rows(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Names and what they mean, in two columns; below a name that is too long."""
    column = min(max(len(name) for name, _ in rows), _WIDEST_NAME) + 2
    for name, text in rows:
        lines = textwrap.wrap(text, max(width - column - 2, 10), replace_whitespace=False)
        first = f"{name:{column}}" if len(name) <= column - 2 else f"{name}\n{'':{column + 2}}"
        yield f"  {first}{lines[0]}\n"
        for line in lines[1:]:
            yield f"{'':{column + 2}}{line}\n"
