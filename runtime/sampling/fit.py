"""The result of `StanModel.sample`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ulam.runtime.names import by_name
from ulam.runtime.sampling.settings import SamplingSettings

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Array = npt.NDArray[Any]


@dataclass
class SampleFit:
    """Draws from the posterior: `fit["theta"]` has the shape (chains, draws, ...), with the variable's own last."""

    model: StanModel = field(repr=False)
    unconstrained: Array = field(repr=False)
    values: Array = field(repr=False)
    statistics: dict[str, Array] = field(repr=False)
    warmup: tuple[Array, Array, dict[str, Array]] | None = field(repr=False)
    step_size: Array
    metric: Array | None = field(repr=False)
    settings: SamplingSettings
    seconds: Array
    notes: list[str]

    def __getitem__(self, name: str) -> Array:
        return by_name(self.model.written_variables(), self.values)[name]
