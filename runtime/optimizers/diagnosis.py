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

FLAT = 1e-3

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
class Run:
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

    @property
    def start(self) -> Vector:
        return self.path.points[0][1]


def notes(run: Run) -> list[str]:
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
    if run.termination.failed and run.failures.count:
        found.append(_failures(run.failures))
    return found


def _without_effect(run: Run) -> list[str]:
    if not run.start.size:
        return []
    if not run.start_gradient.any():
        return ["The gradient is 0 at the initial point: it is stationary, or the log density is flat there."]
    still = (run.start_gradient == 0) & (run.end_gradient == 0) & (run.start == run.end)
    if not still.any() or np.array_equal(run.start, run.end):
        return []
    names = _names(run.model, np.flatnonzero(still))
    return [f"The log density does not seem to depend on {names}: the estimate is the initial value."]


def _runaways(run: Run) -> list[str]:
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


def _grows(run: Run, position: int) -> bool:
    """Whether the log density rose on the last quarter of the parameter's way, and has not levelled off at its end."""
    end = run.end[position]
    quarter = 0.25 * abs(end - run.start[position])
    before = [point for point in run.path.points if abs(point[1][position] - end) >= quarter]  # with the start
    value, theta = before[-1]
    gain = run.end_value - value
    mean_slope = gain / abs(theta[position] - end)
    return gain > max(GROWTH, 1e-9 * abs(run.end_value)) and abs(run.end_gradient[position]) > LEVEL * mean_slope


def _is_flat(run: Run, position: int) -> bool:
    """Whether the log density stays the same, up to `FLAT`, when the parameter goes on by 1."""
    farther = run.end.copy()
    farther[position] += math.copysign(1.0, run.end[position])
    try:
        value, _ = run.model.log_density_gradient(farther, propto=True, jacobian=run.jacobian)
    except ProgramError:
        return False
    return abs(value - run.end_value) <= FLAT


def _places(run: Run, positions: list[int]) -> str:
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
    parts = [
        np.full(math.prod(variable.unconstrained_dims), variable.constraint != "none")
        for variable in model.parameter_variables()
    ]
    return np.concatenate(parts) if parts else np.zeros(0, bool)
