"""Arguments of tracked functions: as they take them, and in the table of bound data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.passes.trace.graph import ValueType
from ulam.runtime.errors import ArgumentError
from ulam.runtime.native import BoundData


def count_of(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"


def argument_value(function: str, name: str, type_: ValueType, value: Any) -> tuple[Any, int]:
    """An argument as the function takes it, and whether an int had to become real."""
    if type_.base == "other":
        raise ArgumentError(f"'{function}' cannot be traced yet: the type of its argument '{name}' is not supported")
    what = f"'{function}': argument '{name}'"
    try:
        array = np.asarray(value)
    except ValueError:
        raise ArgumentError(f"{what} is ragged") from None
    if array.dtype.kind not in "iuf" and array.size:
        raise ArgumentError(f"{what} is {type_}, not {type(value).__name__}")
    if array.ndim != type_.rank:
        raise ArgumentError(f"{what} is {type_}, with {type_.rank} dimensions, but has {array.ndim}")
    if not type_.is_int:
        return (array.astype(float) if array.ndim else float(array)), int(array.dtype.kind != "f")
    if array.dtype.kind == "f" and array.size:
        raise ArgumentError(f"{what} is {type_}, but a real was given")
    if array.size and not (-(2**31) <= int(array.min()) and int(array.max()) < 2**31):
        raise ArgumentError(f"{what} does not fit 32 bits")
    return (array.astype(np.int32) if array.ndim else int(array)), 0


def store_arguments(data: BoundData, values: Sequence[Any], types: Sequence[ValueType]) -> None:
    slot = 1
    for value, type_ in zip(values, types, strict=True):
        if type_.rank:
            data.set_array(slot, _elements(value, type_))
            for n, size in enumerate(value.shape, slot + 1):
                data.set_int(n, size)
        elif type_.is_int:
            data.set_int(slot, value)
        else:
            data.set_real(slot, value)
        slot += 1 + type_.rank


def _elements(value: npt.NDArray[Any], type_: ValueType) -> npt.NDArray[Any]:
    """In the order of compiled programs: matrices by column."""
    ordered = np.swapaxes(value, -1, -2) if type_.base == "matrix" else value
    flat = np.ascontiguousarray(ordered).reshape(-1)
    return flat if flat.size else np.zeros(1, flat.dtype)
