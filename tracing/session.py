"""Tracking: compiles the traced clone of a function, runs it once, and gives the root of its trace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from ulam.runtime.c_library import library
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.errors import ArgumentError, ErrorSite, UlamError
from ulam.runtime.interrupts import checkpoint, held
from ulam.runtime.native import BoundData, ContextPool
from ulam.runtime.program import compile_errors, load_object
from ulam.runtime.terminal import show_printed
from ulam.tracing.argument_values import argument_values, count_of, store_arguments
from ulam.tracing.contexts import TraceContext, is_builtin, takes_function
from ulam.tracing.gradients.op_library import OpLibrary
from ulam.tracing.hooks import Choices, Hooks, HookSite, add_metadata
from ulam.tracing.instrument.fields import Formal
from ulam.tracing.instrument.graph import ROOT, ValueType
from ulam.tracing.nodes import ItemNode
from ulam.tracing.program_text import SourceText
from ulam.tracing.tape.recorder import (
    CHUNK_BYTES,
    NO_CONTINUATION,
    NO_DRAWS,
    Continuation,
    Draws,
    DrawsExhausted,
    OtherDraws,
    Recorder,
    RecorderPool,
    Replay,
    Source,
    generator,
)
from ulam.tracing.tape.tape import Tables, Tape
from ulam.tracing.trace import Trace, TraceError, origin
from ulam.tracing.versions import RecordedRun

if TYPE_CHECKING:
    from ulam.passes.to_loops.programs import ProgramParts
    from ulam.runtime.external_functions import Externals

_REAL = ValueType("real")


PRINTED: ContextVar[Callable[[str], Any]] = ContextVar("printed", default=show_printed)
"""What is done with what a program prints while it is traced: of each thread its own."""


# ---------------------------------------------------------------- compiling


@dataclass(frozen=True)
class ModelRoot:
    """A block of a model, to be tracked: one of `passes.trace.density.ROOTS`."""

    name: str = "log_prob"
    propto: bool = False
    jacobian: bool = True


@dataclass
class _Compiled:
    """The traced clone of a function in the process."""

    loaded: Any
    entry: int
    slots: int
    sites: list[ErrorSite]
    tables: Tables
    ops: dict[str, dict[int, Any]]
    instrumented: str
    draws: bool
    library: OpLibrary
    hooks: list[HookSite]
    hooked: dict[int, tuple[list[ValueType], bool]]


class TracedProgram:
    """The functions of a program, for tracking."""

    def __init__(
        self, text: str, filename: str, options: CompileOptions, externals: Externals | None = None
    ) -> None:
        self.text, self.filename = text, filename
        self._options = CompileOptions(0, options.include_paths, externals=options.externals)
        self._externals = externals
        self._compiled: dict[tuple[Any, ...], tuple[TraceContext, _Compiled]] = {}
        self._contexts = ContextPool()
        self._recorders = RecorderPool()
        self._lock = threading.RLock()
        self.source = SourceText(text, filename, options.include_paths)
        self.signatures = self._signatures()

    def _module(self) -> Any:
        from ulam.runtime.compiler import Compiler

        return Compiler(self.text, self.filename, self._options, shows_complex=True).module

    def _signatures(self) -> dict[str, list[tuple[str, list[Formal]]]]:
        """Name in the source → symbol and parameters of each function of that name."""
        from ulam.runtime.interpreter_settings import compiling
        from ulam.tracing.instrument.fields import formals_of
        from ulam.tracing.instrument.unit import find_function

        with compiling():
            found: dict[str, list[tuple[str, list[Formal]]]] = {}
            for function in find_function(self._module(), ""):
                names = [name.data for name in function.argument_names]
                fields = list(zip(names, function.function_type.inputs, strict=True))
                entry = (function.sym_name.data, formals_of(fields))
                found.setdefault(function.stan_name.data, []).append(entry)
            return found

    # ------------------------------------------------------------ arguments

    def overloads(self, name: str) -> list[tuple[str, list[Formal]]]:
        """Symbol and parameters of each function of a name. Raises ArgumentError if there is none."""
        found = self.signatures.get(name)
        if found is None:
            close = get_close_matches(name, self.signatures, n=1)
            known = ", ".join(self.signatures) or "none"
            hint = f"; did you mean '{close[0]}'?" if close else f"; its functions: {known}"
            raise ArgumentError(f"the program has no function '{name}'{hint}")
        return found

    def bind(self, name: str, arguments: Sequence[Any]) -> tuple[str, list[Any], list[ValueType]]:
        """The function that a call means: its symbol, the arguments as it takes them, and their types."""
        overloads = self.overloads(name)
        problems: list[str] = []
        best: tuple[int, str, list[Any], list[ValueType]] | None = None
        for symbol, parameters in overloads:
            try:
                if len(parameters) != len(arguments):
                    raise ArgumentError(f"'{name}' takes {count_of(len(parameters))}, not {len(arguments)}")
                pairs = zip(parameters, arguments, strict=True)
                bound = [argument_values(name, formal, value) for formal, value in pairs]
            except ArgumentError as problem:
                problems.append(str(problem))
                continue
            cost = sum(promoted for _, promoted in bound)
            if best is None or cost < best[0]:
                types = [leaf.type for formal in parameters for leaf in formal.leaves()]
                best = (cost, symbol, [value for values, _ in bound for value in values], types)
        if best is None:
            raise ArgumentError("\n".join(problems))
        return best[1:]

    # ------------------------------------------------------------ running

    def track(
        self, name: str, arguments: Sequence[Any], context: TraceContext | None, rng: Source | None, on_error: str
    ) -> ItemNode:
        """See `StanModel.track`."""
        if on_error not in ("keep", "raise"):
            raise ArgumentError(f"on_error is keep or raise, not {on_error!r}")
        context = context if context is not None else TraceContext()
        self._check_names(context)
        symbol, values, types = self.bind(name, arguments)
        compiled = self.compiled(symbol, context)
        self._check_draws(compiled, name, rng)
        return self._run(symbol, context, values, types, rng, on_error).root

    def track_model(
        self, root: ModelRoot, values: Mapping[str, Any], context: TraceContext | None, rng: Source | None,
        on_error: str,
    ) -> ItemNode:  # fmt: skip
        """Runs a block of the model. `values`: data and unconstrained parameters, by name."""
        if on_error not in ("keep", "raise"):
            raise ArgumentError(f"on_error is keep or raise, not {on_error!r}")
        context = context if context is not None else TraceContext()
        self._check_names(context)
        compiled = self.compiled(root, context)
        self._check_draws(compiled, root.name, rng)
        parameters = compiled.tables.graphs[ROOT].parameters
        given = [values[parameter.name] for parameter in parameters]
        return self._run(root, context, given, [p.type for p in parameters], rng, on_error).root

    def _check_names(self, context: TraceContext) -> None:
        unknown = sorted(name for name in context.names - set(self.signatures) if not takes_function(name))
        for name in unknown:
            if is_builtin(name):
                raise ArgumentError(
                    f"'{name}' is a function of Stan's library: its calls are nodes of their own and cannot be entered"
                )
        if unknown:
            raise ArgumentError(f"the context names functions that the program does not have: {', '.join(unknown)}")

    @staticmethod
    def _check_draws(compiled: _Compiled, name: str, rng: Source | None) -> None:
        if compiled.draws and rng is None:
            raise ArgumentError(f"'{name}' draws random numbers: give it some by rng=, such as rng=Seeded(1)")

    def run_again(
        self, symbol: str | ModelRoot, context: TraceContext, entry: str, values: Sequence[Any],
        types: Sequence[ValueType], rng: Source | None, recorder: Recorder | None = None, target: float = 0.0,
    ) -> RecordedRun:  # fmt: skip
        """Runs what was tracked, or, of what that calls, the traced function `entry`; prints nothing."""
        compiled = self.compiled(symbol, context, entry or ROOT)
        if recorder is None:
            recorder = Recorder(context.limit_bytes, "stop", max(CHUNK_BYTES, compiled.tables.longest))
        before, kinds = ([target], [_REAL]) if entry else ([], [])
        error, draws, continuation, _ = self._record(compiled, recorder, [*before, *values], [*kinds, *types], rng)
        again = partial(self.run_again, symbol)
        return RecordedRun(recorder, values, types, draws, continuation, error, entry, again, target)

    def compiled(self, symbol: str | ModelRoot, context: TraceContext, entry: str = ROOT) -> _Compiled:
        """The traced clone of a function, or of a block of the model, made when it is first asked for.

        `entry`: the traced function to call.
        """
        key = (symbol, context.compiled_key, entry)
        with self._lock:
            checkpoint()
            if key not in self._compiled:  # the context is kept: the key may have its address
                self._compiled[key] = (context, self._compile(symbol, context, entry))
            return self._compiled[key][1]

    def _compile(self, symbol: str | ModelRoot, context: TraceContext, entry: str) -> _Compiled:
        from ulam.runtime.interpreter_settings import compiling

        def lowered() -> _Compiled:
            with compile_errors(), compiling():
                return self._lower(symbol, context, entry)

        return held(lowered)

    def _lower(self, symbol: str | ModelRoot, context: TraceContext, entry: str) -> _Compiled:
        from ulam.emit import jit
        from ulam.emit.llvm_module import emit_module
        from ulam.emit.llvm_text import EmitOptions
        from ulam.tracing.instrument.unit import instrumented_text, trace_unit

        module = self._module()
        choices = Choices(context)
        plan = choices.plan()
        function = self._root(module, symbol)
        if isinstance(symbol, ModelRoot):
            plan = replace(plan, propto=symbol.propto, jacobian=symbol.jacobian)
        unit = trace_unit(module, function, plan, entry)
        text = emit_module(unit.module, EmitOptions(0, jit.host().fused, inline_math=False, unit="trace"))
        checkpoint()
        loaded = load_object(jit.compile_object(text, jit.ONCE, checkpoint), self._externals)
        add_metadata(unit.graphs, unit.states)
        if context.timing:
            unit.graphs[ROOT].tick = library().ulam_seconds_per_tick()
        sites = [ErrorSite.from_metadata(asdict(site)) for site in unit.sites]
        return _Compiled(
            loaded, loaded.address("evaluate"), unit.n_slots, sites, Tables(unit.graphs), unit.ops,
            instrumented_text(unit), unit.draws,
            OpLibrary(partial(self._in_value_form, symbol), unit.graphs, unit.ops, plan.propto, plan.jacobian,
                      self._externals),
            choices.hooks, unit.hooked,
        )  # fmt: skip

    @staticmethod
    def _root(module: Any, symbol: str | ModelRoot) -> Any:
        """The function that is run, made if it is not one of the program."""
        from ulam.tracing.instrument.density import model_function
        from ulam.tracing.instrument.fields import called_with_fields, takes_tuples
        from ulam.tracing.instrument.unit import find_function

        if isinstance(symbol, ModelRoot):
            return model_function(module, symbol.name, jacobian=symbol.jacobian)
        function = next(f for f in find_function(module, "") if f.sym_name.data == symbol)
        return called_with_fields(module, function) if takes_tuples(function) else function

    def _in_value_form(self, symbol: str | ModelRoot) -> ProgramParts:
        """The program, ready to be lowered."""
        from xdsl.context import Context

        from ulam.passes.lowering_pipeline import to_value_form
        from ulam.passes.strip_profiles import StripProfiles

        module = self._module()
        self._root(module, symbol)
        StripProfiles().apply(Context(), module)
        return to_value_form(module)

    def _run(
        self, symbol: str | ModelRoot, context: TraceContext, values: Sequence[Any], types: Sequence[ValueType],
        rng: Source | None, on_error: str,
    ) -> Trace:  # fmt: skip
        compiled = self.compiled(symbol, context)
        recorder = self.recorder(context, compiled.tables.longest)
        error, draws, continuation, printed = self._record(compiled, recorder, values, types, rng)
        if printed:
            PRINTED.get()(printed)
        tape = Tape(recorder, compiled.tables, values, error is not None)
        trace = Trace(tape, context, self.source, compiled.ops, compiled.library)
        trace.draws, trace.continuation = draws, continuation
        replay = None if rng is None else Replay.of(draws)
        trace.again = lambda other: self._run(symbol, other, values, types, replay, "keep")
        parts = not (isinstance(symbol, ModelRoot) and symbol.propto)
        again = partial(self.run_again, symbol)
        trace.runs[0] = RecordedRun(recorder, values, types, draws, continuation, error, "", again, parts=parts)
        if context.overflow == "edges":
            recorder.replay = partial(self._replay, compiled, recorder.chunk_bytes, values, types, draws)
        if error is not None:
            trace.error = TraceError(error, None)
            trace.error = TraceError(error, origin(trace))
            if on_error == "raise":
                error.trace = trace
                raise error
        return trace

    def _record(
        self, compiled: _Compiled, recorder: Recorder, values: Sequence[Any], types: Sequence[ValueType],
        rng: Source | None, with_hooks: bool = True,
    ) -> tuple[UlamError | None, Draws, Continuation, str]:  # fmt: skip
        """Runs the clone once; the error if there was one, what was drawn, what would be next, what was printed."""
        recorder.begin(compiled.tables.rows)
        data = BoundData(compiled.slots)
        data.set_int(0, recorder.address)
        store_arguments(data, values, types)
        with self._contexts.context() as run:
            draws = None if rng is None else generator(run, rng)
            if draws is not None:
                run.rng = draws
                recorder.watch(draws.counter)
            hooks = Hooks(compiled.hooks, compiled.hooked) if with_hooks and compiled.hooks else None
            if hooks is not None:
                recorder.listen(run.address, hooks.callback)
            status = run.run_plain(compiled.entry, data.address)
            taken = NO_DRAWS if draws is None else draws.taken()
            left = NO_CONTINUATION if draws is None else draws.continuation()
            printed = run.take_output()
            error = None if not status else _error(compiled, status, run, draws)
            run.rng = None
        if hooks is not None and hooks.failure is not None:
            error = hooks.error()
        recorder.finish()
        return error, taken, left, printed

    def _replay(
        self, compiled: _Compiled, chunk_bytes: int, values: Sequence[Any], types: Sequence[ValueType], draws: Draws
    ) -> Recorder:
        """The same run once more, all of it kept."""
        recorder = Recorder(1 << 62, "stop", chunk_bytes)
        self._record(compiled, recorder, values, types, Replay.of(draws), with_hooks=False)
        return recorder

    def recorder(self, context: TraceContext, longest: int = 0) -> Recorder:
        """One that nobody reads any more, or a new one. `longest`: bytes of the longest record."""
        return self._recorders.take(context.limit_bytes, context.overflow, longest)


def _error(compiled: _Compiled, status: int, run: Any, draws: Any) -> UlamError:
    if draws is not None and draws.problem == 1:
        return DrawsExhausted.after(len(draws.taken()))
    if draws is not None and draws.problem == 2:
        return OtherDraws("the function draws other random numbers than those that are replayed")
    site = run.error_site
    known = (
        compiled.sites[site]
        if 0 <= site < len(compiled.sites)
        else ErrorSite(status, "the program failed", "", 0, 0, "")
    )
    return known.error(status, run.error_values, run.message)
