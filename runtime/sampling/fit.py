"""`SampleFit`: the draws of a run by name, how they were made, what they say, and how they are stored."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.names import by_name, of_name, output_positions
from ulam.runtime.sampling.model_description import ModelDescription
from ulam.runtime.sampling.summary import QUANTILES, SummaryTable

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.sampling.diagnose import Diagnosis
    from ulam.runtime.sampling.settings import SamplingSettings

Array = npt.NDArray[Any]

Block = tuple[Array, Array, Mapping[str, Array]]
"""Unconstrained draws, values and statistics."""


class ChainDraws:
    """Draws of several chains: `draws["theta"]` is an array (chains, draws, ...) with the variable's own shape last.

    It is a view: nothing is copied. A tuple's draws are a tuple. `stats` are the statistics of the sampler, arrays
    (chains, draws); `unconstrained` is (chains, draws, parameters), `values` (chains, draws, elements), as `names` has
    them.
    """

    def __init__(self, about: ModelDescription, unconstrained: Array, values: Array, statistics: Mapping[str, Array]):
        self.about, self.unconstrained, self.values = about, unconstrained, values
        self.stats = dict(statistics)

    def __getstate__(self) -> dict[str, Any]:
        views = ("draws",)  # pickled they would be copies
        return {name: value for name, value in self.__dict__.items() if name not in views}

    @property
    def n_chains(self) -> int:
        return self.values.shape[0]

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""
        return self.values.shape[1]

    @property
    def names(self) -> list[str]:
        """Names of the elements of a draw, `theta.2` for `theta[2]`."""
        return self.about.names

    @cached_property
    def draws(self) -> dict[str, Array]:
        """All draws by the name of the variable; the fields of a tuple `t` are `t:1`, `t:2`."""
        return by_name(self.about.variables, self.values)

    def __getitem__(self, name: str) -> Any:
        return of_name(self.draws, name)

    def __contains__(self, name: object) -> bool:
        return name in self.draws or any(found.startswith(f"{name}:") for found in self.draws)

    def places(self, variables: Sequence[str] | None) -> tuple[list[int], list[str]]:
        """Where the elements of these variables are, and their names. Raises KeyError for one that is not there."""
        found = output_positions(self.about.variables)
        chosen = list(found) if variables is None else list(variables)
        for name in chosen:
            if name not in found:
                raise KeyError(f"{name!r}; the model has {', '.join(found)}")
        places = [int(k) for name in chosen for k in found[name].ravel(order="F")]
        return places, [self.names[k] for k in places]

    # ------------------------------------------------------------ for other packages

    def to_arviz(
        self,
        *,
        log_likelihood: str | None = "log_lik",
        posterior_predictive: Sequence[str] | None = None,
        observed_data: Sequence[str] | None = None,
        coords: Mapping[str, Any] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
    ) -> Any:
        """The draws for ArviZ: a DataTree with arviz-base, an InferenceData with arviz before 1.0.

        The variable named by `log_likelihood`, if the model has it, and those of `posterior_predictive` get groups of
        their own; the latter are generated quantities that end in `_rep`, `_pred` or `_tilde` if none are named.
        `observed_data` are data; without a choice `y` for `y_rep`. Other data are `constant_data`. `coords` and `dims`
        name dimensions, as ArviZ has them. Raises ImportError if there is neither package, KeyError for a name that is
        not there.
        """
        from ulam.runtime.sampling.other_forms import to_arviz

        return to_arviz(self, log_likelihood, posterior_predictive, observed_data, coords, dims)

    def to_xarray(
        self, *, coords: Mapping[str, Any] | None = None, dims: Mapping[str, Sequence[str]] | None = None
    ) -> Any:
        """A Dataset of xarray, with the dimensions chain (from 1) and draw (from 0). Raises ImportError."""
        from ulam.runtime.sampling.other_forms import to_xarray

        return to_xarray(self, coords, dims)

    def to_pandas(self) -> Any:
        """A DataFrame of pandas with a row for each draw: `chain__`, `iter__`, `draw__`, statistics, elements.

        Raises ImportError.
        """
        from ulam.runtime.sampling.other_forms import to_pandas

        return to_pandas(self)


class SampleFit(ChainDraws):
    """The result of `StanModel.sample`.

    `fit["theta"]` are the draws of a parameter, transformed parameter or generated quantity, `fit.stats["divergent"]`
    a statistic of the sampler. `warmup` has the same of the warmup, if it was saved; else it is None. `step_size`
    (chains,) and `metric`, the inverse metric (chains, n) or (chains, n, n), None for the unit metric, are what was
    adapted; `seconds` (chains, 2) what warmup and draws took. `settings` are the options; `notes` say what else there
    is to know, a sentence each. `ended`: why the run ended before its last draw, "interrupt" or "time limit"; else "".
    """

    def __init__(
        self,
        model: StanModel | ModelDescription,
        unconstrained: Array,
        values: Array,
        statistics: Mapping[str, Array],
        warmup: Block | None,
        step_size: Array,
        metric: Array | None,
        settings: SamplingSettings,
        seconds: Array,
        notes: Sequence[str] = (),
        ended: str = "",
    ) -> None:
        about = model if isinstance(model, ModelDescription) else ModelDescription.of(model)
        super().__init__(about, unconstrained, values, statistics)
        self.warmup = None if warmup is None else ChainDraws(about, *warmup)
        self.step_size, self.metric, self.settings = step_size, metric, settings
        self.seconds, self.notes, self.ended = seconds, list(notes), ended
        self._summary: SummaryTable | None = None

    @property
    def model(self) -> StanModel:
        """The model; that of a fit which was loaded is compiled now."""
        return self.about.model

    @property
    def is_fixed(self) -> bool:
        """Whether nothing was sampled: the model has no parameters, or they were to stay as they are."""
        return self.settings.sampler == "fixed" or not self.about.unconstrained_names

    # ------------------------------------------------------------ what they say

    def summary(
        self,
        variables: Sequence[str] | None = None,
        *,
        quantiles: Sequence[float] = QUANTILES,
        errors: bool = False,
    ) -> SummaryTable:
        """A row for each element: mean, its Monte Carlo standard error, standard deviation, median absolute deviation,
        quantiles, effective sample sizes of bulk and tails, and rank-normalized split R-hat.

        The numbers are those of arviz-stats. `variables` are all, with the log density, if none are named; `errors`
        adds Monte Carlo standard errors of the standard deviation and of the quantiles.
        """
        from ulam.runtime.sampling.summary import summarize

        if variables is None and tuple(quantiles) == QUANTILES and not errors:
            if self._summary is None:
                self._summary = summarize(self, None, QUANTILES, False)
            return self._summary
        return summarize(self, variables, quantiles, errors)

    def diagnose(self) -> Diagnosis:
        """What is wrong with the draws, in plain words, each with what to do: printed, or as `problems`."""
        from ulam.runtime.sampling.diagnose import diagnose

        return diagnose(self)

    def __repr__(self) -> str:
        divergent = int(np.count_nonzero(self.stats["divergent"])) if "divergent" in self.stats else 0
        chains = f"{self.n_chains} chain{'s' if self.n_chains != 1 else ''} of {self.n_draws} draws"
        return f"SampleFit({self.about.name}: {chains}, {len(self.names)} values each, {divergent} divergent)"

    def __str__(self) -> str:
        from ulam.runtime.sampling.report import fit_text

        return fit_text(self)

    def _repr_html_(self) -> str:
        from ulam.runtime.sampling.report import fit_html

        return fit_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Summary, diagnosis and settings as plain Python values: see docs/sampling.md for the entries."""
        from ulam.runtime.sampling.report import fit_record

        return fit_record(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, written to `path` if that is given."""
        from ulam.runtime.results import json_text

        return json_text(self.to_dict(), path)

    # ------------------------------------------------------------ files

    def to_csv(self, path: str | os.PathLike[str], *, digits: int | None = None) -> list[Path]:
        """Writes CmdStan's CSV files, one for each chain: `out_1.csv`, ... for `out.csv`; returns their names.

        Numbers have all digits that they need, or so many significant ones.
        """
        from ulam.runtime.sampling.chain_csv import write_fit

        return write_fit(self, path, digits)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        rows: int | None = 2000,
        costs: bool = True,
        time_limit: float | None = None,
    ) -> str:
        """The fit as a page to look at, one HTML file that needs no other: see docs/report.md. Written to `path`.

        `rows`: most rows of the summary, None for all. `costs`: measure what each line of the program costs, which
        compiles it and runs gradients for half a second.
        """
        from ulam.runtime.html_report.write import write_report

        return write_report(self, path, title=title, rows=rows, costs=costs, time_limit=time_limit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all of the result to one file, which `ulam.load` reads. It holds data only: see docs/sampling.md."""
        from ulam.runtime.sampling.storage import save

        save(self, path)
