"""`ulam generate-quantities`: computes generated quantities for draws in CSV files; prints a summary, writes CSV.

The summary goes to standard output, warnings to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from ulam.runtime.errors import DataError, TimeLimit
from ulam.runtime.results import facts_text
from ulam.runtime.sampling.generated import GeneratedQuantities
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK, EXIT_TIME_LIMIT, UsageError, interrupted
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import ModelCommand


@dataclass(kw_only=True)
class GenerateQuantitiesCommand(ModelCommand):
    """The arguments of the command."""

    draws_files: list[Path] | None
    output: Path | None
    rows: int

    def run(self) -> int:
        if not self.draws_files:
            raise UsageError("--draws: give CSV files, one for each chain")
        if len(self.draws_files) > 1 and is_standard_output(self.output):
            raise UsageError("--output: several chains go to several files; give a name")
        model = self.loaded()
        limit: TimeLimit | None = None
        try:
            result = model.generate_quantities(self.draws_files, seed=self.seed)
        except TimeLimit as error:
            if not isinstance(error.result, GeneratedQuantities):
                raise
            result, limit = error.result, error
        if not result.quantities:
            raise DataError([f"{model.source[1]}: the program has no generated quantities"])
        told = sys.stderr if is_standard_output(self.output) else sys.stdout
        result.summary().print(self.rows or None, told)
        print(f"\n{facts_text(result.facts())}", file=told)
        for note in result.notes:
            tell("warning", note)
        if self.output is not None:
            for path in result.to_csv(self.output):
                print(f"{'written':<5}  {escaped(str(path))}", file=told)
        if limit is not None:
            tell("error", str(limit))
            return EXIT_TIME_LIMIT
        return interrupted("ulam", "the draws so far are shown") if result.interrupted else EXIT_OK
