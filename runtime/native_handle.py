"""A model's log density and gradient as a C function (c/native_handle.h, docs/native-handle.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ulam.runtime.arguments import FloatArray
from ulam.runtime.c_library import freed_by, library
from ulam.runtime.program import BoundProgram, Unit

REJECTED, FATAL_ERROR, WRONG_SIZE, NO_MEMORY, GONE = 1, 2, 5, 6, 7
"""What the functions return where they have no value. GONE: those that are called with a ticket only."""
VALUE, GRADIENT, PRODUCT = 0, 1, 2
"""What is computed of a point (`ulam_order` in C): the value; with its gradient; with a product of the Hessian, too."""

_SIZE, _STATUS = ctypes.c_size_t, ctypes.c_int
_Function = ctypes.CFUNCTYPE(_STATUS, _SIZE, *[ctypes.c_void_p] * 4)
_Batch = ctypes.CFUNCTYPE(_STATUS, _SIZE, _SIZE, *[ctypes.c_void_p] * 4)
_Product = ctypes.CFUNCTYPE(_STATUS, _SIZE, *[ctypes.c_void_p] * 6)


class NativeHandle:
    """`int f(size_t n, const double *x, double *grad, double *lp, void *user)` at `address`, with its `user_data`.

    Both can be used as long as `keep_alive` (or this object) is referred to, by any number of threads at once. The
    function returns 0 for a gradient, 1 for a rejection, 2 for an error that ends the run, 5 if `n` is not the number
    of unconstrained parameters, 6 if there is no memory. docs/native-handle.md has the other functions.
    """

    def __init__(
        self, program: BoundProgram, unit: Unit, n: int, jacobian: bool, unit_of: Callable[[int], Unit]
    ) -> None:
        native, locate = library(), program.unit("locate")
        handle = native.ulam_native_handle_new(n, jacobian, unit.entry, unit.bound, locate.entry, locate.bound)
        if not handle:
            raise MemoryError("no memory for a native handle")
        self.n: int = n
        """The number of unconstrained parameters."""
        self.user_data: int = handle
        """What the function wants as its last argument."""
        self.keep_alive: Any = (freed_by("ulam_native_handle_free", handle), program)
        """What must be referred to while the function is in use: the handle in C, its code and its data."""
        self.address: int = _address(native.ulam_native_gradient)
        """The address of the function."""
        self.noting_address: int = _address(native.ulam_native_gradient_noting)
        """That of one which returns 1 for fatal errors, too, and notes the first of them."""
        self.batch_address: int = _address(native.ulam_native_batch)
        """`int f(size_t count, size_t n, const double *x, double *grad, double *lp, void *user)`: many points."""
        self._unit_of = unit_of

    @cached_property
    def value_address(self) -> int:
        """A function like that at `address` which computes the log density alone; `grad` may be null."""
        self.compile(VALUE)
        return _address(library().ulam_native_value)

    @cached_property
    def product_address(self) -> int:
        """`int f(size_t n, const double *x, const double *v, double *product, double *grad, double *lp, void *user)`:
        the Hessian times `v`, the gradient and the value.
        """
        self.compile(PRODUCT)
        return _address(library().ulam_native_product)

    @cached_property
    def ticket(self) -> int:
        """A number that stands for the handle in code which others have compiled, and which may outlive it: what they
        call with it fails when the handle is gone, and does not end the process.
        """
        number: int = library().ulam_native_handle_ticket(self.user_data)
        if not number:
            raise MemoryError("no memory for another log density that is embedded elsewhere")
        return number

    @property
    def function(self) -> Callable[..., int]:
        """The function for ctypes: sizes are ints, pointers are addresses."""
        return _Function(self.address)

    @property
    def batch_function(self) -> Callable[..., int]:
        """The one at `batch_address` for ctypes."""
        return _Batch(self.batch_address)

    @property
    def value_function(self) -> Callable[..., int]:
        """The one at `value_address` for ctypes."""
        return _Function(self.value_address)

    @property
    def product_function(self) -> Callable[..., int]:
        """The one at `product_address` for ctypes."""
        return _Product(self.product_address)

    def compile(self, order: int) -> None:
        """Has the code for VALUE or PRODUCT made, which is not there from the beginning."""
        if order != GRADIENT:
            unit = self._unit_of(order)
            library().ulam_native_handle_add(self.user_data, order, unit.entry, unit.bound)

    def fatal_point(self) -> FloatArray | None:
        """Where the function at `noting_address` first had a fatal error."""
        address = library().ulam_native_fatal_point(self.user_data)
        return None if not address else np.array((ctypes.c_double * self.n).from_address(address))


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found
