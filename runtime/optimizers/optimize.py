"""Posterior modes and maximum-likelihood estimates: one run of an optimizer.

With `jacobian=False` (the default, as in CmdStan) the mode is that of the density over constrained parameters, with
`jacobian=True` that of the density over unconstrained ones. Terms that are constant in the parameters are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import Interrupted, TimeLimit
from ulam.runtime.interrupts import forget_stop, stoppable
from ulam.runtime.optimizers import diagnosis, quasi_newton
from ulam.runtime.optimizers.algorithms import ALGORITHMS, checked_options
from ulam.runtime.optimizers.initial_values import Init, init_text, initial_point
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.optimizers.quasi_newton import Iteration
from ulam.runtime.optimizers.result import OptimizationResult
from ulam.runtime.optimizers.termination import Termination

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

ProgressCallback = Callable[[Iteration, int], None]


def optimize(
    model: StanModel,
    *,
    algorithm: str = "lbfgs",
    jacobian: bool = False,
    init: Init = None,
    seed: int | None = None,
    save_iterations: bool = False,
    refresh: int = 0,
    progress: ProgressCallback | None = None,
    n_starts: int = 1,
    executor: Executor | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> OptimizationResult:
    """Runs an optimizer on the model.

    `algorithm` is "lbfgs", "bfgs" or "newton". `init`: None (uniform(-2, 2) on the unconstrained scale), a number (that
    radius instead of 2), an array (an unconstrained point), or constrained values by name as a mapping, JSON text or a
    path; those may be a part only. `seed` defaults to the model's.

    Further options, by CmdStan's names and with its defaults: `iter`; for lbfgs and bfgs also `init_alpha`, `tol_obj`,
    `tol_rel_obj`, `tol_grad`, `tol_rel_grad`, `tol_param` (0 switches a test off); for lbfgs `history_size`.

    `refresh` shows every so many iterations; `progress` is called after each with the `Iteration` and the number of
    gradient evaluations so far, and replaces that. If it has a method `begin`, that is called with the log density at
    the start. `save_iterations` keeps the path in the result's `trajectory`.

    With `n_starts > 1` as many runs begin at different points, in parallel if there is an `executor`, and the best
    result has a table of the modes found: see `multi_start.run`.

    Interrupting (Ctrl-C) ends the run with what it has reached: `result.termination` is then INTERRUPTED. After
    `time_limit` seconds the run ends with `TimeLimit`, whose `result` is what it has reached (with TIME_LIMIT).

    Raises ValueError or TypeError for wrong options, InitializationError if no initial point is found, ArgumentError
    or DataError if `init` does not fit the model, and FatalError from the program.
    """
    algorithm_settings = checked_options(algorithm, options)
    quasi_newton.check_count("n_starts", n_starts)
    if refresh != 0:
        quasi_newton.check_count("refresh", refresh)
    work = partial(
        _optimized, model, algorithm, algorithm_settings, bool(jacobian), init, seed, save_iterations, refresh,
        progress, n_starts, executor, options,
    )  # fmt: skip
    return stoppable(work, time_limit, kept=True)


def _optimized(
    model: StanModel,
    algorithm: str,
    algorithm_settings: Any,
    jacobian: bool,
    init: Init,
    seed: int | None,
    save_iterations: bool,
    refresh: int,
    progress: ProgressCallback | None,
    n_starts: int,
    executor: Executor | None,
    options: dict[str, Any],
) -> OptimizationResult:
    """What `optimize` does once its arguments are known to be fine."""
    if n_starts > 1:
        from ulam.runtime.optimizers import multi_start

        return multi_start.run(
            optimize, model, n_starts, executor, algorithm=algorithm, jacobian=jacobian, init=init, seed=seed,
            save_iterations=save_iterations, refresh=refresh, progress=progress, **options,
        )  # fmt: skip
    run = _Run(model, algorithm, jacobian, init, model.seed if seed is None else seed, save_iterations, options)
    if progress is not None or not refresh:
        return run.go(algorithm_settings, progress)
    from ulam.runtime.optimizers.progress import Progress

    with Progress(refresh) as shown:
        return run.go(algorithm_settings, shown)


class _Run:
    """One run: the objective, the last point reached, and the result, which is complete at the end."""

    def __init__(
        self,
        model: StanModel,
        algorithm: str,
        jacobian: bool,
        init: Init,
        seed: int,
        save_iterations: bool,
        options: dict[str, Any],
    ) -> None:
        self.began = time.perf_counter() - model.compile_seconds  # units compiled on the way do not count
        self.objective = ModelObjective(model, jacobian)
        self.save_iterations = save_iterations
        self.point = self.start = start = initial_point(self.objective, init, seed)
        self.result = OptimizationResult(
            model, algorithm, jacobian, seed, start.x, -start.value, -start.gradient,
            Termination.RUNNING, 0, 0, 0.0, start.x, -start.value, options=dict(options), init=init_text(init),
        )  # fmt: skip
        self.path = diagnosis.Path()
        self.path.add(-start.value, start.x)
        if save_iterations:
            self.result.trajectory.append((-start.value, start.x))

    def go(self, options: Any, progress: ProgressCallback | None) -> OptimizationResult:
        """Iterates to the end, or to an interruption."""
        limit: TimeLimit | None = None
        try:
            termination = self._iterate(options, progress) if self.start.x.size else Termination.GRADIENT
        except (KeyboardInterrupt, Interrupted):
            termination = Termination.INTERRUPTED
            forget_stop()
        except TimeLimit as error:
            termination, limit = Termination.TIME_LIMIT, error
        self._record(termination)
        self.result.notes += self._notes()
        if limit is not None:
            limit.result = self.result
            raise limit
        return self.result

    def _iterate(self, options: Any, progress: ProgressCallback | None) -> Termination:
        """Iterates until the algorithm ends."""
        begin = getattr(progress, "begin", None)
        if begin is not None:
            begin(self.result.log_density)
        termination = Termination.RUNNING
        with np.errstate(over="ignore", invalid="ignore"):  # far from a mode; such points are refused
            for iteration in ALGORITHMS[self.result.algorithm].iterate(self.objective, self.start, options):
                self._take(iteration)
                termination = iteration.termination
                if progress is not None:
                    progress(iteration, self.objective.n_gradients)
        return termination

    def _take(self, iteration: Iteration) -> None:
        point = self.point = iteration.point
        self.result.n_iterations = iteration.number
        self.path.add(-point.value, point.x)
        if self.save_iterations:
            self.result.trajectory.append((-point.value, point.x))

    def _record(self, termination: Termination) -> None:
        result, point = self.result, self.point
        result.unconstrained, result.log_density, result.gradient = point.x, -point.value, -point.gradient
        result.termination = termination
        result.n_gradients, result.n_rejections = self.objective.n_gradients, self.objective.n_rejections
        result.seconds = time.perf_counter() - self.began - result.model.compile_seconds

    def _notes(self) -> list[str]:
        result = self.result
        return diagnosis.notes(
            diagnosis.DiagnosedRun(
                result.model,
                result.jacobian,
                self.path,
                -self.start.gradient,
                result.unconstrained,
                result.log_density,
                result.gradient,
                result.termination,
                self.objective.failures,
                self.objective.infinite_at,
                exact_hessian=result.algorithm == "newton",
            )
        )
