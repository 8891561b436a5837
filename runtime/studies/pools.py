"""Where the jobs of a study run: pools of its own, executors that are given, and what becomes of broken ones."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import Executor as PoolExecutor
from typing import Any

from ulam.runtime.errors import ArgumentError, UlamError
from ulam.runtime.parallel_jobs import Executor, described

OWN_POOLS = ("threads", "processes")

SECONDS_BETWEEN_QUESTIONS = 2.0
"""To a scheduler, for its workers."""

ExecutorChoice = str | Executor | Callable[[], Executor] | None


class PoolError(UlamError):
    """What runs the jobs is broken, and cannot be made anew."""


class JobPool:
    """An executor, and how to make it anew. `workers`: how many jobs it runs at a time; None if that is not known."""

    def __init__(self, choice: ExecutorChoice, workers: int | None) -> None:
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise ArgumentError(f"workers must be a positive int, found {workers!r}")
        self._make: Callable[[], Any] | None = None
        self._owned: list[Any] = []
        self._threads, self._asked = 1, -math.inf
        count = workers or os.cpu_count() or 1
        if choice is None or choice == "threads":
            self._make = lambda: ThreadPoolExecutor(count, "ulam-study")
        elif choice == "processes":
            self._make = lambda: _processes(count)
        elif isinstance(choice, str):
            raise ArgumentError(
                f"executor must be one of {', '.join(map(repr, OWN_POOLS))}, an executor or a function that makes one, "
                f"found {choice!r}"
            )
        elif workers is not None:
            raise ArgumentError("workers is for pools of the study's own: an executor has its own number of them")
        self._given = choice if self._make is None and hasattr(choice, "submit") else None
        if self._make is None and self._given is None:
            if not callable(choice):
                raise ArgumentError(f"executor must have a method submit, or make what has one, found {choice!r}")
            self._make = choice
        self.executor: Any = self._given if self._make is None else self._made()

    @property
    def workers(self) -> int | None:
        """How many jobs run at a time, as far as that is known by now."""
        executor = self.executor
        count = getattr(executor, "_max_workers", None)
        if isinstance(count, int):
            return count
        threads = getattr(getattr(executor, "_client", None), "nthreads", None)  # Dask's, which come and go
        if threads is None:
            return None
        if time.monotonic() - self._asked > SECONDS_BETWEEN_QUESTIONS:
            found = threads()
            if not isinstance(found, Mapping):  # of a client in a loop of its own
                return None
            self._threads, self._asked = max(1, sum(found.values())), time.monotonic()
        return self._threads

    @property
    def is_pool(self) -> bool:
        """Whether its locks are Python's own, so that no interrupt may come amid them."""
        return isinstance(self.executor, PoolExecutor)

    @property
    def is_here(self) -> bool:
        """Whether jobs run in this process, so that they need not be packed."""
        return isinstance(self.executor, ThreadPoolExecutor)

    def revive(self, error: BaseException) -> None:
        """Another executor in the place of one that is broken. Raises PoolError where there is no way to make one."""
        if self._make is None:
            self._make = _maker_of_same(self.executor)
        if self._make is None:
            kind = type(self.executor).__name__
            raise PoolError(
                f"the executor ({kind}) is broken: {described(error)}. What was finished is kept. To have a broken "
                "one made anew, give a function that makes it: executor=lambda: ..."
            )
        self.executor = self._made()

    def _made(self) -> Any:
        assert self._make is not None
        made = self._make()
        if not hasattr(made, "submit"):
            raise ArgumentError(f"executor is a function that returns {made!r}, which has no method submit")
        self._owned.append(made)
        return made

    def close(self) -> None:
        """Ends what was made here."""
        for executor in self._owned:
            shutdown = getattr(executor, "shutdown", None)
            if shutdown is not None:
                shutdown(wait=True)


def _processes(count: int) -> ProcessPoolExecutor:
    """Processes that share nothing with this one, and end with it. Interrupts reach them through their jobs' crew."""
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin_process)


def _begin_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _maker_of_same(executor: Any) -> Callable[[], Any] | None:
    """What makes another pool of processes like a given one; None for other executors."""
    if type(executor).__module__.partition(".")[0] == "loky":
        import loky  # pyright: ignore[reportMissingImports]

        return lambda: loky.get_reusable_executor(max_workers=executor._max_workers)  # pyright: ignore
    if type(executor) is not ProcessPoolExecutor:
        return None
    settings = ("_max_workers", "_mp_context", "_initializer", "_initargs")
    if not all(hasattr(executor, name) for name in settings):
        return None
    count, context, initializer, arguments = (getattr(executor, name) for name in settings)
    return lambda: ProcessPoolExecutor(count, context, initializer, arguments)


def is_broken(error: BaseException) -> bool:
    """Whether the error is that of an executor none of whose workers works any more."""
    return isinstance(error, BrokenExecutor)
