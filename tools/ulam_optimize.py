"""`ulam optimize`: runs an optimizer, once or from many starts; prints the estimates, writes CSV and JSON.

The estimates go to standard output, progress and messages to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulam.runtime.errors import TimeLimit
from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.algorithms import checked_options
from ulam.runtime.optimizers.result import OptimizationResult
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.results import print_optimization
from ulam.runtime.terminal import escaped
from ulam.tools.commands import OPTIMIZER_OPTIONS
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK, EXIT_TIME_LIMIT, UsageError, interrupted
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import PointCommand, shown_refresh


@dataclass(kw_only=True)
class OptimizeCommand(PointCommand):
    """The arguments of the command; options that are None were not given.

    `refresh` of None is CmdStan's on a terminal, and no progress elsewhere.
    """

    output: Path | None
    json: str | None
    algorithm: str
    jacobian: bool
    iter: int | None
    init_alpha: float | None
    tol_obj: float | None
    tol_rel_obj: float | None
    tol_grad: float | None
    tol_rel_grad: float | None
    tol_param: float | None
    history_size: int | None
    save_iterations: bool
    starts: int
    jobs: int | None
    standard_errors: bool
    refresh: int | None
    rows: int

    def run(self) -> int:
        options = {name: value for name in OPTIMIZER_OPTIONS if (value := getattr(self, name)) is not None}
        arguments = {
            "jacobian": self.jacobian,
            "init": self.initial(),
            "seed": self.seed,
            "save_iterations": self.save_iterations,
            "refresh": shown_refresh(self.refresh),
            **options,
        }
        try:
            checked_options(self.algorithm, options)  # before anything is compiled
            result = self._optimized(self.loaded(), arguments)
        except TimeLimit as error:
            if error.result is None:
                raise
            self._report(error.result)
            tell("error", f"{error}; the best point so far is shown")
            return EXIT_TIME_LIMIT
        except (ValueError, TypeError) as error:
            if isinstance(error, RuntimeError):
                raise
            raise UsageError(str(error)) from None
        return self._report(result)

    def _optimized(self, model: StanModel, arguments: dict[str, Any]) -> OptimizationResult:
        if self.starts == 1:
            return model.optimize(self.algorithm, **arguments)
        from concurrent.futures import ThreadPoolExecutor

        from ulam.runtime.parallel_jobs import default_workers

        with ThreadPoolExecutor(self.jobs or default_workers(self.starts)) as executor:
            return model.optimize(self.algorithm, n_starts=self.starts, executor=executor, **arguments)

    def _report(self, result: OptimizationResult) -> int:
        """Shows and writes the result whatever comes of it; the exit status says how it ended."""
        status = EXIT_OK
        if self.standard_errors:
            status = self._compute_standard_errors(result)
        printed = is_standard_output(self.json)
        if printed:
            sys.stdout.write(result.to_json())
        told = sys.stderr if printed or is_standard_output(self.output) else sys.stdout
        if not printed:
            print_optimization(result, self.rows or None, told)
        for path, write in ((self.json, result.to_json), (self.output, result.to_csv)):
            if path is not None and not (printed and path is self.json):
                write(path)
                print(f"{'written':<20}  {escaped(str(path))}", file=told)
        if result.termination is Termination.INTERRUPTED:
            return interrupted("ulam", "the best point so far is shown")
        if result.termination.failed:
            tell("error", result.message)
            return EXIT_FAILURE
        if not result.converged and not result.termination.stopped:
            tell("warning", result.message)
        return status

    def _compute_standard_errors(self, result: OptimizationResult) -> int:
        from ulam.runtime.optimizers.curvature import CurvatureError

        try:
            result.standard_errors()
        except CurvatureError as error:
            tell("error", str(error))
            return EXIT_FAILURE
        return EXIT_OK
