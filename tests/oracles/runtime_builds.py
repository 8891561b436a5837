"""Other builds of the C runtime, for tests: with guard pages, with sanitizers, for other processors.

library = build_runtime(guard_pages.GUARDED)             # compiled once, then found again
os.environ["ULAM_RUNTIME"] = str(library)                # before ulam.runtime.c_library.library() is first called
"""

from __future__ import annotations

import hashlib
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[2]
BUILDS = ROOT / "build" / "runtimes"


def extension() -> dict[str, Any]:
    """What setup.py says of the C runtime: sources, flags, libraries."""
    found: dict[str, dict[str, Any]] = {}
    # Not setuptools itself, which need not be installed where tests run.
    commands = ("build_ext", "editable_wheel")
    names = ("setuptools", "setuptools.command", *(f"setuptools.command.{command}" for command in commands))
    stubs = {name: ModuleType(name) for name in names}
    stubs["setuptools"].__dict__.update(
        Extension=lambda name, sources, **settings: found.update({name: {"sources": sources, **settings}}),
        setup=lambda **settings: None,
    )
    for command in commands:
        stubs[f"setuptools.command.{command}"].__dict__[command] = object
    import_module("numpy")  # of setup.py: what is imported below is forgotten again, and NumPy can be loaded once only
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with mock.patch.dict(sys.modules, stubs):
            runpy.run_path("setup.py")
    finally:
        os.chdir(before)
    return found["ulam.runtime._rt"]


def c_compiler() -> str | None:
    """The C compiler's path; None if there is none."""
    return shutil.which(os.environ.get("CC", "cc"))


def compile_source(source: str, made: Path, flags: Sequence[str] = ()) -> Path:
    """The object file of one source of the runtime, compiled with setup.py's flags and then these."""
    settings, compiler = extension(), c_compiler()
    if compiler is None:
        raise RuntimeError("there is no C compiler")
    arguments = [*settings["extra_compile_args"], "-fPIC", *flags, *(f"-I{ROOT / i}" for i in settings["include_dirs"])]
    subprocess.run([compiler, "-c", *arguments, str(ROOT / source), "-o", str(made)], check=True)
    return made


def build_runtime(
    flags: Sequence[str] = (),
    *,
    folder: Path = BUILDS,
    compiler: str | None = None,
    library_dirs: Sequence[str | Path] | None = None,
) -> Path:
    """The shared library of the runtime, compiled with setup.py's flags and then these.

    For another processor: its compiler, and where its build of NumPy's library of distributions is.
    """
    settings = extension()
    compiler = compiler or c_compiler()
    if compiler is None:
        raise RuntimeError("there is no C compiler")
    sources = [ROOT / source for source in settings["sources"]]
    arguments = [*settings["extra_compile_args"], "-fPIC", *flags]
    includes = [f"-I{ROOT / path}" for path in settings["include_dirs"]]
    key = hashlib.sha256(repr((compiler, arguments, includes, sysconfig.get_platform())).encode())
    for path in sorted([*sources, *(ROOT / header for header in settings["depends"])]):
        key.update(path.read_bytes())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library = folder / f"runtime-{key.hexdigest()[:24]}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        objects = [Path(scratch) / f"{n}.o" for n in range(len(sources))]

        def compile_one(source: Path, made: Path) -> None:
            subprocess.run([compiler, "-c", *arguments, *includes, str(source), "-o", str(made)], check=True)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_one, sources, objects))
        linked = Path(scratch) / "runtime.so"
        folders = settings["library_dirs"] if library_dirs is None else library_dirs
        libraries = [f"-L{path}" for path in folders] + [f"-l{name}" for name in settings["libraries"]]
        # `-shared` behind the flags: sanitizers are named again when linking
        subprocess.run([compiler, *flags, "-shared", *map(str, objects), *libraries, "-o", str(linked)], check=True)
        linked.replace(library)
    return library
