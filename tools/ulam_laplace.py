"""`ulam laplace`: draws from the normal approximation at the mode; prints a summary, writes CSV.

The summary goes to standard output, progress and warnings to standard error.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from ulam.runtime.errors import TimeLimit
from ulam.runtime.optimizers.laplace import LaplaceResult, ModeWarning, check_mode, laplace
from ulam.runtime.results import print_laplace
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK, EXIT_TIME_LIMIT, interrupted
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import ModelCommand, Text, shown_refresh


@dataclass(kw_only=True)
class LaplaceCommand(ModelCommand):
    """The arguments of the command."""

    mode: Text | None
    draws: int
    output: Path | None
    jacobian: bool
    calculate_lp: bool
    refresh: int | None
    rows: int

    def run(self) -> int:
        if isinstance(self.mode, str):
            check_mode(self.mode)  # before anything is compiled
        limit: TimeLimit | None = None
        model = self.loaded()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModeWarning)  # the notes say the same
            try:
                result = laplace(
                    model,
                    self.mode,
                    jacobian=self.jacobian,
                    draws=self.draws,
                    seed=self.seed,
                    calculate_lp=self.calculate_lp,
                    refresh=shown_refresh(self.refresh),
                )
            except TimeLimit as error:
                if not isinstance(error.result, LaplaceResult):
                    raise
                result, limit = error.result, error
        told = sys.stderr if is_standard_output(self.output) else sys.stdout
        print_laplace(result, self.rows or None, told)
        for note in result.notes:
            tell("warning", note)
        if self.output is not None:
            result.to_csv(self.output)
            print(f"{'written':<13}  {escaped(str(self.output))}", file=told)
        if limit is not None:
            tell("error", str(limit))
            return EXIT_TIME_LIMIT
        return interrupted("ulam", "the draws so far are shown") if result.interrupted else EXIT_OK
