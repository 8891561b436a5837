"""What is known of a program's variables once its data are bound: what a program is specialised on.

`KnownData` is for level 4:

    with specializing_on(known):
        ...run passes...

The pass `specialize-data` asks for `data_to_specialize_on()`: None if nobody gave any.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from ulam.library.records import record


@record(frozen=True)
class KnownData:
    """Values and sizes of global variables; of a tuple `t`, each field is one: `t.1`, `t.2.1`.

    `values`: of data and transformed data, as NumPy arrays of the variable's own shape. `dims`: sizes, of these and of
    parameters, transformed parameters and generated quantities.
    """

    values: Mapping[str, Any]
    dims: Mapping[str, tuple[int, ...]]

    is_in_program: ClassVar[bool] = False
    """Whether the program is changed to what is known before any pass."""

    @cached_property
    def digest(self) -> str:
        """Changes with every value and size."""
        from ulam.library.digests import sha256

        found = sha256()
        for name, value in self.values.items():
            found.update(f"{name} {value.dtype} {value.shape} ".encode() + value.tobytes())
        found.update(repr(sorted(self.dims.items())).encode())
        return found.hexdigest()


class Element(NamedTuple):
    """An int of the data, or the element of an array of ints at an index from 1."""

    name: str
    indices: tuple[int, ...] = ()


ANY_INDEX = 0
"""In the place of an index that is no literal: the element stands for all that have the others."""


class IntComparison(NamedTuple):
    """What an int of the data is compared with: a literal on the right of the operator."""

    element: Element
    symbol: str
    literal: int


@record(frozen=True)
class KnownSwitches:
    """What is known of a large program's switches (`data_switches`), and nothing else: its code is for all data that
    have the same. Values of ints, outcomes of comparisons of others, and which values elements of arrays have, of whole
    ones and of rows of them, such as all that begin with an index."""

    ints: Mapping[Element, int]
    outcomes: Mapping[IntComparison, bool]
    kinds: Mapping[str, frozenset[int]]
    rows: Mapping[Element, frozenset[int]]

    is_in_program: ClassVar[bool] = True

    @classmethod
    def of(cls, switches: Mapping[str, Any], value_of: Callable[[str], Any]) -> KnownSwitches:
        """From what a program's metadata tell, and the values of variables as arrays; None is that of an unknown one.

        Elements that are not there are not known, nor are arrays with more than a few different ones.
        """
        arrays = {name: value for name in switches["kinds"] if (value := value_of(name)) is not None}
        # What is read of no element may be anything: a kind that is likely to be there.
        kinds = {name: frozenset(value.ravel().tolist() or [1]) for name, value in arrays.items()}
        comparisons = [(Element(name, tuple(index)), symbol, to) for (name, index), symbol, to in switches["outcomes"]]
        ints = [Element(name, tuple(index)) for name, index in switches["ints"]]
        values: dict[Element, int] = {}
        for element in {*ints, *(compared[0] for compared in comparisons)}:
            value = value_of(element.name)
            if value is not None and len(element.indices) == value.ndim:
                inside = all(0 < n <= size for n, size in zip(element.indices, value.shape, strict=True))
                if inside:
                    values[element] = int(value[tuple(n - 1 for n in element.indices)])
        rows: dict[Element, frozenset[int]] = {}
        for row in (Element(name, tuple(index)) for name, index in switches["rows"]):
            value = value_of(row.name)
            if value is not None and len(row.indices) == value.ndim:
                inside = all(n <= size for n, size in zip(row.indices, value.shape, strict=True))
                part = value[tuple(slice(None) if n == ANY_INDEX else n - 1 for n in row.indices)] if inside else None
                if part is not None and part.size:
                    rows[row] = frozenset(part.ravel().tolist())
        told = [compared for compared in comparisons if compared[0] in values]
        return cls(
            {element: values[element] for element in ints if element in values},
            {IntComparison(of, symbol, to): COMPARE[symbol](values[of], to) for of, symbol, to in told},
            {name: found for name, found in kinds.items() if len(found) <= MOST_KINDS},
            {row: found for row, found in rows.items() if len(found) <= MOST_KINDS},
        )

    @cached_property
    def digest(self) -> str:
        """Changes with every value and outcome."""
        from ulam.library.digests import sha256

        kinds = [(name, sorted(found)) for name, found in sorted(self.kinds.items())]
        rows = [(row, sorted(found)) for row, found in sorted(self.rows.items())]
        parts = (sorted(self.ints.items()), sorted(self.outcomes.items()), kinds, rows)
        return sha256(repr(parts).encode()).hexdigest()


MOST_KINDS = 16
"""Different elements of an array that are known."""
COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

_given: ContextVar[KnownData | None] = ContextVar("known_data", default=None)


def data_to_specialize_on() -> KnownData | None:
    """What passes may take for known."""
    return _given.get()


@contextmanager
def specializing_on(known: KnownData | None) -> Iterator[None]:
    """Passes that run inside may take these data for known."""
    token = _given.set(known)
    try:
        yield
    finally:
        _given.reset(token)
