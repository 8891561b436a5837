"""`ulam.load`: a fit from the file that `SampleFit.save` wrote (see `storage`)."""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import partial
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ulam.library.externals import ExternalForm
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.data import SPECIAL_NUMBERS, Values
from ulam.runtime.errors import DataError
from ulam.runtime.model import Recipe, model_of
from ulam.runtime.names import GlobalVariable
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.model_description import ModelDescription
from ulam.runtime.sampling.settings import Adaptation, SamplingSettings
from ulam.runtime.sampling.storage import FORMAT, HEADER, KINDS, SCHEMA_VERSION
from ulam.runtime.versions import ulam_version

Array = npt.NDArray[Any]
_T = TypeVar("_T")

_PIECE = 1 << 24
"""Bytes that are read at a time."""

_DAMAGED = (
    zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, NotImplementedError, OverflowError,
    RuntimeError, AttributeError, SyntaxError, TokenError,
)  # fmt: skip
"""What reading a file that is not as it was written may raise."""


def load(path: str | os.PathLike[str]) -> SampleFit:
    """A fit that `SampleFit.save` wrote. Nothing is compiled: `fit.model` is, when it is asked for.

    Raises OSError for a file that cannot be read, DataError for one that holds no fit, or is damaged.
    """
    return read_archive(path, lambda archive: fit_of(*archive_parts(archive, HEADER, (FORMAT,))))


def read_archive(path: str | os.PathLike[str], read: Callable[[zipfile.ZipFile], _T], what: str = "fit.save") -> _T:
    """What `read` makes of an archive. `what` wrote such files, for messages.

    Raises OSError for a file that cannot be read, DataError for one that is none of these, or is damaged.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return read(archive)
        except _Unreadable as error:
            raise DataError([f"{name}: {str(error) or f'not a file that {what} wrote'}"]) from None
        except _DAMAGED as error:
            if not zipfile.is_zipfile(file):
                raise DataError([f"{name}: not a file that {what} wrote, or a part of one"]) from None
            raise DataError([f"{name}: the file is damaged: {error}"]) from None


class _Unreadable(Exception):
    """What is wrong with a file, in words for users; without words, that it is of another kind."""


def archive_parts(
    archive: zipfile.ZipFile, name: str, kinds: Collection[str]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header, a member of this name which says of which of these kinds the archive is, and the arrays."""
    header = _header(archive, name, kinds)
    arrays = {
        info.filename.removesuffix(".npy"): _array(archive, info)
        for info in archive.infolist()
        if info.filename.endswith(".npy")
    }
    return header, arrays


def fit_of(header: Mapping[str, Any], arrays: Mapping[str, Array], recipe: Recipe | None = None) -> SampleFit:
    """The fit whose parts these are: with the program and data in them, or those of the recipe."""
    statistics = header["statistics"]
    if recipe is None:
        recipe = recipe_of(header["program"], arrays)
    variables = [variable_of(entry) for entry in header["variables"]]
    unconstrained = header["unconstrained_names"]
    make = partial(model_of, recipe)
    about = ModelDescription(
        header["model"], variables, unconstrained, recipe, make, header["compile_seconds"],
        f"ulam {header['ulam_version']}",
    )  # fmt: skip
    blocks = [
        (arrays[f"{prefix}unconstrained"], arrays[f"{prefix}values"],
         {name: arrays[f"{prefix}statistics/{name}"] for name in statistics})
        for prefix in ("", "warmup/")
        if f"{prefix}values" in arrays
    ]  # fmt: skip
    for points, values, stats in blocks:
        shape = values.shape[:2]
        expected = [(points, (*shape, len(unconstrained))), (values, (*shape, len(about.names)))]
        expected += [(array, shape) for array in stats.values()]
        if any(array.shape != wanted for array, wanted in expected):
            raise ValueError("its arrays do not have the shapes of its variables")
    warmup = blocks[1] if len(blocks) > 1 else None
    rest = (
        arrays["step_size"],
        arrays.get("metric"),
        _settings(header["settings"]),
        arrays["seconds"],
        header["notes"],
        header["ended"],
    )
    return SampleFit(about, *blocks[0], warmup, *rest)


def _header(archive: zipfile.ZipFile, name: str, kinds: Collection[str]) -> dict[str, Any]:
    if name not in archive.namelist():
        raise _Unreadable
    header = json.loads(archive.read(name))
    if header["format"] not in kinds:
        raise _Unreadable
    if header["schema_version"] > SCHEMA_VERSION:
        raise _Unreadable(f"a later version of ulam wrote it, {header['ulam_version']}: this is {ulam_version()}")
    return header


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """A member in NumPy's format, of numbers, whose size is as it says."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(member)
        if dtype.kind not in KINDS:
            raise ValueError(f"{info.filename} holds no numbers")
        if member.tell() + math.prod(shape) * dtype.itemsize != info.file_size:
            raise ValueError(f"{info.filename} has another size than it says")
        array = np.empty(shape[::-1] if is_fortran else shape, dtype=dtype)
        flat = array.reshape(-1).view(np.uint8)
        for begin in range(0, flat.size, _PIECE):
            piece = np.frombuffer(member.read(min(_PIECE, flat.size - begin)), dtype=np.uint8)
            flat[begin : begin + piece.size] = piece
        if member.read(1):  # compares the checksum, too
            raise ValueError(f"{info.filename} has another size than it says")
    return array.T if is_fortran else array


def variable_of(entry: Mapping[str, Any]) -> GlobalVariable:
    """The variable of a record."""
    return GlobalVariable(
        -1, entry["name"], entry["block"], entry["type"], entry["element"], int(entry["array_rank"]), entry["inner"],
        entry["constraint"], -1, dims=tuple(int(size) for size in entry["dims"]),
        field_ranks=tuple(int(rank) for rank in entry.get("field_ranks", ())),
    )  # fmt: skip


def _settings(record: Mapping[str, Any]) -> SamplingSettings:
    """Of the settings that this version has; those that the file lacks have their defaults."""
    known = {each.name for each in fields(SamplingSettings)}
    adapt = {each.name for each in fields(Adaptation)}
    values = {name: value for name, value in record.items() if name in known and name != "adapt"}
    own = {name: value for name, value in record.get("adapt", {}).items() if name in adapt}
    return SamplingSettings(**values, adapt=Adaptation(**own))


def recipe_of(record: Mapping[str, Any], arrays: Mapping[str, Array]) -> Recipe:
    """The program of an archive with its data."""
    known = {each.name for each in fields(CompileOptions)}
    options = {name: value for name, value in record["options"].items() if name in known}
    options["include_paths"] = tuple(options.get("include_paths", ()))
    options["externals"] = tuple(
        ExternalForm(name, has_pullback, tuple(shape), identity)
        for name, has_pullback, shape, identity in options.get("externals", ())
    )
    data = {name: _with_numbers(value) for name, value in record["data"].items()}
    data |= {name.removeprefix("data/"): array for name, array in arrays.items() if name.startswith("data/")}
    values = Values(record["data_name"], data, record["data_is_json"])
    return Recipe(record["text"], record["filename"], values, record["seed"], True, CompileOptions(**options), True)


def _with_numbers(value: Any) -> Any:
    """JSON with numbers in place of the words for them."""
    if isinstance(value, list):
        return [_with_numbers(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _with_numbers(entry) for name, entry in value.items()}
    return SPECIAL_NUMBERS.get(value, value) if isinstance(value, str) else value
