"""How far a study is: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TextIO

from ulam.runtime.sampling.progress import FIRST_SHOWN, SECONDS_BETWEEN_LINES, LiveDisplay, duration
from ulam.runtime.terminal import escaped

_BAR = 30


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is. `index` is the data set that ended last, `error` what was wrong with it; `done` counts those
    that failed, too, and `before` those that were there from an earlier run.
    """

    index: int
    error: str
    done: int
    failed: int
    total: int
    before: int
    seconds: float

    @property
    def fits_per_second(self) -> float:
        return (self.done - self.before) / max(self.seconds, 1e-9)


def progress_line(update: StudyProgress) -> str:
    """The same as a line of text."""
    text = f"{update.done} of {update.total} data sets, {update.fits_per_second:.3g} fits/s"
    if update.failed:
        text += f", {update.failed} failed"
    if update.done < update.total and update.fits_per_second > 0:
        text += f", {duration((update.total - update.done) / update.fits_per_second)} left"
    return text


class StudyDisplay(LiveDisplay):
    """A callback that shows how far a study is. Call `close` when it is over."""

    def __init__(self, file: TextIO | None = None) -> None:
        super().__init__(file)
        self._last: StudyProgress | None = None
        self._told = self._began

    def __call__(self, update: StudyProgress) -> None:
        self._last = update
        if update.error and not self._is_terminal:
            first = escaped(update.error.splitlines()[0])
            print(f"data set {update.index}: {first}", file=self.file, flush=True)
        now = time.monotonic()
        if self._is_terminal:
            self.draw()
        elif now - self._told >= SECONDS_BETWEEN_LINES or (
            update.done == update.total and now - self._began >= FIRST_SHOWN
        ):
            self._told = now
            print(progress_line(update), file=self.file, flush=True)

    def table(self) -> object:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        assert self._last is not None
        table = Table(box=None, padding=(0, 1), pad_edge=False)
        for _ in range(2):
            table.add_column(no_wrap=True)
        table.add_row(ProgressBar(max(self._last.total, 1), self._last.done, _BAR), progress_line(self._last))
        return table
