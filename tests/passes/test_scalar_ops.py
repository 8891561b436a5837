"""Scalar ops mean the same everywhere: each, with each predicate, on edge constants, by the builder, by fold and by the
emitter, is what compiled code computes of values that it does not know.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from emission import Compiled
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import (
    CMPF,
    CMPI,
    COMMUTATIVE,
    CONVERSIONS,
    IF_SAME,
    INTEGER_OPS,
    REAL_OPS,
    SYMMETRIC_PREDICATES,
    Known,
    constant,
    known_constant,
    simplify,
    width_of,
)
from ulam.passes.builder import Builder
from ulam.passes.loops import fold

REALS = (0.0, -0.0, 1.0, -1.0, 0.1, math.inf, -math.inf, math.nan, 1e308, 5e-324, -3.5)
DIVISIONS = (arith.DivSIOp, arith.RemSIOp, arith.DivUIOp, arith.RemUIOp)
SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
FAST = {"fastmath": arith.FastMathFlagsAttr("none")}


class Case(NamedTuple):
    """An op, as yet without operands."""

    op_class: type[Operation]
    operand: Attribute
    result: Attribute
    predicate: str = ""

    @property
    def properties(self) -> dict[str, Attribute]:
        if self.op_class is arith.CmpiOp:
            return {"predicate": CMPI[self.predicate]}
        if self.op_class is arith.CmpfOp:
            return {"predicate": CMPF[self.predicate], **FAST}
        return dict(FAST) if self.operand == f64 and self.result == f64 else {}

    def op(self, operands: Sequence[SSAValue]) -> Operation:
        return self.op_class.create(operands=operands, result_types=(self.result,), properties=self.properties)


def integers(type_: Attribute) -> tuple[int, ...]:
    width = width_of(type_)
    return (0, 1) if width == 1 else (0, 1, -1, 2, -7, 31, -(1 << (width - 1)), (1 << (width - 1)) - 1)


def groups() -> Iterator[tuple[str, Sequence[Case], Sequence[tuple[Known, ...]]]]:
    """Ops of one type of operands, and the operands for which they have a value."""
    for type_ in (i1, i32, i64):
        width = width_of(type_)
        pairs = list(itertools.product(integers(type_), repeat=2))
        plain = [Case(op, type_, type_) for op in INTEGER_OPS if op not in (*DIVISIONS, *SHIFTS)]
        plain += [Case(arith.CmpiOp, type_, i1, predicate) for predicate in CMPI]
        yield f"i{width}", plain, pairs
        if width > 1:
            yield f"i{width}-divisions", [Case(op, type_, type_) for op in DIVISIONS], [p for p in pairs if p[1]]
            shifts = [p for p in pairs if 0 <= p[1] < width]
            yield f"i{width}-shifts", [Case(op, type_, type_) for op in SHIFTS], shifts
    reals = [Case(op, f64, f64) for op in REAL_OPS] + [Case(arith.CmpfOp, f64, i1, name) for name in CMPF]
    yield "f64", reals, list(itertools.product(REALS, repeat=2))
    conversions: dict[Attribute, list[Case]] = {t: [] for t in (i1, i32, i64, f64)}
    for source, target in itertools.product((i1, i32, i64), (i32, i64)):
        narrow, wide = width_of(source), width_of(target)
        if narrow < wide:
            conversions[source] += [Case(op, source, target) for op in (arith.ExtSIOp, arith.ExtUIOp)]
            conversions[target] += [Case(arith.TruncIOp, target, source)]
    for type_ in (i32, i64):
        conversions[type_] += [Case(op, type_, f64) for op in (arith.SIToFPOp, arith.UIToFPOp)]
        conversions[f64] += [Case(op, f64, type_) for op in (arith.FPToSIOp, arith.FPToUIOp)]
    assert {case.op_class for cases in conversions.values() for case in cases} == set(CONVERSIONS) - {arith.IndexCastOp}
    for type_, cases in conversions.items():
        values = (*REALS, 2.0**31, -(2.0**31) - 1, 2.0**63, -1e30, 0.99) if type_ == f64 else integers(type_)
        yield f"conversions-{type_}", cases, [(value,) for value in values]
    yield "negation", [Case(arith.NegfOp, f64, f64)], [(value,) for value in REALS]


GROUPS = {name: (cases, values) for name, cases, values in groups()}


def memory_type(type_: Attribute) -> Attribute:
    return i32 if type_ == i1 else type_


class Program:
    """A function of buffers of operands that writes the results of ops into a buffer for each op."""

    def __init__(self, cases: Sequence[Case], n_operands: int) -> None:
        self.operand = cases[0].operand
        inputs: list[Attribute] = [rt.BufferType(memory_type(self.operand))] * n_operands
        outputs = [rt.BufferType(memory_type(case.result)) for case in cases]
        self.function = func.FuncOp("f", ([*inputs, *outputs, i64], []), visibility=None)
        rt.EntryAttr().put(self.function)
        self.block = self.function.body.block
        self.inputs, self.outputs = self.block.args[:n_operands], self.block.args[n_operands:-1]
        self.module = ModuleOp([self.function])

    def run(self, cases: Sequence[Case], values: Sequence[tuple[Known, ...]]) -> list[list[Known]]:
        """The results of each op."""
        self.block.add_op(func.ReturnOp())
        self.module.verify()
        dtypes = {i32: np.int32, i64: np.int64, f64: np.float64}
        given = [np.array(column, dtypes[memory_type(self.operand)]) for column in zip(*values, strict=True)]  # type: ignore[index]
        results = [np.zeros(len(values), dtypes[memory_type(case.result)]) for case in cases]  # type: ignore[index]
        Compiled(self.module)(*given, *results, len(values))
        return [result.tolist() for result in results]


def put(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def store(block: Block, value: SSAValue, buffer: SSAValue, index: SSAValue) -> None:
    if value.type == i1:
        value = put(block, arith.ExtUIOp.create(operands=(value,), result_types=(i32,)))
    block.add_op(rt.StoreOp(value, buffer, index))


def compiled_of_unknown(cases: Sequence[Case], values: Sequence[tuple[Known, ...]]) -> list[list[Known]]:
    """What the processor computes: a loop over the operands."""
    program = Program(cases, len(values[0]))
    zero, one = (put(program.block, constant(number, i64)) for number in (0, 1))
    body = Block(arg_types=[i64])
    operands: list[SSAValue] = []
    for buffer in program.inputs:
        loaded = rt.LoadOp(buffer, body.args[0])
        operand = put(body, loaded)
        if program.operand == i1:
            operand = put(body, arith.TruncIOp.create(operands=(operand,), result_types=(i1,)))
        operands.append(operand)
    for case, output in zip(cases, program.outputs, strict=True):
        store(body, put(body, case.op(operands)), output, body.args[0])
    body.add_op(scf.YieldOp.create())
    program.block.add_op(scf.ForOp.create(operands=(zero, program.block.args[-1], one), regions=[Region(body)]))
    return program.run(cases, values)


def compiled_of_constants(cases: Sequence[Case], values: Sequence[tuple[Known, ...]]) -> list[list[Known]]:
    """What the emitter and LLVM make of constants."""
    program = Program(cases, len(values[0]))
    block = program.block
    for number, operands in enumerate(values):
        index = put(block, constant(number, i64))
        constants = [put(block, constant(value, program.operand)) for value in operands]
        for case, output in zip(cases, program.outputs, strict=True):
            store(block, put(block, case.op(constants)), output, index)
    return program.run(cases, values)


@cache
def reference(name: str) -> list[list[Known]]:
    return compiled_of_unknown(*GROUPS[name])


def folded(case: Case, operands: Sequence[Known]) -> Known | None:
    """What the pass makes of the op on constants."""
    function = func.FuncOp("f", ([], [case.result]))
    block = function.body.block
    values = [put(block, constant(value, case.operand)) for value in operands]
    block.add_op(func.ReturnOp(put(block, case.op(values))))
    fold.Fold().changes_function(function)
    end = block.last_op
    assert end is not None
    return known_constant(end.operands[0])


def built(case: Case, operands: Sequence[Known]) -> Known | None:
    """What the builder makes of the op on constants."""
    builder = Builder(Block())
    values = [builder.constant(value, case.operand) for value in operands]
    if case.op_class in CONVERSIONS:
        result = builder.converted(case.op_class, values[0], case.result)
    elif case.op_class is arith.NegfOp:
        result = builder.negf(values[0])
    else:
        methods: dict[type[Operation], Callable[[SSAValue, SSAValue], SSAValue]] = {
            arith.CmpiOp: partial(builder.cmpi, case.predicate),
            arith.CmpfOp: partial(builder.cmpf, case.predicate),
            arith.AddfOp: builder.addf,
            arith.MulfOp: builder.mulf,
        }
        result = methods.get(case.op_class, partial(builder.binary, case.op_class))(values[0], values[1])
    return builder.known.get(result)


def bits(value: Any) -> Any:
    """Reals by their bits, so that 0.0 is not -0.0."""
    return struct.pack("<d", value) if isinstance(value, float) else value


@pytest.mark.parametrize("name", GROUPS)
def test_constants(name: str) -> None:
    """All is told but NaN."""
    cases, values = GROUPS[name]
    emitted = compiled_of_constants(cases, values)
    for case, expected, found in zip(cases, reference(name), emitted, strict=True):
        for operands, value, literal in zip(values, expected, found, strict=True):
            if isinstance(value, float) and math.isnan(value):
                assert math.isnan(literal)
                told = None
            else:
                assert bits(literal) == bits(value), f"emitted: {case} of {operands}"
                told = value
            assert bits(folded(case, operands)) == bits(told), f"fold: {case} of {operands}"
            assert bits(built(case, operands)) == bits(told), f"builder: {case} of {operands}"


@pytest.mark.parametrize("name", [name for name, (_, values) in GROUPS.items() if len(values[0]) == 2])
def test_one_operand_is_known(name: str) -> None:
    """What is an operand, or a constant whatever the other operand, is so for each value of it."""
    cases, values = GROUPS[name]
    for case, results in zip(cases, reference(name), strict=True):
        width = width_of(case.operand)
        for (a, b), value in zip(values, results, strict=True):
            outcomes = {simplify(case.op_class, None, b, width), simplify(case.op_class, a, None, width)}
            if a == b and case.operand != f64 and not case.predicate:
                outcomes.add(IF_SAME.get(case.op_class))
            for outcome in outcomes - {None}:
                told = a if outcome == "left" else b if outcome == "right" else outcome
                if not (isinstance(told, float) and math.isnan(told)):
                    assert bits(told) == bits(value), f"{case} of {a}, {b} is {outcome}"


@pytest.mark.parametrize("name", [name for name, (_, values) in GROUPS.items() if len(values[0]) == 2])
def test_order_of_operands(name: str) -> None:
    """Ops are commutative, and predicates symmetric, just where the table says so."""
    cases, values = GROUPS[name]
    for case, results in zip(cases, reference(name), strict=True):
        table = dict(zip([tuple(map(bits, pair)) for pair in values], results, strict=True))
        same = all(
            bits(value) == bits(table[b, a]) or value != value for (a, b), value in table.items() if (b, a) in table
        )
        stated = case.predicate in SYMMETRIC_PREDICATES if case.predicate else case.op_class in COMMUTATIVE
        assert same if stated or name == "i1" and same else not same, f"{case}: {same}"


def test_every_op_is_swept() -> None:
    swept = {case.op_class for cases, _ in GROUPS.values() for case in cases}
    assert swept == {*INTEGER_OPS, *REAL_OPS, *CONVERSIONS, arith.CmpiOp, arith.CmpfOp, arith.NegfOp} - {
        arith.IndexCastOp
    }
