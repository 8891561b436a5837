"""Generated quantities of draws that there are already: of a fit, of arrays, or of CSV files.

The values of a draw are computed in C, without Python in between; its random numbers follow from the seed, the number
of its chain and its own number. With the seed of the fit that the draws are from, they are those of the fit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.crew import Crew
from ulam.runtime.errors import ArgumentError, DataError, Rejection, TimeLimit, UlamError
from ulam.runtime.interrupts import current_limit, forget_stop, raise_interrupted, stoppable
from ulam.runtime.memory import room_for
from ulam.runtime.named_text import NamedText
from ulam.runtime.optimizers.laplace import FEW_DIGITS
from ulam.runtime.parallel_jobs import (
    INTERRUPT,
    Executor,
    SharedModel,
    end_of_limit,
    run_jobs,
    run_until_stopped,
    why_stopped,
)
from ulam.runtime.random_numbers import generator_words
from ulam.runtime.results import facts_text, html_table
from ulam.runtime.sampling.chain import BLOCK_BYTES, BLOCK_DRAWS, QUANTITIES_STREAM, chain_stream, why_nan
from ulam.runtime.sampling.chain_csv import read_chain
from ulam.runtime.sampling.fit import ChainDraws
from ulam.runtime.sampling.model_description import ModelDescription
from ulam.runtime.sampling.native_chain import draw_quantities, numbers_of_draws
from ulam.runtime.sampling.summary import QUANTILES, SummaryTable, summarize

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

SAME_VALUES = 1e-9
"""Parameters of a fit's draws that differ by less, relative to the larger, are those that this model computes."""

COMPARED = 5
"""Draws of which that is asked."""

FORMS = (
    "draws must be a fit, arrays by name of shape (draws, ...) or (chains, draws, ...), or paths of CSV files, "
    "one for each chain"
)

Vector = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.uint64]
_FILES = (str, os.PathLike, NamedText)


class GeneratedQuantities(ChainDraws):
    """What a program computes for given draws: `fit["y_new"]` has the shape (chains, draws, ...).

    Parameters and transformed parameters are there, too. `quantities` are the names of the generated quantities; those
    of a draw that the program rejects are NaN, and `notes` says so. `source` says where the draws are from.
    """

    def __init__(self, model: StanModel, seed: int, source: str, unconstrained: Vector, values: Vector) -> None:
        super().__init__(ModelDescription.of(model), unconstrained, values, {})
        self.seed, self.source = seed, source
        self.n_rejections = 0
        self.notes: list[str] = []
        self.interrupted = False

    @property
    def quantities(self) -> list[str]:
        """Names of the variables of the block generated quantities."""
        return [variable.name for variable in self.about.variables if variable.block == "generated_quantities"]

    def summary(
        self,
        variables: Sequence[str] | None = None,
        *,
        quantiles: Sequence[float] = QUANTILES,
        errors: bool = False,
    ) -> SummaryTable:
        """As of a fit of `sample`; of the generated quantities if no variables are named."""
        return summarize(self, self.quantities if variables is None else variables, quantiles, errors)

    def facts(self) -> list[tuple[str, str]]:
        """How the values were computed."""
        draws = f"{self.n_chains} x {self.n_draws}, of {self.source}"
        return [("draws", draws), *(("note", note) for note in self.notes), ("seed", str(self.seed))]

    def __repr__(self) -> str:
        chains = f"{self.n_chains} chain{'s' if self.n_chains != 1 else ''} of {self.n_draws} draws"
        return f"GeneratedQuantities({self.about.name}: {chains}, of {self.source})"

    def __str__(self) -> str:
        return f"{self.summary()}\n\n{facts_text(self.facts())}"

    def _repr_html_(self) -> str:
        return f"{self.summary()._repr_html_()}\n{html_table(('', ''), self.facts())}"

    def to_csv(self, path: str | os.PathLike[str], *, digits: int | None = None) -> list[Path]:
        """Writes CmdStan's CSV files of the generated quantities, one for each chain, as a fit does with its draws."""
        from ulam.runtime.sampling.chain_csv import write_quantities

        return write_quantities(self, path, digits)


def generate_quantities(
    model: StanModel,
    draws: Any,
    *,
    seed: int | None = None,
    executor: Executor | None = None,
    time_limit: float | None = None,
    first_chain: int | None = None,
    with_warmup: bool = False,
) -> GeneratedQuantities:
    """Computes transformed parameters and generated quantities for draws of the parameters.

    `draws`: a fit of `sample`, `laplace`, `pathfinder` or `optimize`; arrays of the parameters by name, of shape
    (chains, draws, ...) or (draws, ...), an xarray Dataset or what has one as `posterior`; or CSV files, CmdStan's or
    ours, a path or a list with one for each chain. The fit may be one of another program, with the same parameters.
    `seed` is for random numbers, by default the model's; those of the first chain are those of chain `first_chain`, by
    default of the fit's first, or 1. `with_warmup`: draws of warmup that files have come before the others.

    Chains run in threads, or by `executor`. An interrupt (Ctrl-C) keeps the draws that are done, as many of each chain.
    After `time_limit` seconds there is `TimeLimit`, whose `result` has them. Raises DataError if the draws do not fit
    the model, ArgumentError if they are no draws.
    """
    seed = model.seed if seed is None else seed

    def work() -> GeneratedQuantities:
        given = read_draws(model, draws, with_warmup)
        return _generated(model, given, seed, executor, given.first_chain if first_chain is None else first_chain)

    return stoppable(work, time_limit, kept=True)


# ---------------------------------------------------------------- the draws


@dataclass
class GivenDraws:
    """Unconstrained draws (chains, draws, n), the number of each within its chain, and where they are from."""

    points: Vector
    numbers: Numbers
    source: str
    first_chain: int = 1


def read_draws(model: StanModel, draws: Any, with_warmup: bool = False) -> GivenDraws:
    """What the argument `draws` of `generate_quantities` means."""
    if isinstance(draws, _FILES):
        return _of_files(model, [draws], with_warmup)
    if isinstance(draws, (list, tuple)) and draws and all(isinstance(entry, _FILES) for entry in draws):
        return _of_files(model, list(draws), with_warmup)
    if hasattr(draws, "model") and (fit := _of_fit(model, draws)) is not None:
        return fit
    named = getattr(draws, "posterior", draws)
    if isinstance(named, Mapping) or hasattr(named, "data_vars"):
        return _of_arrays(model, named)
    raise ArgumentError(f"{FORMS}; found {type(draws).__name__}")


def _counted(constrained: Vector, model: StanModel, source: str) -> GivenDraws:
    """Draws of constrained parameters, (chains, draws, elements)."""
    chains, count, _ = constrained.shape
    points = np.empty((chains, count, model.param_unc_num()))
    for chain in range(chains):
        for k in range(count):
            try:
                model.param_unconstrain(constrained[chain, k], out=points[chain, k])
            except Rejection as rejection:
                where = f"{source}: chain {chain + 1}, draw {k + 1}" if chains > 1 else f"{source}: draw {k + 1}"
                raise DataError([f"{where}: {rejection}; {FEW_DIGITS}"]) from None
    return GivenDraws(points, np.arange(count, dtype=np.uint64), source)


def _of_files(
    model: StanModel, paths: Sequence[str | os.PathLike[str] | NamedText], with_warmup: bool
) -> GivenDraws:
    tables: list[Vector] = []
    phases: set[tuple[int, str]] = set()
    names, problems = model.param_names(), list[str]()
    for path in paths:
        file = read_chain(path)
        try:
            tables.append(file.columns(names, with_warmup))
        except DataError as error:
            problems += [f"{problem}, which the model's parameters have" for problem in error.problems]
            continue
        phases.add((len(file.warmup) if with_warmup else 0, file.settings.get("thin", "1")))
        if not len(tables[-1]):
            problems.append(f"{file.path}: no draws")
    if problems:
        raise DataError(problems)
    if len({len(table) for table in tables}) > 1:
        counts = ", ".join(f"{len(table)} in {path}" for table, path in zip(tables, paths, strict=True))
        raise DataError([f"chains must have as many draws each, found {counts}"])
    given = _counted(np.stack(tables), model, ", ".join(map(str, paths)))
    if len(phases) == 1:  # else they are files of different runs
        ((warmup, text),) = phases
        thin = int(text) if text.isdecimal() else 1
        before, after = numbers_of_draws(warmup, thin, "warmup"), len(tables[0]) - warmup
        given.numbers = np.concatenate([before, numbers_of_draws(after, thin, "sampling")])
    return given


def _of_fit(model: StanModel, fit: Any) -> GivenDraws | None:
    """Draws of a result of ours; None if it is none."""
    points = getattr(fit, "unconstrained_draws", getattr(fit, "unconstrained", None))
    if not isinstance(points, np.ndarray) or points.ndim not in (1, 2, 3):
        return None
    values = next((v for name in ("values", "constrained_draws", "constrained")
                   if isinstance(v := getattr(fit, name, None), np.ndarray)), None)  # fmt: skip
    if values is None:
        return None
    count = model.param_num()
    leading = (1,) * (3 - points.ndim)
    points, values = points.reshape((*leading, *points.shape)), values.reshape((*leading, *values.shape))
    theirs = {variable.name: variable.dims for variable in fit.model.parameter_variables()}
    ours = {variable.name: variable.dims for variable in model.parameter_variables()}
    if theirs != ours or list(theirs) != list(ours):
        wrong = [f"{name} {list(dims)}" for name, dims in ours.items() if theirs.get(name) != dims]
        raise DataError(
            [f"the fit has other parameters: {', '.join(theirs)}; the model has {', '.join(wrong or ours)}"]
        )
    settings = getattr(fit, "settings", None)
    thin, first = int(getattr(settings, "thin", 1)), int(getattr(settings, "first_chain", 1))
    numbers = np.arange(points.shape[1], dtype=np.uint64) * np.uint64(thin)
    source = f"a {type(fit).__name__} of {fit.model.name()}"
    if fit.model is model or _same_values(model, points, values[..., :count]):
        return GivenDraws(np.ascontiguousarray(points), numbers, source, first)
    given = _counted(values[..., :count], model, source)
    return GivenDraws(given.points, numbers, source, first)


def _same_values(model: StanModel, points: Vector, values: Vector) -> bool:
    """Whether the model's transforms are those that the fit's draws are from."""
    if points.shape[-1] != model.param_unc_num():
        return False
    flat, expected = points.reshape(-1, points.shape[-1]), values.reshape(-1, values.shape[-1])
    for k in np.linspace(0, len(flat) - 1, min(COMPARED, len(flat))).astype(int):
        if not np.allclose(model.param_constrain(flat[k]), expected[k], rtol=SAME_VALUES, atol=SAME_VALUES):
            return False
    return True


def _of_arrays(model: StanModel, named: Any) -> GivenDraws:
    """Arrays by name, with one or two dimensions of draws before those of the variable."""
    parts: list[Vector] = []
    leading: set[tuple[int, ...]] = set()
    problems: list[str] = []
    for variable in model.parameter_variables():
        if variable.name not in named:
            problems.append(f"draws: no array for parameter '{variable.name}'")
            continue
        array = np.asarray(named[variable.name], dtype=np.float64)
        extra = array.ndim - variable.n_dims
        if extra not in (1, 2) or array.shape[extra:] != variable.dims:
            wanted = ", ".join(map(str, variable.dims))
            problems.append(
                f"draws: '{variable.name}' must have shape ([chains,] draws{', ' if wanted else ''}{wanted}), "
                f"found {array.shape}"
            )
            continue
        leading.add(array.shape[:extra])
        # The elements in the order of `param_names`: column-major over the variable's own dimensions.
        inner = np.arange(extra, array.ndim)
        flat = array.transpose((*range(extra), *inner[::-1])).reshape((*array.shape[:extra], -1))
        parts.append(flat[np.newaxis] if extra == 1 else flat)
    if not problems and len(leading) > 1:
        problems.append(f"draws: arrays have different numbers of chains and draws: {', '.join(map(str, leading))}")
    if problems:
        raise DataError(problems)
    if not parts:
        raise DataError(["draws: the model has no parameters; sample it instead"])
    return _counted(np.concatenate(parts, axis=-1), model, "arrays by name")


# ---------------------------------------------------------------- what is computed


@dataclass
class QuantitiesJob:
    """The draws of a chain, and what their quantities need."""

    shared: SharedModel
    chain: int
    points: Vector
    numbers: Numbers
    seed: int
    crew: Crew
    ends: float | None


@dataclass
class ChainQuantities:
    """Values of the first draws of a chain, and how many failed. `ended`: why it was stopped, if it was; `lost`: why
    nothing is known."""

    chain: int
    values: Vector | None = None
    failed: int = 0
    reason: str = ""
    ended: str = ""
    lost: str = ""


def run_quantities(job: QuantitiesJob) -> ChainQuantities:
    """Computes the values of a chain's draws, here or in a worker."""
    found = ChainQuantities(job.chain)
    if why := run_until_stopped(job.crew, job.ends, lambda: _compute(job, found)):
        found.ended = why
    return found


def _lost(job: QuantitiesJob, reason: str) -> ChainQuantities:
    return ChainQuantities(job.chain, lost=reason)


def _compute(job: QuantitiesJob, found: ChainQuantities) -> None:
    model = job.shared.model
    unit, context = model.constrain_unit(), model.new_context()
    width, order = model.output_layout()
    count, n = job.points.shape
    generator = generator_words(job.seed, chain_stream(job.chain, QUANTITIES_STREAM))
    with room_for(model.written_variables(), count * width):
        values = np.empty((count, width))
    model.enter_phase(context, "generated quantities")
    size = max(1, min(BLOCK_DRAWS, BLOCK_BYTES // (8 * max(width, n, 1))))
    for begin in range(0, count, size):
        rows = slice(begin, min(begin + size, count))
        done, failed = draw_quantities(
            context, unit, generator, job.points[rows], job.numbers[rows], values[rows]
        )  # fmt: skip
        model.show_output(context)
        found.failed += len(failed)
        if failed and not found.reason:
            row = begin + min(failed)
            found.reason = why_nan(model, job.seed, job.chain, int(job.numbers[row]), job.points[row])
        if order is not None:
            values[rows] = values[rows][:, order]
        found.values = values[: begin + done]
        if begin + done < rows.stop:
            found.ended = why_stopped()
            return


def _generated(
    model: StanModel, given: GivenDraws, seed: int, executor: Executor | None, first_chain: int
) -> GeneratedQuantities:
    crew, shared, ends = Crew(), SharedModel(model), end_of_limit()
    chains, count, _ = given.points.shape
    jobs = [
        QuantitiesJob(shared, k + first_chain, np.ascontiguousarray(given.points[k]), given.numbers, seed, crew, ends)
        for k in range(chains)
    ]
    found, rescued = run_jobs(jobs, run_quantities, _lost, crew, executor)
    interrupted = rescued is not None or any(chain.ended == INTERRUPT for chain in found)
    found += rescued or []
    ended = interrupted or any(chain.ended for chain in found)
    lost = next((chain for chain in found if chain.lost), None)
    if lost is not None and not ended:
        raise UlamError(f"chain {lost.chain}: {lost.lost}")
    limit = current_limit() if ended and not interrupted else None
    if ended:
        forget_stop()
    done = min((0 if chain.values is None else len(chain.values) for chain in found), default=0)
    if ended and (not done or len(found) < chains):
        if limit is not None:
            raise TimeLimit(limit.seconds)
        raise_interrupted()
    values = np.stack([chain.values[:done] for chain in found if chain.values is not None])
    failed = sum(chain.failed for chain in found)
    notes = [f"Interrupted: {done} of {count} draws of each chain."] if ended else []
    if failed:
        reason = next(chain.reason for chain in found if chain.reason)
        notes.append(f"{failed} of {values.shape[0] * done} draws have NaN, the first for: {reason}.")
    result = GeneratedQuantities(model, seed, given.source, given.points[:, :done], values)
    result.n_rejections, result.notes, result.interrupted = failed, notes, ended
    if limit is not None:
        raise TimeLimit(limit.seconds, result)
    return result
