"""What an optimizer found, and how it is shown and stored."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.names import by_name, of_name
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.quantities import constrained_or_nan
from ulam.runtime.optimizers.termination import Termination

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.optimizers.curvature import NormalApproximation

QUANTITIES_STREAM = 1
"""Stream of the run's seed for generated quantities of the result; initial values have stream 0."""


@dataclass
class OptimizationResult:
    """Where an optimizer ended.

    `fit["theta"]` is the value of a parameter, transformed parameter or generated quantity, in its own shape.
    `notes` say what else there is to know about the run, a sentence each. `options` are the settings that were given,
    by CmdStan's names; those that are absent had their defaults. `init` is the initial values as text.
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
    notes: list[str] = field(default_factory=list[str])
    options: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    init: str = field(default="2", repr=False)
    _constrained: Vector | None = field(default=None, repr=False)
    _approximation: NormalApproximation | None = field(default=None, repr=False)
    _standard_errors: Vector | None = field(default=None, repr=False)

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
        with np.errstate(over="ignore"):  # an infinite norm is what it says
            return float(np.linalg.norm(self.gradient))

    # ------------------------------------------------------------ estimates

    @property
    def names(self) -> list[str]:
        """Names of the elements of `constrained`."""
        return self.model.param_names(include_tp=True, include_gq=True)

    @property
    def constrained(self) -> Vector:
        """Parameters, transformed parameters and generated quantities at the point.

        Generated quantities that the program rejects are NaN, and `notes` says why.
        """
        if self._constrained is None:
            rng = Rng(self.seed, QUANTITIES_STREAM)
            self._constrained, rejection = constrained_or_nan(self.model, self.unconstrained, rng)
            if rejection is not None:
                self.notes.append(f"What could not be computed is NaN: {rejection}.")
        return self._constrained

    def constrain(self, theta: Vector) -> Vector:
        """The same at another unconstrained point; random numbers are always those of the run's seed."""
        return constrained_or_nan(self.model, theta, Rng(self.seed, QUANTITIES_STREAM))[0]

    def __getitem__(self, name: str) -> Any:
        return of_name(self.values(), name)

    def values(self) -> dict[str, Any]:
        """All estimates by name: floats, and arrays of the variables' shapes."""
        return by_name(self.model.written_variables(), self.constrained)

    # ------------------------------------------------------------ iterations

    @property
    def iteration_columns(self) -> list[str]:
        """Names of the columns of `iterations`."""
        return ["lp__", "converged__", *self.names]

    @property
    def iterations(self) -> Vector:
        """What CmdStan's CSV has: (rows, columns), see `iteration_columns`. The last row is the estimate.

        With `save_iterations` the first row is the start, and each iteration has one; else the estimate is the only
        row. `converged__` is Stan's code of the termination, 0 in rows before the last.
        """
        rows = [(value, 0.0, *self.constrain(theta)) for value, theta in self.trajectory[:-1]]
        return np.array([*rows, (self.log_density, float(self.code), *self.constrained)])

    # ------------------------------------------------------------ curvature

    def hessian(self) -> Vector:
        """The Hessian of the log density at the estimate, over the unconstrained parameters, (n, n)."""
        from ulam.runtime.optimizers.curvature import hessian

        return hessian(self.model, self.unconstrained, self.jacobian)

    def approximation(self) -> NormalApproximation:
        """The normal approximation at the estimate: centre, Hessian, covariance. Computed once.

        Raises CurvatureError if the Hessian is not negative definite.
        """
        if self._approximation is None:
            from ulam.runtime.optimizers.curvature import normal_approximation

            self._approximation = normal_approximation(self.model, self.unconstrained, self.jacobian)
        return self._approximation

    def covariance(self) -> Vector:
        """The inverse of minus the Hessian: the covariance of the unconstrained parameters, (n, n).

        Raises CurvatureError if the Hessian is not negative definite.
        """
        return self.approximation().covariance

    def standard_errors(self) -> dict[str, Any]:
        """Standard errors of all estimates by name, in their shapes, by the delta method.

        That is, the square root of the diagonal of `J C J'` with the covariance C of the unconstrained parameters and
        the Jacobian J of the map from there to the estimates (central differences, relative error about 1e-9). NaN for
        integers and for quantities that draw random numbers. Raises CurvatureError if there is no covariance.
        """
        return by_name(self.model.written_variables(), self.standard_error_vector())

    def standard_error_vector(self) -> Vector:
        """The same as one vector, in the order of `names`."""
        if self._standard_errors is None:
            from ulam.runtime.optimizers.curvature import delta_method

            self._standard_errors = delta_method(self)
        return self._standard_errors

    @property
    def computed_standard_errors(self) -> Vector | None:
        """Standard errors if they were asked for before, else None."""
        return self._standard_errors

    # ------------------------------------------------------------ output

    def __str__(self) -> str:
        from ulam.runtime.results import optimization_summary

        return optimization_summary(self)

    def _repr_html_(self) -> str:
        from ulam.runtime.results import optimization_html

        return optimization_html(self)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain Python values: see docs/optimizers.md for the entries."""
        from ulam.runtime.results import optimization_record

        return optimization_record(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, written to `path` if that is given."""
        from ulam.runtime.results import json_text

        return json_text(self.to_dict(), path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes CmdStan's CSV: settings as comments, `lp__,converged__,...`, the estimate or all saved iterations."""
        from ulam.runtime.cmdstan_csv import write_optimization

        write_optimization(self, path)

    def to_arviz(self, *, log_likelihood: str | None = "log_lik", posterior_predictive: Sequence[str] = ()) -> Any:
        """The estimate as one draw of one chain, for ArviZ.

        A DataTree with arviz-base, an InferenceData with arviz before 1.0; ImportError if there is neither. The
        variable named by `log_likelihood`, if the model has it, and those of `posterior_predictive` get groups of
        their own.
        """
        from ulam.runtime.arviz_export import export_chain

        values = {name: np.asarray(value)[np.newaxis] for name, value in self.values().items()}
        return export_chain(
            values,
            {"lp": np.array([self.log_density])},
            {"algorithm": self.algorithm, "jacobian": int(self.jacobian), "status": self.status},
            log_likelihood,
            posterior_predictive,
        )
