"""What reads the parts of ulam's own ops by name, as xDSL's accessors do, in a fifth of their time.

Of xDSL's kinds of accessors those are done that passes ask all the time: parts of an op with one variadic part at most,
behind all others, operands with several, whose sizes a property has, and properties. The others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from struct import unpack
from typing import Any

from xdsl.irdl.operations import (
    AttrSizedOperandSegments,
    BeforeVariadicSingleAccessor,
    OptionalAttrAccessor,
    OptionalPropertyAccessor,
    PropertyAccessor,
    SameOptionalAccessor,
    SingleAttrAccessor,
    UniqueVariadicAccessor,
    VariadicAttrAccessor,
    VarIRConstruct,
)

from ulam.dialects.walk import item


def plain_accessor(accessor: object) -> property | None:
    """A property that reads what one of xDSL's accessors reads; None for what is none of these kinds."""
    match accessor:
        case BeforeVariadicSingleAccessor(construct, index) if construct in _SINGLE:
            return property(_SINGLE[construct](index))
        case SameOptionalAccessor(construct, index, count) if construct in _OPTIONAL:
            return property(_OPTIONAL[construct](index, count))
        case UniqueVariadicAccessor(VarIRConstruct.OPERAND, index, count):
            return property(_operands_from(index, count))
        case SingleAttrAccessor(VarIRConstruct.OPERAND, index, AttrSizedOperandSegments(as_property=True)):
            return property(lambda op: item(op._operands, _places(op)[index]))
        case VariadicAttrAccessor(VarIRConstruct.OPERAND, index, AttrSizedOperandSegments(as_property=True)):
            return property(lambda op: op._operands[_places(op)[index] : _places(op)[index + 1]])
        case OptionalAttrAccessor(VarIRConstruct.OPERAND, index, AttrSizedOperandSegments(as_property=True)):
            return property(_optional_among(index))
        case OptionalPropertyAccessor(name, default):
            return property(lambda op: op.properties.get(name, default), accessor.__set__)
        case PropertyAccessor(name):
            return property(lambda op: op.properties[name], accessor.__set__)
        case _:
            return None


def _operand(index: int) -> Callable[[Any], Any]:
    return lambda op: item(op._operands, index)


def _result(index: int) -> Callable[[Any], Any]:
    return lambda op: item(op.results, index)


def _region(index: int) -> Callable[[Any], Any]:
    return lambda op: op.regions[index]


_SINGLE = {VarIRConstruct.OPERAND: _operand, VarIRConstruct.RESULT: _result, VarIRConstruct.REGION: _region}


def _optional_operand(index: int, count: int) -> Callable[[Any], Any]:
    return lambda op: item(op._operands, index) if len(op._operands) == count else None


def _optional_result(index: int, count: int) -> Callable[[Any], Any]:
    return lambda op: item(op.results, index) if len(op.results) == count else None


_OPTIONAL = {VarIRConstruct.OPERAND: _optional_operand, VarIRConstruct.RESULT: _optional_result}


def _operands_from(index: int, count: int) -> Callable[[Any], Any]:
    if index == 0 and count == 1:
        return lambda op: op._operands
    return lambda op: op._operands[index : index + len(op._operands) - count + 1]


def _optional_among(index: int) -> Callable[[Any], Any]:
    def read(op: Any) -> Any:
        places = _places(op)
        return item(op._operands, places[index]) if places[index] < places[index + 1] else None

    return read


def _places(op: Any) -> tuple[int, ...]:
    """Where the parts of an op's operands begin, by the property that has their sizes; and where the last one ends."""
    return _sums(op.properties[AttrSizedOperandSegments.attribute_name].data.data)


@lru_cache(maxsize=1024)
def _sums(sizes: bytes) -> tuple[int, ...]:
    return (0, *accumulate(unpack(f"<{len(sizes) // 4}i", sizes)))
