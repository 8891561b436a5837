"""`--external`: external functions, and folders of definitions, for the programs of a command."""

from __future__ import annotations

import ctypes
import os
import runpy
from typing import Any

from ulam.runtime.external_functions import External, external
from ulam.runtime.externals import register_library
from ulam.tools.exits import UsageError

LIBRARY = "command_line"
"""The name of the library that has the functions; folders get a number."""
PULLBACK = "_pullback"
"""What the name of a C function's pullback ends with."""


def register_given(texts: list[str]) -> None:
    """Makes what was given known to this process. Raises UsageError."""
    functions: dict[str, Any] = {}
    for number, text in enumerate(texts):
        try:
            if os.path.isdir(text):
                register_library(f"{LIBRARY}_{number}", text)
            elif text.endswith(".py"):
                functions |= _of_python(text)
            else:
                functions |= _of_c(text)
        except ValueError as error:  # of arguments, of names
            raise UsageError(f"--external: {error}") from None
    if functions:
        register_library(LIBRARY, external=functions)


def _of_python(path: str) -> dict[str, Any]:
    """The external functions that a Python file defines, by the names that it has for them."""
    try:
        names = runpy.run_path(path)
    except OSError as error:
        raise UsageError(f"--external: {path} cannot be read: {error.strerror}") from None
    except Exception as error:
        raise UsageError(f"--external: {path} cannot be run: {type(error).__name__}: {error}") from None
    found = {name: value for name, value in names.items() if isinstance(value, External)}
    if not found:
        raise UsageError(f"--external: {path} has no external function: write f = ulam.external(...)")
    return found


def _of_c(text: str) -> dict[str, Any]:
    """A function of a shared library, with the pullback that is beside it."""
    name, equals, place = text.rpartition("=")
    given = external(place)
    path, _, symbol = place.rpartition(":")
    try:
        library = ctypes.CDLL(os.path.abspath(path) if os.path.exists(path) else path)
    except OSError as error:
        raise UsageError(f"--external: '{path}' cannot be opened: {error}") from None
    if not hasattr(library, symbol):
        raise UsageError(f"--external: '{path}' has no function '{symbol}'")
    if hasattr(library, symbol + PULLBACK):
        given = external(place, place + PULLBACK)
    return {name if equals else symbol: given}
