"""Places in Python code, as the spans that the frontend's messages are about.

A `PythonSource` is what the frontend takes for the text of a program: the texts of the Python files that built it, one
behind the other, so that a span is a place in one of them and its message shows that line of Python.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from types import FrameType

from ulam.frontend.source import Source, file_of_source
from ulam.frontend.syntax import Span

_HERE = os.path.dirname(os.path.abspath(__file__))
_BETWEEN = contextlib.__file__
"""The code that runs this package's for a `with`."""
_LINES_OF_NO_TEXT = 10_000


class PythonSource(Source):
    """See above. Files are added when a place in them is first asked for."""

    __slots__ = ("_begins",)

    def __init__(self, name: str) -> None:
        super().__init__("", name)
        self._begins: dict[str, int] = {}

    def here(self) -> Span:
        """The span of the expression or statement that called into this package."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return Span(0, 0)
        line, end_line, column, end_column = _positions(frame)
        name = frame.f_code.co_filename
        begin = self._begin_of(name)
        lines = linecache.getlines(name)
        if not 0 < line <= len(lines):
            start = begin + min(line, _LINES_OF_NO_TEXT) - 1
            return Span(start, start)
        before = begin + sum(map(len, lines[: line - 1]))
        text = lines[line - 1].rstrip("\n")
        start = len(text) - len(text.lstrip()) if column is None else _characters(text, column)
        end = len(text) if end_column is None or end_line != line else _characters(text, end_column)
        return Span(before + start, before + max(end, start))

    def _begin_of(self, name: str) -> int:
        """Where the text of a file begins in this source."""
        if name not in self._begins:
            text = "".join(linecache.getlines(name)) or "\n" * _LINES_OF_NO_TEXT
            self._begins[name] = self.add(file_of_source(_shown(name), text))
        return self._begins[name]


def _is_ours(file: str) -> bool:
    return file == _BETWEEN or os.path.dirname(file) in (_HERE, os.path.dirname(__file__))


def _positions(frame: FrameType) -> tuple[int, int | None, int | None, int | None]:
    """Line, last line, column and last column of what a frame is doing."""
    for index, found in enumerate(frame.f_code.co_positions()):
        if index == frame.f_lasti // 2:
            line, end_line, column, end_column = found
            return line or frame.f_lineno, end_line, column, end_column
    return frame.f_lineno, None, None, None


def _characters(text: str, column: int) -> int:
    """A column in characters; Python counts bytes."""
    return len(text.encode()[:column].decode(errors="ignore"))


def _shown(name: str) -> str:
    """A file as messages name it: from the current folder, where it is below."""
    relative = os.path.relpath(name) if os.path.isabs(name) and os.path.exists(name) else name
    return name if relative.startswith("..") else relative
