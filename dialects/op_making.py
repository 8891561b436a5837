"""Making ops, and putting them at the end of a block, without the checks and views that make xDSL's own ways slow.

    op = made(arith.AddfOp, operands=(a, b), result_types=(f64,))      as arith.AddfOp.create(...)
    append(block, op)                                                  as block.add_op(op)

A compiler does little else so often: half of what an op costs is saved. What comes out is what xDSL makes, which
`tests/dialects/test_op_making.py` compares part by part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

OpT = TypeVar("OpT", bound=Operation)

_NOTHING: Mapping[str, Attribute] = {}
_Defaults = tuple[tuple[str, Attribute], ...]
_NO_DEFAULTS: tuple[_Defaults, _Defaults] = ((), ())
_defaults: dict[type[Operation], tuple[_Defaults, _Defaults]] = {}
"""Op class → properties and attributes that an op has if it is not given others."""


def made(
    op_class: type[OpT],
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    attributes: Mapping[str, Attribute] = _NOTHING,
    regions: Sequence[Region] = (),
    location: LocationAttr | None = None,
) -> OpT:
    """An op of a class, of its parts."""
    op = op_class.__new__(op_class)
    give_parts(op, operands, result_types, properties, attributes, regions, location)
    return op


def give_parts(
    op: Operation,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    attributes: Mapping[str, Attribute] = _NOTHING,
    regions: Sequence[Region] = (),
    location: LocationAttr | None = None,
) -> None:
    """Gives a new op its parts: what constructors of ops end with."""
    op._operands = values = SSAValues(operands)
    uses: list[Use] = []
    for index, value in enumerate(values):
        use = Use(op, index)
        if (first := value.first_use) is not None:
            use._next_use = first
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(type_, op, index) for index, type_ in enumerate(result_types)])
    op.properties = {**properties} if properties else {}
    op.attributes = {**attributes} if attributes else {}
    op.location = UNKNOWN_LOC if location is None else location
    op._successors = ()
    op._successor_uses = ()
    op.regions = ()
    for region in regions:
        op.add_region(region)
    cls = type(op)
    known = _defaults.get(cls)
    if known is None:
        known = _defaults[cls] = _defaults_of(cls)
    if known is not _NO_DEFAULTS:
        of_properties, of_attributes = known
        for name, default in of_properties:
            op.properties.setdefault(name, default)
        for name, default in of_attributes:
            op.attributes.setdefault(name, default)


def _defaults_of(op_class: type[Operation]) -> tuple[_Defaults, _Defaults]:
    if not issubclass(op_class, IRDLOperation):
        return _NO_DEFAULTS
    definition = op_class.get_irdl_definition()
    properties, attributes = (
        tuple(
            (name, each.default_value)
            for name, each in parts.items()
            if not isinstance(each, OptionalDef) and each.default_value is not None
        )
        for parts in (definition.properties, definition.attributes)
    )
    return (properties, attributes) if properties or attributes else _NO_DEFAULTS


def append(block: Block, op: Operation) -> None:
    """Puts a new op at the end of a block."""
    if op.regions or op.parent is not None:
        block.add_op(op)
        return
    op.parent = block
    last = block._last_op
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op


def set_operand(use: Use, value: SSAValue) -> None:
    """Lets an op use another value in the place of one, as `op.operands[index] = value` does."""
    op, index = use._operation, use._index
    operands = list(op._operands)
    operands[index].remove_use(use)
    value.add_use(use)
    operands[index] = value
    op._operands = SSAValues(operands)
