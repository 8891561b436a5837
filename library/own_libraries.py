"""Libraries of other packages and users: folders of `.stan` definitions, and external functions, that programs call as
they call Stan's.

A library is an entry point of the group `ulam.library`, or registered (`ulam.register_library`). Its definitions are
written as those of this folder are; a function that it declares without a body is an external function that it has.
They are read when a program calls a function that nobody here knows; `found` says what was read so far.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ulam.library import signature_table
from ulam.library.definition_heads import heads
from ulam.library.digests import sha256
from ulam.library.extension_points import ExtensionError, ExtensionPoint
from ulam.library.records import record

if TYPE_CHECKING:
    from ulam.library.externals import ExternalForm

OWN_LIBRARIES = ExtensionPoint("ulam.library", "library")

SUFFIX = ".stan"

_CACHES = (
    "ulam.library.catalog:file_text", "ulam.library.catalog:definitions", "ulam.library.functions:function",
    "ulam.frontend.functions.definitions:overloads", "ulam.frontend.functions.definitions:_resolve",
    "ulam.frontend.functions.signatures:overloads", "ulam.frontend.functions.signatures:exists",
    "ulam.frontend.functions.signatures:names", "ulam.frontend.functions.signatures:unique_cheapest",
    "ulam.frontend.functions.signatures:cheapest", "ulam.frontend.functions.support:supports_call",
    "ulam.frontend.functions.support:supports_name", "ulam.frontend.functions.library_calls:call_types",
)  # fmt: skip
"""Functions that remember what they have found by name, or not."""


@record(frozen=True)
class StanLibrary:
    """Definitions in the `.stan` files of a folder, and external functions by name; what an entry point may be."""

    folder: str | os.PathLike[str] | None = None
    external: Mapping[str, Any] | None = None
    """Of `ulam.external`, for the functions that the files declare without a body, and for programs that do."""
    version: str = ""

    def files(self) -> list[Path]:
        """Its files, in order."""
        return [] if self.folder is None else sorted(Path(self.folder).glob(f"*{SUFFIX}"))


@record(frozen=True)
class OwnFunction:
    """A function of such a library: where its definitions are."""

    library: str
    places: tuple[tuple[str, int], ...]
    """File and offset of each."""


class _Found:
    """What was read of all libraries."""

    def __init__(self) -> None:
        self.fingerprints: dict[str, str] = {}  # by library: those of what was read
        self.functions: dict[str, OwnFunction] = {}
        self.external: dict[str, tuple[str, Any]] = {}  # library, function


_found: _Found | None = None


def found() -> _Found | None:
    """What was read so far; None if nothing was needed yet."""
    return _found


def read() -> None:
    """Reads all libraries that there are, unless that was done. Raises ExtensionError."""
    global _found
    if _found is not None:
        return
    new = _Found()
    for name in OWN_LIBRARIES.names():
        _read(new, name)
    _forget()
    _found = new


def _forget() -> None:
    """Forgets what was read, and what others remember of it."""
    global _found
    _found = None
    for place in _CACHES:
        module, _, function = place.partition(":")
        if (loaded := modules.get(module)) is not None:
            getattr(loaded, function).cache_clear()


def _read(new: _Found, name: str) -> None:
    library = library_of(name)
    assert library is not None
    new.fingerprints[name] = fingerprint(name)
    for path in library.files():
        for function, offset in heads(path.read_text(encoding="utf-8")):
            _check_new(new, name, function, f"{path.name} of library '{name}'")
            known = new.functions.get(function)
            places = () if known is None else known.places
            new.functions[function] = OwnFunction(name, (*places, (str(path), offset)))
    for function, given in (library.external or {}).items():
        _check_new(new, name, function, f"library '{name}'")
        if (other := new.external.get(function)) is not None and other[0] != name:
            raise ExtensionError(f"library '{name}' has an external function '{function}', as library '{other[0]}' has")
        new.external[function] = (name, given)


@cache
def _own_names() -> frozenset[str]:
    """What ulam's library defines, for programs or for itself."""
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob(f"*{SUFFIX}")]
    return frozenset(name for text in texts for name, _ in heads(text))


def _check_new(new: _Found, name: str, function: str, where: str) -> None:
    if signature_table.exists(function) or function in _own_names():
        raise ExtensionError(f"{where} defines '{function}', which Stan's library or ulam's has already: rename it")
    known = new.functions.get(function)
    if known is not None and known.library != name:
        raise ExtensionError(f"{where} defines '{function}', which library '{known.library}' has already")


def register(name: str, library: StanLibrary) -> None:
    """Adds a library of this process, in the place of one of that name that was registered before."""
    if not name.isidentifier():
        raise ExtensionError(f"'{name}' is no name of a library: letters, digits and underscores make one")
    if library.folder is not None and not os.path.isdir(library.folder):
        raise ExtensionError(f"library '{name}': there is no folder '{os.fspath(library.folder)}'")
    OWN_LIBRARIES.register(name, library)
    _forget()


def library_of(name: str) -> StanLibrary | None:
    """The library of a name: a `StanLibrary`, or the folder that an entry point gives, or that of a package."""
    thing = OWN_LIBRARIES.find(name)
    if thing is None or isinstance(thing, StanLibrary):
        return thing
    if isinstance(thing, ModuleType):
        return StanLibrary(os.path.dirname(thing.__file__ or ""))
    if isinstance(thing, str | os.PathLike):
        return StanLibrary(os.fspath(thing))
    raise ExtensionError(
        f"library '{name}' is no ulam.StanLibrary, no folder and no package, but a {type(thing).__name__}"
    )


def external_form(function: str) -> ExternalForm | None:
    """What the compiler must know of an external function that a library has; None if none has it."""
    read()
    assert _found is not None
    given = _found.external.get(function)
    return None if given is None else given[1].form(function)


def external_of(function: str) -> Any:
    """The external function of this name that a library has, or None."""
    read()
    assert _found is not None
    given = _found.external.get(function)
    return None if given is None else given[1]


def fingerprints(functions: Iterable[str], external: Iterable[str]) -> dict[str, str]:
    """Of the libraries that have some of these functions, or external functions: what changes with them."""
    if (everything := found()) is None:
        return {}
    names = {own.library for f in functions if (own := everything.functions.get(f)) is not None}
    names |= {given[0] for f in external if (given := everything.external.get(f)) is not None}
    return {name: everything.fingerprints[name] for name in sorted(names)}


def fingerprint(name: str) -> str:
    """Changes with all that a program may have of a library: its version, definitions, what its functions are. Of one
    that this process has read, as it was then. '' if there is none.
    """
    if _found is not None:
        return _found.fingerprints.get(name, "")
    library = library_of(name)
    if library is None:
        return ""
    digest = sha256()
    for path in library.files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for function in sorted(library.external or {}):
        digest.update(repr((library.external or {})[function].form(function)).encode())
    package = OWN_LIBRARIES.fingerprint(name) if not OWN_LIBRARIES.is_registered(name) else name
    return f"{package} {library.version} {digest.hexdigest()}"
