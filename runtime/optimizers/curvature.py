"""The log density near its mode: Hessian, normal approximation, standard errors by the delta method.

All of it is on the unconstrained scale. Where the Hessian is not negative definite there is no normal approximation,
and the error says along which parameters the log density is flat or rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import UlamError
from ulam.runtime.names import bracket_name, output_positions
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.quantities import constrained_or_nan

Elements = npt.NDArray[np.intp]

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.optimizers.result import OptimizationResult

FLAT = 1e-10
"""A direction is flat if its curvature is below this, in units of the curvatures along the single parameters."""

MAIN_SHARE = 0.3
MAX_MAIN = 5
"""Parameters that are named for a direction: those with this share of the largest one, at most so many."""

FAR_FROM_MODE = 0.1
"""In standard deviations: a point this far from the mode of the quadratic there is not taken for the mode."""

STEP_OF_SCALE, SMALLEST_STEP, LARGEST_STEP = 1e-2, 1e-8, 1e-3
"""Steps of the differences for the Jacobian: a hundredth of the standard deviation, within these bounds relative to the
parameter (or to 1). What is linear to a few percent over a standard deviation is then exact to about 1e-9."""

DRAWN_STREAM = 3
"""Stream of the run's seed that tells which generated quantities are drawn."""


class CurvatureError(UlamError):
    """The Hessian of the log density is not negative definite: there is no covariance. The message names directions."""


def hessian(model: StanModel, theta: Vector, jacobian: bool) -> Vector:
    """The Hessian of the log density of the unconstrained parameters, (n, n)."""
    return model.log_density_hessian(theta, propto=True, jacobian=jacobian)[2]


@dataclass(frozen=True)
class NormalApproximation:
    """A normal density of the unconstrained parameters: its mode, and the Hessian of the log density there.

    `root` is the lower Cholesky factor of minus the Hessian.
    """

    mode: Vector
    gradient: Vector
    hessian: Vector
    root: Vector

    @cached_property
    def covariance(self) -> Vector:
        inverse = self.inverse_root
        return inverse.T @ inverse

    @cached_property
    def inverse_root(self) -> Vector:
        return np.asarray(np.linalg.solve(self.root, np.eye(self.mode.size)), np.float64)

    @property
    def scales(self) -> Vector:
        """Standard deviations of the unconstrained parameters."""
        return np.sqrt(np.square(self.inverse_root).sum(axis=0))

    @property
    def log_normalizer(self) -> float:
        """What `log_kernel` lacks to be the log of the normal density."""
        return float(np.log(np.diag(self.root)).sum() - 0.5 * self.mode.size * np.log(2 * np.pi))

    @property
    def distance_to_mode(self) -> float:
        """How far, in standard deviations, the mode of this quadratic is from the point; 0 at an exact mode."""
        return float(np.linalg.norm(self.inverse_root @ self.gradient))

    def log_kernel(self, theta: Vector) -> float:
        """The log of the normal density without its constant: 0 at the mode."""
        scaled = (theta - self.mode) @ self.root
        return -0.5 * float(scaled @ scaled)

    def draw(self, generator: np.random.Generator) -> Vector:
        """One draw. Uses as many normal numbers as there are parameters."""
        return self.mode + generator.standard_normal(self.mode.size) @ self.inverse_root


def normal_approximation(model: StanModel, theta: Vector, jacobian: bool) -> NormalApproximation:
    """The normal density with the mode and the curvature of the log density at `theta`.

    Raises CurvatureError if the Hessian there is not negative definite, up to rounding.
    """
    _, gradient, curvature = model.log_density_hessian(theta, propto=True, jacobian=jacobian)
    if not np.isfinite(curvature).all():
        bad = np.flatnonzero(~np.isfinite(np.diag(curvature)))
        bad = bad if bad.size else np.flatnonzero(~np.isfinite(curvature).all(axis=1))
        raise CurvatureError(f"the Hessian of the log density is not finite for {_names(model, bad)}")
    information = -np.asarray(curvature)
    scale = np.sqrt(np.abs(np.diag(information)))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    if theta.size and not values[0] > FLAT:
        raise CurvatureError(_explanation(model, values, vectors, gradient))
    root = np.asarray(np.linalg.cholesky(information), np.float64)
    return NormalApproximation(theta, gradient, curvature, root)


def _explanation(model: StanModel, values: Vector, vectors: Vector, gradient: Vector) -> str:
    """Which directions are flat, which rise, and what may help. `vectors` count in the parameters' own curvatures."""
    flat, rising = np.flatnonzero(np.abs(values) <= FLAT), np.flatnonzero(values < -FLAT)
    lines = ["the Hessian of the log density is not negative definite: no covariance and no standard errors"]
    for kind, directions in (("is flat", flat), ("curves upwards", rising)):
        for k in directions[:MAX_MAIN]:
            share = np.abs(vectors[:, k])
            main = np.flatnonzero(share >= MAIN_SHARE * share.max())
            main = main[np.argsort(-share[main], kind="stable")]
            lines.append(f"  it {kind} along {_names(model, main)}")
        if len(directions) > MAX_MAIN:
            lines.append(f"  and along {len(directions) - MAX_MAIN} more directions")
    if flat.size:
        lines.append("  flat: data and priors do not determine these parameters; a prior, or a constraint, would")
    if rising.size:
        lines.append(
            f"  upwards: this point is not a maximum (gradient norm {np.linalg.norm(gradient):.3g}); "
            "the optimizer stopped early, or the log density has no maximum here"
        )
    return "\n".join(lines)


def _names(model: StanModel, elements: Elements) -> str:
    names = model.param_unc_names()
    shown = ", ".join(bracket_name(names[int(i)]) for i in elements[:MAX_MAIN])
    return f"{shown} and {elements.size - MAX_MAIN} more" if elements.size > MAX_MAIN else shown


def delta_method(result: OptimizationResult) -> Vector:
    """Standard errors of parameters, transformed parameters and generated quantities, in the order of `names`.

    NaN where a derivative means nothing: integers, and quantities that change with the seed.
    """
    approximation = result.approximation()
    if approximation.distance_to_mode > FAR_FROM_MODE:
        result.notes.append(
            f"The standard errors are not those of a mode: it is about {approximation.distance_to_mode:.2g} standard "
            "deviations away."
        )
    derivative = jacobian_of_constrain(result, approximation.scales)
    errors = np.sqrt(np.square(derivative @ approximation.inverse_root.T).sum(axis=1))
    errors[_without_derivative(result)] = np.nan
    return errors


def jacobian_of_constrain(result: OptimizationResult, scales: Vector) -> Vector:
    """Derivatives of all estimates by the unconstrained parameters: 4-point central differences, (n_out, n)."""
    theta = result.unconstrained
    size = np.maximum(1.0, np.abs(theta))
    steps = np.clip(STEP_OF_SCALE * scales, SMALLEST_STEP * size, LARGEST_STEP * size)
    columns = np.empty((result.constrained.size, theta.size))
    for i, step in enumerate(steps):

        def across(reach: float, i: int = i) -> Vector:
            ahead, behind = theta.copy(), theta.copy()
            ahead[i] += reach
            behind[i] -= reach
            return (result.constrain(ahead) - result.constrain(behind)) / (ahead[i] - behind[i])

        columns[:, i] = (4 * across(step) - across(2 * step)) / 3
    return columns


def _without_derivative(result: OptimizationResult) -> npt.NDArray[np.bool_]:
    """Which elements of `constrained` are integers, or drawn at random."""
    variables = result.model.written_variables()
    integers = np.zeros(result.constrained.shape, bool)
    for variable, places in zip(variables, output_positions(variables).values(), strict=True):
        integers[places] = variable.element == "int"
    model, theta = result.model, result.unconstrained
    other, _ = constrained_or_nan(model, theta, Rng(result.seed, DRAWN_STREAM))
    return integers | ((result.constrained != other) & ~(np.isnan(result.constrained) & np.isnan(other)))
