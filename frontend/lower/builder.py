"""Building ops of the `stan` dialect: attributes that are made once, locations, regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NoReturn

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ulam.dialects import stan
from ulam.frontend.diagnostics import Diagnostic, DiagnosticError, Severity
from ulam.frontend.source import Source
from ulam.frontend.stan_types import ArrayType, BasicType, StanType, TupleType
from ulam.frontend.syntax import Span

UNIT = UnitAttr()

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
        return stan.ArrayType(IntAttr(type_.rank), dialect_type(type_.element))
    if isinstance(type_, TupleType):
        return stan.TupleType(ArrayAttr([dialect_type(t) for t in type_.elements]))
    raise TypeError(f"no value has type {type_}")


@cache
def var_type(element: Attribute) -> stan.VarType:
    return stan.VarType(element)


@lru_cache(maxsize=4096)
def string_attr(text: str) -> StringAttr:
    return StringAttr(text)


@lru_cache(maxsize=4096)
def _int_attr(value: int) -> IntAttr:
    return IntAttr(value)


@lru_cache(maxsize=1024)
def constant_properties(value: int | str, real: bool) -> dict[str, Attribute]:
    """Properties of `stan.constant` for an int, or a real given by its digits."""
    attribute: Attribute = FloatAttr(float(value), f64) if real else IntegerAttr(int(value), i32)
    return {"value": attribute}


@cache
def field_properties(number: int) -> dict[str, Attribute]:
    return {"field": IntegerAttr(number, i64)}


@cache
def flags_attr(flags: tuple[int, ...]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i8, flags)


@cache
def kinds_attr(kinds: tuple[str, ...]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([string_attr(kind) for kind in kinds])


@cache
def declaration_segments(sizes: int, present: tuple[bool, ...]) -> DenseArrayBase:
    """`operandSegmentSizes` of a declaration: sizes, then lower, upper, offset, multiplier."""
    return DenseArrayBase.from_list(i32, (sizes, *map(int, present)))


@cache
def check_segments(present: tuple[bool, ...]) -> DenseArrayBase:
    """`operandSegmentSizes` of a check: the value, then lower and upper."""
    return DenseArrayBase.from_list(i32, (1, *map(int, present)))


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
            place = self.source.location(start)
            known = FileLineColLoc(string_attr(place.file), _int_attr(place.line), _int_attr(place.column))
            self._locations[start] = known
        return known

    def emit(
        self,
        op_class: type[Operation],
        span: Span,
        operands: Sequence[SSAValue] = (),
        result: Attribute | None = None,
        properties: Mapping[str, Attribute] = {},
        regions: Sequence[Region] = (),
    ) -> Operation:
        op = op_class.create(
            operands=operands,
            result_types=() if result is None else (result,),
            properties=properties,
            regions=regions,
            location=self.location(span),
        )
        self.block.add_op(op)
        return op

    def value(
        self,
        op_class: type[Operation],
        span: Span,
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] = {},
        regions: Sequence[Region] = (),
    ) -> SSAValue:
        """Like `emit`, for an op with one result, which it returns."""
        return self.emit(op_class, span, operands, result, properties, regions).results[0]

    def int_constant(self, span: Span, value: int) -> SSAValue:
        return self.value(stan.ConstantOp, span, (), stan.INT, constant_properties(value, False))

    def real_constant(self, span: Span, digits: str) -> SSAValue:
        return self.value(stan.ConstantOp, span, (), stan.REAL, constant_properties(digits, True))

    def coerce(self, span: Span, value: SSAValue, type_: Attribute) -> SSAValue:
        """`value`, promoted if it does not have the type yet; a literal is made real at once."""
        if value.type == type_:
            return value
        literal = value.owner
        if type_ == stan.REAL and isinstance(literal, stan.ConstantOp) and literal is self.block.last_op:
            digits = str(literal.value.value.data) if isinstance(literal.value, IntegerAttr) else ""
            literal.detach()
            return self.real_constant(span, digits)
        return self.value(stan.PromoteOp, span, (value,), type_)

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

    def unsupported(self, span: Span, what: str) -> NoReturn:
        diagnostic = Diagnostic(Severity.ERROR, f"{what} not supported yet", span, self.source, "not-supported")
        raise DiagnosticError([diagnostic])
