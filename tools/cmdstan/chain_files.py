"""CSV files of chains as CmdStan's tools read them: all columns, several files at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import DataError
from ulam.runtime.sampling.chain_csv import ChainFile, read_chain
from ulam.runtime.sampling.summary import QUANTILES, SummaryTable, statistic_names, statistics

Array = npt.NDArray[np.float64]

METHOD_SUFFIX = "__"
"""Names of columns end with it that are not of the model's variables."""


@dataclass(frozen=True)
class FileSettings:
    """What the comments of the files say of the sampler."""

    sampler: str
    max_depth: int
    target_accept: float


class ReadChains:
    """The draws of several chains, without warmup: `table` is (columns, chains, draws).

    `names` and `values` (chains, draws, elements) are of the model's variables, `stats` what the method says of each
    draw. Of chains of different lengths the first draws that all have.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.files = [read_chain(path) for path in paths]
        first = self.files[0]
        for file in self.files[1:]:
            if file.names != first.names:
                raise DataError([f"{file.path}: other columns than {first.path} has; give files of one model"])
        self.columns = first.names
        self.n_draws = min(len(file.draws) for file in self.files)
        self.table = np.stack([file.draws[: self.n_draws] for file in self.files]).transpose(2, 0, 1)
        own = [k for k, name in enumerate(self.columns) if not name.endswith(METHOD_SUFFIX)]
        self.names = [self.columns[k] for k in own]
        self.values: Array = self.table[own].transpose(1, 2, 0)
        self.stats: Mapping[str, npt.NDArray[Any]] = {
            name.removesuffix(METHOD_SUFFIX): self.table[k] for k, name in enumerate(self.columns) if k not in own
        }

    @property
    def first(self) -> ChainFile:
        """The first file, whose comments stand for those of all."""
        return self.files[0]

    @property
    def n_chains(self) -> int:
        return len(self.files)

    @property
    def is_fixed(self) -> bool:
        return self.first.settings.get("algorithm") == "fixed_param"

    @property
    def settings(self) -> FileSettings:
        said = self.first.settings
        sampler = "hmc" if said.get("engine") == "static" else "nuts"
        return FileSettings(sampler, int(said.get("max_depth", 10)), float(said.get("delta", 0.8)))

    def summary(self, columns: Sequence[str] | None = None, quantiles: Sequence[float] = QUANTILES) -> SummaryTable:
        """Statistics of these columns; else of the log density and the model's variables."""
        if columns is None:
            own = set(self.names)
            columns = [name for name in self.columns if name == "lp__" or name in own]
        return SummaryTable(columns, statistic_names(quantiles), statistics(self.of(columns), quantiles))

    def of(self, columns: Sequence[str]) -> Array:
        """The draws of these columns, (columns, chains, draws)."""
        return self.table[[self.columns.index(name) for name in columns]]
