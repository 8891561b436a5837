"""What a run of an optimizer shows about the model beyond its status: sentences for `OptimizationResult.notes`.

A density may have no maximum (a scale of a hierarchical model runs to 0), its maximum may lie at the border of the
support, a parameter may be without any effect, and evaluations may fail next to the last point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.errors import ProgramError
from ulam.runtime.names import unconstrained_positions
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.termination import Termination

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

FAR = 15.0
"""A constrained parameter this far from 0 on the unconstrained scale is close to a bound: exp(-15) is 3e-7."""

FAR_FREE = 1e8
"""The same for a parameter without constraint, whose scale is that of the model."""

GROWTH = 0.5
"""The log density counts as growing in such a parameter if the last quarter of its way brought more than this."""

LEVEL = 0.01
"""It has levelled off where its slope is less than this part of the mean slope on that way."""

LAST = 1 / 64
STEADY = 0.5
"""It has not levelled off, whatever the slope at the end, if the mean slope on the `LAST` part of the way is more than
this share of that on the last quarter. On the way it falls in proportion to what is left, to a sixteenth."""

FLAT = 1e-3

BESIDE = 1e-3
"""How far beside the last point a parameter without gradient is tried, relative to its value or 1."""

UPWARD = 1e-6
"""A Hessian with an eigenvalue above this part of its largest in size is not that of a maximum."""

PROBES = 10
"""Distances 1, 10, 100, ... at which a density is tried that a line search did not see the end of."""

CHECKPOINTS = 64
"""How many points of the path are kept, at most, evenly spread."""

SHOWN_NAMES = 5
SHOWN_REASONS = 3


class Path:
    """Points on the way with their log densities: all of a short run, of a long one every so many."""

    def __init__(self) -> None:
        self.points: list[tuple[float, Vector]] = []
        self._stride = 1
        self._count = 0

    def add(self, log_density: float, theta: Vector) -> None:
        if self._count % self._stride == 0:
            if len(self.points) == CHECKPOINTS:
                del self.points[1::2]
                self._stride *= 2
            self.points.append((log_density, theta))
        self._count += 1


@dataclass(frozen=True)
class DiagnosedRun:
    """What the diagnosis looks at. The path begins with the start of the run; gradients are of the log density."""

    model: StanModel
    jacobian: bool
    path: Path
    start_gradient: Vector
    end: Vector
    end_value: float
    end_gradient: Vector
    termination: Termination
    failures: FailureTally
    infinite_at: Vector | None
    exact_hessian: bool = False
    """Whether the optimizer worked with the Hessian: then it is looked at where the run ended."""

    @property
    def start(self) -> Vector:
        return self.path.points[0][1]


def notes(run: DiagnosedRun) -> list[str]:
    """The sentences, none for an ordinary run."""
    found = _without_effect(run)
    if not run.termination.stopped:
        found += _runaways(run)
        if run.infinite_at is not None and np.isfinite(run.infinite_at).all():
            farthest = int(np.argmax(np.abs(run.infinite_at - run.start)))
            found.append(
                "The log density is +infinity at a trial point, where unconstrained "
                f"'{run.model.param_unc_names()[farthest]}' is {run.infinite_at[farthest]:.4g}: it has no maximum."
            )
    if run.termination.failed and not found:
        found += _rises_for_ever(run)
    if run.termination.converged and run.exact_hessian and not found:
        found += _upward_curvature(run)
    if run.termination.failed and run.failures.count:
        found.append(_failures(run.failures))
    return found


def _without_effect(run: DiagnosedRun) -> list[str]:
    if not run.start.size:
        return []
    if not run.start_gradient.any():
        return ["The gradient is 0 at the initial point: it is stationary, or the log density is flat there."]
    still = (run.start_gradient == 0) & (run.end_gradient == 0) & (run.start == run.end)
    if not still.any() or np.array_equal(run.start, run.end):
        return []
    slopes = _slopes_beside(run, still)
    if slopes is None:
        return []
    found: list[str] = []
    unused = still & (slopes == 0)
    if unused.any():
        names = _names(run.model, np.flatnonzero(unused))
        found.append(f"The log density does not seem to depend on {names}: the estimate is the initial value.")
    if (still & (slopes > 0)).any():
        found.append(_saddle(_names(run.model, np.flatnonzero(still & (slopes > 0)))))
    return found


def _slopes_beside(run: DiagnosedRun, still: np.ndarray) -> Vector | None:
    """The gradient where the parameters `still` lie a little above their last values (or below, if it cannot be
    evaluated there), in the direction away from these. A gradient that is 0 at one point says nothing of the rest."""
    for sign in (1.0, -1.0):
        beside = np.where(still, run.end + sign * BESIDE * np.maximum(1.0, np.abs(run.end)), run.end)
        try:
            _, gradient = run.model.log_density_gradient(beside, propto=True, jacobian=run.jacobian)
        except ProgramError:
            continue
        if np.isfinite(gradient).all():
            return sign * gradient
    return None


def _saddle(names: str) -> str:
    return (
        f"The run ended at a saddle point: the log density rises away from it along {names}. "
        "Other initial values lead to a maximum, if there is one."
    )


def _upward_curvature(run: DiagnosedRun) -> list[str]:
    """A point that Newton's method took for a maximum, and where the Hessian is not negative."""
    try:
        _, _, hessian = run.model.log_density_hessian(run.end, propto=True, jacobian=run.jacobian)
    except ProgramError:
        return []
    if not np.isfinite(hessian).all():
        return []
    eigenvalues, vectors = np.linalg.eigh(hessian)
    if not eigenvalues[-1] > UPWARD * np.max(np.abs(eigenvalues)):
        return []
    along = np.abs(vectors[:, -1])
    return [_saddle(_names(run.model, np.flatnonzero(along > 0.5 * along.max())))]


def _runaways(run: DiagnosedRun) -> list[str]:
    """Parameters that went far and along which the log density still grows, or is flat; not those with a mode there."""
    far = np.where(_constrained_mask(run.model), FAR, FAR_FREE)
    gone = np.flatnonzero((np.abs(run.end) > far) & (np.abs(run.end - run.start) > 0.5 * far))
    growing = [int(i) for i in gone if _grows(run, int(i))]
    flat = [int(i) for i in gone if i not in growing and _is_flat(run, int(i))]
    found: list[str] = []
    if growing:
        remedy = "a prior that keeps these parameters from the boundary of their support may help"
        if not run.jacobian:
            remedy += ", or jacobian=True (CmdStan: jacobian=1), which adds the change of variables"
        rise = run.end_value - run.path.points[0][0]
        found.append(
            f"The log density seems to grow without bound: it rose by {rise:.6g} while "
            f"{_places(run, growing)}. There may be no maximum; {remedy}."
        )
    if flat:
        found.append(
            f"The log density is flat where the run ended: {_places(run, flat)}. The estimate lies at the boundary of "
            "the support, or is arbitrary."
        )
    return found


def _rises_for_ever(run: DiagnosedRun) -> list[str]:
    """Whether the log density rises on and on along the gradient at the point where the line search failed."""
    length = float(np.linalg.norm(run.end_gradient))
    if not math.isfinite(length) or length == 0:
        return []
    direction = run.end_gradient / length
    far = np.where(_constrained_mask(run.model), FAR, FAR_FREE)
    value, slope, reached = run.end_value, length, 0.0
    for distance in 10.0 ** np.arange(PROBES):
        try:
            point = run.end + distance * direction
            next_value, gradient = run.model.log_density_gradient(point, propto=True, jacobian=run.jacobian)
        except ProgramError:
            break
        if not math.isfinite(next_value):
            break
        slope = float(gradient @ direction)
        if not (next_value > value and slope > LEVEL * (next_value - run.end_value) / distance):
            return []
        value, reached = next_value, distance
    moved = np.flatnonzero(np.abs(reached * direction) > far)
    if not moved.size:
        return []
    names = run.model.param_unc_names()
    shown = ", ".join(f"'{names[i]}'" for i in moved[:SHOWN_NAMES])
    return [
        f"The log density seems to grow without bound: it is {value - run.end_value:.6g} higher where unconstrained "
        f"{shown} went on by {reached:.4g} along the gradient. There may be no maximum."
    ]


def _grows(run: DiagnosedRun, position: int) -> bool:
    """Whether the log density rose on the last quarter of the parameter's way, and has not levelled off at its end.

    Where it grows by cancellation the slope at the very end may be anything: what it rose by just before counts, too.
    """
    distance, mean_slope = _rise(run, position, 0.25)
    if not mean_slope * distance > max(GROWTH, 1e-9 * abs(run.end_value)):
        return False
    last_distance, last_slope = _rise(run, position, LAST)
    goes_on = last_distance < 0.25 * distance and last_slope > STEADY * mean_slope
    return goes_on or abs(run.end_gradient[position]) > LEVEL * mean_slope


def _rise(run: DiagnosedRun, position: int, share: float) -> tuple[float, float]:
    """The length of the last part of a parameter's way, at least a share of it, and the mean slope there."""
    end = run.end[position]
    least = share * abs(end - run.start[position])
    value, theta = [point for point in run.path.points if abs(point[1][position] - end) >= least][-1]  # with the start
    distance = abs(theta[position] - end)
    return distance, (run.end_value - value) / distance


def _is_flat(run: DiagnosedRun, position: int) -> bool:
    """Whether the log density stays the same, up to `FLAT`, when the parameter goes on by 1."""
    farther = run.end.copy()
    farther[position] += math.copysign(1.0, run.end[position])
    try:
        value, _ = run.model.log_density_gradient(farther, propto=True, jacobian=run.jacobian)
    except ProgramError:
        return False
    return abs(value - run.end_value) <= FLAT


def _places(run: DiagnosedRun, positions: list[int]) -> str:
    names = run.model.param_unc_names()
    shown = [f"unconstrained '{names[i]}' ran to {run.end[i]:.4g}" for i in positions[:SHOWN_NAMES]]
    if len(positions) > SHOWN_NAMES:
        shown.append(f"{len(positions) - SHOWN_NAMES} more ran far")
    return ", ".join(shown)


def _failures(failures: FailureTally) -> str:
    listed = "; ".join(f"{reason.count} times {reason.text}" for reason in failures.reasons[:SHOWN_REASONS])
    return f"{failures.count} trial points could not be evaluated: {listed}."


def _names(model: StanModel, positions: np.ndarray) -> str:
    names = model.param_unc_names()
    shown = ", ".join(f"'{names[i]}'" for i in positions[:SHOWN_NAMES])
    return f"{shown} and {positions.size - SHOWN_NAMES} more" if positions.size > SHOWN_NAMES else shown


def _constrained_mask(model: StanModel) -> np.ndarray:
    """Whether each unconstrained parameter belongs to a variable with a constraint."""
    variables = model.parameter_variables()
    mask = np.zeros(model.param_unc_num(), bool)
    for variable, place in zip(variables, unconstrained_positions(variables).values(), strict=True):
        mask[place] = variable.constraint != "none"
    return mask
