"""Programs in this process as shared libraries with BridgeStan's C interface, without a linker: docs/bridgestan.md.

A library is a copy of the extension `_bridgestan` (c/shim/bridgestan.c) under a name of its own, loaded here, with the
addresses of the C runtime's functions and of the program's tables put in. Whoever opens the same file in this process
gets the library that is loaded already, and its functions call the code of this process.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache as memoize
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ulam.passes.pipelines import DEFAULT_LEVEL
from ulam.passes.units import UNITS
from ulam.runtime.c_library import library
from ulam.runtime.cached_compiler import CachedCompiler, with_includes
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import UlamError
from ulam.runtime.interrupts import stoppable
from ulam.runtime.libraries.program_tables import LOAD_INTERRUPTED, Notify, ProgramTables, entries, info_text
from ulam.runtime.program import ProgramCode
from ulam.runtime.versions import version_lines

LINK = "ulam_bridgestan_link"
"""The symbol of what a copy is told: a pointer to the functions, and one to the program."""


class InProcessLibrary:
    """A program as a library. Lives as long as the process: nobody knows who has opened it."""

    def __init__(self, code: ProgramCode, whole: Callable[[], ProgramCode], lines: list[str], key: str) -> None:
        self._code = code
        self._whole = whole
        self._lock = threading.RLock()
        self._filled: set[str] = set()
        self.tables = ProgramTables(code.metadata(), info_text(lines), self._load)
        # Python's own handler runs when the client's call is back in Python.
        self.tables.program.interrupted = ctypes.cast(ctypes.pythonapi.PyErr_SetInterrupt, Notify)
        self._names = list(UNITS)
        name = re.sub(r"[^\w-]", "_", self.tables.program.name.decode())[:64]
        self.path = _folder() / f"{name}_{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
        shutil.copyfile(shim_path(), self.path)
        self._opened = ctypes.CDLL(_alias(self.path))
        link = (ctypes.c_void_p * 2).in_dll(self._opened, LINK)
        functions = ctypes.c_char.in_dll(library(), "ulam_bridgestan")
        link[:] = ctypes.addressof(functions), self.tables.address

    def _load(self, user: int, number: int, error: int) -> int:
        """Called from C, by any thread: the code of a unit for the tables. Not 0: there is none, `error` says why."""
        del user
        try:
            stoppable(lambda: self._fill(self._names[number]))
            return 0
        except BaseException as raised:  # none may pass through C
            library().ulam_text_say(error, _told(raised).encode(errors="replace"))
            return LOAD_INTERRUPTED if isinstance(raised, KeyboardInterrupt) else 1

    def _fill(self, name: str) -> None:
        with self._lock:
            if name in self._filled:
                return
            compiled, loaded = self._code.unit(name)
            if compiled.pieces:  # what runs without Python calls no pieces
                compiled, loaded = self._whole().unit(name)
            kind = UNITS[name]
            self.tables.fill(name, compiled, {entry: loaded.address(kind.symbol(entry)) for entry in entries(kind)})
            self._filled.add(name)


def _told(raised: BaseException) -> str:
    if isinstance(raised, KeyboardInterrupt):
        return "interrupted"
    if isinstance(raised, (UlamError, OSError)) and str(raised):
        return str(raised)
    return f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__


_libraries: dict[str, InProcessLibrary] = {}
_lock = threading.RLock()


def library_of(
    text: str, filename: str, options: CompileOptions, code: ProgramCode | None = None, *, cache: bool = True
) -> str:
    """The path of the library of a program, for any data. The same program has the same library.

    `code`: the program's, if that is not for some data only.
    """
    options = replace(options, opt_level=min(options.opt_level, DEFAULT_LEVEL))
    key = repr((with_includes(text, filename, options.include_paths), filename, options, cache))
    with _lock:
        found = _libraries.get(key)
        if found is None:

            @memoize
            def whole() -> ProgramCode:
                kind = CachedCompiler if cache else Compiler
                return ProgramCode(kind(text, filename, replace(options, pieces=False)))

            lines = [*version_lines(), options.about_level]
            found = _libraries[key] = InProcessLibrary(whole() if code is None else code, whole, lines, key)
        return os.fspath(found.path)


def _alias(path: Path) -> str:
    """Another name of the file, to open it by: clients warn of libraries whose names are of opened ones."""
    alias = path.with_name(f".{path.name}")
    try:
        os.link(path, alias)
    except OSError:
        return str(path)
    return str(alias)


def shim_path() -> Path:
    """The extension that libraries are copies of."""
    import ulam.runtime

    for pattern in ("_bridgestan.abi3.so", f"_bridgestan{EXTENSION_SUFFIXES[0]}", "_bridgestan*"):
        for folder in ulam.runtime.__path__:
            for path in sorted(Path(folder).glob(pattern)):
                return path
    raise ImportError("the library of BridgeStan's functions is not built: install the package with `pip install .`")


@memoize
def _folder() -> Path:
    """A folder of this process for its copies, that others cannot write to. It goes when the process ends."""
    folder, owner = tempfile.mkdtemp(prefix="ulam-libraries-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not a child that was forked
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)
