"""Values that users give: checked for tracked calls and for updates, and put into the table of bound data."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import ArgumentError
from ulam.runtime.native import BoundData
from ulam.tracing.instrument.fields import Formal
from ulam.tracing.instrument.graph import ValueType

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "real", "c": "complex number", "U": "string"}


def count_of(number: int) -> str:
    """How messages tell a number of arguments."""
    return "1 argument" if number == 1 else f"{number} arguments"


def argument_name(function: str, name: str) -> str:
    """How messages name an argument."""
    return f"'{function}': argument '{name}'"


def argument_values(function: str, formal: Formal, value: Any) -> tuple[list[Any], int]:
    """An argument, as the values that the function takes, and how many ints had to become real.

    A tuple is one of Python, an array of tuples a list of them.
    """
    if not formal.parts:
        made, promoted = argument_value(function, formal.name, formal.type, value)
        return [made], promoted
    parts = _complex_parts(function, formal, value) if formal.is_complex else _fields(function, formal, value)
    found = [argument_values(function, part, own) for part, own in zip(formal.parts, parts, strict=True)]
    return [one for made, _ in found for one in made], sum(promoted for _, promoted in found)


def _complex_parts(function: str, formal: Formal, value: Any) -> tuple[Any, Any]:
    array, type_ = np.asarray(value), formal.type
    if array.dtype.kind not in "biufc" or array.ndim != type_.rank:
        expected = re.sub(r"\w+$", lambda m: "complex" if m[0] == "real" else f"complex_{m[0]}", str(type_))
        raise ArgumentError(f"{argument_name(function, formal.name)} is {expected}, but {_described(array)} was given")
    return np.real(array), np.imag(array)


def _fields(function: str, formal: Formal, value: Any) -> Sequence[Any]:
    parts = formal.parts
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        value = tuple(map(list, zip(*value, strict=True)))  # of an array of tuples a tuple of arrays
    is_pair = len(parts) == 2 and not parts[0].parts and parts[0].type == parts[1].type
    if is_pair and not isinstance(value, tuple):
        return _complex_parts(function, Formal(formal.name, parts[0].type), value)
    if not isinstance(value, tuple) or len(value) != len(parts):
        given = f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a value of type {type(value).__name__}"
        what = argument_name(function, formal.name)
        raise ArgumentError(f"{what} is a tuple of {len(parts)}, but {given} was given")
    return value


def argument_value(function: str, name: str, type_: ValueType, value: Any) -> tuple[Any, int]:
    """An argument as the function takes it, and whether an int had to become real."""
    if type_.base == "other":
        raise ArgumentError(f"'{function}' cannot be traced yet: the type of its argument '{name}' is not supported")
    array = checked(argument_name(function, name), type_, value)
    return as_taken(array, type_), int(not type_.is_int and array.dtype.kind != "f")


def checked(what: str, type_: ValueType, value: Any, sizes: tuple[int, ...] | None = None) -> npt.NDArray[Any]:
    """A value as numbers. Raises ArgumentError if it has not the type, or not the sizes, where these are fixed."""
    is_truth = type_.base == "bool"
    expected = "a condition (true or false)" if is_truth else str(type_)
    if sizes:
        expected += f" with the sizes {list(sizes)}"
    try:
        array = np.asarray(value)
    except ValueError:
        raise ArgumentError(f"{what} is {expected}, but a ragged {type(value).__name__} was given") from None
    kind = array.dtype.kind
    if kind == "O" and type_.is_int and all(type(n) is int for n in array.flat):
        kind = "i"  # beyond 64 bits
    kinds = "biu" if is_truth else "iu" if type_.is_int else "iuf"
    agrees = array.ndim == type_.rank and sizes in (None, array.shape) and (kind in kinds or not array.size)
    if not agrees or (is_truth and array.item() not in (0, 1)):
        raise ArgumentError(f"{what} is {expected}, but {_described(array)} was given")
    if type_.is_int and array.size and not (-(2**31) <= int(array.min()) and int(array.max()) < 2**31):
        raise ArgumentError(f"{what} is {expected}, but {_described(array)} was given, which does not fit 32 bits")
    return array


def as_taken(array: npt.NDArray[Any], type_: ValueType) -> Any:
    """Numbers as functions take them: an int, a float, or an array of 32-bit ints or of floats."""
    if not array.ndim:
        return int(array) if type_.is_int else float(array)
    return array.astype(np.int32 if type_.is_int else float)


def _described(array: npt.NDArray[Any]) -> str:
    """What was given, for messages."""
    kind = _KINDS.get(array.dtype.kind, "object")
    if array.ndim:
        return f"an array of {kind}s with the sizes {list(array.shape)}"
    value = array.item()
    if kind == "object":
        if type(value) is not int:
            return f"a value of type {type(value).__name__}"
        kind = "int"
    return f"the {kind} {reprlib.repr(value)}"


def store_arguments(data: BoundData, values: Sequence[Any], types: Sequence[ValueType]) -> None:
    """Puts arguments into the bound table from slot 1 on: of a container its elements, then its sizes."""
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
