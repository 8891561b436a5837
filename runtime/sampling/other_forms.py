"""A fit for ArviZ, xarray and pandas. They are imported here, when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ulam.runtime.arviz_export import export, posterior_groups

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import ChainDraws, SampleFit

Array = npt.NDArray[Any]

ARVIZ_NAMES = {
    "lp": "lp", "accept_stat": "acceptance_rate", "stepsize": "step_size", "treedepth": "tree_depth",
    "n_leapfrog": "n_steps", "divergent": "diverging", "energy": "energy",
}  # fmt: skip
"""What ArviZ calls the sampler's statistics. Those that are not here keep their names."""

PREDICTIVE_ENDINGS = ("_rep", "_pred", "_tilde")
"""Of names of generated quantities that are predictions of the data which the name begins with."""


def to_arviz(
    fit: ChainDraws,
    log_likelihood: str | None,
    posterior_predictive: Sequence[str] | None,
    observed_data: Sequence[str] | None,
    coords: Mapping[str, Any] | None,
    dims: Mapping[str, Sequence[str]] | None,
) -> Any:
    """What `ChainDraws.to_arviz` returns."""
    if posterior_predictive is None:
        quantities = [each.name for each in fit.about.variables if each.block == "generated_quantities"]
        posterior_predictive = [name for name in quantities if name.endswith(PREDICTIVE_ENDINGS)]
    groups = posterior_groups(fit.draws, log_likelihood, posterior_predictive)
    about: dict[str, Any] = {"model": fit.about.name}
    if hasattr(fit, "settings"):
        sampled, further = _sampled(cast("SampleFit", fit), log_likelihood, posterior_predictive)
        about |= sampled
        groups |= further
    data = _data(fit)
    observed = _observed(data, posterior_predictive) if observed_data is None else list(observed_data)
    for name in observed:
        if name not in data:
            raise KeyError(f"no data {name}; there are {', '.join(data)}")
    groups["observed_data"] = {name: data[name] for name in observed}
    groups["constant_data"] = {name: value for name, value in data.items() if name not in observed}
    return export({name: group for name, group in groups.items() if group}, about, coords, dims)


def _sampled(
    fit: SampleFit, log_likelihood: str | None, posterior_predictive: Sequence[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Array]]]:
    """What is known of draws of a sampler: attributes, and the groups of statistics and of warmup."""
    groups = {"sample_stats": _statistics(fit, fit.settings)}
    if fit.warmup is not None:
        warmup = posterior_groups(fit.warmup.draws, log_likelihood, posterior_predictive)
        warmup["sample_stats"] = _statistics(fit.warmup, fit.settings)
        groups |= {f"warmup_{name}": group for name, group in warmup.items()}
    about = {
        "sampler": fit.settings.sampler, "seed": fit.settings.seed,
        "sampling_time": float(np.asarray(fit.seconds)[:, 1].max()),
    }  # fmt: skip
    return about, groups


def _statistics(draws: ChainDraws, settings: Any) -> dict[str, Array]:
    found = {ARVIZ_NAMES.get(name, name): values for name, values in draws.stats.items()}
    if "tree_depth" in found and settings.sampler != "hmc":
        found["reached_max_treedepth"] = found["tree_depth"] >= settings.max_depth
    return found


def _data(fit: ChainDraws) -> dict[str, Array]:
    """The data as they were given, those that are numbers."""
    found: dict[str, Array] = {}
    for name, value in fit.about.recipe.values.values.items():
        try:
            array = np.asarray(value)
        except ValueError:  # arrays of different sizes
            continue
        if array.dtype.kind in "biuf":
            found[name] = array
    return found


def _observed(data: Mapping[str, Array], predictive: Sequence[str]) -> list[str]:
    """The data that are predicted; `y` if that does not tell."""
    found = [
        name for each in predictive for ending in PREDICTIVE_ENDINGS if (name := each.removesuffix(ending)) in data
    ]
    return list(dict.fromkeys(found)) or [name for name in ("y",) if name in data]


def to_xarray(fit: ChainDraws, coords: Mapping[str, Any] | None, dims: Mapping[str, Sequence[str]] | None) -> Any:
    """What `ChainDraws.to_xarray` returns."""
    import xarray  # pyright: ignore[reportMissingImports]

    named = dims or {}
    variables: dict[str, Any] = {}
    for name, values in fit.draws.items():
        own = list(named.get(name, ()))
        own += [f"{name}_dim_{k}" for k in range(len(own), values.ndim - 2)]
        variables[name] = (("chain", "draw", *own), values)
    places = {"chain": np.arange(1, fit.n_chains + 1), "draw": np.arange(fit.n_draws)}
    return xarray.Dataset(
        variables, {**places, **(coords or {})}, {"inference_library": "ulam", "model": fit.about.name}
    )


def to_pandas(fit: ChainDraws) -> Any:
    """What `ChainDraws.to_pandas` returns."""
    import pandas  # pyright: ignore[reportMissingImports]

    chains, draws = fit.n_chains, fit.n_draws
    columns: dict[str, Array] = {
        "chain__": np.repeat(np.arange(1, chains + 1), draws),
        "iter__": np.tile(np.arange(1, draws + 1), chains),
        "draw__": np.arange(1, chains * draws + 1),
    }
    columns |= {f"{name}__": values.reshape(-1) for name, values in fit.stats.items()}
    frame = pandas.DataFrame(columns)
    values = pandas.DataFrame(fit.values.reshape(chains * draws, -1), columns=fit.names)
    return pandas.concat([frame, values], axis=1)
