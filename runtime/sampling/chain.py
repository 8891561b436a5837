"""One chain as a job: from a record that can be pickled to its draws.

The chain runs in C, without Python, and hands over blocks of draws; here they become values of the program's variables,
again in C, and are kept, or written to a file. All random numbers follow from the run's seed, the number of the chain
and, for generated quantities, the number of the draw.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.library.statuses import REJECTION, STOPPED
from ulam.runtime.crew import Crew
from ulam.runtime.errors import FatalError, ProgramError, Rejection, UlamError
from ulam.runtime.native import Rng
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.initial_values import Init, initial_point
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.parallel_jobs import SharedModel, run_until_stopped, why_stopped
from ulam.runtime.random_numbers import generator_words
from ulam.runtime.sampling.native_chain import STATISTICS, ChainBlock, NativeChain, draw_quantities
from ulam.runtime.sampling.settings import SamplingSettings

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.program import Unit
    from ulam.runtime.sampling.chain_csv import ChainOutput, CsvStream
    from ulam.runtime.sampling.nutpie_chain import NutpieChain

Vector = npt.NDArray[np.float64]

BLOCK_DRAWS = 1000
BLOCK_SECONDS = 0.5
"""A block of draws ends after so many, or after so long."""
BLOCK_BYTES = 64 << 20
"""And before its values would need more memory than this, if it has more than one draw."""
LOCATED = 100
"""Of so many rejections of a chain the statement is looked for; those after them are told by their sites."""

PROFILED_AS = {"warmup": "warm-up", "sampling": "sampling"}
"""The phase of a profile, by the chain's."""

INIT_STREAM, TRAJECTORY_STREAM, QUANTITIES_STREAM, _STREAMS = 0, 1, 2, 8


def chain_stream(chain: int, kind: int) -> int:
    """The stream of the run's seed for random numbers of this kind, of a chain counted from 1."""
    return _STREAMS * chain + kind


def quantities_rng(seed: int, chain: int, draw: int) -> Rng:
    """What generated quantities of a draw are drawn from: `draw` counts iterations after warmup, from 0."""
    rng = Rng(seed, chain_stream(chain, QUANTITIES_STREAM))
    rng.generator = rng.generator.jumped(draw)
    rng.bitgen = rng.generator.ctypes.bit_generator.value
    return rng


def why_nan(model: StanModel, seed: int, chain: int, draw: int, point: Vector) -> str:
    """Why the values of a draw are NaN; `draw` as of `quantities_rng`."""
    try:
        model.param_constrain(point, include_tp=True, include_gq=True, rng=quantities_rng(seed, chain, draw))
    except UlamError as error:
        return str(error)
    return "an error that did not come again"


@dataclass(frozen=True)
class ChainProgress:
    """How far a chain is. `iteration` of `iterations` counts warmup, too; `divergences` are those after warmup.

    `phase` is "warmup", "sampling" or "done". `draws_per_second`: iterations of this phase so far.
    """

    chain: int
    phase: str
    iteration: int
    iterations: int
    draws_per_second: float
    step_size: float
    depth: int
    divergences: int
    gradients: int
    rejections: int
    seconds: float


Report = Callable[[ChainProgress], None]


@dataclass
class PhaseDraws:
    """Room for the draws of one phase of one chain; the first `count` rows are there."""

    unconstrained: Vector
    values: Vector
    statistics: Vector
    count: int = 0

    def __getstate__(self) -> dict[str, Any]:
        """Without the room that is empty."""
        arrays = {name: getattr(self, name)[: self.count] for name in ("unconstrained", "values", "statistics")}
        return arrays | {"count": self.count}

    @staticmethod
    def room(draws: int, unconstrained: int, values: int) -> PhaseDraws:
        """For so many draws."""
        return PhaseDraws(
            np.empty((draws, unconstrained)), np.empty((draws, values)), np.empty((draws, len(STATISTICS)))
        )

    def append(self, points: Vector, values: Vector, statistics: Vector) -> None:
        rows = slice(self.count, self.count + len(points))
        self.unconstrained[rows], self.values[rows], self.statistics[rows] = points, values, statistics
        self.count += len(points)


@dataclass
class ChainJob:
    """What a chain needs. `warmup` and `draws`: where its draws go, if not to arrays of its own; not pickled."""

    shared: SharedModel
    settings: SamplingSettings
    chain: int
    init: Init
    step_size: float | None
    inverse_metric: Vector | None
    crew: Crew
    ends: float | None = None
    output: ChainOutput | None = None
    """The file of this chain."""
    report: Report | None = None
    warmup: PhaseDraws | None = None
    draws: PhaseDraws | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"report": None, "warmup": None, "draws": None}


@dataclass
class ChainRecord:
    """What a chain has done. `ended`: why it ended before its last draw, if it did; `lost`: why nothing is known."""

    chain: int
    warmup: PhaseDraws | None = None
    draws: PhaseDraws | None = None
    drawn: int = 0
    step_size: float = float("nan")
    metric: Vector | None = None
    seconds: tuple[float, float] = (0.0, 0.0)
    gradients: int = 0
    divergences: int = 0
    at_max_depth: int = 0
    rejections: FailureTally = field(default_factory=FailureTally)
    nan_draws: int = 0
    nan_reason: str = ""
    ended: str = ""
    lost: str = ""
    progress: ChainProgress | None = None
    """The last one, if nobody was told of it: callbacks do not go to other processes."""


def run_chain(job: ChainJob) -> ChainRecord:
    """Runs one chain, here or in a worker. An error of one chain ends all of them."""
    record = ChainRecord(job.chain)
    if why := run_until_stopped(job.crew, job.ends, lambda: _Run(job, record).go()):  # before there was a chain
        record.ended = why
    return record


def lost_chain(job: ChainJob, reason: str) -> ChainRecord:
    """The record of a chain whose worker was lost."""
    return ChainRecord(job.chain, lost=reason)


class _Run:
    """One chain at work."""

    def __init__(self, job: ChainJob, record: ChainRecord) -> None:
        self.job, self.settings, self.record = job, job.settings, record
        self.number = job.chain + job.settings.first_chain - 1  # of its random numbers
        self.model: StanModel = job.shared.model
        self.context = self.model.new_context()
        self.known: dict[int, ProgramError] = {}  # rejections by site
        self.file: CsvStream | None = None
        self.latent: CsvStream | None = None
        self.generator = generator_words(self.settings.seed, chain_stream(self.number, QUANTITIES_STREAM))

    def go(self) -> None:
        """To the last draw, or until it is stopped."""
        job, settings, model = self.job, self.settings, self.model
        is_fixed = settings.sampler == "fixed" or not model.param_unc_num()
        self.unit = None if is_fixed else self._density()
        self.constrain = model.constrain_unit()
        width, self.order = model.output_layout()
        if settings.keep:
            self.record.warmup = job.warmup or PhaseDraws.room(settings.kept_warmup, model.param_unc_num(), width)
            self.record.draws = job.draws or PhaseDraws.room(settings.kept_draws, model.param_unc_num(), width)
        capacity = max(1, min(BLOCK_DRAWS, BLOCK_BYTES // (8 * max(width, model.param_unc_num(), 1))))
        self.values = np.empty((capacity, width))
        self.chain = self._made(capacity)
        self.began = self.phase_began = time.perf_counter()
        try:
            if job.output is not None:
                self._open(job.output)
            self._iterate()
            self._finish()
        finally:
            for file in self._files():
                file.close()

    def _density(self) -> Unit:
        """What is called at each step. Raises InitializationError where data are refused: no point has a density."""
        try:
            return self.model.density_gradient_unit()
        except Rejection:
            self._start()
            raise

    def _made(self, capacity: int) -> NativeChain | NutpieChain:
        """The chain, at its first point."""
        job, settings, stream = self.job, self.settings, chain_stream(self.number, TRAJECTORY_STREAM)
        if settings.sampler == "nutpie" and self.unit is not None:
            from ulam.runtime.sampling.nutpie_chain import NutpieChain

            return NutpieChain(settings, self.model, self._start(), job.step_size, stream, capacity)
        return NativeChain(
            settings, self.unit, self.context, self._start(), job.inverse_metric, job.step_size, stream, capacity
        )

    def _open(self, output: ChainOutput) -> None:
        from ulam.runtime.cmdstan_csv import CsvForm
        from ulam.runtime.sampling.chain_csv import ChainTable, CsvStream, comments, statistics_of

        model, settings, is_fixed = self.model, self.settings, self.unit is None
        names = model.param_names(include_tp=True, include_gq=True)
        columns, (path,) = statistics_of(settings.sampler, is_fixed), output.paths
        form = output.form or CsvForm(tuple(comments(settings, model.name(), path, self.number, is_fixed)))
        self.file = CsvStream(path, ChainTable(form, columns, names))
        if output.latent:
            unconstrained = model.param_unc_names()
            names = [*unconstrained, *(f"g_{name}" for name in unconstrained)]
            self.latent = CsvStream(output.latent[0], ChainTable(form, columns, names))

    def _files(self) -> list[CsvStream]:
        """What is written."""
        return [file for file in (self.file, self.latent) if file is not None]

    def _start(self) -> Vector:
        """The first point."""
        objective = ModelObjective(self.model, jacobian=True)
        if not self.model.param_unc_num():
            return np.empty(0)
        stream = chain_stream(self.number, INIT_STREAM)
        point = initial_point(objective, self.job.init, self.settings.seed, stream, as_sampled=True)
        return point.x

    def _iterate(self) -> None:
        chain, record = self.chain, self.record
        if chain.phase != "warmup":
            self._adapted()
        while chain.phase != "done" and (not record.ended or chain.is_pending):
            self.model.enter_phase(self.context, PROFILED_AS[chain.phase])
            block = chain.run(BLOCK_SECONDS)
            self.model.show_output(self.context)
            self._take(block)
            self._count_failures(block)
            if (error := chain.error(block.status)) is not None:
                raise error
            if block.status == STOPPED:
                self._stopped()
            if block.phase != chain.phase:
                self._time(block.phase)
                if block.phase == "warmup":
                    self._adapted()
            self._report()

    def _adapted(self) -> None:
        """Warmup is over."""
        record, unit_metric = self.record, self.settings.metric == "unit" or self.unit is None
        record.step_size = self.chain.state.step_size
        record.metric = None if unit_metric else self.chain.metric()
        for file in self._files() if self.unit is not None else ():
            file.adapted(record.step_size, record.metric)

    def _take(self, block: ChainBlock) -> None:
        """Computes what the draws of the block stand for, and keeps it."""
        if not len(block.points):
            return
        done, failed = self._quantities(block)
        points, statistics, values = block.points[:done], block.statistics[:done], self.values[:done]
        values = values if self.order is None else values[:, self.order]
        room = self.record.warmup if block.phase == "warmup" else self.record.draws
        if self.file is not None:
            self.file.append(values, statistics_by_name(statistics, self.settings.sampler))
        if self.latent is not None:
            gradients = [self.model.log_density_gradient(point)[1] for point in points]
            latent = np.concatenate([points, np.reshape(gradients, points.shape)], axis=1)
            self.latent.append(latent, statistics_by_name(statistics, self.settings.sampler))
        if room is not None:
            room.append(points, values, statistics)
        if block.phase != "warmup":
            self.record.drawn += done
        if failed and block.phase != "warmup":
            self.record.nan_draws += len(failed)
            if not self.record.nan_reason:
                row = min(failed)
                number = int(block.numbers[row])
                self.record.nan_reason = why_nan(self.model, self.settings.seed, self.number, number, points[row])

    def _quantities(self, block: ChainBlock) -> tuple[int, dict[int, int]]:
        self.model.enter_phase(self.context, "generated quantities")
        done, failed = draw_quantities(
            self.context, self.constrain, self.generator, block.points, block.numbers, self.values
        )
        self.model.show_output(self.context)
        if done < len(block.points):
            self._stopped()
        return done, failed

    def _count_failures(self, block: ChainBlock) -> None:
        tally = self.record.rejections
        for status, site, point in block.failed:
            error = None
            if tally.count >= LOCATED and status == REJECTION:
                error = self.known.get(site)
            if error is None:
                error = self.known[site] = self.model.density_error(point, status)
            if isinstance(error, FatalError):
                raise error
            tally.add_error(error)

    def _stopped(self) -> None:
        """The chain ends with the draws it has."""
        if not self.record.ended:
            self.record.ended = why_stopped()

    def _report(self) -> None:
        record, state, settings = self.record, self.chain.state, self.settings
        record.gradients, record.divergences, record.at_max_depth = (
            state.gradients, state.divergences, state.at_max_depth,
        )  # fmt: skip
        phase = self.chain.phase
        before = settings.warmup if phase == "sampling" and self.unit is not None else 0
        elapsed = max(time.perf_counter() - self.phase_began, 1e-9)
        iterations = settings.draws + (settings.warmup if self.unit is not None else 0)
        if phase == "done":
            before, elapsed = iterations - settings.draws, max(record.seconds[1], 1e-9)
        now = ChainProgress(
            self.job.chain, phase, state.iteration, iterations, (state.iteration - before) / elapsed,
            state.step_size, state.depth, state.divergences, state.gradients, state.failed,
            time.perf_counter() - self.began,
        )  # fmt: skip
        if self.job.report is None:
            record.progress = now
        else:
            self.job.report(now)

    def _time(self, phase: str) -> None:
        """The phase is over."""
        now = time.perf_counter()
        seconds = now - self.phase_began
        self.record.seconds = (seconds, 0.0) if phase == "warmup" else (self.record.seconds[0], seconds)
        self.phase_began = now

    def _finish(self) -> None:
        record = self.record
        if record.ended and self.chain.phase != "done":
            self._time(self.chain.phase)
        remark = f"Ended by the {record.ended} after {record.drawn} draws."
        for file in self._files():
            file.finish(record.seconds, [remark] if record.ended else [])


def statistics_by_name(table: Vector, sampler: str) -> dict[str, npt.NDArray[Any]]:
    """The columns of a table of statistics, of the last axis: counts as ints, `divergent` as bools."""
    found: dict[str, npt.NDArray[Any]] = {name: table[..., k] for k, name in enumerate(STATISTICS)}
    for name in ("treedepth", "n_leapfrog"):
        found[name] = found[name].astype(np.int64)
    found["divergent"] = found["divergent"] != 0
    if sampler == "hmc":
        found["int_time"] = found["stepsize"] * found["n_leapfrog"]
    return found
