"""Attributes that ops are built with. Those that come again and again are made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute

UNIT = UnitAttr()

Number = IntegerAttr | int
Text = StringAttr | str
Texts = ArrayAttr[StringAttr] | Sequence[str]
Flags = DenseArrayBase | Sequence[int]


@lru_cache(maxsize=4096)
def _number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


def number(value: Number) -> IntegerAttr:
    """A number of a site, a slot, ...."""
    return _number(value) if type(value) is int else IntegerAttr(value, i64) if isinstance(value, int) else value


@lru_cache(maxsize=4096)
def integer(value: int, type_: IntegerType) -> IntegerAttr:
    """A constant of a type of integers."""
    return IntegerAttr(value, type_)


@lru_cache(maxsize=4096)
def _usual_real(value: float) -> FloatAttr:
    return FloatAttr(value, f64)


def real(value: float) -> FloatAttr:
    """A constant of reals."""
    value = float(value)
    return _usual_real(value) if value == value and value != 0 else FloatAttr(value, f64)  # -0.0 is equal to 0.0


@lru_cache(maxsize=4096)
def _string(text: str) -> StringAttr:
    return StringAttr(text)


def string(text: Text) -> StringAttr:
    return _string(text) if isinstance(text, str) else text


@lru_cache(maxsize=1024)
def strings(texts: tuple[str, ...]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([_string(text) for text in texts])


def texts(values: Texts) -> ArrayAttr[StringAttr]:
    """Names of things, reasons, ...."""
    return values if isinstance(values, ArrayAttr) else strings(tuple(values))


@lru_cache(maxsize=1024)
def _flags(values: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i8, values)


def flags(values: Flags) -> DenseArrayBase:
    """A 1 or a 0 for each argument, formal, ...."""
    return values if isinstance(values, DenseArrayBase) else _flags(tuple(values))


@cache
def segments(*sizes: int) -> DenseArrayBase:
    """`operandSegmentSizes`: how many operands each group of them has."""
    return DenseArrayBase.from_list(i32, sizes)


def units(**marks: bool) -> dict[str, Attribute]:
    """The properties without a value that are there."""
    return {name: UNIT for name, is_there in marks.items() if is_there}
