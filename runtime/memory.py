"""Whether what a program declares fits into the memory of this machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ulam.runtime.c_library import available_bytes, machine_bytes
from ulam.runtime.errors import DataError, OutOfMemoryError
from ulam.runtime.names import GlobalVariable

_ELEMENT = 8
_COPIES = 4
"""A gradient needs the point and the gradient, and both again in the arena."""
_SMALL = 1 << 28
"""Bytes that every machine is taken to have: nothing is asked about what needs less."""


def check_memory(variables: Sequence[GlobalVariable], unconstrained: Mapping[str, int]) -> None:
    """Raises DataError if a variable, or the parameters with a gradient, are larger than the machine's memory.

    `unconstrained`: name of a parameter → how many unconstrained values it has.
    """
    for variable in variables:
        needed = _ELEMENT * max(variable.size, unconstrained.get(variable.name, 0))
        if needed > _SMALL and needed > (memory := machine_bytes()):
            sizes = " x ".join(map(str, variable.dims))
            problem = f"is too large: sizes {sizes} need {needed} bytes, and this machine has {memory}"
            raise DataError([f"variable '{variable.name}' {problem}"])
    count = sum(unconstrained.values())
    needed = _COPIES * _ELEMENT * count
    if needed > _SMALL and needed > (memory := machine_bytes()):
        name, most = max(unconstrained.items(), key=lambda item: item[1])
        values = f"{count} unconstrained values (of which '{name}' has {most})"
        problem = f"a gradient of {values} needs {needed} bytes, and this machine has {memory}"
        raise DataError([f"the parameters are too large: {problem}"])
    for variable in variables:
        found = unconstrained.get(variable.name)
        if found is not None and found != (expected := math.prod(variable.unconstrained_dims)):
            raise AssertionError(f"'{variable.name}' has {found} unconstrained values, but {expected} were expected")


@contextmanager
def room_for(variables: Sequence[GlobalVariable], values: int) -> Iterator[None]:
    """For making an array of as many `values` as the variables have: raises OutOfMemoryError where there is no room."""
    needed = _ELEMENT * values
    try:
        if needed > _SMALL and needed > available_bytes():
            raise MemoryError
        yield
    except MemoryError:
        largest = max(variables, key=lambda variable: variable.size)
        sizes = " x ".join(map(str, largest.dims)) or "1"
        name = f"the largest is '{largest.name}' with sizes {sizes}"
        raise OutOfMemoryError(f"out of memory: {values} values ({name}) need {needed} bytes") from None
