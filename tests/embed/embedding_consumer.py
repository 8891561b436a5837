"""The same with what ulam is embedded in: of the types of those packages only what is told of ulam is looked at."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import numpy.typing as npt

import ulam
from ulam.embed.cffi import LogDensity
from ulam.embed.cffi import log_density_gradient as for_cffi
from ulam.embed.jax import log_density
from ulam.embed.numba import log_density_gradient as for_numba
from ulam.embed.scipy import Objective, objective


def embed(model: ulam.StanModel) -> float:
    density: LogDensity = for_cffi(model, propto=False)
    function: Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], float] = for_numba(model)
    minimized: Objective = objective(model, jacobian=False)
    value, gradient = minimized(np.zeros(density.n))
    return value + function(np.zeros(density.n), gradient) + float(minimized.hess(gradient).sum())


def traced(model: ulam.StanModel, x: jax.Array) -> jax.Array:
    function: Callable[[jax.Array], jax.Array] = log_density(model, callback=True)
    return function(x) + log_density(model, jacobian=False)([0.5, 0.5])
