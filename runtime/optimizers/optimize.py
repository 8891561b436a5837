"""Posterior modes and maximum-likelihood estimates: one run of an optimizer.

With `jacobian=False` (the default, as in CmdStan) the mode is that of the density over constrained parameters, with
`jacobian=True` that of the density over unconstrained ones. Terms that are constant in the parameters are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ulam.runtime.optimizers.initial_values import Init, initial_point
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.optimizers.quasi_newton import Iteration, LBFGSOptions, minimize
from ulam.runtime.optimizers.result import OptimizationInterrupted, OptimizationResult
from ulam.runtime.optimizers.termination import Termination

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

NOT_YET = {"bfgs", "newton"}


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
    objective = ModelObjective(model, jacobian)
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
