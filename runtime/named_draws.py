"""Draws of all variables of a model, by name: what results that are made of draws have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.names import by_name, of_name

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Vector = npt.NDArray[np.float64]

QUANTILES = (0.05, 0.5, 0.95)


class NamedDraws:
    """Parameters, transformed parameters and generated quantities of draws: `fit["theta"]`, in the variable's shape.

    `constrained_draws` is an array of all draws, with the elements last, in the order of `names`.
    """

    model: StanModel
    constrained_draws: Vector

    def __len__(self) -> int:
        return len(self.constrained_draws)

    @property
    def names(self) -> list[str]:
        """Names of the columns of `constrained_draws`."""
        return self.model.param_names(include_tp=True, include_gq=True)

    @property
    def draws(self) -> dict[str, Vector]:
        """All draws by name, of shape (draws, ...)."""
        return by_name(self.model.written_variables(), self.constrained_draws)

    def __getitem__(self, name: str) -> Any:
        return of_name(self.draws, name)

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, standard deviation and quantiles of each element, of the draws that are not NaN."""
        columns = self.constrained_draws.reshape(-1, self.constrained_draws.shape[-1]).T
        return {name: _described(column) for name, column in zip(self.names, columns, strict=True)}


def _described(column: Vector) -> dict[str, float]:
    kept = column[~np.isnan(column)]
    if not kept.size:
        return dict.fromkeys(("mean", "sd", *(f"{q:.0%}" for q in QUANTILES)), float("nan"))
    found = {"mean": float(kept.mean()), "sd": float(kept.std(ddof=1)) if kept.size > 1 else float("nan")}
    return found | {f"{q:.0%}": float(value) for q, value in zip(QUANTILES, np.quantile(kept, QUANTILES), strict=True)}
