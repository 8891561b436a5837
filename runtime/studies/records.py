"""What a study keeps of a fit: a header of plain values and arrays, in memory or in a file that holds data only."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import ArgumentError
from ulam.runtime.names import by_name, constrained_names, of_name
from ulam.runtime.sampling.loading import archive_parts, fit_of, read_archive, variable_of
from ulam.runtime.sampling.storage import (
    FORMAT,
    HEADER,
    KINDS,
    SCHEMA_VERSION,
    fit_parts,
    program_parts,
    variable_record,
    write_archive,
)  # fmt: skip
from ulam.runtime.versions import ulam_version

if TYPE_CHECKING:
    from ulam.runtime.model import Recipe, StanModel
    from ulam.runtime.sampling.fit import SampleFit

Array = npt.NDArray[Any]
Parts = tuple[dict[str, Any], dict[str, Array]]

RECORD_FORMAT = "ulam fit record"
"""Of what is no whole fit of `sample`."""
OWN = "study"
"""The entry of the header that says which fit of which study it is."""

NUMBERS = {
    "optimize": ("log_density", "converged", "status", "gradient_norm", "n_iterations", "n_gradients"),
    "laplace": ("n_rejections",),
    "pathfinder": ("khat", "elbo", "n_rejections"),
}
"""What a record says of a result in one number or word, by method."""
DRAW_STATISTICS = {
    "laplace": {"lp": "log_p", "lp_approx": "log_q"},
    "pathfinder": {"lp": "log_p", "lp_approx": "log_q", "path": "path"},
}
"""Statistics of each draw, and where the result has them."""


@dataclass
class FitRecord:
    """What is kept of the fit of one data set.

    `record["theta"]` is an array: of `sample` (chains, draws, ...), of `laplace` and `pathfinder` (draws, ...), of
    `optimize` the estimate, each with the variable's own shape last; or what `extract` returned under this name.
    `stats` are statistics of the draws, or of the run, by name; `notes` what else there is to know. `fit` is the whole
    `SampleFit` of `sample`. `index` is the place of the data set, from 0, and `seed` makes this fit again, as
    `StanModel(source, data, seed=seed)` and the seed of its method.
    """

    index: int
    name: str
    seed: int
    method: str
    header: dict[str, Any] = field(repr=False)
    arrays: dict[str, Array] = field(repr=False)
    seconds: float = 0.0
    recipe: Callable[[], Recipe] | None = field(default=None, repr=False, compare=False)
    """The program with this data set, where it is at hand; does not travel."""

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("draws", "fit", "recipe")
        return {name: value for name, value in self.__dict__.items() if name not in left_out} | {"recipe": None}

    @property
    def notes(self) -> list[str]:
        return self.header.get("notes", [])

    @property
    def names(self) -> list[str]:
        """Names of the elements, `theta.2` for `theta[2]`; of what was extracted those of its arrays."""
        if "values" not in self.arrays:
            return list(self.draws)
        return list(constrained_names(self._variables()))

    @cached_property
    def draws(self) -> dict[str, Any]:
        """All arrays by name."""
        if "values" not in self.arrays:
            return {name.removeprefix("own/"): value for name, value in self.arrays.items() if name[:4] == "own/"}
        return by_name(self._variables(), self.arrays["values"])

    def _variables(self) -> list[Any]:
        return [variable_of(entry) for entry in self.header["variables"]]

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(f"{name!r}; this record has {', '.join(self.draws)}")
        return of_name(self.draws, name)

    def __contains__(self, name: object) -> bool:
        return name in self.draws or any(found.startswith(f"{name}:") for found in self.draws)

    @property
    def stats(self) -> dict[str, Any]:
        """Statistics: arrays as long as the draws, or of the run single numbers and words."""
        prefix = "statistics/"
        found = {name.removeprefix(prefix): value for name, value in self.arrays.items() if name.startswith(prefix)}
        return found | self.header.get("numbers", {})

    @cached_property
    def fit(self) -> SampleFit:
        """The fit of `sample`, with its summary and diagnosis. Raises ArgumentError for what is no whole fit."""
        if self.header["format"] != FORMAT:
            raise ArgumentError(f"this record of {self.method!r} is no whole fit: read it by the names of variables")
        return fit_of(self.header, self.arrays, None if self.recipe is None else self.recipe())

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return sum(array.nbytes for array in self.arrays.values())

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str], study: Mapping[str, Any]) -> None:
        """Writes it to a file, with what the study says of it; of `sample` one that `ulam.load` reads."""
        own = {"index": self.index, "name": self.name, "seed": self.seed, "method": self.method}
        header: dict[str, Any] = self.header | {OWN: own | {"seconds": self.seconds, **study}}
        arrays = self.arrays
        if self.header["format"] == FORMAT and self.recipe is not None:
            header["program"], data = program_parts(self.recipe())
            arrays = arrays | data
        write_archive(path, HEADER, header, arrays)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> FitRecord:
        """Reads what `save` wrote. Raises OSError and DataError as `ulam.load` does."""
        return read_archive(path, _read, "a study")


def _read(archive: zipfile.ZipFile) -> FitRecord:
    header, arrays = archive_parts(archive, HEADER, (FORMAT, RECORD_FORMAT))
    own = header[OWN]
    return FitRecord(own["index"], own["name"], own["seed"], own["method"], header, arrays, own["seconds"])


# ---------------------------------------------------------------- of results


def parts_of(method: str, fit: Any) -> Parts:
    """The parts of a method's result."""
    if method == "sample":
        return fit_parts(fit)
    model: StanModel = fit.model
    header = _header(notes=list(fit.notes)) | {
        "model": model.name(),
        "variables": [variable_record(variable) for variable in model.written_variables()],
        "unconstrained_names": model.param_unc_names(),
        "numbers": {name: _plain(getattr(fit, name)) for name in NUMBERS[method]},
    }
    if method == "optimize":
        arrays = {"values": fit.constrained, "unconstrained": fit.unconstrained, "gradient": fit.gradient}
        header["notes"] = list(fit.notes)  # what could not be computed is only known now
    else:
        arrays = {"values": fit.constrained_draws, "unconstrained": fit.unconstrained_draws}
    for name, source in DRAW_STATISTICS.get(method, {}).items():
        arrays[f"statistics/{name}"] = getattr(fit, source)
    return header, {name: np.asarray(array) for name, array in arrays.items()}


def parts_of_extract(fit: Any, extract: Any, about: Any) -> Parts:
    """Of what `extract` makes of a fit: a function of it (and of `about`, where there is that), or names."""
    if callable(extract):
        found = extract(fit) if about is None else extract(fit, about)
        return parts_of_mapping(found, "what extract returns")
    return parts_of_mapping({name: fit[name] for name in cast("Sequence[str]", extract)}, "extract")


def parts_of_mapping(found: Any, what: str) -> Parts:
    """Of arrays and numbers by name."""
    if not isinstance(found, Mapping):
        raise ArgumentError(f"{what} must be a mapping of names to numbers and arrays, found {type(found).__name__}")
    arrays: dict[str, Array] = {}
    for name, value in found.items():
        array = np.asarray(value)
        if array.dtype.kind not in KINDS:
            raise ArgumentError(f"{what} must be numbers and arrays of them; {name!r} is {type(value).__name__}")
        arrays[f"own/{name}"] = array
    return _header(notes=[]), arrays


def _header(**entries: Any) -> dict[str, Any]:
    return {"format": RECORD_FORMAT, "schema_version": SCHEMA_VERSION, "ulam_version": ulam_version(), **entries}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
