"""Finds the definition in `library/*.stan` that a call of a library function means.

A definition fits exactly, or by promotion of int to real, or by broadcasting: a scalar formal then stands for the
elements of a container, and a container formal of a density, or the first of a transform, for the elements of an array.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from threading import RLock
from typing import TYPE_CHECKING, TypeGuard

from ulam.frontend.source import Source
from ulam.frontend.stan_types import (
    COMPLEX,
    COMPLEX_MATRIX,
    COMPLEX_ROW_VECTOR,
    COMPLEX_VECTOR,
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    ArrayType,
    BasicType,
    StanType,
    has_complex,
    part_of,
)
from ulam.library import catalog, complex_functions, own_libraries
from ulam.library.extension_points import ExtensionError
from ulam.library.functions import kind_of
from ulam.library.records import record

if TYPE_CHECKING:
    from ulam.frontend.syntax import FunctionDefinition

DEFINITIONS_LOCK = RLock()
"""Definitions are parsed and checked once in a process, whatever the number of threads that compile."""

_EXACT, _PROMOTED, _BROADCAST = 0, 1, 100


@record(slots=True, eq=False)
class LibraryFunction:
    """One definition, parsed. `symbol` is the name of its `stan.func`; `checked` once the type checker saw it."""

    definition: FunctionDefinition
    source: Source
    symbol: str
    checked: bool = False


@cache
def overloads(name: str) -> tuple[LibraryFunction, ...]:
    """The parsed definitions of a library function, in the order of the files."""
    found = catalog.definitions(name)
    if not found:
        return ()
    from ulam.frontend.parse.program import parse_functions

    parsed: list[LibraryFunction] = []
    for number, text in enumerate(found):
        first_line = catalog.file_text(text.file).count("\n", 0, text.offset) + 1
        source = Source(text.text, _shown(text.file), first_line=first_line)
        (definition,) = parse_functions(source)
        if definition.body is None and os.path.isabs(text.file):
            definition.external = _external(definition, text.file)
        parsed.append(LibraryFunction(definition, source, name if number == 0 else f"{name}.{number}"))
    return tuple(parsed)


def _shown(file: str) -> str:
    """What messages call a file of a library."""
    return f"library/{file}" if not os.path.isabs(file) else file


def _external(definition: FunctionDefinition, file: str) -> str:
    """The kernel of a function that a library of another package declares without a body."""
    from ulam.frontend.functions.externals import ExternalProblem, declared

    form = own_libraries.external_form(definition.name)
    if form is None:
        raise ExtensionError(f"{file}: '{definition.name}' has no body, and its library no external function for it")
    try:
        return declared(definition, form).kernel_name
    except ExternalProblem as problem:
        raise ExtensionError(f"{problem}; {problem.help}") from None


def resolve(name: str, arguments: tuple[StanType, ...]) -> LibraryFunction | None:
    """The definition that fits the arguments best; None if there is none."""
    with DEFINITIONS_LOCK:
        return _resolve(name, arguments)


@lru_cache(maxsize=4096)
def _resolve(name: str, arguments: tuple[StanType, ...]) -> LibraryFunction | None:
    if any(map(has_complex, arguments)):
        if complex_functions.is_made_of_parts(name):
            return _resolve(name, tuple(map(part_of, arguments))) if name in complex_functions.EACH_PART else None
        if overloads(complex_functions.definition_name(name)):
            name = complex_functions.definition_name(name)
    best: LibraryFunction | None = None
    best_cost = 1 << 30
    for candidate in overloads(name):
        cost = _cost(name, candidate.definition, arguments)
        if cost is not None and cost < best_cost:
            best, best_cost = candidate, cost
    return best


def _cost(name: str, definition: FunctionDefinition, arguments: tuple[StanType, ...]) -> int | None:
    formals = [a.type for a in definition.arguments]
    if len(formals) != len(arguments):
        return None
    kind = kind_of(name)
    probability = kind.is_of_distribution
    elementwise = probability or all(_is_scalar(f) for f in formals)
    total = 0
    for formal, actual in zip(formals, arguments, strict=True):
        if kind.is_transform and formal is formals[0] and _is_array_of(actual, formal):
            total += _BROADCAST * actual.rank
            continue
        cost = _argument_cost(formal, actual, elementwise, probability)
        if cost is None:
            return None
        total += cost
    return total


def _argument_cost(formal: StanType, actual: StanType, elementwise: bool, probability: bool) -> int | None:
    if formal == actual:
        return _EXACT
    if _promotes(actual, formal):
        return _PROMOTED
    if _is_scalar(formal):
        return _scalar_broadcast_cost(formal, actual, probability) if elementwise else None
    if probability and isinstance(actual, ArrayType):
        if isinstance(formal, ArrayType):
            outer = actual.rank - formal.rank
            fits = outer > 0 and (actual.element == formal.element or _promotes(actual.element, formal.element))
            return _BROADCAST * outer if fits else None
        if actual.element == formal:
            return _BROADCAST * actual.rank
    return None


def _scalar_broadcast_cost(formal: StanType, actual: StanType, probability: bool) -> int | None:
    """An int formal takes arrays of int, a real one any container of real or int entries."""
    element, cost = actual, _BROADCAST
    if isinstance(actual, ArrayType):
        element, cost = actual.element, cost * actual.rank
        if probability and not _is_scalar(element):
            return None  # densities of scalars take no arrays of vectors
        if element == formal:
            return cost
        if element == INT:
            return cost + _PROMOTED if formal == REAL else None
        if element == REAL:
            return None
    if formal == REAL and element in (VECTOR, ROW_VECTOR, MATRIX):
        return None if probability and element == MATRIX else cost + _BROADCAST
    if formal == COMPLEX and element in (COMPLEX_VECTOR, COMPLEX_ROW_VECTOR, COMPLEX_MATRIX):
        return cost + _BROADCAST
    return None


def _is_array_of(actual: StanType, formal: StanType) -> TypeGuard[ArrayType]:
    """Whether a transform of a container is called for an array of such."""
    return isinstance(actual, ArrayType) and actual.element == formal and not _is_scalar(formal)


def _is_scalar(type_: StanType) -> bool:
    return isinstance(type_, BasicType) and type_.name in ("int", "real", "complex")


def _promotes(source: StanType, target: StanType) -> bool:
    """Int to real, alone or as the entries of an array."""
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return source.rank == target.rank and source.element == INT and target.element == REAL
    return source == INT and target == REAL
