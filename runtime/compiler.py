"""From source text to the object code of a program's units: the one place where all stages meet."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ulam.library.records import record
from ulam.passes.pipelines import PROFILING, level_pipeline
from ulam.passes.units import UNITS, UnitKind
from ulam.runtime.interrupts import checkpoint

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.frontend import syntax
    from ulam.frontend.source import Source
    from ulam.passes.known_data import KnownData
    from ulam.passes.to_loops.programs import LoweredUnit, ProgramParts


@record(frozen=True)
class CompileOptions:
    """`opt_level` 0 to 4; `include_paths` are searched for `#include`d files.

    `pipeline` names the passes that run instead of those of the level.
    """

    opt_level: int = 3
    include_paths: tuple[str, ...] = ()
    pipeline: str | None = None
    profile: str = "on"
    """`on`: the program's profile statements record; `off`: they are not there; `statements`, `blocks`, `functions`:
    each of these is a region of its own instead (see `passes.insert_profiles`)."""
    target: str = "native"
    """The processor that code is made for (see `emit.target`); other code than `native` is for others to run."""
    lines: bool = False
    """Object code says which instructions belong to which line (see `runtime.line_profile`); they are the same."""
    layouts: bool = True
    """Levels 3 and 4 choose layouts of the data when data are bound (see docs/layouts.md)."""

    @property
    def passes(self) -> str:
        """The passes to run, as pipeline text."""
        passes = level_pipeline(self.opt_level) if self.pipeline is None else self.pipeline
        return ",".join(filter(None, (PROFILING[self.profile], passes)))

    @property
    def wants_data(self) -> bool:
        """Whether the passes specialise the program on its data."""
        return "specialize-data" in self.passes


class EmittedUnit(NamedTuple):
    """LLVM IR of a unit and what the runtime must know of it."""

    text: str
    sites: list[dict[str, Any]]
    n_slots: int
    """Of its table of bound data."""
    draws: bool
    """Random numbers."""
    layouts: list[dict[str, Any]]
    """What is noted of layouts when data are bound (`unit_modules.noted_layouts`)."""


@record
class UnitObject:
    """The same of object code."""

    code: bytes
    sites: list[dict[str, Any]]
    n_slots: int
    draws: bool
    layouts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@record
class Compiler:
    """Compiles one program, unit by unit.

    Raises `ulam.frontend.diagnostics.DiagnosticError` for what is wrong with the program and
    `ulam.passes.errors.NotSupportedError` for what the compiler does not know yet.
    """

    source_text: str
    filename: str = "model.stan"
    options: CompileOptions = field(default_factory=CompileOptions)
    inspect: Callable[[syntax.Program], None] | None = None
    """Called with the typed tree before anything is made of it; may raise."""
    shows_complex: bool = False
    """For traces: complex numbers are there as one value, too."""
    _known: KnownData | None = None
    _units: dict[str, UnitObject] = field(default_factory=dict)
    _source: Source | None = None

    @cached_property
    def module(self) -> ModuleOp:
        """The program in the `stan` dialect, variable form, after the passes of the level."""
        load_stages()
        with compiling():
            from ulam.frontend.check.program import check_program
            from ulam.frontend.lower.program import lower_program
            from ulam.frontend.parse.program import parse_program
            from ulam.frontend.source import Source
            from ulam.passes.complex_to_pairs import split_complex
            from ulam.passes.known_data import specializing_on
            from ulam.passes.pipelines import run_pipeline

            source = self._source = Source(self.source_text, self.filename, include_paths=self.options.include_paths)
            program = parse_program(source)
            checkpoint()
            check_program(program, source)
            if self.inspect is not None:
                self.inspect(program)
            checkpoint()
            module = lower_program(program, source)
            with self._with_source():
                split_complex(module, shown=self.shows_complex)
            with specializing_on(self._known), self._with_source():
                run_pipeline(module, self.options.passes, checkpoint)
            return module

    @contextmanager
    def _with_source(self) -> Iterator[None]:
        """Adds the program's text to what a pass says that it does not know."""
        from ulam.passes.errors import NotSupportedError

        try:
            yield
        except NotSupportedError as error:
            error.source = self._source
            raise

    def specialize(self, known: KnownData) -> None:
        """Units that are compiled from now on are for these data only. Those before, `setup` always, bound them."""
        self._known = known
        for made in ("module", "program"):
            self.__dict__.pop(made, None)

    @cached_property
    def _as_written(self) -> Compiler:
        """The same program at level 0: its units tell which error comes first. Made when an evaluation failed."""
        options = replace(self.options, opt_level=0, pipeline=None)
        return self if options == self.options else Compiler(self.source_text, self.filename, options)

    @cached_property
    def program(self) -> ProgramParts:
        """The program in value form, taken apart."""
        with compiling():
            from ulam.passes.lowering_pipeline import to_value_form

            module = self.module
            with self._with_source():
                return to_value_form(module)

    def metadata(self) -> dict[str, Any]:
        """The program's variables, and per compiled unit its sites and number of bound slots."""
        load_stages()
        from ulam.passes.to_loops.programs import metadata

        units = {name: {"sites": u.sites, "n_slots": u.n_slots} for name, u in self._units.items()}
        return {**metadata(self.program), "units": units}

    def unit(self, name: str) -> bytes:
        """The object code of a unit."""
        return self.compiled(name).code

    def compiled(self, name: str) -> UnitObject:
        """A unit, compiled when it is first asked for."""
        if (found := self._units.get(name)) is None:
            found = self._units[name] = self._compile(UNITS[name])
        return found

    def compile_all(self, names: Iterable[str]) -> None:
        """Compiles units that are not yet: while LLVM is at work on one, the next is lowered."""
        from concurrent.futures import Future, ThreadPoolExecutor, wait

        begun: dict[str, Future[UnitObject]] = {}
        with ThreadPoolExecutor(1, "llvm") as llvm:
            try:
                for name in names:
                    if name not in self._units:
                        unit = self._lower(UNITS[name])
                        begun[name] = llvm.submit(self._generate, UNITS[name], unit)
                while wait(begun.values(), LISTEN_SECONDS).not_done:
                    checkpoint()
            except BaseException:
                for future in begun.values():
                    future.cancel()
                raise
        self._units.update({name: future.result() for name, future in begun.items()})

    def llvm_text(self, name: str) -> str:
        """The LLVM IR of a unit, before LLVM's own passes."""
        return self._lower(UNITS[name]).text

    def _lower(self, kind: UnitKind) -> EmittedUnit:
        if kind.locating and self._as_written is not self:
            return self._as_written._lower(kind)
        with compiling():
            from ulam.passes.lowering_pipeline import begin_unit

            program = self.program
            with self._with_source():
                return self._emit(begin_unit(program, kind, self.options.opt_level))

    def _emit(self, unit: LoweredUnit) -> EmittedUnit:
        """The rest of the way of a unit that has begun to be lowered."""
        from ulam.emit.jit import target
        from ulam.emit.llvm_module import emit_module
        from ulam.emit.llvm_text import EmitOptions
        from ulam.passes.lowering_pipeline import finish_unit
        from ulam.runtime.c_library import exact_blocks

        finish_unit(unit, self.options.opt_level, checkpoint, layouts=self.options.layouts)
        checkpoint()
        processor = target(self.options.target)
        options = EmitOptions(
            self.options.opt_level,
            processor.fused,
            lanes=processor.lanes,
            lines=self.options.lines,
            unit=unit.kind.name,
            exact_blocks=exact_blocks(),
        )
        text = emit_module(unit.module, options)
        sites = [self._described(asdict(site)) for site in unit.sites]
        return EmittedUnit(text, sites, unit.n_slots, unit.draws, unit.layouts)

    def _described(self, site: dict[str, Any]) -> dict[str, Any]:
        """A place where a check may fail; an index that is out of range says of what, as it is written there."""
        from ulam.passes.to_loops.indexing import OUT_OF_RANGE

        if site["message"] == OUT_OF_RANGE and self._source is not None:
            indexed = self._source.indexed_at(site["file"], site["line"], site["column"])
            if indexed is not None:
                site["message"] += f", in `{indexed}`"
        return site

    def _compile(self, kind: UnitKind) -> UnitObject:
        return self._generate(kind, self._lower(kind))

    def _generate(self, kind: UnitKind, unit: EmittedUnit) -> UnitObject:
        from ulam.emit import jit

        pipeline = jit.HOT if kind.hot else jit.ONCE
        code = jit.compile_object(
            unit.text, pipeline, checkpoint, processor=self.options.target, prefix=kind.prefix
        )
        return UnitObject(code, unit.sites, unit.n_slots, unit.draws, unit.layouts)


LISTEN_SECONDS = 0.05
"""How often a thread that waits for LLVM looks whether it is to end."""

RECURSION_LIMIT = 20_000
"""Python frames that every stage has room for: the deepest programs that the parser lets pass (200 levels of nesting,
1000 branches in a row) need about half of it."""

STAGES = (
    "ulam.frontend.parse.program", "ulam.frontend.check.program", "ulam.frontend.lower.program",
    "ulam.passes.pipelines", "ulam.passes.lowering_pipeline", "ulam.emit.llvm_module", "ulam.emit.jit",
)  # fmt: skip
"""What every compile imports."""


@cache
def load_stages() -> None:
    """Imports the compiler, without the cyclic collector: all that imports make stays, and there is a lot of it."""
    with compiling():
        for name in STAGES:
            import_module(name)
        _settle()


def _settle() -> None:
    """Makes all objects that there are old ones, which only full collections look at: not the next one of young ones,
    after a compile. Objects that somebody has frozen stay that; so do all, then."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


_settings_lock = threading.Lock()
_settings: list[tuple[bool, int]] = []  # one for each thread that compiles: what to go back to


@contextmanager
def compiling() -> Iterator[None]:
    """Python's settings while a compiler stage runs; the last of several threads puts back what was before.

    The cyclic collector would cost a compiler's many small objects up to half of its time. Stages walk the program
    recursively, deeper than Python's limit.
    """
    with _settings_lock:
        _settings.append((gc.isenabled(), sys.getrecursionlimit()))
        gc.disable()
        sys.setrecursionlimit(max(RECURSION_LIMIT, sys.getrecursionlimit()))
    try:
        yield
    finally:
        with _settings_lock:
            collect, limit = _settings.pop()
            if not _settings:
                if collect:
                    gc.enable()
                sys.setrecursionlimit(limit)
