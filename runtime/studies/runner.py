"""The jobs of a study, submitted a few at a time; those of lost workers run again.

A worker that is lost takes all with it that its pool was at, and nobody knows which of them ended it. So what was lost
runs again with nothing beside it, and by itself in the end: a data set is told to be at fault only if it was alone.
"""

from __future__ import annotations

import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ulam.runtime.crew import Crew
from ulam.runtime.errors import Interrupted
from ulam.runtime.interrupts import forget_stop, listen
from ulam.runtime.parallel_jobs import INTERRUPT, LISTEN_SECONDS, SECONDS_TO_END, TIME_LIMIT, described, is_loss
from ulam.runtime.studies.jobs import DataSet, FitJob, FitPlan, Outcome, packed, run_job, run_packed_job
from ulam.runtime.studies.pools import JobPool, PoolError, is_broken

MOST_RUNS = 3
"""A data set runs again at most twice when its worker was lost."""
MOST_FRUITLESS = 5
"""Pools in a row whose workers all end before any of them has returned anything."""
NO_WORKERS = (
    "the workers end before they have done anything. If they are processes that are spawned: does what the script does "
    'stand below `if __name__ == "__main__":`, and is the script a file?'
)
JOBS_FOR_EACH_WORKER = 3
"""Jobs that are submitted ahead."""
JOBS_AHEAD = 1000
"""The same where nobody knows how many workers there are."""
JOB_SECONDS = 1.0
"""Of the processor, for a job, if its data sets are so many that each worker has several."""
LONGEST_JOB = 3.0
"""Seconds, where the processor is busy with other work, too."""
JOB_BYTES = 16 << 20
"""And how much it hands back, about."""
SHARES = 4
"""The last jobs are small: what is left is for so many jobs of each worker."""


@dataclass
class _Group:
    """Data sets that are submitted together. `runs`: how often they were begun by a worker that was lost."""

    sets: tuple[DataSet, ...]
    runs: int = 0
    is_alone: bool = False

    def again(self, runs: int, is_single: bool) -> list[_Group]:
        """To run with nothing beside, together or each by itself."""
        parts = [(each,) for each in self.sets] if is_single else [self.sets]
        return [_Group(part, self.runs + runs, True) for part in parts]


class StudyRunner:
    """Runs a plan for data sets on a pool, and hands over each outcome as it comes."""

    def __init__(
        self,
        pool: JobPool,
        plan: FitPlan,
        make: Callable[[int], DataSet],
        take: Callable[[Outcome], None],
        crew: Crew,
        ends: float | None,
        batch: int | None,
    ) -> None:
        self.pool, self.plan, self.make, self.take = pool, plan, make, take
        self.crew, self.ends, self.batch = crew, ends, batch
        self._running: dict[int, tuple[Any, _Group]] = {}
        self._finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._left: deque[int] = deque()
        self._again: deque[_Group] = deque()
        self._broken: BaseException | None = None
        self._count = self._fits = self._fruitless = 0
        self._seconds = self._cpu_seconds = self._bytes = 1e-9

    def run(self, indices: Sequence[int]) -> str:
        """Runs all of them: "", or why it ended before the last one. What was under way then is waited for."""
        self._left = deque(indices)
        try:
            while self._submit() or self._running:
                self._take_finished(self._next())
                if self._is_over(SECONDS_TO_END):
                    break
        except (KeyboardInterrupt, Interrupted):
            self.crew.stop()
            forget_stop()
            self._rescue()
            return INTERRUPT
        except BaseException:
            self.crew.stop()
            self._cancel()
            raise
        if self._is_over():
            self.crew.stop()
            self._rescue()
            forget_stop()
            return TIME_LIMIT
        return ""

    def _is_over(self, grace: float = 0.0) -> bool:
        return self.ends is not None and time.time() > self.ends + grace

    # ------------------------------------------------------------ submitting

    def _submit(self) -> bool:
        """Submits what there is room for; whether there is more to come."""
        listen()
        if self._is_over():
            return False
        if self._broken is not None:
            if self._running:  # which will be lost, too
                return True
            self._fruitless += 1
            if self._fruitless > MOST_FRUITLESS:
                raise PoolError(f"{NO_WORKERS}: {described(self._broken)}")
            self.pool.revive(self._broken)
            self._broken = None
        if self._again:
            if not self._running:
                self._send(self._again.popleft())
            return True
        for group in self._groups():
            self._send(group)
            if self._broken is not None:
                return True
            listen()
        return bool(self._left)

    def _groups(self) -> Iterator[_Group]:
        workers = self.pool.workers
        room = JOBS_AHEAD if workers is None else JOBS_FOR_EACH_WORKER * workers
        while self._left and len(self._running) < room:
            size = self._size(workers)
            sets: list[DataSet] = []
            while self._left and len(sets) < size:
                index = self._left.popleft()
                try:
                    sets.append(self.make(index))
                except Exception as error:  # data that cannot be read
                    self.take(Outcome(index, error=described(error)))
            if sets:
                yield _Group(tuple(sets))

    def _size(self, workers: int | None) -> int:
        """How many data sets the next job has."""
        if self.batch is not None:
            return self.batch
        if workers is None or not self._fits:
            return 1
        by_time = self._fits * min(JOB_SECONDS / self._cpu_seconds, LONGEST_JOB / self._seconds)
        by_bytes = JOB_BYTES * self._fits / max(self._bytes, 1.0)
        share = math.ceil(len(self._left) / (SHARES * workers))
        return max(1, int(min(by_time, by_bytes, share)))

    def _send(self, group: _Group) -> None:
        try:
            if self.pool.is_here:
                future = self.pool.executor.submit(run_job, FitJob(self.plan, group.sets, self.crew, self.ends))
            else:
                rest = packed((group.sets, self.crew, self.ends))
                future = self.pool.executor.submit(run_packed_job, self._packed_plan, rest)
        except Exception as error:
            if not is_broken(error):
                raise
            self._broken = error
            self._again.appendleft(group)
            return
        self._count += 1
        number = self._count
        self._running[number] = (future, group)
        when_done = getattr(future, "add_done_callback", None)
        if when_done is not None:
            when_done(lambda _: self._finished.put(number))

    @cached_property
    def _packed_plan(self) -> bytes:
        plan = self.plan
        return packed(plan, callable(plan.method) or callable(plan.extract))

    # ------------------------------------------------------------ what comes back

    def _next(self) -> list[int]:
        """Jobs that have ended, none after a while."""
        listen()
        try:
            found = [self._finished.get(timeout=LISTEN_SECONDS)]
            while not self._finished.empty():
                found.append(self._finished.get_nowait())
        except queue.Empty:
            found = [number for number, (future, _) in self._running.items() if _is_done(future)]
        return found

    def _take_finished(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number in self._running:
                future, group = self._running.pop(number)
                self._take(future, group)

    def _take(self, future: Any, group: _Group) -> None:
        try:
            outcomes: list[Outcome] = future.result()
        except Exception as error:
            if not is_loss(error):
                raise
            self._lost(group, error)
            return
        self._fruitless = 0
        for outcome in outcomes:
            if outcome.record is not None:
                self._fits += 1
                self._seconds += outcome.seconds
                self._cpu_seconds += outcome.cpu_seconds
                self._bytes += outcome.record.bytes
            if outcome.record is not None or outcome.error:
                self.take(outcome)

    def _lost(self, group: _Group, error: Exception) -> None:
        """The worker of these data sets was lost."""
        if is_broken(error):
            self._broken = error
        runs = 1 + getattr(error, "allowed_failures", 0)  # Dask has run it so often
        total = group.runs + runs
        if group.is_alone and len(group.sets) == 1 and total >= MOST_RUNS:
            times = f"{total} times, the last time" if total > 1 else "once"
            self.take(Outcome(group.sets[0].index, error=f"its worker was lost {times}: {described(error)}"))
        else:
            self._again.extend(group.again(runs, group.is_alone or runs > 1))

    # ------------------------------------------------------------ ends

    def _cancel(self) -> None:
        for future, _ in self._running.values():
            if hasattr(future, "cancel"):
                future.cancel()

    def _rescue(self) -> None:
        """Takes what has ended, and what ends soon. A second interrupt does not wait."""
        self._cancel()
        end = time.monotonic() + SECONDS_TO_END
        try:
            while self._running and time.monotonic() < end:
                for number in self._next():
                    if number in self._running:
                        future, group = self._running.pop(number)
                        if not (hasattr(future, "cancelled") and future.cancelled()):
                            self._take(future, group)
        except (KeyboardInterrupt, Interrupted):
            forget_stop()  # what is there is kept


def _is_done(future: Any) -> bool:
    """Whether a future has ended that tells nobody: one that cannot be asked is waited for."""
    if hasattr(future, "add_done_callback"):
        return False
    done = getattr(future, "done", None)
    return True if done is None else bool(done())
