"""The files that a command line names: what is wrong with them is said before the run; `-` is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ulam.frontend.encoding import decoded
from ulam.runtime import output_files
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import check_writable, is_replaced
from ulam.tools import commands, options
from ulam.tools.exits import UsageError

STANDARD_INPUT = "<stdin>"
"""How messages call it."""


def checked_files(command: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a command's options, with what standard input has in place of `-`.

    Raises UsageError for files that exclude each other, OSError for one that cannot be written.
    """
    asked = [told for told, file in commands.files(command, values, written=False) if file == options.STANDARD_STREAM]
    if len(asked) > 1:
        raise UsageError(f"standard input can be read once, and {' and '.join(asked)} are -")
    values = {name: _output(name, value) for name, value in values.items()}
    check_outputs(command, values)
    if not asked:
        return values
    text = standard_input()
    return {name: _replaced(name, value, text) for name, value in values.items()}


def check_outputs(command: str, values: dict[str, Any]) -> None:
    """Whether each file can be written, and is no input and no other output; one at most is standard output."""
    if values.get("no_output"):
        values = values | {"output": None}
    outputs = list(commands.files(command, values, written=True))
    printed = [told for told, file in outputs if is_standard_output(file)]
    if len(printed) > 1:
        raise UsageError(f"standard output takes one thing, and {' and '.join(printed)} are -")
    inputs = list(commands.files(command, values, written=False))
    seen: dict[str, str] = {}
    for told, file in outputs:
        if file == options.STANDARD_STREAM:
            continue
        check_writable(file)
        if not is_replaced(file):
            continue
        if (other := overwritten(file, inputs, values.get("include_path") or ())) is not None:
            raise UsageError(f"{told} '{file}' is {other}, which would be lost")
        if (other := seen.setdefault(os.path.realpath(file), told)) is not told:
            raise UsageError(f"{told} and {other} are the same file, '{file}'")


def overwritten(output: str, inputs: Iterable[tuple[str, str]], include_paths: Iterable[str | Path] = ()) -> str | None:
    """Which of the inputs (what it is called, its file) an output would replace, files they include among them."""
    if not os.path.exists(output):
        return None
    paths = list(include_paths)
    for told, given in inputs:
        if not os.path.exists(given):
            continue
        if os.path.samefile(given, output):
            return f"the file of {told}"
        for included in _included(given, paths):
            if os.path.samefile(included, output):
                return f"a file that {given} includes"
    return None


def _included(program: str, include_paths: Sequence[str | Path]) -> list[Path]:
    """The files that a program includes; none of one that cannot be read, which is told when it is."""
    if not program.endswith(".stan") or not os.path.isfile(program):
        return []
    from ulam.frontend.diagnostics import DiagnosticError
    from ulam.frontend.source import Source

    try:
        return Source.read(program, include_paths).included_files
    except (OSError, UnicodeDecodeError, DiagnosticError):
        return []


def is_standard_output(output: str | Path | None) -> bool:
    """Whether what is written takes the place of text."""
    return output is not None and (str(output) == options.STANDARD_STREAM or output_files.is_standard_output(output))


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
