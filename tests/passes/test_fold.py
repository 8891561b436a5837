"""fold: what single ops become, case by case; the same values as the processor computes, or nothing."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, ModuleOp, StringAttr, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.passes.loops import fold

INF, NAN = math.inf, math.nan
MIN32 = -(2**31)


def fold_op(cls: type[Operation], type_: Attribute, *arguments: float | None, **properties: Attribute) -> object:
    """What `cls` on constants becomes: a number, ("argument", i), or None. None as an argument: not a constant."""
    function = func.FuncOp.from_region("f", [_type(arguments, properties)] * len(arguments), [type_])
    block = function.body.block
    operands: list[SSAValue] = []
    for position, argument in enumerate(arguments):
        if argument is None:
            operands.append(block.args[position])
            continue
        operand_type = _type(arguments, properties)
        value = IntegerAttr(int(argument), operand_type) if operand_type != f64 else FloatAttr(argument, f64)  # type: ignore[arg-type]
        block.add_op(constant := arith.ConstantOp(value))
        operands.append(constant.result)
    properties.pop("operand_type", None)
    op = cls.create(operands=operands, result_types=(type_,), properties=properties)
    block.add_ops((op, func.ReturnOp(op.results[0])))
    fold.Fold().changes(ModuleOp([function]))
    end = block.last_op
    assert end is not None
    result = end.operands[0]
    if isinstance(result.owner, Block):
        return ("argument", result.index)  # type: ignore[attr-defined]
    if isinstance(result.owner, arith.ConstantOp):
        number = result.owner.value.value.data  # type: ignore[union-attr]
        return int(number) & 1 if result.type == i1 else number
    return None


def _type(arguments: tuple[float | None, ...], properties: dict[str, Attribute]) -> Attribute:
    if "operand_type" in properties:
        return properties["operand_type"]
    return i32 if any(isinstance(a, int) for a in arguments) else f64


@pytest.mark.parametrize(
    ("cls", "a", "b", "expected"),
    [
        (arith.AddiOp, 2**31 - 1, 1, MIN32),
        (arith.SubiOp, MIN32, 1, 2**31 - 1),
        (arith.MuliOp, 65536, 65536, 0),
        (arith.MuliOp, None, 0, 0),
        (arith.MuliOp, 1, None, ("argument", 1)),
        (arith.AndIOp, None, -1, ("argument", 0)),
        (arith.OrIOp, None, -1, -1),
        (arith.DivSIOp, -7, 2, -3),
        (arith.DivSIOp, MIN32, -1, MIN32),
        (arith.DivSIOp, 1, 0, None),
        (arith.RemSIOp, -7, 2, -1),
        (arith.RemSIOp, 7, -2, 1),
        (arith.RemSIOp, 1, 0, None),
        (arith.MinSIOp, -3, 2, -3),
    ],
)
def test_integers(cls: type[Operation], a: int | None, b: int | None, expected: object) -> None:
    assert fold_op(cls, i32, a, b) == expected


@pytest.mark.parametrize(
    ("cls", "a", "b", "expected"),
    [
        (arith.AddfOp, None, 0.0, None),
        (arith.AddfOp, None, -0.0, ("argument", 0)),
        (arith.AddfOp, -0.0, None, ("argument", 1)),
        (arith.AddfOp, 0.1, 0.2, 0.1 + 0.2),
        (arith.AddfOp, INF, -INF, None),
        (arith.SubfOp, None, 0.0, ("argument", 0)),
        (arith.SubfOp, None, -0.0, None),
        (arith.SubfOp, 0.0, 0.0, 0.0),
        (arith.MulfOp, None, 1.0, ("argument", 0)),
        (arith.MulfOp, None, 0.0, None),
        (arith.MulfOp, -0.0, 3.0, -0.0),
        (arith.MulfOp, 1e308, 10.0, INF),
        (arith.DivfOp, None, 1.0, ("argument", 0)),
        (arith.DivfOp, 1.0, 3.0, 1.0 / 3.0),
        (arith.DivfOp, 1.0, 0.0, INF),
        (arith.DivfOp, 0.0, 0.0, None),
        (arith.AddfOp, NAN, 1.0, None),
    ],
)
def test_reals(cls: type[Operation], a: float | None, b: float | None, expected: object) -> None:
    found = fold_op(cls, f64, a, b, operand_type=f64)
    if isinstance(expected, float):
        assert isinstance(found, float)
        assert struct.pack("<d", found) == struct.pack("<d", expected)
    else:
        assert found == expected


_ORDERED: dict[int, Callable[[float, float], bool]] = {
    1: operator.eq,
    2: operator.gt,
    3: operator.ge,
    4: operator.lt,
    5: operator.le,
    6: lambda a, b: a < b or a > b,
}


@pytest.mark.parametrize("a", [0.0, -0.0, 1.0, INF, NAN])
@pytest.mark.parametrize("b", [0.0, 2.0, -INF, NAN])
def test_comparisons_of_reals(a: float, b: float) -> None:
    unordered = math.isnan(a) or math.isnan(b)

    def compare(predicate: int) -> object:
        return fold_op(arith.CmpfOp, i1, a, b, operand_type=f64, predicate=IntegerAttr(predicate, i64))

    assert compare(0) == 0
    assert compare(15) == 1
    assert compare(7) == int(not unordered)
    assert compare(14) == int(unordered)
    for predicate, holds in _ORDERED.items():
        assert compare(predicate) == int(not unordered and holds(a, b))
        assert compare(predicate + 7) == int(unordered or holds(a, b))


@pytest.mark.parametrize(("a", "b"), [(-1, 1), (1, 1), (MIN32, 2**31 - 1)])
def test_comparisons_of_integers(a: int, b: int) -> None:
    tests: list[Callable[[int, int], bool]] = [
        operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    ]  # fmt: skip
    for predicate, test in enumerate(tests):
        assert fold_op(arith.CmpiOp, i1, a, b, predicate=IntegerAttr(predicate, i64)) == int(test(a, b))
    for predicate, test in enumerate(tests[2:], start=6):
        expected = int(test(a % 2**32, b % 2**32))
        assert fold_op(arith.CmpiOp, i1, a, b, predicate=IntegerAttr(predicate, i64)) == expected


@pytest.mark.parametrize(
    ("cls", "source", "value", "result", "expected"),
    [
        (arith.ExtSIOp, i32, -5, i64, -5),
        (arith.ExtUIOp, i32, -5, i64, 2**32 - 5),
        (arith.ExtUIOp, i1, 1, i32, 1),
        (arith.ExtSIOp, i1, 1, i32, -1),
        (arith.TruncIOp, i64, 2**40 + 7, i32, 7),
        (arith.SIToFPOp, i32, -3, f64, -3.0),
        (arith.SIToFPOp, i64, 2**53 + 1, f64, float(2**53)),
        (arith.FPToSIOp, f64, -2.75, i32, -2),
        (arith.FPToSIOp, f64, 1e10, i32, 2**31 - 1),
        (arith.FPToSIOp, f64, NAN, i32, 0),
    ],
)
def test_conversions(
    cls: type[Operation], source: IntegerType, value: float, result: Attribute, expected: object
) -> None:
    assert fold_op(cls, result, value, operand_type=source) == expected


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("sqrt", 2.0, math.sqrt(2.0)),
        ("sqrt", -0.0, -0.0),
        ("sqrt", -1.0, None),
        ("floor", -0.5, -1.0),
        ("ceil", -0.5, -0.0),
        ("trunc", -1.5, -1.0),
        ("fabs", -0.0, 0.0),
        ("exp", 1.0, None),
        ("floor", INF, None),
    ],
)
def test_math(name: str, argument: float, expected: float | None) -> None:
    found = fold_op(rt.MathOp, f64, argument, operand_type=f64, function=StringAttr(name))
    assert found == expected
    if isinstance(found, float) and expected is not None:
        assert math.copysign(1.0, found) == math.copysign(1.0, expected)
