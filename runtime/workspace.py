"""What one evaluation needs besides the code: a context, a point and room for a gradient."""

from __future__ import annotations

import numpy as np

from ulam.runtime.native import Context


class Workspace:
    """A context with room for a point and a gradient. Addresses are taken once."""

    __slots__ = ("context", "address", "theta", "theta_address", "gradient", "gradient_address")

    def __init__(self, size: int) -> None:
        self.context = Context()
        self.address = self.context.address
        self.theta = np.zeros(size)
        self.theta_address: int = self.theta.ctypes.data
        self.gradient = np.zeros(size)
        self.gradient_address: int = self.gradient.ctypes.data
