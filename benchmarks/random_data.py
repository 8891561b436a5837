"""Random data that fit the declarations of a program's data block: sizes, bounds and other constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.frontend import syntax
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.frontend.syntax import ConstraintKind

Array = npt.NDArray[np.float64]


class NoData(Exception):
    """A size or a bound is an expression that is not known here."""


@dataclass(frozen=True)
class Extent:
    """Which sizes data have, `least` to `most`; how many different rows, if not all are: containers of as many
    rows repeat the same ones; whether every other container of reals has a special value somewhere."""

    least: int
    most: int
    distinct: int | None = None
    special: bool = False


SPECIAL = (math.nan, math.inf, -math.inf, 1e30, -1e30, 1e-30, 0.0, -0.0)


def random_data(
    code: str, filename: str, folders: Sequence[str], attempt: int, extent: Extent | None = None
) -> dict[str, Any]:
    """Data for a program, other ones for each attempt; raises NoData.

    Even attempts have sizes that differ and reals of both signs, odd ones equal sizes and positive reals; in each third
    one reals grow along their containers, as times do. From the fourth on square matrices are covariances.
    """
    program = parse_program(Source(code, filename, include_paths=tuple(folders)))
    maker = _Maker(attempt, _sizes_of(program), extent)
    for declaration in _data_of(program):
        try:
            maker.values[declaration.name] = maker.value(declaration.sized_type, declaration.name)
        except (ArithmeticError, LookupError, ValueError) as error:
            raise NoData(f"{declaration.name}: a bound or size has no value: {error}") from error
    for lower, upper in _limits_of(program):
        if lower in maker.values and upper in maker.values:
            maker.values[upper] = _beyond(maker.values[lower], maker.values[upper])
    return maker.values


def _limits_of(program: syntax.Program) -> list[tuple[str, str]]:
    """Variables between which parameters are."""
    block = program.parameters
    found: list[tuple[str, str]] = []
    for declaration in [] if block is None else syntax.nodes_below(block, syntax.Declaration):
        constraint = declaration.sized_type.constraint
        if isinstance(constraint.lower, syntax.Variable) and isinstance(constraint.upper, syntax.Variable):
            found.append((constraint.lower.name, constraint.upper.name))
    return found


def _beyond(lower: Any, upper: Any) -> Any:
    """Upper limits, as far from lower ones as those given, and more: parameters have room between them."""
    if np.shape(lower) != np.shape(upper):
        return upper
    first = np.asarray(lower, float)
    return (first + np.abs(np.asarray(upper, float) - first) + 0.5).tolist()


def _data_of(program: syntax.Program) -> list[syntax.Declaration]:
    block = program.data
    statements = [] if block is None else block.statements
    return [s for s in statements if isinstance(s, syntax.Declaration)]


def _sizes_of(program: syntax.Program) -> set[str]:
    """Variables that declarations have in their sizes, or loops as their end."""
    found: list[syntax.Expression] = [loop.upper for loop in syntax.nodes_below(program, syntax.For)]
    for declaration in syntax.nodes_below(program, syntax.Declaration):
        pending = [declaration.sized_type]
        while pending:
            type_ = pending.pop()
            found += [*type_.array_sizes, *type_.sizes]
            pending += type_.fields
    return {variable.name for size in found for variable in syntax.nodes_below(size, syntax.Variable)}


class _Maker:
    """Values by name; `size_names` are ints that should be small and positive."""

    def __init__(self, attempt: int, size_names: set[str], extent: Extent | None = None) -> None:
        self.values: dict[str, Any] = {}
        self._attempt = attempt
        self._extent = extent
        self._rows: dict[int, npt.NDArray[np.int64]] = {}
        self._size_names = size_names
        self._rng = np.random.default_rng(1000 + attempt)

    def value(self, type_: syntax.SizedType, name: str) -> Any:
        dims = [_size(self._number(size)) for size in type_.array_sizes]
        if type_.fields:
            return _arrayed(dims, lambda: {str(k): self.value(inner, name) for k, inner in enumerate(type_.fields, 1)})
        sizes = [_size(self._number(size)) for size in type_.sizes]
        if type_.base == "int":
            return self._ints(type_.constraint, name, dims)
        if type_.base in _STRUCTURED:
            return _arrayed(dims, lambda: np.asarray(_STRUCTURED[type_.base](self._rng, *sizes)).tolist())
        if type_.base == "matrix" and sizes[0] == sizes[1] and self._attempt >= 3 and _unconstrained(type_):
            return _arrayed(dims, lambda: _covariances(self._rng, sizes[0]).tolist())
        if type_.base.startswith("complex"):
            return self._reals(type_.constraint, [*dims, *sizes, 2])
        return self._reals(type_.constraint, [*dims, *sizes])

    def _ints(self, constraint: syntax.Constraint, name: str, dims: list[int]) -> Any:
        lower, upper = self._bounds(constraint)
        if not dims and name in self._size_names:
            wanted = self._wanted_size()
            return int(np.clip(wanted, lower if lower > -math.inf else 0, upper))
        first = lower if lower > -math.inf else (1 if self._attempt % 2 == 0 else 0)
        last = upper if upper < math.inf else first + 2
        drawn = self._rng.integers(int(first), int(last) + 1, size=dims or None)
        return self._repeated(np.asarray(drawn)).tolist()

    def _wanted_size(self) -> int:
        if self._extent is not None:
            least, most = self._extent.least, self._extent.most
            return int(self._rng.integers(least, most + 1)) if self._attempt % 2 == 0 else most
        return int(self._rng.integers(3, 7)) if self._attempt % 2 == 0 else 4 - self._attempt // 4

    def _repeated(self, drawn: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Its rows, or if there are to be few different ones, those at places that all of this size have in common."""
        distinct = None if self._extent is None else self._extent.distinct
        if distinct is None or not drawn.ndim or len(drawn) <= distinct:
            return drawn
        n = len(drawn)
        if n not in self._rows:
            self._rows[n] = self._rng.integers(0, distinct, size=n)
        return drawn[self._rows[n]]

    def _reals(self, constraint: syntax.Constraint, dims: list[int]) -> Any:
        lower, upper = self._bounds(constraint)
        free = self._rng.normal(size=dims)
        if self._attempt % 3 == 2 and dims:
            free = np.cumsum(np.abs(free) + 0.1, axis=0)
        elif self._attempt % 2:
            free = np.exp(0.5 * free)
        if lower > -math.inf and upper < math.inf:
            drawn = lower + (upper - lower) * self._rng.uniform(0.05, 0.95, size=dims)
        elif lower > -math.inf:
            drawn = lower + (np.abs(free) if self._attempt % 3 == 2 else np.exp(0.5 * self._rng.normal(size=dims)))
        elif upper < math.inf:
            drawn = upper - np.exp(0.5 * self._rng.normal(size=dims))
        else:
            drawn = free
        return self._with_special(self._repeated(np.asarray(drawn))).tolist()

    def _with_special(self, drawn: Array) -> Array:
        if self._extent is None or not self._extent.special or not drawn.size or self._rng.random() < 0.5:
            return drawn
        changed = drawn.flatten()
        changed[self._rng.integers(drawn.size)] = self._rng.choice(SPECIAL)
        return changed.reshape(drawn.shape)

    def _bounds(self, constraint: syntax.Constraint) -> tuple[float, float]:
        """The tightest ones, where a bound is a container."""
        lower, upper = -math.inf, math.inf
        if constraint.kind is ConstraintKind.BOUNDS:
            if constraint.lower is not None:
                lower = float(np.max(np.asarray(self._number(constraint.lower), float), initial=-math.inf))
            if constraint.upper is not None:
                upper = float(np.min(np.asarray(self._number(constraint.upper), float), initial=math.inf))
        if lower > upper:
            raise NoData("bounds that exclude each other")
        return lower, upper

    def _number(self, e: syntax.Expression) -> Any:
        match e:
            case syntax.IntLiteral():
                return int(e.text)
            case syntax.RealLiteral():
                return float(e.text)
            case syntax.Variable() if e.name in self.values:
                found = self.values[e.name]
                return np.asarray(found) if isinstance(found, list) else found
            case syntax.Parenthesized():
                return self._number(e.inner)
            case syntax.Unary(operator="-"):
                return -self._number(e.operand)
            case syntax.Binary() if e.operator in _OPERATORS:
                return _OPERATORS[e.operator](self._number(e.left), self._number(e.right))
            case syntax.Conditional():
                return self._number(e.then if self._number(e.condition) else e.otherwise)
            case syntax.Indexed() if all(index.kind is syntax.IndexKind.SINGLE for index in e.indices):
                found = self._number(e.base)
                for index in e.indices:
                    found = found[int(self._number(index.lower)) - 1]  # pyright: ignore[reportArgumentType]
                return found
            case syntax.Call() if e.name in _FUNCTIONS:
                return _FUNCTIONS[e.name](*map(self._number, e.arguments))
        raise NoData(type(e).__name__)


def _unconstrained(type_: syntax.SizedType) -> bool:
    return type_.constraint.kind is not ConstraintKind.BOUNDS


def _size(x: Any) -> int:
    return max(0, int(x))


def _arrayed(dims: Sequence[int], make: Callable[[], Any]) -> Any:
    return [_arrayed(dims[1:], make) for _ in range(dims[0])] if dims else make()


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "^": lambda a, b: a**b,
    "%": lambda a, b: math.fmod(a, b), "%/%": lambda a, b: int(a / b),
    "/": lambda a, b: int(a / b) if isinstance(a, int) and isinstance(b, int) else a / b,
    "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b), "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b), "<=": lambda a, b: int(a <= b), ">=": lambda a, b: int(a >= b),
    "||": lambda a, b: int(bool(a or b)), "&&": lambda a, b: int(bool(a and b)),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "max": lambda *x: np.max(x), "min": lambda *x: np.min(x), "size": len, "num_elements": np.size,
    "rows": len, "cols": lambda x: np.shape(x)[1], "prod": np.prod, "square": np.square, "pow": pow, "exp": np.exp,
    "log": np.log, "sqrt": np.sqrt, "abs": abs, "negative_infinity": lambda: -math.inf,
    "positive_infinity": lambda: math.inf, "pi": lambda: math.pi, "choose": math.comb, "int_step": lambda x: int(x > 0),
}  # fmt: skip


def _correlations(rng: np.random.Generator, n: int) -> Array:
    covariance = _covariances(rng, n)
    scale = np.sqrt(np.diag(covariance))
    found = covariance / np.outer(scale, scale)
    np.fill_diagonal(found, 1)
    return found


def _covariances(rng: np.random.Generator, n: int) -> Array:
    root = rng.normal(size=(n, n)) * 0.3 + np.eye(n)
    product = root @ root.T
    return (product + product.T) / 2


def _cholesky(rng: np.random.Generator, rows: int, columns: int | None = None) -> Array:
    found = np.tril(rng.normal(size=(rows, columns or rows)))
    n = min(found.shape)
    found[range(n), range(n)] = np.exp(0.3 * rng.normal(size=n))
    return found


def _sum_to_zero(rng: np.random.Generator, *sizes: int) -> Array:
    found = rng.normal(size=sizes)
    for axis in range(len(sizes)):
        found = found - found.mean(axis=axis, keepdims=True)
    return found


def _unit_vector(rng: np.random.Generator, n: int) -> Array:
    found = rng.normal(size=n)
    return found / np.linalg.norm(found)


_STRUCTURED: dict[str, Callable[..., Any]] = {
    "simplex": lambda rng, n: rng.dirichlet(np.full(n, 3.0)),
    "ordered": lambda rng, n: np.sort(rng.normal(size=n)),
    "positive_ordered": lambda rng, n: np.sort(np.exp(rng.normal(size=n))),
    "unit_vector": _unit_vector,
    "sum_to_zero_vector": _sum_to_zero,
    "sum_to_zero_matrix": _sum_to_zero,
    "corr_matrix": _correlations,
    "cov_matrix": _covariances,
    "cholesky_factor_corr": lambda rng, n: np.linalg.cholesky(_correlations(rng, n)),
    "cholesky_factor_cov": _cholesky,
    "row_stochastic_matrix": lambda rng, n, m: rng.dirichlet(np.full(m, 3.0), size=n),
    "column_stochastic_matrix": lambda rng, n, m: rng.dirichlet(np.full(n, 3.0), size=m).T,
}
