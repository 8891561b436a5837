"""The types of the Stan language, as the type checker sees them (sizes are not part of a type).

Source: Stan Reference Manual, "Data types and declarations"; promotion: "Type inference".
"""

from __future__ import annotations

from functools import cache

from ulam.library.records import record


class StanType:
    """Base of all types. Types are immutable and compare by structure."""

    __slots__ = ()


@record(frozen=True, slots=True)
class BasicType(StanType):
    """A type without parts: scalars and the linear-algebra containers."""

    name: str  # "int", "real", "complex", "vector", "row_vector", "matrix", "complex_vector", ...

    def __str__(self) -> str:
        return self.name


@record(frozen=True, slots=True)
class ArrayType(StanType):
    """`array[,,] T`; `element` is never itself an array."""

    rank: int
    element: StanType

    def __str__(self) -> str:
        return f"array[{',' * (self.rank - 1)}] {self.element}"


@record(frozen=True, slots=True)
class TupleType(StanType):
    """`tuple(T1, T2, ...)`."""

    elements: tuple[StanType, ...]

    def __str__(self) -> str:
        return f"tuple({', '.join(map(str, self.elements))})"


@record(frozen=True, slots=True)
class FunctionType(StanType):
    """A function as a value: only as an argument of higher-order library functions."""

    arguments: tuple[tuple[bool, StanType], ...]  # (data only, type)
    result: StanType  # VOID for functions that return nothing

    def __str__(self) -> str:
        return f"({', '.join(('data ' if d else '') + str(t) for d, t in self.arguments)}) => {self.result}"


INT = BasicType("int")
REAL = BasicType("real")
COMPLEX = BasicType("complex")
VECTOR = BasicType("vector")
ROW_VECTOR = BasicType("row_vector")
MATRIX = BasicType("matrix")
COMPLEX_VECTOR = BasicType("complex_vector")
COMPLEX_ROW_VECTOR = BasicType("complex_row_vector")
COMPLEX_MATRIX = BasicType("complex_matrix")
VOID = BasicType("void")

BASIC_TYPES = {
    t.name: t
    for t in (
        INT, REAL, COMPLEX, VECTOR, ROW_VECTOR, MATRIX,
        COMPLEX_VECTOR, COMPLEX_ROW_VECTOR, COMPLEX_MATRIX, VOID,
    )
}  # fmt: skip


@cache
def has_complex(type_: StanType) -> bool:
    """Whether there are complex numbers in values of a type."""
    if isinstance(type_, TupleType):
        return any(map(has_complex, type_.elements))
    return scalar_of(type_) == COMPLEX if not isinstance(type_, ArrayType) else has_complex(type_.element)


@cache
def part_of(type_: StanType) -> StanType:
    """The type of the real part, and of the imaginary one, of what is complex; any other type as it is."""
    if isinstance(type_, ArrayType):
        return ArrayType(type_.rank, part_of(type_.element))
    if type_ == COMPLEX:
        return REAL
    return BASIC_TYPES[type_.name.removeprefix("complex_")] if isinstance(type_, BasicType) else type_


@cache
def array_of(element: StanType, rank: int = 1) -> StanType:
    """The array type with `rank` more dimensions than `element` (which may be an array already)."""
    if rank == 0:
        return element
    if isinstance(element, ArrayType):
        return ArrayType(element.rank + rank, element.element)
    return ArrayType(rank, element)


def scalar_of(type_: StanType) -> StanType:
    """The scalar type of the elements: `array[] vector` → `real`, `array[,] int` → `int`."""
    if isinstance(type_, ArrayType):
        return scalar_of(type_.element)
    if isinstance(type_, BasicType):
        if type_.name in ("vector", "row_vector", "matrix"):
            return REAL
        if type_.name.startswith("complex"):
            return COMPLEX
    return type_
