"""Implicit conversions: int → real → complex, element-wise in arrays and tuples, real containers → complex ones.

Source: Stan Reference Manual, "Type inference" and "Function argument promotion".
"""

from __future__ import annotations

from functools import cache

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
    StanType,
    TupleType,
    array_of,
)
from ulam.frontend.syntax import Expression, Promotion

# (from, to) → cost; overload resolution sums the costs.
_COSTS: dict[tuple[StanType, StanType], int] = {
    (INT, REAL): 1,
    (REAL, COMPLEX): 1,
    (INT, COMPLEX): 2,
    (VECTOR, COMPLEX_VECTOR): 1,
    (ROW_VECTOR, COMPLEX_ROW_VECTOR): 1,
    (MATRIX, COMPLEX_MATRIX): 1,
}


@cache
def promotion_cost(source: StanType, target: StanType) -> int | None:
    """What converting costs in overload resolution; 0 for the same type, None if there is no such conversion."""
    if source == target:
        return 0
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return promotion_cost(source.element, target.element) if source.rank == target.rank else None
    if isinstance(source, TupleType) and isinstance(target, TupleType):
        if len(source.elements) != len(target.elements):
            return None
        total = 0
        for field_source, field_target in zip(source.elements, target.elements, strict=True):
            cost = promotion_cost(field_source, field_target)
            if cost is None:
                return None
            total += cost
        return total
    return _COSTS.get((source, target))


@cache
def common_type(first: StanType, second: StanType) -> StanType | None:
    """The smallest type that both convert to."""
    if isinstance(first, TupleType) and isinstance(second, TupleType):
        if len(first.elements) != len(second.elements):
            return None
        fields = [common_type(a, b) for a, b in zip(first.elements, second.elements, strict=True)]
        return TupleType(tuple(f for f in fields if f is not None)) if None not in fields else None
    if isinstance(first, ArrayType) and isinstance(second, ArrayType):
        element = common_type(first.element, second.element) if first.rank == second.rank else None
        return None if element is None else array_of(element, first.rank)
    if promotion_cost(first, second) is not None:
        return second
    if promotion_cost(second, first) is not None:
        return first
    return None


def promote(expression: Expression, target: StanType) -> Expression:
    """The expression, inside a `Promotion` if its type is not `target` yet; the caller knows that it fits."""
    if expression.type is target or expression.type == target:
        return expression
    return Promotion(expression, span=expression.span, type=target, ad_level=expression.ad_level)
