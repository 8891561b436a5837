"""A model's log density and gradient as a C function (c/native_handle.h, docs/native-handle.md)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ulam.runtime.arguments import FloatArray
from ulam.runtime.c_library import library
from ulam.runtime.program import BoundProgram, Unit

REJECTED, FATAL_ERROR, WRONG_SIZE, NO_MEMORY = 1, 2, 5, 6
"""What the function returns where it has no gradient."""


class _Kept:
    """Frees the handle in C with the last reference; keeps the code and the data that it uses."""

    def __init__(self, address: int, program: BoundProgram) -> None:
        self.address = address
        self.program = program

    def __del__(self) -> None:
        library().ulam_native_handle_free(self.address)


class NativeHandle:
    """`int f(size_t n, const double *x, double *grad, double *lp, void *user)` at `address`, with its `user_data`.

    Both can be used as long as `keep_alive` (or this object) is referred to, by any number of threads at once. The
    function returns 0 for a gradient, 1 for a rejection, 2 for an error that ends the run, 5 if `n` is not the number
    of unconstrained parameters, 6 if there is no memory.
    """

    def __init__(self, program: BoundProgram, unit: Unit, n: int, jacobian: bool) -> None:
        native, locate = library(), program.unit("locate")
        handle = native.ulam_native_handle_new(n, jacobian, unit.entry, unit.bound, locate.entry, locate.bound)
        if not handle:
            raise MemoryError("no memory for a native handle")
        self.n = n
        """The number of unconstrained parameters."""
        self.user_data: int = handle
        """What the function wants as its last argument."""
        self.keep_alive: Any = _Kept(handle, program)
        """What must be referred to while the function is in use."""
        self.address = _address(native.ulam_native_gradient)
        """The address of the function."""
        self.noting_address = _address(native.ulam_native_gradient_noting)
        """That of one which returns 1 for fatal errors, too, and notes the first of them."""

    def fatal_point(self) -> FloatArray | None:
        """Where the function at `noting_address` first had a fatal error."""
        address = library().ulam_native_fatal_point(self.user_data)
        return None if not address else np.array((ctypes.c_double * self.n).from_address(address))


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found
