"""Calls of all overloads of the library's functions, with values for their arguments and what they must give.

`plan` says how an overload follows from a simpler one, its *base*: that of scalars, or of vectors, to whose arguments
it adds containers, conversions from ints and transposition. Then value and gradient are those of the base, element by
element; with the same generator, draws as well. All gradients are compared with a central difference along a line.
Arguments come from the reference (tests/reference/functions.jsonl), a table here, or are plain small values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from reference_programs import lines

from ulam.frontend.functions import signatures
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.stan_types import (
    BASIC_TYPES,
    COMPLEX,
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    ArrayType,
    BasicType,
    FunctionType,
    StanType,
    TupleType,
    array_of,
)
from ulam.library.functions import FunctionKind, named

Values = npt.NDArray[np.float64]

SCALARS = (INT, REAL, COMPLEX)
SIZES = (2, 3, 1, 1, 1, 1, 1, 1, 1, 1)
"""Of the dimensions of containers, the first first."""

WIENER: list[tuple[Any, ...]] = [(0.9, 1.3, 0.2, 0.4, 0.6), (0.9, 1.3, 0.2, 0.4, 0.6, 0.3, 0.1, 0.1)]
DRAWN_ROWS = 3
"""Of a function's arguments: around as many others are drawn."""
_TWICE: list[tuple[Any, ...]] = [tuple([x, 1.1 * x] for x in row) for row in WIENER]
TEMPLATES: dict[str, list[tuple[Any, ...]]] = {
    "beta_neg_binomial": [(2, 3.5, 2.2, 1.3), (1, 2, 3, 2)],
    "yule_simon": [(2, 1.7), (3, 2)],
    "student_t_qf": [(0.3, 4.2, 0.5, 1.4), (0.3, 4, 1, 2)],
    "lower_bound": [(0.7, -0.4), (2, 1)],
    "upper_bound": [(0.7, 1.4), (1, 2)],
    "lower_upper_bound": [(0.7, -0.4, 1.8), (1, 0, 2)],
    "offset_multiplier": [(0.7, -0.4, 1.8), (1, 2, 3)],
    "hypergeometric_1F0": [(0.7, 0.4), (2, 0.4)],
    "hypergeometric_2F1": [(0.7, 0.4, 1.3, 0.3), (2, 1, 3, 0.3)],
    "wiener": [*WIENER, *_TWICE],
    "wiener_lcdf_unnorm": [*WIENER, *_TWICE],
    "wiener_lccdf_unnorm": [*WIENER, *_TWICE],
    "loglogistic": [(0.9, 1.3, 2.2), (2, 1, 3)],
    "choose": [(5, 2)],
    "ldexp": [(1.3, 2), (3, 2)],
    "bessel_first_kind": [(2, 1.3), (2, 3)],
    "unit_vector": [([0.6, 0.8],)],
    "stochastic_row": [([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]],)],
    "stochastic_column": [([[0.2, 0.6], [0.5, 0.3], [0.3, 0.1]],)],
    "sum_to_zero": [([0.3, 0.5, -0.8],), ([[1.0, -1.0], [-1.0, 1.0]],)],
    "cholesky_factor_corr": [([[1.0, 0.0], [0.6, 0.8]],), ([0.3], 2)],
    "cholesky_factor_cov": [([[2.0, 0.0], [0.3, 1.5]],), ([0.3, -0.2, 0.5], 2, 2)],
    "corr_matrix": [([[1.0, 0.3], [0.3, 1.0]],), ([0.3], 2)],
    "hypergeometric_3F2": [([0.3, 0.5, 0.7], [1.2, 1.4], 0.3)],
    "hypergeometric_pFq": [([0.3, 0.5, 0.7], [1.2, 1.4], 0.3)],
    "hmm_marginal": [([[-1.0, -0.5], [-0.3, -0.7]], [[0.7, 0.3], [0.2, 0.8]], [0.4, 0.6])],
    "hmm_latent": [([[-1.0, -0.5], [-0.3, -0.7]], [[0.7, 0.3], [0.2, 0.8]], [0.4, 0.6])],
    "inv_wishart": [(5, [[2.0, 0.3], [0.3, 1.5]])],
    "inv_wishart_cholesky": [(5, [[2.0, 0.0], [0.3, 1.5]])],
    "wishart": [(5, [[2.0, 0.3], [0.3, 1.5]])],
    "wishart_cholesky": [(5, [[2.0, 0.0], [0.3, 1.5]])],
    "multi_normal_cholesky": [([0.4, 0.6], [0.1, 0.3], [[2.0, 0.0], [0.3, 1.5]])],
    "multi_student_t_cholesky": [([0.4, 0.6], 3.5, [0.1, 0.3], [[2.0, 0.0], [0.3, 1.5]])],
    "bernoulli_logit_glm": [([0.4, 0.6], [0.3], [0.2, -0.4])],
    "to_matrix": [
        ([1, 2], 2, 1),
        ([1, 2], 2, 1, 0),
        ([[1, 2], [3, 4]], 4, 1),
        ([[1, 2], [3, 4]], 4, 1, 0),
    ],
    "cov_matrix": [([[2.0, 0.3], [0.3, 1.5]],), ([0.3, -0.2, 0.5], 2)],
}
"""Arguments by stem; where these are scalars, whole numbers in the second row."""


@dataclass(frozen=True)
class Plan:
    """How an overload follows from its base; `base` is None if nothing simpler is known."""

    signature: Signature
    base: tuple[StanType, ...] | None

    @property
    def is_random(self) -> bool:
        return named(self.signature.name).kind is FunctionKind.RNG


# ---------------------------------------------------------------- types


def rank_of(type_: StanType) -> int:
    """How many dimensions a value has."""
    inner = type_.element if isinstance(type_, ArrayType) else type_
    assert isinstance(inner, BasicType)
    own = 2 if inner.name.endswith("matrix") else 1 if inner.name.endswith("vector") else 0
    return own + (type_.rank if isinstance(type_, ArrayType) else 0)


def inner_of(type_: StanType) -> BasicType:
    """What the arrays of a type hold."""
    inner = type_.element if isinstance(type_, ArrayType) else type_
    assert isinstance(inner, BasicType)
    return inner


def scalar_in(type_: StanType) -> BasicType:
    """The type of the entries."""
    inner = inner_of(type_)
    return COMPLEX if inner.name.startswith("complex") else INT if inner == INT else REAL


def is_plain(type_: StanType) -> bool:
    """No tuple, no function."""
    inner = type_.element if isinstance(type_, ArrayType) else type_
    return not isinstance(inner, (TupleType, FunctionType))


# ---------------------------------------------------------------- bases


def plan(signature: Signature) -> Plan:
    """What the overload can be compared with."""
    name = signature.name
    kind = named(name).kind
    if kind is FunctionKind.PLAIN and name not in ("softmax", "log_softmax"):
        base = _scalars_of(name, len(signature.arguments))
        return Plan(signature, base if base and _is_elementwise(signature, base) else None)
    if "_glm_" in name:
        return Plan(signature, None)
    found = signatures.overloads(name)
    assert found is not None
    fitting = [s.arguments for s in found.of_arity(len(signature.arguments)) if _extends(signature, s.arguments)]
    return Plan(signature, min(fitting, key=_size_of_base) if fitting else None)


def _size_of_base(base: tuple[StanType, ...]) -> tuple[int, ...]:
    """The fewer dimensions the better; then columns rather than rows, reals rather than ints."""
    return sum(map(rank_of, base)), sum(t == ROW_VECTOR for t in base), sum(t == INT for t in base)


@cache
def _scalars_of(name: str, arity: int) -> tuple[StanType, ...] | None:
    """The arguments of the overload that takes and gives scalars: reals rather than ints, complex if need be."""
    found = signatures.overloads(name)
    assert found is not None
    of_scalars = [s.arguments for s in found.of_arity(arity) if all(a in SCALARS for a in (*s.arguments, s.result))]
    order = {REAL: 0, INT: 1, COMPLEX: 2}
    return min(of_scalars, key=lambda types: [order[t] for t in types]) if of_scalars else None  # type: ignore[index]


def _is_elementwise(signature: Signature, base: tuple[StanType, ...]) -> bool:
    """Whether the result has the shape of the widest argument, and all others are scalars or have it, too."""
    if not all(map(is_plain, (*signature.arguments, signature.result))):
        return False
    if any(scalar_in(a) == COMPLEX for a in (*signature.arguments, signature.result)):
        return False
    containers = [a for a in signature.arguments if rank_of(a)]
    if signature.name == "multiply" and len(containers) > 1:
        return False
    if any(scalar_in(a) == REAL and b == INT for a, b in zip(signature.arguments, base, strict=True)):
        return False
    ranks = {rank_of(a) for a in containers}
    return len(ranks) <= 1 and rank_of(signature.result) == max(ranks, default=0)


def _extends(signature: Signature, base: tuple[StanType, ...]) -> bool:
    if not all(map(is_plain, (*signature.arguments, *base, signature.result))):
        return False
    if any(isinstance(b, ArrayType) and b != a for a, b in zip(signature.arguments, base, strict=True)):
        return False
    transform = named(signature.name).kind.is_transform
    loops = [_loop_rank(a, b, transform) for a, b in zip(signature.arguments, base, strict=True)]
    return None not in loops and len({n for n in loops if n}) <= 1


def _loop_rank(type_: StanType, base: StanType, nested: bool) -> int | None:
    """How many dimensions an argument has more than that of the base; None if it cannot be what the base takes."""
    if type_ == base:
        return 0
    outer = rank_of(type_) - rank_of(base)
    if outer < 0 or (outer > 1 and not nested) or isinstance(base, ArrayType):
        return None
    inner = inner_of(type_)
    if base in SCALARS:
        same = scalar_in(type_) == base or (scalar_in(type_), base) == (INT, REAL)
        return outer if same and (inner != MATRIX or nested) else None
    return outer if {inner, base} <= {VECTOR, ROW_VECTOR} or inner == base else None


# ---------------------------------------------------------------- values of arguments


@cache
def _reference() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines("functions.jsonl"):
        if not line.get("functions_block"):
            found[line["function"]].append(line)
    return found


def _numbers(value: Any) -> Any:
    return [_numbers(v) for v in value] if isinstance(value, list) else float(value)


def _type_named(text: str) -> StanType:
    """`array[2,3] vector[2]` → its type."""
    match = re.fullmatch(r"(?:array\[([^]]*)\] )?(\w+)(?:\[.*\])?", text)
    assert match is not None, text
    inner = BASIC_TYPES[match[2]]
    return array_of(inner, match[1].count(",") + 1) if match[1] else inner


@cache
def templates(name: str, base: tuple[StanType, ...], seed: int = 0) -> list[tuple[Values, ...]]:
    """Arguments for the base, those of the reference first; with a seed before them others, drawn around these."""
    if seed:
        known = templates(name, base)
        rng = np.random.default_rng(seed)
        return [_around(row, base, rng) for row in known[:DRAWN_ROWS]] + known
    stem, kind, _ = named(name)
    found: list[tuple[Values, ...]] = []
    wanted = [(name, base)]
    if kind.is_of_distribution:
        shown = base if kind.is_probability else (REAL, *base)
        wanted += [(other.of(stem), shown) for other in FunctionKind if other.is_probability]
    for other, types in wanted:
        for line in _reference().get(other, ()):
            arguments = list(line["args"].values())
            if len(arguments) == len(types) and all(map(_is_like, arguments, types)):
                values = tuple(np.array(_numbers(a["value"]), dtype=float) for a in arguments)
                found.append(values if len(values) == len(base) else values[1:])
    for row in TEMPLATES.get(stem, ()):
        values = tuple(np.array(v, dtype=float) for v in row[len(row) - len(base) :])
        if [v.ndim for v in values] == list(map(rank_of, base)):
            is_complex = [scalar_in(t) == COMPLEX for t in base]
            found.append(tuple(np.stack([v, 0.5 * v], -1) if c else v for v, c in zip(values, is_complex, strict=True)))
    return [row for row in found if all(np.all(np.isfinite(v)) for v in row)] + [tuple(map(plain_value, base))]


def _is_like(argument: dict[str, Any], type_: StanType) -> bool:
    """Whether a value of the reference may be passed for a type."""
    is_type = _type_named(argument["type"])
    if is_type == type_ or {is_type, type_} <= {VECTOR, ROW_VECTOR}:
        return True
    return rank_of(is_type) == rank_of(type_) == 0 and COMPLEX not in (is_type, type_)


def plain_value(type_: StanType) -> Values:
    """Something of this type that many functions take: a simplex, a covariance matrix."""
    inner = inner_of(type_)
    value: Any = {0: 1.0 if inner == INT else 0.6, 1: [0.4, 0.6], 2: [[2.0, 0.3], [0.3, 1.5]]}[rank_of(inner)]
    found = np.array(value)
    if scalar_in(type_) == COMPLEX:
        found = np.stack([found, 0.3 * found + 0.1], axis=-1)
    for _ in range(type_.rank if isinstance(type_, ArrayType) else 0):
        found = np.stack([found, found if inner == INT or scalar_in(type_) == COMPLEX else near(found, 50)])
    return found


def candidates(made: Plan, seed: int = 0) -> Iterator[tuple[Values, ...]]:
    """Arguments for the base of an overload: whole where it takes ints."""
    assert made.base is not None
    pairs = list(zip(made.signature.arguments, made.base, strict=True))
    whole = [scalar_in(a) == INT for a, _ in pairs]
    for row in templates(made.signature.name, made.base, seed)[: 6 + DRAWN_ROWS]:
        rounded = [np.round(v) if w else v for v, w in zip(row, whole, strict=True)]
        yield tuple(rounded)
        if any(whole) and any(np.any(r != v) for r, v in zip(rounded, row, strict=True)):
            places = [n for n, w in enumerate(whole) if w and np.ndim(row[n]) == 0]
            for numbers in product((1.0, 2.0, 0.0), repeat=len(places)):
                for place, number in zip(places, numbers, strict=True):
                    rounded[place] = np.array(number)
                yield tuple(rounded)


def near(value: Values, number: int) -> Values:
    """Another value of the same kind close by, a different one for each number."""
    return _moved(value, 0.004 * number, np.random.default_rng(1))


def _moved(value: Values, size: float, rng: np.random.Generator) -> Values:
    """Another value of the same kind, in a random direction."""
    moved = value + size * direction(value, rng)
    if value.ndim and size and np.all(np.abs(np.linalg.norm(value, axis=-1) - 1) < 1e-9):
        return moved / np.linalg.norm(moved, axis=-1, keepdims=True)
    return moved


def _around(row: Sequence[Values], types: Sequence[StanType], rng: np.random.Generator) -> tuple[Values, ...]:
    """Other arguments, each moved by itself; ints stay."""
    return tuple(v if scalar_in(t) == INT else _moved(v, 0.15, rng) for v, t in zip(row, types, strict=True))


def element(row: Sequence[Values], types: Sequence[StanType], number: int, ints_too: bool) -> tuple[Values, ...]:
    """The arguments of one element: near those of the first, so that they differ and are still of the domain."""
    return tuple(
        (v + number if ints_too and np.ndim(v) == 0 else v)
        if scalar_in(t) == INT
        else near(v, number)
        for v, t in zip(row, types, strict=True)
    )


# ---------------------------------------------------------------- from elements to containers


@dataclass(frozen=True)
class Elements:
    """What is passed for an argument: the elements of the base in order, or the same one for all of them."""

    loops: int
    values: Values

    def of(self, number: int) -> int:
        return number if self.loops else 0


def shape_of_loop(made: Plan) -> tuple[int, ...]:
    """The dimensions that the overload has more than its base: of densities one, all arguments alike."""
    assert made.base is not None
    pairs = zip(made.signature.arguments, made.base, strict=True)
    return SIZES[: max((rank_of(a) - rank_of(b) for a, b in pairs), default=0)]


def container(type_: StanType, base: StanType, elements: Sequence[Values], shape: tuple[int, ...]) -> Values:
    """The argument as an array, by dimension."""
    outer = rank_of(type_) - rank_of(base)
    return np.stack(elements).reshape(shape[:outer] + elements[0].shape) if outer else elements[0]


def in_parameter_order(type_: StanType, value: Values) -> Values:
    """Entries as unconstrained parameters have them: matrices by column, the parts of a complex number together."""
    parts = 1 if scalar_in(type_) == COMPLEX else 0
    if inner_of(type_).name.endswith("matrix"):
        value = np.swapaxes(value, -1 - parts, -2 - parts)
    return value.ravel()


def from_parameter_order(type_: StanType, entries: Values, shape: tuple[int, ...]) -> Values:
    """The reverse of `in_parameter_order`, for reals."""
    if not inner_of(type_).name.endswith("matrix"):
        return entries.reshape(shape)
    return np.swapaxes(entries.reshape((*shape[:-2], shape[-1], shape[-2])), -1, -2)


# ---------------------------------------------------------------- directions of differences


def direction(value: Values, rng: np.random.Generator) -> Values:
    """A direction along which the argument stays what it is: a simplex, a covariance matrix, a Cholesky factor."""
    moved = rng.normal(size=value.shape) * np.where(value == 0, 0.1, np.abs(value))
    if value.ndim >= 2 and value.shape[-1] == value.shape[-2] > 1:
        of_square = _direction_of_square(value, moved)
        if of_square is not None:
            return of_square
    for axis in range(max(-2, -value.ndim), 0):
        total = np.sum(value, axis=axis)
        if np.allclose(total, 0, atol=1e-9):
            moved = moved - np.mean(moved, axis=axis, keepdims=True)
        elif np.allclose(total, 1, atol=1e-9) and np.all(value >= 0):
            moved = moved - value * np.sum(moved, axis=axis, keepdims=True)
    if value.ndim and np.allclose(np.linalg.norm(value, axis=-1), 1, atol=1e-9):
        moved = moved - value * np.sum(moved * value, axis=-1, keepdims=True)
    return moved


def _direction_of_square(value: Values, moved: Values) -> Values | None:
    """None if it is neither of stochastic rows nor triangular nor symmetric."""
    transposed = np.swapaxes(value, -1, -2)
    if np.allclose(np.sum(value, axis=-1), 1, atol=1e-9) and np.all(value > 0):
        return moved - value * np.sum(moved, axis=-1, keepdims=True)
    if np.all(np.triu(value, 1) == 0):
        moved = np.tril(moved)
        if np.allclose(np.sum(value**2, axis=-1), 1, atol=1e-9):  # rows of unit length
            moved = moved - value * np.sum(moved * value, axis=-1, keepdims=True)
        return moved
    if np.allclose(value, transposed, atol=1e-9):
        moved = moved + np.swapaxes(moved, -1, -2)
        if np.allclose(np.diagonal(value, axis1=-2, axis2=-1), 1):
            moved = moved * (1 - np.eye(value.shape[-1]))
        return moved
    return None
