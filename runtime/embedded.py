"""What all places have in common where a log density is embedded: many points at once, refused points and errors."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.arguments import FloatArray
from ulam.runtime.c_library import library
from ulam.runtime.errors import Rejection
from ulam.runtime.native_handle import NO_MEMORY, PRODUCT, NativeHandle

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel


class _Points(ctypes.Structure):
    """`ulam_points` (c/native_handle.h)."""

    _fields_ = [("count", ctypes.c_size_t), *[(name, ctypes.c_void_p) for name in ("x", "v", "lp", "grad", "product")]]


def missing(package: str) -> ImportError:
    """What a module of `ulam.embed` raises where the package that it is for cannot be imported."""
    return ImportError(f"ulam.embed.{package} needs {package}, which cannot be imported: pip install 'ulam[embed]'")


def evaluate_points(
    model: StanModel, handle: NativeHandle, order: int, x: FloatArray, v: FloatArray | None = None, *,
    propto: bool, jacobian: bool,
) -> list[FloatArray]:  # fmt: skip
    """Values at points of shape (..., n); from order 1 on gradients; of order 2 products of the Hessian with `v`.

    -inf and zeros where the program refuses a point. Raises the error of the first point with another one.
    """
    points = [np.ascontiguousarray(each, dtype=np.float64) for each in (x, v) if each is not None]
    results = [np.full(x.shape[:-1], np.nan), *(np.zeros(x.shape) for _ in range(order))]
    addresses = [array.ctypes.data for array in (*points, *results)]
    if order != PRODUCT:
        addresses.insert(1, 0)
    count = results[0].size
    status = library().ulam_native_points(handle.user_data, order, ctypes.byref(_Points(count, *addresses)))
    if status == NO_MEMORY:
        raise MemoryError("no memory for another evaluation")
    if status:
        for point in points[0].reshape(count, handle.n):  # which of them, and what it says
            _raise_fatal(model, point, propto, jacobian)
    return results


def _raise_fatal(model: StanModel, point: FloatArray, propto: bool, jacobian: bool) -> None:
    with suppress(Rejection):
        model.log_density_gradient(point, propto=propto, jacobian=jacobian)
