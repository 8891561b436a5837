"""A chain of the C runtime (c/sampling/chain.h): its settings, its blocks of draws, its state."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ulam.library.statuses import OK, STOPPED
from ulam.runtime.c_library import freed_by, library
from ulam.runtime.errors import ArgumentError, SamplingError
from ulam.runtime.native import Context
from ulam.runtime.random_numbers import generator_words
from ulam.runtime.sampling.settings import MAX_ENERGY_ERROR, METRICS, SamplingSettings

if TYPE_CHECKING:
    from ulam.runtime.program import Unit

Vector = npt.NDArray[np.float64]

PHASES = ("warmup", "sampling", "done")
"""Phases by their numbers in c/sampling/chain.h."""
STATISTICS = ("lp", "accept_stat", "stepsize", "treedepth", "n_leapfrog", "divergent", "energy")
"""Columns of a block's statistics."""

_SAMPLERS = ("nuts", "hmc", "fixed")
_METRIC = 10
"""As ULAM_CHAIN_METRIC in c/sampling/chain.h."""


class _Settings(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        *[(name, ctypes.c_int64) for name in (
            "n", "sampler", "metric", "warmup", "draws", "thin", "save_warmup", "max_depth", "init_buffer",
            "term_buffer", "window", "find_step_size", "still",
        )],
        *[(name, ctypes.c_double) for name in (
            "delta", "gamma", "kappa", "t0", "step_size", "step_size_jitter", "integration_time", "max_energy_error",
        )],
        ("generator", ctypes.c_uint64 * 4),
    ]  # fmt: skip


class ChainState(ctypes.Structure):
    """What a chain tells between its blocks; `iteration` counts warmup, too."""

    phase: int
    iteration: int
    depth: int
    divergences: int
    at_max_depth: int
    gradients: int
    failed: int
    step_size: float
    lp: float

    _fields_: ClassVar[Any] = [
        *[(name, ctypes.c_int64) for name in (
            "phase", "iteration", "depth", "divergences", "at_max_depth", "gradients", "failed",
        )],
        ("step_size", ctypes.c_double),
        ("lp", ctypes.c_double),
    ]  # fmt: skip


class _Block(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("capacity", ctypes.c_int64), ("seconds", ctypes.c_double), ("points", ctypes.c_void_p),
        ("statistics", ctypes.c_void_p), ("numbers", ctypes.c_void_p), ("count", ctypes.c_int64),
        ("failed_kept", ctypes.c_int64), ("failed_statuses", ctypes.c_void_p), ("failed_sites", ctypes.c_void_p),
        ("failed_points", ctypes.c_void_p),
    ]  # fmt: skip


FIRST_OF_WARMUP = 1 << 62
"""From here on draws of warmup are numbered (c/sampling/chain.c)."""


def numbers_of_draws(count: int, thin: int, phase: str) -> npt.NDArray[np.uint64]:
    """The numbers of the draws of a phase, as `draw_quantities` wants them."""
    first = FIRST_OF_WARMUP if phase == "warmup" else 0
    return np.uint64(first) + np.uint64(thin) * np.arange(count, dtype=np.uint64)


@dataclass
class ChainBlock:
    """Draws of one phase. `status` is that of the run that made them; `failed` has statuses, sites and points of
    evaluations that failed meanwhile.
    """

    status: int
    phase: str
    points: Vector
    statistics: Vector
    numbers: npt.NDArray[np.uint64]
    failed: list[tuple[int, int, Vector]]


class NativeChain:
    """A chain from `point`, with a context of its own. Arrays of a block are those of the next one, too."""

    def __init__(
        self,
        settings: SamplingSettings,
        unit: Unit | None,
        context: Context,
        point: Vector,
        inverse_metric: Vector | None,
        step_size: float | None,
        stream: int,
        capacity: int,
    ) -> None:
        self._library = library()
        self.context = context  # and the unit: what the chain in C uses
        self._unit = unit
        self.n = point.size
        native = _Settings(n=self.n, sampler=_SAMPLERS.index(settings.sampler if unit is not None else "fixed"))
        native.metric = METRICS.index(settings.metric)
        for name in ("warmup", "draws", "thin", "save_warmup", "max_depth", "step_size_jitter", "integration_time"):
            setattr(native, name, getattr(settings, name))
        for name in ("gamma", "kappa", "t0", "init_buffer", "term_buffer", "window"):
            setattr(native, name, getattr(settings.adapt, name))
        native.still = not settings.adapt.engaged
        native.warmup = settings.warmup if unit is not None else 0
        native.delta = settings.target_accept
        native.step_size = 1.0 if step_size is None else step_size
        native.find_step_size = unit is not None and (step_size is None or settings.adapts)
        native.max_energy_error = MAX_ENERGY_ERROR
        native.generator = generator_words(settings.seed, stream)
        self._metric_shape = (self.n, self.n) if settings.metric == "dense" else (self.n,)
        self._points = np.empty((capacity, self.n))
        self._statistics = np.empty((capacity, len(STATISTICS)))
        self._numbers = np.empty(capacity, np.uint64)
        self._block = _Block(
            capacity, 0.0, self._points.ctypes.data, self._statistics.ctypes.data, self._numbers.ctypes.data
        )
        start = np.ascontiguousarray(point)
        metric = None if inverse_metric is None else np.ascontiguousarray(inverse_metric, np.float64)
        status = ctypes.c_int32()
        self.address: int = self._library.ulam_chain_new(
            ctypes.addressof(native), context.address, 0 if unit is None else unit.entry,
            0 if unit is None else unit.bound, start.ctypes.data, None if metric is None else metric.ctypes.data,
            ctypes.addressof(status),
        )  # fmt: skip
        if not self.address:
            if status.value == _METRIC:
                raise ArgumentError("metric must be finite and positive definite")
            raise MemoryError("no memory for a chain")
        self._owned = freed_by("ulam_chain_free", self.address)
        self.state = ChainState.from_address(self._library.ulam_chain_look(self.address))

    is_pending = False
    """Whether draws are left, of a chain that was stopped."""

    @property
    def phase(self) -> str:
        """One of PHASES."""
        return PHASES[self.state.phase]

    def run(self, seconds: float) -> ChainBlock:
        """The next block."""
        block, phase = self._block, self.phase
        block.seconds = seconds
        status = self._library.ulam_chain_run(self.address, ctypes.addressof(block))
        count = block.count
        return ChainBlock(
            status, phase, self._points[:count], self._statistics[:count], self._numbers[:count], list(self._failed())
        )

    def _failed(self) -> Iterator[tuple[int, int, Vector]]:
        count, n = self._block.failed_kept, self.n
        if not count:
            return
        statuses = (ctypes.c_int32 * count).from_address(self._block.failed_statuses)
        sites = (ctypes.c_int64 * count).from_address(self._block.failed_sites)
        points = np.ctypeslib.as_array((ctypes.c_double * (count * n)).from_address(self._block.failed_points))
        for k in range(count):
            yield statuses[k], sites[k], points[k * n : (k + 1) * n].copy()

    def metric(self) -> Vector:
        """The inverse metric now."""
        found = np.empty(self._metric_shape)
        self._library.ulam_chain_metric(self.address, found.ctypes.data)
        return found

    @staticmethod
    def error(status: int) -> SamplingError | None:
        """What the status of a block says, other than of an evaluation that was fatal, or of a stop."""
        problem: bytes | None = library().ulam_chain_problem(status)
        return SamplingError(problem.decode()) if problem is not None else None


def draw_quantities(
    context: Context, unit: Unit, generator: Any, points: Vector, numbers: npt.NDArray[np.uint64], values: Vector
) -> tuple[int, dict[int, int]]:
    """Writes all values of draws, in the compiled order, to the rows of `values`; `numbers` are those of the draws.

    How many of the draws were done (all, unless it was stopped), and the statuses of those that failed, by their rows.
    """
    count, n = points.shape
    statuses = np.full(count, STOPPED, np.int32)
    library().ulam_draw_quantities(
        context.address, unit.entry, unit.bound, ctypes.addressof(generator), n, values.shape[1], count,
        points.ctypes.data, numbers.ctypes.data, values.ctypes.data, statuses.ctypes.data,
    )  # fmt: skip
    stopped = np.flatnonzero(statuses == STOPPED)
    done = int(stopped[0]) if stopped.size else count
    return done, {int(row): int(statuses[row]) for row in np.flatnonzero(statuses[:done] != OK)}
