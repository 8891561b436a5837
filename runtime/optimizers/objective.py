"""Minus the log density of a model, as the optimizers see it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import Rejection
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.line_search import Point, Vector

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel


class ModelObjective:
    """Minus the log density; constants are dropped.

    A rejection and a value or gradient that is not finite count as failed evaluations: the result is None, and
    `failures` knows the reason. Other errors of the program (`FatalError`) are raised.
    """

    def __init__(self, model: StanModel, jacobian: bool) -> None:
        self.model = model
        self.jacobian = jacobian
        self.n_gradients = 0
        self.failures = FailureTally()
        self.infinite_at: Vector | None = None
        """The last point where the log density was +infinity."""

    @property
    def n_rejections(self) -> int:
        """The number of evaluations that failed."""
        return self.failures.count

    def __call__(self, theta: Vector) -> Point | None:
        """Minus the log density and its gradient; `theta` is kept, not copied."""
        self.n_gradients += 1
        try:
            value, gradient = self.model.log_density_gradient(theta, propto=True, jacobian=self.jacobian)
        except Rejection as rejection:
            self.failures.add_error(rejection)
            return None
        if not math.isfinite(value):
            self.failures.add_value(value)
            if value > 0:
                self.infinite_at = theta
            return None
        # One pass instead of three: the sum of squares is finite only if all elements are.
        if not math.isfinite(gradient.dot(gradient)) and not np.isfinite(gradient).all():
            self.failures.add_gradient(gradient, self.model.param_unc_names())
            return None
        return Point(theta, -value, np.negative(gradient, out=gradient))

    def hessian(self, theta: Vector) -> npt.NDArray[np.float64] | None:
        """The Hessian of minus the log density, counted as a gradient evaluation; None if it cannot be evaluated."""
        self.n_gradients += 1
        try:
            _, _, hessian = self.model.log_density_hessian(theta, propto=True, jacobian=self.jacobian)
        except Rejection as rejection:
            self.failures.add_error(rejection)
            return None
        if not np.isfinite(hessian).all():
            self.failures.add("the Hessian is not finite")
            return None
        return np.negative(hessian, out=hessian)
