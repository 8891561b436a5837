"""One optimization from many starts, on any executor, and the modes that were found.

A start is a small job that can be pickled: the model by its source and data, a number, a seed. What comes back are
arrays. Random numbers depend on the run's seed and the start's number only, so the result is the same on threads,
processes or machines. A start that fails is recorded; the run fails when all do.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from ulam.runtime.crew import Crew
from ulam.runtime.errors import (
    ArgumentError,
    CompileError,
    DataError,
    InitializationError,
    Interrupted,
    TimeLimit,
    UlamError,
)
from ulam.runtime.interrupts import current_limit, forget_stop, raise_interrupted
from ulam.runtime.optimizers.initial_values import inits_of_each
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.result import OptimizationResult
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.parallel_jobs import Executor, SharedModel, end_of_limit, job_seed, run_jobs, seconds_left
from ulam.runtime.terminal import is_animated

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

SAME_LOG_DENSITY, SAME_LOG_DENSITY_RELATIVE = 1e-4, 1e-7
SAME_POINT = 1e-2
"""Two starts reached the same mode if their log densities differ by at most 1e-4, or 1e-7 of the value if that is more,
and each unconstrained parameter by at most 1e-2, or 1 % of its value if that is more."""


@dataclass
class Start:
    """One start: its number from 1, its seed (`optimize(seed=...)` repeats it alone), and its result or error.

    `failure`: the error, if no initial point was found.
    """

    number: int
    seed: int
    result: OptimizationResult | None = field(repr=False)
    error: str = ""
    failure: InitializationError | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """As of a result; `failed` if there is none."""
        return "failed" if self.result is None else self.result.status


@dataclass
class Mode:
    """A mode that was found: its best start, all starts that reached it, and how far it is from the best mode.

    `distance` is Euclidean, over the unconstrained parameters.
    """

    best: OptimizationResult = field(repr=False)
    log_density: float
    starts: list[int]
    distance: float
    status: str


@dataclass
class MultiStartResult(OptimizationResult):
    """The best of several starts; `starts` has all of them, `modes` the modes from the highest log density down.

    The best is the start with the highest log density among those that converged, or among all if none did. `modes`
    begins with the best. `seed` is that of the best start, `run_seed` the one that all seeds come from.
    """

    run_seed: int = 0
    starts: list[Start] = field(default_factory=list[Start], repr=False)
    modes: list[Mode] = field(default_factory=list[Mode], repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As of a single run, with `modes` and `starts`."""
        record = super().to_dict()
        record["run_seed"] = self.run_seed
        record["modes"] = [
            {"log_density": m.log_density, "starts": m.starts, "distance": m.distance, "status": m.status,
             "unconstrained": m.best.unconstrained.tolist()}
            for m in self.modes
        ]  # fmt: skip
        record["starts"] = [
            {"number": s.number, "seed": s.seed, "status": s.status, "error": s.error,
             "log_density": None if s.result is None else s.result.log_density}
            for s in self.starts
        ]  # fmt: skip
        return record


# ---------------------------------------------------------------- jobs


@dataclass
class Job:
    """What a start needs. `optimize`: what runs it."""

    optimize: Callable[..., OptimizationResult]
    shared: SharedModel
    number: int
    seed: int
    init: Any
    arguments: Mapping[str, Any]
    crew: Crew
    ends: float | None = None
    """When the time limit is reached, of `time.time`: a start may run in another process."""


def run_job(job: Job) -> Start:
    """Runs one start, here or in a worker. Mistakes that all starts share are raised, other errors recorded."""
    try:
        options = {"seed": job.seed, "init": job.init, **job.arguments}
        result = job.crew.run(lambda: job.optimize(job.shared.model, **options), seconds_left(job.ends))
    except (KeyboardInterrupt, Interrupted):  # before there was a point
        return Start(job.number, job.seed, None, Termination.INTERRUPTED.text)
    except TimeLimit as error:
        if error.result is None:
            return Start(job.number, job.seed, None, Termination.TIME_LIMIT.text)
        result = error.result
    except (CompileError, DataError, ArgumentError):
        raise
    except UlamError as error:
        failure = error.with_traceback(None) if isinstance(error, InitializationError) else None
        return Start(job.number, job.seed, None, str(error), failure)
    result.model = None  # pyright: ignore[reportAttributeAccessIssue]  # `run` puts it back: it must not travel
    return Start(job.number, job.seed, result)


def _lost(job: Job, error: str) -> Start:
    return Start(job.number, job.seed, None, error)


def _ended(starts: Sequence[Start]) -> Termination | None:
    """Why the starts were ended from outside, if they were."""
    for ended in (Termination.INTERRUPTED, Termination.TIME_LIMIT):
        if any(start.status == ended.label or start.error == ended.text for start in starts):
            return ended
    return None


def run(
    optimize: Callable[..., OptimizationResult],
    model: StanModel,
    n_starts: int,
    executor: Executor | None = None,
    *,
    init: Any = None,
    seed: int | None = None,
    refresh: int = 0,
    progress: Any = None,
    file: TextIO | None = None,
    **arguments: Any,
) -> MultiStartResult:
    """Optimizes from `n_starts` starts, each by `optimize`, and returns the best, with the modes found.

    `init` is as for one start, or one for each: an array of shape (n_starts, n), or a list of mappings or paths.
    `executor` runs the starts; None is a pool of threads of its own, as many as there are processors. With `refresh`,
    a line for every finished start goes to `file` (standard error). An interrupt keeps what was finished.

    Raises InitializationError if no start gave a point, ValueError for starts that would all be the same.
    """
    if progress is not None:
        raise ValueError("progress is a callback of a single run; with n_starts, refresh shows each finished start")
    seed = model.seed if seed is None else seed
    inits = _inits(init, n_starts, model)
    shared, crew, ends = SharedModel(model), Crew(), end_of_limit()
    jobs = [
        Job(optimize, shared, number, job_seed(seed, number), inits[number - 1], arguments, crew, ends)
        for number in range(1, n_starts + 1)
    ]
    report = _Report(n_starts, file or sys.stderr) if refresh else None
    starts, rescued = run_jobs(jobs, run_job, _lost, crew, executor, report)
    starts += [start for start in rescued or () if start.result is not None]
    for start in starts:
        if start.result is not None:
            start.result.model = model
        if start.failure is not None:
            start.failure.model = model
    return _gathered(starts, n_starts, seed, Termination.INTERRUPTED if rescued is not None else _ended(starts))


def _inits(init: Any, n_starts: int, model: StanModel) -> list[Any]:
    """The initial values of each start. Raises ValueError where all starts would be the same."""
    each = inits_of_each(init, n_starts, "starts")
    if each is not None:
        return each
    if isinstance(init, Real) and init == 0 and model.param_unc_num():
        raise ValueError("init=0 makes all starts the same: give a radius, or initial values for each start")
    if not (init is None or isinstance(init, (Mapping, str, os.PathLike, Real))):
        shape = np.asarray(init, dtype=np.float64).shape
        raise ValueError(f"init of shape {shape} makes all starts the same: give (n_starts, n_parameters)")
    return [init] * n_starts


# ---------------------------------------------------------------- running


class _Report:
    """A line for each start that has ended; on a terminal always the same line, until one failed."""

    def __init__(self, n_starts: int, file: TextIO) -> None:
        self.n_starts = n_starts
        self.file = file
        self.is_terminal = is_animated(file)

    def __call__(self, start: Start) -> None:
        if start.result is None:
            text = start.error.splitlines()[0]
        else:
            found = start.result
            text = f"log density {found.log_density:.8g}, {found.n_gradients} evaluations, {found.status}"
        line = f"start {start.number} of {self.n_starts}: {text}"
        if self.is_terminal:
            width = get_terminal_size().columns - 1
            stays = start.result is None or start.number == self.n_starts
            self.file.write(f"\r\033[2K{line[:width]}{chr(10) if stays else ''}")
        else:
            self.file.write(f"{line}\n")
        self.file.flush()


# ---------------------------------------------------------------- modes


def _gathered(starts: list[Start], n_starts: int, seed: int, ended: Termination | None) -> MultiStartResult:
    """The best start as the result, with all starts and modes. Raises if there is no start with a point."""
    found = [start for start in starts if start.result is not None]
    limit = current_limit() if ended is Termination.TIME_LIMIT else None
    if not found:
        if ended is Termination.INTERRUPTED:
            raise_interrupted()
        if limit is not None:
            forget_stop()
            raise TimeLimit(limit.seconds)
        raise _all_failed(starts)
    modes = find_modes(starts)
    best = modes[0].best
    entries = {entry.name: getattr(best, entry.name) for entry in fields(OptimizationResult)}
    result = MultiStartResult(**entries, run_seed=seed, starts=starts, modes=modes)
    result.notes = [*best.notes, *_notes(starts, modes, n_starts)]
    if ended is not None:
        result.termination = ended
    if limit is not None:
        forget_stop()
        raise TimeLimit(limit.seconds, result)
    return result


def _all_failed(starts: Sequence[Start]) -> InitializationError:
    """The counted errors; the point is that of the first start that found none."""
    reasons = Counter(start.error for start in starts)
    lines = [f"all {len(starts)} starts failed:"]
    lines += [f"  {count} of {len(starts)}: {reason}" for reason, count in reasons.most_common(5)]
    error = InitializationError("\n".join(lines))
    first = next((start.failure for start in starts if start.failure is not None), None)
    if first is not None:
        error.point, error.jacobian, error.model = first.point, first.jacobian, first.model
    return error


def _notes(starts: Sequence[Start], modes: Sequence[Mode], n_starts: int) -> list[str]:
    notes: list[str] = []
    failed = [start for start in starts if start.result is None]
    if failed:
        reason = Counter(start.error.splitlines()[0] for start in failed).most_common(1)[0][0].rstrip(".")
        notes.append(f"{len(failed)} of {n_starts} starts failed: {reason}.")
    if len(starts) < n_starts:
        notes.append(f"{n_starts - len(starts)} of {n_starts} starts were not run to their end.")
    higher = [mode for mode in modes[1:] if mode.log_density > modes[0].log_density]
    if higher:
        numbers = ", ".join(str(number) for mode in higher for number in mode.starts)
        notes.append(f"Not converged, but at a higher log density: start {numbers}.")
    return notes


def find_modes(starts: Sequence[Start]) -> list[Mode]:
    """Starts that ended at the same point, converged ones first, then by log density.

    Two points are the same by SAME_LOG_DENSITY and SAME_POINT, compared with the best start of a mode.
    """
    found = [start for start in starts if start.result is not None]
    results = {start.number: start.result for start in found if start.result is not None}
    order = sorted(results, key=lambda n: (not results[n].converged, -results[n].log_density, n))
    groups: list[list[int]] = []
    for number in order:
        home = next((group for group in groups if _same(results[group[0]], results[number])), None)
        if home is None:
            groups.append([number])
        else:
            home.append(number)
    origin = results[groups[0][0]].unconstrained
    return [
        Mode(
            results[group[0]], results[group[0]].log_density, sorted(group),
            _distance(results[group[0]].unconstrained, origin), results[group[0]].status,
        )
        for group in groups
    ]  # fmt: skip


def _same(first: OptimizationResult, second: OptimizationResult) -> bool:
    value = first.log_density
    if abs(value - second.log_density) > max(SAME_LOG_DENSITY, SAME_LOG_DENSITY_RELATIVE * abs(value)):
        return False
    bound = SAME_POINT * np.maximum(1.0, np.abs(first.unconstrained))
    return bool((np.abs(first.unconstrained - second.unconstrained) <= bound).all())


def _distance(first: Vector, second: Vector) -> float:
    return float(np.linalg.norm(first - second))
