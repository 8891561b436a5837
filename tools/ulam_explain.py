"""`ulam explain`: why the log density of a model at a point is what it is, and which statement is to blame.

The explanation goes to standard output: in colours on a terminal, else as plain text; or as JSON.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import Any

from ulam.runtime.errors import ArgumentError
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK, EXIT_USAGE
from ulam.tools.model_command import ModelCommand


@dataclass(kw_only=True)
class ExplainCommand(ModelCommand):
    """The arguments of the command. `init` and `unconstrained` exclude each other."""

    init: str | None
    unconstrained: str | None
    tries: int
    jacobian: bool
    propto: bool
    json: bool

    def run(self) -> int:
        """0 if the log density and its gradient are finite, at all points that were tried; else 1."""
        if self.init is not None and self.unconstrained is not None:
            print("ulam: error: --init and --unconstrained exclude each other", file=sys.stderr)
            return EXIT_USAGE
        from ulam.runtime.explain.terminal import print_explanation

        with redirect_stdout(sys.stderr) if self.json else nullcontext():  # what the program prints is no JSON
            model = self.loaded()
            try:
                found = model.explain(
                    self._point(model.param_unc_num()), propto=self.propto, jacobian=self.jacobian, tries=self.tries,
                    seed=self.seed,
                )  # fmt: skip
            except ArgumentError as error:
                print(f"ulam: error: {error}", file=sys.stderr)
                return EXIT_USAGE
        if self.json:
            sys.stdout.write(found.to_json())
        else:
            print_explanation(found)
        return EXIT_OK if found.ok else EXIT_FAILURE

    def _point(self, size: int) -> Any:
        if self.unconstrained is None:
            from ulam.tools.ulam_optimize import initial_values

            return initial_values(self.init)
        from ulam.tools.ulam_log_density import read_points

        points = read_points(self.unconstrained, size, "--unconstrained")
        if len(points) != 1:
            raise ArgumentError(f"--unconstrained: one point is explained, found {len(points)}")
        return points[0]
