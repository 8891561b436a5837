"""`ulam log-density`: the log density and gradient at given points, as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ulam.runtime.comparison import first_points
from ulam.runtime.output_files import writing
from ulam.runtime.results import log_density_json
from ulam.tools.exits import EXIT_OK, UsageError
from ulam.tools.model_command import PointCommand


@dataclass(kw_only=True)
class LogDensityCommand(PointCommand):
    """The arguments of the command."""

    jacobian: bool
    propto: bool
    output: Path | None

    def run(self) -> int:
        if self.init is None and self.unconstrained is None:
            raise UsageError("say where: --unconstrained POINT, or --init VALUES")
        if self.output is None:
            for line in self._lines():
                sys.stdout.write(line)
        else:
            with writing(self.output) as file:
                file.writelines(self._lines())
        return EXIT_OK

    def _lines(self) -> Iterator[str]:
        model = self.loaded()
        if self.unconstrained is None:
            points = first_points([model], self.initial(), self.seed)
        else:
            points = self.checked_points(model.param_unc_num())
        for point in points:
            value, gradient = model.log_density_gradient(point, propto=self.propto, jacobian=self.jacobian)
            yield log_density_json(value, gradient) + "\n"
