"""Which line of the Stan program an instruction belongs to: the DWARF line table of object code.

Needs pyelftools (`pip install ulam[profile]`).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from ulam.emit.object_file import REVERSE
from ulam.runtime.errors import ArgumentError

LINE_TABLE_READER = "elftools"
"""The module that reads line tables."""


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A line of the program, and whether in the reverse sweep."""

    file: str
    line: int
    reverse: bool


@dataclass(frozen=True, slots=True)
class LineRange:
    """Instructions from `start` to before `end` (offsets in the code section) and their line; None: of no line."""

    start: int
    end: int
    place: CodePlace | None


class LineTable:
    """The line table of an object file."""

    def __init__(self, code: bytes) -> None:
        self.ranges = _joined(_filled(_joined(sorted(_ranges(code), key=lambda r: r.start))))
        self._starts = [r.start for r in self.ranges]

    def place(self, offset: int) -> CodePlace | None:
        """The line of the instruction at an offset; None if it belongs to none."""
        number = bisect_right(self._starts, offset) - 1
        if number < 0 or offset >= self.ranges[number].end:
            return None
        return self.ranges[number].place


def _ranges(code: bytes) -> Iterator[LineRange]:
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise ArgumentError("reading line tables needs pyelftools: pip install 'ulam[profile]'") from None
    # the object is relocatable: addresses in the table become offsets in the code section
    dwarf: Any = ELFFile(BytesIO(code)).get_dwarf_info(relocate_dwarf_sections=True)
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = _file_names(program)
        before: Any = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if before is not None and before.address < state.address:
                place = None
                if before.line:
                    place = CodePlace(files[before.file], before.line, before.discriminator == REVERSE)
                yield LineRange(before.address, state.address, place)
            before = None if state.end_sequence else state


def _file_names(program: Any) -> list[str]:
    """By the number that the table uses; DWARF 5 counts from 0."""
    folders = [_text(folder) for folder in program["include_directory"]]
    names = [os.path.join(folders[entry.dir_index], _text(entry.name)) for entry in program["file_entry"]]
    return names if program["version"] >= 5 else ["", *names]


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _joined(ranges: list[LineRange]) -> list[LineRange]:
    """Neighbours of one place as one range."""
    found: list[LineRange] = []
    for r in ranges:
        if found and found[-1].end == r.start and found[-1].place == r.place:
            r = LineRange(found.pop().start, r.end, r.place)
        found.append(r)
    return found


def _filled(ranges: list[LineRange]) -> list[LineRange]:
    """What is of no line, but stands within a line, belongs to that: LLVM drops the line of what it made of several."""
    filled = list(ranges)
    for i in range(1, len(ranges) - 1):
        before, r, after = ranges[i - 1 : i + 2]
        if r.place is None and before.end == r.start and r.end == after.start and _same_line(before.place, after.place):
            filled[i] = LineRange(r.start, r.end, after.place)
    return filled


def _same_line(a: CodePlace | None, b: CodePlace | None) -> bool:
    return a is not None and b is not None and (a.file, a.line) == (b.file, b.line)
