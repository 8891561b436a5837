"""From source text to the object code of a program's units: the one place where all stages meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cache, cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ulam.library.records import record
from ulam.passes.known_data import KnownSwitches
from ulam.passes.pipeline_order import check_order, split
from ulam.passes.units import UNITS, UnitKind
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.interpreter_settings import compiling, settle
from ulam.runtime.interrupts import checkpoint
from ulam.runtime.job_thread import JobThread
from ulam.runtime.named_text import is_module
from ulam.runtime.unit_objects import UnitObject

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp

    from ulam.emit.jit import Pipeline
    from ulam.frontend import syntax
    from ulam.frontend.source import Source
    from ulam.passes.known_data import KnownData
    from ulam.passes.to_loops.programs import LoweredUnit, ProgramParts
    from ulam.runtime.units_by_content import UnitsByContent, UnitStore


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
    store: UnitStore | None = None
    """Where units, and parts of large ones, are kept by what they are compiled from."""
    _known: KnownData | KnownSwitches | None = None
    _units: dict[str, UnitObject] = field(default_factory=dict)
    _emitted: dict[str, EmittedUnit] = field(default_factory=dict[str, EmittedUnit])
    """Units of which a first version was made."""
    _source: Source | None = None
    _libraries: dict[str, str] = field(default_factory=dict[str, str])
    """Of other packages: names, and what changes with them."""

    @cached_property
    def module(self) -> ModuleOp:
        """The program in the `stan` dialect, variable form, after the passes of the level.

        A program that comes in value form is past these passes, and stays as it is.
        """
        self._by_content  # noqa: B018  (takes out of the program what are pieces)
        module = self._as_decided
        with compiling():
            from ulam.passes.known_data import specializing_on
            from ulam.passes.pipelines import run_pipeline

            options = replace(self.options, pipeline="") if self._has_few_passes else self.options
            passes = split(options.passes)[0]
            if is_module(self.filename):
                from ulam.runtime.modules.reading import is_in_value_form

                passes = "" if is_in_value_form(module) else passes
            with specializing_on(self._known_data), self._with_source():
                run_pipeline(module, passes, checkpoint, skip_unused=bool(passes))
            return module

    @property
    def _known_data(self) -> KnownData | None:
        """Data that passes may know; switches are decided in the program (`_as_decided`)."""
        return None if isinstance(self._known, KnownSwitches) else self._known

    @cached_property
    def _as_lowered(self) -> ModuleOp:
        """The program in the `stan` dialect, as it is written; complex numbers are pairs."""
        load_stages()
        with compiling():
            from ulam.passes.complex_to_pairs import split_complex
            from ulam.passes.insert_profiles import note_profiles

            if self.options.pipeline:
                check_order(self.options.pipeline)
            module = self._read_module() if is_module(self.filename) else self._lowered_tree()
            with self._with_source():
                split_complex(module, shown=self.shows_complex)
            note_profiles(module)
            return module

    @cached_property
    def _as_decided(self) -> ModuleOp:
        """The same with the values of its switches, if it has some and they are known."""
        self._binding  # noqa: B018  (of the program before passes change it)
        module = self._as_lowered
        if isinstance(self._known, KnownSwitches):
            with compiling(), self._with_source():
                from ulam.passes.data_switches import specialize_switches

                specialize_switches(module, self._known)
        return module

    @cached_property
    def switches(self) -> dict[str, Any] | None:
        """What of the data all units but `setup` are compiled for (see `passes.data_switches`), as JSON."""
        if not self.options.may_be_pieces:
            return None
        module = self._as_lowered
        with compiling():
            from ulam.passes.data_switches import switches_of

            found = switches_of(module)
            return dict(vars(found)) if found is not None else None

    @cached_property
    def _binding(self) -> Compiler:
        """What compiles the unit that binds data: apart, where other units wait for the data. It runs once, so that
        the passes of the level would take longer than what they save."""
        if self.switches is None:
            return self
        module = self._as_lowered
        with compiling():
            from ulam.passes.data_switches import binding_program

            self._declared  # noqa: B018
            binding = self.of_piece(binding_program(module), replace(self.options, pipeline="", few_passes=False))
            binding.store = self.store
            return binding

    @cached_property
    def _has_few_passes(self) -> bool:
        """Whether it is a large program for any data."""
        if not self.options.may_have_few_passes:
            return False
        module = self._as_lowered
        with compiling():
            from ulam.passes.data_switches import is_large

            return is_large(module)

    @property
    def included_files(self) -> list[Path]:
        """The files that the program includes, once it was read."""
        return [] if self._source is None else self._source.included_files

    @cached_property
    def _by_content(self) -> UnitsByContent | None:
        """The units of the program by what they are compiled from; None if they are found by its text alone."""
        if not self.options.has_contents or is_module(self.filename):
            return None
        module = self._as_decided
        with compiling():
            from ulam.passes.pieces import take_to_pieces

            pieces = take_to_pieces(module) if self.options.may_be_pieces else []
            if not pieces and self.store is None:
                return None
            from ulam.passes.unit_digests import unit_digests

            digests = unit_digests(module)
            if pieces:
                self._declared  # noqa: B018  (before passes change what declares)
            from ulam.runtime.units_by_content import UnitsByContent

            return UnitsByContent(self, digests, pieces, self.store, self._libraries)

    @property
    def _in_pieces(self) -> bool:
        return self._by_content is not None and bool(self._by_content.pieces)

    def of_piece(self, module: ModuleOp, options: CompileOptions | None = None) -> Compiler:
        """What compiles a piece of the program."""
        compiler = Compiler(self.source_text, self.filename, options or self.options.of_part)
        compiler._source, compiler._libraries = self._source, self._libraries
        compiler.__dict__["_as_lowered"] = module
        return compiler

    def _note_libraries(self, program: syntax.Program, module: ModuleOp) -> None:
        """Notes which libraries of other packages the program has functions of."""
        from ulam.library import own_libraries

        if own_libraries.found() is not None:
            ops: list[Any] = [op for part in module.body.block.ops for op in part.regions[0].block.ops]
            functions = [op for op in ops if op.name == "stan.func" and op.library is not None]
            given = {form.name for form in self.options.externals}
            external = (f.name for f in program.functions if f.external is not None and f.name not in given)
            self._libraries = own_libraries.fingerprints((op.stan_name.data for op in functions), external)

    def _lowered_tree(self) -> ModuleOp:
        from ulam.frontend.check.program import check_program
        from ulam.frontend.lower.program import lower_program
        from ulam.frontend.parse.program import parse_program
        from ulam.frontend.source import Source

        source = self._source = Source(self.source_text, self.filename, include_paths=self.options.include_paths)
        program = parse_program(source)
        checkpoint()
        check_program(program, source, self.options.externals)
        if self.inspect is not None:
            self.inspect(program)
            self.inspect = None  # it has the data
        checkpoint()
        module = lower_program(program, source)
        self._note_libraries(program, module)
        return module

    def _read_module(self) -> ModuleOp:
        from ulam.passes.pipelines import run_pipeline
        from ulam.runtime.modules.reading import read_program

        module = read_program(self.source_text, self.filename, self.options.externals)
        run_pipeline(module, "link-library")
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

    def specialize(self, known: KnownData | KnownSwitches) -> None:
        """Units that are compiled from now on are for data of which this is so. Those before, `setup` always, bound
        them."""
        self._known = known
        used = "_as_decided" in self.__dict__
        for made in ("module", "program", "_as_decided", "_by_content", "_whole", *(("_as_lowered",) if used else ())):
            self.__dict__.pop(made, None)

    @cached_property
    def _as_written(self) -> Compiler:
        """The same program at level 0: its units tell which error comes first. Made when an evaluation failed."""
        options = self.options.as_written
        if options == self.options.of_part:
            return self
        return Compiler(self.source_text, self.filename, options)

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
        in_parts = self.switches is not None or self._in_pieces
        declared = self._declared if in_parts else metadata(self.program)
        return {**declared, "units": units, "libraries": self._libraries, "switches": self.switches}

    @cached_property
    def _declared(self) -> dict[str, Any]:
        """The variables of a program in parts, without the passes of the level: they change none."""
        from ulam.passes.to_loops.programs import metadata, program_of, take_apart

        return metadata(take_apart(program_of(self._as_lowered)))

    def unit(self, name: str) -> bytes:
        """The object code of a unit."""
        return self.compiled(name).code

    def compiled(self, name: str) -> UnitObject:
        """A unit, compiled when it is first asked for."""
        self.compile_all([name])
        return self._units[name]

    def compile_all(self, names: Iterable[str]) -> None:
        """Compiles units that are not yet: while LLVM is at work on one, the next is lowered."""
        kinds = [UNITS[name] for name in names if name not in self._units]
        for kind, unit in zip(kinds, self._compiled(kinds) if kinds else (), strict=True):
            self._put(kind, unit)

    def _put(self, kind: UnitKind, unit: UnitObject) -> None:
        unit.sites = [self._described(site) for site in unit.sites]
        self._units[kind.name] = unit

    def compiled_together(
        self, jobs: Sequence[tuple[Compiler, UnitKind]], then: Callable[[int, UnitObject], UnitObject] | None = None
    ) -> list[UnitObject]:
        """Units of this program or of pieces of it: while LLVM is at work on one, the next is lowered.

        `then` is called with the number of a job and its unit as soon as that is there, in LLVM's thread; what it
        returns is the unit. A call that is to end waits for LLVM's present step only.
        """

        def generate(number: int, compiler: Compiler, kind: UnitKind, emitted: EmittedUnit) -> UnitObject:
            unit = compiler._generate(kind, emitted, between=llvm.unless_stopped)
            return unit if then is None else then(number, unit)

        with JobThread[UnitObject]("llvm") as llvm:
            for number, (compiler, kind) in enumerate(jobs):
                emitted = compiler._emitted.pop(kind.name, None) or compiler._lower(kind)
                llvm.submit(partial(generate, number, compiler, kind, emitted))
            while not llvm.wait(LISTEN_SECONDS):
                checkpoint()
        return llvm.results

    def llvm_text(self, name: str) -> str:
        """The LLVM IR of a unit, before LLVM's own passes."""
        return self._lower(UNITS[name]).text

    def assembly(self, name: str) -> str:
        """The assembly of a unit."""
        from ulam.emit import jit

        kind = UNITS[name]
        text = self._lower(kind).text
        return jit.compile_assembly(text, self.llvm_pipeline(kind), processor=self.options.target, prefix=kind.prefix)

    def module_at(self, stage: str, name: str) -> ModuleOp:
        """The program, or a unit of it, as a stage of `STAGES` leaves it. What is given away is used no more here."""
        if stage == "written":
            return self._as_lowered
        with compiling(), self._with_source():
            from ulam.passes.lowering_pipeline import begin_unit, run_value_form

            if stage == "optimized":
                return self.module
            if stage == "values":
                run_value_form(self.module)
                return self.module
            compiler = self._as_written if UNITS[name].locating else self
            unit = begin_unit(compiler.program, UNITS[name], compiler.options.opt_level)
            if stage == "lowered":
                compiler._finish(unit)
            return unit.module

    def _finish(self, unit: LoweredUnit) -> None:
        from ulam.passes.lowering_pipeline import finish_unit

        finish_unit(
            unit,
            self.options.opt_level,
            checkpoint,
            layouts=self.options.layouts,
            few_passes=self._has_few_passes,
            chosen=self.options.unit_passes,
        )

    def _lower(self, kind: UnitKind) -> EmittedUnit:
        if kind.locating and self._as_written is not self:
            return self._as_written._lower(kind)
        if not kind.is_bound and self._binding is not self:
            return self._binding._lower(kind)
        if kind.order == 2 and self._in_pieces:
            return self._whole._lower(kind)
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
        from ulam.runtime.c_library import exact_blocks

        self._finish(unit)
        checkpoint()
        processor = target(self.options.target)
        options = EmitOptions(
            self.options.opt_level,
            processor.fused,
            vectors=processor.vectors,
            inline_math=not (unit.kind.hot and self._has_few_passes),
            lines=self.options.lines,
            unit=unit.kind.name,
            exact_blocks=exact_blocks(),
        )
        text = emit_module(unit.module, options)
        sites = [{**vars(site)} for site in unit.sites]
        return EmittedUnit(text, sites, unit.n_slots, unit.draws, unit.layouts)

    def _described(self, site: dict[str, Any]) -> dict[str, Any]:
        """A place where a check may fail, for users; an index that is out of range says of what, as it is written."""
        from ulam.passes.to_loops.indexing import OUT_OF_RANGE

        source = self._source or self._as_written._source
        if site["message"] == OUT_OF_RANGE and source is not None:
            indexed = source.indexed_at(site["file"], site["line"], site["column"])
            if indexed is not None:
                return {**site, "message": f"{site['message']}, in `{indexed}`"}
        return site

    def _compiled(self, kinds: Sequence[UnitKind]) -> list[UnitObject]:
        """Units, in order: those that are stored by what they are compiled from, and others, compiled now."""
        binding = [kind for kind in kinds if not kind.is_bound and self._binding is not self]
        found = {kind: self._binding.compiled(kind.name) for kind in binding}
        of_program = [kind for kind in kinds if kind not in found and not kind.locating]
        if of_program and (units := self._by_content) is not None:
            whole = 2 if units.pieces else None  # what calls pieces knows no second derivatives
            stored = [kind for kind in of_program if kind.order != whole]
            found |= zip(stored, units.units(stored), strict=True)
        others = [kind for kind in kinds if kind not in found]
        found |= zip(others, self.compiled_together([(self, kind) for kind in others]), strict=True)
        return [found[kind] for kind in kinds]

    def quickly(self, name: str) -> UnitObject | None:
        """A version of a unit that LLVM is soon done with; None if that is no gain. `finish` then makes the other."""
        from ulam.emit.jit import VAST

        kind = UNITS[name]
        stored = self._by_content.stored(kind) if self._by_content is not None else None
        if stored is not None:
            self._put(kind, stored)
            return None
        emitted = self._emitted[name] = self._lower(kind)
        if len(emitted.text) < LONG_TEXT:
            return None
        unit = self._generate(kind, emitted, VAST)
        unit.sites = [self._described(site) for site in unit.sites]
        return unit

    def finish(self, name: str, between: Callable[[], None]) -> None:
        """Compiles what there is a first version of. `between` is called between steps, and may raise."""
        kind = UNITS[name]
        unit = self._generate(kind, self._emitted[name], between=between)
        if self._by_content is not None:
            self._by_content.keep(kind, unit)
        self._put(kind, unit)
        del self._emitted[name]

    @cached_property
    def _whole(self) -> Compiler:
        """The same program in one piece: what calls pieces knows no second derivatives."""
        whole = Compiler(self.source_text, self.filename, self.options.of_part)
        if self._known is not None:
            whole.specialize(self._known)
        return whole

    def llvm_pipeline(self, kind: UnitKind) -> Pipeline:
        """How hard LLVM tries with a unit of this program."""
        return llvm_pipeline(kind, self.options.opt_level, self._has_few_passes)

    def _generate(
        self,
        kind: UnitKind,
        unit: EmittedUnit,
        pipeline: Pipeline | None = None,
        between: Callable[[], None] = checkpoint,
    ) -> UnitObject:
        from ulam.emit import jit

        pipeline = pipeline or self.llvm_pipeline(kind)
        code = jit.compile_object(unit.text, pipeline, between, processor=self.options.target, prefix=kind.prefix)
        return UnitObject(code, unit.sites, unit.n_slots, unit.draws, unit.layouts)


def llvm_pipeline(kind: UnitKind, opt_level: int, few_passes: bool = False) -> Pipeline:
    """How hard LLVM tries with a unit."""
    from ulam.emit import jit
    from ulam.passes.lowering_pipeline import REASSOCIATING_LEVEL

    if kind.hot:
        return jit.LARGE if few_passes else jit.HOT
    return jit.ONCE_LOOSELY if opt_level >= REASSOCIATING_LEVEL else jit.ONCE


STAGES = {
    "written": "the program as it was written, in variable form; complex numbers are pairs",
    "optimized": "the same after the passes of the level",
    "values": "the same in value form",
    "loops": "a unit of it as loops over scalars",
    "lowered": "the unit after the passes of units: what LLVM IR is written from",
}
"""What `StanModel.module` shows."""

LONG_TEXT = 100_000
"""Bytes of LLVM IR from which a first version is there a tenth of a second sooner or more (`quickly`)."""
LISTEN_SECONDS = 0.05
"""How often a thread that waits for LLVM looks whether it is to end."""

IMPORTED = (
    "ulam.frontend.parse.program", "ulam.frontend.check.program", "ulam.frontend.lower.program",
    "ulam.passes.pipelines", "ulam.passes.lowering_pipeline", "ulam.emit.llvm_module", "ulam.emit.jit",
)  # fmt: skip
"""What every compile imports."""


@cache
def load_stages() -> None:
    """Imports the compiler, without the cyclic collector: all that imports make stays, and there is a lot of it."""
    from ulam.runtime.module_archive import use_archive

    with compiling():
        use_archive()
        for name in IMPORTED:
            import_module(name)
        settle()
