"""Signatures of the functions of `library/extensions.stan`, which Stan does not have: made of their definitions.

A definition of scalars also takes containers, as Stan's functions do:

    real foo_lpdf(real y, real a)    foo_lpdf(real | vector), ...: the sum over elements; cdf, lcdf and lccdf alike
    real foo_rng(real a)             foo_rng(vector) => array[] real, ...
    real foo(real x)                 foo(vector) => vector, foo(array[,] real) => array[,] real, ...

and a density of containers also takes arrays of them. Ints for reals are promotions, which need no signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ulam.frontend.functions.definitions import overloads
from ulam.frontend.functions.type_codes import code_of
from ulam.frontend.stan_types import INT, MATRIX, REAL, ROW_VECTOR, VECTOR, StanType, array_of
from ulam.frontend.syntax import FunctionDefinition
from ulam.library.functions import FunctionKind, kind_of

_SCALARS = (INT, REAL)
_SEQUENCES: dict[StanType, tuple[StanType, ...]] = {
    REAL: (REAL, VECTOR, ROW_VECTOR, array_of(REAL, 1)),
    INT: (INT, array_of(INT, 1)),
}
"""What distributions of scalars take."""

_MATRICES: tuple[StanType, ...] = (VECTOR, ROW_VECTOR, MATRIX)
_SHAPES = (*_MATRICES, *(array_of(REAL, rank) for rank in (1, 2, 3)), *(array_of(m, 1) for m in _MATRICES))
"""What other functions of scalars are applied to, element by element; the arrays of reals stand for those of ints."""

Types = tuple[StanType, ...]


def results(name: str) -> dict[str, str]:
    """Codes of the arguments → code of the result, for all forms of a function; no forms if it is not defined."""
    found: dict[str, str] = {}
    for function in overloads(name):
        for arguments, result in _forms(name, function.definition):
            found.setdefault("".join(map(code_of, arguments)), code_of(result))
    return found


def _forms(name: str, definition: FunctionDefinition) -> Iterator[tuple[Types, StanType]]:
    formals = tuple(argument.type for argument in definition.arguments)
    result, kind = definition.result, kind_of(name)
    yield formals, result
    of_scalars = bool(formals) and all(formal in _SCALARS for formal in formals)
    if kind.is_density or (of_scalars and kind.is_of_distribution):
        for arguments in product(*(_SEQUENCES.get(formal, (formal, array_of(formal, 1))) for formal in formals)):
            drawn = kind is FunctionKind.RNG and arguments != formals
            yield arguments, array_of(result, 1) if drawn else result
    elif of_scalars and result in _SCALARS:
        for shape in _SHAPES:
            for arguments in product(*(_shaped(formal, shape) for formal in formals)):
                if arguments != formals and (made := _with_scalar(shape, result)) is not None:
                    yield arguments, made


def _shaped(formal: StanType, shape: StanType) -> tuple[StanType, ...]:
    """The argument itself, and with this shape."""
    shaped = _with_scalar(shape, formal)
    return (formal,) if shaped is None else (formal, shaped)


def _with_scalar(shape: StanType, scalar: StanType) -> StanType | None:
    """The shape with these scalars; None if there is no such type: vectors of ints."""
    if scalar == REAL:
        return shape
    rank = next((rank for rank in (1, 2, 3) if shape == array_of(REAL, rank)), None)
    return None if rank is None else array_of(scalar, rank)
