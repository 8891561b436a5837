"""Lowers the `trace` ops of a traced function, beside the statements that they stand between."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ulam.dialects import trace
from ulam.passes.builder import BUFFER_I64
from ulam.passes.to_loops.lowering import Lowering, handles
from ulam.passes.to_loops.statements import sum_of
from ulam.passes.to_loops.values import Container, total

RECORDER_SLOT = 0
"""Slot of the bound table that has the address of the recorder."""


@handles(trace.BlockOp)
def block(low: Lowering, op: trace.BlockOp) -> None:
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    low.env[op.res] = low.builder.value(trace.BlockOp, (recorder,), trace.RECORD, dict(op.properties))


@handles(trace.ValueOp)
def value(low: Lowering, op: trace.ValueOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    low.builder.emit(trace.ValueOp, (record, low.scalar(op.value)), (), dict(op.properties))


@handles(trace.GuardOp)
def guard(low: Lowering, op: trace.GuardOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    low.builder.emit(trace.GuardOp, (record,), (), dict(op.properties))


@handles(trace.DrawsOp)
def draws(low: Lowering, op: trace.DrawsOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    low.builder.emit(trace.DrawsOp, (record, recorder), (), dict(op.properties))


@handles(trace.ContainerOp)
def container(low: Lowering, op: trace.ContainerOp) -> None:
    """The contents are computed here: the recorder copies them."""
    record, value = low.env[op.record], low.own(low.value(op.value))
    assert isinstance(record, SSAValue) and isinstance(value, Container) and value.buffer is not None
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    operands = (record, value.buffer, recorder, total(low.builder, value.dims), *value.dims)
    low.builder.emit(trace.ContainerOp, operands, (), dict(op.properties))


@handles(trace.HookOp)
def hook(low: Lowering, op: trace.HookOp) -> None:
    operands = [low.builder.bound(RECORDER_SLOT, BUFFER_I64)]
    for operand in op.values:
        value = low.value(operand)
        if isinstance(value, SSAValue):
            operands.append(low.scalar(operand))
            continue
        owned = low.own(value)
        assert isinstance(owned, Container) and owned.buffer is not None
        operands += [owned.buffer, *owned.dims]
    low.builder.emit(trace.HookOp, operands, (), dict(op.properties))


@handles(trace.TimeOp)
def time(low: Lowering, op: trace.TimeOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    low.builder.emit(trace.TimeOp, (record,), (), dict(op.properties))


@handles(trace.DescendOp)
def descend(low: Lowering, op: trace.DescendOp) -> None:
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    low.env[op.res] = low.builder.value(trace.DescendOp, (recorder,), i32, dict(op.properties))


@handles(trace.AscendOp)
def ascend(low: Lowering, op: trace.AscendOp) -> None:
    low.builder.emit(trace.AscendOp, (low.builder.bound(RECORDER_SLOT, BUFFER_I64),))


@handles(trace.SumOp)
def sum_(low: Lowering, op: trace.SumOp) -> None:
    low.env[op.res] = sum_of(low, low.container(op.container))
