"""Where optimizers begin: drawn, given, or partly given initial values.

Rules of Stan's services (`stan/services/util/initialize.hpp`): up to 100 points are drawn, and one is accepted if the
log density with its constants is finite there, and then the log density without them and its gradient; without the
Jacobian adjustment, whatever the optimizer's. Here the optimizer's own first evaluation must be finite, too.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.data import INITIAL_VALUES, bind_values, read_data, warn_of_unused
from ulam.runtime.data import Values as DataValues
from ulam.runtime.errors import ArgumentError, DataError, InitializationError, Rejection
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import GlobalVariable, output_positions, unconstrained_positions
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.line_search import Point, Vector
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.random_numbers import UniformNumbers

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Init = npt.ArrayLike | Mapping[str, Any] | str | os.PathLike[str] | NamedText | float | None

_NAMED = (Mapping, str, os.PathLike, NamedText)
"""Forms of constrained values by name."""

DEFAULT_RADIUS = 2.0
MAX_TRIES = 100
INIT_STREAM = 0
"""Stream of the run's seed for initial values."""

ADVICE = "Try specifying initial values, reducing ranges of constrained values, or reparameterizing the model."
_OF_TRANSFORM = re.compile(r"^\w+_unconstrain: \w+(?= is )")
"""What a transform calls the value that it refuses."""
JACOBIAN_PREFIX = "with the Jacobian adjustment, "


def initial_point(
    objective: ModelObjective, init: Init, seed: int, stream: int = INIT_STREAM, *, as_sampled: bool = False
) -> Point:
    """The first point that passes the checks, as evaluated by `objective`, whose counts then begin with it.

    Points are drawn from this stream of the seed. `as_sampled`: only the density that `objective` has is looked at.

    Raises InitializationError if there is none, ArgumentError or DataError if `init` itself is wrong, and what the
    program raises other than rejections.
    """
    source = read_init(objective.model, init)
    refused = _Refused()
    point: Point | None = None
    source.stream = stream
    for _ in range(source.tries(objective.model)):
        point = _checked(objective, source, seed, refused, as_sampled)
        if point is not None:
            break
    if point is None:
        raise _failure(objective, source, refused)
    objective.n_gradients, objective.failures, objective.infinite_at = 1, FailureTally(), None
    return point


def inits_of_each(init: Any, count: int, what: str) -> list[Any] | None:
    """`init` where it has values for each of several runs: a list of mappings or paths, an array with a row for each.

    None if it is the same for all. Raises ValueError if it is for another number of runs.
    """
    if isinstance(init, (list, tuple)) and len(init) > 0 and all(isinstance(entry, _NAMED) for entry in init):
        each = list(init)
    elif init is None or isinstance(init, (*_NAMED, Real)) or np.ndim(init) != 2:
        return None
    else:
        each = list(np.asarray(init, dtype=np.float64))
    if len(each) != count:
        raise ValueError(f"init must have initial values for each of {count} {what}, found {len(each)}")
    return each


def init_text(init: Init) -> str:
    """`init` in a few words, as the settings of a run show it."""
    if init is None:
        return f"{DEFAULT_RADIUS:g}"
    if isinstance(init, Mapping):
        return "values of " + ", ".join(map(str, init)) if init else f"{DEFAULT_RADIUS:g}"
    if isinstance(init, NamedText):
        return init.name
    if isinstance(init, (str, os.PathLike)):
        text = os.fspath(init)
        return "values given as JSON text" if text.lstrip().startswith("{") else text
    return f"{init:g}" if _is_number(init) else "an unconstrained point"


@dataclass
class InitSource:
    """Where initial values come from: a fixed point, or a radius with, perhaps, values for some of the parameters."""

    radius: float = DEFAULT_RADIUS
    fixed: Vector | None = None
    given: GivenValues | None = None
    numbers: UniformNumbers | None = None
    stream: int = INIT_STREAM

    def tries(self, model: StanModel) -> int:
        everything = self.fixed is not None or (self.given is not None and self.given.complete)
        return 1 if everything or self.radius == 0 or model.param_unc_num() == 0 else MAX_TRIES

    def describe(self) -> str:
        if self.fixed is not None:
            return "at the initial point given"
        if self.given is not None and self.given.complete:
            return "at the initial values given"
        return "at the initial point 0" if self.radius == 0 else f"between (-{self.radius:g}, {self.radius:g})"

    def draw(self, model: StanModel, seed: int) -> Vector:
        """The next point. Raises Rejection if the values given do not fit those drawn, DataError if they never do."""
        if self.fixed is not None:
            return self.fixed
        size = model.param_unc_num()
        if self.radius:
            self.numbers = self.numbers or UniformNumbers(seed, self.stream)
            theta = self.numbers.draw(-self.radius, self.radius, size)
        else:
            theta = np.zeros(size)
        return theta if self.given is None else self.given.combine(theta)


def read_init(model: StanModel, init: Init) -> InitSource:
    """What the argument means. Raises ArgumentError or DataError if it means nothing."""
    if init is None:
        return InitSource()
    if isinstance(init, (str, os.PathLike, NamedText, Mapping)):
        values = read_data(init, INITIAL_VALUES)
        return InitSource(given=GivenValues(model, values)) if values.values else InitSource()
    if _is_number(init):
        radius = float(init)  # pyright: ignore[reportArgumentType]
        if not (radius >= 0 and math.isfinite(radius)):
            raise ArgumentError(f"init as a radius must be a finite number, at least 0, found {init}")
        return InitSource(radius)
    try:
        fixed = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{_init_forms(model)}, found {type(init).__name__}") from None
    if isinstance(init, bool) or fixed.shape != (model.param_unc_num(),):
        found = init if isinstance(init, bool) else f"shape {fixed.shape}"
        raise ArgumentError(f"{_init_forms(model)}, found {found}")
    if not np.isfinite(fixed).all():
        position = int(np.flatnonzero(~np.isfinite(fixed))[0])
        name = model.param_unc_names()[position]
        raise ArgumentError(f"init must be finite, found {fixed[position]} for unconstrained '{name}'")
    return InitSource(fixed=fixed)


def _init_forms(model: StanModel) -> str:
    return (
        f"init must be a number (radius), an array of shape ({model.param_unc_num()},) (unconstrained point), "
        "or constrained values by name (mapping, JSON text or path)"
    )


def _is_number(value: object) -> bool:
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf":
        return True
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


@dataclass
class _Refused:
    """Points that did not pass: why, counted; those where the log density is not finite, with it; and the first."""

    tally: FailureTally = field(default_factory=FailureTally)
    not_finite: list[tuple[Vector, float]] = field(default_factory=list[tuple[Vector, float]])
    first: Vector | None = None


def _checked(
    objective: ModelObjective, source: InitSource, seed: int, refused: _Refused, as_sampled: bool
) -> Point | None:
    """The next point if it passes the checks; else it is noted in `refused`."""
    model, tally = objective.model, refused.tally
    try:
        theta = source.draw(model, seed)
        refused.first = theta if refused.first is None else refused.first
        value = 0.0 if as_sampled else model.log_density(theta, propto=False, jacobian=False)
    except Rejection as rejection:
        tally.add_error(rejection)
        return None
    if not math.isfinite(value):
        refused.not_finite.append((theta, value))
        return None
    if as_sampled:
        objective.failures, objective.infinite_at = tally, None
        return objective(theta)
    plain = objective if not objective.jacobian else ModelObjective(model, jacobian=False)
    plain.failures = tally
    point = plain(theta)
    if point is None or plain is objective:
        return point
    objective.failures = FailureTally(JACOBIAN_PREFIX)
    point = objective(theta)
    tally.update(objective.failures)
    return point


def _failure(objective: ModelObjective, source: InitSource, refused: _Refused) -> InitializationError:
    """The error when no point passed. Statements are looked for only now: that takes a trace of each point."""
    tally = refused.tally
    if refused.not_finite:
        objective.model.count_statements(refused.not_finite, tally)
    error = InitializationError(_failure_text(source, tally), tally.reasons, refused.first, objective.jacobian)
    error.model = objective.model
    return error


def _failure_text(source: InitSource, tally: FailureTally) -> str:
    where = source.describe()
    if tally.count == 1:
        return f"initialization failed {where}: {tally.last}"
    return f"initialization failed {where} after {tally.count} attempts:\n{tally.table(tally.count)}\n{ADVICE}"


class GivenValues:
    """Constrained initial values for some of the parameters; the rest is drawn."""

    def __init__(self, model: StanModel, given: DataValues) -> None:
        self.model = model
        parameters = model.parameter_variables()
        chosen = [variable for variable in parameters if variable.name.partition(":")[0] in given.values]
        self.complete = len(chosen) == len(parameters)
        self.source = given.name
        self.values: dict[str, npt.NDArray[Any]] = {}
        self._rejected: set[str] = set()
        if not chosen:
            names = ", ".join(sorted(map(str, given.values)))
            declared = ", ".join(variable.name for variable in parameters)
            raise DataError(
                [f"{given.name}: no initial value is for a parameter of the model ({declared}), found {names}"]
            )

        def store(variable: GlobalVariable, array: npt.NDArray[Any]) -> None:
            self.values[variable.name] = array

        bind_values(chosen, given, lambda variable: variable.dims, store)
        warn_of_unused(given, model.variable_names(), "declared by the program", (v.name for v in parameters))
        wrong = [name for name, array in self.values.items() if not np.isfinite(array).all()]
        if wrong:
            raise DataError([f"{given.name}: the initial value of '{name}' is not finite" for name in wrong])

    def combine(self, theta: Vector) -> Vector:
        """`theta` with the unconstrained form of the given values in their places.

        Raises DataError, with the variable's name, where its value is outside its support whatever else is drawn;
        Rejection where the values drawn for its bounds are to blame.
        """
        drawn = self.model.param_constrain(theta)
        merged = drawn.copy()
        for variable, place in self._places():
            if variable.name in self.values:
                merged[place] = self.values[variable.name]
        try:
            unconstrained = self.model.param_unconstrain(merged)
        except Rejection as rejection:
            raise self._refusal(drawn, rejection) from None
        combined = theta.copy()
        for name, place in unconstrained_positions(self.model.parameter_variables()).items():
            if name in self.values:
                combined[place] = unconstrained[place]
        return combined

    def _places(self) -> Iterator[tuple[GlobalVariable, npt.NDArray[np.intp]]]:
        """Each parameter with the places of its elements in a constrained vector."""
        variables = self.model.parameter_variables()
        positions = output_positions(variables)
        return ((variable, positions[variable.name]) for variable in variables)

    def _refusal(self, drawn: Vector, rejection: Rejection) -> Exception:
        """The error for values that do not fit: with the variable's name, which the program's own does not have."""
        name = self._guilty(drawn, rejection)
        given = name in self.values
        # The same message for two draws: the bounds do not depend on what is drawn.
        if given and (self.complete or str(rejection) in self._rejected):
            reason = _OF_TRANSFORM.sub("it", str(rejection))
            return DataError([f"{self.source}: the initial value of '{name}' is not in its support: {reason}"])
        self._rejected.add(str(rejection))
        whose = f"initial value of '{name}'" if given else f"'{name}', drawn, does not fit the initial values given"
        return Rejection(
            f"{whose}: {rejection.text}",
            rejection.function,
            rejection.file,
            rejection.line,
            rejection.column,
            rejection.values,
        )

    def _guilty(self, drawn: Vector, rejection: Rejection) -> str:
        """The variable whose value is refused at the place of the rejection: the last one that is refused there as NaN.

        One before it may be its bound.
        """
        for variable, place in reversed(list(self._places())):
            broken = drawn.copy()
            broken[place] = math.nan
            try:
                self.model.param_unconstrain(broken)
            except Rejection as found:
                if (found.file, found.line, found.column) == (rejection.file, rejection.line, rejection.column):
                    return variable.name
        return ", ".join(self.values)
