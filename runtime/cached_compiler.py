"""The compiler behind the object cache: what was compiled before is read from disk, the rest compiled and stored.

One entry for each unit of a program; each also has the program's metadata. A hit imports neither xDSL nor the frontend
(a program with `#include` needs its includes resolved, which only imports `ulam.frontend.source`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from threading import RLock
from typing import TYPE_CHECKING, Any

from ulam.emit.kept_host import target
from ulam.emit.object_cache import CacheFolderError, Entry, ObjectCache, cache_key
from ulam.frontend.encoding import INCLUDE
from ulam.passes.units import UNITS
from ulam.runtime.c_library import exact_blocks, library, processor_numbers
from ulam.runtime.interrupts import checkpoint
from ulam.runtime.unit_objects import PieceObject, UnitObject

if TYPE_CHECKING:
    from ulam.frontend import syntax
    from ulam.passes.known_data import KnownData, KnownSwitches
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.compiler import Compiler
    from ulam.runtime.program import CompiledUnit

CODE = "code"
MOST_IN_MEMORY = 32
"""Units that are kept where no folder can be."""
# What the code of a program depends on beside ulam itself, whose files the key covers.
COMPILING_PACKAGES = ("xdsl", "llvmlite", "numpy")


class _ContentStore:
    """Units and pieces of large ones, by the digest of what they are compiled from, in the cache."""

    def __init__(self, cache: ObjectCache, keys: _Keys) -> None:
        self._cache = cache
        self._keys = keys

    def key(self, digest: str, unit: str) -> str:
        return self._keys.of(unit, digest)

    def get(self, key: str) -> tuple[Mapping[str, Any], bytes] | None:
        entry = self._cache.get(key)
        return None if entry is None or CODE not in entry.objects else (entry.metadata, entry.objects[CODE])

    def put(self, key: str, fields: dict[str, Any], code: bytes) -> None:
        self._cache.put(key, fields, {CODE: code})


_memory: dict[str, tuple[CompiledUnit, Mapping[str, Any]]] = {}
_memory_lock = RLock()


class _Keys:
    """Where the units of a program are in the cache. Knows nothing of the compiler, which knows this."""

    def __init__(self, text: str, filename: str, options: CompileOptions) -> None:
        self._written = text
        self._filename = filename
        self._options = options
        self.known: KnownData | KnownSwitches | None = None

    @cached_property
    def text(self) -> str:
        """The program with the files that it includes in place."""
        return with_includes(self._written, self._filename, self._options.include_paths)

    def of(self, unit: str, digest: str = "") -> str:
        """The key of a unit of this program; with a digest, of a unit of any that has this digest."""
        versions = _versions()
        machine = target(self._options.target, open_cache(), processor_numbers(), versions["llvmlite"])
        return cache_key(
            source=digest or self.text,
            options={
                "unit": unit,
                "file": "" if digest else self._filename,
                "content": bool(digest),
                "opt_level": self._options.opt_level,
                "passes": self._options.passes,
                "own_passes": self._own_passes(),
                "lines": self._options.lines,
                "layouts": self._options.layouts,
                "externals": self._options.externals,
                "pieces": self._options.may_be_pieces,
                "few_passes": self._options.may_have_few_passes,
                "exact_blocks": exact_blocks(),
                "data": self._data_digest(unit, of_content=bool(digest)),
            },
            versions={**versions, "abi": str(library().ulam_abi())},
            cpu=machine.cpu,
            features=machine.features,
        )

    def _data_digest(self, unit: str, *, of_content: bool) -> str | None:
        """That of the data that a unit is compiled for. What a program has become for its switches is its content."""
        known = self.known
        if known is None or UNITS[unit].locating or (of_content and known.is_in_program):
            return None
        return known.digest

    def _own_passes(self) -> list[str]:
        pipeline = self._options.pipeline
        if not pipeline:
            return []
        from ulam.passes.levels import fingerprints

        return fingerprints(pipeline)


class CachedCompiler:
    """Compiles one program unit by unit, through the cache."""

    def __init__(self, text: str, filename: str, options: CompileOptions) -> None:
        self._text = text
        self._filename = filename
        self._options = options
        self._metadata: Mapping[str, Any] | None = None
        self._units: dict[str, CompiledUnit] = {}
        self._keys = _Keys(text, filename, options)
        self.inspect: Callable[[syntax.Program], None] | None = None

    def specialize(self, known: KnownData | KnownSwitches) -> None:
        """Units that are asked for from now on are for data of which this is so."""
        self._keys.known = known
        if "_compiler" in self.__dict__:
            self._compiler.specialize(known)

    def metadata(self) -> Mapping[str, Any]:
        """The program's name and variables."""
        if self._metadata is None:
            self.compiled("setup")  # every program needs it, and its entry has the metadata
        assert self._metadata is not None
        return self._metadata

    def compiled(self, name: str) -> CompiledUnit:
        """A unit, from the cache or compiled now."""
        found = self._units.get(name)
        if found is None:
            found = self._units[name] = self._find(name)
        return found

    def compile_all(self, names: Iterable[str]) -> None:
        """Finds units in the cache and compiles the others, which is faster than one by one."""
        missing = [name for name in names if name not in self._units]
        if (cache := open_cache()) is not None:
            for name in missing:
                if (stored := self._stored(cache.get(self._keys.of(name)))) is not None:
                    self._units[name] = stored
        missing = [name for name in missing if name not in self._units]
        if missing:
            self._compiler.compile_all(missing)
        for name in missing:
            self.compiled(name)

    def quickly(self, name: str) -> UnitObject | None:
        """A first version of a unit, if the cache does not have it and LLVM would take long (`Compiler.quickly`)."""
        if name in self._units:
            return None
        if (cache := open_cache()) is not None and (stored := self._stored(cache.get(self._keys.of(name)))) is not None:
            self._units[name] = stored
            return None
        self.metadata()
        return self._compiler.quickly(name)

    def finish(self, name: str, between: Callable[[], None]) -> None:
        """Compiles what there is a first version of, and stores it."""
        self._compiler.finish(name, between)
        self.compiled(name)

    def _find(self, name: str) -> CompiledUnit:
        key = self._keys.of(name)
        cache = open_cache()
        if cache is None:
            return self._kept_in_memory(key, name)
        if (stored := self._stored(cache.get(key))) is not None:
            return stored
        with cache.alone(key, checkpoint):  # several jobs on a machine begin with the same program
            stored = self._stored(cache.get(key))
            return self._made(name, key, cache) if stored is None else stored

    def _kept_in_memory(self, key: str, name: str) -> CompiledUnit:
        """Without a folder: what this process has compiled for other models, or compiled now."""
        with _memory_lock:
            checkpoint()  # the thread that had the lock may have been asked to end, and this one, too
            if key not in _memory:
                unit = self._made(name, key, None)
                _memory[key] = unit, self.metadata()
                while len(_memory) > MOST_IN_MEMORY:
                    del _memory[next(iter(_memory))]
            unit, metadata = _memory[key]
            if not _has_libraries(metadata.get("libraries")):
                del _memory[key]
                return self._kept_in_memory(key, name)
        self._metadata = self._metadata or metadata
        return unit

    def _made(self, name: str, key: str, cache: ObjectCache | None) -> CompiledUnit:
        """A unit, compiled now and stored."""
        metadata = self._compiler.metadata()
        if self._metadata is None:
            self._metadata = {key: metadata[key] for key in ("name", "globals", "profiles", "libraries", "switches")}
        unit: CompiledUnit = self._compiler.compiled(name)
        if cache is not None:
            record = {
                "program": self._metadata,
                "sites": list(unit.sites),
                "n_slots": unit.n_slots,
                "draws": unit.draws,
                "layouts": list(unit.layouts),
                "pieces": [[piece.key, piece.n_slots, piece.data, piece.reads, piece.layouts] for piece in unit.pieces],
            }
            cache.put(key, record, {CODE: unit.code})
        return unit

    def _stored(self, entry: Entry | None) -> UnitObject | None:
        """The unit of an entry; None if there is none, or if it has other contents than a unit has."""
        if entry is None:
            return None
        match entry.metadata:
            case {
                "program": {"name": str(), "globals": list()},
                "sites": list(sites),
                "n_slots": int(n_slots),
                "draws": bool(draws),
                "layouts": list(layouts),
                "pieces": list(told),
            }:
                libraries = entry.metadata["program"].get("libraries")
                pieces = self._stored_pieces(told)
                if CODE not in entry.objects or pieces is None or not _has_libraries(libraries):
                    return None
                self._metadata = self._metadata or entry.metadata["program"]
                return UnitObject(entry.objects[CODE], sites, n_slots, draws, layouts, pieces)
            case _:
                return None

    def _stored_pieces(self, told: list[Any]) -> list[PieceObject] | None:
        """The pieces that a unit calls; None if one is not there any more."""
        cache = open_cache() if told else None
        pieces: list[PieceObject] = []
        for entry in told:
            match entry:
                case [str(key), int(n_slots), list(data), list(reads), list(layouts)]:
                    found = cache.get(key) if cache is not None else None
                    if found is None or CODE not in found.objects:
                        return None
                    pieces.append(PieceObject(found.objects[CODE], n_slots, data, reads, layouts, key))
                case _:
                    return None
        return pieces

    @cached_property
    def _compiler(self) -> Compiler:
        from ulam.runtime.compiler import Compiler

        compiler = Compiler(self._text, self._filename, self._options, inspect=self.inspect)
        if self._keys.known is not None:
            compiler.specialize(self._keys.known)
        if (cache := open_cache()) is not None:
            compiler.store = _ContentStore(cache, self._keys)
        return compiler


def _has_libraries(wanted: Any) -> bool:
    """Whether the libraries of other packages that a program was compiled with are as they were."""
    if not wanted:
        return True
    from ulam.library.own_libraries import fingerprint

    return all(fingerprint(name) == known for name, known in wanted.items())


def with_includes(text: str, filename: str, include_paths: Sequence[str]) -> str:
    """A program with the files that it includes in place."""
    if INCLUDE not in text:
        return text
    from ulam.frontend.source import Source

    return Source(text, filename, tuple(include_paths)).text


@cache
def _versions() -> dict[str, str]:
    return {name: _installation(name) for name in COMPILING_PACKAGES}


def _installation(name: str) -> str:
    """What changes with every installation of a package; `importlib.metadata` would take a tenth of a cached start."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "not installed"
    folder = os.path.dirname(os.path.dirname(spec.origin))
    records = [entry for entry in os.listdir(folder) if entry.startswith(f"{name}-") and entry.endswith("-info")]
    return " ".join([*sorted(records), str(os.stat(spec.origin).st_mtime_ns)])


def open_cache() -> ObjectCache | None:
    """The user's cache; None, with a warning, if its folder cannot be used."""
    try:
        return ObjectCache()
    except CacheFolderError as error:
        warnings.warn(f"{error}; compiled code is not cached", RuntimeWarning, stacklevel=2)
        return None
