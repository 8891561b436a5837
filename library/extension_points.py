"""What other packages and users add under names: passes, levels, libraries. One class for all of these.

    OWN_PASSES = ExtensionPoint("ulam.passes", "pass")
    OWN_PASSES.register("my-pass", MyPass)          # of this process
    OWN_PASSES.find("their-pass")                   # what was registered, or the entry point of that name, loaded
    OWN_PASSES.fingerprint("their-pass")            # changes with it: for keys of the cache

Entry points are read, which takes milliseconds, when a name is asked for that nobody here knows; never else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ulam.library.digests import sha256

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OWN_PACKAGE = "ulam"


class ExtensionError(ValueError):
    """Something under a name cannot be had: two packages have one of that name, or it cannot be imported."""


class ExtensionPoint:
    """The things of one kind; `group` is the name of their entry points, `kind` the word for one."""

    def __init__(self, group: str, kind: str) -> None:
        self.group = group
        self.kind = kind
        self.revision = 0
        """Changes when something is registered: what was made by names before may then be out of date."""
        self._registered: dict[str, Any] = {}
        self._tokens: dict[str, str] = {}
        self._entries: dict[str, list[EntryPoint]] | None = None
        self._loaded: dict[str, Any] = {}

    def register(self, name: str, thing: Any) -> None:
        """Adds a thing, in the place of one of that name that was registered before."""
        self._registered[name] = thing
        self._tokens[name] = os.urandom(16).hex()
        self.revision += 1

    def unregister(self, name: str) -> None:
        """Takes it out again."""
        self._registered.pop(name, None)
        self.revision += 1

    def is_registered(self, name: str) -> bool:
        """Whether a thing of this name was registered in this process."""
        return name in self._registered

    def names(self) -> list[str]:
        """All names that there are; reads entry points."""
        return sorted({*self._registered, *self._entry_points()})

    def find(self, name: str) -> Any:
        """The thing of a name, or None. Raises ExtensionError if there is one, and it cannot be had."""
        if name in self._registered:
            return self._registered[name]
        if name not in self._loaded:
            if (entry := self._entry(name)) is None:
                return None
            try:
                self._loaded[name] = entry.load()
            except Exception as error:
                reason = f"cannot be imported: {type(error).__name__}: {error}"
                raise ExtensionError(f"{self.kind} '{name}' of {_origin(entry)} {reason}") from error
        return self._loaded[name]

    def fingerprint(self, name: str) -> str:
        """Name, version and digest of the source of a thing: changes when it does. '' if there is none.

        What has no source file, as what was typed at a prompt, has another one in each process.
        """
        if name in self._registered:
            thing = self._registered[name]
            if isinstance(thing, str):
                return f"{name} {thing}"
            return f"{name} {_source_digest(getattr(thing, '__module__', '')) or self._tokens[name]}"
        if (entry := self._entry(name)) is None:
            return ""
        return f"{name} {_origin(entry)} {entry.value} {_source_digest(entry.module)}"

    def _entry(self, name: str) -> EntryPoint | None:
        found = self._entry_points().get(name, [])
        if len({entry.value for entry in found}) > 1:
            origins = " and ".join(sorted({_origin(entry) for entry in found}))
            raise ExtensionError(f"{self.kind} '{name}' is there twice, of {origins}")
        return found[0] if found else None

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        if self._entries is None:
            from importlib.metadata import entry_points

            self._entries = {}
            for entry in entry_points(group=self.group):
                self._entries.setdefault(entry.name, []).append(entry)
        return self._entries


def _origin(entry: EntryPoint) -> str:
    """The package that has an entry point, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module


def _source_digest(module: str) -> str:
    """The digest of all files of the package that a module is of, of a single module that of its file; '' if there is
    none. Files of ulam itself are in all keys.
    """
    if module.partition(".")[0] == OWN_PACKAGE:
        return OWN_PACKAGE
    digest, found = sha256(), False
    for path in sorted(_files(module)):
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            continue
        found = True
        digest.update(f"{path} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest() if found else ""


def _files(module: str) -> Iterator[str]:
    """The files of the outermost package with files of its own that a module is of, or the module's own."""
    if module == "__main__":
        if (path := getattr(sys.modules[module], "__file__", None)) is not None:
            yield path
        return
    from importlib.util import find_spec

    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        try:
            spec = find_spec(".".join(parts[:length]))
        except (ImportError, ValueError):  # ValueError: a module that was made by hand has no spec
            return
        if spec is None or (spec.origin is None and not spec.submodule_search_locations):
            return
        if spec.origin is None:  # a namespace package has folders of others, too
            continue
        if not spec.submodule_search_locations:
            yield spec.origin
        for folder in spec.submodule_search_locations or ():
            for here, folders, files in os.walk(folder):
                folders[:] = [name for name in folders if name != "__pycache__"]
                yield from (os.path.join(here, name) for name in files)
        return


def load_object(reference: str) -> Any:
    """What `module:name` refers to; imports the module."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
