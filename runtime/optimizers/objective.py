"""Minus the log density of a model, as the optimizers see it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.errors import Rejection
from ulam.runtime.optimizers.line_search import Point, Vector

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel


class ModelObjective:
    """Minus the log density; a rejection and a value or gradient that is not finite count as failed evaluations."""

    def __init__(self, model: StanModel, jacobian: bool) -> None:
        self.model = model
        self.jacobian = jacobian
        self.n_gradients = 0
        self.n_rejections = 0
        self.last_failure = ""

    def __call__(self, theta: Vector) -> Point | None:
        self.n_gradients += 1
        try:
            value, gradient = self.model.log_density_gradient(theta, propto=True, jacobian=self.jacobian)
        except Rejection as rejection:
            self.n_rejections += 1
            self.last_failure = str(rejection)
            return None
        if not math.isfinite(value):
            self.last_failure = f"the log density is {value}"
            return None
        if not np.isfinite(gradient).all():
            element = int(np.flatnonzero(~np.isfinite(gradient))[0])
            name = self.model.param_unc_names()[element]
            self.last_failure = f"the gradient is not finite: {gradient[element]} for unconstrained '{name}'"
            return None
        return Point(theta, -value, -gradient)
