"""`ulam explain`: why the log density of a model at a point is what it is, and which statement is to blame.

The explanation goes to standard output: in colours on a terminal, else as plain text; or as JSON.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass

from ulam.runtime.errors import ArgumentError
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK, UsageError
from ulam.tools.files import is_standard_output
from ulam.tools.model_command import PointCommand


@dataclass(kw_only=True)
class ExplainCommand(PointCommand):
    """The arguments of the command."""

    tries: int
    jacobian: bool
    propto: bool
    json: str | None

    def run(self) -> int:
        """0 if the log density and its gradient are finite, at all points that were tried; else 1."""
        from ulam.tracing.explain.text import print_explanation

        where, printed = self.initial(), is_standard_output(self.json)
        with redirect_stdout(sys.stderr) if printed else nullcontext():  # what the program prints is no JSON
            model = self.loaded()
            self.checked_points(model.param_unc_num())
            try:
                found = model.explain(
                    where, propto=self.propto, jacobian=self.jacobian, tries=self.tries, seed=self.seed
                )
            except ArgumentError as error:
                raise UsageError(str(error)) from None
        if printed:
            sys.stdout.write(found.to_json())
        else:
            print_explanation(found)
            if self.json is not None:
                found.to_json(self.json)
        return EXIT_OK if found.ok else EXIT_FAILURE
