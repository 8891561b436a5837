"""The log density of a model for SciPy: what `optimize.minimize` minimizes, what `integrate` integrates.

from scipy import integrate, optimize
from ulam.embed.scipy import density, objective

f = objective(model)
best = optimize.minimize(f, start, jac=True, hessp=f.hessp, method="trust-krylov")
integrate.nquad(density(model, shift=-best.fun), [(-10, 10)] * best.x.size)
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.arguments import FloatArray
from ulam.runtime.c_library import library
from ulam.runtime.embedded import missing
from ulam.runtime.errors import Rejection
from ulam.runtime.native_handle import VALUE, NativeHandle

try:
    from scipy import LowLevelCallable
except ImportError as error:
    raise missing("scipy") from error

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

__all__ = ["Objective", "density", "objective"]


def objective(model: StanModel, *, propto: bool = True, jacobian: bool = True) -> Objective:
    """The negative log density of unconstrained parameters and its gradient: `minimize(objective(model), x, jac=True)`.

    `jacobian=False`: the minimum is the maximum likelihood estimate, or the mode of the constrained parameters.
    """
    return Objective(model, propto, jacobian)


class Objective:
    """A function to minimize, with its derivatives. Where the program refuses a point it is infinite, its gradient NaN:
    line searches come back from there, and a start there is no minimum. Fatal errors of the program are raised.
    """

    def __init__(self, model: StanModel, propto: bool, jacobian: bool) -> None:
        self.model = model
        self.options: dict[str, Any] = {"propto": propto, "jacobian": jacobian}

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The negative log density and its gradient."""
        try:
            value, gradient = self.model.log_density_gradient(x, **self.options)
        except Rejection:
            return np.inf, np.full(np.shape(x), np.nan)
        return -value, -gradient

    def hessp(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """The Hessian times `v`."""
        return -self.model.log_density_hessian_vector_product(x, v, **self.options)[1]

    def hess(self, x: FloatArray) -> FloatArray:
        """The Hessian."""
        return -self.model.log_density_hessian(x, **self.options)[2]


class _ScaledDensity(ctypes.Structure):
    """`ulam_scaled_density` (c/native_handle.h)."""

    _fields_ = [("handle", ctypes.c_void_p), ("shift", ctypes.c_double), ("status", ctypes.c_int32)]
    kept: NativeHandle


def density(model: StanModel, *, shift: float = 0.0, propto: bool = True, jacobian: bool = True) -> LowLevelCallable:
    """`exp(log density - shift)` of the unconstrained parameters, for `scipy.integrate.quad` and `nquad`: no Python in
    between. `shift`: the log density near its mode, so that values are neither all zero nor infinite.

    It is 0 where the program refuses a point, and NaN where it has a fatal error.
    """
    handle = model.native_handle(propto=propto, jacobian=jacobian)
    handle.compile(VALUE)
    data = _ScaledDensity(handle.user_data, shift, 0)
    data.kept = handle  # as long as SciPy keeps the data
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p)
    return LowLevelCallable(
        function(("ulam_native_density", library())), ctypes.cast(ctypes.pointer(data), ctypes.c_void_p)
    )
