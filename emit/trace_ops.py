"""The part of the emission table for traced functions: records are written inline (see runtime/c/trace.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation

from ulam.dialects import rt, trace

if TYPE_CHECKING:
    from ulam.emit.llvm_text import Emit, FunctionEmitter

HEADER_BYTES = 8
PROGRESS_OFFSET = 4
"""Of the number that says how far the block has got, within the header."""
DRAWN_OFFSET = 16
"""Of the address of the number of draws, within the recorder."""
DEPTH_OFFSET = 24
"""Of the number of calls that are entered, within the recorder."""
_HOOK_KINDS = {"i32": 1, "double": 2, "ptr": 3, "i64": 3}


def record_bytes(slots: int) -> int:
    """How long a record with so many slots is."""
    return HEADER_BYTES + 8 * slots


def _number(op: Operation, name: str) -> int:
    attribute = op.properties[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def _block(e: FunctionEmitter, op: Operation) -> None:
    """Takes the record from the recorder's chunk; the recorder makes room where that is full."""
    (recorder,) = (e.names[v] for v in e.operands(op))
    size = record_bytes(_number(op, "slots"))
    e.module.declare("ulam_trace_grow", "declare void @ulam_trace_grow(ptr, i64) #2")
    first, limit, end, fits, second, after, limit_address = (e.temporary() for _ in range(7))
    record = e.define(op.results[0])
    full, good, before = e.fresh("trace.full"), e.fresh("trace"), e.block
    e.line(f"{first} = load ptr, ptr {recorder}, align 8")
    e.line(f"{limit_address} = getelementptr i8, ptr {recorder}, i64 8")
    e.line(f"{limit} = load ptr, ptr {limit_address}, align 8")
    e.line(f"{end} = getelementptr i8, ptr {first}, i64 {size}")
    e.line(f"{fits} = icmp ule ptr {end}, {limit}")
    e.line(f"br i1 {fits}, label %{good}, label %{full}{e.module.unlikely_else()}")
    e.cold += [
        f"{full}:",
        f"  call void @ulam_trace_grow(ptr {recorder}, i64 {size})",
        f"  {second} = load ptr, ptr {recorder}, align 8",
        f"  br label %{good}",
    ]
    e.begin_block(good)
    e.line(f"{record} = phi ptr [ {first}, %{before} ], [ {second}, %{full} ]")
    e.line(f"{after} = getelementptr i8, ptr {record}, i64 {size}")
    e.line(f"store ptr {after}, ptr {recorder}, align 8")
    e.line(f"store i64 {_number(op, 'number')}, ptr {record}, align 8")


def _address(e: FunctionEmitter, record: str, offset: int) -> str:
    address = e.temporary()
    e.line(f"{address} = getelementptr i8, ptr {record}, i64 {offset}")
    return address


def _value(e: FunctionEmitter, op: Operation) -> None:
    record, value = e.operands(op)
    address = _address(e, e.names[record], record_bytes(_number(op, "slot")))
    e.line(f"store {e.type(value)} {e.names[value]}, ptr {address}, align 8")


def _container(e: FunctionEmitter, op: Operation) -> None:
    record, buffer, recorder, count, *sizes = e.operands(op)
    slot = _number(op, "slot")
    address = _address(e, e.names[record], record_bytes(slot))
    assert isinstance(buffer.type, rt.BufferType)
    element = buffer.type.element
    width = element.width.data // 8 if isinstance(element, IntegerType) else 8
    e.module.declare("ulam_trace_container", "declare void @ulam_trace_container(ptr, ptr, ptr, i64, i32, i64) #0")
    e.line(
        f"call void @ulam_trace_container(ptr {e.names[recorder]}, ptr {address}, ptr {e.names[buffer]}, "
        f"i64 {e.names[count]}, i32 {width}, i64 {_number(op, 'most')})"
    )
    for n, size in enumerate(sizes, slot + 1):
        e.line(f"store i64 {e.names[size]}, ptr {_address(e, e.names[record], record_bytes(n))}, align 8")


def _guard(e: FunctionEmitter, op: Operation) -> None:
    (record,) = e.operands(op)
    e.line(f"store i32 {_number(op, 'progress')}, ptr {_address(e, e.names[record], PROGRESS_OFFSET)}, align 4")


def _draws(e: FunctionEmitter, op: Operation) -> None:
    """The recorder knows where the count is."""
    record, recorder = (e.names[v] for v in e.operands(op))
    counter, count = e.temporary(), e.temporary()
    e.line(f"{counter} = load ptr, ptr {_address(e, recorder, DRAWN_OFFSET)}, align 8")
    e.line(f"{count} = load i64, ptr {counter}, align 8")
    e.line(f"store i64 {count}, ptr {_address(e, record, record_bytes(_number(op, 'slot')))}, align 8")


def _hook(e: FunctionEmitter, op: Operation) -> None:
    """A call with a variable number of arguments; `kinds` says which, two bits each (ULAM_HOOK_*)."""
    recorder, *values = e.operands(op)
    types = [e.type(v) for v in values]
    kinds = sum((_HOOK_KINDS[type_] << 2 * n) for n, type_ in enumerate(types))
    kinds -= (kinds >> 63) << 64  # as a number of 64 bits with a sign
    e.module.declare("ulam_trace_hook", "declare void @ulam_trace_hook(ptr, i64, i64, i64, ...) #2")
    given = "".join(f", {type_} {e.names[v]}" for type_, v in zip(types, values, strict=True))
    e.line(
        f"call void (ptr, i64, i64, i64, ...) @ulam_trace_hook(ptr {e.names[recorder]}, i64 {_number(op, 'number')}, "
        f"i64 {len(values)}, i64 {kinds}{given})"
    )


def _time(e: FunctionEmitter, op: Operation) -> None:
    (record,) = e.operands(op)
    e.module.declare("ulam_ticks", "declare i64 @ulam_ticks() #0")
    ticks = e.temporary()
    e.line(f"{ticks} = call i64 @ulam_ticks()")
    e.line(f"store i64 {ticks}, ptr {_address(e, e.names[record], record_bytes(_number(op, 'slot')))}, align 8")


def _descend(e: FunctionEmitter, op: Operation) -> None:
    (recorder,) = (e.names[v] for v in e.operands(op))
    address = _address(e, recorder, DEPTH_OFFSET)
    depth, fewer, one, deeper = (e.temporary() for _ in range(4))
    e.line(f"{depth} = load i64, ptr {address}, align 8")
    e.line(f"{fewer} = icmp slt i64 {depth}, {_number(op, 'most')}")
    e.line(f"{one} = zext i1 {fewer} to i64")
    e.line(f"{deeper} = add i64 {depth}, {one}")
    e.line(f"store i64 {deeper}, ptr {address}, align 8")
    e.line(f"{e.define(op.results[0])} = zext i1 {fewer} to i32")


def _ascend(e: FunctionEmitter, op: Operation) -> None:
    (recorder,) = (e.names[v] for v in e.operands(op))
    address = _address(e, recorder, DEPTH_OFFSET)
    depth, less = e.temporary(), e.temporary()
    e.line(f"{depth} = load i64, ptr {address}, align 8")
    e.line(f"{less} = sub i64 {depth}, 1")
    e.line(f"store i64 {less}, ptr {address}, align 8")


def trace_table() -> dict[type[Operation], Emit]:
    """Op class → emitter, for traced functions."""
    return {
        trace.BlockOp: _block,
        trace.ValueOp: _value,
        trace.ContainerOp: _container,
        trace.GuardOp: _guard,
        trace.DrawsOp: _draws,
        trace.HookOp: _hook,
        trace.TimeOp: _time,
        trace.DescendOp: _descend,
        trace.AscendOp: _ascend,
    }
