"""Products of a matrix and a vector: what columns add to rows, several of them at a time where sums may change order.

    for g in 0 to G = n / 4: (b0, b1, .. = b[g], b[G + g], ..)  for i: y[i] += x[i, g] * b0 + x[i, G + g] * b1 + ..

Each row is then read and written once for four columns, also in the reverse of it, where the derivative of a row serves
four of them. Columns of successive groups lie one behind the other in memory: four streams, which processors fetch
ahead however few the rows are. A known number of columns, if it is small, makes a row one sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ulam.dialects import ad
from ulam.dialects.scalar_ops import constant_integer
from ulam.passes.builder import Builder
from ulam.passes.to_loops.values import Container

TOGETHER = 4
"""Columns that are added at a time."""
IN_A_ROW = 8
"""Columns of which a row's sum is computed at once, if their number is known: so many sums are kept in registers."""


def columns_in_a_row(count: SSAValue) -> int | None:
    """The number of columns, if it is known and small."""
    known = constant_integer(count)
    return known if known is not None and 1 <= known <= IN_A_ROW else None


def add_columns(
    builder: Builder, a: Container, b: Container, rows: tuple[SSAValue, SSAValue], into: SSAValue, *, together: bool
) -> None:
    """Adds the products of some rows of a matrix and a vector to a buffer, which begins with the first of these rows.

    `together`: several columns at a time. Where there are fewer left, the last one is there several times, each time
    with its share of the factor: one loop does it all, and what is infinite or NaN is so as before. Shares are powers
    of 2, so that nothing is rounded: 1/2 twice, 1/2 and 1/4 twice, 1/4 four times.
    """
    first, end = rows
    count = a.dims[1]

    def columns(places: Sequence[SSAValue], factors: Sequence[SSAValue]) -> Sequence[SSAValue]:
        def down(i: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            terms = (builder.mulf(a.at([i, j]), factor) for j, factor in zip(places, factors, strict=True))
            builder.insert(ad.AccumulateOp(into, builder.sub(i, first), sum_of(builder, *terms)))
            return ()

        builder.for_loop(first, end, down)
        return ()

    if not together:
        builder.for_loop(builder.i64(0), count, lambda j, _: columns([j], [b.at([j])]))
        return
    last = builder.sub(count, builder.i64(1))
    rounded = builder.add(count, builder.i64(TOGETHER - 1))
    groups = builder.value(arith.ShRSIOp, (rounded, builder.i64(TOGETHER.bit_length() - 1)), i64)
    times = builder.sub(builder.mul(groups, builder.i64(TOGETHER)), last)  # that the last one is there
    share = builder.select(builder.cmpi("sgt", times, builder.i64(2)), builder.f64(0.25), builder.f64(0.5))
    others = builder.converted(arith.SIToFPOp, builder.sub(times, builder.i64(1)), f64)
    rest = builder.subf(builder.f64(1.0), builder.mulf(others, share))

    def part_of(j: SSAValue) -> SSAValue:
        part = builder.select(builder.cmpi("eq", j, last), rest, share)
        return builder.select(builder.cmpi("sge", j, last), part, builder.f64(1.0))

    def several(group: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        places = [builder.add(group, builder.mul(groups, builder.i64(n))) for n in range(TOGETHER)]
        if (known := constant_integer(count)) is not None and known % TOGETHER == 0:
            return columns(places, [b.at([j]) for j in places])
        shares = [part_of(j) for j in places]
        places = [builder.value(arith.MinSIOp, (j, last), i64) for j in places]
        return columns(places, [builder.mulf(b.at([j]), part) for j, part in zip(places, shares, strict=True)])

    builder.for_loop(builder.i64(0), groups, several)


def sum_of(builder: Builder, first: SSAValue, *others: SSAValue) -> SSAValue:
    """The sum, in whatever order if there are several terms."""
    for other in others:
        first = builder.addf(first, other, reassociate=True)
    return first
