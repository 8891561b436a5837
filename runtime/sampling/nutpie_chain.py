"""A chain of nutpie's sampler, on the native handle: for its low-rank metric.

Of nutpie only the extension module is loaded, which takes milliseconds; the package itself imports ArviZ, pandas and
PyArrow. The module's interface is nutpie's own, so one version is asked for.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.library.statuses import OK, STOPPED
from ulam.runtime.c_library import library
from ulam.runtime.errors import ArgumentError, SamplingError
from ulam.runtime.native import Rng
from ulam.runtime.sampling.native_chain import PHASES, STATISTICS, ChainBlock, ChainState, Vector, numbers_of_draws
from ulam.runtime.sampling.settings import MAX_ENERGY_ERROR, SamplingSettings

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

VERSION = "0.16.8"
_MODULE = "nutpie._lib"
_COLUMNS = dict(
    zip(STATISTICS, ("logp", "mean_tree_accept", "step_size", "depth", "n_steps", "diverging", "energy"), strict=True)
)
"""nutpie's names of the statistics."""
_WAIT = 0.05
"""Seconds between two looks whether the chain is to stop."""


def nutpie_library() -> ModuleType:
    """nutpie's extension module, without the rest of the package. Raises ArgumentError if it is not installed."""
    if (known := sys.modules.get(_MODULE)) is not None:
        return known
    package = importlib.util.find_spec("nutpie")
    folders = [] if package is None else package.submodule_search_locations or []
    files = [Path(folder, f"_lib{suffix}") for folder in folders for suffix in EXTENSION_SUFFIXES]
    file = next((path for path in files if path.is_file()), None)
    if file is None or importlib.util.find_spec("arro3") is None:
        raise ArgumentError(f"sampler='nutpie' needs nutpie {VERSION}: pip install 'ulam[nutpie]'")
    from importlib.metadata import version

    if (found := version("nutpie")) != VERSION:
        raise ArgumentError(f"sampler='nutpie' needs nutpie {VERSION}, found {found}: pip install 'ulam[nutpie]'")
    loader = ExtensionFileLoader(_MODULE, str(file))
    spec = importlib.util.spec_from_loader(_MODULE, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[_MODULE] = module  # it can be loaded once only: `import nutpie` finds it here
    return module


class NutpieChain:
    """A chain from `point`. It has no blocks before its end."""

    def __init__(
        self, settings: SamplingSettings, model: StanModel, point: Vector, step_size: float | None, stream: int,
        capacity: int,
    ) -> None:  # fmt: skip
        native, n = nutpie_library(), point.size
        handle = model.native_handle()
        copy = ctypes.cast(library().ulam_native_copy, ctypes.c_void_p).value
        sizes: dict[str, int] = {}
        density = native.LogpFunc(handle.noting_address, handle.user_data, handle)
        expand = native.ExpandFunc(n, n, copy, 0, handle)
        variables = native.PyVariable.new_variables(["x"], ["float64"], [[n]], sizes, {})
        target = native.PyMcModel(density, expand, variables, n, sizes, {}, lambda seed: point, None)
        make = native.PyNutsSettings.LowRank if settings.metric == "low_rank" else native.PyNutsSettings.Diag
        asked = make(int(Rng(settings.seed, stream).generator.random_raw()))
        asked.num_chains, asked.num_tune, asked.num_draws = 1, settings.warmup, settings.draws
        asked.maxdepth, asked.max_energy_error = settings.max_depth, MAX_ENERGY_ERROR
        asked.step_size_jitter = settings.step_size_jitter
        asked.target_accept = settings.target_accept
        if step_size is not None:
            asked.initial_step = step_size
        self._sampler = native.PySampler.from_pymc(
            asked, 1, target, native.ProgressType.none(), native.PyStorage.arrow()
        )
        self._settings, self._capacity, self.n = settings, capacity, n
        self._model, self._handle = model, handle
        self._rows: dict[str, tuple[Vector, Vector, Any]] = {}
        self._phase, self._begun, self._is_stopped = "warmup" if settings.warmup else "sampling", 0, False
        self.state = ChainState(phase=PHASES.index(self._phase), step_size=step_size or 0.1)

    @property
    def phase(self) -> str:
        """One of PHASES."""
        return self._phase

    @property
    def is_pending(self) -> bool:
        """Whether draws are left, of a chain that was stopped."""
        return bool(self._rows)

    def run(self, seconds: float) -> ChainBlock:
        """The next block; an empty one while the chain is at work."""
        if not self._rows:
            if not self._is_finished(seconds):
                return self._block(OK, 0)
            status = STOPPED if library().ulam_stop_reasons() else OK
            self._read()
            return self._block(status, 0)
        count = min(self._capacity, len(self._rows[self._phase][0]) - self._begun)
        block = self._block(OK, count)
        self._begun += count
        if self._begun == len(self._rows[self._phase][0]):
            self._begun, self._phase = 0, "sampling" if self._phase == "warmup" else "done"
            if self._phase == "done":
                self._rows = {}
        return block

    def metric(self) -> None:
        """The metric is nutpie's own, and not told."""

    def error(self, status: int) -> None:
        """There are no other errors than those that `run` raises."""

    def _is_finished(self, seconds: float) -> bool:
        for _ in range(max(1, round(seconds / _WAIT))):
            self._check()
            try:
                if library().ulam_stop_reasons():
                    self._sampler.abort()
                    return True
                with suppress(TimeoutError):
                    self._sampler.wait(_WAIT)
                    return True
            except RuntimeError as error:  # of nutpie: those of the program are RuntimeErrors, too
                self._check()
                raise SamplingError(f"nutpie: {str(error).split('Stack backtrace')[0].strip()}") from None
        return False

    def _check(self) -> None:
        """Raises the program's fatal error, which nutpie takes for a rejection."""
        if (point := self._handle.fatal_point()) is not None:
            self._sampler.abort()
            self._model.log_density_gradient(point)

    def _read(self) -> None:
        """The draws of both phases, those that are kept."""
        from arro3.core import list_flatten  # pyright: ignore[reportMissingImports]

        self._check()
        (draws,), (statistics,) = self._sampler.take_results().get_arrow_trace()
        points = np.asarray(list_flatten(draws.column("x")).to_numpy()).reshape(-1, self.n)
        columns = {name: np.asarray(statistics.column(theirs).to_numpy()) for name, theirs in _COLUMNS.items()}
        table = np.column_stack([columns[name].astype(np.float64) for name in STATISTICS])
        tuning = np.asarray(statistics.column("tuning").to_numpy(), bool)
        state, thin = self.state, self._settings.thin
        state.gradients, state.iteration = int(columns["n_leapfrog"].sum()), len(table)
        state.divergences = int(columns["divergent"][~tuning].sum())
        state.at_max_depth = int((columns["treedepth"][~tuning] == self._settings.max_depth).sum())
        if len(table):
            state.step_size = float(np.asarray(statistics.column("step_size_bar").to_numpy())[-1])
        for phase, rows in (("warmup", tuning), ("sampling", ~tuning)):
            kept = np.flatnonzero(rows)[::thin] if phase == "sampling" or self._settings.save_warmup else []
            numbers = numbers_of_draws(len(kept), thin, phase)
            self._rows[phase] = points[kept], table[kept], numbers

    def _block(self, status: int, count: int) -> ChainBlock:
        empty = np.empty((0, self.n)), np.empty((0, len(STATISTICS))), np.empty(0, np.uint64)
        points, statistics, numbers = self._rows.get(self._phase, empty)
        part = slice(self._begun, self._begun + count)
        points = np.ascontiguousarray(points[part])
        return ChainBlock(status, self._phase, points, statistics[part], numbers[part].copy(), [])
