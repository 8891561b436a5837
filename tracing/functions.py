"""What users call: functions of a program that can be tracked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.externals import externals_of, forms, given
from ulam.runtime.program import compile_errors
from ulam.tracing import face as _face  # noqa: F401 - the methods of nodes and traces
from ulam.tracing.contexts import TraceContext
from ulam.tracing.nodes import ItemNode
from ulam.tracing.session import TracedProgram
from ulam.tracing.tape.recorder import Source

if TYPE_CHECKING:
    from ulam.runtime.external_functions import Externals
    from ulam.runtime.named_text import NamedText


class StanFunction:
    """A function of a program: `track(function, *args)` runs and records it."""

    def __init__(self, program: TracedProgram, name: str) -> None:
        self.program, self.name = program, name

    def __repr__(self) -> str:
        return f"StanFunction({self.name!r})"


class Functions:
    """The functions of a program by name, as attributes: `functions("model.stan").f`. Needs no data."""

    def __init__(self, program: TracedProgram) -> None:
        self._program = program

    def __getattr__(self, name: str) -> StanFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._program.signatures:
            known = ", ".join(self._program.signatures) or "none"
            raise AttributeError(f"the program has no function '{name}'; its functions: {known}")
        return StanFunction(self._program, name)

    def __getitem__(self, name: str) -> StanFunction:
        """A function of any name. Raises ArgumentError if there is none."""
        self._program.overloads(name)
        return StanFunction(self._program, name)

    def __dir__(self) -> list[str]:
        return sorted(self._program.signatures)


def traced_program(
    text: str, filename: str, options: CompileOptions, externals: Externals | None = None
) -> TracedProgram:
    """The functions of a program. Raises CompileError."""
    with compile_errors():
        return TracedProgram(text, filename, options, externals)


def functions(
    source: str | os.PathLike[str] | NamedText,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    external: Mapping[str, Any] | None = None,
) -> Functions:
    """The functions of a program, given as a path or as text. `external`: as of `StanModel`."""
    from ulam.runtime.arguments import read_source

    text, filename = read_source(source)
    paths = tuple(os.fspath(path) for path in include_paths)
    given_functions = given(external)
    options = CompileOptions(0, paths, externals=forms(given_functions))
    return Functions(traced_program(text, filename, options, externals_of(options, given_functions)))


def track(
    function: StanFunction,
    *arguments: Any,
    context: TraceContext | None = None,
    rng: Source | None = None,
    on_error: str = "keep",
) -> ItemNode:
    """Runs a function and records what it does; returns the node of the call.

    `rng`: Seeded, Scripted, Replay or an Rng, for functions that draw. With `on_error` "keep" a run that fails gives
    what was recorded until then, with `node.trace.error` set; with "raise" the exception has it as `trace`.
    """
    return function.program.track(function.name, arguments, context, rng, on_error)


def traced_ir(function: StanFunction, *arguments: Any, context: TraceContext | None = None) -> str:
    """The traced clones with their `trace` ops, and their tables, as MLIR. Arguments choose among overloads."""
    program = function.program
    overloads = program.signatures[function.name]
    symbol = overloads[0][0] if len(overloads) == 1 and not arguments else program.bind(function.name, arguments)[0]
    return program.compiled(symbol, context or TraceContext()).instrumented
