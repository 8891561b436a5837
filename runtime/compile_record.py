"""What happens to a program on its way to machine code, pass by pass: what `ulam explain-compile` shows.

    record = record_compile(text, "model.stan", CompileOptions(lines=True))
    for run in record.runs:
        print(run.name, run.seconds, run.ops)

A run has the IR that the pass left, each line with the place in the program that it is of; passes that changed nothing
have none. The compile is that of `Compiler`, watched (`passes.running`): times are those of the passes alone.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import field
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from ulam.library.records import record
from ulam.passes.running import PassObserver, observed_by
from ulam.passes.units import UNITS
from ulam.runtime.assembly_listing import Assembly, read_assembly
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler, load_stages
from ulam.runtime.interpreter_settings import compiling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from ulam.emit.jit import Pipeline
    from ulam.passes.known_data import KnownData
    from ulam.passes.remarks import Remark

MOST_PRINTED_OPS = 40_000
"""Of larger programs the IR is kept at the ends of phases only: printing takes longer than the passes."""

Place = tuple[str, int]
"""File and line of the program."""


class IrLine(NamedTuple):
    """A line of IR, and what of the program it was made for."""

    text: str
    place: Place | None = None


@record
class PassRun:
    """One run of a pass; those that it has as steps follow it, one deeper.

    `ops`: how many there are behind it, by dialect; `before`: how many there were. `listing` is None where nothing
    changed, where the steps have it, and where it was not kept. `changed`: None if that was not looked at.
    """

    name: str
    phase: str
    depth: int
    seconds: float = 0.0
    before: int = 0
    ops: dict[str, int] = field(default_factory=dict[str, int])
    changed: bool | None = None
    listing: list[IrLine] | None = None
    has_steps: bool = False

    @property
    def after(self) -> int:
        """How many ops there are behind it."""
        return sum(self.ops.values())


@record
class CompileRecord:
    """A compile: `runs` in the order in which they began, the first is reading the program."""

    text: str
    name: str
    sources: dict[str, str]
    """The files of the program, by name."""
    unit: str
    passes: str
    runs: list[PassRun]
    remarks: list[Remark]
    assembly: Assembly

    @property
    def seconds(self) -> float:
        """CPU time of the whole."""
        return sum(run.seconds for run in self.runs if run.depth == 0)


READING, LEVEL, VALUES, LOOPS, MACHINE = "reading", "level", "values", "loops", "machine"
PHASES = {
    READING: "Reading",
    LEVEL: "Stan to Stan",
    VALUES: "Variables to values",
    LOOPS: "Loops",
    MACHINE: "Machine code",
}
"""What the phases are called, in their order."""


# ---------------------------------------------------------------- watching passes


class _Watcher(PassObserver):
    """Makes a `PassRun` of each pass that it sees."""

    def __init__(self) -> None:
        self.runs: list[PassRun] = []
        self.phase = READING
        self._inside: list[tuple[PassRun, float, float]] = []
        self._spent = 0.0
        """Seconds of this watcher's own work, which is no pass."""
        self._lines: list[IrLine] | None = None
        self._unprinted: tuple[PassRun, ModuleOp] | None = None
        """The last run, if what it left is too large to be printed behind every run."""

    def before(self, name: str, module: ModuleOp | None) -> None:
        begun = time.process_time()
        if module is not None and self._lines is None:
            self.begin(module)
        if self._inside:
            self._inside[-1][0].has_steps = True
        run = PassRun(name, self.phase, len(self._inside))
        if module is not None:
            run.before = sum(_ops_of(module).values())
        self.runs.append(run)
        now = time.process_time()
        self._spent += now - begun
        self._inside.append((run, now, self._spent))

    def after(self, name: str, module: ModuleOp) -> None:
        now = time.process_time()
        run, begun, spent = self._inside.pop()
        run.seconds = now - begun - (self._spent - spent)
        run.ops = _ops_of(module)
        if run.has_steps:
            steps = self.runs[self.runs.index(run) + 1 :]
            run.changed = any(step.changed for step in steps)
        else:
            self.look(run, module)
        self._spent += time.process_time() - now

    def begin(self, module: ModuleOp) -> None:
        """Notes the program as it is before the first pass."""
        run = self.runs[0]
        run.ops = _ops_of(module)
        run.changed = True
        run.listing = self._lines = print_lines(module)

    def look(self, run: PassRun, module: ModuleOp) -> None:
        """Keeps what the pass left, if it is not what there was."""
        if run.after > MOST_PRINTED_OPS:
            run.changed = True if run.before != run.after else None
            self._unprinted, self._lines = (run, module), None
            return
        self._unprinted = None
        lines = print_lines(module)
        run.changed = self._lines is None or not same(lines, self._lines)
        if run.changed:
            run.listing = self._lines = lines

    def end_phase(self) -> None:
        """Keeps what the phase left, if that was not done behind its last run. Before anything else changes it."""
        if self._unprinted is None:
            return
        begun = time.process_time()
        run, module = self._unprinted
        run.changed = True
        run.listing = self._lines = print_lines(module)
        self._unprinted = None
        self._spent += time.process_time() - begun

    def close(self, run: PassRun, lines: list[IrLine] | None) -> None:
        """Adds what is no pass: reading, emission, LLVM."""
        run.changed = True
        run.listing = lines
        self.runs.append(run)


_NUMBER = re.compile(r"%\d+|(?<=%)[A-Za-z_$.][\w$.]*_\d+")


def plain(text: str) -> str:
    """A line without the numbers of its values: those change when an op is written ahead of it."""
    return _NUMBER.sub("%", text)


def same(one: list[IrLine], other: list[IrLine]) -> bool:
    """Whether two listings differ in numbers of values only."""
    return len(one) == len(other) and all(
        a.text == b.text or plain(a.text) == plain(b.text) for a, b in zip(one, other, strict=True)
    )


def _own(module: ModuleOp) -> Iterator[Operation]:
    """What a program is made of, but for the library's functions; or a module's functions."""
    for op in module.body.block.ops:
        if op.name == "stan.program":
            for inner in op.regions[0].block.ops:
                if "library" not in inner.properties:
                    yield inner
        else:
            yield op


def _ops_of(module: ModuleOp) -> dict[str, int]:
    """How many ops there are, by dialect."""
    from ulam.dialects.walk import ops_within

    counts: Counter[str] = Counter()
    for op in _own(module):
        counts[op.dialect_name()] += 1
        counts.update(inner.dialect_name() for inner in ops_within(op))
    return dict(counts)


def print_lines(module: ModuleOp) -> list[IrLine]:
    """The IR of a module, without the library's functions, with the place of each line."""
    from xdsl.printer import Printer

    from ulam.dialects.places import place_of

    places: dict[int, Place] = {}

    class PlacedPrinter(Printer):
        """Notes on which lines an op begins and ends."""

        def print_op(self, op: Operation) -> None:
            first = self._current_line
            super().print_op(op)
            if (found := place_of(op.location)) is not None:
                place = found.filename.data, found.line.data
                places.setdefault(first, place)
                places.setdefault(self._current_line, place)

    stream = StringIO()
    printer = PlacedPrinter(stream)
    for op in _own(module):
        printer.print_op(op)
        printer.print_string("\n")
    return [IrLine(text, places.get(number)) for number, text in enumerate(stream.getvalue().splitlines())]


# ---------------------------------------------------------------- LLVM IR

_NODE = r"^!(\d+) = (?:distinct )?!DI"
_LOCATION = re.compile(_NODE + r"Location\(line: (\d+)(?:, column: \d+)?, scope: !(\d+)", re.MULTILINE)
_SCOPE = re.compile(_NODE + r"(?:Subprogram|LexicalBlockFile|LexicalBlock)\(.*?\bfile: !(\d+)", re.MULTILINE)
_FILE = re.compile(_NODE + r'File\(filename: "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_USE = re.compile(r",? !dbg !(\d+)")
_ESCAPE = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[0].replace("\\", "")).decode("utf-8", "replace"), text)


def llvm_lines(text: str) -> list[IrLine]:
    """The functions of a module of LLVM IR that has debug information, which is what says where they are from."""
    files = {number: _unescaped(name) for number, name in _FILE.findall(text)}
    scopes = {number: files.get(file, "") for number, file in _SCOPE.findall(text)}
    places = {
        number: (scopes.get(scope, ""), int(line)) for number, line, scope in _LOCATION.findall(text) if line != "0"
    }
    lines: list[IrLine] = []
    for line in text.splitlines():
        if line.startswith(("!", "source_filename", "target ", "; ModuleID", "attributes ")):
            continue
        if not line and (not lines or not lines[-1].text):
            continue
        found = _USE.search(line)
        lines.append(IrLine(_USE.sub("", line), places.get(found[1]) if found else None))
    return lines


# ---------------------------------------------------------------- the whole way


def record_compile(
    text: str, name: str, options: CompileOptions, unit: str = "gradient_propto", known: KnownData | None = None
) -> CompileRecord:
    """Compiles a unit of a program, and notes what happened. Raises what `Compiler` does.

    `known` is what level 4 specialises on. `options.lines` must be set: assembly has its places from line tables.
    """
    from ulam.passes.remarks import collect_remarks

    load_stages()
    _load_passes()
    watcher = _Watcher()
    compiler = Compiler(text, name, options)
    if known is not None:
        compiler.specialize(known)
    with compiling(), collect_remarks() as remarks, observed_by(watcher):
        first = PassRun("parse, check, lower", READING, 0)
        watcher.runs.append(first)
        watcher.phase = LEVEL
        begun, spent = time.process_time(), watcher._spent
        module = compiler.module
        if watcher._lines is None:
            watcher.begin(module)
        first.seconds = max(0.0, _rest(watcher, begun, spent, 1))
        watcher.end_phase()
        watcher.phase = VALUES
        _ = compiler.program
        watcher.end_phase()
        watcher.phase = LOOPS
        begun, spent, count = time.process_time(), watcher._spent, len(watcher.runs)
        emitted = compiler.llvm_text(unit)
        seconds = max(0.0, _rest(watcher, begun, spent, count))
        watcher.end_phase()
    watcher.close(PassRun("emit LLVM IR", MACHINE, 0, seconds), llvm_lines(emitted))
    assembly = _generate(watcher, emitted, compiler.llvm_pipeline(UNITS[unit]))
    return CompileRecord(
        text, name, _sources(compiler, text, name), unit, options.passes, watcher.runs, remarks, assembly
    )


def _load_passes() -> None:
    """Else the first run of a pass would pay for its import."""
    from ulam.passes.pipelines import PASSES, pass_class

    for name in PASSES:
        pass_class(name)


def _rest(watcher: _Watcher, begun: float, spent: float, first: int) -> float:
    """The time since `begun` that no pass had."""
    passes = sum(run.seconds for run in watcher.runs[first:] if run.depth == 0)
    return time.process_time() - begun - (watcher._spent - spent) - passes


def _generate(watcher: _Watcher, emitted: str, pipeline: Pipeline) -> Assembly:
    from ulam.emit import jit

    begun = time.process_time()
    optimized, between, assembly = jit.compile_listings(emitted, pipeline)
    watcher.close(PassRun("LLVM's passes", MACHINE, 0, between - begun), llvm_lines(optimized))
    run = PassRun("LLVM's code generation", MACHINE, 0, time.process_time() - between)
    listing = read_assembly(assembly)
    watcher.close(run, [IrLine(line.text, line.place) for line in listing.lines])
    return listing


def _sources(compiler: Compiler, text: str, name: str) -> dict[str, str]:
    """The program's file and those that it includes."""
    found = {name: text}
    for path in compiler.included_files:
        found[str(path)] = path.read_text(encoding="utf-8", errors="replace")
    return found


def changed_lines(before: Iterable[IrLine], after: list[IrLine]) -> list[tuple[str, int, int, int, int]]:
    """What became of a listing, as opcodes of `difflib`; numbers of values do not count."""
    from difflib import SequenceMatcher

    old, new = [plain(line.text) for line in before], [plain(line.text) for line in after]
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(inner_old) * len(inner_new) > MOST_COMPARED:
        codes = [("replace", 0, len(inner_old), 0, len(inner_new))]
    else:
        codes = SequenceMatcher(None, inner_old, inner_new, autojunk=False).get_opcodes()
    shifted = [(kind, a + head, b + head, c + head, d + head) for kind, a, b, c, d in codes]
    return [
        ("equal", 0, head, 0, head),
        *shifted,
        ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
    ]


MOST_COMPARED = 4_000_000
"""Products of two numbers of lines up to which they are compared line by line: about a second."""
