"""Pathfinder: draws from normal densities along the paths of an optimizer, resampled by importance.

Zhang, Carpenter, Gelman and Vehtari (2022), see `path_approximation`: Algorithm 1 is a single path (`path`),
Algorithm 2 several of them, whose draws are resampled with Pareto-smoothed importance weights (`psis`).
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import numpy.typing as npt

from ulam.runtime.crew import Crew
from ulam.runtime.errors import (
    ArgumentError,
    InitializationError,
    Interrupted,
    Rejection,
    TimeLimit,
    UlamError,
)
from ulam.runtime.interrupts import current_limit, forget_stop, raise_interrupted, stoppable
from ulam.runtime.named_draws import NamedDraws, Vector
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.initial_values import Init, init_text, inits_of_each
from ulam.runtime.optimizers.quantities import constrained_or_nan
from ulam.runtime.optimizers.quasi_newton import LBFGSOptions, check_count
from ulam.runtime.optimizers.result import QUANTITIES_STREAM
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.parallel_jobs import Executor, SharedModel, end_of_limit, job_seed, run_jobs
from ulam.runtime.sampling.path import PathDraws, PathfinderPath, PathJob, PathSettings, lost_path, run_path
from ulam.runtime.sampling.psis import KHAT_LIMIT, smoothed_weights

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

RESAMPLING_STREAM = 5
"""Stream of the run's seed that chooses draws by their weights."""

SECONDS_TO_COMPLETE = 1.0
"""How long the generated quantities of a run that was ended may take; draws after that are left out."""

DRAWS_FOR_INITS = 100
"""Draws of each path that initial values are chosen from."""

Indices = npt.NDArray[np.intp]


class PathfinderError(UlamError):
    """No path has a normal density to draw from. The message counts the reasons."""


@dataclass(frozen=True)
class PathfinderSettings:
    """Settings of a run by CmdStan's names and with its defaults; those of L-BFGS as of `optimize`."""

    init_alpha: float = LBFGSOptions.init_alpha
    tol_obj: float = LBFGSOptions.tol_obj
    tol_rel_obj: float = LBFGSOptions.tol_rel_obj
    tol_grad: float = LBFGSOptions.tol_grad
    tol_rel_grad: float = LBFGSOptions.tol_rel_grad
    tol_param: float = LBFGSOptions.tol_param
    history_size: int = LBFGSOptions.history_size
    num_psis_draws: int = 1000
    num_paths: int = 4
    save_single_paths: bool = False
    psis_resample: bool = True
    calculate_lp: bool = True
    max_lbfgs_iters: int = 1000
    num_draws: int = 1000
    num_elbo_draws: int = 25

    def __post_init__(self) -> None:
        for name in ("num_psis_draws", "num_paths", "max_lbfgs_iters", "num_draws", "num_elbo_draws"):
            check_count(name, getattr(self, name))
        for name in ("save_single_paths", "psis_resample", "calculate_lp"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, found {getattr(self, name)!r}")
        if self.psis_resample and not self.calculate_lp:
            raise ValueError("psis_resample needs the log density of the draws: leave calculate_lp on")
        self.path()

    def path(self) -> PathSettings:
        """What a path needs of them."""
        names = {entry.name for entry in fields(LBFGSOptions)} - {"iter"}
        optimizer = LBFGSOptions(iter=self.max_lbfgs_iters, **{name: getattr(self, name) for name in names})
        return PathSettings(self.num_draws, self.num_elbo_draws, self.calculate_lp, optimizer)


@dataclass
class PathfinderResult(NamedDraws):
    """Draws of Pathfinder; `fit["theta"]` are those of a variable, of shape (draws, ...) with its own shape last.

    `log_p` is the log density of the model at each draw, with its constants and the change of variables (NaN if it was
    not computed, -infinity where the program rejects), `log_q` that of the normal density the draw is from; CmdStan's
    `lp__` and `lp_approx__`. `path` is the number, from 1, of the path that made the draw. `khat` tells how good the
    normal densities are: above 0.7 they are not (NaN if unknown). `paths` has all paths, `single_paths` a result for
    each path with draws, before resampling, if `save_single_paths` asked for them.
    """

    model: StanModel = field(repr=False)
    seed: int
    settings: PathfinderSettings
    unconstrained_draws: Vector = field(repr=False)
    constrained_draws: Vector = field(repr=False)
    log_p: Vector = field(repr=False)
    log_q: Vector = field(repr=False)
    path: Indices = field(repr=False)
    khat: float
    paths: list[PathfinderPath] = field(repr=False)
    n_rejections: int
    seconds: float
    init: str = field(default="2", repr=False)
    single_paths: list[PathfinderResult] = field(default_factory=list["PathfinderResult"], repr=False)
    notes: list[str] = field(default_factory=list[str])
    interrupted: bool = False

    @property
    def elbo(self) -> float:
        """The largest estimate of the evidence lower bound of all paths."""
        return max(path.elbo for path in self.paths)

    def __str__(self) -> str:
        from ulam.runtime.results import pathfinder_summary

        return pathfinder_summary(self)

    def _repr_html_(self) -> str:
        from ulam.runtime.results import pathfinder_html

        return pathfinder_html(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes CmdStan's CSV: settings as comments, `lp_approx__,lp__,path__,...`, a row per draw.

        Of one path, as CmdStan, without `path__`.
        """
        from ulam.runtime.cmdstan_csv import write_pathfinder

        write_pathfinder(self, path)

    def to_arviz(self, *, log_likelihood: str | None = "log_lik", posterior_predictive: Sequence[str] = ()) -> Any:
        """The draws as one chain, as `OptimizationResult.to_arviz`."""
        from ulam.runtime.arviz_export import export_chain

        about = {"method": "pathfinder", "seed": self.seed, "khat": self.khat}
        statistics = {"lp": self.log_p, "lp_approx": self.log_q, "path": self.path}
        return export_chain(self.draws, statistics, about, log_likelihood, posterior_predictive)


def pathfinder(
    model: StanModel,
    *,
    num_paths: int = 4,
    draws: int = 1000,
    num_single_draws: int | None = None,
    num_elbo_draws: int = 25,
    psis_resample: bool | None = None,
    calculate_lp: bool = True,
    save_single_paths: bool = False,
    max_lbfgs_iters: int = 1000,
    init: Init | list[Any] = None,
    seed: int | None = None,
    executor: Executor | None = None,
    refresh: int = 0,
    file: TextIO | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> PathfinderResult:
    """Approximate draws from the posterior, from `num_paths` runs of L-BFGS.

    `draws`: how many there are in the end; `num_single_draws`: how many each path makes (None: as many). They are
    resampled by importance if `psis_resample` (None: if there are several paths and `calculate_lp`); else the draws of
    all paths are the result. `num_elbo_draws` estimate how good each normal density is. `init` is as for `optimize`,
    or a list, or an array with a row for each path. Further options are those of L-BFGS, by CmdStan's names:
    `history_size`, `init_alpha`, `tol_obj`, `tol_rel_obj`, `tol_grad`, `tol_rel_grad`, `tol_param`.

    Paths run in threads, or by `executor`; the result depends on the seed only. With `refresh` a line tells of each
    path that has ended. An interrupt (Ctrl-C) keeps the draws that were made. After `time_limit` seconds there is
    `TimeLimit`, whose `result` has them.

    Raises InitializationError if no path has an initial point, PathfinderError if none has draws, ValueError or
    TypeError for wrong options.
    """
    check_count("draws", draws)
    check_count("num_paths", num_paths)
    if refresh != 0:
        check_count("refresh", refresh)
    single = num_paths == 1
    resample = (not single and bool(calculate_lp)) if psis_resample is None else psis_resample
    settings = PathfinderSettings(
        num_psis_draws=draws, num_paths=num_paths, save_single_paths=save_single_paths, psis_resample=resample,
        calculate_lp=calculate_lp, max_lbfgs_iters=max_lbfgs_iters, num_elbo_draws=num_elbo_draws,
        num_draws=draws if num_single_draws is None else num_single_draws, **options,
    )  # fmt: skip
    if not model.param_unc_num():
        raise ArgumentError("pathfinder looks for draws of parameters, and the model has none")
    seed = model.seed if seed is None else seed
    report = partial(_report, num_paths, file or sys.stderr) if refresh else None
    return stoppable(lambda: _Pathfinder(model, settings, init, seed, executor, report).result(), time_limit, kept=True)


def pathfinder_inits(
    model: StanModel, chains: int, seed: int, *, init: Init = None, executor: Executor | None = None
) -> Vector:
    """Unconstrained initial points for so many chains, (chains, n): one path for each, draws resampled without repeats.

    A point is repeated only if fewer draws than chains have a weight. Raises as `pathfinder`.
    """
    settings = PathfinderSettings(num_paths=chains, num_psis_draws=chains, num_draws=DRAWS_FOR_INITS)
    run = _Pathfinder(model, settings, init, seed, executor, None)
    return stoppable(run.distinct_points)


def _report(num_paths: int, file: TextIO, path: PathfinderPath) -> None:
    if path.draws is None:
        text = path.error.splitlines()[0]
    else:
        where = f"iteration {path.best_iteration} of {path.n_iterations}"
        text = f"ELBO {path.elbo:.8g} at {where}, {path.n_gradients} gradients, {path.n_densities} densities"
    print(f"path {path.number} of {num_paths}: {text}", file=file, flush=True)


# ---------------------------------------------------------------- a run


class _Pathfinder:
    """The paths, their draws together, and what is chosen of them."""

    def __init__(
        self,
        model: StanModel,
        settings: PathfinderSettings,
        init: Any,
        seed: int,
        executor: Executor | None,
        report: Any,
    ) -> None:
        self.began = time.perf_counter() - model.compile_seconds
        self.model, self.settings, self.seed, self.executor, self.report = model, settings, seed, executor, report
        self.init = init
        self.ended: Termination | None = None

    def result(self) -> PathfinderResult:
        """Runs all paths, and chooses draws."""
        paths = self._run_paths()
        if self.ended is Termination.TIME_LIMIT:
            forget_stop()
        drawn, numbers = _joined(paths)
        khat, chosen = math.nan, np.arange(len(drawn))
        if self.settings.calculate_lp:
            weights, khat = self._weights(drawn)
            if self.settings.psis_resample:
                chosen = self._generator().choice(len(drawn), self.settings.num_psis_draws, p=weights)
        fit = self._fit(drawn, numbers, chosen, khat, paths, self.seed)
        if self.settings.save_single_paths:
            fit.single_paths = [self._single(path) for path in paths if path.draws is not None]
        for path in paths:
            path.draws = None
        fit.seconds = time.perf_counter() - self.began - self.model.compile_seconds
        if self.ended is Termination.TIME_LIMIT and (limit := current_limit()) is not None:
            forget_stop()
            raise TimeLimit(limit.seconds, fit)
        return fit

    def distinct_points(self) -> Vector:
        """As many points as chains, chosen by weight without repeats."""
        drawn, _ = _joined(self._run_paths())
        if self.ended is Termination.INTERRUPTED:
            raise_interrupted()
        if self.ended is not None and (limit := current_limit()) is not None:
            forget_stop()
            raise TimeLimit(limit.seconds)
        weights, _ = self._weights(drawn)
        count, generator = self.settings.num_psis_draws, self._generator()
        repeats = int((weights > 0).sum()) < count
        return drawn.points[generator.choice(len(drawn), count, replace=repeats, p=weights)]

    def _generator(self) -> np.random.Generator:
        return np.random.Generator(Rng(self.seed, RESAMPLING_STREAM).generator)

    def _weights(self, drawn: PathDraws) -> tuple[Vector, float]:
        """Weights whose sum is 1, and k-hat."""
        try:
            smoothed = smoothed_weights(drawn.log_p - drawn.log_q)
        except ValueError:
            raise PathfinderError("pathfinder failed: the program rejects all draws") from None
        weights = np.exp(smoothed.log_weights)
        return weights / weights.sum(), smoothed.khat

    def _run_paths(self) -> list[PathfinderPath]:
        """All paths that ended; at least one has draws."""
        count, model = self.settings.num_paths, self.model
        each = inits_of_each(self.init, count, "paths") or [self.init] * count
        shared, crew, ends, settings = SharedModel(model), Crew(), end_of_limit(), self.settings.path()
        jobs = [
            PathJob(shared, number, job_seed(self.seed, number), each[number - 1], settings, crew, ends)
            for number in range(1, count + 1)
        ]
        paths, rescued = run_jobs(jobs, run_path, lost_path, crew, self.executor, self.report)
        paths += [path for path in rescued or () if path.draws is not None]
        stops = [path.ended for path in paths if path.ended is not None]
        self.ended = Termination.INTERRUPTED if rescued is not None else stops[0] if stops else None
        for path in paths:
            if path.failure is not None:
                path.failure.model = model
        if all(path.draws is None for path in paths):
            self._fail(paths)
        return paths

    def _fail(self, paths: Sequence[PathfinderPath]) -> None:
        """Raises why no path has draws."""
        if self.ended is Termination.INTERRUPTED:
            raise_interrupted()
        if self.ended is not None and (limit := current_limit()) is not None:
            forget_stop()
            raise TimeLimit(limit.seconds)
        reasons = Counter(path.error for path in paths)
        lines = [f"all {len(paths)} paths failed:"]
        lines += [f"  {count} of {len(paths)}: {reason}" for reason, count in reasons.most_common(5)]
        text = paths[0].error if len(paths) == 1 else "\n".join(lines)
        failures = [path.failure for path in paths if path.failure is not None]
        if len(failures) < len(paths):
            raise PathfinderError(f"pathfinder failed: {text}")
        error = InitializationError(text, failures[0].reasons, failures[0].point, failures[0].jacobian)
        error.model = self.model
        raise error

    def _single(self, path: PathfinderPath) -> PathfinderResult:
        """The draws of a path as a result."""
        assert path.draws is not None
        finite = self.settings.calculate_lp and bool(np.isfinite(path.draws.log_p).any())
        khat = self._weights(path.draws)[1] if finite else math.nan
        numbers = np.full(len(path.draws), path.number)
        fit = self._fit(path.draws, numbers, np.arange(len(path.draws)), khat, [path], path.seed)
        fit.settings = replace(self.settings, num_paths=1, psis_resample=False, save_single_paths=False)
        fit.seconds = path.seconds
        return fit

    def _fit(
        self,
        drawn: PathDraws,
        numbers: Indices,
        chosen: Indices,
        khat: float,
        paths: list[PathfinderPath],
        seed: int,
    ) -> PathfinderResult:
        """The result, of those draws that can be constrained before it is interrupted."""
        values = np.empty((len(chosen), self.model.param_num(include_tp=True, include_gq=True)))
        quantities, rejections, done = Rng(seed, QUANTITIES_STREAM), [], 0
        try:
            until = math.inf if self.ended is None else time.monotonic() + SECONDS_TO_COMPLETE
            for done, draw in enumerate(chosen):
                if done and time.monotonic() > until:
                    break
                values[done], rejection = constrained_or_nan(self.model, drawn.points[draw], quantities)
                if rejection is not None:
                    rejections.append(rejection)
            else:
                done = len(chosen)
        except (KeyboardInterrupt, Interrupted, TimeLimit) as stop:
            if not done:
                raise
            self.ended = Termination.TIME_LIMIT if isinstance(stop, TimeLimit) else Termination.INTERRUPTED
            forget_stop()
        kept = chosen[:done]
        fit = PathfinderResult(
            self.model, seed, self.settings, drawn.points[kept], values[:done], drawn.log_p[kept], drawn.log_q[kept],
            numbers[kept], khat, paths, len(rejections), 0.0, init_text(self.init), interrupted=self.ended is not None,
        )  # fmt: skip
        fit.notes = _notes(fit, len(chosen), rejections, self.settings)
        return fit


def _joined(paths: Sequence[PathfinderPath]) -> tuple[PathDraws, Indices]:
    """The draws of all paths, and the number of the path of each."""
    found = [(path.number, path.draws) for path in paths if path.draws is not None]
    parts = [draws for _, draws in found]
    numbers = np.repeat([number for number, _ in found], [len(draws) for draws in parts]).astype(np.intp)
    if len(parts) == 1:
        return parts[0], numbers
    columns = zip(*((draws.points, draws.log_p, draws.log_q) for draws in parts), strict=True)
    return PathDraws(*(np.concatenate(column) for column in columns)), numbers


def _notes(
    fit: PathfinderResult, asked: int, rejections: Sequence[Rejection], settings: PathfinderSettings
) -> list[str]:
    """What there is to know about the run, a sentence each."""
    notes: list[str] = []
    failed = [path for path in fit.paths if path.error]
    if failed:
        reason = Counter(path.error.splitlines()[0] for path in failed).most_common(1)[0][0].rstrip(".")
        notes.append(f"{len(failed)} of {len(fit.paths)} paths failed: {reason}.")
    if fit.interrupted:
        notes.append(f"Interrupted: {len(fit)} of {asked} draws, of what the paths had found so far.")
    if fit.khat > KHAT_LIMIT:
        notes.append(
            f"k-hat is {fit.khat:.2f}: above {KHAT_LIMIT} the normal densities are too far from the posterior for the "
            "weights to correct them. Use the draws as initial values of a sampler, or find another parameterization."
        )
    elif math.isnan(fit.khat) and settings.calculate_lp:
        notes.append("k-hat is not known: too few draws have a finite log density.")
    if rejections:
        notes.append(f"{len(rejections)} of {len(fit)} draws have NaN, the first for: {rejections[0]}.")
    return notes
