"""Progress of an optimizer: CmdStan's table as plain lines, or a live line below it on a terminal.

Columns, widths, digits and the iterations that are shown are those of Stan's services, for all algorithms alike.
"""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, TextIO

from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.terminal import is_animated, progress_stream

if TYPE_CHECKING:
    from rich.live import Live

    from ulam.runtime.optimizers.quasi_newton import Iteration

DEFAULT_REFRESH = 100
"""CmdStan's."""

SECONDS_BETWEEN_UPDATES = 0.1

# Title, width, width on a terminal (of 80 characters) and significant digits of each column.
COLUMNS = (
    ("Iter", 7, 6, None), ("log prob", 12, 12, 6), ("||dx||", 12, 11, 6), ("||grad||", 12, 11, 6),
    ("alpha", 10, 9, 4), ("alpha0", 10, 9, 4), ("# evals", 7, 7, None),
)  # fmt: skip
# CmdStan writes a blank before and after each column.
HEADER = "".join(f" {title:>{width}} " for title, width, _, _ in COLUMNS) + " Notes "
TERMINAL_HEADER = " ".join(f"{title:>{width}}" for title, _, width, _ in COLUMNS) + "  Notes"


def ending_lines(termination: Termination) -> list[str]:
    """What is said when a run has ended."""
    how = "with error" if termination.code < 0 else "normally"
    return [f"Optimization terminated {how}: ", f"  {termination.text}"]


def progress_line(iteration: Iteration, n_gradients: int) -> str:
    """A row of the table: iteration, log density, step, gradient norm, both step sizes, evaluations so far, notes."""
    values = zip(_values(iteration, n_gradients), COLUMNS, strict=True)
    cells = (f" {_number(value, width, digits)} " for value, (_, width, _, digits) in values)
    return f"{''.join(cells)} {iteration.note} "


def terminal_line(iteration: Iteration, n_gradients: int) -> str:
    """The same row with the widths of a terminal."""
    values = zip(_values(iteration, n_gradients), COLUMNS, strict=True)
    cells = (_number(value, width, digits) for value, (_, _, width, digits) in values)
    return f"{' '.join(cells)}  {iteration.note}".rstrip()


def _values(iteration: Iteration, n_gradients: int) -> tuple[float, ...]:
    gradient = iteration.point.gradient
    return (
        iteration.number, -iteration.point.value, iteration.step_norm, math.sqrt(float(gradient @ gradient)),
        iteration.alpha, iteration.alpha0, n_gradients,
    )  # fmt: skip


def _number(value: float, width: int, digits: int | None) -> str:
    return f"{value:>{width}}" if digits is None else f"{value:>{width}.{digits}g}"


class Progress:
    """A callback for `optimize` that shows every so many iterations, the first, the last and those with a note.

    In a pipe, and in notebooks, these are lines exactly as CmdStan's, its header repeated as CmdStan does. On a
    terminal the line of the current iteration is kept below them. `file` is standard error if not given; in a notebook
    standard output, since the other one is shown as errors there. Call `close`, or use it in a `with`, if the run may
    end without a last iteration.
    """

    def __init__(self, refresh: int = DEFAULT_REFRESH, file: TextIO | None = None) -> None:
        if refresh < 1:
            raise ValueError(f"refresh must be at least 1 to show progress, found {refresh}")
        self.refresh = refresh
        self.file: TextIO = file if file is not None else progress_stream()
        self._is_terminal = is_animated(self.file)
        self._live: Live | None = None
        self._updated = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, log_density: float) -> None:
        """The log density at the start."""
        self._print(f"Initial log joint probability = {log_density:.6g}")

    def __call__(self, iteration: Iteration, n_gradients: int) -> None:
        number, last = iteration.number, iteration.termination is not Termination.RUNNING
        is_shown = last or bool(iteration.note) or number == 1 or (number + 1) % self.refresh == 0
        if self._is_terminal:
            if number == 1:
                self._print(TERMINAL_HEADER, "bold")
            if is_shown:
                self._print(terminal_line(iteration, n_gradients), "yellow" if iteration.note else "")
            else:
                self._update(iteration, n_gradients)
        else:
            if number == 1 or number % self.refresh == 0:
                self._print(HEADER)
            if is_shown:
                self._print(progress_line(iteration, n_gradients))
        if last:
            for line in ending_lines(iteration.termination):
                self._print(line)
            self.close()

    def close(self) -> None:
        """Takes the live line away. May be called more than once."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, line: str, style: str = "") -> None:
        """A line that stays; on a terminal the live line goes, since it is older."""
        if not self._is_terminal:
            print(line, file=self.file, flush=True)
            return
        from rich.text import Text

        screen = self._screen()
        if self._updated:
            screen.update(Text(""), refresh=True)
        screen.console.print(Text(line, style=style), no_wrap=True, overflow="ellipsis", crop=True)

    def _update(self, iteration: Iteration, n_gradients: int) -> None:
        """The line below those that stay."""
        now = time.monotonic()
        if now - self._updated >= SECONDS_BETWEEN_UPDATES:
            from rich.text import Text

            self._updated = now
            line = Text(terminal_line(iteration, n_gradients), style="dim", no_wrap=True, overflow="ellipsis")
            self._screen().update(line, refresh=True)

    def _screen(self) -> Live:
        """rich's live display, which is only imported here: for a terminal."""
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self.file, force_terminal=True, highlight=False)
            # What the program prints goes above the live line; to a file or a pipe it goes as ever.
            prints_here = sys.stdout.isatty()
            self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=prints_here)
            self._live.start()
        return self._live
