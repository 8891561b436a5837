"""What reads the parts of ulam's own ops by name, as xDSL's accessors do, in a fifth of their time.

Of xDSL's kinds of accessors those are done that passes ask all the time: parts of an op with one variadic part at most,
behind all others, and properties. The others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.irdl.operations import (
    BeforeVariadicSingleAccessor,
    OptionalPropertyAccessor,
    PropertyAccessor,
    SameOptionalAccessor,
    UniqueVariadicAccessor,
    VarIRConstruct,
)

_item = tuple.__getitem__  # xDSL's tuples of values have one in Python


def plain_accessor(accessor: object) -> property | None:
    """A property that reads what one of xDSL's accessors reads; None for what is none of these kinds."""
    match accessor:
        case BeforeVariadicSingleAccessor(construct, index) if construct in _SINGLE:
            return property(_SINGLE[construct](index))
        case SameOptionalAccessor(construct, index, count) if construct in _OPTIONAL:
            return property(_OPTIONAL[construct](index, count))
        case UniqueVariadicAccessor(VarIRConstruct.OPERAND, index, count):
            return property(_operands_from(index, count))
        case OptionalPropertyAccessor(name, default):
            return property(lambda op: op.properties.get(name, default), accessor.__set__)
        case PropertyAccessor(name):
            return property(lambda op: op.properties[name], accessor.__set__)
        case _:
            return None


def _operand(index: int) -> Callable[[Any], Any]:
    return lambda op: _item(op._operands, index)


def _result(index: int) -> Callable[[Any], Any]:
    return lambda op: _item(op.results, index)


def _region(index: int) -> Callable[[Any], Any]:
    return lambda op: op.regions[index]


_SINGLE = {VarIRConstruct.OPERAND: _operand, VarIRConstruct.RESULT: _result, VarIRConstruct.REGION: _region}


def _optional_operand(index: int, count: int) -> Callable[[Any], Any]:
    return lambda op: _item(op._operands, index) if len(op._operands) == count else None


def _optional_result(index: int, count: int) -> Callable[[Any], Any]:
    return lambda op: _item(op.results, index) if len(op.results) == count else None


_OPTIONAL = {VarIRConstruct.OPERAND: _optional_operand, VarIRConstruct.RESULT: _optional_result}


def _operands_from(index: int, count: int) -> Callable[[Any], Any]:
    if index == 0 and count == 1:
        return lambda op: op._operands
    return lambda op: op._operands[index : index + len(op._operands) - count + 1]
