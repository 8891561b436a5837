"""The elements of a vectorised `~` statement: which of them have a log density that is not finite, and why.

The statement is evaluated once more, element by element, by a function that is compiled for it; nothing of this costs
anything while a model runs. What an element is follows from the library's definition of the density: where it takes a
scalar, or a vector, and the program gives a container of these, the elements are the parts of the container.

Supports are what the library's densities say of their variates (`library/supports.py`), with the numbers of the
arguments. Where they say nothing, it is the whole line, or checked by the density itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ulam.frontend.stan_types import BasicType, StanType, array_of
from ulam.library.functions import DENSITIES, function
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.errors import UlamError
from ulam.tracing.contexts import TraceContext
from ulam.tracing.explain.parts import short_text
from ulam.tracing.functions import traced_program
from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.session import TracedProgram
from ulam.tracing.tape.values import SHOWN, Digest, scalar_text, value_text


@dataclass(frozen=True)
class Interval:
    """A support with its numbers."""

    lower: float
    upper: float
    has_lower: bool
    has_upper: bool

    def __contains__(self, value: float) -> bool:
        above = self.lower < value or (self.has_lower and value == self.lower)
        below = value < self.upper or (self.has_upper and value == self.upper)
        return above and below

    def outside(self, name: str, value: float) -> str:
        """`y = 5.0 outside [-1.0, 1.0]`, with as many digits as it takes to see it."""
        shown = [short_text(number) for number in (value, self.lower, self.upper)]
        rounded = Interval(float(shown[1]), float(shown[2]), self.has_lower, self.has_upper)
        if float(shown[0]) in rounded:
            shown = [scalar_text(number) for number in (value, self.lower, self.upper)]
        opening, closing = "[" if self.has_lower else "(", "]" if self.has_upper else ")"
        return f"{name} = {shown[0]} outside {opening}{shown[1]}, {shown[2]}{closing}"


def support(distribution: str, arguments: Mapping[str, Any]) -> Interval | None:
    """The support for these arguments, scalars by name; None if the density's definition tells none, or an argument is
    missing."""
    known = next((found for kind in DENSITIES if (found := function(kind.of(distribution)).support) is not None), None)
    if known is None:
        return None
    lower, upper = (arguments.get(bound) if isinstance(bound, str) else bound for bound in (known.lower, known.upper))
    return None if lower is None or upper is None else Interval(lower, upper, known.has_lower, known.has_upper)


ROW_WISE = {"x": "matrix", "y": "array", "n": "array", "N": "array", "alpha": "vector"}
"""Arguments of the densities of linear models (`*_glm`) that have a part for each observation, if they are of this
kind; such densities are not made of those of single observations in the library."""

VECTOR = ValueType("vector")


@dataclass(frozen=True)
class ElementDensity:
    """A density for arguments of given types: which arguments have a part for each element, and their names."""

    function: str
    types: tuple[ValueType, ...]
    names: tuple[str, ...]
    by_element: tuple[bool, ...]

    @property
    def vectorised(self) -> bool:
        """Whether the variate itself has several elements."""
        return self.by_element[0]


@lru_cache(maxsize=256)
def density(distribution: str, types: tuple[ValueType, ...]) -> ElementDensity | None:
    """The library's density that a `~` statement means; None if there is none, or a type has no text."""
    from ulam.frontend.functions.definitions import resolve

    if any(type_.base in ("other", "void", "function", "string") for type_ in types):
        return None
    actual = tuple(stan_type(type_) for type_ in types)
    for kind in DENSITIES:
        found = resolve(kind.of(distribution), actual)
        if found is not None:
            formals = found.definition.arguments
            names = tuple(argument.name for argument in formals)
            if distribution.endswith("_glm"):
                parts = tuple(_is_row_wise(n, t) for n, t in zip(names, types, strict=True))
            else:
                parts = tuple(_has_parts(f.type, a) for f, a in zip(formals, actual, strict=True))
            return ElementDensity(kind.of(distribution), types, names, parts)
    return None


def stan_type(type_: ValueType) -> StanType:
    """A type of a trace as one of the language."""
    base = BasicType("int" if type_.base == "bool" else type_.base)
    return array_of(base, type_.array_rank) if type_.array_rank else base


def _has_parts(formal: StanType, actual: StanType) -> bool:
    """Whether an argument is a container of what the density takes; an int for a real is none."""
    numbers = (BasicType("int"), BasicType("real"))
    return formal != actual and not (formal in numbers and actual in numbers) and _rank(actual) > _rank(formal)


def _rank(type_: StanType) -> int:
    base = getattr(type_, "element", type_)
    inner = {"vector": 1, "row_vector": 1, "matrix": 2}.get(getattr(base, "name", ""), 0)
    return inner + getattr(type_, "rank", 0)


def _is_row_wise(name: str, type_: ValueType) -> bool:
    kind = "array" if type_.array_rank else type_.base
    return ROW_WISE.get(name) == kind or (name == "y" and kind == "vector")


# ---------------------------------------------------------------- element by element


@lru_cache(maxsize=64)
def _program(density: ElementDensity) -> TracedProgram:
    """A program whose function `elements` gives the log density of each element."""
    parameters = ", ".join(f"{stan_type(t)} a{n}" for n, t in enumerate(density.types))
    used = [f"a{n}[i:i]" if part else f"a{n}" for n, part in enumerate(density.by_element)]
    count = "rows(a0)" if density.types[0].base == "matrix" and not density.types[0].array_rank else "size(a0)"
    text = (
        f"functions {{\n  vector elements({parameters}) {{\n    int count = {count};\n    vector[count] each;\n"
        f"    for (i in 1:count) each[i] = {density.function}({used[0]} | {', '.join(used[1:])});\n"
        "    return each;\n  }\n}\n"
    )
    return traced_program(text, "elements.stan", CompileOptions(0))


def increments(density: ElementDensity, values: list[Any]) -> list[float] | None:
    """The log density of each element, with constants; None if it cannot be had."""
    if not density.vectorised or any(isinstance(value, Digest) for value in values):
        return None
    try:
        root = _program(density).track("elements", values, TraceContext(max_depth=1, containers="copy"), None, "keep")
    except UlamError:
        return None
    found = root.value
    return [float(x) for x in found] if isinstance(found, np.ndarray) else None


def argument_of(value: Any, by_element: bool, element: int) -> Any:
    """The part of an argument that belongs to an element."""
    if not by_element or not isinstance(value, np.ndarray):
        return value
    return value[element]


# ---------------------------------------------------------------- what is wrong with an element


def reason(
    density: ElementDensity, distribution: str, values: list[Any], element: int, name: str, increment: float
) -> str:
    """Why an element's log density is not finite: outside of the support, or else what went in."""
    parts = [argument_of(v, by, element) for v, by in zip(values, density.by_element, strict=True)]
    numbers = {n: _number(p) for n, p in zip(density.names[1:], parts[1:], strict=True) if np.ndim(p) == 0}
    variate = parts[0]
    if np.ndim(variate) == 0 and not math.isnan(float(variate)):
        interval = support(distribution, numbers)
        if interval is not None and is_outside(float(variate), interval):
            return interval.outside(name, _number(variate))
    given = [f"{n} = {_text(part)}" for n, part in zip(density.names[1:], parts[1:], strict=True) if _is_short(part)]
    return f"{name} = {_text(variate)} has log density {short_text(increment)}{' for ' * bool(given)}{', '.join(given)}"


def _is_short(value: Any) -> bool:
    return np.ndim(value) < 2 and np.size(value) <= SHOWN


def _text(value: Any) -> str:
    """A number or a container, with few digits."""
    if np.ndim(value) != 1 or not _is_short(value):
        return short_text(_number(value)) if np.ndim(value) == 0 else value_text(value, VECTOR)
    return f"[{', '.join(short_text(number) for number in value.tolist())}]"


def is_outside(value: float, interval: Interval) -> bool:
    """Whether a value is not in a support; with bounds that are NaN nothing can be said."""
    if math.isnan(interval.lower) or math.isnan(interval.upper):
        return False
    return value not in interval


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
