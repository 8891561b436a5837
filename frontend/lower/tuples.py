"""Tuples field by field: a variable of tuple type is lowered to a variable for each of its fields.

    array[N] tuple(real, vector[K]) a;    array[N] real a.1;  array[N] vector[K] a.2;
    a[i].2[k] = x;                        a.2[i, k] = x;

An array of tuples is a tuple of arrays, in values as in variables (`dialect_type`), so what comes after the frontend
knows containers and tuples of them. `Fields` is a tuple whose fields are known one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.frontend.stan_types import ArrayType, StanType, TupleType, has_complex
from ulam.library.records import record

Indices = tuple[tuple[str, ...], Sequence[SSAValue]]
"""The kinds and the operands of an index list."""


@record(eq=False)
class Fields:
    """A tuple by its fields: variables, values, or tuples again."""

    parts: list[Part]

    @property
    def type(self) -> stan.TupleType:
        """Of the value that it is."""
        return stan.TupleType(ArrayAttr([type_of_part(part) for part in self.parts]))


Part = SSAValue | Fields


def type_of_part(part: Part) -> Attribute:
    """The type of its value."""
    type_ = part.type
    return type_.element if isinstance(type_, stan.VarType) else type_


def leaves(part: Part) -> Iterator[SSAValue]:
    """The variables or values that a part consists of."""
    if isinstance(part, Fields):
        for field in part.parts:
            yield from leaves(field)
    else:
        yield part


def has_tuples(type_: StanType) -> bool:
    """Whether values of a type are tuples, or arrays of them."""
    return isinstance(type_.element if isinstance(type_, ArrayType) else type_, TupleType)


def layout_of(type_: StanType) -> str:
    """Where a type has arrays of tuples, and complex numbers in tuples: see `stan.PrintOp`."""
    rank, element = (type_.rank, type_.element) if isinstance(type_, ArrayType) else (0, type_)
    if isinstance(element, TupleType):
        return f"{rank}({''.join(map(layout_of, element.elements))})"
    return "c" if has_complex(element) else "."


def path_to(e: syntax.Expression) -> tuple[syntax.Expression, list[list[syntax.Index] | int]]:
    """What is indexed or projected, and the way into it: index lists and fields of tuples, outermost first."""
    path: list[list[syntax.Index] | int] = []
    e = unparenthesized(e)
    while isinstance(e, syntax.Indexed | syntax.TupleProjection):
        path.insert(0, e.indices if isinstance(e, syntax.Indexed) else e.field)
        e = unparenthesized(e.base)
    return e, path


def goes_through_tuples(e: syntax.Expression) -> bool:
    """Whether an index or a projection is one of a tuple, or of an array of tuples."""
    e = unparenthesized(e)
    while isinstance(e, syntax.Indexed | syntax.TupleProjection):
        if isinstance(e, syntax.TupleProjection) or has_tuples(e.base.type):
            return True
        e = unparenthesized(e.base)
    return False


def unparenthesized(expression: syntax.Expression) -> syntax.Expression:
    """What is inside of parentheses."""
    while isinstance(expression, syntax.Parenthesized):
        expression = expression.inner
    return expression


def followed_by(found: list[Indices], more: Indices) -> list[Indices]:
    """Index lists applied one after the other: `x[i][j]` is `x[i, j]`; `x[a:b][j]` is not."""
    if found and all(kind == "single" for kind in found[-1][0]):
        kinds, operands = found[-1]
        return [*found[:-1], (kinds + more[0], [*operands, *more[1]])]
    return [*found, more]
