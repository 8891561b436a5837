"""Laplace approximation: draws from the normal density at the mode, on the unconstrained scale.

The density has the mode as its mean and the inverse of minus the Hessian there as its covariance (CmdStan guide,
"Laplace sampling"). Each draw is constrained, with transformed parameters and generated quantities.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from ulam.runtime.data import read_data
from ulam.runtime.errors import DataError, Interrupted, Rejection, TimeLimit
from ulam.runtime.interrupts import forget_stop, held, raise_interrupted, stoppable
from ulam.runtime.json_reader import parse_json
from ulam.runtime.named_draws import NamedDraws
from ulam.runtime.named_text import NamedText
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.curvature import FAR_FROM_MODE, NormalApproximation, normal_approximation
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.quantities import constrained_or_nan
from ulam.runtime.optimizers.quasi_newton import check_count
from ulam.runtime.optimizers.result import QUANTITIES_STREAM, OptimizationResult
from ulam.runtime.optimizers.termination import Termination

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

DRAWS_STREAM = 2
"""Stream of the run's seed for the normal numbers of the draws."""

FEW_DIGITS = "a CSV file with few digits may not keep a constraint: CmdStan's sig_figs=18 writes all"

ModeSource = OptimizationResult | Mapping[str, Any] | str | os.PathLike[str] | NamedText | None


class ModeWarning(UserWarning):
    """The point is not the mode of the density that is approximated."""


@dataclass
class LaplaceResult(NamedDraws):
    """Draws from the normal approximation at a mode.

    `fit["theta"]` are the draws of a variable, of shape (draws, ...) with its own shape last. `log_p` is the log
    density of the model at each draw (constants dropped; NaN if it was not asked for, or was rejected), `log_q` that
    of the normal approximation without its constant, as CmdStan's `log_q__`: 0 at the mode;
    `approximation.log_normalizer` is the constant.
    """

    model: StanModel = field(repr=False)
    jacobian: bool
    seed: int
    calculate_lp: bool
    mode_source: str
    approximation: NormalApproximation = field(repr=False)
    unconstrained_draws: Vector = field(repr=False)
    constrained_draws: Vector = field(repr=False)
    log_p: Vector = field(repr=False)
    log_q: Vector = field(repr=False)
    n_rejections: int
    seconds: float
    notes: list[str] = field(default_factory=list[str])
    interrupted: bool = False

    def __str__(self) -> str:
        from ulam.runtime.results import laplace_summary

        return laplace_summary(self)

    def _repr_html_(self) -> str:
        from ulam.runtime.results import laplace_html

        return laplace_html(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes CmdStan's CSV: settings as comments, `log_p__,log_q__,...`, a row per draw."""
        from ulam.runtime.cmdstan_csv import write_laplace

        write_laplace(self, path)

    def to_arviz(self, *, log_likelihood: str | None = "log_lik", posterior_predictive: Sequence[str] = ()) -> Any:
        """The draws as one chain, as `OptimizationResult.to_arviz`."""
        from ulam.runtime.arviz_export import export_chain

        about = {"method": "laplace", "jacobian": int(self.jacobian), "seed": self.seed}
        statistics = {"lp": self.log_p, "lp_approx": self.log_q}
        return export_chain(self.draws, statistics, about, log_likelihood, posterior_predictive)


def laplace(
    model: StanModel,
    mode: ModeSource = None,
    *,
    jacobian: bool = True,
    draws: int = 1000,
    seed: int | None = None,
    calculate_lp: bool = True,
    refresh: int = 0,
    file: TextIO | None = None,
    time_limit: float | None = None,
) -> LaplaceResult:
    """Draws from the normal approximation of the density of the unconstrained parameters, at its mode.

    `mode`: None (it is optimized for, from initial values of the seed), a result of `optimize`, constrained parameters
    by name (a mapping, JSON text or a path), or the path of a CSV file of `optimize`, CmdStan's too, of which the last
    row counts. `jacobian` says which density is approximated, with the change of variables (the posterior's) or
    without it; it must be what the mode was optimized with, else a ModeWarning says so.

    What a draw makes the program reject is NaN, and `notes` says how often; CmdStan ends there. An interrupt (Ctrl-C)
    keeps the draws that were made. After `time_limit` seconds there is `TimeLimit`, whose `result` has the draws that
    were made (or the mode, as `optimize` had found it so far).

    Raises CurvatureError if the Hessian at the mode is not negative definite, ValueError if `draws` or `refresh` is
    not a count.
    """
    check_count("draws", draws)
    if refresh != 0:
        check_count("refresh", refresh)
    seed = model.seed if seed is None else seed
    work = partial(_laplace, model, mode, jacobian, draws, seed, calculate_lp, refresh, file)
    return stoppable(work, time_limit, kept=True)


def _laplace(
    model: StanModel,
    mode: ModeSource,
    jacobian: bool,
    draws: int,
    seed: int,
    calculate_lp: bool,
    refresh: int,
    file: TextIO | None,
) -> LaplaceResult:
    """What `laplace` does once its arguments are known to be fine."""
    report = _reporter(refresh, file)
    center = mode_point(model, mode, jacobian, seed)
    began = time.perf_counter() - model.compile_seconds
    report("Calculating Hessian")
    approximation = normal_approximation(model, center.theta, jacobian)
    doubts = _doubts(model, approximation, jacobian, center.jacobian)
    for doubt in doubts:
        warnings.warn(doubt, ModeWarning, stacklevel=6)
    report("Generating draws")
    result = _Draws(model, approximation, jacobian, draws, seed)
    limit: TimeLimit | None = None
    try:
        for k in range(draws):
            if refresh and k % refresh == 0:
                report(f"iteration: {k}")
            result.add(calculate_lp)
    except (KeyboardInterrupt, Interrupted):
        if not result.count:
            raise
        forget_stop()
    except TimeLimit as error:
        if not result.count:
            raise
        limit = error
    seconds = time.perf_counter() - began - model.compile_seconds
    finished = result.finished(center, calculate_lp, seconds, doubts)
    if limit is not None:
        limit.result = finished
        raise limit
    return finished


class _Draws:
    """The draws made so far."""

    def __init__(
        self, model: StanModel, approximation: NormalApproximation, jacobian: bool, draws: int, seed: int
    ) -> None:
        self.model, self.approximation, self.jacobian, self.seed = model, approximation, jacobian, seed
        self.normal = np.random.Generator(Rng(seed, DRAWS_STREAM).generator)
        self.quantities = Rng(seed, QUANTITIES_STREAM)
        self.points = np.empty((draws, approximation.mode.size))
        self.values = np.empty((draws, model.param_num(include_tp=True, include_gq=True)))
        self.log_p, self.log_q = np.full(draws, np.nan), np.empty(draws)
        self.rejections: list[Rejection] = []
        self.count = 0

    def add(self, calculate_lp: bool) -> None:
        """One more."""
        k, point = self.count, self.approximation.draw(self.normal)
        self.points[k] = point
        self.values[k], rejection = constrained_or_nan(self.model, point, self.quantities)
        self.log_q[k] = self.approximation.log_kernel(point)
        if calculate_lp:
            self.log_p[k], rejected = _log_density(self.model, point, self.jacobian)
            rejection = rejected or rejection
        if rejection is not None:
            self.rejections.append(rejection)
        self.count += 1

    def finished(self, center: ModePoint, calculate_lp: bool, seconds: float, doubts: list[str]) -> LaplaceResult:
        """The result, of the draws there are."""
        count, asked, notes = self.count, len(self.points), [*center.notes, *doubts]
        if count < asked:
            notes.append(f"Interrupted: {count} of {asked} draws.")
        if self.rejections:
            notes.append(f"{len(self.rejections)} of {count} draws have NaN, the first for: {self.rejections[0]}.")
        return LaplaceResult(
            self.model, self.jacobian, self.seed, calculate_lp, center.source, self.approximation, self.points[:count],
            self.values[:count], self.log_p[:count], self.log_q[:count], len(self.rejections), seconds, notes,
            interrupted=count < asked,
        )  # fmt: skip


def _log_density(model: StanModel, theta: Vector, jacobian: bool) -> tuple[float, Rejection | None]:
    try:
        return model.log_density(theta, propto=True, jacobian=jacobian), None
    except Rejection as rejection:
        return float("nan"), rejection


def _reporter(refresh: int, file: TextIO | None) -> Any:
    """Prints what CmdStan prints with `refresh`, on standard error."""

    def report(text: str) -> None:
        if refresh:
            print(text, file=file or sys.stderr, flush=True)

    return report


# ---------------------------------------------------------------- the mode


@dataclass(frozen=True)
class ModePoint:
    """The unconstrained mode; the setting `jacobian` it was found with, if that is known; where it is from."""

    theta: Vector
    jacobian: bool | None
    source: str
    notes: tuple[str, ...] = ()


def mode_point(model: StanModel, mode: ModeSource, jacobian: bool, seed: int) -> ModePoint:
    """What the argument `mode` of `laplace` means."""
    if mode is None:
        mode = model.optimize(jacobian=jacobian, seed=seed)
        if mode.termination is Termination.INTERRUPTED:
            raise_interrupted()  # the point is no mode
    given = mode
    # An interrupt amid the reading of a file may come where Python can raise nothing, as in the end of a generator.
    return held(lambda: _given_mode(model, given))


def _given_mode(
    model: StanModel, mode: OptimizationResult | Mapping[str, Any] | str | os.PathLike[str] | NamedText
) -> ModePoint:
    if isinstance(mode, OptimizationResult):
        return ModePoint(mode.unconstrained, mode.jacobian, "optimized", tuple(mode.notes))
    if isinstance(mode, Mapping):
        return _from_values(model, mode, "given")
    if isinstance(mode, NamedText):
        if mode.text.lstrip().startswith("{"):
            return _from_values(model, parse_json(mode.text, mode.name), mode.name)
        return _from_csv(model, mode)
    text = os.fspath(mode)
    if text.lstrip().startswith("{"):
        return _from_values(model, parse_json(text, "mode"), "given")
    if text.lower().endswith(".csv"):
        return _from_csv(model, text)
    return _from_values(model, read_data(mode).values, text)


def check_mode(mode: str) -> None:
    """Raises what `mode_point` would raise for a file that is not there, or that cannot be read."""
    held(lambda: _check_mode(mode))


def _check_mode(mode: str) -> None:
    if not mode.lstrip().startswith("{") and mode.lower().endswith(".csv"):
        from ulam.runtime.cmdstan_csv import read

        read(mode)
    else:
        read_data(mode)


def _from_csv(model: StanModel, source: str | NamedText) -> ModePoint:
    """The last row of a CSV file of `optimize`."""
    from ulam.runtime.cmdstan_csv import read_parameters

    constrained, known = read_parameters(model, source)
    try:
        return ModePoint(model.param_unconstrain(constrained), known, str(source))
    except Rejection as rejection:
        raise DataError([f"{source}: {rejection}; {FEW_DIGITS}"]) from None


def _from_values(model: StanModel, given: Mapping[str, Any], source: str) -> ModePoint:
    """Constrained values by name, bare or as `OptimizationResult.to_dict` has them."""
    known = None
    if "schema_version" in given and isinstance(given.get("values"), Mapping):
        known, given = bool(given["jacobian"]), given["values"]
    return ModePoint(model.param_unconstrain_json(given), known, source)


def _doubts(model: StanModel, approximation: NormalApproximation, jacobian: bool, known: bool | None) -> list[str]:
    """Why the point may not be the mode of the density that is approximated."""
    distance = approximation.distance_to_mode
    constrained = any(variable.constraint != "none" for variable in model.parameter_variables())
    if known is not None and known != jacobian and constrained:
        return [
            f"The mode was optimized with jacobian={known}, and the approximation is with jacobian={jacobian}: "
            f"the point is about {distance:.2g} standard deviations from that mode. Use the same setting for both."
        ]
    if distance > FAR_FROM_MODE:
        return [
            f"The point is about {distance:.2g} standard deviations from the mode of the density with "
            f"jacobian={jacobian} (gradient norm {np.linalg.norm(approximation.gradient):.3g}). Was it optimized with "
            "the same setting, and did it converge?"
        ]
    return []
