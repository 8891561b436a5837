"""What users hand to a model, checked: arrays to read and to write, programs, options."""

from __future__ import annotations

import ctypes
import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.frontend.encoding import read_text
from ulam.passes.pipelines import DEFAULT_LEVEL, LEVELS, PROFILING, PipelineError, without_anchor
from ulam.runtime.errors import ArgumentError
from ulam.runtime.named_text import MODULE_SUFFIX, NamedText, is_module, named_by_content

FloatArray = npt.NDArray[np.float64]


def vector(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    """The argument as an array of float64, or ArgumentError. C arrays and pointers must be of double."""
    if isinstance(values, (ctypes.Array, ctypes._Pointer)):  # pyright: ignore[reportPrivateUsage]
        values = contiguous(values, shape, name)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise ArgumentError(f"{name} must be an array of {shape[0]} real numbers, found {kind}") from None
    if array.shape != shape:
        raise ArgumentError(f"{name} must have shape {shape}, found {array.shape}")
    return array


def writable(out: Any, shape: tuple[int, ...]) -> FloatArray:
    """The output argument as an array that shares its memory, or ArgumentError."""
    array = contiguous(out, shape, "the output array") if not isinstance(out, np.ndarray) else out
    if array.shape != shape or array.dtype != np.float64 or not array.flags.writeable:
        found = f"shape {array.shape} of {array.dtype}"
        raise ArgumentError(f"the output array must be a writeable float64 array of shape {shape}, found {found}")
    return array


def contiguous(values: Any, shape: tuple[int, ...], name: str) -> FloatArray:
    """The memory behind a ctypes array, or pointer, of double."""
    if isinstance(values, ctypes.Array) and values._type_ is ctypes.c_double:  # pyright: ignore[reportUnknownMemberType]
        return np.ctypeslib.as_array(values).reshape(shape if math.prod(shape) == len(values) else -1)
    if isinstance(values, ctypes.POINTER(ctypes.c_double)):
        return np.ctypeslib.as_array(values, shape=shape)
    raise ArgumentError(f"{name} must be an array of float64, or of C double, found {type(values).__name__}")


def random_seed(seed: Any) -> int:
    """A seed as an int. Raises ArgumentError for what is no int, or negative."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"seed must be an int that is not negative, found {seed!r}")
    return int(seed)


def chosen_level(opt_level: Any, passes: Any = None) -> dict[str, Any]:
    """The level, or the pipeline in the place of its passes, as fields of `CompileOptions`; or ArgumentError."""
    try:
        if passes is not None:
            if opt_level is not None:
                raise ArgumentError("give either opt_level or passes: the passes are those that run, and no level's")
            if not isinstance(passes, str):
                raise ArgumentError(f"passes must be a pipeline's text, as 'a,b{{option=value}}', found {passes!r}")
            return {"opt_level": DEFAULT_LEVEL, "pipeline": _known_passes(passes)}
        if isinstance(opt_level, str):
            from ulam.passes.levels import find_level

            level = find_level(opt_level)
            passes = without_anchor(level.passes).strip()
            return {"opt_level": level.like, "pipeline": passes, "level_name": opt_level}
    except PipelineError as error:
        raise ArgumentError(str(error)) from error
    if opt_level is None:
        return {"opt_level": DEFAULT_LEVEL}
    level = int(opt_level) if isinstance(opt_level, int | np.integer) and not isinstance(opt_level, bool) else None
    if level not in LEVELS:
        raise ArgumentError(
            f"opt_level must be an int from {min(LEVELS)} to {max(LEVELS)}, or the name of a level, found {opt_level!r}"
        )
    return {"opt_level": level}


def asked_level(given: str | None) -> int | str | None:
    """A level as it is written on a command line: the argument `opt_level`."""
    return int(given) if given is not None and given.isdecimal() else given


def _known_passes(pipeline: str) -> str:
    """The text of a pipeline that names passes that there are."""
    from ulam.passes.levels import fingerprints

    text = without_anchor(pipeline).strip()
    fingerprints(text)
    return text


def profiling(profile: bool | str) -> str:
    """The name of a row of `PROFILING`."""
    name = ("on" if profile else "off") if isinstance(profile, bool) else profile
    if name not in PROFILING:
        raise ArgumentError(f"profile must be True, False, {', '.join(map(repr, PROFILING))}, found {profile!r}")
    return name


def read_source(source: str | os.PathLike[str] | NamedText) -> tuple[str, str]:
    """Text and file name of a program given as a path or as its text."""
    if isinstance(source, NamedText):
        return source.text, named_by_content(source.text, source.name)
    if isinstance(source, str) and (any(mark in source for mark in "\n{;") or not source.strip()):
        return source, "model.mlir" if named_by_content(source, "") else "model.stan"
    path = _as_shown(os.fspath(source))
    if not os.path.isfile(path):
        raise FileNotFoundError(f"Stan program '{path}' does not exist")
    return read_text(path), path


def require_text(filename: str, what: str) -> None:
    """Raises ArgumentError for a program that is a module: `what` reads Stan."""
    if is_module(filename):
        raise ArgumentError(
            f"{what} reads the text of a Stan program, and {filename} is MLIR: "
            f"`stan-opt -t stan {filename} -o {filename.removesuffix(MODULE_SUFFIX)}.stan` writes it as Stan"
        )


def _as_shown(path: str) -> str:
    """As `str(Path(path))`, which messages and keys of the cache have, without importing pathlib for common paths."""
    if os.sep == "/" and all(path.split("/")[1:]) and "." not in path.split("/"):
        return path
    from pathlib import Path

    return str(Path(path))
