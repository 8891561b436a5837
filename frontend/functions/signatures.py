"""The signatures of the library's functions, read lazily from `library/signature_table.txt`; of functions that Stan
does not have, from their definitions (`extensions`).

The table has one line per function (see `generate_signature_table`); a look-up finds the line of one name and parses
that line only. Overloads are chosen as Stan does: of all signatures that the arguments fit after promotion, the one
with the smallest total promotion cost; two of the same cost are ambiguous.
Source: Stan Reference Manual, "Function argument promotion"; operators: Stan Functions Reference, "Operators".
"""

from __future__ import annotations

from dataclasses import field
from functools import cache, lru_cache

from ulam.frontend.functions.type_codes import code_of, type_of, types_of
from ulam.frontend.promotion import promotion_cost
from ulam.frontend.stan_types import INT, FunctionType, StanType
from ulam.library import catalog, own_libraries, signature_table
from ulam.library.records import record

# The library functions behind the operators, in the order in which they are tried.
BINARY_OPERATORS: dict[str, tuple[str, ...]] = {
    "+": ("add",),
    "-": ("subtract",),
    "*": ("multiply",),
    "/": ("mdivide_right", "divide"),
    "%": ("modulus",),
    "\\": ("mdivide_left",),
    ".*": ("elt_multiply",),
    "./": ("elt_divide",),
    "^": ("pow",),
    ".^": ("pow",),
    "||": ("logical_or",),
    "&&": ("logical_and",),
    "==": ("logical_eq",),
    "!=": ("logical_neq",),
    "<": ("logical_lt",),
    "<=": ("logical_lte",),
    ">": ("logical_gt",),
    ">=": ("logical_gte",),
}
UNARY_OPERATORS: dict[str, str] = {"-": "minus", "+": "plus", "!": "logical_negation", "'": "transpose"}


@record(frozen=True, slots=True)
class Signature:
    """One overload of a library function; `data_only` are the positions of arguments that must be data."""

    name: str
    arguments: tuple[StanType, ...]
    result: StanType
    data_only: tuple[int, ...] = ()

    def __str__(self) -> str:
        formals = ", ".join(
            f"data {type_}" if position in self.data_only else str(type_)
            for position, type_ in enumerate(self.arguments)
        )
        return f"{self.name}({formals}) => {self.result}"


@record(slots=True)
class Overloads:
    """All signatures of one function, in codes; decoded as far as calls need it."""

    name: str
    results: dict[str, str]  # codes of the arguments → code of the result
    data_only: dict[int, tuple[int, ...]]  # number of arguments → positions
    _by_arity: dict[int, list[tuple[tuple[StanType, ...], str]]] = field(default_factory=dict)

    def exact(self, arguments: tuple[StanType, ...]) -> Signature | None:
        """The signature with just these argument types."""
        key = "".join(map(code_of, arguments))
        result = self.results.get(key)
        if result is None:
            return None
        return Signature(self.name, arguments, type_of(result), self.data_only.get(len(arguments), ()))

    def of_arity(self, arity: int) -> list[Signature]:
        """The signatures with so many arguments, in the order of the table."""
        if not self._by_arity:
            for codes in self.results:
                types = types_of(codes)
                self._by_arity.setdefault(len(types), []).append((types, codes))
        data_only = self.data_only.get(arity, ())
        return [
            Signature(self.name, types, type_of(self.results[codes]), data_only)
            for types, codes in self._by_arity.get(arity, ())
        ]

    def all(self) -> list[Signature]:
        """All signatures, by number of arguments."""
        self.of_arity(0)
        return [signature for arity in sorted(self._by_arity) for signature in self.of_arity(arity)]

    def higher_order(self) -> bool:
        """Whether the first argument is a function."""
        return next(iter(self.results)).startswith("<")


@lru_cache(maxsize=4096)
def overloads(name: str) -> Overloads | None:
    """The signatures of a library function, None if there is none of this name."""
    row = signature_table.row(name)
    if row is None:
        return _of_extension(name) if name in catalog.extensions() or catalog.is_of_others(name) else None
    data_only, results = row
    positions = {
        int(arity): tuple(map(int, listed.split(",")))
        for arity, listed in (entry.split(":") for entry in data_only.split(";") if entry)
    }
    return Overloads(name, results, positions)


def _of_extension(name: str) -> Overloads:
    """The signatures of a function that Stan does not have."""
    from ulam.frontend.functions.extensions import results

    return Overloads(name, results(name), {})


@lru_cache(maxsize=4096)
def exists(name: str) -> bool:
    """Whether the library has a function of this name (none of the variadic ones, see `higher_order`)."""
    return signature_table.exists(name) or name in catalog.extensions() or catalog.is_of_others(name)


@cache
def stan_names() -> tuple[str, ...]:
    """The names of all functions of Stan."""
    return tuple(signature_table.names())


@cache
def names() -> tuple[str, ...]:
    """The names of all functions; for suggestions in messages only."""
    others = own_libraries.found()
    further = catalog.extensions() | (set() if others is None else set(others.functions))
    return (*stan_names(), *sorted(further - set(stan_names())))


@cache
def binary_operator(operator: str, left: StanType, right: StanType) -> tuple[StanType, StanType, StanType] | None:
    """(left operand, right operand, result) that `left operator right` is computed with, None if there is none."""
    if operator == "%/%":
        return (INT, INT, INT) if left == right == INT else None
    for name in BINARY_OPERATORS[operator]:
        signature = unique_cheapest(name, (left, right))
        if signature is not None:
            return signature.arguments[0], signature.arguments[1], signature.result
    return None


@cache
def unary_operator(operator: str, operand: StanType) -> tuple[StanType, StanType] | None:
    """(operand, result) of a prefix operator or of `'`, None if there is none."""
    signature = unique_cheapest(UNARY_OPERATORS[operator], (operand,))
    return None if signature is None else (signature.arguments[0], signature.result)


@cache
def compound_assignment(operator: str, target: StanType, value: StanType) -> StanType | None:
    """The operand type of the right-hand side of `target operator= value`; None if not allowed.

    Allowed where `target operator value` has the type of the target; `/` never divides by a matrix here, and the
    element-wise operators are for containers only.
    """
    name = "divide" if operator == "/" else BINARY_OPERATORS[operator][0]
    signature = unique_cheapest(name, (target, value))
    if signature is None or signature.result != target:
        return None
    if operator in (".*", "./") and code_of(target) in "ir":
        return None
    return signature.arguments[1]


@lru_cache(maxsize=4096)
def unique_cheapest(name: str, arguments: tuple[StanType, ...]) -> Signature | None:
    """The chosen library signature for first-order arguments, None if no or no unique one fits."""
    candidates = cheapest(name, arguments)
    return candidates[0] if len(candidates) == 1 else None


@lru_cache(maxsize=4096)
def cheapest(name: str, arguments: tuple[StanType, ...]) -> tuple[Signature, ...]:
    """All library signatures of the smallest promotion cost that the arguments fit; more than one is ambiguous."""
    found = overloads(name)
    if found is None:
        return ()
    exact = found.exact(arguments)
    if exact is not None:
        return (exact,)
    best: list[Signature] = []
    best_cost = 1 << 30
    for signature in found.of_arity(len(arguments)):
        cost = total_cost(arguments, signature.arguments)
        if cost is None or cost > best_cost:
            continue
        if cost < best_cost:
            best, best_cost = [], cost
        best.append(signature)
    return tuple(best)


def total_cost(actuals: tuple[StanType, ...], formals: tuple[StanType, ...]) -> int | None:
    """The cost of passing the actual arguments for the formal ones; None if they do not fit."""
    total = 0
    for actual, formal in zip(actuals, formals, strict=True):
        if actual == formal or isinstance(formal, FunctionType):
            continue
        cost = promotion_cost(actual, formal)
        if cost is None:
            return None
        total += cost
    return total
