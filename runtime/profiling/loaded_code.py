"""Compiled programs in the process, for those that look at it from outside: debuggers, `perf`, and the line sampler.

Object code with debug information (`StanModel(..., lines=True)`) is shown to GDB when it is loaded, so that a backtrace
has lines of the Stan program. With the environment variable ULAM_PERF=1, whatever is loaded is also written to
`/tmp/perf-<process>.map`, where `perf report` looks for names of code made at run time: a name for each line of the
program, where lines are known and pyelftools is installed, else for each function.
"""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ulam.emit.object_file import ObjectFile
from ulam.runtime.c_library import library
from ulam.runtime.profiling.line_table import LINE_TABLE_READER, LineTable

if TYPE_CHECKING:
    from ulam.runtime.program import LoadedObject

MATH_FUNCTIONS = "ulam."
"""What the names of our own math functions begin with: their time is that of the line that calls them."""

_perf_lock = threading.Lock()


def _not_through_links(path: str, flags: int) -> int:
    """Opens a file in a folder that others may write to: a link there may be theirs."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function of a compiled program, from `start` to before `end`, addresses in the process."""

    name: str
    start: int
    end: int


class TracedCode:
    """A loaded object of which is known where its functions are. It is shown to others as long as it lives."""

    def __init__(self, loaded: LoadedObject, code: bytes, *, has_lines: bool, for_perf: bool) -> None:
        self._loaded = loaded
        self._object = ObjectFile(code)
        self.has_lines = has_lines
        exported = next(f for f in self._object.functions if f.exported)
        self.base = loaded.address(exported.name) - exported.offset
        """Where the section of the code begins."""
        self.functions = [
            LoadedFunction(f.name, self.base + f.offset, self.base + f.offset + f.size)
            for f in self._object.hot_functions
        ]
        if self.has_lines:
            self._show()
        if for_perf:
            self._write_perf_map()

    def address(self, symbol: str) -> int:
        """Where a function begins."""
        return self._loaded.address(symbol)

    @cached_property
    def lines(self) -> LineTable:
        """Its line table; offsets count from `base`."""
        return LineTable(self._object.code)

    def _show(self) -> None:
        """To debuggers, and to the sampler of lines."""
        runtime = library()
        image = self._object.placed({self._object.code_section: self.base})
        registered = runtime.ulam_debugger_register(image, len(image))
        if not registered:
            raise MemoryError("no memory to show compiled code to debuggers")
        weakref.finalize(self, runtime.ulam_debugger_unregister, registered)
        for function in self.functions:
            if function.name.startswith(MATH_FUNCTIONS) or runtime.ulam_sampler_add(function.start, function.end):
                continue
            weakref.finalize(self, runtime.ulam_sampler_remove, function.start)

    def _write_perf_map(self) -> None:
        if self.has_lines and find_spec(LINE_TABLE_READER) is not None:
            rows = self._rows_of_lines()
        else:
            rows = [(f.start, f.end, f.name) for f in self.functions]
        text = "".join(f"{start:x} {end - start:x} {name}\n" for start, end, name in rows)
        with _perf_lock, open(f"/tmp/perf-{os.getpid()}.map", "a", encoding="utf-8", opener=_not_through_links) as file:
            file.write(text)

    def _rows_of_lines(self) -> list[tuple[int, int, str]]:
        """Start, end and name of the instructions of each line; of no line, those of the function."""
        rows: list[tuple[int, int, str]] = []
        for function in self.functions:
            position = function.start
            for r in self.lines.ranges:
                start, end = max(self.base + r.start, position), min(self.base + r.end, function.end)
                if r.place is None or start >= end:
                    continue
                if position < start:
                    rows.append((position, start, function.name))
                sweep = " (reverse)" if r.place.reverse else ""
                rows.append((start, end, f"{r.place.file}:{r.place.line}{sweep}"))
                position = end
            if position < function.end:
                rows.append((position, function.end, function.name))
        return rows
