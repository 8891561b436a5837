"""The log density of a model as a function of cffi.

from ulam.embed.cffi import ffi, log_density_gradient

f = log_density_gradient(model)
x, gradient, value = ffi.new("double[]", [0.1, 0.2]), ffi.new("double[]", 2), ffi.new("double *")
status = f.function(2, x, gradient, value, f.user)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulam.runtime.embedded import missing

try:
    from cffi import FFI
except ImportError as error:
    raise missing("cffi") from error

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.native_handle import NativeHandle

__all__ = ["DECLARATION", "LogDensity", "ffi", "log_density_gradient"]

DECLARATION = "typedef int (*ulam_log_density)(size_t n, const double *x, double *grad, double *lp, void *user);"
"""The type of the function, for the `cdef` of another `FFI`."""

ffi: Any = FFI()
"""The `FFI` whose types the functions below have."""
ffi.cdef(DECLARATION)


class LogDensity:
    """`function(n, x, grad, lp, user)`, as docs/native-handle.md has it, and its last argument. Keeps the model's code
    and data.
    """

    def __init__(self, model: StanModel, propto: bool, jacobian: bool) -> None:
        self.handle: NativeHandle = model.native_handle(propto=propto, jacobian=jacobian)
        self.n: int = self.handle.n
        self.function: Any = ffi.cast("ulam_log_density", self.handle.address)
        self.user: Any = ffi.cast("void *", self.handle.user_data)


def log_density_gradient(model: StanModel, *, propto: bool = True, jacobian: bool = True) -> LogDensity:
    """The log density and its gradient as a C function for cffi, with its user data."""
    return LogDensity(model, propto, jacobian)
