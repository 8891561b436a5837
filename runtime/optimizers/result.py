"""What an optimizer found."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.names import from_output
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.termination import Termination

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

QUANTITIES_STREAM = 1
"""Stream of the run's seed for generated quantities of the result; initial values have stream 0."""


class OptimizationInterrupted(KeyboardInterrupt):
    """The run was interrupted; `result` is the best point reached."""

    def __init__(self, result: OptimizationResult) -> None:
        super().__init__("optimization interrupted")
        self.result = result


@dataclass
class OptimizationResult:
    """Where an optimizer ended.

    `fit["theta"]` is the value of a parameter, transformed parameter or generated quantity, in its own shape.
    """

    model: StanModel = field(repr=False)
    algorithm: str
    jacobian: bool
    seed: int
    unconstrained: Vector
    log_density: float
    gradient: Vector = field(repr=False)
    termination: Termination
    n_iterations: int
    n_gradients: int
    seconds: float
    initial: Vector = field(repr=False)
    initial_log_density: float = math.nan
    n_rejections: int = 0
    trajectory: list[tuple[float, Vector]] = field(default_factory=list[tuple[float, Vector]], repr=False)
    _constrained: Vector | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """Why the run ended, in a word: `converged_objective`, `max_iterations`, `line_search_failed`, ..."""
        return self.termination.label

    @property
    def message(self) -> str:
        return self.termination.text

    @property
    def code(self) -> int:
        """Stan's code of the termination."""
        return self.termination.code

    @property
    def converged(self) -> bool:
        return self.termination.converged

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @property
    def names(self) -> list[str]:
        """Names of the elements of `constrained`."""
        return self.model.param_names(include_tp=True, include_gq=True)

    @property
    def constrained(self) -> Vector:
        """Parameters, transformed parameters and generated quantities at the point."""
        if self._constrained is None:
            self._constrained = self.constrain(self.unconstrained)
        return self._constrained

    def constrain(self, theta: Vector) -> Vector:
        rng = Rng(self.seed, QUANTITIES_STREAM)
        return self.model.param_constrain(theta, include_tp=True, include_gq=True, rng=rng)

    def __getitem__(self, name: str) -> Any:
        start = 0
        variables = self.model.written_variables()
        for variable in variables:
            if variable.name == name:
                values = self.constrained[start : start + variable.size]
                return from_output(variable, values) if variable.n_dims else float(values[0])
            start += variable.size
        raise KeyError(f"{name!r}; the model has {', '.join(variable.name for variable in variables)}")

    def __str__(self) -> str:
        from ulam.runtime.results import optimization_summary

        return optimization_summary(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes CmdStan-style CSV."""
        from ulam.runtime.results import write_optimization_csv

        write_optimization_csv(self, path)
