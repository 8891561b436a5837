"""Which lines of a Stan program take the time: a sampling profile of its compiled code.

    model = StanModel("model.stan", data, lines=True)
    with LineSampler(model) as sampler:
        for _ in range(1000):
            model.log_density_gradient(theta)
    print(sampler.profile)

Threads that evaluate are interrupted every 0.2 ms of the time that they run, and the instruction that they were at is
counted (c/sampler.c); the line table of the object code says which line that is. The compiled code is the same as
without `lines=True`, instruction by instruction. One interruption takes a few microseconds, on virtual machines 20.

What a sample can and cannot tell: a line's share of n samples has a standard error of sqrt(share (1 - share) / n).
Where LLVM makes one instruction of two lines' work, one of the lines has it. C functions (libm, the runtime's kernels)
count for the line that calls them.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ulam.runtime.c_library import library
from ulam.runtime.errors import ArgumentError
from ulam.runtime.json_text import json_page
from ulam.runtime.native import Sample, array_of
from ulam.runtime.output_files import write_text
from ulam.runtime.profiling.loaded_code import TracedCode

if TYPE_CHECKING:
    from ulam.runtime.model import FloatArray, StanModel
    from ulam.runtime.profiling.line_table import CodePlace

INTERVAL = 2e-4
"""Seconds of a thread's running time between two samples."""

# As in c/sampler.h.
_CALLED, _UNKNOWN, _OUTSIDE = 1 << 63, 1, 2

_SECONDS_PER_CALL = 0.05
"""How long `sample_lines` stays away from Python, which could not be interrupted otherwise."""


@dataclass(frozen=True, slots=True)
class LineRow:
    """A line of the program. Of its `samples`, `forward` and `reverse` are those of the two sweeps; `called` were in C
    functions (in both sweeps together). `share` is that of all samples within evaluations, from 0 to 1.
    """

    file: str
    line: int
    text: str
    samples: int
    share: float
    forward: int
    reverse: int
    called: int


@dataclass
class LineProfile:
    """The lines that took time, those with most samples first.

    `total` samples were within evaluations of the model; of these, `unattributed` belong to no line (the frame of an
    evaluation: parameters copied in, the gradient out). `outside`: in a thread that was not evaluating just then, or
    another model. `lost`: for which the sampler had no room. `interval` is in seconds.
    """

    rows: list[LineRow]
    total: int
    unattributed: int
    outside: int
    lost: int
    interval: float
    sources: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def row(self, line: int, file: str | None = None) -> LineRow | None:
        """What was counted on a line; of the program itself, or of a file that it includes."""
        for row in self.rows:
            if row.line == line and (file is None and row.file == self._main or row.file == file):
                return row
        return None

    @property
    def _main(self) -> str:
        return next(iter(self.sources), "")

    def listing(self) -> Iterator[tuple[str, int, str, LineRow | None]]:
        """The program and what it includes, line by line: file, number, text, and what was counted there."""
        counted = {(row.file, row.line): row for row in self.rows}
        for file in self.files:
            lines = self.sources.get(file, "").splitlines()
            last = max([len(lines), *(line for name, line in counted if name == file)])
            for number in range(1, last + 1):
                yield file, number, lines[number - 1] if number <= len(lines) else "", counted.get((file, number))

    @property
    def files(self) -> list[str]:
        """The program's file, and those of the other lines."""
        return list(self.sources) + sorted({row.file for row in self.rows} - set(self.sources))

    def annotated(self) -> str:
        """The program with the share of each line in front of it: `share% | line | text`."""
        text: list[str] = []
        lines = list(self.listing())
        for file in self.files:
            if len(self.files) > 1:
                text.append(f"{file}:")
            own = [line[1:] for line in lines if line[0] == file]
            width = len(str(len(own)))
            for number, line, row in own:
                shown = f"{100 * row.share:5.1f}%" if row is not None else " " * 6
                text.append(f"{shown} | {number:>{width}} | {line}".rstrip())
        return "\n".join(text)

    def __str__(self) -> str:
        other = self.unattributed / self.total if self.total else 0.0
        return (
            f"{self.annotated()}\n{self.total} samples, one every {1e3 * self.interval:g} ms; "
            f"of no line: {100 * other:.1f}%"
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: names of the fields, `rows` as a list of objects."""
        return {name: value for name, value in asdict(self).items() if name != "sources"}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """JSON text, also written to `path` if that is given."""
        text = json_page(self.to_dict())
        if path is not None:
            write_text(path, text)
        return text


class LineSampler:
    """Samples evaluations of a model, in all threads, within its `with` block. `profile` is there when that ended.

    `model` must have been made with `lines=True`. One sampler at a time may be at work in a process. It uses SIGPROF;
    a handler for that which was installed before is put back in the end.
    """

    def __init__(self, model: StanModel, *, interval: float = INTERVAL) -> None:
        if not model.has_lines:
            raise ArgumentError("the model has no line table: make it with StanModel(..., lines=True)")
        if not 1e-5 <= interval <= 1.0:
            raise ArgumentError(f"interval must be from 1e-5 to 1 second, found {interval}")
        self._model = model
        self._interval = interval
        self._profile: LineProfile | None = None

    @property
    def profile(self) -> LineProfile:
        """What was sampled."""
        if self._profile is None:
            raise ArgumentError("the profile is there when the sampler's `with` block has ended")
        return self._profile

    def __enter__(self) -> LineSampler:
        error = library().ulam_sampler_start(round(1e9 * self._interval))
        if error == errno.EBUSY:
            raise ArgumentError("another LineSampler is at work in this process")
        if error == errno.ENOSYS:
            raise ArgumentError("sampling by line is not available on this system: it needs Linux on x86-64 or AArch64")
        if error:
            raise OSError(error, f"sampling cannot begin: {os.strerror(error)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        library().ulam_sampler_stop()
        samples, lost = _samples()
        self._profile = _profile(samples, lost, self._interval, self._model)


def sample_lines(model: StanModel, theta: FloatArray, *, seconds: float = 1.0, jacobian: bool = True) -> LineProfile:
    """The profile of gradients at `theta`, one after the other for about `seconds`; `model` made with `lines=True`."""
    if not seconds > 0:
        raise ArgumentError(f"seconds must be positive, found {seconds}")
    model.time_gradients(theta, 1, jacobian=jacobian)  # compiles
    once = max(model.time_gradients(theta, 10, jacobian=jacobian) / 10, 1e-9)
    count = max(1, round(min(seconds, _SECONDS_PER_CALL) / once))
    left = seconds
    with LineSampler(model) as sampler:
        while left > 0:
            left -= model.time_gradients(theta, count, jacobian=jacobian)
    return sampler.profile


# ---------------------------------------------------------------- from samples to lines


def _samples() -> tuple[list[tuple[int, int]], int]:
    """What the sampler counted, as pairs of place and count; and how many samples it lost."""
    lost = ctypes.c_int64()
    count = library().ulam_sampler_read(None, 0, ctypes.byref(lost))
    found = array_of(Sample, count)
    count = min(count, library().ulam_sampler_read(ctypes.addressof(found), count, ctypes.byref(lost)))
    return [(sample.place, sample.count) for sample in found[:count]], lost.value


def _profile(samples: list[tuple[int, int]], lost: int, interval: float, model: StanModel) -> LineProfile:
    codes = [unit.loaded for unit in model.loaded_units() if isinstance(unit.loaded, TracedCode)]
    totals: Counter[tuple[str, int]] = Counter()
    reverse: Counter[tuple[str, int]] = Counter()
    called: Counter[tuple[str, int]] = Counter()
    unattributed = outside = 0
    for place, count in samples:
        address = place & ~_CALLED
        if address == _OUTSIDE:
            outside += count
            continue
        if address == _UNKNOWN:
            unattributed += count
            continue
        code = next((c for c in codes if any(f.start <= address < f.end for f in c.functions)), None)
        if code is None:
            outside += count  # another model's
            continue
        found: CodePlace | None = code.lines.place(address - code.base)
        if found is None:
            unattributed += count
            continue
        key = (found.file, found.line)
        totals[key] += count
        reverse[key] += count if found.reverse else 0
        called[key] += count if place & _CALLED else 0
    total = sum(totals.values()) + unattributed
    sources = _sources(model, {file for file, _ in totals})
    text = _line_reader(sources)
    rows = [
        LineRow(*key, text(*key), n, n / total, n - reverse[key], reverse[key], called[key])
        for key, n in sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    ]
    return LineProfile(rows, total, unattributed, outside, lost, interval, sources)


def _sources(model: StanModel, files: set[str]) -> dict[str, str]:
    """The text of the program, and of the files that it includes."""
    text, main = model.source
    sources = {main: text}
    for file in sorted(files - {main}):
        path = Path(file)
        sources[file] = path.read_text(encoding="utf-8") if path.is_file() else ""
    return sources


def _line_reader(sources: dict[str, str]) -> Callable[[str, int], str]:
    lines = {file: text.splitlines() for file, text in sources.items()}

    def read(file: str, line: int) -> str:
        of_file = lines.get(file, [])
        return of_file[line - 1].strip() if 1 <= line <= len(of_file) else ""

    return read
