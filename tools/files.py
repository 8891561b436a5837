"""The files that a command line names: what is wrong with them is said before the run; `-` is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from ulam.frontend.encoding import decoded
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import check_writable, is_replaced
from ulam.tools import options
from ulam.tools.exits import UsageError

STANDARD_INPUT = "<stdin>"
"""How messages call it."""


def checked_files(command: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a command's options, with what standard input has in place of `-`.

    Raises UsageError for files that exclude each other, OSError for one that cannot be written.
    """
    asked = [told for told, file in options.files(command, values, written=False) if file == options.STANDARD_STREAM]
    if len(asked) > 1:
        raise UsageError(f"standard input can be read once, and {' and '.join(asked)} are -")
    values = {name: _output(name, value) for name, value in values.items()}
    check_outputs(command, values)
    if not asked:
        return values
    text = standard_input()
    return {name: _replaced(name, value, text) for name, value in values.items()}


def check_outputs(command: str, values: dict[str, Any]) -> None:
    """Whether each file can be written, and is no input and no other output."""
    inputs = [(told, file) for told, file in options.files(command, values, written=False) if os.path.exists(file)]
    seen: dict[str, str] = {}
    if values.get("no_output"):
        values = values | {"output": None}
    for told, file in options.files(command, values, written=True):
        if file == options.STANDARD_STREAM:
            continue
        if not file:
            raise UsageError(f"{told}: give the name of a file")
        check_writable(file)
        if not is_replaced(file):
            continue
        for other, given in inputs:
            if os.path.exists(file) and os.path.samefile(given, file):
                raise UsageError(f"{told} '{file}' is the file of {other}, which would be lost")
        if (other := seen.setdefault(os.path.realpath(file), told)) is not told:
            raise UsageError(f"{told} and {other} are the same file, '{file}'")


def is_standard_output(output: str | Path | None) -> bool:
    """Whether what is written takes the place of text."""
    return str(output) in (options.STANDARD_STREAM, options.STANDARD_OUTPUT)


def standard_input() -> NamedText:
    """All of standard input."""
    stream = getattr(sys.stdin, "buffer", None)
    return NamedText(sys.stdin.read() if stream is None else decoded(stream.read()), STANDARD_INPUT)


def _output(name: str, value: Any) -> Any:
    """`-` as the file of an output: the device. JSON has its own way to take the place of a table."""
    option = options.OPTIONS[name]
    stream = option.writes and option.alone is None and str(value) == options.STANDARD_STREAM
    return Path(options.STANDARD_OUTPUT) if stream else value


def _replaced(name: str, value: Any, text: NamedText) -> Any:
    if not options.OPTIONS[name].reads or value is None:
        return value
    if isinstance(value, list):
        return [text if str(entry) == options.STANDARD_STREAM else entry for entry in value]
    return text if str(value) == options.STANDARD_STREAM else value
