"""`ulam.sbc`: simulation-based calibration. Ranks of what data were simulated from, among the draws given these data.

Talts, Betancourt, Simpson, Vehtari and Gelman (2018), "Validating Bayesian inference algorithms with simulation-based
calibration", arXiv 1804.06788. If parameters come from the prior and data from them, each rank is equally likely.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulam.runtime.arguments import random_seed
from ulam.runtime.errors import ArgumentError, UlamError
from ulam.runtime.interrupts import stoppable
from ulam.runtime.model import Recipe, StanModel
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import bracket_name
from ulam.runtime.parallel_jobs import job_seed
from ulam.runtime.studies.calibration import CalibrationResult
from ulam.runtime.studies.data_sets import AnnotatedSets
from ulam.runtime.studies.fit_many import Source, compiler_of, fit_many, program_of
from ulam.runtime.studies.jobs import numpy_seed

Simulation = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Data, and the values that they are from."""
Simulator = Callable[[np.random.Generator], Simulation]

SIMULATION_STREAM, TIES_STREAM = 1, 2
"""Of the random numbers beside a fit."""

THIN = 10
"""Draws that a rank is among should be nearly independent."""

CONSTANT = 1e-12
"""Relative: a quantity that varies less is a constant."""


@dataclass(frozen=True)
class RanksOf:
    """What is kept of a fit: of each quantity how many draws are below its value, how many equal to it, and how many
    there are.

    `less_than`: the variable whose elements say of each draw whether it is below, instead of values.
    """

    less_than: str | None = None

    def __call__(self, fit: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        table = np.asarray(fit.values if hasattr(fit, "values") else fit.constrained_draws)
        columns = dict(zip(fit.names, table.reshape(-1, table.shape[-1]).T, strict=True))
        if self.less_than is not None:
            return _indicated(columns, self.less_than)
        found: dict[str, Any] = {}
        for name, value in elements_of(values).items():
            if name not in columns:
                known = ", ".join(dict.fromkeys(each.partition(".")[0] for each in columns))
                raise ArgumentError(
                    f"'{bracket_name(name)}' was simulated, and the model does not have it; it has {known}"
                )
            found[name] = _counted(name, columns[name], value)
        return found


def elements_of(values: Mapping[str, Any]) -> dict[str, float]:
    """The elements of variables by the names that fits have for them; names of elements stay."""
    found: dict[str, float] = {}
    for name, value in values.items():
        array = np.asarray(value, dtype=np.float64)
        for index in np.ndindex(array.shape):
            found[".".join([_dotted(name), *(str(k + 1) for k in index)])] = float(array[index])
    return found


def _dotted(name: str) -> str:
    """`theta.2.1` for `theta[2,1]`."""
    return name.rstrip("]").replace("[", ".").replace(",", ".").replace(" ", "")


def _counted(name: str, drawn: Any, value: float) -> Any:
    if np.isnan(drawn).any() or math.isnan(value):
        raise UlamError(
            f"'{bracket_name(name)}' is NaN in {'some draws' if not math.isnan(value) else 'the simulation'}"
        )
    if float(np.ptp(drawn)) <= CONSTANT * abs(value) and abs(drawn[0] - value) <= CONSTANT * abs(value):
        return np.array([0, drawn.size, drawn.size])  # as the diagonal of a correlation matrix, but for rounding
    return np.array([(drawn < value).sum(), (drawn == value).sum(), drawn.size])


def _indicated(columns: Mapping[str, Any], variable: str) -> dict[str, Any]:
    found = {name: drawn for name, drawn in columns.items() if name.partition(".")[0] == variable}
    if not found:
        raise ArgumentError(f"the model has no {variable!r}, which less_than names")
    for drawn in found.values():
        if not np.isin(drawn, (0, 1)).all():
            raise ArgumentError(f"less_than={variable!r} must be 1 in draws below what was simulated, and 0 in others")
    return {name: np.array([drawn.sum(), 0, drawn.size], dtype=np.int64) for name, drawn in found.items()}


def sbc(
    model: Source,
    simulate: Simulator | Source | None = None,
    n: int = 200,
    *,
    data: Any = None,
    less_than: str | None = None,
    quantities: Sequence[str] | None = None,
    risk: float = 0.05,
    method: str = "sample",
    seed: int = 1,
    **options: Any,
) -> CalibrationResult:
    """Simulation-based calibration with `n` simulations: docs/scaling.md.

    `simulate` is one of

    - a function of a `numpy.random.Generator` that returns data, and by name the values of parameters, transformed
      parameters or generated quantities that these data are from;
    - a program without parameters (as `model`, with `data`) whose generated quantities are data of the model, and
      quantities of it by their names;
    - None: the program simulates in its transformed data, and `less_than` names the generated quantity that is 1 in
      draws below the simulated value, an element for each quantity. `data` are its data.

    `quantities`: which to look at, all if not given. Further options are those of `fit_many` (`executor`, `output`,
    `progress`, ...) and of the method. With `sample` there is one chain, of which every tenth draw counts, unless
    `chains`, `draws` and `thin` say otherwise. `risk` is the probability that a right program leaves a band anywhere.

    Raises ArgumentError for what the simulation does not fit.
    """
    for name in ("extract", "keep", "errors"):
        if name in options:
            raise ArgumentError(f"{name} is no option of sbc: ranks are kept of each fit")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ArgumentError(f"n must be a positive int, found {n!r}")
    if not 0 < risk < 1:
        raise ArgumentError(f"risk must be a number between 0 and 1, found {risk!r}")
    if method not in ("sample", "laplace", "pathfinder"):
        raise ArgumentError(f"method must have draws, 'sample', 'laplace' or 'pathfinder', found {method!r}")
    if (simulate is None) == (less_than is None):
        raise ArgumentError("either simulate is given, or less_than for a program that simulates in transformed data")
    random_seed(seed)
    if method == "sample":
        options = {"chains": 1, "thin": THIN, **options}

    def work() -> CalibrationResult:
        plan = program_of(model)
        pairs = _simulated(simulate, plan, n, data, seed)
        if quantities is not None:
            pairs = [(given, _chosen(values, quantities)) for given, values in pairs]
        datasets = AnnotatedSets([given for given, _ in pairs], [values for _, values in pairs])
        study = fit_many(plan, datasets, method, seed=seed, extract=RanksOf(less_than), **options)
        return CalibrationResult.of(study, risk, numpy_seed(seed, 0, TIES_STREAM))

    return stoppable(work, kept=True)


def _chosen(values: Mapping[str, Any], quantities: Sequence[str]) -> dict[str, Any]:
    for name in quantities:
        if name not in values:
            raise ArgumentError(f"quantities has {name!r}, which is not simulated; that are {', '.join(values)}")
    return {name: values[name] for name in quantities}


def _simulated(simulate: Any, model: Recipe, n: int, data: Any, seed: int) -> list[Simulation]:
    """For each simulation the data, and the values that they are from."""
    if simulate is None:
        return [({} if data is None else data, {})] * n
    if isinstance(simulate, (StanModel, str, os.PathLike, NamedText)):
        return _by_program(simulate, model, n, data, seed)
    if data is not None:
        raise ArgumentError("data is for programs that simulate; a function returns them")
    pairs = [simulate(numpy_seed(seed, index, SIMULATION_STREAM)) for index in range(n)]
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ArgumentError("simulate must return two mappings: data, and the values that they are from")
    return pairs


def _by_program(simulate: Any, model: Recipe, n: int, data: Any, seed: int) -> list[Simulation]:
    """Of the generated quantities of a program: each draw is a simulation."""
    program = simulate if isinstance(simulate, StanModel) else StanModel(simulate, data=data, seed=seed)
    if program.param_unc_num():
        raise ArgumentError("a program that simulates has no parameters: all is drawn in generated quantities")
    drawn = program.sample(chains=1, warmup=0, draws=n, seed=job_seed(seed, SIMULATION_STREAM + 1), progress=False)
    integers = {variable.name for variable in program.written_variables() if variable.element == "int"}
    blocks = {entry["name"]: entry["block"] for entry in compiler_of(model).metadata()["globals"]}
    given = {name: value for name, value in program.bound_values().items() if blocks.get(name) == "data"}
    simulations: list[Simulation] = []
    for k in range(n):
        data_of, values = dict(given), dict[str, Any]()
        for name, array in drawn.draws.items():
            if blocks.get(name) == "data":
                data_of[name] = array[0, k].astype(np.int64) if name in integers else array[0, k]
            elif name in blocks:
                values[name] = array[0, k]
        simulations.append((data_of, values))
    if not simulations[0][1]:
        raise ArgumentError("the program that simulates has no generated quantity by the name of one of the model")
    return simulations
