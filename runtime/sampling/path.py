"""One path of Pathfinder: an optimization, the normal densities along it, and draws from the best of them.

Algorithm 1 of Zhang et al. (2022), see `path_approximation`. A path is a job that can be pickled. Its random numbers
depend on its seed alone.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.crew import Crew
from ulam.runtime.errors import (
    ArgumentError,
    CompileError,
    DataError,
    InitializationError,
    Interrupted,
    Rejection,
    TimeLimit,
    UlamError,
)
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.initial_values import initial_point
from ulam.runtime.optimizers.laplace import DRAWS_STREAM
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.optimizers.quasi_newton import LBFGSOptions, minimize
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.parallel_jobs import SharedModel, seconds_left
from ulam.runtime.sampling.path_approximation import LowRankNormal, PathHistory, Vector

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

ELBO_STREAM = 4
"""Stream of the path's seed for the draws that estimate the ELBO."""

NO_APPROXIMATION = "the log density is finite at all draws of no normal density along the path"


@dataclass(frozen=True)
class PathSettings:
    """What a path needs to know. `calculate_lp`: whether the log density of its draws is computed."""

    num_draws: int
    num_elbo_draws: int
    calculate_lp: bool
    optimizer: LBFGSOptions


@dataclass
class PathDraws:
    """Unconstrained draws, (draws, n), with the log density of the model and of the normal density they are from.

    Both have their constants. `log_p` is NaN if it was not computed, and -infinity where the program rejects.
    """

    points: Vector
    log_p: Vector
    log_q: Vector

    def __len__(self) -> int:
        return len(self.log_q)

    def first(self, count: int) -> PathDraws:
        """Those that were made first."""
        return PathDraws(self.points[:count], self.log_p[:count], self.log_q[:count])


@dataclass
class PathfinderPath:
    """A path that has ended. `error` says why it has no draws; it is empty if it has.

    `elbo` is the largest estimate of the evidence lower bound, found at iteration `best_iteration`; `status` says why
    the optimization ended, as of a result of `optimize`. `draws` is None in results that do not keep single paths.
    """

    number: int
    seed: int
    elbo: float = -math.inf
    best_iteration: int = 0
    n_iterations: int = 0
    n_gradients: int = 0
    n_densities: int = 0
    status: str = "failed"
    error: str = ""
    n_draws: int = 0
    seconds: float = 0.0
    draws: PathDraws | None = field(default=None, repr=False)
    rejection: Rejection | None = field(default=None, repr=False)
    failure: InitializationError | None = field(default=None, repr=False)
    ended: Termination | None = None
    """INTERRUPTED or TIME_LIMIT if it was ended from outside."""


@dataclass
class PathJob:
    """What a path needs to run in another thread or process."""

    shared: SharedModel
    number: int
    seed: int
    init: Any
    settings: PathSettings
    crew: Crew
    ends: float | None


def run_path(job: PathJob) -> PathfinderPath:
    """Runs a path, here or in a worker. Mistakes that all paths share are raised, other errors recorded."""
    path, began = PathfinderPath(job.number, job.seed), time.perf_counter()
    try:
        job.crew.run(lambda: _Run(job.shared.model, path, job.settings).go(job.init), seconds_left(job.ends))
    except (KeyboardInterrupt, Interrupted):
        path.ended = Termination.INTERRUPTED
    except TimeLimit:
        path.ended = Termination.TIME_LIMIT
    except (CompileError, DataError, ArgumentError):
        raise
    except UlamError as error:
        path.failure = error.with_traceback(None) if isinstance(error, InitializationError) else None
        path.error = str(error)
    path.seconds = time.perf_counter() - began
    if path.draws is not None:
        path.n_draws = len(path.draws)
    elif path.ended is not None:
        path.error = path.ended.text
    return path


def lost_path(job: PathJob, error: str) -> PathfinderPath:
    """The path whose worker was lost."""
    return PathfinderPath(job.number, job.seed, error=error)


class _Run:
    """A path while it runs; what is known is in `path` at any time, since the run may be stopped."""

    def __init__(self, model: StanModel, path: PathfinderPath, settings: PathSettings) -> None:
        self.model, self.path, self.settings = model, path, settings
        self.best: LowRankNormal | None = None

    def go(self, init: Any) -> None:
        self._search(init)
        if self.best is None:
            self.path.error = NO_APPROXIMATION
            return
        # The draws of the best ELBO are chosen for their densities: those that are handed out are new ones.
        numbers = np.random.Generator(Rng(self.path.seed, DRAWS_STREAM).generator)
        drawn = _drawn(self.best, numbers, self.settings.num_draws)
        if not self.settings.calculate_lp:
            self.path.draws = drawn
            return
        done = 0
        try:
            for done in range(len(drawn)):
                drawn.log_p[done] = self._log_density(drawn.points[done])
        except (KeyboardInterrupt, Interrupted, TimeLimit):
            self.path.draws = drawn.first(done) if done else self.path.draws
            raise
        self.path.draws = drawn

    def _search(self, init: Any) -> None:
        """Runs the optimizer, and keeps the normal density with the largest ELBO."""
        path = self.path
        objective = ModelObjective(self.model, jacobian=True)
        start = initial_point(objective, init, path.seed)
        history = PathHistory(start, self.settings.optimizer.history_size)
        numbers = np.random.Generator(Rng(path.seed, ELBO_STREAM).generator)
        with np.errstate(over="ignore", invalid="ignore"):  # far from a mode; such points are refused
            for iteration in minimize(objective, start, self.settings.optimizer):
                path.n_iterations, path.n_gradients = iteration.number, objective.n_gradients
                path.status = iteration.termination.label
                if iteration.alpha > 0:  # else the search has failed, and the point is the last one once more
                    history.add(iteration.point)
                    self._judge(history.approximation(), numbers)

    def _judge(self, found: LowRankNormal | None, numbers: np.random.Generator) -> None:
        """Estimates the ELBO: the mean of log p - log q over draws from the normal density."""
        if found is None:
            return
        drawn = _drawn(found, numbers, self.settings.num_elbo_draws)
        for k, point in enumerate(drawn.points):
            drawn.log_p[k] = self._log_density(point)
            if drawn.log_p[k] == -math.inf:
                return
        elbo = float((drawn.log_p - drawn.log_q).mean())
        if elbo > self.path.elbo:
            self.best, self.path.elbo, self.path.best_iteration = found, elbo, self.path.n_iterations
            self.path.draws = drawn  # what there is if the run is stopped

    def _log_density(self, theta: Vector) -> float:
        """With constants; -infinity where the program rejects or there is no number."""
        self.path.n_densities += 1
        try:
            value = self.model.log_density(theta, propto=False, jacobian=True)
        except Rejection as rejection:
            self.path.rejection = self.path.rejection or rejection
            return -math.inf
        return value if value < math.inf else -math.inf


def _drawn(density: LowRankNormal, numbers: np.random.Generator, count: int) -> PathDraws:
    normal = numbers.standard_normal((count, density.mean.size))
    return PathDraws(density.draws(normal), np.full(count, np.nan), density.log_density(normal))
