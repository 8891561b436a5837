"""Types of the `stan` dialect, and what indexing makes of them. Sizes are operands of declarations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.plain_attribute import PlainAttribute, plain_attribute

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer


@plain_attribute
class IntType(PlainAttribute, TypeAttribute):
    """`int`: 32 bits, wraps."""

    name = "stan.int"


@plain_attribute
class RealType(PlainAttribute, TypeAttribute):
    """`real`: IEEE double."""

    name = "stan.real"


@plain_attribute
class ComplexType(PlainAttribute, TypeAttribute):
    """`complex`."""

    name = "stan.complex"


@plain_attribute
class VectorType(PlainAttribute, TypeAttribute):
    """`vector` (a column)."""

    name = "stan.vector"


@plain_attribute
class RowVectorType(PlainAttribute, TypeAttribute):
    """`row_vector`."""

    name = "stan.row_vector"


@plain_attribute
class MatrixType(PlainAttribute, TypeAttribute):
    """`matrix`, column-major."""

    name = "stan.matrix"


@plain_attribute
class ComplexVectorType(PlainAttribute, TypeAttribute):
    """`complex_vector`."""

    name = "stan.complex_vector"


@plain_attribute
class ComplexRowVectorType(PlainAttribute, TypeAttribute):
    """`complex_row_vector`."""

    name = "stan.complex_row_vector"


@plain_attribute
class ComplexMatrixType(PlainAttribute, TypeAttribute):
    """`complex_matrix`."""

    name = "stan.complex_matrix"


@plain_attribute
class StringType(PlainAttribute, TypeAttribute):
    """A string literal: only an argument of print, reject and fatal_error."""

    name = "stan.string"


@plain_attribute
class ArrayType(PlainAttribute, TypeAttribute):
    """`!stan.array<2, !stan.vector>`: `array[,] vector`. The element type is never itself an array."""

    name = "stan.array"
    rank: IntAttr
    element: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            rank = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_punctuation(",")
            return [IntAttr(rank), parser.parse_attribute()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.rank.data}, ")
            printer.print_attribute(self.element)

    def verify(self) -> None:
        if self.rank.data < 1 or isinstance(self.element, ArrayType):
            raise VerifyException("an array has at least one dimension, and elements that are no arrays")


@plain_attribute
class TupleType(PlainAttribute, TypeAttribute):
    """`!stan.tuple<[!stan.int, !stan.vector]>`."""

    name = "stan.tuple"
    elements: ArrayAttr[Attribute]


@plain_attribute
class VarType(PlainAttribute, TypeAttribute):
    """`!stan.var<!stan.real>`: a variable that is declared, read, assigned. Two variables never overlap."""

    name = "stan.var"
    element: Attribute


INT = IntType()
REAL = RealType()
COMPLEX = ComplexType()
VECTOR = VectorType()
ROW_VECTOR = RowVectorType()
MATRIX = MatrixType()
COMPLEX_VECTOR = ComplexVectorType()
COMPLEX_ROW_VECTOR = ComplexRowVectorType()
COMPLEX_MATRIX = ComplexMatrixType()
STRING = StringType()

VECTORS = {VECTOR: REAL, ROW_VECTOR: REAL, COMPLEX_VECTOR: COMPLEX, COMPLEX_ROW_VECTOR: COMPLEX}
"""One-dimensional linear-algebra types → type of their entries."""

MATRICES = {MATRIX: ROW_VECTOR, COMPLEX_MATRIX: COMPLEX_ROW_VECTOR}
"""Matrix types → type of their rows."""

_COLUMN = {MATRIX: VECTOR, COMPLEX_MATRIX: COMPLEX_VECTOR}


@cache
def var_of(element: Attribute) -> VarType:
    """The type of a variable whose values have the type `element`."""
    return VarType(element)


def array_of(element: Attribute, rank: int) -> Attribute:
    """The array type with `rank` more dimensions than `element`."""
    if rank == 0:
        return element
    if isinstance(element, ArrayType):
        return ArrayType(IntAttr(element.rank.data + rank), element.element)
    return ArrayType(IntAttr(rank), element)


def scalar_of(type_: Attribute) -> Attribute:
    """The type of the entries: of arrays, vectors and matrices down to `int`, `real` or `complex`; else itself."""
    if isinstance(type_, ArrayType):
        type_ = type_.element
    if type_ in VECTORS:
        return VECTORS[type_]
    if type_ in MATRICES:
        return VECTORS[MATRICES[type_]]
    return type_


def dimensions(type_: Attribute) -> int:
    """How many single indices lead down to an entry (or a tuple)."""
    rank = 0
    if isinstance(type_, ArrayType):
        rank, type_ = type_.rank.data, type_.element
    return rank + (1 if type_ in VECTORS else 2 if type_ in MATRICES else 0)


def element_of(type_: Attribute) -> Attribute | None:
    """What a loop over the elements of a container sees: of matrices their entries. None if there are no elements."""
    if isinstance(type_, ArrayType):
        return array_of(type_.element, type_.rank.data - 1)
    if type_ in VECTORS or type_ in MATRICES:
        return scalar_of(type_)
    return None


def indexed(type_: Attribute, kinds: Sequence[str]) -> Attribute | None:
    """The type of `x[kinds...]` for an `x` of `type_`: a `single` index removes a dimension, the others keep it.

    None if there are more indices than dimensions.
    """
    kept, rest = 0, tuple(kinds)
    if isinstance(type_, ArrayType):
        rank, type_ = type_.rank.data, type_.element
        outer, rest = rest[:rank], rest[rank:]
        kept = rank - outer.count("single")
    if rest:
        entry = _indexed_entry(type_, rest)
        if entry is None:
            return None
        type_ = entry
    return array_of(type_, kept)


def _indexed_entry(type_: Attribute, kinds: Sequence[str]) -> Attribute | None:
    """`indexed` for vectors and matrices. `m[i]` is a row, `m[:, j]` a column, `m[i, idx]` a row again."""
    if type_ in VECTORS and len(kinds) == 1:
        return VECTORS[type_] if kinds[0] == "single" else type_
    if type_ not in MATRICES or len(kinds) > 2:
        return None
    row, column = kinds[0] == "single", list(kinds[1:]) == ["single"]
    if row:
        return VECTORS[MATRICES[type_]] if column else MATRICES[type_]
    return _COLUMN[type_] if column else type_
