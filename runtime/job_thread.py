"""A thread that does jobs in order: LLVM works on a unit while the next one is lowered.

    with JobThread[bytes]("llvm") as thread:
        thread.submit(job)
        while not thread.wait(0.05):
            checkpoint()
    thread.results

Executors of `concurrent.futures` do as much; importing them, and `logging` with them, takes longer than a small unit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Stopped(Exception):
    """Nobody waits for the job."""


class JobThread(Generic[Result]):
    """Does jobs while its `with` block runs; one that leaves by an exception waits for the present job only."""

    def __init__(self, name: str) -> None:
        self.results: list[Result] = []
        """Of the jobs that are done, in their order."""
        self._jobs: deque[Callable[[], Result]] = deque()
        self._given = threading.Semaphore(0)
        self._closed = self._stopped = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)

    def __enter__(self) -> JobThread[Result]:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopped = kind is not None
        self._close()
        self._thread.join()

    def submit(self, job: Callable[[], Result]) -> None:
        """Gives it a job, which it does when those before are done. None is begun when one has raised something."""
        self._jobs.append(job)
        self._given.release()

    def wait(self, seconds: float) -> bool:
        """Whether all jobs are done, after so many seconds at most; there are no more. Raises what one has raised."""
        self._close()
        self._thread.join(seconds)
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def unless_stopped(self) -> None:
        """For jobs, between steps. Raises Stopped if the block is left."""
        if self._stopped:
            raise Stopped

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._given.release()

    def _run(self) -> None:
        try:
            while self._given.acquire() and self._jobs:
                self.unless_stopped()
                self.results.append(self._jobs.popleft()())
        except BaseException as error:
            self._error = error
