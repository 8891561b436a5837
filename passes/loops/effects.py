"""What the ops below containers do besides computing their results: one table, and the buffers that memory ops touch.

`arith`, `scf` and `func` by rows, `rt` and `ad` by the traits of their ops (see `dialects/effects.py`). An op class
that is not in the table may do anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from xdsl.dialects import arith, func, scf
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import MemoryEffect, NoMemoryEffect

from ulam.dialects import ad, rt
from ulam.dialects.effects import ANYTHING, Effect, LowEffects
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import operand_at, operand_tuple, ops_within
from ulam.library.kernels import KERNELS

_PURE_ARITH = (
    arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp,
    arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp,
    arith.CmpiOp, arith.CmpfOp, arith.SelectOp, arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp,
    arith.NegfOp, arith.MaximumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MinnumfOp, arith.BitcastOp,
    arith.IndexCastOp, arith.FPToSIOp, arith.FPToUIOp, arith.SIToFPOp, arith.UIToFPOp, arith.ExtFOp,
    arith.TruncFOp, arith.TruncIOp, arith.ExtSIOp, arith.ExtUIOp,
)  # fmt: skip
_DIVISIONS = (
    arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)  # fmt: skip


def _declared(cls: type[Operation]) -> Effect:
    """The effects that the trait of one of our op classes says."""
    match cls.get_traits_of_type(MemoryEffect):
        case [LowEffects() as trait]:
            return trait.effects
        case [NoMemoryEffect()]:
            return Effect.NONE
        case _:
            return ANYTHING


EFFECTS: dict[type[Operation], Effect] = {
    **dict.fromkeys(_PURE_ARITH, Effect.NONE),
    **dict.fromkeys(_DIVISIONS, Effect.TRAP),
    **dict.fromkeys((scf.ForOp, scf.IfOp, scf.WhileOp), Effect.NONE),  # and what their regions do
    **dict.fromkeys((scf.YieldOp, scf.ConditionOp, func.ReturnOp), Effect.CONTROL),
    func.CallOp: ANYTHING,
    func.FuncOp: Effect.ORDERED,
    **{cls: _declared(cls) for dialect in (rt.RT, ad.AD) for cls in dialect.operations},
}
"""The effects of an op class, regions aside."""

_WITH_REGIONS = frozenset((scf.ForOp, scf.IfOp, scf.WhileOp))
PURE = frozenset(cls for cls, found in EFFECTS.items() if found in (Effect.NONE, Effect.READ_BOUND)) - _WITH_REGIONS
"""Op classes that compute their results from their operands and bound data alone, whatever these are."""

DIVISIONS = frozenset(_DIVISIONS)
"""Op classes that do so too, but are undefined for some operands."""

ANYTHING_BITS = int(ANYTHING)
EFFECT_BITS: dict[type[Operation], int] = {cls: int(found) for cls, found in EFFECTS.items()}
"""The same as plain ints, whose operators are ten times as fast."""

_NO_CONTROL = ~int(Effect.CONTROL)
_WRITE = int(Effect.WRITE)


def effect(op: Operation) -> Effect:
    """The effects of `op` itself, without those of its regions."""
    return EFFECTS.get(type(op), ANYTHING)


def effect_within(op: Operation) -> Effect:
    """The effects of executing `op`, regions included."""
    found = EFFECTS.get(type(op), ANYTHING)
    if not op.regions:
        return found
    inside = 0
    for inner in ops_within(op):
        if inner is not op:
            inside |= EFFECT_BITS.get(type(inner), ANYTHING_BITS)
    return cast(Effect, found | inside & _NO_CONTROL)


def is_speculatable(op: Operation) -> bool:
    """Whether `op` computes its results from its operands and bound data alone, and may run where the program would not
    run it.
    """
    cls = type(op)
    return cls in PURE or (cls in DIVISIONS and _divides_safely(op))


def _divides_safely(op: Operation) -> bool:
    """Whether the divisor is a constant that no dividend traps on: neither 0 nor -1."""
    return constant_integer(op.operands[1]) not in (None, 0, -1)


def functions(op: Operation) -> Iterator[func.FuncOp]:
    """`op`, if it is a function with a body, else those directly inside of it: functions do not nest."""
    if isinstance(op, func.FuncOp):
        if op.body.blocks:
            yield op
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if inner.regions:
                    yield from functions(inner)


# ---------------------------------------------------------------- memory

UNKNOWN = "unknown"
"""The root of a buffer that may be any: loaded from memory, carried by a loop, argument of an internal function."""

BOUND = "bound"
"""The root of all memory that lives as long as the bound data."""

Root = SSAValue | str
"""What a buffer is a part of. Two different roots never overlap, except that UNKNOWN may overlap all."""


def viewed(buffer: SSAValue) -> SSAValue:
    """The buffer that `buffer` is a view of, through views of views; itself if it is not a view."""
    while type(buffer) is OpResult and type(owner := buffer.op) is rt.ViewOp:
        buffer, *_ = operand_tuple(owner)
    return buffer


def offsets(buffer: SSAValue) -> list[SSAValue]:
    """Where a view begins, in what it is a view of, and that in turn."""
    found: list[SSAValue] = []
    while isinstance(view := buffer.owner, rt.ViewOp):
        found.append(view.offset)
        buffer = view.buffer
    return found


def root(buffer: SSAValue) -> Root:
    """The allocation that `buffer` is a part of, as far as the IR tells."""
    buffer = viewed(buffer)
    owner = buffer.owner
    cls = type(owner)
    if cls is rt.AllocOp or cls is ad.PushOp or cls is rt.ConstantsOp:
        return buffer
    if cls is rt.BoundOp or cls is rt.AllocBoundOp:
        return BOUND
    if isinstance(owner, Block):
        function = owner.parent_op()
        if isinstance(function, func.FuncOp) and rt.EntryAttr.marks(function):
            return buffer  # arguments of entry points do not overlap
    return UNKNOWN


def may_overlap(first: Root, second: Root) -> bool:
    """Whether an element may belong to both."""
    return first is second or first is UNKNOWN or second is UNKNOWN


def overlap(first: set[Root], second: set[Root]) -> bool:
    """`may_overlap` for any of one and any of the other."""
    if not first or not second:
        return False
    return UNKNOWN in first or UNKNOWN in second or not first.isdisjoint(second)


_WRITTEN: dict[type[Operation], int] = {
    rt.StoreOp: 1,
    rt.CopyOp: 0,
    rt.FillOp: 0,
    ad.AccumulateOp: 0,
    ad.TakeOp: 0,
    ad.KeepOp: 0,
}
"""Memory op → which operand is the buffer that it writes."""


def written_buffer(op: Operation) -> SSAValue | None:
    """The buffer that `op` writes, if it is an op that writes one."""
    position = _WRITTEN.get(type(op))
    return None if position is None else operand_at(op, position)


def written_buffers(op: Operation) -> list[SSAValue]:
    """Buffers that an op (not its regions) writes, kernels included. Functions that are called only read theirs."""
    if (position := _WRITTEN.get(type(op))) is not None:
        return [operand_at(op, position)]
    return kernel_buffers(op)[1] if type(op) is rt.KernelOp else []


def draws(module: Operation) -> bool:
    """Whether lowered code draws random numbers."""
    kernels = (KERNELS.get(op.function.data) for op in ops_within(module) if type(op) is rt.KernelOp)
    return any(kernel is not None and kernel.effects == "rng" for kernel in kernels)


def kernel_buffers(op: rt.KernelOp) -> tuple[list[SSAValue], list[SSAValue]]:
    """Buffers of reals that a kernel reads, and buffers that it writes."""
    kernel = KERNELS.get(op.function.data)
    if kernel is None:
        return [], [a for a in op.arguments if isinstance(a.type, rt.BufferType)]
    inputs, outputs = [], []
    for parameter, argument in zip(kernel.parameters, op.arguments, strict=True):
        if parameter.kind in ("out", "kept"):
            outputs.append(argument)
        elif parameter.kind == "in" and parameter.element == "f64":
            inputs.append(argument)
    return inputs, outputs


def written_roots(op: Operation) -> set[Root]:
    """Roots of the buffers that `op` itself may write.

    C functions and called functions reach only the buffers that they are given; a buffer of buffers leads anywhere.
    Called functions may also write bound memory, while data are being bound.
    """
    cls = type(op)
    if (position := _WRITTEN.get(cls)) is not None:
        return {root(operand_at(op, position))}
    if cls is rt.KernelOp or cls is func.CallOp:
        roots: set[Root] = {BOUND} if cls is func.CallOp else set()
        for operand in operand_tuple(op):
            if type(operand.type) is rt.BufferType:
                roots.add(UNKNOWN if isinstance(operand.type.element, rt.BufferType) else root(operand))
        return roots
    if EFFECTS.get(cls, ANYTHING) & Effect.WRITE:
        return {UNKNOWN}
    return set()


def written_roots_within(op: Operation) -> set[Root]:
    """Roots of the buffers that executing `op` may write, regions included."""
    return _roots_within(op, written_roots)


def changed_roots(op: Operation) -> set[Root]:
    """Roots of the buffers that `op` itself may write: not what it reads alone, if it is a kernel."""
    written = written_roots(op)
    if type(op) is not rt.KernelOp:
        return written
    reads, writes = kernel_buffers(op)
    return written - ({root(buffer) for buffer in reads} - {root(buffer) for buffer in writes})


def changed_roots_within(op: Operation) -> set[Root]:
    """The same of executing `op`, regions included."""
    return _roots_within(op, changed_roots)


def _roots_within(op: Operation, roots_of: Callable[[Operation], set[Root]]) -> set[Root]:
    if not op.regions:
        return roots_of(op)
    roots: set[Root] = set()
    for inner in ops_within(op):
        if EFFECT_BITS.get(type(inner), ANYTHING_BITS) & _WRITE:
            roots |= roots_of(inner)
    return roots
