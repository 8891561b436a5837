"""The jobs of one call, on threads or on any executor: submitted, waited for, and ended when the call is to end.

A job is a small record that can be pickled, with a `SharedModel` and the call's `Crew` in it; what comes back are plain
arrays. Random numbers follow from a seed and the number of the job, so results do not depend on the executor.
"""

from __future__ import annotations

import math
import os
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ThreadPoolExecutor
from concurrent.futures import Executor as PoolExecutor
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from ulam.runtime.c_library import STOP_INTERRUPT, library
from ulam.runtime.crew import Crew
from ulam.runtime.errors import Interrupted, TimeLimit
from ulam.runtime.interrupts import current_limit, forget_stop, held, listen

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

_J = TypeVar("_J")
_T = TypeVar("_T")

LEAST_SECONDS = 1e-3
"""What a job that begins late is given of a time limit that is over."""

SECONDS_TO_END = 10.0
"""How long an interrupted call waits for all jobs that are under way to hand back what they have."""
LISTEN_SECONDS = 0.05
"""How often a thread that waits for a job looks whether SIGINT asked the call to end."""


INTERRUPT, TIME_LIMIT = "interrupt", "time limit"
"""Why a job ended before its work was done."""


_LOSSES = (BrokenExecutor, CancelledError, TimeoutError, ConnectionError, EOFError)
_NAMES_OF_LOSSES = ("KilledWorker", "UncompletedJobError")
"""Dask's and submitit's, which are derived from Exception only."""


class Future(Protocol):
    """What `submit` returns; `done` and `cancel` are used where they exist."""

    def result(self, timeout: float | None = None) -> Any: ...


class Executor(Protocol):
    """Anything with `submit`: executors of `concurrent.futures`, loky, Dask (`Client.get_executor()`), MPI pools."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...


class SharedModel:
    """A model on its way to where a job runs: itself in this process, its source and data in another one.

    It is pickled once for all jobs, and compiled once in each process: when a job asks for it, which can be
    interrupted.
    """

    def __init__(self, model: StanModel | None, pickled: bytes | None = None) -> None:
        self._model, self._pickled = model, pickled
        self._lock = Lock()

    @property
    def model(self) -> StanModel:
        """The model."""
        with self._lock:
            if self._model is None:
                assert self._pickled is not None
                self._model = cast("StanModel", pickle.loads(self._pickled))
            return self._model

    def __reduce__(self) -> tuple[Any, ...]:
        if self._pickled is None:
            self._pickled = pickle.dumps(self._model)
        return _shared_model, (self._pickled,)


@lru_cache(maxsize=4)
def _shared_model(pickled: bytes) -> SharedModel:
    return SharedModel(None, pickled)


# ---------------------------------------------------------------- what jobs begin with


def job_seed(seed: int, number: int) -> int:
    """The seed of job `number`: the call's own for the first, 32 bits of SeedSequence((seed, number)) for others."""
    return seed if number == 1 else int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def default_workers(n_jobs: int) -> int:
    """How many of so many jobs run at a time: as many as there are processors."""
    return min(n_jobs, os.cpu_count() or 1)


def end_of_limit() -> float | None:
    """When the time limit of this call is reached, of `time.time`, which other processes know, too."""
    limit = current_limit()
    return None if limit is None else time.time() + limit.left


def seconds_left(ends: float | None) -> float | None:
    """What a job has of the time until `ends`."""
    return None if ends is None else max(ends - time.time(), LEAST_SECONDS)


# ---------------------------------------------------------------- what a job ends with


def run_until_stopped(crew: Crew, ends: float | None, work: Callable[[], object]) -> str:
    """Runs a job's work, here or in a worker: "", or why it was ended from outside. Its error ends all jobs."""
    try:
        crew.run(work, seconds_left(ends))
    except (KeyboardInterrupt, Interrupted):
        return INTERRUPT
    except TimeLimit:
        return TIME_LIMIT
    except BaseException:
        crew.stop()
        raise
    return ""


def why_stopped() -> str:
    """Why native code of this thread was stopped, which then counts as dealt with."""
    return INTERRUPT if library().ulam_stop_take() & STOP_INTERRUPT else TIME_LIMIT


def is_loss(error: BaseException) -> bool:
    """Whether this error of a future says that its worker was lost, and not what the job raised."""
    return isinstance(error, _LOSSES) or type(error).__name__ in _NAMES_OF_LOSSES


def described(error: BaseException) -> str:
    """The kind of an error and its text."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


# ---------------------------------------------------------------- running


def run_jobs(
    jobs: Sequence[_J],
    run: Callable[[_J], _T],
    lost: Callable[[_J, str], _T],
    crew: Crew,
    executor: Executor | None = None,
    report: Callable[[_T], None] | None = None,
    workers: int | None = None,
) -> tuple[list[_T], list[_T] | None]:
    """What `run` returned for the jobs, in their order. None follows, unless SIGINT ended the call before:
    then it is what those that were under way handed back.

    `run` must be a function of a module, and raises only what ends the whole call. `lost` makes an outcome of a job
    whose worker was lost, with the reason. `executor`: None is a pool of threads of its own, `workers`
    of them or as many as there are processors, which have ended when this returns. The crew is closed.
    """
    call = _Call(jobs, run, lost, crew, report)

    def on_threads() -> tuple[list[_T], list[_T] | None]:
        with ThreadPoolExecutor(workers or default_workers(len(jobs))) as own:
            return call.run_all(own)

    try:
        if executor is None:
            return held(on_threads)  # waiting for the threads to end is not interrupted
        if isinstance(executor, PoolExecutor):
            # Its locks, and those of its futures, are Python's own: an interrupt amid them may leave them broken.
            return held(lambda: call.run_all(executor))
        return call.run_all(executor)
    finally:
        crew.close()


class _Call:
    """The jobs of `run_jobs`, those that were submitted, and what has ended."""

    def __init__(
        self,
        jobs: Sequence[Any],
        run: Callable[[Any], Any],
        lost: Callable[[Any, str], Any],
        crew: Crew,
        report: Callable[[Any], None] | None,
    ) -> None:
        self.jobs, self.run, self.lost, self.crew, self.report = jobs, run, lost, crew, report
        self.futures: list[tuple[Any, Any]] = []
        self.outcomes: list[Any] = []

    def run_all(self, executor: Executor) -> tuple[list[Any], list[Any] | None]:
        try:
            for job in self.jobs:
                self.futures.append((job, executor.submit(self.run, job)))
                listen()
            for job, future in self.futures:
                _wait(future)
                self.outcomes.append(self._ended(job, future))
                if self.report is not None:
                    self.report(self.outcomes[-1])
        except (KeyboardInterrupt, Interrupted):
            self.crew.stop()
            forget_stop()
            return self.outcomes, self._rescued(self.futures[len(self.outcomes) :])
        except BaseException:  # a mistake that all jobs share
            self.crew.stop()
            _cancel(self.futures)
            raise
        return self.outcomes, None

    def _ended(self, job: Any, future: Future, timeout: float | None = None) -> Any:
        """What a future holds; a lost worker is an error of its job, not of the call."""
        try:
            return future.result() if timeout is None else future.result(timeout)
        except Exception as error:
            if not is_loss(error):
                raise
            return self.lost(job, f"its worker was lost: {described(error)}")

    def _rescued(self, futures: Sequence[tuple[Any, Any]]) -> list[Any]:
        """After an interrupt: what has ended, and what ends soon. A second interrupt does not wait."""
        _cancel(futures)
        outcomes: list[Any] = []
        end = time.monotonic() + SECONDS_TO_END
        try:
            for job, future in futures:
                if hasattr(future, "cancelled") and future.cancelled():
                    continue
                _wait(future, end)
                outcomes.append(self._ended(job, future, max(0.0, end - time.monotonic())))
        except (KeyboardInterrupt, Interrupted):
            pass  # what is there is kept
        return outcomes


def _wait(future: Future, end: float = math.inf) -> None:
    """Until it has ended, SIGINT ends the call, or it is the time `end`."""
    listen()
    when_done = getattr(future, "add_done_callback", None)
    if when_done is not None:
        done = threading.Event()
        when_done(lambda _: done.set())
        while not done.wait(LISTEN_SECONDS) and time.monotonic() < end:
            listen()


def _cancel(futures: Sequence[tuple[Any, Any]]) -> None:
    for _, future in futures:
        if hasattr(future, "cancel"):
            future.cancel()
