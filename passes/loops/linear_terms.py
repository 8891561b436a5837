"""Terms of what is linear in what depends on parameters: products of data and of coefficients (`affine_rows`)."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from ulam.library.records import record

MOST_FACTORS = 200
"""Of one term: what is longer is left alone."""


@record(frozen=True)
class LinearTerm:
    """A product: a sign, data of the row, a leaf; for each iteration of `loops`, the outermost first."""

    negative: bool = False
    data: tuple[SSAValue, ...] = ()
    divisors: tuple[SSAValue, ...] = ()
    """What it is divided by: data, too."""
    leaf: tuple[SSAValue, ...] = ()
    key: SSAValue | None = None
    where: SSAValue | None = None
    """The key in rows that have the term, and NO_KEY in others, where it is read in a branch of data."""
    loops: tuple[scf.ForOp, ...] = ()
    moved: tuple[tuple[SSAValue, SSAValue], ...] = ()
    """Variables of loops that filled a buffer, and what they are for the element that a row reads: those of the row, or
    data.
    """

    def is_of_one_row(self, rows: tuple[SSAValue, ...]) -> bool:
        """Whether the leaf is another one in each row: whether the key is their variable, or stands for it."""
        key = self.key
        for variable, stands_for in self.moved:
            key = stands_for if key is variable else key
        return key is rows[-1]


Terms = list[LinearTerm]


def times(one: LinearTerm, other: LinearTerm) -> LinearTerm | None:
    """A product of terms; None if it is not linear, or too long."""
    if one.key is not None and other.key is not None and (one.key, one.where) != (other.key, other.where):
        return None
    if sum(len(term.data) + len(term.divisors) + len(term.leaf) for term in (one, other)) > MOST_FACTORS:
        return None
    if (one.loops and other.loops) or (one.moved and other.moved and one.moved != other.moved):
        return None
    return LinearTerm(
        one.negative != other.negative,
        (*one.data, *other.data),
        (*one.divisors, *other.divisors),
        (*one.leaf, *other.leaf),
        one.key if one.key is not None else other.key,
        one.where if one.key is not None else other.where,
        one.loops or other.loops,
        one.moved or other.moved,
    )


def negated(terms: Terms | None) -> Terms | None:
    """Terms with the other sign, if there are such."""
    return None if terms is None else [replace(term, negative=not term.negative) for term in terms]


def plus(first: Terms | None, second: Terms | None) -> Terms | None:
    """A sum of terms, if there are both."""
    return None if first is None or second is None else first + second
