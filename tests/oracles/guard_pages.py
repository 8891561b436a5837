"""Models under guard pages: all that the C runtime allocates, bound data and NumPy's arrays in pages of their own, so
that every access outside of them is a fault (runtime/c/guard_pages.c).

    use_guarded_runtime()                    # in a new process, before the C runtime is opened
    configure(left=False, garbage=0x7F)      # between runs
    with guarded_arrays():
        ...                                  # a fault ends the process: run this in one of its own
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from runtime_builds import build_runtime

from ulam.runtime import c_library
from ulam.runtime.c_library import RUNTIME_VARIABLE
from ulam.runtime.native import BoundData

GUARDED = ("-DULAM_GUARD_PAGES", "-include", "guard_malloc.h")
"""How the C runtime is compiled: all that it allocates has guard pages."""
SET_HANDLER = 304
"""Of PyDataMem_SetHandler in the table of NumPy's C API (numpy/__multiarray_api.h)."""
GARBAGE = (0x7F, 0xFF)
"""Bytes to fill new memory with: numbers of 1.4e306 and ints of 2139062143, or NaN and -1."""


def guarded_runtime() -> Path:
    """The runtime with guard pages, built if need be."""
    return build_runtime(GUARDED)


def use_guarded_runtime() -> None:
    """Makes this process, and those that it starts, use the runtime with guard pages; faults are described."""
    os.environ[RUNTIME_VARIABLE] = str(guarded_runtime())
    c_library._library_file.cache_clear()  # pyright: ignore[reportPrivateUsage]
    c_library.library.cache_clear()
    _function("ulam_guard_report_faults", ctypes.c_int32)()


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(c_library.library(), name)
    function.restype = result
    function.argtypes = arguments
    return function


def configure(*, left: bool = False, garbage: int = GARBAGE[0], whole_lines: bool = False) -> None:
    """How blocks are placed and filled from now on; `whole_lines` is for code as it is emitted for the real runtime."""
    _function("ulam_guard_configure", None, *[ctypes.c_int32] * 3)(left, garbage, whole_lines)


def block_bytes(address: int) -> int:
    """Of the guarded block that begins there; -1 if there is none."""
    return _function("ulam_guard_bytes", ctypes.c_int64, ctypes.c_void_p)(address)


def counts() -> tuple[int, int]:
    """How many blocks were made, and how many of these without guard pages, since the system had no more maps."""
    blocks, unguarded = ctypes.c_int64(), ctypes.c_int64()
    function = _function("ulam_guard_counts", None, *[ctypes.c_void_p] * 2)
    function(ctypes.addressof(blocks), ctypes.addressof(unguarded))
    return blocks.value, unguarded.value


@cache
def _handler_setter() -> Any:
    module: Any = import_module("numpy._core._multiarray_umath")
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table: Any = ctypes.cast(pointer_of(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])


@cache
def _guarded_handler() -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(_function("ulam_guard_array_handler", ctypes.c_void_p)(), b"mem_handler", None)


def _bind_exactly(self: BoundData, slot: int, array: Any) -> None:
    """As `BoundData.set_array`, into a block of exactly the array's size: NumPy takes an element for an empty one."""
    memory = c_library.library().ulam_bound_memory_alloc(self.memory, array.nbytes)
    ctypes.memmove(memory, array.ctypes.data, array.nbytes)
    self.set_int(slot, memory)


@contextmanager
def guarded_arrays() -> Iterator[None]:
    """All new arrays of this thread and of those that begin from now on, and all bound data, have guard pages."""
    set_array, run_thread = BoundData.set_array, threading.Thread.run

    def run_guarded(self: threading.Thread) -> None:
        _handler_setter()(_guarded_handler())  # each thread has a handler of its own
        run_thread(self)

    before = _handler_setter()(_guarded_handler())
    BoundData.set_array, threading.Thread.run = _bind_exactly, run_guarded
    try:
        yield
    finally:
        BoundData.set_array, threading.Thread.run = set_array, run_thread
        _handler_setter()(before)
