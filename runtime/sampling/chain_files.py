"""A fit of the CSV files of its chains, ours or CmdStan's: for summaries, diagnoses and reports of draws at hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.data import Values
from ulam.runtime.errors import DataError
from ulam.runtime.model import Recipe
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import GlobalVariable, constrained_names
from ulam.runtime.sampling.chain_csv import METRIC_NAMES, ChainFile, read_chain
from ulam.runtime.sampling.fit import Block, SampleFit
from ulam.runtime.sampling.model_description import ModelDescription
from ulam.runtime.sampling.settings import Adaptation, SamplingSettings

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Array = npt.NDArray[np.float64]
ChainPath = str | os.PathLike[str] | NamedText

_MARK = "__"
"""What names of statistics end in."""

_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "warmup": ("num_warmup", int), "draws": ("num_samples", int), "seed": ("seed", int), "thin": ("thin", int),
    "target_accept": ("delta", float), "max_depth": ("max_depth", int), "step_size": ("stepsize", float),
    "step_size_jitter": ("stepsize_jitter", float), "integration_time": ("int_time", float), "init": ("init", str),
    "save_warmup": ("save_warmup", lambda text: text in ("true", "1")), "first_chain": ("id", int),
    "sampler": ("engine", lambda text: "hmc" if text == "static" else "nuts"),
    "metric": ("metric", lambda text: {theirs: ours for ours, theirs in METRIC_NAMES.items()}.get(text, text)),
}  # fmt: skip
"""CmdStan's names of our settings, and what their texts become."""

_ADAPTATION: dict[str, Callable[[str], Any]] = {
    "gamma": float, "kappa": float, "t0": float, "init_buffer": int, "term_buffer": int, "window": int,
    "engaged": lambda text: text in ("true", "1"),
}  # fmt: skip


def fit_of_files(paths: Sequence[ChainPath], model: StanModel | None = None) -> SampleFit:
    """The fit whose chains these files have, one each. Without its `model` it has the draws only, no program.

    Chains of different lengths are cut to the shortest; a note says so. Raises DataError if the files are none of
    chains of `sample`, or not of one run; OSError.
    """
    files = [read_chain(path) for path in paths]
    if not files:
        raise DataError(["there must be at least one CSV file, of a chain"])
    first = files[0]
    for file in files:
        if (method := file.settings.get("method", "sample")) != "sample":
            raise DataError([f"{file.path}: it has results of '{method}', not of 'sample'"])
        if file.names != first.names:
            raise DataError([f"{file.path}: other columns than {first.path} has"])
    about = _described(first) if model is None else ModelDescription.of(model)
    about.written_by = _written_by(first)
    statistics = [name for name in first.names if name.endswith(_MARK)]
    if model is not None and (missing := [name for name in about.names if name not in first.names]):
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise DataError([f"{first.path}: no column for {shown}, which the program has"])
    draws = _block(files, about.names, statistics, lambda file: file.draws)
    warmup = _block(files, about.names, statistics, lambda file: file.warmup)
    metrics = [file.metric for file in files if file.metric is not None]
    has_metrics = len(metrics) == len(files) and len({metric.shape for metric in metrics}) == 1
    return SampleFit(
        about,
        *draws,
        warmup if warmup[1].shape[1] else None,
        np.array([file.step_size for file in files]),
        np.stack(metrics) if has_metrics else None,
        _settings(files, draws[1].shape[1]),
        np.array([file.seconds for file in files]),
        list(_notes(files)),
    )


def _described(file: ChainFile) -> ModelDescription:
    """What can be known of a model by the names of its values."""
    names = [name for name in file.names if not name.endswith(_MARK)]
    is_fixed = file.settings.get("algorithm") == "fixed_param"
    recipe = Recipe("", "", Values("", {}, False), 0, True, CompileOptions(), True)

    def make() -> NoReturn:
        raise DataError([f"{file.path}: the file has draws only; the program is not known"])

    return ModelDescription(
        file.settings.get("model", "model"), list(_variables(names)), [] if is_fixed else names, recipe, make
    )


def _written_by(file: ChainFile) -> str:
    parts = [file.settings.get(f"stan_version_{part}", "") for part in ("major", "minor", "patch")]
    return f"CSV files, of Stan {'.'.join(parts)}" if all(parts) else "CSV files"


def _variables(names: Sequence[str]) -> Iterator[GlobalVariable]:
    """The variables with elements of these names. Those of tuples and complex numbers stand alone."""
    begin = 0
    while begin < len(names):
        base = names[begin].partition(".")[0]
        end = begin + 1
        while end < len(names) and names[end].startswith(f"{base}."):
            end += 1
        last = names[end - 1].split(".")[1:]
        whole = _variable(base, tuple(int(index) for index in last) if all(map(str.isdigit, last)) else ())
        if list(constrained_names([whole])) == list(names[begin:end]):
            yield whole
        else:
            yield from (_variable(name, ()) for name in names[begin:end])
        begin = end


def _variable(name: str, dims: tuple[int, ...]) -> GlobalVariable:
    return GlobalVariable(-1, name, "", "real", "real", len(dims), "scalar", "none", -1, dims=dims)


def _block(
    files: Sequence[ChainFile], names: Sequence[str], statistics: Sequence[str], rows: Callable[[ChainFile], Array]
) -> Block:
    """Draws or warmup of all chains; there are no unconstrained ones in files."""
    tables = [rows(file) for file in files]
    count = min(map(len, tables))
    places = {name: k for k, name in enumerate(files[0].names)}
    values = np.stack([table[:count, [places[name] for name in names]] for table in tables])
    found: Mapping[str, Array] = {
        name.removesuffix(_MARK): np.stack([table[:count, places[name]] for table in tables]) for name in statistics
    }
    if "lp" not in found:
        found = {"lp": np.full(values.shape[:2], np.nan), **found}
    return np.empty((*values.shape[:2], 0)), values, found


def _settings(files: Sequence[ChainFile], kept: int) -> SamplingSettings:
    """The settings as far as the first file says them."""
    said = files[0].settings
    found = {ours: read for ours, (theirs, convert) in _SETTINGS.items()
             if (read := _read(said.get(theirs), convert)) is not None}  # fmt: skip
    adapt = {name: read for name, convert in _ADAPTATION.items()
             if (read := _read(said.get(name), convert)) is not None}  # fmt: skip
    found.setdefault("draws", kept * found.get("thin", 1))
    return SamplingSettings(chains=len(files), **found, adapt=Adaptation(**adapt))


def _read(text: str | None, convert: Callable[[str], Any]) -> Any:
    try:
        return None if text is None else convert(text)
    except ValueError:
        return None


def _notes(files: Sequence[ChainFile]) -> Iterator[str]:
    lengths = [len(file.draws) for file in files]
    if len(set(lengths)) > 1:
        yield f"The files have {', '.join(map(str, lengths))} draws: the first {min(lengths)} of each are used."
    cut = [file.path for file in files if not file.is_whole]
    if cut:
        yield f"Not written to the end, since the chain had not ended: {', '.join(cut)}."
