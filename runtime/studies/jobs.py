"""What a job of a study is: a program, a few data sets, seeds and options; and what it hands back, plain records.

A job can be pickled, and is all that a worker needs: nothing of it is a path or a handle. All random numbers follow
from the seed of a data set's fit, so a record does not depend on where, when and beside which others it was made.
"""

from __future__ import annotations

import inspect
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.crew import Crew
from ulam.runtime.data import Values
from ulam.runtime.errors import ArgumentError, Interrupted, TimeLimit
from ulam.runtime.interrupts import stoppable
from ulam.runtime.model import Recipe, model_of
from ulam.runtime.parallel_jobs import seconds_left
from ulam.runtime.studies.records import FitRecord, parts_of, parts_of_extract, parts_of_mapping

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

METHODS = ("sample", "optimize", "laplace", "pathfinder")
"""Those of `StanModel` that fit; a study may also call a function of the model and a seed."""

Method = str | Callable[..., Any]
Extract = Callable[..., Mapping[str, Any]] | Sequence[str] | None

RESERVED = {
    "executor": "", "progress": "", "output": "", "seed": "", "keep": "", "time_limit": "",
    "jobs": "workers= is how many fits run at a time, each of them in one thread",
    "refresh": "progress= shows how far the study is",
    "file": "progress= shows how far the study is",
}  # fmt: skip
"""Options of the methods that a study has itself, or has no use for."""


@dataclass(frozen=True)
class DataSet:
    """One of the data sets: its place from 0, what messages call it, and the seed of its fit."""

    index: int
    name: str
    values: Values
    seed: int
    about: Any = None
    """What `extract` is given beside the fit."""


@dataclass(frozen=True)
class FitPlan:
    """What is done with each data set."""

    recipe: Recipe
    """The program; its data are those of each data set."""
    method: Method
    options: Mapping[str, Any]
    extract: Extract = None
    limit_each: float | None = None

    @property
    def method_name(self) -> str:
        if isinstance(self.method, str):
            return self.method
        return getattr(self.method, "__qualname__", type(self.method).__qualname__)


@dataclass(frozen=True)
class FitJob:
    """A few data sets, fitted one after the other."""

    plan: FitPlan
    sets: tuple[DataSet, ...]
    crew: Crew
    ends: float | None = None


@dataclass
class Outcome:
    """What became of a data set: a record, or an error. Neither: the study was ended before."""

    index: int
    record: FitRecord | None = None
    error: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class InlineFuture:
    """What was done when it was submitted."""

    value: Any = None
    error: BaseException | None = field(default=None)

    def result(self, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class InlineExecutor:
    """Runs what is submitted at once: what a fit would do on threads is done in the one that it has."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> InlineFuture:
        try:
            return InlineFuture(fn(*args, **kwargs))
        except BaseException as error:
            return InlineFuture(error=error)


def check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Raises ArgumentError for a method that there is not, or an option that it does not have."""
    if callable(method):
        return
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(map(repr, METHODS))}, or a function, found {method!r}")
    known = _known_options(method)
    for name in options:
        if name in RESERVED:
            raise ArgumentError(f"{name} is no option of each fit: {RESERVED[name] or 'it is one of the study'}")
        if name not in known:
            raise ArgumentError(f"{method} has no option {name!r}")


def _known_options(method: str) -> set[str]:
    """The names of a method's options."""
    if method == "sample":
        from ulam.runtime.sampling.sample import sample as function

        extra: set[str] = set()
    elif method == "laplace":
        from ulam.runtime.optimizers.laplace import laplace as function

        extra = set()
    elif method == "pathfinder":
        from dataclasses import fields

        from ulam.runtime.sampling.pathfinder import PathfinderSettings
        from ulam.runtime.sampling.pathfinder import pathfinder as function

        extra = {entry.name for entry in fields(PathfinderSettings)}
    else:
        from ulam.runtime.optimizers.algorithms import ALGORITHMS
        from ulam.runtime.optimizers.optimize import optimize as function

        extra = {name for algorithm in ALGORITHMS.values() for name in algorithm.options.__dataclass_fields__}
    return {*inspect.signature(function).parameters, *extra} - {"model", "options"}


# ---------------------------------------------------------------- on the way


def packed(value: Any, with_functions: bool = False) -> bytes:
    """For another process. Functions go by cloudpickle, where that is installed: then they may be any."""
    if with_functions and find_spec("cloudpickle") is not None:
        import cloudpickle  # pyright: ignore[reportMissingImports]

        return cloudpickle.dumps(value)
    return pickle.dumps(value)


@lru_cache(maxsize=4)
def _unpacked_plan(plan: bytes) -> FitPlan:
    return pickle.loads(plan)


def run_packed_job(plan: bytes, rest: bytes) -> list[Outcome]:
    """What `run_job` returns for a job that comes from another process as bytes.

    Executors differ in what they do if a job cannot be read where it arrives, and some never tell: this raises.
    """
    return run_job(FitJob(_unpacked_plan(plan), *pickle.loads(rest)))


# ---------------------------------------------------------------- in the worker


def run_job(job: FitJob) -> list[Outcome]:
    """Fits the data sets of a job, here or in a worker. An error of one of them is its outcome."""
    return [_fitted(job, each) for each in job.sets]


def _fitted(job: FitJob, data: DataSet) -> Outcome:
    began, cpu_began = time.perf_counter(), time.thread_time()
    plan, outcome = job.plan, Outcome(data.index)
    try:
        outcome.record = job.crew.run(lambda: _limited(plan, data), seconds_left(job.ends))
    except (KeyboardInterrupt, Interrupted):  # of the study
        return outcome
    except TimeLimit as error:
        if job.ends is None or time.time() < job.ends:
            outcome.error = f"TimeLimit: {error}"
    except Exception as error:
        outcome.error = f"{type(error).__name__}: {error}"
    outcome.seconds, outcome.cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu_began
    if outcome.record is not None:
        outcome.record.seconds = outcome.seconds
    return outcome


def _limited(plan: FitPlan, data: DataSet) -> FitRecord:
    return stoppable(lambda: _record(plan, data), plan.limit_each)


def _record(plan: FitPlan, data: DataSet) -> FitRecord:
    """Fits one data set."""
    model = model_of(replace(plan.recipe, values=data.values, seed=data.seed))
    fit = _fit(plan, model, data.seed)
    ended = getattr(fit, "ended", "") or ("interrupt" if getattr(fit, "interrupted", False) else "")
    if ended == "time limit":
        raise TimeLimit(plan.limit_each or 0.0)
    if ended or getattr(fit, "status", "") == "interrupted":
        raise Interrupted
    if plan.extract is not None:
        header, arrays = parts_of_extract(fit, plan.extract, data.about)
    elif callable(plan.method):
        header, arrays = parts_of_mapping(fit, "what the method returns")
    else:
        header, arrays = parts_of(plan.method_name, fit)
    return FitRecord(data.index, data.name, data.seed, plan.method_name, header, arrays)


def _fit(plan: FitPlan, model: StanModel, seed: int) -> Any:
    options = dict(plan.options)
    match plan.method:
        case "sample":
            return model.sample(**options, seed=seed, executor=InlineExecutor(), progress=False)
        case "optimize":
            return model.optimize(**options, seed=seed, executor=InlineExecutor())
        case "pathfinder":
            return model.pathfinder(**options, seed=seed, executor=InlineExecutor())
        case "laplace":
            return model.laplace(**options, seed=seed)
        case _:
            assert callable(plan.method)
            return plan.method(model, seed=seed, **options)


def numpy_seed(seed: int, index: int, stream: int) -> np.random.Generator:
    """A generator of NumPy for work beside the fit of a data set."""
    return np.random.default_rng(np.random.SeedSequence((seed, index, stream)))
