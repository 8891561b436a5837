"""Parameters, transformed parameters and generated quantities at a point; what the program rejects there is NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.errors import Rejection
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.line_search import Vector

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel


def constrained_or_nan(model: StanModel, theta: Vector, rng: Rng) -> tuple[Vector, Rejection | None]:
    """All values at an unconstrained point, and the rejection if there was one.

    A rejection in generated quantities makes all of them NaN, one in transformed parameters those, too. Stan's sampler
    does the same with generated quantities.
    """
    try:
        return model.param_constrain(theta, include_tp=True, include_gq=True, rng=rng), None
    except Rejection as rejection:
        values = np.full(model.param_num(include_tp=True, include_gq=True), np.nan)
        try:
            known = model.param_constrain(theta, include_tp=True)
        except Rejection:  # of a transformed parameter
            known = model.param_constrain(theta)
        values[: known.size] = known
        return values, rejection
