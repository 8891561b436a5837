"""The log density of a model as a function that Numba's code calls.

import numba
from ulam.embed.numba import log_density_gradient

f = log_density_gradient(model)

@numba.njit
def ascend(x, steps, rate):
    gradient = np.empty_like(x)
    for _ in range(steps):
        f(x, gradient)
        x = x + rate * gradient
    return x
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.arguments import FloatArray
from ulam.runtime.c_library import address_of
from ulam.runtime.embedded import missing
from ulam.runtime.native_handle import GONE, WRONG_SIZE

try:
    import numba
    from numba import types
except ImportError as error:
    raise missing("numba") from error

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

__all__ = ["log_density_gradient"]

_OK = 0


def log_density_gradient(
    model: StanModel, *, propto: bool = True, jacobian: bool = True
) -> Callable[[FloatArray, FloatArray], float]:
    """`f(x, gradient)`: the log density of unconstrained parameters, its gradient written to `gradient`. Both arrays
    are contiguous, of 64 bits; Numba refuses others. To be called by code that Numba compiles (`nopython`, in threads
    of `prange`, too).

    Where the program refuses a point the value is -inf and the gradient zero. ValueError: arrays of another size.
    RuntimeError: a fatal error of the program.
    """
    handle = model.native_handle(propto=propto, jacobian=jacobian)
    call, number = _function(), handle.ticket

    def log_density_gradient(x: Any, gradient: Any) -> Any:
        value = np.empty(1)
        if gradient.size != x.size:
            raise ValueError("the gradient must have the size of the point")
        status = call(number, x.size, x.ctypes, gradient.ctypes, value.ctypes)
        if status == WRONG_SIZE:
            raise ValueError("the size of the point is not the number of unconstrained parameters")
        if status == GONE:
            raise RuntimeError("the log density is gone: keep a reference to the function; do not cache what calls it")
        if status != _OK:
            raise RuntimeError("a fatal error in the Stan program; StanModel.log_density_gradient has its message")
        return value[0]

    point, slope = (types.Array(types.float64, 1, "C", readonly=readonly) for readonly in (True, False))
    compiled: Any = numba.njit(types.float64(point, slope))(log_density_gradient)
    compiled.handle = handle  # what has to live as long as the function
    return compiled


@cache
def _function() -> Any:
    """The function by its name: code that Numba keeps on disk finds it, whatever the process."""
    import llvmlite.binding

    name = "ulam_native_by_ticket"
    llvmlite.binding.add_symbol(name, address_of(name))
    return types.ExternalFunction(name, types.int32(types.int64, types.uintp, *[types.voidptr] * 3))
