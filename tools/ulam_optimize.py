"""`ulam optimize`: runs an optimizer, prints the table of estimates, writes CSV."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.quasi_newton import Iteration
from ulam.runtime.optimizers.result import OptimizationInterrupted, OptimizationResult
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.results import PROGRESS_HEADER, print_optimization, progress_line
from ulam.tools.exits import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE

ALGORITHMS = ("lbfgs",)


@dataclass
class OptimizeCommand:
    """The arguments of the command."""

    model: Path
    data: str | None
    output: Path | None
    algorithm: str
    jacobian: bool
    init: str | None
    seed: int
    options: dict[str, Any]
    save_iterations: bool
    refresh: int
    rows: int
    opt_level: int
    include_paths: tuple[Path, ...]
    cache: bool

    def run(self) -> int:
        model = StanModel(
            self.model,
            self.data,
            seed=self.seed,
            opt_level=self.opt_level,
            include_paths=self.include_paths,
            cache=self.cache,
        )
        init: str | float | None = self.init
        try:
            init = float(self.init) if self.init is not None else None
        except ValueError:
            pass  # a file or JSON text
        if self.refresh:
            print(PROGRESS_HEADER, file=sys.stderr)
        try:
            result = model.optimize(
                self.algorithm,
                jacobian=self.jacobian,
                init=init,
                seed=self.seed,
                save_iterations=self.save_iterations,
                progress=self._progress if self.refresh else None,
                **self.options,
            )
        except OptimizationInterrupted as interruption:
            self._report(interruption.result)
            print("ulam: interrupted; the best point so far is shown", file=sys.stderr)
            return EXIT_INTERRUPTED
        except (ValueError, TypeError) as error:
            if isinstance(error, RuntimeError):
                raise
            print(f"ulam: error: {error}", file=sys.stderr)
            return EXIT_USAGE
        self._report(result)
        if result.termination is Termination.LINE_SEARCH_FAILED:
            print(f"ulam: error: {result.message}", file=sys.stderr)
            return EXIT_FAILURE
        if not result.converged:
            print(f"ulam: warning: {result.message}", file=sys.stderr)
        return EXIT_OK

    def _progress(self, iteration: Iteration, n_gradients: int) -> None:
        last = iteration.termination is not Termination.RUNNING
        if last or iteration.note or iteration.number % self.refresh == 0:
            print(progress_line(iteration, n_gradients), file=sys.stderr)

    def _report(self, result: OptimizationResult) -> None:
        print_optimization(result, self.rows or None)
        if self.output is not None:
            result.to_csv(self.output)
            print(f"{'written':<20}  {self.output}")
