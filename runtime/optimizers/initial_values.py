"""Where optimizers begin: drawn, given, or partly given initial values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.data import Values as DataValues
from ulam.runtime.data import bind_values, read_data
from ulam.runtime.errors import ArgumentError, DataError, InitializationError
from ulam.runtime.names import GlobalVariable
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.line_search import Point, Vector
from ulam.runtime.optimizers.objective import ModelObjective

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Init = npt.ArrayLike | Mapping[str, Any] | str | os.PathLike[str] | float | None

DEFAULT_RADIUS = 2.0
MAX_TRIES = 100
INIT_STREAM = 0
"""Stream of the run's seed for initial values."""


def initial_point(objective: ModelObjective, init: Init, seed: int) -> Point:
    """The first point, of at most 100 drawn ones, with a finite log density and gradient.

    Stan's services test the density with all its constants as well; it is finite where this one is.
    """
    radius = DEFAULT_RADIUS
    given: DataValues | None = None
    model = objective.model
    if isinstance(init, (str, os.PathLike, Mapping)):
        given = read_data(init)
    elif isinstance(init, (int, float)):
        radius = float(init)
        if not (radius >= 0 and math.isfinite(radius)):
            raise ArgumentError(f"init as a radius must be a finite number, at least 0, found {init}")
    elif init is not None:
        fixed = np.array(init, dtype=np.float64)
        if fixed.shape != (model.param_unc_num(),):
            raise ArgumentError(f"init must have shape ({model.param_unc_num()},), found {fixed.shape}")
        return _tried(objective, fixed, "the initial point given")
    partial = _PartialInit(model, given) if given is not None else None
    generator = np.random.Generator(Rng(seed, INIT_STREAM).generator)
    tries = 1 if radius == 0 or (partial is not None and partial.complete) else MAX_TRIES
    for _ in range(tries):
        theta = generator.uniform(-radius, radius, model.param_unc_num()) if radius else np.zeros(model.param_unc_num())
        if partial is not None:
            theta = partial.combine(theta)
        point = objective(theta)
        if point is not None:
            return point
    if tries == 1:
        what = "the initial values given" if partial is not None else "the initial point 0"
        raise InitializationError(f"initialization failed at {what}: {objective.last_failure}")
    raise InitializationError(
        f"initialization between (-{radius:g}, {radius:g}) failed after {tries} attempts; the last one: "
        f"{objective.last_failure}. Try specifying initial values, reducing ranges of constrained values, or "
        "reparameterizing the model."
    )


def _tried(objective: ModelObjective, theta: Vector, what: str) -> Point:
    point = objective(theta)
    if point is None:
        raise InitializationError(f"initialization failed at {what}: {objective.last_failure}")
    return point


class _PartialInit:
    """Constrained initial values for some of the parameters; the rest is drawn."""

    def __init__(self, model: StanModel, given: DataValues) -> None:
        self.model = model
        parameters = model.parameter_variables()
        chosen = [variable for variable in parameters if variable.name in given.values]
        self.complete = len(chosen) == len(parameters)
        self.values: dict[str, npt.NDArray[Any]] = {}
        if not chosen and given.values:
            names = ", ".join(sorted(given.values))
            raise DataError([f"{given.name}: no initial value is for a parameter of the model, found {names}"])

        def store(variable: GlobalVariable, array: npt.NDArray[Any]) -> None:
            self.values[variable.name] = array

        bind_values(chosen, given, lambda variable: variable.dims, store, stage="initialization")

    def combine(self, theta: Vector) -> Vector:
        """`theta` with the unconstrained form of the given values in their places."""
        model = self.model
        parameters = model.parameter_variables()
        constrained = model.param_constrain(theta)
        start = 0
        for variable in parameters:
            if variable.name in self.values:
                values = self.values[variable.name].ravel(order="F")
                constrained[start : start + variable.size] = values
            start += variable.size
        unconstrained = model.param_unconstrain(constrained)
        combined = theta.copy()
        start = 0
        for variable in parameters:
            size = math.prod(variable.unconstrained_dims)
            if variable.name in self.values:
                combined[start : start + size] = unconstrained[start : start + size]
            start += size
        return combined
