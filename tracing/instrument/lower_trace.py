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
    low.env[op.res] = low.builder.insert(trace.BlockOp(op.number, op.slots, recorder)).res


@handles(trace.ValueOp)
def value(low: Lowering, op: trace.ValueOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    low.builder.insert(trace.ValueOp(record, op.slot, low.scalar(op.value)))


@handles(trace.GuardOp)
def guard(low: Lowering, op: trace.GuardOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    low.builder.insert(trace.GuardOp(record, op.progress))


@handles(trace.DrawsOp)
def draws(low: Lowering, op: trace.DrawsOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    low.builder.insert(trace.DrawsOp(record, op.slot, recorder))


@handles(trace.ContainerOp)
def container(low: Lowering, op: trace.ContainerOp) -> None:
    """The contents are computed here: the recorder copies them."""
    record, value = low.env[op.record], low.own(low.value(op.value))
    assert isinstance(record, SSAValue) and isinstance(value, Container) and value.buffer is not None
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    lowered = (recorder, total(low.builder, value.dims), *value.dims)
    low.builder.insert(trace.ContainerOp(record, op.slot, value.buffer, op.most, lowered))


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
    low.builder.insert(trace.HookOp(op.number, operands))


@handles(trace.TimeOp)
def time(low: Lowering, op: trace.TimeOp) -> None:
    record = low.env[op.record]
    assert isinstance(record, SSAValue)
    low.builder.insert(trace.TimeOp(record, op.slot))


@handles(trace.DescendOp)
def descend(low: Lowering, op: trace.DescendOp) -> None:
    recorder = low.builder.bound(RECORDER_SLOT, BUFFER_I64)
    low.env[op.res] = low.builder.insert(trace.DescendOp(op.most, i32, recorder)).res


@handles(trace.AscendOp)
def ascend(low: Lowering, op: trace.AscendOp) -> None:
    low.builder.insert(trace.AscendOp(low.builder.bound(RECORDER_SLOT, BUFFER_I64)))


@handles(trace.SumOp)
def sum_(low: Lowering, op: trace.SumOp) -> None:
    low.env[op.res] = sum_of(low, low.container(op.container))
