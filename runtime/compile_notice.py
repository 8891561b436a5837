"""A sign of life on a terminal while a program is compiled: a line that is gone afterwards.

Not by rich's live displays, which hide the cursor: a process that is killed would leave it hidden.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

shown_on: TextIO | None = None
"""The terminal. Commands that find standard error to be one set it; else nothing is shown."""

DELAY, INTERVAL = 0.3, 0.1
"""Seconds until the line appears, and between its changes."""

BRAILLE, ASCII = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
CLEAR = "\r\x1b[K"

_lock = threading.Lock()
_compiling = 0
_line: _Line | None = None


class _Line:
    """The line, written by a thread of its own until it is stopped."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        self.marks = BRAILLE if "utf" in (terminal.encoding or "").lower() else ASCII
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name="compile-notice", daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.stop.set()
        self.thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        if self.stop.wait(DELAY):
            return
        count = 0
        while True:
            seconds = time.monotonic() - began
            self._write(f"{CLEAR}{self.marks[count % len(self.marks)]} compiling, {seconds:.1f} s")
            count += 1
            if self.stop.wait(INTERVAL):
                break
        self._write(CLEAR)

    def _write(self, text: str) -> None:
        self.terminal.write(text)
        self.terminal.flush()


@contextmanager
def compile_notice() -> Iterator[None]:
    """Shows the line while the block runs, in as many threads as there are."""
    global _compiling, _line
    if shown_on is None:
        yield
        return
    with _lock:
        _compiling += 1
        if _line is None:
            _line = _Line(shown_on)
    try:
        yield
    finally:
        with _lock:
            _compiling -= 1
            ended = _line if _compiling == 0 else None
            if ended is not None:
                _line = None
                ended.end()
