"""Ops that are made in our way are what xDSL makes of the same parts, and read as xDSL's accessors read them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import inf, nan
from struct import pack
from typing import Any

import pytest
from op_examples import OPS, example_of, parsed
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    FileLineColLoc,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    UnknownLoc,
    f64,
    i1,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.operations import get_accessors_from_op_def

from ulam.dialects import rt, stan
from ulam.dialects.attributes import integer, real
from ulam.dialects.op_making import append, made, set_operand
from ulam.dialects.places import place
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import blocks_of, ops_of, ops_within, parent_of


def _parts(op: Operation) -> dict[str, object]:
    """All that an op has, in a form that can be compared."""
    values = {name: part for name, part in vars(op).items() if name not in ("_operand_uses", "results", "regions")}
    uses = [(use.operation is op, use.index) for use in op._operand_uses]
    results = [(result.type, result.op is op, result.index, result.name_hint) for result in op.results]
    regions = [(region.parent is op, len(region.blocks)) for region in op.regions]
    return values | {"uses": uses, "results": results, "regions": regions}


def _uses(value: SSAValue) -> list[tuple[str, int]]:
    return [(use.operation.name, use.index) for use in value.uses]


@pytest.mark.parametrize("ours", [True, False])
def test_making_ops(ours: bool) -> None:
    """Operands, uses, results, properties that are given and that are not, attributes, regions and places."""
    a, b = constant(1, i64).result, constant(2.0, f64).result

    def like(**parts: Any) -> arith.AddfOp:
        return made(arith.AddfOp, **parts) if ours else arith.AddfOp.create(**parts)

    op = like(operands=(b, b), result_types=(f64,), attributes={"here": UnitAttr()})
    other = like(operands=(b, b), result_types=(f64,), properties={"fastmath": arith.FastMathFlagsAttr("fast")})
    assert _parts(op)["properties"] == {"fastmath": arith.FastMathFlagsAttr("none")}
    assert _parts(op)["attributes"] == {"here": UnitAttr()} and op.location == UnknownLoc()
    assert other.fastmath == arith.FastMathFlagsAttr("fast")
    assert _uses(b) == [("arith.addf", 1), ("arith.addf", 0)] * 2
    op.drop_all_references()
    assert [use.operation for use in b.uses] == [other, other] and not _uses(a)


def test_same_parts() -> None:
    """Part by part, on classes of xDSL and on ours."""
    values = constant(1, i1).result, constant(3, i64).result
    properties = {"predicate": IntegerAttr(2, i64)}
    cases: list[tuple[type[Operation], dict[str, Any]]] = [
        (arith.CmpiOp, {"operands": (values[1], values[1]), "result_types": (i1,), "properties": properties}),
        (scf.IfOp, {"operands": values[:1], "regions": lambda: [Region(Block()), Region()]}),
        (arith.ConstantOp, {"result_types": (i64,), "properties": {"value": IntegerAttr(3, i64)}}),
        (rt.BoundOp, {"result_types": (i64,), "properties": {"slot": IntegerAttr(3, i64)}}),
        (stan.ReadOp, {"operands": (stan.DeclareOp("x", stan.INT).res,), "result_types": (stan.INT,)}),
    ]
    for op_class, given in cases:
        parts: list[dict[str, Any]] = [
            {name: part() if callable(part) else part for name, part in given.items()} for _ in range(2)
        ]
        ours, theirs = made(op_class, **parts[0]), op_class.create(**parts[1])
        assert _parts(ours) == _parts(theirs)
        assert list(vars(ours)) == list(vars(theirs))  # in the same order: instances share their keys


def test_putting_ops_into_blocks() -> None:
    block = Block()
    ops = [constant(n, i64) for n in range(3)]
    nested = made(scf.IfOp, (constant(1, i1).result,), regions=[Region(Block()), Region()])
    for op in (*ops, nested):
        append(block, op)
    assert list(block.ops) == [*ops, nested] and list(reversed(block.ops)) == [nested, *reversed(ops)]
    assert all(op.parent is block for op in block.ops)
    with pytest.raises(ValueError):
        append(Block(), ops[0])
    with pytest.raises(ValueError):
        append(nested.regions[0].block, nested)


def test_another_operand() -> None:
    a, b = constant(1, i64).result, constant(2, i64).result
    op = made(arith.AddiOp, (a, b), (i64,))
    set_operand(op._operand_uses[1], a)
    assert tuple(op.operands) == (a, a) and not _uses(b)
    assert _uses(a) == [("arith.addi", 1), ("arith.addi", 0)]


@pytest.mark.parametrize("op_class", OPS, ids=lambda op: op.name)
def test_reading_parts(op_class: type[IRDLOperation]) -> None:
    """Every named part of the ops of an example reads as with xDSL's own accessor."""
    ops = [op for op in parsed(example_of(op_class)).walk() if type(op) is op_class]
    theirs = get_accessors_from_op_def(op_class.get_irdl_definition(), None)
    for op in ops:
        for name, accessor in theirs.items():
            if not type(accessor).__name__.endswith("Accessor"):
                continue
            expected, found = accessor.__get__(op), getattr(op, name)
            assert found is expected or tuple(found) == tuple(expected), name
    assert ops


def test_parts_are_read_plainly() -> None:
    """One part, all parts, those behind others, a part that may be missing; properties, present and not."""
    given = constant(1, i64).result
    check = rt.CheckOp(constant(1, i1).result, 3, (given, given))
    assert check.ok is check.operands[0] and check.values == (given, given) and check.status is None
    names = ("ok", "site", "status", "values")
    assert all(isinstance(getattr(rt.CheckOp, name), property) for name in names)
    variable = stan.DeclareOp("x", stan.INT).res
    value = stan.ReadOp(variable).res
    assert value.type == stan.INT and stan.AssignOp(variable, value).value is value


def test_setting_properties() -> None:
    op = rt.BoundOp(3, i64)
    op.slot = IntegerAttr(4, i64)
    assert op.properties["slot"] == IntegerAttr(4, i64) == op.slot


def test_walks_that_are_written_out() -> None:
    """Lists of what xDSL's views show, and the op around."""
    inner = [constant(n, i64) for n in range(2)]
    regions = [Region(Block(inner)), Region(), Region([Block(), Block([scf.YieldOp()])])]
    outer = made(scf.IfOp, (constant(1, i1).result,), regions=regions)
    assert ops_of(regions[0].block) == inner
    assert blocks_of(outer) == [block for region in outer.regions for block in region.blocks]
    assert len(blocks_of(outer)) == 3
    assert parent_of(inner[0]) is outer is inner[0].parent_op() and parent_of(outer) is None
    assert list(ops_within(outer)) == list(outer.walk())
    assert list(ops_within(regions[2])) == list(regions[2].walk()) and list(ops_within(regions[0].block)) == inner


def test_attributes_that_are_made_once() -> None:
    for value in (1.5, -2.0, 0.0, -0.0, inf, nan):
        made_, plain = real(value), FloatAttr(value, f64)
        assert pack("<d", made_.value.data) == pack("<d", plain.value.data) and made_.type == f64
    assert real(1) == FloatAttr(1.0, f64) and integer(1, i1) == IntegerAttr(1, i1) != integer(1, i64)


def _calls(work: Callable[[], object]) -> int:
    """How many calls of functions and built-ins something takes."""
    count = 0

    def profile(frame: object, event: str, what: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    work()  # what is made once has been
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_what_is_saved() -> None:
    """Half of the calls for an op, three quarters for reading a part: what these ways are there for."""
    a, b = constant(1.0, f64).result, constant(2.0, f64).result
    ours = _calls(lambda: made(arith.AddfOp, (a, b), (f64,)))
    assert 2 * ours <= _calls(lambda: arith.AddfOp.create(operands=(a, b), result_types=(f64,)))
    check = rt.CheckOp(constant(1, i1).result, 3)
    accessor = get_accessors_from_op_def(rt.CheckOp.get_irdl_definition(), None)["ok"]
    assert 4 * (_calls(lambda: check.ok) - 1) <= _calls(lambda: accessor.__get__(check)) - 1
    assert _calls(lambda: isinstance(stan.INT, stan.ArrayType)) < _calls(lambda: isinstance(f64, IntegerAttr))


def test_places() -> None:
    """What is made without checks is what xDSL makes, and passes its checks."""
    parts = StringAttr("model.stan"), IntAttr(3), IntAttr(5)
    made_place, checked = place(*parts), FileLineColLoc(*parts)
    assert made_place == checked and hash(made_place) == hash(checked) and str(made_place) == str(checked)
    assert vars(made_place) == vars(checked)
    made_place.verify()
