"""The log density of a model as a function of JAX: `jit`, `vmap`, `grad`, `hessian` and what samplers do with these.

import jax
from ulam.embed.jax import log_density

f = log_density(model)
jax.jit(jax.value_and_grad(f))(x)

On the processor a call is one call of machine code, through XLA's interface for foreign functions (c/embed/xla_ffi.h),
whatever the number of points that `vmap` makes of it. Elsewhere, and where XLA has another interface than the one that
the runtime knows, it is a callback to the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.c_library import library
from ulam.runtime.embedded import evaluate_points, missing
from ulam.runtime.errors import ArgumentError
from ulam.runtime.native_handle import GRADIENT, PRODUCT, VALUE

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise missing("jax") from error

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

__all__ = ["log_density"]

_MAJOR = 0
"""Of XLA's interface, whose layout the runtime knows (c/embed/xla_ffi.h)."""
_HANDLERS = {VALUE: "ulam_xla_value", GRADIENT: "ulam_xla_gradient", PRODUCT: "ulam_xla_product"}


def log_density(
    model: StanModel, *, propto: bool = True, jacobian: bool = True, callback: bool | None = None
) -> Callable[[Any], jax.Array]:
    """The log density of unconstrained parameters, for JAX; its numbers are those of `model.log_density` and
    `model.log_density_gradient`, bit for bit.

    JAX has to compute with 64 bits: `jax.config.update("jax_enable_x64", True)`. `callback`: whether to call back to
    the host in place of XLA's interface for foreign functions; None: only where that cannot be had.
    """
    if callback is False and not _foreign_functions():
        raise ArgumentError(f"XLA has another interface for foreign functions in JAX {jax.__version__}: callback=True")
    return _differentiable(_Density(model, propto, jacobian, bool(callback) or not _foreign_functions()))


class _Density:
    """What the functions that JAX traces have in common."""

    def __init__(self, model: StanModel, propto: bool, jacobian: bool, callback: bool) -> None:
        handle = model.native_handle(propto=propto, jacobian=jacobian)
        self.model, self.handle, self.n = model, handle, handle.n
        self.options = {"propto": propto, "jacobian": jacobian}
        self.callback = callback
        self.compiled = {GRADIENT}

    def __call__(self, order: int, *arguments: jax.Array) -> list[jax.Array]:
        """The value; from order 1 on the gradient; of order 2 the Hessian times the second argument."""
        if order not in self.compiled:
            self.handle.compile(order)
            self.compiled.add(order)
        number, vector = jax.ShapeDtypeStruct((), np.float64), jax.ShapeDtypeStruct((self.n,), np.float64)
        results = [number, *[vector] * order]
        method: Any = "broadcast_all"  # one call, whose loop over the points is in C

        def foreign(*values: jax.Array) -> list[jax.Array]:
            call = jax.ffi.ffi_call(_HANDLERS[order], results, vmap_method=method)
            return list(call(*values, ticket=np.int64(self.handle.ticket)))

        def back(*values: jax.Array) -> list[jax.Array]:
            return list(jax.pure_callback(partial(self._on_host, order), results, *values, vmap_method=method))

        if self.callback:
            return back(*arguments)
        return jax.lax.platform_dependent(*arguments, cpu=foreign, default=back)

    def _on_host(self, order: int, *arguments: Any) -> list[Any]:
        return evaluate_points(self.model, self.handle, order, *map(np.asarray, arguments), **self.options)

    def point(self, x: Any) -> jax.Array:
        """The argument in 64 bits. Raises what is wrong with it."""
        if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
            raise ArgumentError(
                "ulam computes with 64 bits, and JAX is set to 32: "
                'jax.config.update("jax_enable_x64", True) at the beginning of the program'
            )
        array = jnp.asarray(x)
        if array.shape != (self.n,):
            raise ArgumentError(
                f"the log density is a function of {self.n} unconstrained parameters, not of an array of shape "
                f"{array.shape}; jax.vmap makes it one of many points"
            )
        return array.astype(np.float64)


def _differentiable(density: _Density) -> Callable[[Any], jax.Array]:
    """The function with its derivatives: of the value, the compiled gradient; of that, products with the Hessian."""

    @jax.custom_jvp
    def value(x: jax.Array) -> jax.Array:
        return density(VALUE, x)[0]

    @jax.custom_jvp
    def gradient(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = density(GRADIENT, x)
        return found[0], found[1]

    @value.defjvp
    def value_jvp(primals: Any, tangents: Any) -> Any:
        found, slope = gradient(*primals)
        return found, jnp.sum(slope * tangents[0])

    @gradient.defjvp
    def gradient_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (direction,) = primals, tangents
        found, slope = gradient(x)

        def product(_: Any, v: jax.Array) -> jax.Array:
            return density(PRODUCT, x, v)[2]

        # A product with a symmetric matrix, which JAX may transpose and map. It is told as the solution of a system,
        # whose own matrix is asked for in third derivatives only.
        curved = jax.lax.custom_linear_solve(partial(third, x), direction, product, symmetric=True)
        return (found, slope), (jnp.sum(slope * direction), curved)

    @jax.custom_jvp
    def third(x: jax.Array, v: jax.Array) -> jax.Array:
        del x
        return v

    @third.defjvp
    def third_jvp(primals: Any, tangents: Any) -> Any:
        raise NotImplementedError("ulam has no third derivatives of log densities")

    def log_density(x: Any) -> jax.Array:
        return value(density.point(x))

    log_density.__doc__ = f"The log density of {density.model.name()} at unconstrained parameters."
    return log_density


@cache
def _foreign_functions() -> bool:
    """Whether XLA has the interface that the handlers of the C runtime are made for; they are registered then."""
    version = _interface()
    if version is None or version[0] != _MAJOR:
        return False
    library().ulam_xla_version(version[1])
    for name in _HANDLERS.values():
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library(), name)), platform="cpu")
    return True


def _interface() -> tuple[int, int] | None:
    """The version of XLA's interface for foreign functions, from the header that JAX ships."""
    if not hasattr(jax, "ffi"):
        return None
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    try:
        text = header.read_text(encoding="utf-8")
    except OSError:
        return None
    numbers = re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", text)
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None
