"""`ulam pathfinder`: draws from normal approximations along paths of an optimizer; prints a summary, writes CSV.

The summary goes to standard output, progress and warnings to standard error.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulam.runtime.errors import TimeLimit
from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.quasi_newton import LBFGSOptions
from ulam.runtime.parallel_jobs import default_workers
from ulam.runtime.results import print_pathfinder
from ulam.runtime.sampling.pathfinder import PathfinderResult
from ulam.runtime.terminal import escaped
from ulam.tools.commands import STOPPING_OPTIONS
from ulam.tools.exits import EXIT_OK, EXIT_TIME_LIMIT, UsageError, interrupted
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import PointCommand, shown_refresh


@dataclass(kw_only=True)
class PathfinderCommand(PointCommand):
    """The arguments of the command; options that are None were not given."""

    num_paths: int
    draws: int
    num_single_draws: int | None
    num_elbo_draws: int
    psis_resample: bool | None
    calculate_lp: bool
    max_lbfgs_iters: int
    init_alpha: float | None
    tol_obj: float | None
    tol_rel_obj: float | None
    tol_grad: float | None
    tol_rel_grad: float | None
    tol_param: float | None
    history_size: int | None
    jobs: int | None
    output: Path | None
    save_single_paths: bool
    refresh: int | None
    rows: int

    def run(self) -> int:
        if self.save_single_paths and (self.output is None or is_standard_output(self.output)):
            raise UsageError("--save-single-paths: give the name of a file with --output")
        options = {name: value for name in STOPPING_OPTIONS if (value := getattr(self, name)) is not None}
        try:
            LBFGSOptions(**options)  # before anything is compiled
        except ValueError as error:
            raise UsageError(str(error)) from None
        if self.psis_resample and not self.calculate_lp:
            raise UsageError("--psis-resample needs the log density of the draws: leave --no-calculate-lp out")
        limit: TimeLimit | None = None
        try:
            result = self._drawn(self.loaded(), options)
        except TimeLimit as error:
            if not isinstance(error.result, PathfinderResult):
                raise
            result, limit = error.result, error
        self._report(result)
        if limit is not None:
            tell("error", str(limit))
            return EXIT_TIME_LIMIT
        return interrupted("ulam", "the draws so far are shown") if result.interrupted else EXIT_OK

    def _drawn(self, model: StanModel, options: dict[str, Any]) -> PathfinderResult:
        arguments = {
            "num_paths": self.num_paths,
            "draws": self.draws,
            "num_single_draws": self.num_single_draws,
            "num_elbo_draws": self.num_elbo_draws,
            "psis_resample": self.psis_resample,
            "calculate_lp": self.calculate_lp,
            "save_single_paths": self.save_single_paths,
            "max_lbfgs_iters": self.max_lbfgs_iters,
            "init": self.initial(),
            "seed": self.seed,
            "refresh": shown_refresh(self.refresh),
            **options,
        }
        with ThreadPoolExecutor(self.jobs or default_workers(self.num_paths)) as executor:
            return model.pathfinder(executor=executor, **arguments)

    def _report(self, result: PathfinderResult) -> None:
        """Shows and writes the result."""
        told = sys.stderr if is_standard_output(self.output) else sys.stdout
        print_pathfinder(result, self.rows or None, told)
        for note in result.notes:
            tell("warning", note)
        if self.output is None:
            return
        result.to_csv(self.output)
        written = [self.output]
        for single in result.single_paths:
            written.append(self.output.with_stem(f"{self.output.stem}_path_{single.paths[0].number}"))
            single.to_csv(written[-1])
        for path in written:
            print(f"{'written':<20}  {escaped(str(path))}", file=told)
