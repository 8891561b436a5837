"""How far the chains are: a table that changes on a terminal, plain lines elsewhere.

What is shown are the records of `ChainProgress`, which any other callback gets, too. Rich is loaded on terminals only,
and not for runs that end at once.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from ulam.runtime.results import Row, number_text, seconds_text
from ulam.runtime.terminal import is_animated, progress_stream

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from ulam.runtime.sampling.chain import ChainProgress

FIRST_SHOWN = 0.3
"""Seconds that a run takes before a table is drawn."""
SECONDS_BETWEEN_TABLES = 0.1
SECONDS_BETWEEN_LINES = 5.0
"""Of one chain."""

COLUMNS = ("chain", "phase", "iteration", "draws/s", "step", "depth", "divergent", "left")
_BAR = 10
"""Width of a bar, in characters."""


def cells(update: ChainProgress) -> Row:
    """A row of the table: chain, phase, iteration, iterations per second, step size, depth, divergences, time left."""
    left = (update.iterations - update.iteration) / update.draws_per_second if update.draws_per_second > 0 else None
    return (
        str(update.chain),
        update.phase,
        f"{update.iteration}/{update.iterations}",
        number_text(update.draws_per_second, 3) if update.draws_per_second < 1000 else f"{update.draws_per_second:.0f}",
        number_text(update.step_size, 3),
        str(update.depth),
        str(update.divergences),
        "" if left is None or update.phase == "done" else duration(left),
    )


def duration(seconds: float) -> str:
    """A time that is left: `5 s`, `2 min`, `1.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def line(update: ChainProgress) -> str:
    """The same as a line of text."""
    _, phase, iteration, speed, step_size, depth, divergences, left = cells(update)
    divergent = f"{divergences} divergence{'' if update.divergences == 1 else 's'}"
    if phase == "done":
        return f"chain {update.chain}: done in {seconds_text(update.seconds)}, step size {step_size}, {divergent}"
    rest = f", {left} left" if left else ""
    state = f"{speed} draws/s, step size {step_size}, depth {depth}, {divergent}"
    return f"chain {update.chain}: {phase}, iteration {iteration}, {state}{rest}"


class LiveDisplay:
    """What changes on a terminal, drawn by rich and not too often; `table` makes what is drawn.

    `file` is standard error if not given; in a notebook standard output, since the other one is shown as errors there.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file if file is not None else progress_stream()
        self._is_terminal = is_animated(self.file)
        self._live: Live | None = None
        self._began = self._drawn = time.monotonic()

    def table(self) -> Any:
        """What is drawn now."""
        raise NotImplementedError

    def close(self) -> None:
        """Leaves the table as it is."""
        if self._live is not None:
            self._live.update(self.table())
            self._live.stop()
            self._live = None

    def draw(self) -> None:
        """Draws the table, if it is time to do so."""
        now = time.monotonic()
        if self._live is None:
            if now - self._began < FIRST_SHOWN:
                return
            from rich.live import Live

            from ulam.runtime.terminal import console

            prints_here = sys.stdout.isatty()  # what the program prints goes above the table
            self._live = Live(self.table(), console=console(self.file), auto_refresh=False, redirect_stdout=prints_here)
            self._live.start(refresh=True)
        elif now - self._drawn >= SECONDS_BETWEEN_TABLES:
            self._live.update(self.table(), refresh=True)
        else:
            return
        self._drawn = now


class SampleProgress(LiveDisplay):
    """A callback for `sample` that shows how far each of its chains is. Call `close` when the run is over."""

    def __init__(self, chains: int, file: TextIO | None = None) -> None:
        super().__init__(file)
        self._updates: list[ChainProgress | None] = [None] * chains
        self._told = [self._began] * chains

    def __call__(self, update: ChainProgress) -> None:
        self._updates[update.chain - 1] = update
        if self._is_terminal:
            self.draw()
        elif update.phase == "done" or time.monotonic() - self._told[update.chain - 1] >= SECONDS_BETWEEN_LINES:
            self._told[update.chain - 1] = time.monotonic()
            print(line(update), file=self.file, flush=True)

    def table(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table(box=None, padding=(0, 1), pad_edge=False)
        for title in (*COLUMNS[:2], "", *COLUMNS[2:]):
            table.add_column(title, justify="left" if title in ("phase", "") else "right", no_wrap=True)
        for chain, update in enumerate(self._updates, 1):
            if update is None:
                table.add_row(str(chain), "waiting", ProgressBar(1, 0, _BAR))
            else:
                first, phase, *rest = cells(update)
                bar = ProgressBar(max(update.iterations, 1), update.iteration, _BAR)
                rest[4] = f"[red]{rest[4]}[/]" if update.divergences else rest[4]
                table.add_row(first, phase, bar, *rest)
        return table
