"""Building ops of the `stan` dialect: attributes that are made once, locations, regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, IntAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ulam.dialects import stan
from ulam.dialects.attributes import string
from ulam.dialects.op_making import append
from ulam.dialects.places import place
from ulam.dialects.walk import result_of
from ulam.frontend.source import Source
from ulam.frontend.stan_types import BASIC_TYPES, ArrayType, BasicType, StanType, TupleType, array_of
from ulam.frontend.syntax import Span

OpT = TypeVar("OpT", bound=Operation)

_BASIC_TYPES: dict[str, Attribute] = {
    "int": stan.INT,
    "real": stan.REAL,
    "complex": stan.COMPLEX,
    "vector": stan.VECTOR,
    "row_vector": stan.ROW_VECTOR,
    "matrix": stan.MATRIX,
    "complex_vector": stan.COMPLEX_VECTOR,
    "complex_row_vector": stan.COMPLEX_ROW_VECTOR,
    "complex_matrix": stan.COMPLEX_MATRIX,
}


@cache
def dialect_type(type_: StanType) -> Attribute:
    """The type of the dialect for a type of the language."""
    if isinstance(type_, BasicType):
        return _BASIC_TYPES[type_.name]
    if isinstance(type_, ArrayType):
        if isinstance(type_.element, TupleType):  # a tuple of arrays: see `tuples`
            return stan.TupleType(ArrayAttr([dialect_type(array_of(t, type_.rank)) for t in type_.element.elements]))
        return stan.ArrayType(IntAttr(type_.rank), dialect_type(type_.element))
    if isinstance(type_, TupleType):
        return stan.TupleType(ArrayAttr([dialect_type(t) for t in type_.elements]))
    raise TypeError(f"no value has type {type_}")


@cache
def stan_type(type_: Attribute) -> StanType:
    """The type of the language for a type of the dialect: the inverse of `dialect_type`."""
    if isinstance(type_, stan.ArrayType):
        return ArrayType(type_.rank.data, stan_type(type_.element))
    if isinstance(type_, stan.TupleType):
        return TupleType(tuple(stan_type(element) for element in type_.elements))
    return BASIC_TYPES[type_.name.removeprefix("stan.")]


@lru_cache(maxsize=4096)
def _int_attr(value: int) -> IntAttr:
    return IntAttr(value)


class StanBuilder:
    """Appends ops to the current block. One builder serves one source text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.block = Block()
        self._locations: dict[int, FileLineColLoc] = {}

    def location(self, span: Span) -> FileLineColLoc:
        start = span.start
        known = self._locations.get(start)
        if known is None:
            found = self.source.location(start)
            known = place(string(found.file), _int_attr(found.line), _int_attr(found.column))
            self._locations[start] = known
        return known

    def emit(self, op: OpT, span: Span) -> OpT:
        """Appends an op that stands for what is written at `span`."""
        op.location = self.location(span)
        append(self.block, op)
        return op

    def value(self, op: Operation, span: Span) -> SSAValue:
        """Like `emit`, for an op with one result, which it returns."""
        return result_of(self.emit(op, span))

    def int_constant(self, span: Span, value: int) -> SSAValue:
        return self.value(stan.ConstantOp(value), span)

    def real_constant(self, span: Span, digits: str) -> SSAValue:
        return self.value(stan.ConstantOp(float(digits)), span)

    def coerce(self, span: Span, value: SSAValue, type_: Attribute) -> SSAValue:
        """`value`, promoted if it does not have the type yet; a literal is made real at once."""
        if value.type == type_:
            return value
        literal = value.owner
        if type_ == stan.REAL and isinstance(literal, stan.ConstantOp) and literal is self.block.last_op:
            digits = str(literal.value.value.data) if isinstance(literal.value, IntegerAttr) else ""
            literal.detach()
            return self.real_constant(span, digits)
        return self.value(stan.PromoteOp(value, type_), span)

    def region(self, build: Callable[[], None], arguments: Sequence[Attribute] = ()) -> Region:
        """A region of one block, which `build` fills; `build` also ends it."""
        outer, self.block = self.block, Block(arg_types=arguments)
        try:
            build()
            return Region(self.block)
        finally:
            self.block = outer

    def ended(self) -> bool:
        """Whether the current block has its terminator."""
        last = self.block.last_op
        return last is not None and last.has_trait(IsTerminator)
