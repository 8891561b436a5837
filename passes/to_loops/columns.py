"""Products of a matrix and a vector: what columns add to rows, one after the other. A known number of columns, if it is
small, makes a row one sum where sums may change order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ulam.dialects import ad
from ulam.dialects.scalar_ops import constant_integer
from ulam.passes.builder import Builder
from ulam.passes.to_loops.values import Container

IN_A_ROW = 8
"""Columns of which a row's sum is computed at once, if their number is known: so many sums are kept in registers."""


def columns_in_a_row(count: SSAValue) -> int | None:
    """The number of columns, if it is known and small."""
    known = constant_integer(count)
    return known if known is not None and 1 <= known <= IN_A_ROW else None


def add_columns(builder: Builder, a: Container, b: Container, rows: tuple[SSAValue, SSAValue], into: SSAValue) -> None:
    """Adds the products of some rows of a matrix and a vector to a buffer, which begins with the first of the rows."""
    first, end = rows

    def column(j: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        factor = b.at([j])

        def down(i: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.insert(ad.AccumulateOp(into, builder.sub(i, first), builder.mulf(a.at([i, j]), factor)))
            return ()

        builder.for_loop(first, end, down)
        return ()

    builder.for_loop(builder.i64(0), a.dims[1], column)


def sum_of(builder: Builder, first: SSAValue, *others: SSAValue) -> SSAValue:
    """The sum, in whatever order if there are several terms."""
    for other in others:
        first = builder.addf(first, other, reassociate=True)
    return first
