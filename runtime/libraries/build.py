"""`ulam build`: a program as a shared library that any program may load, with BridgeStan's C interface and that of
`ulam.h`: all its units, the tables that describe it, and the C runtime, linked into one file (docs/bridgestan.md).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ulam.emit import jit
from ulam.emit.errors import TargetError
from ulam.passes.units import UNITS
from ulam.runtime.arguments import optimization_level, read_source
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compiler import CompileOptions, Compiler
from ulam.runtime.errors import ArgumentError
from ulam.runtime.interrupts import checkpoint, held, stoppable
from ulam.runtime.libraries.archive import archive_path
from ulam.runtime.libraries.linkers import available_linker, link
from ulam.runtime.libraries.program_tables import ProgramTables, info_text, llvm_module
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import check_writable, writing
from ulam.runtime.program import compile_errors
from ulam.runtime.versions import version_lines

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
    opt_level: int = 3,
    include_paths: Sequence[str | os.PathLike[str]] = (),
    cache: bool = True,
    layouts: bool = True,
    time_limit: float | None = None,
) -> Path:
    """Builds the library of a program, whatever its data; returns its path.

    `output`: the file, NAME_model.so in the current folder for a program NAME.stan. `target_cpu`: `native` for machines
    like this one, `generic` for all of its architecture, or a level of it (`x86-64-v3`). `layouts`: as of `StanModel`.
    Linux only.

    Raises `BuildError` if there is no linker, or something that the library needs and nobody has; CompileError and
    OSError.
    """
    level = optimization_level(opt_level)
    paths = tuple(os.fspath(path) for path in include_paths)
    options = CompileOptions(level, paths, profile="off", target=target_cpu, layouts=bool(layouts))
    if options.wants_data:
        raise ArgumentError(f"opt_level={level} is for certain data, and a library for any: give a lower one")
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
        library = _linked(kind(text, filename, options), options)
        with writing(path, binary=True) as file:
            file.write(library)
        return path

    return stoppable(work, time_limit)


def _linked(compiler: CachedCompiler | Compiler, options: CompileOptions) -> bytes:
    """The library of a program."""
    with compile_errors():
        held(lambda: compiler.compile_all(UNITS))
        code = {name: compiler.compiled(name).code for name in UNITS}
        tables = held(lambda: _tables(compiler, options))
    checkpoint()
    with tempfile.TemporaryDirectory(prefix="ulam-build-") as name:
        folder = Path(name)
        objects: list[Path] = []
        for unit, content in {**code, "tables": tables}.items():
            objects.append(folder / f"{unit}.o")
            objects[-1].write_bytes(content)
        link(objects, [archive_path()], EXPORTS, ROOTS, folder / "library.so")
        return (folder / "library.so").read_bytes()


def _tables(compiler: CachedCompiler | Compiler, options: CompileOptions) -> bytes:
    """The object with the program's tables."""
    machine = jit.target(options.target)
    about = [*version_lines(), f"Optimization level: {options.opt_level}", f"Processor: {machine.cpu}"]
    tables = ProgramTables(compiler.metadata(), info_text(about))
    for name in UNITS:
        tables.fill(name, compiler.compiled(name), {})
    text = llvm_module(tables)
    return jit.compile_object(text, jit.ONCE, checkpoint, processor=options.target)
