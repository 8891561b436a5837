"""`ulam optimize`: runs an optimizer, once or from many starts; prints the estimates, writes CSV and JSON.

The estimates go to standard output, progress and messages to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.progress import DEFAULT_REFRESH
from ulam.runtime.optimizers.result import OptimizationResult
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.results import print_optimization
from ulam.tools.exits import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from ulam.tools.model_command import ModelCommand


@dataclass(kw_only=True)
class OptimizeCommand(ModelCommand):
    """The arguments of the command; options that are None were not given.

    `refresh` of None is CmdStan's on a terminal, and no progress elsewhere.
    """

    output: Path | None
    json: str | None
    algorithm: str
    jacobian: bool
    init: str | None
    options: dict[str, Any]
    save_iterations: bool
    starts: int
    jobs: int | None
    standard_errors: bool
    refresh: int | None
    rows: int

    def run(self) -> int:
        model = self.loaded()
        arguments = {
            "jacobian": self.jacobian,
            "init": initial_values(self.init),
            "seed": self.seed,
            "save_iterations": self.save_iterations,
            "refresh": shown_refresh(self.refresh),
            **{name: value for name, value in self.options.items() if value is not None},
        }
        try:
            result = self._optimized(model, arguments)
        except (ValueError, TypeError) as error:
            if isinstance(error, RuntimeError):
                raise
            print(f"ulam: error: {error}", file=sys.stderr)
            return EXIT_USAGE
        return self._report(result)

    def _optimized(self, model: StanModel, arguments: dict[str, Any]) -> OptimizationResult:
        if self.starts == 1:
            return model.optimize(self.algorithm, **arguments)
        from concurrent.futures import ThreadPoolExecutor

        from ulam.runtime.optimizers.multi_start import default_workers

        with ThreadPoolExecutor(self.jobs or default_workers(self.starts)) as executor:
            return model.optimize(self.algorithm, n_starts=self.starts, executor=executor, **arguments)

    def _report(self, result: OptimizationResult) -> int:
        """Shows and writes the result whatever comes of it; the exit status says how it ended."""
        status = EXIT_OK
        if self.standard_errors:
            status = self._compute_standard_errors(result)
        if self.json == "-":
            sys.stdout.write(result.to_json())
        else:
            print_optimization(result, self.rows or None)
            if self.json is not None:
                result.to_json(self.json)
                print(f"{'written':<20}  {self.json}")
        if self.output is not None:
            result.to_csv(self.output)
            print(f"{'written':<20}  {self.output}", file=sys.stderr if self.json == "-" else sys.stdout)
        if result.termination is Termination.INTERRUPTED:
            print("ulam: interrupted; the best point so far is shown", file=sys.stderr)
            return EXIT_INTERRUPTED
        if result.termination.failed:
            print(f"ulam: error: {result.message}", file=sys.stderr)
            return EXIT_FAILURE
        if not result.converged:
            print(f"ulam: warning: {result.message}", file=sys.stderr)
        return status

    def _compute_standard_errors(self, result: OptimizationResult) -> int:
        from ulam.runtime.optimizers.curvature import CurvatureError

        try:
            result.standard_errors()
        except CurvatureError as error:
            print(f"ulam: error: {error}", file=sys.stderr)
            return EXIT_FAILURE
        return EXIT_OK


def initial_values(given: str | None) -> str | float | None:
    """A radius, or a file or JSON text with constrained values."""
    try:
        return float(given) if given is not None else None
    except ValueError:
        return given


def shown_refresh(given: int | None) -> int:
    """Progress is shown by default where somebody sees it: on a terminal."""
    if given is None:
        return DEFAULT_REFRESH if sys.stderr.isatty() else 0
    return given
