"""`ulam build`: a program as a shared library that any program may load, with BridgeStan's C interface and that of
`ulam.h`: all its units, the tables that describe it, and the C runtime, linked into one file (docs/bridgestan.md).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulam.emit import jit
from ulam.emit.errors import TargetError
from ulam.passes.errors import NotSupportedError
from ulam.passes.units import UNITS
from ulam.runtime.arguments import chosen_level, read_source
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError
from ulam.runtime.externals import forms, given
from ulam.runtime.interrupts import checkpoint, held, stoppable
from ulam.runtime.libraries.archive import archive_path
from ulam.runtime.libraries.linkers import available_linker, link
from ulam.runtime.libraries.program_tables import ProgramTables, info_text, llvm_module
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import check_writable, writing
from ulam.runtime.program import EXTERNAL, compile_errors
from ulam.runtime.versions import version_lines

if TYPE_CHECKING:
    from ulam.runtime.external_functions import External

EXPORTS = ("bs_*", "ulam_native_handle", "ulam_sample")
"""What a library shows: patterns."""
ROOTS = ("bs_model_construct", "ulam_native_handle", "ulam_sample")
"""Functions that make the linker take all of these out of the archive."""

SUFFIX = "_model.so"
"""Of a library without a name of its own, as BridgeStan calls it."""


def build(
    source: str | os.PathLike[str] | NamedText,
    output: str | os.PathLike[str] | None = None,
    *,
    target_cpu: str = "native",
    opt_level: int | str | None = None,
    passes: str | None = None,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    cache: bool = True,
    layouts: bool = True,
    external: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
) -> Path:
    """Builds the library of a program, whatever its data; returns its path.

    `output`: the file, NAME_model.so in the current folder for a program NAME.stan. `target_cpu`: `native` for machines
    like this one, `generic` for all of its architecture, or a level of it (`x86-64-v3`). `layouts`: as of `StanModel`.
    Large programs with most of their code in branches on data have all passes only of a level that is asked for.
    Linux only.

    Raises `BuildError` if there is no linker, or something that the library needs and nobody has; CompileError and
    OSError.
    """
    level = chosen_level(opt_level, passes)
    paths = tuple(os.fspath(path) for path in include_paths)
    functions = given(external)
    options = CompileOptions(
        include_paths=paths, profile="off", target=target_cpu, layouts=bool(layouts), externals=forms(functions),
        few_passes=opt_level is None, **level,
    )  # fmt: skip
    if options.wants_data:
        asked = "specialize-data" if passes is not None else f"opt_level={opt_level}"
        raise ArgumentError(f"{asked} is for certain data, and a library for any: give a lower one")
    try:
        jit.target(target_cpu)
    except TargetError as error:
        raise ArgumentError(str(error)) from None

    def work() -> Path:
        available_linker()
        text, filename = read_source(source)
        path = Path(output) if output is not None else Path(f"{Path(filename).stem}{SUFFIX}")
        check_writable(path)
        kind = CachedCompiler if cache else Compiler
        library = _linked(kind(text, filename, options), options, functions)
        with writing(path, binary=True) as file:
            file.write(library)
        return path

    return stoppable(work, time_limit)


def _linked(
    compiler: CachedCompiler | Compiler, options: CompileOptions, functions: Mapping[str, External]
) -> bytes:
    """The library of a program."""
    with compile_errors():
        units = _compiled(compiler, options)
        code = {name: compiler.compiled(name).code for name in units}
        tables = held(lambda: _tables(compiler, options, units))
    checkpoint()
    with tempfile.TemporaryDirectory(prefix="ulam-build-") as name:
        folder = Path(name)
        objects: list[Path] = []
        further, libraries = _external(code, options, functions)
        for unit, content in {**code, "tables": tables, **further}.items():
            objects.append(folder / f"{unit}.o")
            objects[-1].write_bytes(content)
        link(objects, [archive_path()], EXPORTS, ROOTS, folder / "library.so", libraries=libraries)
        return (folder / "library.so").read_bytes()


def _external(
    code: Mapping[str, bytes], options: CompileOptions, functions: Mapping[str, External]
) -> tuple[dict[str, bytes], list[Path]]:
    """Objects that lead to the external functions that units call, and the shared libraries that have these."""
    if not any(EXTERNAL in content for content in code.values()):
        return {}, []
    from ulam.emit.external_calls import trampolines
    from ulam.runtime.external_functions import Externals

    symbols, files = Externals(functions).c_functions(code.values())
    held_object = held(
        lambda: jit.compile_object(trampolines(symbols), jit.SCALAR, checkpoint, processor=options.target)
    )
    return {"external": held_object}, [Path(file) for file in files]


def _compiled(compiler: CachedCompiler | Compiler, options: CompileOptions) -> list[str]:
    """Compiles the units, and returns their names. Of an external function second derivatives are not known: a library
    of one that has parameters is without them.
    """
    second = [name for name, kind in UNITS.items() if kind.hessian]
    if not options.externals and not held(compiler.metadata).get("libraries"):
        held(lambda: compiler.compile_all(UNITS))
        return list(UNITS)
    first = [name for name in UNITS if name not in second]
    held(lambda: compiler.compile_all(first))
    try:
        held(lambda: compiler.compile_all(second))
    except NotSupportedError:
        return first
    return list(UNITS)


def _tables(compiler: CachedCompiler | Compiler, options: CompileOptions, units: Sequence[str]) -> bytes:
    """The object with the program's tables."""
    machine = jit.target(options.target)
    about = [*version_lines(), options.about_level, f"Processor: {machine.cpu}"]
    tables = ProgramTables(compiler.metadata(), info_text(about))
    for name in units:
        tables.fill(name, compiler.compiled(name), {})
    text = llvm_module(tables)
    return jit.compile_object(text, jit.SCALAR, checkpoint, processor=options.target)
