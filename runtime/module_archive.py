"""The compiler's modules in one file, beside Python's own compiled modules, which are one file each.

A compile imports more than two hundred modules, and Python looks for each in folders, asks for the times of its two
files and reads one: longer than most take to run. The archive has the same code, as `SourceFileLoader` got it. It is
in `__pycache__`, or where `PYTHONPYCACHEPREFIX` says, and written by the first compile that may write there (not with
`PYTHONDONTWRITEBYTECODE`). It holds for one version of Python and one state of all files of the package
(`package_fingerprint`), and is as far to be trusted as the compiled modules beside it. What is not in it, and all where
there is none, is imported as ever; so is what is reloaded.
"""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ulam.emit.object_cache import package_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import CodeType, ModuleType

PACKAGES = ("dialects", "emit", "frontend", "library", "passes")
"""What is in it: all that only compiles import."""

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_NUMBER_BYTES = 8


class ModulePlace(NamedTuple):
    """Where a module is: in the file system, and in the archive."""

    path: str
    compiled_path: str
    is_package: bool
    start: int
    end: int


def archive_path() -> str:
    """Where the archive of this version of Python is."""
    return f"{os.path.splitext(cache_from_source(os.path.join(_PACKAGE, 'compiler.py')))[0]}.modules"


class ArchiveFinder:
    """Finds modules of an archive that are not imported yet."""

    def __init__(self, places: Mapping[str, ModulePlace], code: memoryview) -> None:
        self._places = places
        self._code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Part of the protocol of finders."""
        if (entry := self._places.get(name)) is None or name in sys.modules:
            return None
        place = ModulePlace(*entry)
        loader = _ArchiveLoader(name, place.path)
        loader.code = self._code[place.start : place.end]
        spec = ModuleSpec(name, loader, origin=place.path, is_package=place.is_package)
        spec.has_location = True
        spec.cached = place.compiled_path
        if place.is_package:
            spec.submodule_search_locations = [os.path.dirname(place.path)]
        return spec


class _ArchiveLoader(SourceFileLoader):
    """What loads a module from its source file, but for its code."""

    code: memoryview

    def get_code(self, fullname: str) -> CodeType:
        return marshal.loads(self.code)


def use_archive() -> None:
    """From here on what the archive has is imported from there. It is written if there is none that holds."""
    with suppress(OSError):
        path = archive_path()
        found = _read(path)
        if found is None and not sys.dont_write_bytecode:
            _write(path)
            found = _read(path)
        if found is not None:
            sys.meta_path.insert(0, found)


def _head() -> bytes:
    return b"ulam modules 1\n" + MAGIC_NUMBER + package_fingerprint().encode()


def _read(path: str) -> ArchiveFinder | None:
    """What finds modules of the archive; None if it does not hold, or is not there."""
    head = _head()
    try:
        with open(path, "rb", buffering=0) as file:
            if file.read(len(head)) != head:
                return None
            text = file.read()
    except FileNotFoundError:
        return None
    length = int.from_bytes(text[:_NUMBER_BYTES], "little")
    code = memoryview(text)[_NUMBER_BYTES + length :]
    try:
        places: dict[str, ModulePlace] = marshal.loads(text[_NUMBER_BYTES : _NUMBER_BYTES + length])
    except (EOFError, TypeError, ValueError):  # what is left of a file system that was full
        return None
    complete = max((end for *_, end in places.values()), default=0) == len(code)
    return ArchiveFinder(places, code) if complete else None


def _write(path: str) -> None:
    """Makes the archive, with a name of its own until all is written."""
    modules = [(*each, marshal.dumps(SourceFileLoader(*each[:2]).get_code(each[0]))) for each in _modules()]
    ends = accumulate(len(code) for *_, code in modules)
    index = marshal.dumps({
        name: (source, cache_from_source(source), is_package, end - len(code), end)
        for (name, source, is_package, code), end in zip(modules, ends, strict=True)
    })  # fmt: skip
    os.makedirs(os.path.dirname(path), exist_ok=True)
    own = f"{path}.{os.getpid()}"
    try:
        with open(own, "xb") as file:
            file.writelines((_head(), len(index).to_bytes(_NUMBER_BYTES, "little"), index))
            file.writelines(code for *_, code in modules)
        os.replace(own, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(own)


def _modules() -> Iterator[tuple[str, str, bool]]:
    """Names of modules, their source files, and whether they are packages."""
    for package in PACKAGES:
        for folder, inner, files in os.walk(os.path.join(_PACKAGE, package)):
            inner[:] = [name for name in inner if name.isidentifier() and name != "__pycache__"]
            within = ["ulam", *os.path.relpath(folder, _PACKAGE).split(os.sep)]
            for name, kind in map(os.path.splitext, files):
                if kind == ".py":
                    own = within if name == "__init__" else [*within, name]
                    yield ".".join(own), os.path.join(folder, f"{name}.py"), name == "__init__"
