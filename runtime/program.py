"""A compiled program with its data bound: units loaded when first used, sizes of variables, errors from site tables.

A program is compiled in units (setup, value and gradient with and without constants, constrain, unconstrain), each to
one object. `BoundProgram` asks the compiler for an object, loads it, and runs its `bind` once: what depends on data
only is then computed and never again.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import memmove
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ulam.library.records import record
from ulam.library.statuses import LOCATE, REJECTION
from ulam.passes.known_data import KnownData, KnownSwitches
from ulam.passes.units import UNITS, density_unit
from ulam.runtime.compile_notice import compile_notice
from ulam.runtime.data import Array, ValueProblem, Values, bind_values, negative_size, warn_of_unused
from ulam.runtime.errors import (
    INTERNAL_ERROR_HELP,
    ArgumentError,
    CompileError,
    DataError,
    ErrorSite,
    InternalCompilerError,
    ProgramError,
    UlamError,
)
from ulam.runtime.external_errors import cause_of
from ulam.runtime.interrupts import checkpoint, held, stoppable
from ulam.runtime.memory import check_memory
from ulam.runtime.names import Dims, GlobalVariable, as_numbers, from_compiled, to_compiled
from ulam.runtime.native import BoundData, Context, ContextPool, Rng, running

if TYPE_CHECKING:
    from ulam.emit.elf_object import ElfObject
    from ulam.emit.jit import LinkedObject
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.external_functions import Externals
    from ulam.runtime.layout_choices import LayoutChoice
    from ulam.runtime.profiling.profiler import Profiler
    from ulam.runtime.unit_objects import PieceObject, UnitObject

LINE_TABLE = b".debug_line"
"""The name of a section that object code with debug information has."""
EXTERNAL = b"ulam_external"
"""Begins the symbols of external functions that object code calls."""
PERF_VARIABLE = "ULAM_PERF"
"""Environment variable: compiled functions are made known to `perf` (see `profiling.loaded_code`)."""


class CompiledUnit(Protocol):
    """Object code of a unit, its site table, the size of its table of bound data, whether it draws random numbers, what
    it notes of layouts, the pieces of the program that it calls.
    """

    @property
    def code(self) -> bytes: ...
    @property
    def sites(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def n_slots(self) -> int: ...
    @property
    def draws(self) -> bool: ...
    @property
    def layouts(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def pieces(self) -> Sequence[PieceObject]: ...


class CompiledProgram(Protocol):
    """What is asked of `ulam.runtime.compiler.Compiler`."""

    def metadata(self) -> Mapping[str, Any]:
        """`name`, and `globals` with an entry for each variable."""
        ...

    def compiled(self, name: str) -> CompiledUnit:
        """A unit, compiled when it is first asked for."""
        ...


class LoadedObject(Protocol):
    def address(self, symbol: str) -> int: ...


Loader = Callable[[bytes], LoadedObject]



def load_object(code: bytes, externals: Externals | None = None) -> LoadedObject:
    """Object code into this process, linked against the C runtime and the program's external functions."""
    from ulam.emit import elf_object
    from ulam.runtime.c_library import address_of, library_path

    has_lines = LINE_TABLE in code
    for_perf = sys.platform == "linux" and os.environ.get(PERF_VARIABLE, "0") != "0"
    given: dict[str, int] = {}
    if EXTERNAL in code:
        from ulam.runtime.external_functions import Externals

        externals = externals or Externals({})
        given = externals.addresses(code)
    outside = address_of if not given else lambda name: given.get(name) or address_of(name)
    loaded: ElfObject | LinkedObject | None = None if has_lines else elf_object.load(code, outside)
    if loaded is None:  # debuggers and others that walk the stack know what LLVM has linked
        from ulam.emit import jit

        loaded = jit.load_object(code, str(library_path()), given)
    loaded.keeps = externals
    if has_lines or for_perf:
        from ulam.runtime.profiling.loaded_code import TracedCode

        return TracedCode(loaded, code, has_lines=has_lines, for_perf=for_perf)
    return loaded


def require_lines() -> None:
    """Raises ArgumentError where compiled code cannot have a line table."""
    if sys.platform != "linux":
        raise ArgumentError(f"lines=True works on Linux only, and this is {sys.platform}")


TOO_DEEP = "functions call others, and these call others, too many times in a row for the compiler"
"""The text of a program is never too deep: the parser refuses that."""


def as_compile_error(error: Exception) -> Exception:
    """What to raise for what the compiler's stages raise: a CompileError, but for the surroundings' own errors."""
    from ulam.frontend.diagnostics import DiagnosticError
    from ulam.library.extension_points import ExtensionError
    from ulam.passes.errors import LoweringError, NotSupportedError, OwnPassError, WrongFormError
    from ulam.passes.pipelines import PipelineError

    if isinstance(error, DiagnosticError):
        return CompileError(str(error), error.diagnostics)
    if isinstance(error, NotSupportedError):
        return _not_supported(error)
    if isinstance(error, OwnPassError | ExtensionError) and not isinstance(error, PipelineError):
        return CompileError(f"error: {error}")
    if isinstance(error, PipelineError | WrongFormError):
        return ArgumentError(str(error))
    if isinstance(error, (UlamError, ArgumentError, OSError, MemoryError, UnicodeError)):
        return error
    if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
        place = _place(error.location) if isinstance(error, LoweringError) else ""
        return CompileError(f"{place}error: {TOO_DEEP} [nesting]")
    if isinstance(error, LoweringError):
        text = f"{_place(error.location)}internal error while this is compiled: {error}"
    else:
        text = f"internal error while the program is compiled: {type(error).__name__}: {error}"
    return InternalCompilerError(f"{text}\n   {INTERNAL_ERROR_HELP}")


def _not_supported(error: Any) -> CompileError:
    """For a `NotSupportedError`: as the type checker would have said it, where the text of the program is known."""
    from ulam.dialects.places import place_of
    from ulam.frontend.diagnostics import Diagnostic, Severity, render
    from ulam.frontend.functions.support import NOT_SUPPORTED
    from ulam.frontend.syntax import Span

    place = place_of(error.location)
    start = None
    if place is not None and error.source is not None:
        start = error.source.offset(place.filename.data, place.line.data, place.column.data)
    if start is None or error.source is None:
        return CompileError(f"{_place(error.location)}error: {error} [{NOT_SUPPORTED}]")
    diagnostic = Diagnostic(Severity.ERROR, str(error), Span(start, start + 1), error.source, NOT_SUPPORTED)
    return CompileError(render(diagnostic), [diagnostic])


@contextmanager
def compile_errors() -> Iterator[None]:
    """The compiler is at work: a terminal shows it. What is raised is as users are to see it (`as_compile_error`)."""
    try:
        with compile_notice():
            yield
    except Exception as error:
        raised = as_compile_error(error)
        if raised is error:
            raise
        raise raised from (error if isinstance(raised, InternalCompilerError) else None)


def _place(location: object) -> str:
    from ulam.dialects.places import place_of

    if (place := place_of(location)) is None:
        return ""
    return f"{place.filename.data}:{place.line.data}:{place.column.data}: "


AT_THE_EDGE = (
    "a check failed that the program as it is written passes, by rounding: the point is at the edge of where the log "
    "density is defined"
)
"""What is told where `locate` finds no error. Checks of sizes and indices do not round: this one was of numbers."""


@record(frozen=True, slots=True)
class Failure:
    """What a failed run left in its context."""

    status: int
    site: int
    values: tuple[float, ...]
    message: str

    @staticmethod
    def of(status: int, context: Context) -> Failure:
        """Raises if the run did not fail, but was stopped."""
        return Failure(running(status), context.error_site, tuple(context.error_values), context.message)


def _bound_value(variable: GlobalVariable, data: BoundData) -> Any:
    """The value of a bound variable, as a NumPy array of its own shape."""
    import numpy as np

    if variable.is_complex:
        parts = np.stack([_bound_value(part, data) for part in variable.parts()], axis=-1)
        return as_numbers(variable, parts)[..., 0]
    is_int = variable.element == "int"
    if not variable.n_dims:
        slot = variable.slot
        return np.array(data.get_int(slot), np.int32) if is_int else np.array(data.get_real(slot))
    dims = tuple(data.get_pointer(variable.slot + 1 + n) for n in range(variable.n_dims))
    kind = ctypes.c_int32 if is_int else ctypes.c_double
    memory = (kind * math.prod(dims)).from_address(data.get_pointer(variable.slot)) if math.prod(dims) else ()
    return from_compiled(variable, np.array(memory, kind), dims)


def _store(data: BoundData, variable: GlobalVariable, array: Array) -> None:
    """The value of a variable that compiled code has one of, and its sizes behind."""
    if variable.n_dims:
        data.set_array(variable.slot, to_compiled(variable, array))
        for position, size in enumerate(array.shape, variable.slot + 1):
            data.set_int(position, size)
    elif variable.element == "int":
        data.set_int(variable.slot, int(array))
    else:
        data.set_real(variable.slot, float(array))


def _as_in_program(found: Mapping[str, Any]) -> dict[str, Any]:
    """By the names that the compiler has for variables: `t.1` of `t:1`."""
    return {name.replace(":", "."): value for name, value in found.items()}


def _profiler(profiles: Sequence[Sequence[Any]], events: int) -> Profiler | None:
    """What records the profile statements, if there are any."""
    if not profiles:
        return None
    from ulam.runtime.profiling.profiler import Profiler
    from ulam.runtime.profiling.records import Region

    return Profiler([Region(*entry) for entry in profiles], events)


class Unit:
    """A loaded unit. `entry` and `bound` are the addresses of `evaluate` and of its table of bound data.

    `failure` is that of `bind`: of work that depends on data only and was therefore done ahead of every evaluation.
    It is raised where an evaluation would have raised it.
    """

    __slots__ = (
        "name", "loaded", "data", "entry", "bound", "sites", "draws", "failure", "profiler", "layouts",
        "pieces", "table",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        loaded: LoadedObject,
        data: BoundData,
        sites: Sequence[ErrorSite],
        draws: bool,
        profiler: Profiler | None,
    ) -> None:
        self.name = name
        self.loaded = loaded
        self.data = data
        self.sites = sites
        self.draws = draws
        self.entry = loaded.address(UNITS[name].symbol("evaluate")) if UNITS[name].is_bound else 0
        self.bound = data.address
        self.failure: Failure | None = None
        self.profiler = profiler
        self.layouts: list[LayoutChoice] = []
        self.pieces: list[tuple[LoadedObject, BoundData]] = []
        self.table: Any = None
        """What the code of this unit calls, and where it finds that."""

    def error(self, status: int, context: Context) -> ProgramError:
        """The exception for a run of this unit that returned `status`."""
        return self.error_of(Failure.of(status, context))

    def error_of(self, failure: Failure) -> ProgramError:
        if 0 <= failure.site < len(self.sites):
            site = self.sites[failure.site]
        else:
            site = ErrorSite(REJECTION, "the program failed without saying where", "", 0, 0, "")
        of_numbers = site.status == REJECTION and not failure.message
        if failure.status == LOCATE and of_numbers:  # and the program as it is written passes
            return replace(site, message=AT_THE_EDGE).error(REJECTION, failure.values)
        message = failure.message if self.profiler is None else self.profiler.explained(failure.message)
        error = site.error(failure.status, failure.values, message)
        error.__cause__ = cause_of(failure.message)
        return error


def _said_of(variable: GlobalVariable, error: ProgramError) -> str:
    """What an error says of a variable that is named ahead of it."""
    name = variable.name.replace(":", ".")
    return str(error).removeprefix(f"{name}: ").removeprefix(f"{name} ")


class ProgramCode:
    """The units of a program as code in the process: each is compiled and loaded once, when it is first asked for."""

    def __init__(
        self, compiler: CompiledProgram, load: Loader | None = None, externals: Externals | None = None
    ) -> None:
        self._compiler = compiler
        self._load = load or partial(load_object, externals=externals)
        self.externals = externals
        self._lock = threading.RLock()
        self._units: dict[str, tuple[CompiledUnit, LoadedObject]] = {}
        self.seconds = 0.0
        """Time spent so far on compiling and loading."""

    def metadata(self) -> Mapping[str, Any]:
        return self.timed(self._compiler.metadata)

    def unit(self, name: str) -> tuple[CompiledUnit, LoadedObject]:
        with self._lock:
            checkpoint()  # the thread that had the lock may have been asked to end, and this one, too
            found = self._units.get(name)
            if found is None:
                compiled: CompiledUnit = self.timed(lambda: self._compiler.compiled(name))
                found = self._units[name] = compiled, self.timed(lambda: self._load(compiled.code))
        return found

    def loaded(self, code: bytes) -> LoadedObject:
        """Object code into the process."""
        return self.timed(lambda: self._load(code))

    def timed(self, make: Callable[[], Any]) -> Any:
        """Runs a step of compiling, counts its time, and turns messages about the program into CompileError."""
        start = time.perf_counter()
        try:
            with compile_errors():
                return held(make)
        finally:
            self.seconds += time.perf_counter() - start


class BoundProgram:
    """Loads units on demand; one lock orders loading, evaluations take none."""

    def __init__(
        self,
        compiler: CompiledProgram,
        source: Values,
        make_rng: Callable[[], Rng],
        show: Callable[[str], None],
        load: Loader | None = None,
        profile_events: int = 0,
        externals: Externals | None = None,
    ) -> None:
        self.code = ProgramCode(compiler, load, externals)
        self._show = show
        self._lock = threading.RLock()
        self._units: dict[str, Unit] = {}
        self._contexts = ContextPool()
        metadata = self.code.metadata()
        self.name: str = metadata["name"]
        self.variables = [GlobalVariable.from_metadata(i, entry) for i, entry in enumerate(metadata["globals"])]
        self.profiler = _profiler(metadata.get("profiles", ()), profile_events)
        """What profile statements record; None if the program has none."""
        self._data = self._bind_data(source, make_rng)

    def of_block(self, *blocks: str) -> list[GlobalVariable]:
        return [variable for variable in self.variables if variable.block in blocks]

    def unit(self, name: str) -> Unit:
        """The unit, compiled, loaded and bound."""
        found = self._units.get(name)
        return found if found is not None else stoppable(lambda: self.load(name))

    def is_loaded(self, name: str) -> bool:
        """Whether `unit` has nothing to compile."""
        return name in self._units

    def load(self, name: str) -> Unit:
        """As `unit`, as part of a call."""
        with self._lock:
            checkpoint()  # the thread that had the lock may have been asked to end, and this one, too
            unit = self._units.get(name)
            if unit is None:
                unit = self._units[name] = self._load_unit(name, self._data)
        return unit

    def first_version(self, name: str, compiler: Callable[[str], UnitObject | None]) -> Unit | None:
        """A version of a unit that is not kept; None if the compiler has none."""
        compiled = self.code.timed(lambda: compiler(name))
        if compiled is None:
            return None
        with self._lock:
            return self._bound(name, compiled, self.code.loaded(compiled.code), self._data)

    def loaded(self) -> list[Unit]:
        """The units that are in the process by now."""
        with self._lock:
            return list(self._units.values())

    def known_data(self) -> KnownData:
        """Values and sizes that are now known. Of a program that drew random numbers for transformed data: the data."""
        blocks = ("data", "transformed_data") if not self._drew else ("data",)
        bound = self.of_block(*blocks)
        sized = bound if self._drew else self.variables
        parts = [part for variable in self.of_block(*blocks) for part in variable.parts()]
        values = {part.name: _bound_value(part, self._data) for part in parts}
        dims = {part.name: part.dims for variable in sized for part in variable.parts()}
        return KnownData(_as_in_program(values), _as_in_program(dims | {n: v.shape for n, v in values.items()}))

    def known_to_compiler(self, options: CompileOptions) -> KnownData | KnownSwitches | None:
        """What units are compiled for: all data where the passes ask for it, of large programs their switches."""
        if options.wants_data:
            return self.known_data()
        switches = self.code.metadata().get("switches")
        if not switches:
            return None
        bound = self.of_block("data", *(() if self._drew else ("transformed_data",)))
        declared = {variable.name: variable for variable in bound}

        def value_of(name: str) -> Array | None:
            return _bound_value(declared[name], self._data) if name in declared else None

        return KnownSwitches.of(switches, value_of)

    def bound_values(self, *blocks: str) -> dict[str, Any]:
        """Copies of data and transformed data, by name."""
        return {variable.name: _bound_value(variable, self._data) for variable in self.of_block(*blocks)}

    # ------------------------------------------------------------ loading

    def _load_unit(self, name: str, base: BoundData | None) -> Unit:
        return self._bound(name, *self.code.unit(name), base)

    def _bound(self, name: str, compiled: CompiledUnit, loaded: LoadedObject, base: BoundData | None) -> Unit:
        data = BoundData(compiled.n_slots)
        if base is not None:
            # Each unit has a table of its own: slots beyond those of data may mean something else in each.
            memmove(data.address, base.address, 8 * min(data.slots, base.slots))
        sites = [ErrorSite.from_metadata(entry) for entry in compiled.sites]
        unit = Unit(name, loaded, data, sites, compiled.draws, self.profiler)
        if compiled.pieces:
            self._load_pieces(unit, compiled.pieces)
        if UNITS[name].has_bind and unit.failure is None:
            with self._contexts.context() as context:
                status = context.run_bind(loaded.address(UNITS[name].symbol("bind")), data)
                self._print(context)
                if status:
                    unit.failure = Failure.of(status, context)
                elif compiled.layouts:
                    from ulam.runtime.layout_choices import read_choices

                    unit.layouts += read_choices(compiled.layouts, data)
        return unit

    def _load_pieces(self, unit: Unit, pieces: Sequence[PieceObject]) -> None:
        """Loads and binds the pieces that a unit calls, and puts where they are into its table (runtime/c/pieces.c)."""
        kind = density_unit(1, UNITS[unit.name].propto)
        parts = [part for variable in self.of_block("data", "transformed_data") for part in variable.parts()]
        slots = _as_in_program({part.name: (part.slot, 1 + part.n_dims) for part in parts})
        table = [len(pieces)]
        for piece in pieces:
            loaded = self.code.loaded(piece.code)
            data = BoundData(piece.n_slots)
            end = 0
            for name in piece.data:
                first, count = slots[name]
                memmove(data.address + 8 * end, self._data.address + 8 * first, 8 * count)
                end += count
            unit.pieces.append((loaded, data))
            self._bind_piece(unit, piece, loaded.address(kind.symbol("bind")), data)
            table += [loaded.address(kind.symbol("evaluate")), data.address, len(piece.reads), *piece.reads]
        unit.table = (ctypes.c_int64 * len(table))(*table)
        last = max((first + count for first, count in slots.values()), default=0)
        unit.data.set_int(last, ctypes.addressof(unit.table))

    def _bind_piece(self, unit: Unit, piece: PieceObject, entry: int, data: BoundData) -> None:
        with self._contexts.context() as context:
            if context.run_bind(entry, data):
                unit.failure = Failure(LOCATE, -1, (), "")  # the program as it is written says what
            elif piece.layouts:
                from ulam.runtime.layout_choices import read_choices

                unit.layouts += read_choices(piece.layouts, data)

    def _print(self, context: Context) -> None:
        if context.output_length.value:
            self._show(context.take_output())

    # ------------------------------------------------------------ data

    def _bind_data(self, source: Values, make_rng: Callable[[], Rng]) -> BoundData:
        setup = self._units["setup"] = self._load_unit("setup", None)
        # NumPy's generators take a fifth of the time of a cached start: only for transformed data that draw.
        rng = make_rng() if setup.draws else None
        data = setup.data
        dims_entry = setup.loaded.address(UNITS["setup"].symbol("data_dims"))

        with self._contexts.context(rng) as context:
            if self.profiler is not None:
                self.profiler.attach(context)
                self.profiler.enter(context, "data")

            counts: dict[str, int] = {}

            def dims_of(variable: GlobalVariable) -> Dims:
                # Of a parameter, the number of its unconstrained values follows the sizes.
                rank = variable.n_dims
                status, sizes = context.run_dims(dims_entry, setup.bound, variable.index, rank + 1)
                if status:
                    raise ValueProblem(f"has a wrong size: {_said_of(variable, setup.error(status, context))}")
                if any(size < 0 for size in sizes):
                    raise ValueProblem(negative_size(variable, sizes[:rank]))
                if variable.block == "parameters":
                    counts[variable.name] = sizes[rank]
                return tuple(sizes[:rank])

            def store(variable: GlobalVariable, array: Array) -> None:
                for n, part in enumerate(variable.parts()):
                    _store(data, part, array[..., n] if variable.is_complex else array)
                if variable.element == "int" and variable.constraint == "bounds":
                    # At once, and not by `prepare`: sizes of the variables that follow may depend on it.
                    status, _ = context.run_dims(dims_entry, setup.bound, len(self.variables) + variable.index, 0)
                    if status:
                        raise ValueProblem(_said_of(variable, setup.error(status, context)))

            declared = [variable.name for variable in self.of_block("data")]
            warn_of_unused(source, declared, "declared in the data block", declared)
            bind_values(self.of_block("data"), source, dims_of, store)
            before = None if rng is None else rng.generator.state
            status = context.run_bind(setup.loaded.address(UNITS["setup"].symbol("prepare")), data)
            self._print(context)
            if status:
                raise setup.error(status, context)
            self._drew = rng is not None and rng.generator.state != before
            for variable in self.variables:
                if variable.block not in ("data", "transformed_data"):
                    try:
                        variable.dims = dims_of(variable)
                    except ValueProblem as problem:
                        raise DataError([f"variable '{variable.name}' {problem}"]) from None
            check_memory(self.variables, counts)
        return data
