"""The memory part of the emission table: the arena, bound data, buffers, and the `ad` ops on them.

Offsets into the context are those of `struct ulam_context` (runtime/c/context.h). A truth value is one byte in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.emit.alias import slot_of
from ulam.emit.errors import EmissionError
from ulam.emit.llvm_text import llvm_type
from ulam.emit.outlined_code import (
    ARENA_END,
    ERROR_SITE,
    ERROR_VALUES,
    allocation_function,
    declare_grow,
    failure_function,
)
from ulam.emit.scalar_ops import bits_of_literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ulam.emit.llvm_text import Emit, FunctionEmitter

ARENA_BARRIERS = frozenset({rt.MarkOp, rt.ReleaseOp, rt.KernelOp, func.CallOp, ad.PushOp})
"""Ops without regions that other allocations must not be moved across."""

ARENA_START = 56
STACK_LIMIT = 88
ARENA_ALIGNMENT = 64

STACK_BUFFER_BYTES = 512
"""Largest buffer that is put on the stack."""

BYTES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "ptr": 8}
TBAA_NAMES = {"double": "real", "i64": "int64", "i32": "int32", "i8": "byte", "i1": "byte", "ptr": "buffer"}


def element_type(buffer: SSAValue) -> str:
    """LLVM type of the elements of a buffer, as values (i1 for truth values)."""
    assert isinstance(buffer.type, rt.BufferType)
    return llvm_type(buffer.type.element)


def context_field(e: FunctionEmitter, offset: int) -> str:
    """The address of a field of the context."""
    if offset == 0:
        return "%context"
    address = e.temporary()
    e.line(f"{address} = getelementptr inbounds i8, ptr %context, i64 {offset}")
    return address


def element_address(e: FunctionEmitter, buffer: SSAValue, index: SSAValue, t: str) -> str:
    """The address of `buffer[index]`."""
    base, i = e.names[buffer], e.names[index]
    if i == "0":
        return base
    address = e.temporary()
    e.line(f"{address} = getelementptr inbounds {'i8' if t == 'i1' else t}, ptr {base}, i64 {i}")
    return address


def access(e: FunctionEmitter, buffer: SSAValue, t: str) -> str:
    """Alignment and alias metadata for an access to an element of `buffer`."""
    cached = e.access_suffixes.get(buffer)
    if cached is None:
        tag = TBAA_NAMES.get(t)
        tbaa = f", !tbaa !{e.module.metadata.element_type(tag)}" if tag is not None else ""
        cached = e.access_suffixes[buffer] = f", align {BYTES[t]}{tbaa}{e.scopes.suffix(buffer)}"
    return cached


def load(e: FunctionEmitter, result: str, address: str, t: str, suffix: str) -> None:
    """Reads a value of type `t` from memory."""
    if t == "i1":
        byte = e.temporary()
        e.line(f"{byte} = load i8, ptr {address}{suffix}")
        e.line(f"{result} = trunc i8 {byte} to i1")
    else:
        e.line(f"{result} = load {t}, ptr {address}{suffix}")


def store(e: FunctionEmitter, value: str, address: str, t: str, suffix: str) -> None:
    """Writes a value of type `t` to memory.

    Of a long row of stores the reals that are written in the program go as integers: LLVM looks through all constants
    of a function for each real.
    """
    if t == "double" and value[0] in "-0123456789" and e.module.is_long and not e.loop_depth:
        value, t = str(bits_of_literal(value)), "i64"
    if t == "i1":
        byte = e.temporary()
        e.line(f"{byte} = zext i1 {value} to i8")
        value, t = byte, "i8"
    e.line(f"store {t} {value}, ptr {address}{suffix}")


# arena


def byte_count(e: FunctionEmitter, count: str, t: str) -> str:
    """The size of `count` elements of type `t`."""
    if count[0] != "%":
        return str(int(count) * BYTES[t])
    if BYTES[t] == 1:
        return count
    total = e.temporary()
    e.line(f"{total} = mul i64 {count}, {BYTES[t]}")
    return total


def allocate(e: FunctionEmitter, result: str, size: str, site: int | None = None) -> None:
    """Takes `size` bytes, a multiple of the alignment, from the arena: a bump of the cursor, and a call where the
    chunk is full or the size absurd.

    The runtime leaves the entry point where there is no more memory; the call does not return then. `site`: what the
    error is about, noted before the call.
    """
    declare_grow(e.module)
    if e.exact_blocks:
        _note_site(e, site)
        e.line(f"{result} = call ptr @ulam_arena_grow(ptr %context, i64 {size})")
        _note_site(e, None if site is None else -1)
        return
    if e.module.is_long and not e.loop_depth:
        name = allocation_function(e.module)
        e.line(f"{result} = call ptr @{name}(ptr %context, i64 {size}, i64 {-1 if site is None else site})")
        return
    cursor, end, start_int, end_int, room, fits, grown = (e.temporary() for _ in range(7))
    bump, grow, done = (e.fresh(label) for label in ("bump", "grow", "allocated"))
    e.line(f"{cursor} = load ptr, ptr %context, align 8")
    e.line(f"{end} = load ptr, ptr {context_field(e, ARENA_END)}, align 8")
    e.line(f"{start_int} = ptrtoint ptr {cursor} to i64")
    e.line(f"{end_int} = ptrtoint ptr {end} to i64")
    e.line(f"{room} = sub i64 {end_int}, {start_int}")
    e.line(f"{fits} = icmp ule i64 {size}, {room}")
    e.line(f"br i1 {fits}, label %{bump}, label %{grow}{e.module.unlikely_else()}")
    e.begin_block(grow)
    _note_site(e, site)
    e.line(f"{grown} = call ptr @ulam_arena_grow(ptr %context, i64 {size})")
    _note_site(e, None if site is None else -1)
    e.line(f"br label %{done}")
    e.begin_block(bump)
    moved = e.temporary()
    e.line(f"{moved} = getelementptr inbounds i8, ptr {cursor}, i64 {size}")
    e.line(f"store ptr {moved}, ptr %context, align 8")
    e.line(f"br label %{done}")
    e.begin_block(done)
    e.line(f"{result} = phi ptr [ {cursor}, %{bump} ], [ {grown}, %{grow} ]")


def _note_site(e: FunctionEmitter, site: int | None) -> None:
    """What an error of the call that follows is about; -1: of nothing any more."""
    if site is not None:
        e.line(f"store i64 {site}, ptr {context_field(e, ERROR_SITE)}, align 8")


def fail_block(
    e: FunctionEmitter, hint: str, site: int, values: list[str], status: str, before: Sequence[str] = ()
) -> str:
    """The label of a new cold block that notes site and values (doubles, which the lines `before` make) and returns
    `status`.
    """
    label = e.fresh(hint)
    cold = e.cold
    cold += (f"{label}:", *before)
    if e.module.is_long:
        returned = e.temporary()
        numbers = "".join(f", double {value}" for value in values)
        name = failure_function(e.module, len(values))
        cold.append(f"  {returned} = call i32 @{name}(ptr %context, i64 {site}, i32 {status}{numbers})")
        cold.append(f"  ret i32 {returned}")
        return label
    address = e.temporary()
    cold.append(f"  {address} = getelementptr inbounds i8, ptr %context, i64 {ERROR_SITE}")
    cold.append(f"  store i64 {site}, ptr {address}, align 8")
    for j, value in enumerate(values):
        address = e.temporary()
        cold.append(f"  {address} = getelementptr inbounds i8, ptr %context, i64 {ERROR_VALUES + 8 * j}")
        cold.append(f"  store double {value}, ptr {address}, align 8")
    cold.append(f"  ret i32 {status}")
    return label


def _alloc(e: FunctionEmitter, op: Operation) -> None:
    """Small buffers of constant size go on the stack, where LLVM can keep their elements in registers. Others are
    taken from the arena, together with those that the same block allocates further down, in one step.
    """
    (count,) = e.operands(op)
    (result,) = op.results
    if result in e.names:
        return  # taken together with an earlier one
    if _on_stack(e, op, e.names[count], result):
        return
    group = [op] if e.exact_blocks else [op, *_allocations_below(e, op)]
    counts = [(e.names[e.operands(other)[0]], element_type(other.results[0])) for other in group]
    # each size once: programs of many outcomes have hundreds of buffers of the same
    size_of = {count: byte_count(e, *count) for count in dict.fromkeys(counts)}
    padded_of = {size: _padded(e, size) for size in dict.fromkeys(size_of.values())}
    sizes = [size_of[count] for count in counts]
    address = e.define(result) if len(group) == 1 else e.temporary()
    padded = [padded_of[size] for size in sizes]
    total = padded[0]
    offsets = ["0"]
    for size in padded[1:]:
        offsets.append(total)
        total = _sum(e, total, size)
    sites = [attribute for other in group if isinstance(attribute := other.properties.get("site"), IntegerAttr)]
    allocate(e, address, total, sites[0].value.data if sites else None)
    for other, offset, size in zip(group, offsets, sizes, strict=True):
        buffer = other.results[0]
        if len(group) > 1:
            e.line(f"{e.define(buffer)} = getelementptr inbounds i8, ptr {address}, i64 {offset}")
        if "zero" in other.properties:
            _clear_block(e, e.names[buffer], size)


def _clear_block(e: FunctionEmitter, address: str, size: str) -> None:
    """Clears a buffer of the arena. In loops most are short: then the first 64 bytes, which every block may write, are
    cleared by one store, and `memset` is called for the rest if there is any.
    """
    if size[0] != "%" or not e.loop_depth or e.exact_blocks:
        set_memory(e, address, size)
        return
    more, rest, left = e.temporary(), e.temporary(), e.temporary()
    long, done = e.fresh("clear"), e.fresh("cleared")
    e.line(f"store <8 x double> zeroinitializer, ptr {address}, align {ARENA_ALIGNMENT}")
    e.line(f"{more} = icmp ugt i64 {size}, {ARENA_ALIGNMENT}")
    e.line(f"br i1 {more}, label %{long}, label %{done}")
    e.begin_block(long)
    e.line(f"{rest} = getelementptr inbounds i8, ptr {address}, i64 {ARENA_ALIGNMENT}")
    e.line(f"{left} = sub i64 {size}, {ARENA_ALIGNMENT}")
    set_memory(e, rest, left)
    e.line(f"br label %{done}")
    e.begin_block(done)


def _sum(e: FunctionEmitter, a: str, b: str) -> str:
    if a[0] != "%" and b[0] != "%":
        return str(int(a) + int(b))
    total = e.temporary()
    e.line(f"{total} = add i64 {a}, {b}")
    return total


def _padded(e: FunctionEmitter, size: str) -> str:
    """`size`, rounded up to whole blocks of the arena."""
    if e.exact_blocks:
        return size
    if size[0] != "%":
        return str(-(-int(size) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT)
    raised, padded = e.temporary(), e.temporary()
    e.line(f"{raised} = add i64 {size}, {ARENA_ALIGNMENT - 1}")
    e.line(f"{padded} = and i64 {raised}, {-ARENA_ALIGNMENT}")
    return padded


def _on_stack(e: FunctionEmitter, op: Operation, count: str, result: SSAValue) -> bool:
    """Puts a buffer of an entry point on the stack, if it is small and its allocation runs at most once.

    Those marked `stack` always are. Where blocks are exact none is: they are taken when the function is entered.
    """
    if count[0] == "%" or (e.loop_depth and "stack" not in op.properties):
        return False
    if e.exact_blocks and not e.loop_depth:
        return False
    t = element_type(result)
    size = int(count) * BYTES[t]
    if "stack" not in op.properties and not 0 <= size <= min(STACK_BUFFER_BYTES, e.stack_bytes_left):
        return False
    e.stack_bytes_left -= max(size, 16)
    name = e.define(result)
    if e.exact_blocks:
        declare_grow(e.module)
        e.allocas.append(f"  {name} = call ptr @ulam_arena_grow(ptr %context, i64 {size})")
    else:
        align = ARENA_ALIGNMENT if size >= ARENA_ALIGNMENT else 16  # vectors that cross cache lines take twice as long
        e.allocas.append(f"  {name} = alloca [{count} x {'i8' if t == 'i1' else t}], align {align}")
    if "zero" in op.properties:
        set_memory(e, name, str(size))
    return True


def _allocations_below(e: FunctionEmitter, op: Operation) -> Iterator[Operation]:
    """Allocations further down in the block whose sizes are known here, up to what may give memory back or fail."""
    below = op.next_op
    while below is not None and type(below) not in ARENA_BARRIERS and not below.regions:
        if type(below) is rt.AllocOp and e.operands(below)[0] in e.names and below.results[0] not in e.names:
            yield below
        below = below.next_op


def set_memory(e: FunctionEmitter, address: str, size: str) -> None:
    """Clears `size` bytes."""
    e.module.declare("llvm.memset", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    e.line(f"call void @llvm.memset.p0.i64(ptr align 8 {address}, i8 0, i64 {size}, i1 false)")


def _mark(e: FunctionEmitter, op: Operation) -> None:
    e.line(f"{e.define(op.results[0])} = load ptr, ptr %context, align 8")


def _release(e: FunctionEmitter, op: Operation) -> None:
    """Moves the cursor back within its chunk, or asks C to give back chunks. Accesses do not move across: the bytes
    will belong to other roots."""
    (mark,) = e.operands(op)
    name = e.names[mark]
    start, end, above, below, inside = (e.temporary() for _ in range(5))
    near, far, done = (e.fresh(label) for label in ("release", "release_chunks", "released"))
    barrier = 'call void asm sideeffect "", "~{memory}"()'
    e.line(barrier)
    e.line(f"{start} = load ptr, ptr {context_field(e, ARENA_START)}, align 8")
    e.line(f"{end} = load ptr, ptr {context_field(e, ARENA_END)}, align 8")
    e.line(f"{above} = icmp uge ptr {name}, {start}")
    e.line(f"{below} = icmp ule ptr {name}, {end}")
    e.line(f"{inside} = and i1 {above}, {below}")
    e.line(f"br i1 {inside}, label %{near}, label %{far}{e.module.unlikely_else()}")
    e.begin_block(near)
    e.line(f"store ptr {name}, ptr %context, align 8")
    e.line(f"br label %{done}")
    e.begin_block(far)
    e.module.declare("ulam_arena_release", "declare void @ulam_arena_release(ptr, ptr) #2")
    e.line(f"call void @ulam_arena_release(ptr %context, ptr {name})")
    e.line(f"br label %{done}")
    e.begin_block(done)
    e.line(barrier)


# bound data


def _slot_address(e: FunctionEmitter, op: Operation, behind: int = 0) -> str:
    slot = slot_of(op) + behind
    if slot == 0:
        return "%bound"
    address = e.temporary()
    e.line(f"{address} = getelementptr inbounds i8, ptr %bound, i64 {8 * slot}")
    return address


def _bound(e: FunctionEmitter, op: Operation) -> None:
    (result,) = op.results
    address = _slot_address(e, op)
    constant = f", !invariant.load !{e.module.metadata.node('!{}')}" if e.bound_is_constant else ""
    load(e, e.define(result), address, e.type(result), f", align 8{constant}")


def _set_bound(e: FunctionEmitter, op: Operation) -> None:
    (value,) = e.operands(op)
    store(e, e.names[value], _slot_address(e, op), e.type(value), ", align 8")


def _layout(e: FunctionEmitter, op: Operation) -> None:
    """The outcome, and the figures behind it."""
    for n, value in enumerate(e.operands(op)):
        store(e, e.names[value], _slot_address(e, op, n), e.type(value), ", align 8")


def _alloc_bound(e: FunctionEmitter, op: Operation) -> None:
    (count,) = e.operands(op)
    (result,) = op.results
    size = byte_count(e, e.names[count], element_type(result))
    e.module.declare("ulam_alloc_bound", "declare ptr @ulam_alloc_bound(ptr, i64) #0")
    site = op.properties.get("site")
    _note_site(e, site.value.data if isinstance(site, IntegerAttr) else None)
    e.line(f"{e.define(result)} = call ptr @ulam_alloc_bound(ptr %context, i64 {size})")
    _note_site(e, -1 if isinstance(site, IntegerAttr) else None)


# buffers


def _load(e: FunctionEmitter, op: Operation) -> None:
    buffer, index = e.operands(op)
    (result,) = op.results
    t = e.type(result)
    address = element_address(e, buffer, index, t)
    if e.exact_blocks and rt.AheadAttr.marks(op):
        inside = e.temporary()
        e.module.declare("ulam_guard_ahead", "declare ptr @ulam_guard_ahead(ptr, i64) #0")
        e.line(f"{inside} = call ptr @ulam_guard_ahead(ptr {address}, i64 {BYTES[t]})")
        address = inside
    load(e, e.define(result), address, t, access(e, buffer, t))


def _store(e: FunctionEmitter, op: Operation) -> None:
    value, buffer, index = e.operands(op)
    _store_element(e, value, buffer, index)


def _store_element(e: FunctionEmitter, value: SSAValue, buffer: SSAValue, index: SSAValue) -> None:
    t = e.type(value)
    store(e, e.names[value], element_address(e, buffer, index, t), t, access(e, buffer, t))


def _view(e: FunctionEmitter, op: Operation) -> None:
    buffer, offset = e.operands(op)
    (result,) = op.results
    if e.names[offset] == "0":
        e.names[result] = e.names[buffer]
        return
    t = element_type(result)
    t = "i8" if t == "i1" else t
    e.line(f"{e.define(result)} = getelementptr inbounds {t}, ptr {e.names[buffer]}, i64 {e.names[offset]}")


def _copy(e: FunctionEmitter, op: Operation) -> None:
    destination, source, count = e.operands(op)
    t = element_type(destination)
    size = byte_count(e, e.names[count], t)
    e.module.declare("llvm.memcpy", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    align = f"align {BYTES[t]}"
    e.line(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {align} {e.names[destination]}, ptr {align} {e.names[source]}, "
        f"i64 {size}, i1 false)"
    )


def _fill(e: FunctionEmitter, op: Operation) -> None:
    """Zeros by `memset`, else a loop (LLVM widens it)."""
    buffer, value, count = e.operands(op)
    t, name = e.type(value), e.names[value]
    if name in ("0.0", "0", "false", "null"):
        set_memory(e, e.names[buffer], byte_count(e, e.names[count], t))
        return
    before = e.block
    head, body, done = (e.fresh(label) for label in ("fill", "fill.body", "filled"))
    i, more, step, address = (e.temporary() for _ in range(4))
    e.line(f"br label %{head}")
    e.begin_block(head)
    e.line(f"{i} = phi i64 [ 0, %{before} ], [ {step}, %{body} ]")
    e.line(f"{more} = icmp slt i64 {i}, {e.names[count]}")
    e.line(f"br i1 {more}, label %{body}, label %{done}")
    e.begin_block(body)
    e.line(f"{address} = getelementptr inbounds {'i8' if t == 'i1' else t}, ptr {e.names[buffer]}, i64 {i}")
    store(e, name, address, t, access(e, buffer, t))
    e.line(f"{step} = add nuw nsw i64 {i}, 1")
    e.line(f"br label %{head}")
    e.begin_block(done)


def _string(e: FunctionEmitter, op: Operation) -> None:
    value = op.properties["value"]
    assert isinstance(value, StringAttr)
    e.names[op.results[0]] = e.module.string(value.data)


def _constants(e: FunctionEmitter, op: Operation) -> None:
    values = op.properties["values"]
    assert isinstance(values, DenseArrayBase)
    e.names[op.results[0]] = e.module.constants(values, element_type(op.results[0]))


def _null(e: FunctionEmitter, op: Operation) -> None:
    e.names[op.results[0]] = "null"


def _is_null(e: FunctionEmitter, op: Operation) -> None:
    (buffer,) = e.operands(op)
    e.line(f"{e.define(op.results[0])} = icmp eq ptr {e.names[buffer]}, null")


# adjoints and kept values


def _accumulate(e: FunctionEmitter, op: Operation) -> None:
    buffer, index, value = e.operands(op)
    address = element_address(e, buffer, index, "double")
    suffix = access(e, buffer, "double")
    old, new = e.temporary(), e.temporary()
    flags = "reassoc contract " if e.contract else ""
    e.line(f"{old} = load double, ptr {address}{suffix}")
    e.line(f"{new} = fadd {flags}double {old}, {e.names[value]}")
    e.line(f"store double {new}, ptr {address}{suffix}")


def _take(e: FunctionEmitter, op: Operation) -> None:
    buffer, index = e.operands(op)
    address = element_address(e, buffer, index, "double")
    suffix = access(e, buffer, "double")
    e.line(f"{e.define(op.results[0])} = load double, ptr {address}{suffix}")
    e.line(f"store double 0.0, ptr {address}{suffix}")


def _keep(e: FunctionEmitter, op: Operation) -> None:
    buffer, index, value = e.operands(op)
    _store_element(e, value, buffer, index)


def _push(e: FunctionEmitter, op: Operation) -> None:
    """A record is the address of the one below, then the values, eight bytes each."""
    previous, *values = e.operands(op)
    name = e.define(op.results[0])
    allocate(e, name, _padded(e, str(8 * (1 + len(values)))))
    e.line(f"store ptr {e.names[previous]}, ptr {name}, align 8")
    for j, value in enumerate(values):
        address = e.temporary()
        e.line(f"{address} = getelementptr inbounds i8, ptr {name}, i64 {8 * (j + 1)}")
        store(e, e.names[value], address, e.type(value), ", align 8")


def _pop(e: FunctionEmitter, op: Operation) -> None:
    (record,) = e.operands(op)
    name = e.names[record]
    below, *values = op.results
    e.line(f"{e.define(below)} = load ptr, ptr {name}, align 8")
    for j, value in enumerate(values):
        address = e.temporary()
        e.line(f"{address} = getelementptr inbounds i8, ptr {name}, i64 {8 * (j + 1)}")
        load(e, e.define(value), address, e.type(value), ", align 8")


def _not_lowered(e: FunctionEmitter, op: Operation) -> None:
    raise EmissionError("this op must be gone before emission (passes reverse-mode, thread-target)", op)


def site_of(op: Operation) -> int:
    """The row of the site table an op that may fail refers to."""
    site = op.properties.get("site")
    if not isinstance(site, IntegerAttr):
        raise EmissionError("an op that may fail needs a 'site'", op)
    return site.value.data


def memory_table() -> dict[type[Operation], Emit]:
    """Op class → emitter, for memory, bound data, constants in memory and kept values."""
    return {
        rt.AllocOp: _alloc,
        rt.MarkOp: _mark,
        rt.ReleaseOp: _release,
        rt.BoundOp: _bound,
        rt.SetBoundOp: _set_bound,
        rt.LayoutOp: _layout,
        rt.AllocBoundOp: _alloc_bound,
        rt.LoadOp: _load,
        rt.StoreOp: _store,
        rt.ViewOp: _view,
        rt.CopyOp: _copy,
        rt.FillOp: _fill,
        rt.StringOp: _string,
        rt.ConstantsOp: _constants,
        rt.NullOp: _null,
        rt.IsNullOp: _is_null,
        ad.AccumulateOp: _accumulate,
        ad.TakeOp: _take,
        ad.KeepOp: _keep,
        ad.KeptOp: _load,
        ad.PushOp: _push,
        ad.PopOp: _pop,
        ad.TargetAddOp: _not_lowered,
        ad.TargetOp: _not_lowered,
        ad.GradientOp: _not_lowered,
    }
