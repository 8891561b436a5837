"""`ulam.fit_many`: one program, many data sets, on any executor."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ulam.runtime.arguments import random_seed, read_source
from ulam.runtime.cached_compiler import CachedCompiler, with_includes
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.crew import Crew
from ulam.runtime.data import Values
from ulam.runtime.errors import ArgumentError, TimeLimit
from ulam.runtime.interrupts import Limit, current_limit, held, raise_interrupted, stoppable
from ulam.runtime.model import Recipe, StanModel
from ulam.runtime.named_text import NamedText
from ulam.runtime.parallel_jobs import INTERRUPT, end_of_limit
from ulam.runtime.program import compile_errors
from ulam.runtime.studies.data_sets import DataSets
from ulam.runtime.studies.folder import StudyFolder, manifest_of
from ulam.runtime.studies.jobs import Extract, FitPlan, Method, Outcome, check_options
from ulam.runtime.studies.pools import ExecutorChoice, JobPool
from ulam.runtime.studies.progress import StudyDisplay, StudyProgress
from ulam.runtime.studies.runner import StudyRunner
from ulam.runtime.studies.study import Study, StudyError

Source = StanModel | Recipe | str | os.PathLike[str] | NamedText
Progress = bool | Callable[[StudyProgress], None]

ERROR_MODES = ("collect", "raise")


class StudyWarning(UserWarning):
    """Something in the folder of a study is not as it was written."""


def fit_many(
    model: Source,
    datasets: Any,
    method: Method = "sample",
    *,
    seed: int = 1,
    executor: ExecutorChoice = None,
    workers: int | None = None,
    batch: int | None = None,
    progress: Progress = True,
    output: str | os.PathLike[str] | None = None,
    keep: bool = True,
    extract: Extract = None,
    errors: str = "collect",
    time_limit: float | None = None,
    time_limit_each: float | None = None,
    **options: Any,
) -> Study:
    """Fits one program to many data sets: docs/scaling.md.

    `model` is a StanModel, whose own data do not matter, or a program as `StanModel` takes it. `datasets` is a sequence
    of what `StanModel` takes as data, or a mapping of names to it. `method` is "sample", "optimize", "laplace" or
    "pathfinder", with the `options` of each; or a function that is called with a model and `seed=`, and returns arrays
    by name. `seed` gives each fit one of its own, which follows from its place: results do not depend on the executor.

    `executor`: None or "threads", "processes" (a pool of the study's own, of so many `workers`), an executor of
    `concurrent.futures`, loky's, Dask's (`Client.get_executor()`), or anything with `submit`; or a function that makes
    one. `batch`: data sets of each job; None chooses. A data set whose worker is lost runs again, at most twice.

    `extract` chooses what is kept of each fit: names of variables, or a function of the fit that returns numbers and
    arrays by name. `output`: a folder that each result is written to; a study that was interrupted goes on there. With
    `keep=False` results are only there. `errors`: "collect" them, or "raise" the first. `progress`: whether to show
    it, or a callback that is given a `StudyProgress` after each fit. An interrupt (Ctrl-C), or `time_limit` seconds,
    ends the study with what there is; `time_limit_each` is one for each fit, whose end is its error.

    Raises ArgumentError for arguments that cannot be, CompileError for the program, StudyError with `errors="raise"`.
    """
    if errors not in ERROR_MODES:
        raise ArgumentError(f"errors must be one of {', '.join(map(repr, ERROR_MODES))}, found {errors!r}")
    if not keep and output is None:
        raise ArgumentError("keep=False keeps no results: give output, a folder for them")
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
        raise ArgumentError(f"batch must be a positive int, found {batch!r}")
    if time_limit_each is not None:
        Limit.of(time_limit_each)
    if (
        not callable(extract)
        and extract is not None
        and (isinstance(extract, str) or not isinstance(extract, Sequence))
    ):
        raise ArgumentError(f"extract must be names of variables or a function, found {extract!r}")
    check_options(method, options)
    sets = DataSets(datasets, random_seed(seed))
    call = _StudyCall(sets, progress, output, keep, errors)

    def work() -> Study:
        plan = FitPlan(program_of(model), method, options, extract, time_limit_each)
        return call.run(plan, executor, workers, batch)

    return stoppable(work, time_limit, kept=True)


def program_of(model: Source) -> Recipe:
    """What workers make models of: a program with its includes in place, which compiles."""
    if isinstance(model, Recipe):
        return model
    if isinstance(model, StanModel):
        recipe = replace(model.recipe, cache=True)
    else:
        text, filename = read_source(model)
        recipe = Recipe(text, filename, Values("data", {}, False), 1, True, CompileOptions(pieces=True), True)
    text = with_includes(recipe.text, recipe.filename, recipe.options.include_paths)
    recipe = replace(recipe, text=text, options=replace(recipe.options, include_paths=()))
    if not isinstance(model, StanModel):
        with compile_errors():
            held(compiler_of(recipe).metadata)
    return recipe


def compiler_of(recipe: Recipe) -> CachedCompiler:
    """What compiles the program, if it is not in the cache."""
    return CachedCompiler(recipe.text, recipe.filename, recipe.options)


class _StudyCall:
    """One call of `fit_many`."""

    def __init__(
        self, sets: DataSets, progress: Progress, output: str | os.PathLike[str] | None, keep: bool, errors: str
    ) -> None:
        self.sets, self.output, self.keep, self.errors = sets, output, keep, errors
        self.display = StudyDisplay() if progress is True else None
        self.callback = progress if callable(progress) else self.display
        self.before = 0
        self.began = time.monotonic()

    def run(self, plan: FitPlan, executor: ExecutorChoice, workers: int | None, batch: int | None) -> Study:
        folder = None if self.output is None else StudyFolder(self.output, manifest_of(plan, self.sets))
        self.study = Study(
            plan.method_name, len(self.sets), seed=self.sets.seed, recipe=plan.recipe, sets=self.sets, folder=folder
        )
        try:
            self._resume()
            left = [index for index in range(len(self.sets)) if index not in self.study.finished]
            if left:
                self._fit(plan, left, JobPool(executor, workers), batch)
        finally:
            if self.display is not None:
                self.display.close()
            if folder is not None:
                folder.close()
        self.study.seconds = time.monotonic() - self.began
        return self.study

    def _resume(self) -> None:
        """Takes what is in the folder."""
        study = self.study
        if study.folder is None:
            return
        study.finished = set(study.folder.finished())
        self.before = len(study.finished)
        if self.before:
            study.notes.append(f"{self.before} of {len(self.sets)} fits were there from before.")
        for text in study.folder.damaged:
            note = f"{text}; it is made again"
            warnings.warn(note, StudyWarning, stacklevel=2)
            study.notes.append(f"{note}.")
        if self.keep:
            study.records = {index: study.folder.get(index) for index in sorted(study.finished)}

    def _fit(self, plan: FitPlan, left: list[int], pool: JobPool, batch: int | None) -> None:
        crew, ends = Crew(), end_of_limit()
        runner = StudyRunner(pool, plan, self.sets.make, self._take, crew, ends, batch)

        def run() -> str:
            try:
                return runner.run(left)
            finally:
                crew.close()
                pool.close()

        # The locks of pools, and of their futures, are Python's own: an interrupt amid them may leave them broken.
        ended = held(run) if pool.is_pool else run()
        self.study.ended = ended if self.study.missing else ""
        if ended and not self.study.finished and not self.study.errors:
            limit = current_limit()
            if ended == INTERRUPT or limit is None:
                raise_interrupted()
            raise TimeLimit(limit.seconds)

    def _take(self, outcome: Outcome) -> None:
        study, index = self.study, outcome.index
        if study.folder is not None:
            if outcome.record is not None:
                outcome.record.recipe = study._recipe_maker(index)  # pyright: ignore[reportPrivateUsage]
            study.folder.put(outcome, self.sets.name(index))
        if outcome.record is None:
            study.errors[index] = outcome.error
        else:
            study.finished.add(index)
            if self.keep:
                study.records[index] = outcome.record
        if self.callback is not None:
            done = len(study.finished) + len(study.errors)
            seconds = time.monotonic() - self.began
            self.callback(
                StudyProgress(index, outcome.error, done, len(study.errors), len(self.sets), self.before, seconds)
            )
        if outcome.error and self.errors == "raise":
            raise StudyError(f"{self.sets.described(index)}: {outcome.error}", index)
