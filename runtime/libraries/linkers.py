"""Linkers: object files and the C runtime become a shared library that needs nothing but the C library (Linux).

The first linker of `LINKERS` that there is does it. All are given the same: what the library shows to others by name,
and the files of the C library that this process has, so that no package for development is needed and a function that
nobody has is an error that names it.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from ulam.runtime.errors import UlamError


class BuildError(UlamError):
    """A library that cannot be built: no linker, or something that it needs and nobody has."""


@dataclass(frozen=True)
class Linker:
    """How one is found and called. `find`: the words that call it, or None; `before`: what goes before an option."""

    name: str
    find: Callable[[], tuple[str, ...] | None]
    before: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


def _program(name: str) -> Callable[[], tuple[str, ...] | None]:
    def find() -> tuple[str, ...] | None:
        found = which(name)
        return None if found is None else (found,)

    return find


def _ziglang() -> tuple[str, ...] | None:
    return (sys.executable, "-m", "ziglang", "ld.lld") if find_spec("ziglang") is not None else None


LINKERS = (
    Linker("ld", _program("ld")),
    Linker("ld.lld", _program("ld.lld")),
    Linker("cc", _program("cc"), before=("-Xlinker",), first=("-nostdlib",)),
    Linker("ziglang", _ziglang),
)
"""In the order in which they are tried."""

INSTALL = "install binutils or lld with the system's package manager, or `pip install ziglang`"

OPTIONS = (
    "--eh-frame-hdr", "--as-needed", "--strip-debug", "--build-id=none",
    "-z", "defs",  # what nobody has is an error
    "-z", "now",  # and not looked for while code runs
    "-z", "relro", "-z", "text", "-z", "noexecstack",
)  # fmt: skip

_C_LIBRARY = re.compile(r"(lib(m|c|pthread)|ld-linux[-.\w]*|(libc|ld)[-.]musl[-.\w]*)([-.]\d[.\d]*)?\.so(\.\d+)?\Z")
_MISSING = re.compile(r"undefined (?:reference to|(?:hidden )?symbol:?) [`']?([^'\s]+)")
SHOWN_NAMES = 20


@cache
def c_library_files() -> tuple[str, ...]:
    """The files of the C library and its parts, as this process has loaded them; libm first."""
    with suppress(OSError):
        ctypes.CDLL("libm.so.6")
    found: dict[str, None] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")
        if path[1] and _C_LIBRARY.match(path[2].rpartition("/")[2]):
            found[f"/{path[2]}"] = None
    return tuple(sorted(found, key=lambda path: "libm" not in path))


def available_linker(name: str | None = None) -> tuple[Linker, tuple[str, ...]]:
    """The first linker that there is, or the one of this name, and how it is called. Raises BuildError."""
    if not sys.platform.startswith("linux"):
        raise BuildError(f"libraries are built on Linux only, and this is {sys.platform}; see `bridgestan_library`")
    chosen = [linker for linker in LINKERS if name in (None, linker.name)]
    for linker in chosen:
        command = linker.find()
        if command is not None:
            return linker, command
    names = ", ".join(linker.name for linker in chosen)
    raise BuildError(f"there is no linker (tried {names}): {INSTALL}")


def link(
    objects: Sequence[Path],
    archives: Sequence[Path],
    exports: Sequence[str],
    roots: Sequence[str],
    output: Path,
    linker: str | None = None,
    libraries: Sequence[Path] = (),
) -> None:
    """Writes the library `output`, which shows `exports` (patterns) and nothing else. Raises BuildError.

    `libraries`: shared libraries that it needs, which are looked for where they are now. `roots`: symbols that are
    taken out of archives even if no object wants them.
    """
    found, command = available_linker(linker)
    with tempfile.NamedTemporaryFile("w", suffix=".map") as script:
        script.write(f"{{ global: {' '.join(f'{name};' for name in exports)} local: *; }};\n")
        script.flush()
        options = [*OPTIONS, f"--version-script={script.name}", *(f"--undefined={name}" for name in roots)]
        options += [f"-rpath={folder}" for folder in dict.fromkeys(path.parent for path in libraries)]
        words = [*command, *found.first, "-shared", "-o", str(output)]
        for option in options:
            words += [*found.before, option]
        words += [*map(str, objects), *map(str, archives), *map(str, libraries), *c_library_files()]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace")
        except OSError as error:
            raise BuildError(f"the linker {found.name} cannot be started: {error}") from None
    if done.returncode:
        raise BuildError(_failure(found.name, done.stderr or done.stdout))


def _failure(linker: str, output: str) -> str:
    missing = sorted(set(_MISSING.findall(output)))
    if missing:
        shown = ", ".join(missing[:SHOWN_NAMES]) + (", ..." if len(missing) > SHOWN_NAMES else "")
        return f"the library would need {shown}, which neither ulam's C runtime nor this system's C library has"
    return f"the linker {linker} failed:\n{output.strip()}"
