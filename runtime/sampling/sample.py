"""`StanModel.sample`: chains as jobs, on threads or any executor, and the fit that their draws make."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.crew import Crew
from ulam.runtime.errors import (
    ArgumentError,
    DataError,
    InitializationError,
    Rejection,
    SamplingWarning,
    TimeLimit,
    UlamError,
)
from ulam.runtime.interrupts import current_limit, forget_stop, raise_interrupted, stoppable
from ulam.runtime.memory import room_for
from ulam.runtime.named_text import NamedText
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.initial_values import init_text, inits_of_each
from ulam.runtime.parallel_jobs import INTERRUPT, Executor, SharedModel, end_of_limit, run_jobs
from ulam.runtime.sampling.chain import (
    STATISTICS,
    ChainJob,
    ChainProgress,
    ChainRecord,
    PhaseDraws,
    lost_chain,
    run_chain,
    statistics_by_name,
)
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.settings import METRICS, METRICS_OF_NUTPIE, RULES, SamplingSettings, checked_settings

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.sampling.chain_csv import ChainOutput
    from ulam.runtime.sampling.progress import SampleProgress

Vector = npt.NDArray[np.float64]
Progress = Callable[[ChainProgress], None]


def sample(
    model: StanModel,
    *,
    chains: int,
    warmup: int,
    draws: int,
    seed: int,
    init: Any,
    thin: int,
    target_accept: float,
    max_depth: int,
    metric: Any,
    step_size: Any,
    step_size_jitter: float,
    integration_time: float | None,
    adapt: Mapping[str, Any] | None,
    save_warmup: bool,
    keep: bool,
    jobs: int | None,
    executor: Executor | None,
    progress: bool | Progress,
    output: str | os.PathLike[str] | ChainOutput | None,
    time_limit: float | None,
    sampler: str,
    first_chain: int,
) -> SampleFit:
    """Draws from the posterior. See `StanModel.sample`, which has the defaults."""
    options = {
        "chains": chains, "warmup": warmup, "draws": draws, "seed": seed, "thin": thin, "max_depth": max_depth,
        "target_accept": target_accept, "step_size_jitter": step_size_jitter, "integration_time": integration_time,
        "save_warmup": save_warmup, "keep": keep, "first_chain": first_chain,
    }  # fmt: skip
    chains = RULES["chains"].checked("chains", chains)
    kind, metrics = _metric(model, metric, chains, sampler)
    steps = _step_sizes(step_size, chains)
    settings = checked_settings(
        sampler=sampler, metric=kind, adapt=adapt, init=_init_text(init), step_size=steps[0], **options
    )
    if sampler == "nutpie":
        from ulam.runtime.sampling.nutpie_chain import nutpie_library

        nutpie_library()
    if not keep and output is None:
        raise ArgumentError("keep=False keeps no draws: give output, a file for them")
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ArgumentError(f"jobs must be a positive int, found {jobs!r}")
    if jobs is not None and executor is not None:
        raise ArgumentError("jobs is for threads of sample's own: with executor, that has its own number of workers")

    def work() -> SampleFit:
        inits = _inits(model, init, settings, executor)
        return _Sampling(model, settings, inits, metrics, steps, progress, output).run(jobs, executor)

    return stoppable(work, time_limit, kept=True)


def shown_progress(chains: int) -> SampleProgress:
    """The callback that shows how far chains are."""
    from ulam.runtime.sampling.progress import SampleProgress

    return SampleProgress(chains)


class _Sampling:
    """One call of `sample`."""

    def __init__(
        self,
        model: StanModel,
        settings: SamplingSettings,
        inits: list[Any],
        metrics: list[Vector | None],
        steps: list[float | None],
        progress: bool | Progress,
        output: str | os.PathLike[str] | ChainOutput | None,
    ) -> None:
        self.model, self.settings = model, settings
        self.shown = shown_progress(settings.chains) if progress and not callable(progress) else None
        self.callback = progress if callable(progress) else self.shown
        self.lock = Lock()
        self.n = model.param_unc_num()
        self.width = model.output_layout()[0]
        self.rooms = self._rooms()
        crew, shared, ends = Crew(), SharedModel(model), end_of_limit()
        self.crew = crew
        files = _output(output, settings)
        self.jobs = [
            ChainJob(
                shared, settings, k + 1, inits[k], steps[k], metrics[k], crew, ends,
                None if files is None else files.of(k),
                report=self._report if self.callback is not None else None,
                warmup=self.rooms[0][k] if settings.keep else None,
                draws=self.rooms[1][k] if settings.keep else None,
            )
            for k in range(settings.chains)
        ]  # fmt: skip

    def _rooms(self) -> tuple[list[PhaseDraws], list[PhaseDraws]]:
        """For the draws of all chains: parts of arrays that the fit will have whole."""
        settings = self.settings
        if not settings.keep:
            return [], []
        draws = settings.chains * (settings.kept_warmup + settings.kept_draws)
        with room_for(self.model.written_variables(), draws * (self.n + self.width + len(STATISTICS))):
            self.whole = [
                PhaseDraws.room(settings.chains * kept, self.n, self.width)
                for kept in (settings.kept_warmup, settings.kept_draws)
            ]
        kept = (settings.kept_warmup, settings.kept_draws)
        return tuple(  # pyright: ignore[reportReturnType]
            [_part(whole, k * count, count) for k in range(settings.chains)]
            for whole, count in zip(self.whole, kept, strict=True)
        )

    def _report(self, progress: ChainProgress) -> None:
        assert self.callback is not None
        with self.lock:
            self.callback(progress)

    def _ended(self, record: ChainRecord) -> None:
        """A chain has ended, perhaps in another process."""
        if self.callback is not None and record.progress is not None:
            self._report(record.progress)

    def run(self, jobs: int | None, executor: Executor | None) -> SampleFit:
        if executor is None:  # chains would compile in their threads, all but one of them waiting
            self.model.constrain_unit()
            if self.n and self.settings.sampler != "fixed":
                with suppress(Rejection):  # of the data: chains tell of it where they begin
                    self.model.density_gradient_unit()
        try:
            records, rescued = run_jobs(self.jobs, run_chain, lost_chain, self.crew, executor, self._ended, jobs)
        except InitializationError as error:
            error.model = self.model  # which does not come back from other processes
            raise
        finally:
            if self.shown is not None:
                self.shown.close()
        if rescued is not None:
            records += rescued
            known = {record.chain for record in records}
            records += [ChainRecord(job.chain, ended=INTERRUPT) for job in self.jobs if job.chain not in known]
        return self._fit(sorted(records, key=lambda record: record.chain))

    # ------------------------------------------------------------ the fit

    def _fit(self, records: list[ChainRecord]) -> SampleFit:
        settings = self.settings
        lost = [record for record in records if record.lost]
        ended = next((record.ended for record in records if record.ended), "")
        kept = _kept_chains([record.drawn for record in records], settings.kept_draws)
        if not any(record.drawn for record in records) and settings.draws:
            if lost:
                raise UlamError(f"chain {lost[0].chain}: {lost[0].lost}")
            forget_stop()
            limit = current_limit()
            if ended != INTERRUPT and limit is not None:
                raise TimeLimit(limit.seconds)
            raise_interrupted()
        if ended:
            forget_stop()
        missing = _missing_notes(records)
        for note in missing:
            warnings.warn(note, SamplingWarning, stacklevel=2)
        notes = [*_ended_notes(records, kept, settings, ended), *_rejection_notes(records), *missing]
        count = min((records[k].drawn for k in kept), default=0)
        chosen = [records[k] for k in kept]
        warmup = None
        if settings.save_warmup and settings.keep:
            least = min((r.warmup.count for r in chosen if r.warmup is not None), default=0)
            warmup = self._arrays(0, chosen, least)
        points, values, statistics = self._arrays(1, chosen, count)
        metrics = [record.metric for record in chosen]
        return SampleFit(
            model=self.model,
            unconstrained=points,
            values=values,
            statistics=statistics,
            warmup=warmup,
            step_size=np.array([record.step_size for record in chosen]),
            metric=None if any(m is None for m in metrics) else np.array(metrics),
            settings=settings,
            seconds=np.array([record.seconds for record in chosen]).reshape(len(chosen), 2),
            notes=notes,
            ended=ended,
        )

    def _arrays(
        self, which: int, chosen: list[ChainRecord], count: int
    ) -> tuple[Vector, Vector, dict[str, npt.NDArray[Any]]]:
        """Draws of warmup (0) or those after it (1) of these chains, the first `count` of each."""
        settings = self.settings
        if not settings.keep:
            shape = (len(chosen), 0)
            statistics = statistics_by_name(np.empty((*shape, len(STATISTICS))), settings.sampler)
            return np.empty((*shape, self.n)), np.empty((*shape, self.width)), statistics
        whole = self.whole[which]
        length = (settings.kept_warmup, settings.kept_draws)[which]
        for record in chosen:  # of other processes
            found, room = (record.warmup, record.draws)[which], self.rooms[which][record.chain - 1]
            if found is not None and found is not room and found.count:
                n = found.count
                room.append(found.unconstrained[:n], found.values[:n], found.statistics[:n])
        rows = [record.chain - 1 for record in chosen]
        picked: list[Vector] = []
        for table in (whole.unconstrained, whole.values, whole.statistics):
            shaped = table.reshape(settings.chains, length, table.shape[1])
            picked.append(shaped if len(rows) == settings.chains and count == length else shaped[rows, :count].copy())
        return picked[0], picked[1], statistics_by_name(picked[2], settings.sampler)


def _output(output: str | os.PathLike[str] | ChainOutput | None, settings: SamplingSettings) -> ChainOutput | None:
    """The files of all chains. Raises OSError if one could not be written."""
    if output is None:
        return None
    from ulam.runtime.output_files import check_writable
    from ulam.runtime.sampling.chain_csv import ChainOutput, chain_paths

    files = output if isinstance(output, ChainOutput) else ChainOutput(chain_paths(output, settings.chains))
    for path in (*files.paths, *files.latent):
        check_writable(path)
    return files


def _part(whole: PhaseDraws, begin: int, count: int) -> PhaseDraws:
    rows = slice(begin, begin + count)
    return PhaseDraws(whole.unconstrained[rows], whole.values[rows], whole.statistics[rows])


def _kept_chains(drawn: list[int], asked: int) -> list[int]:
    """Of chains that ended at different lengths, those that, cut to the shortest of them, have most draws in all."""
    if all(count == asked for count in drawn):
        return list(range(len(drawn)))
    order = sorted((k for k in range(len(drawn)) if drawn[k]), key=lambda k: (-drawn[k], k))
    best = max(range(len(order) + 1), key=lambda size: size * drawn[order[size - 1]] if size else 0)
    return sorted(order[:best])


def _ended_notes(records: list[ChainRecord], kept: list[int], settings: SamplingSettings, ended: str) -> list[str]:
    notes: list[str] = []
    asked = settings.kept_draws
    count = min((records[k].drawn for k in kept), default=0)
    if ended and (count < asked or len(kept) < settings.chains):
        why = "Interrupted" if ended == INTERRUPT else "The time limit was reached"
        left_out = [str(record.chain) for k, record in enumerate(records) if k not in kept]
        without = f"; chain{'s' if len(left_out) > 1 else ''} {', '.join(left_out)} left out" if left_out else ""
        notes.append(f"{why}: {count} of {asked} draws of each chain{without}.")
    notes += [f"Chain {record.chain} is left out: {record.lost}." for record in records if record.lost]
    return notes


def _rejection_notes(records: list[ChainRecord]) -> list[str]:
    """How often the program rejected, by statement."""
    tally = FailureTally()
    for record in records:
        tally.update(record.rejections)
    if not tally.count:
        return []
    many = "1 proposal was" if tally.count == 1 else f"{tally.count} proposals were"
    return [f"{many} rejected, which may happen now and then, in warmup above all:\n{tally.table(tally.count)}"]


def _missing_notes(records: list[ChainRecord]) -> list[str]:
    """How many draws have no generated quantities, and why."""
    failed, drawn = sum(record.nan_draws for record in records), sum(record.drawn for record in records)
    if not failed:
        return []
    reason = next(record.nan_reason for record in records if record.nan_reason)
    return [f"{failed} of {drawn} draws have NaN in generated quantities, the first for: {reason}."]


# ---------------------------------------------------------------- what the arguments mean


def _init_text(init: Any) -> str:
    if isinstance(init, str) and init == "pathfinder":
        return init
    if hasattr(init, "unconstrained") or hasattr(init, "unconstrained_draws"):
        return "a fit"
    return "values for each chain" if isinstance(init, (list, tuple)) else init_text(init)


def _inits(model: StanModel, init: Any, settings: SamplingSettings, executor: Executor | None) -> list[Any]:
    """Of each chain, what `optimize` takes."""
    chains = settings.chains
    if isinstance(init, str) and init == "pathfinder":
        if not model.param_unc_num():
            return [None] * chains
        from ulam.runtime.sampling.pathfinder import pathfinder_inits

        return list(pathfinder_inits(model, chains, settings.seed, executor=executor))
    if (
        points := getattr(init, "unconstrained", None)
    ) is not None:  # of chains the last draws; of an optimum the point
        array = np.asarray(points)
        if array.ndim == 3 and not array.shape[0] * array.shape[1]:
            raise ArgumentError("init is a fit without draws")
        return [array[k % len(array), -1] if array.ndim == 3 else array for k in range(chains)]
    if (points := getattr(init, "unconstrained_draws", None)) is not None:  # of an approximation: far from each other
        return [points[k * len(points) // chains] for k in range(chains)]
    each = inits_of_each(init, chains, "chains")
    return [init] * chains if each is None else each


def _step_sizes(given: Any, chains: int) -> list[float | None]:
    """Of each chain."""
    if given is None or np.ndim(given) == 0:
        return [given] * chains
    each = np.asarray(given, dtype=np.float64)
    if each.shape != (chains,) or not (each > 0).all() or not np.isfinite(each).all():
        raise ArgumentError(f"step_size must be a positive number, or one for each of {chains} chains, found {given!r}")
    return each.tolist()


def _is_list_of_arrays(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and all(isinstance(entry, np.ndarray) for entry in given)


def _metric(model: StanModel, given: Any, chains: int, sampler: str) -> tuple[str, list[Vector | None]]:
    """The kind of the metric, and the inverse metric that each chain begins with."""
    if isinstance(given, str) and given in (*METRICS, *METRICS_OF_NUTPIE):
        return given, [None] * chains
    if sampler == "nutpie":
        names = ", ".join(map(repr, METRICS_OF_NUTPIE))
        raise ArgumentError(f"sampler='nutpie' takes no metric to begin with: metric must be one of {names}")
    n = model.param_unc_num()
    source = "metric"
    if _is_list_of_arrays(given):
        if len(given) != chains:
            raise ArgumentError(f"metric must be one for each of {chains} chains, found {len(given)}")
        kinds = [_metric(model, entry, 1, sampler) for entry in given]
        if len({kind for kind, _ in kinds}) > 1:
            raise ArgumentError("metric must be diagonal for all chains, or dense")
        return kinds[0][0], [metric for _, (metric,) in kinds]
    if isinstance(given, (str, os.PathLike)):
        source, given = f"metric file '{os.fspath(given)}'", read_metric(given)
    elif hasattr(given, "metric"):
        source, given = "metric of the fit", given.metric
        if given is None:
            return "unit", [None] * chains
        given = np.asarray(given).mean(axis=0)
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(())
    shapes = {(n,): "diag", (chains, n): "diag", (n, n): "dense", (chains, n, n): "dense"}
    if array.shape not in shapes:
        names = ", ".join(map(repr, METRICS))
        raise ArgumentError(
            f"{source} must be {names}, or an inverse metric of shape ({n},) or ({n}, {n}), or one for each chain, "
            f"found {'shape ' + str(array.shape) if array.shape else repr(given)}"
        )
    if not np.isfinite(array).all():
        raise ArgumentError(f"{source} must be finite")
    kind = shapes[array.shape]
    shared = array.shape in ((n,), (n, n))
    return kind, [array if shared else array[k] for k in range(chains)]


def read_metric(path: str | os.PathLike[str] | NamedText) -> Any:
    """`inv_metric` of a JSON file, CmdStan's metric_file."""
    if not isinstance(path, NamedText) and not Path(path).is_file():
        names = ", ".join(map(repr, METRICS))
        raise ArgumentError(f"metric must be {names}, an array, a fit or a file; '{os.fspath(path)}' is none of these")
    try:
        found = json.loads(path.text if isinstance(path, NamedText) else Path(path).read_text(encoding="utf-8"))
    except (ValueError, UnicodeError) as error:
        raise DataError([f"{path}: not JSON: {error}"]) from None
    if not isinstance(found, Mapping) or "inv_metric" not in found:
        raise DataError([f"{path}: no 'inv_metric', which a metric file must have"])
    return found["inv_metric"]
