"""Derivatives of a function of several variables by 4-point central differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Offsets, in steps, and weights.
_STENCIL = ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12))


def central_differences(value: Callable[[np.ndarray], float], theta: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """The gradient of `value` at `theta`."""
    result = np.zeros(theta.size)
    for i in range(theta.size):
        for multiple, weight in _STENCIL:
            moved = theta.copy()
            moved[i] += multiple * step
            result[i] += weight * value(moved) / step
    return result
