"""Hessians of a model and their products with directions. Part of `StanModel`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.runtime.arguments import FloatArray, vector, writable
from ulam.runtime.interrupts import limited, stoppable

if TYPE_CHECKING:
    from ulam.runtime.program import Unit
    from ulam.runtime.workspace import Workspace


class SecondOrderModel:
    """What evaluates second derivatives, by forward over reverse mode."""

    if TYPE_CHECKING:
        _size: int
        _shape: tuple[int, ...]
        _hessians: dict[bool, Unit]
        _idle: list[Workspace]

        def log_density_gradient(
            self, theta_unc: npt.ArrayLike, *, propto: bool = ..., jacobian: bool = ..., out: FloatArray | None = ...
        ) -> tuple[float, FloatArray]: ...
        def _take(self) -> Workspace: ...
        def _fill(self, space: Workspace, theta: npt.ArrayLike) -> None: ...
        def _density_unit(self, order: int, propto: bool, theta: npt.ArrayLike, jacobian: bool) -> Unit: ...
        def _end_evaluation(self, unit: Unit, space: Workspace, status: int, jacobian: bool) -> None: ...

    def log_density_hessian(
        self,
        theta_unc: npt.ArrayLike,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out_grad: FloatArray | None = None,
        out_hess: FloatArray | None = None,
        time_limit: float | None = None,
    ) -> tuple[float, FloatArray, FloatArray]:
        """The log density, its gradient and its Hessian (of shape (D, D)), by forward over reverse mode: exact.

        Costs about D times two to four gradients.
        """
        if time_limit is not None:
            call = self.log_density_hessian
            return limited(
                time_limit, call, theta_unc, propto=propto, jacobian=jacobian, out_grad=out_grad, out_hess=out_hess
            )
        size = self._size
        target = None if out_hess is None else writable(out_hess, (size, size))
        hessian = np.zeros((size, size))
        if not size:
            value, gradient = self.log_density_gradient(theta_unc, propto=propto, jacobian=jacobian, out=out_grad)
        else:
            value, gradient = self._second_order(theta_unc, None, hessian, propto, jacobian, out_grad)
        hessian = 0.5 * (hessian + hessian.T)
        if target is None:
            return value, gradient, hessian
        target[...] = hessian
        return value, gradient, out_hess if isinstance(out_hess, np.ndarray) else target

    def log_density_hessian_vector_product(
        self,
        theta_unc: npt.ArrayLike,
        v: npt.ArrayLike,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out: FloatArray | None = None,
        time_limit: float | None = None,
    ) -> tuple[float, FloatArray]:
        """The log density and the product of its Hessian with `v`, by forward over reverse mode: exact.

        Costs about two to four gradients.
        """
        if time_limit is not None:
            call = self.log_density_hessian_vector_product
            return limited(time_limit, call, theta_unc, v, propto=propto, jacobian=jacobian, out=out)
        target = None if out is None else writable(out, self._shape)
        direction = np.array(vector(v, self._shape, "v"))
        product = np.zeros(self._size)
        value, _ = self._second_order(theta_unc, direction, product, propto, jacobian, None)
        if target is None:
            return value, product
        target[...] = product
        return value, out  # pyright: ignore[reportReturnType]

    def _second_order(
        self,
        theta_unc: npt.ArrayLike,
        direction: FloatArray | None,
        result: FloatArray,
        propto: bool,
        jacobian: bool,
        out_grad: FloatArray | None,
    ) -> tuple[float, FloatArray]:
        """Fills `result`: the Hessian times `direction`, or all of it. Returns the log density and its gradient."""
        gradient_target = None if out_grad is None else writable(out_grad, self._shape)
        unit = self._hessians.get(propto)
        if unit is None:
            again = partial(self._second_order, theta_unc, direction, result, bool(propto), jacobian, out_grad)
            return stoppable(lambda: self._density_unit(2, propto, theta_unc, jacobian) and again())
        space = self._take()
        try:
            self._fill(space, theta_unc)
            context = space.context
            entry, bound, theta, gradient = unit.entry, unit.bound, space.theta_address, space.gradient_address
            to = result.ctypes.data
            if direction is not None:
                status = context.run_hessian_vector(entry, bound, theta, direction.ctypes.data, gradient, to, jacobian)
            else:
                scratch = np.empty(self._size)
                status = context.run_hessian(
                    entry, bound, theta, self._size, scratch.ctypes.data, gradient, to, jacobian
                )
            self._end_evaluation(unit, space, status, jacobian)
            if gradient_target is None:
                return context.value.value, space.gradient.copy()
            gradient_target[...] = space.gradient
            return context.value.value, out_grad  # pyright: ignore[reportReturnType]
        finally:
            self._idle.append(space)
