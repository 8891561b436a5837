"""A fit in one file, written by `SampleFit.save`; `loading` reads it.

The file is a zip archive that holds data only. `fit.json` says what there is; each array is a member in NumPy's format
(`numpy.load` reads them). A later version reads what an earlier one wrote: entries of `fit.json` are only added, and
what is not known is left alone; `schema_version` goes up if that cannot be, and tells earlier versions so.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.json_text import json_page
from ulam.runtime.names import GlobalVariable
from ulam.runtime.output_files import writing
from ulam.runtime.versions import ulam_version

if TYPE_CHECKING:
    from ulam.runtime.model import Recipe
    from ulam.runtime.sampling.fit import SampleFit

Array = npt.NDArray[Any]

SCHEMA_VERSION = 1
FORMAT = "ulam fit"
HEADER = "fit.json"

KINDS = "fiub"
"""Of arrays: floating-point numbers, integers, booleans."""


def save(fit: SampleFit, path: str | os.PathLike[str]) -> None:
    """What `SampleFit.save` does."""
    header, arrays = fit_parts(fit)
    program, data = program_parts(fit.about.recipe)
    write_archive(path, HEADER, header | {"program": program}, arrays | data)


def fit_parts(fit: SampleFit) -> tuple[dict[str, Any], dict[str, Array]]:
    """What a file has of a fit, but for its program and data: the header, and arrays by name."""
    header = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "ulam_version": ulam_version(),
        "model": fit.about.name,
        "compile_seconds": fit.about.compile_seconds,
        "variables": [variable_record(variable) for variable in fit.about.variables],
        "unconstrained_names": fit.about.unconstrained_names,
        "settings": asdict(fit.settings),
        "notes": fit.notes,
        "ended": fit.ended,
        "statistics": list(fit.stats),
    }
    return header, dict(_arrays(fit))


def program_parts(recipe: Recipe) -> tuple[dict[str, Any], dict[str, Array]]:
    """A program and its data: their entry of the header, and the data that are arrays."""
    given = {name: np.asarray(value) if hasattr(value, "__array__") else value for name, value in _given(recipe)}
    record = {
        "text": recipe.text,
        "filename": recipe.filename,
        "seed": recipe.seed,
        "options": asdict(recipe.options),
        "data": {name: value for name, value in given.items() if not _is_array(value)},
        "data_name": recipe.values.name,
        "data_is_json": recipe.values.is_json,
    }
    return record, {f"data/{name}": value for name, value in given.items() if _is_array(value)}


def write_archive(
    path: str | os.PathLike[str], name: str, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """A zip archive of data only: the header as JSON, under `name`, and arrays in NumPy's format."""
    with writing(path, binary=True) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, json_page(header).encode("utf-8", "backslashreplace"))
        for member_name, array in arrays.items():
            with archive.open(f"{member_name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _given(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    return iter(recipe.values.values.items())


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in KINDS


def _arrays(fit: SampleFit) -> Iterator[tuple[str, Array]]:
    for prefix, draws in (("", fit), ("warmup/", fit.warmup)):
        if draws is not None:
            yield f"{prefix}unconstrained", draws.unconstrained
            yield f"{prefix}values", draws.values
            yield from ((f"{prefix}statistics/{name}", values) for name, values in draws.stats.items())
    yield "step_size", np.asarray(fit.step_size)
    if fit.metric is not None:
        yield "metric", fit.metric
    yield "seconds", np.asarray(fit.seconds)


def variable_record(variable: GlobalVariable) -> dict[str, Any]:
    """What a file has of a variable."""
    left_out = ("index", "slot", "sizes")
    return {each.name: getattr(variable, each.name) for each in fields(variable) if each.name not in left_out}
