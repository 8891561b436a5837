"""Posterior modes and maximum-likelihood estimates: initial values, the run, the result.

With `jacobian=False` (the default, as in CmdStan) the mode is that of the density over constrained parameters, with
`jacobian=True` that of the density over unconstrained ones. Terms that are constant in the parameters are dropped.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.data import Values as DataValues
from ulam.runtime.data import bind_values, read_data
from ulam.runtime.errors import ArgumentError, DataError, InitializationError, Rejection
from ulam.runtime.lbfgs import Iteration, LBFGSOptions, Termination, minimize
from ulam.runtime.line_search import Point, Vector
from ulam.runtime.names import GlobalVariable, from_output
from ulam.runtime.native import Rng

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Init = npt.ArrayLike | Mapping[str, Any] | str | os.PathLike[str] | float | None

DEFAULT_RADIUS = 2.0
MAX_TRIES = 100
# Streams of the run's seed: initial values, and generated quantities of the result.
INIT_STREAM, QUANTITIES_STREAM = 0, 1
NOT_YET = {"bfgs", "newton"}


class OptimizationInterrupted(KeyboardInterrupt):
    """The run was interrupted; `result` is the best point reached."""

    def __init__(self, result: OptimizationResult) -> None:
        super().__init__("optimization interrupted")
        self.result = result


@dataclass
class OptimizationResult:
    """Where an optimizer ended.

    `fit["theta"]` is the value of a parameter, transformed parameter or generated quantity, in its own shape.
    """

    model: StanModel = field(repr=False)
    algorithm: str
    jacobian: bool
    seed: int
    unconstrained: Vector
    log_density: float
    gradient: Vector = field(repr=False)
    termination: Termination
    n_iterations: int
    n_gradients: int
    seconds: float
    initial: Vector = field(repr=False)
    initial_log_density: float = math.nan
    n_rejections: int = 0
    trajectory: list[tuple[float, Vector]] = field(default_factory=list[tuple[float, Vector]], repr=False)
    _constrained: Vector | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """Why the run ended, in a word: `converged_objective`, `max_iterations`, `line_search_failed`, ..."""
        return self.termination.label

    @property
    def message(self) -> str:
        return self.termination.text

    @property
    def code(self) -> int:
        """Stan's code of the termination."""
        return self.termination.code

    @property
    def converged(self) -> bool:
        return self.termination.converged

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @property
    def names(self) -> list[str]:
        """Names of the elements of `constrained`."""
        return self.model.param_names(include_tp=True, include_gq=True)

    @property
    def constrained(self) -> Vector:
        """Parameters, transformed parameters and generated quantities at the point."""
        if self._constrained is None:
            self._constrained = self.constrain(self.unconstrained)
        return self._constrained

    def constrain(self, theta: Vector) -> Vector:
        rng = Rng(self.seed, QUANTITIES_STREAM)
        return self.model.param_constrain(theta, include_tp=True, include_gq=True, rng=rng)

    def __getitem__(self, name: str) -> Any:
        start = 0
        variables = self.model.written_variables()
        for variable in variables:
            if variable.name == name:
                values = self.constrained[start : start + variable.size]
                return from_output(variable, values) if variable.n_dims else float(values[0])
            start += variable.size
        raise KeyError(f"{name!r}; the model has {', '.join(variable.name for variable in variables)}")

    def __str__(self) -> str:
        from ulam.runtime.results import optimization_summary

        return optimization_summary(self)  # pyright: ignore[reportArgumentType]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes CmdStan-style CSV."""
        from ulam.runtime.results import write_optimization_csv

        write_optimization_csv(self, path)  # pyright: ignore[reportArgumentType]


def optimize(
    model: StanModel,
    *,
    algorithm: str = "lbfgs",
    jacobian: bool = False,
    init: Init = None,
    seed: int | None = None,
    save_iterations: bool = False,
    progress: Callable[[Iteration, int], None] | None = None,
    **options: Any,
) -> OptimizationResult:
    """Runs an optimizer on the model.

    `init`: None (uniform(-2, 2) on the unconstrained scale), a number (that radius instead of 2), an array (an
    unconstrained point), or constrained values by name as a mapping, JSON text or a path; those may be a part only.
    `seed` defaults to the model's. Further options: those of `LBFGSOptions` (`iter`, `tol_obj`, `history_size`, ...).
    """
    if algorithm in NOT_YET:
        raise NotImplementedError(f"the algorithm '{algorithm}' is not there yet; use algorithm='lbfgs'")
    if algorithm != "lbfgs":
        raise ValueError(f"unknown algorithm '{algorithm}'; there is 'lbfgs'")
    known = {entry.name for entry in fields(LBFGSOptions)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"unknown option {', '.join(map(repr, unknown))}; there are {', '.join(sorted(known))}")
    lbfgs_options = LBFGSOptions(**options)
    if seed is None:
        seed = model.seed
    began = time.perf_counter() - model.compile_seconds  # units that are compiled on the way do not count
    objective = _Objective(model, jacobian)
    start = initial_point(objective, init, seed)
    result = OptimizationResult(
        model, algorithm, jacobian, seed, start.x, -start.value, -start.gradient,
        Termination.RUNNING, 0, 0, 0.0, start.x, -start.value,
    )  # fmt: skip
    if save_iterations:
        result.trajectory.append((-start.value, start.x))

    def record(termination: Termination) -> None:
        result.termination = termination
        result.n_gradients, result.n_rejections = objective.n_gradients, objective.n_rejections
        result.seconds = time.perf_counter() - began - model.compile_seconds

    if not start.x.size:
        record(Termination.GRADIENT)
        return result
    try:
        for iteration in minimize(objective, start, lbfgs_options):
            point = iteration.point
            result.unconstrained, result.log_density, result.gradient = point.x, -point.value, -point.gradient
            result.n_iterations = iteration.number
            if save_iterations:
                result.trajectory.append((-point.value, point.x))
            if progress is not None:
                progress(iteration, objective.n_gradients)
            record(iteration.termination)
    except KeyboardInterrupt:
        record(Termination.INTERRUPTED)
        raise OptimizationInterrupted(result) from None
    return result


class _Objective:
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


# ---------------------------------------------------------------- initial values


def initial_point(objective: _Objective, init: Init, seed: int) -> Point:
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


def _tried(objective: _Objective, theta: Vector, what: str) -> Point:
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
