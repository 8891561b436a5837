"""Makes a failing Stan program small: deletes statements, then parts of expressions, as long as it still fails.

Works on lines, as `program_generator` writes them: a statement is a line, or the lines from one that ends in `{` to the
`}` that closes it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

_GROUP = re.compile(r"[\w.']*\([^()]*\)'?")
_SIMPLE = ("0.5", "1", "a", "th", "x", "{1, 2, 3}", "M", "A")


def reduce_program(text: str, still_fails: Callable[[str], bool], seconds: float = 120.0) -> str:
    """The smallest program found within a time limit. `still_fails` must be false for what does not compile."""
    deadline = time.monotonic() + seconds
    text = _first(text, lambda lines: _without_parts(lines, largest_first=True), still_fails, deadline)
    text = _first(text, _with_simpler_expressions, still_fails, deadline)
    return _first(text, lambda lines: _without_parts(lines, largest_first=False), still_fails, deadline)


def _first(
    text: str, candidates: Callable[[list[str]], Iterator[list[str]]], fails: Callable[[str], bool], deadline: float
) -> str:
    """Takes smaller programs that fail, until there is none; goes on where it was."""
    lines = [line for line in text.split("\n") if line.strip()]
    position, since_success = 0, 0
    while time.monotonic() < deadline:
        found = list(candidates(lines))
        if since_success >= len(found):
            break
        position %= len(found)
        if fails("\n".join(found[position]) + "\n"):
            lines, since_success = found[position], 0
        else:
            position, since_success = position + 1, since_success + 1
    return "\n".join(lines) + "\n"


def _parts(lines: list[str]) -> list[tuple[int, int]]:
    """First and last line of every statement."""
    parts: list[tuple[int, int]] = []
    open_lines: list[int] = []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("}") and open_lines:
            start = open_lines.pop()
            if not stripped.endswith("{"):
                parts.append((start, number))
            else:
                open_lines.append(start)  # `} else {` goes on
        elif stripped.endswith("{"):
            open_lines.append(number)
        else:
            parts.append((number, number))
    return parts


def _without_parts(lines: list[str], *, largest_first: bool) -> Iterator[list[str]]:
    parts = sorted(_parts(lines), key=lambda part: part[0] - part[1] if largest_first else part[1] - part[0])
    for start, end in parts:
        yield lines[:start] + lines[end + 1 :]
    for start, end in parts:
        if end > start and not any("else" in line for line in lines[start : end + 1]):
            yield lines[:start] + lines[start + 1 : end] + lines[end + 1 :]


def _with_simpler_expressions(lines: list[str]) -> Iterator[list[str]]:
    for number, line in enumerate(lines):
        for group in _GROUP.finditer(line):
            inner = group.group().partition("(")[2].rstrip("')")
            for simple in (inner, *_SIMPLE):
                if len(simple) < len(group.group()):
                    changed = line[: group.start()] + simple + line[group.end() :]
                    yield [*lines[:number], changed, *lines[number + 1 :]]
