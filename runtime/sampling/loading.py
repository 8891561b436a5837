"""`ulam.load`: a fit from the file that `SampleFit.save` wrote (see `storage`)."""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.compiler import CompileOptions
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

_PIECE = 1 << 24
"""Bytes that are read at a time."""

_DAMAGED = (
    zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, NotImplementedError, OverflowError,
    RuntimeError, AttributeError,
)  # fmt: skip
"""What reading a file that is not as it was written may raise."""


def load(path: str | os.PathLike[str]) -> SampleFit:
    """A fit that `SampleFit.save` wrote. Nothing is compiled: `fit.model` is, when it is asked for.

    Raises OSError for a file that cannot be read, DataError for one that holds no fit, or is damaged.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        try:
            return _loaded(file)
        except _Unreadable as error:
            raise DataError([f"{name}: {error}"]) from None
        except _DAMAGED as error:
            if not zipfile.is_zipfile(file):
                raise DataError([f"{name}: not a file that fit.save wrote, or a part of one"]) from None
            raise DataError([f"{name}: the file is damaged: {error}"]) from None


class _Unreadable(Exception):
    """What is wrong with a file, in words for users."""


def _loaded(file: IO[bytes]) -> SampleFit:
    with zipfile.ZipFile(file) as archive:
        header = _header(archive)
        arrays = {
            info.filename.removesuffix(".npy"): _array(archive, info)
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
    statistics = header["statistics"]
    recipe = _recipe(header["program"], arrays)
    variables = [_variable(entry) for entry in header["variables"]]
    unconstrained = header["unconstrained_names"]
    make = partial(model_of, recipe)
    about = ModelDescription(header["model"], variables, unconstrained, recipe, make, header["compile_seconds"])
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


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise _Unreadable("not a file that fit.save wrote")
    header = json.loads(archive.read(HEADER))
    if header["format"] != FORMAT:
        raise _Unreadable("not a file that fit.save wrote")
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


def _variable(entry: Mapping[str, Any]) -> GlobalVariable:
    return GlobalVariable(
        -1, entry["name"], entry["block"], entry["type"], entry["element"], int(entry["array_rank"]), entry["inner"],
        entry["constraint"], -1, dims=tuple(int(size) for size in entry["dims"]),
    )  # fmt: skip


def _settings(record: Mapping[str, Any]) -> SamplingSettings:
    """Of the settings that this version has; those that the file lacks have their defaults."""
    known = {each.name for each in fields(SamplingSettings)}
    adapt = {each.name for each in fields(Adaptation)}
    values = {name: value for name, value in record.items() if name in known and name != "adapt"}
    own = {name: value for name, value in record.get("adapt", {}).items() if name in adapt}
    return SamplingSettings(**values, adapt=Adaptation(**own))


def _recipe(record: Mapping[str, Any], arrays: Mapping[str, Array]) -> Recipe:
    known = {each.name for each in fields(CompileOptions)}
    options = {name: value for name, value in record["options"].items() if name in known}
    options["include_paths"] = tuple(options.get("include_paths", ()))
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
