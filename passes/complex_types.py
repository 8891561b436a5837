"""What becomes of types and names when complex numbers become pairs of reals (see `complex_to_pairs`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan

_PART_OF = {
    stan.COMPLEX: stan.REAL,
    stan.COMPLEX_VECTOR: stan.VECTOR,
    stan.COMPLEX_ROW_VECTOR: stan.ROW_VECTOR,
    stan.COMPLEX_MATRIX: stan.MATRIX,
}

PARTS = ("real", "imag")
"""What follows `z.` in the names of the two variables that `z` becomes."""


def part_number(name: str) -> int | None:
    """Which part of a complex variable one of this name is; None if it is none."""
    _, dot, part = name.rpartition(".")
    return PARTS.index(part) if dot and part in PARTS else None


def whole_name(name: str) -> str:
    """The name of the complex variable that one of this name is a part of."""
    return name.rpartition(".")[0]


def is_complex(type_: Attribute) -> bool:
    """Whether values of a type are complex numbers, or containers of them; tuples are not."""
    return (type_.element if isinstance(type_, stan.ArrayType) else type_) in _PART_OF


def part_of(type_: Attribute) -> Attribute:
    """The type of the real part, and of the imaginary one."""
    if isinstance(type_, stan.ArrayType):
        return stan.ArrayType(type_.rank, _PART_OF[type_.element])
    return _PART_OF[type_]


def in_reals(type_: Attribute) -> Attribute:
    """A type with all that is complex in it replaced: by a tuple of the parts."""
    if is_complex(type_):
        return stan.TupleType(ArrayAttr([part_of(type_)] * 2))
    if isinstance(type_, stan.TupleType):
        return stan.TupleType(ArrayAttr([in_reals(element) for element in type_.elements]))
    if isinstance(type_, stan.ArrayType):
        return stan.ArrayType(type_.rank, in_reals(type_.element))
    if isinstance(type_, stan.VarType):
        return stan.var_of(in_reals(type_.element))
    return type_


def has_complex(type_: Attribute) -> bool:
    """Whether there are complex numbers in values of a type."""
    if isinstance(type_, stan.TupleType):
        return any(map(has_complex, type_.elements))
    if isinstance(type_, stan.ArrayType | stan.VarType):
        return has_complex(type_.element)
    return type_ in _PART_OF


def sizes_in_reals(type_: Attribute, sizes: Iterator[SSAValue]) -> Iterable[SSAValue]:
    """The sizes of a declared tuple, for the type that it becomes: those of a complex field count twice."""
    if isinstance(type_, stan.TupleType):
        for element in type_.elements:
            yield from sizes_in_reals(element, sizes)
        return
    own = [size for _, size in zip(range(stan.dimensions(type_)), sizes, strict=False)]
    yield from own
    if is_complex(type_):
        yield from own
