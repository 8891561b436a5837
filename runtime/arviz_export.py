"""Draws for ArviZ: a DataTree of arviz-base, or an InferenceData of arviz before 1.0, whichever is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MISSING = "to_arviz() needs ArviZ: pip install 'ulam[arviz]' (that is, arviz-base), or arviz"

Draws = Mapping[str, npt.NDArray[Any]]


def posterior_groups(
    values: Draws, log_likelihood: str | None = None, posterior_predictive: Sequence[str] = ()
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Variables by group: the log likelihood and predictions have groups of their own, if there are any.

    Raises KeyError for a posterior predictive that the model lacks.
    """
    unknown = [name for name in posterior_predictive if name not in values]
    if unknown:
        raise KeyError(f"no variable {', '.join(unknown)}; the model has {', '.join(values)}")
    groups: dict[str, dict[str, npt.NDArray[Any]]] = {"posterior": {}}
    homes = dict.fromkeys(posterior_predictive, "posterior_predictive")
    if log_likelihood is not None:
        homes[log_likelihood] = "log_likelihood"
    for name, draws in values.items():
        groups.setdefault(homes.get(name, "posterior"), {})[name] = draws
    return groups


def export_chain(
    values: Draws,
    sample_stats: Draws,
    attributes: Mapping[str, Any],
    log_likelihood: str | None = None,
    posterior_predictive: Sequence[str] = (),
) -> Any:
    """One chain of draws: arrays of shape (draws, ...) by name, and statistics of each draw.

    Raises ImportError if neither package is installed, KeyError for a posterior predictive that the model lacks.
    """
    groups = posterior_groups(
        {name: draws[np.newaxis] for name, draws in values.items()}, log_likelihood, posterior_predictive
    )
    groups["sample_stats"] = {name: draws[np.newaxis] for name, draws in sample_stats.items()}
    return export(groups, attributes)


def export(
    groups: Mapping[str, Draws],
    attributes: Mapping[str, Any],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Groups of variables: those of draws have the shape (chains, draws, ...). `coords`, `dims` as in ArviZ.

    Raises ImportError if neither package is installed.
    """
    saved = any(name.startswith("warmup_") for name in groups)
    about = {"inference_library": "ulam", **attributes}
    names: dict[str, Any] = {
        "coords": dict(coords or {}),
        "dims": {name: list(own) for name, own in (dims or {}).items()},
    }
    try:
        import arviz_base  # pyright: ignore[reportMissingImports]
    except ImportError:
        pass
    else:
        return arviz_base.from_dict(dict(groups), attrs={"/": about}, save_warmup=saved, **names)
    try:
        import arviz  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(MISSING) from None
    return arviz.from_dict(**groups, attrs=about, save_warmup=saved, **names)  # pyright: ignore[reportArgumentType]
