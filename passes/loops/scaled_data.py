"""Memory that holds a multiple of data.

for i: S[i] = c * D[i]
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import BOUND, kernel_buffers, root
from ulam.passes.loops.filled_buffers import users
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.rewriting import discard, replace_uses


@record
class ScaledData:
    """Memory, the data in it, and what these are multiplied by, None by nothing; the store that fills it then."""

    memory: SSAValue
    data: SSAValue
    factor: SSAValue | None = None
    store: rt.StoreOp | None = None


def scaled_data(memory: SSAValue, n: SSAValue) -> ScaledData | None:
    """What memory of n rows and columns holds if that is data, or a multiple of them in its whole length."""
    if root(memory) is BOUND:
        return ScaledData(memory, memory)
    alloc = memory.owner
    if not isinstance(alloc, rt.AllocOp):
        return None
    stores = [op for op in users(alloc) if not isinstance(op, rt.LoadOp) and not _reads(op, memory)]
    if len(stores) != 1 or not isinstance(store := stores[0], rt.StoreOp) or store.buffer is not memory:
        return None
    loop, product = store.parent_op(), store.value.owner
    if not isinstance(loop, scf.ForOp) or loop.parent is not alloc.parent or not isinstance(product, arith.MulfOp):
        return None
    i = loop.body.block.args[0]
    goes_on = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1
    is_whole = is_same_integer(loop.ub, alloc.count) or _is_square(loop.ub, n)
    if not goes_on or not is_whole or store.index is not i:
        return None
    for factor, entry in (product.operands, reversed(product.operands)):
        load = entry.owner
        if is_inside(factor, loop) or not isinstance(load, rt.LoadOp) or load.index is not i:
            continue
        if root(load.buffer) is BOUND and not is_inside(load.buffer, loop):
            return ScaledData(memory, load.buffer, factor, store)
    return None


def _is_square(value: SSAValue, n: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.MuliOp) and all(is_same_integer(operand, n) for operand in op.operands)


def _reads(op: Operation, memory: SSAValue) -> bool:
    """Whether an op is a kernel that does not write to memory."""
    return isinstance(op, rt.KernelOp) and memory not in kernel_buffers(op)[1]


def read_scaled(found: ScaledData) -> None:
    """Lets all that reads such memory multiply data."""
    alloc = found.memory.owner
    if found.factor is None or not isinstance(alloc, rt.AllocOp):
        return
    for load in [op for op in users(alloc) if isinstance(op, rt.LoadOp) and op.buffer is found.memory]:
        write = OpWriter(load)
        value = write.real(arith.MulfOp, found.factor, write.put(rt.LoadOp(found.data, load.index)))
        replace_uses(load.res, value)
        discard(load)
