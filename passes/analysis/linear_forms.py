"""Linear forms of ints: `2 * N + 1`. See `sizes`."""

from __future__ import annotations

from collections.abc import Hashable

from ulam.library.records import record


@record(frozen=True)
class LinearForm:
    """`constant + sum of count * atom`."""

    constant: int
    terms: frozenset[tuple[Hashable, int]] = frozenset()

    def plus(self, other: LinearForm, factor: int = 1) -> LinearForm:
        """`self + factor * other`."""
        counts = dict(self.terms)
        for atom, count in other.terms:
            counts[atom] = counts.get(atom, 0) + factor * count
        terms = frozenset((atom, count) for atom, count in counts.items() if count)
        return LinearForm(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> LinearForm:
        return LinearForm(0).plus(self, factor)


ONE = LinearForm(1)


def atom_of(name: Hashable) -> LinearForm:
    """The form that is an atom."""
    return LinearForm(0, frozenset(((name, 1),)))
