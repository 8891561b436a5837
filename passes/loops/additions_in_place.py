"""Sums that a nest builds up in memory, column by column, are additions that may come in any order.

    for n: m[n] = 0                                          m = alloc zero N
    for k: for n: m[n] = m[n] + x[n + N * k] * b[k]    →     for k: for n: m[n] += x[n + N * k] * b[k]

As a product of a matrix and a vector has them: layouts of the data then see the sums (`linear-layouts`,
`design-products`), and the reverse needs nothing of what the memory held. Only memory that is 0 at first, to which
nothing else is stored, and nests whose rows are side by side: what one loop alone adds is left to `loop-fusion`.
Levels 3 and 4.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import UnitAttr, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, in_order
from ulam.passes.loops.filled_buffers import is_behind, loops_around
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard


@record(frozen=True)
class AdditionsInPlace(FunctionPass):
    """Lets nests add to memory instead of storing sums of what it holds and more."""

    name = "additions-in-place"

    def changes_function(self, function: func.FuncOp) -> bool:
        stores = [op for op in ops_within(function) if isinstance(op, rt.StoreOp) and _added(op) is not None]
        memory = dict.fromkeys(op.buffer.owner for op in stores)
        return any([_add_in_place(alloc) for alloc in memory if isinstance(alloc, rt.AllocOp)])


def _add_in_place(alloc: rt.AllocOp) -> bool:
    """Changes all that is stored in memory, if these are such sums; whether they are."""
    users = dict.fromkeys(use.operation for use in alloc.res.uses)
    loads = [op for op in users if isinstance(op, rt.LoadOp)]
    sums = {op: None for op in users if isinstance(op, rt.StoreOp) and _added(op) is not None}
    if alloc.res.type != rt.BufferType(f64) or not sums or not all(_is_of_nest(op, alloc) for op in sums):
        return False
    block = alloc.parent
    assert block is not None
    filling = {ancestor_in(op, block) for op in users if op not in sums and not isinstance(op, rt.LoadOp)}
    if not all(fill is not None and _sets_all(fill, alloc) is not None for fill in filling):
        return False
    fills = in_order(fill for fill in filling if fill is not None)
    last = fills[-1] if fills else None
    if (last is None and alloc.zero is None) or (last is not None and _sets_all(last, alloc) != 0):
        return False
    others = [ancestor_in(op, block) for op in (*loads, *sums)]
    if last is not None and not all(op is not None and is_behind(op, last) for op in others):
        return False
    for fill in fills:
        fill.detach()
        fill.erase()
    alloc.properties["zero"] = UnitAttr()
    for store in sums:
        _write(store)
    remark_on(AdditionsInPlace.name, alloc, "sums in memory are additions, in any order", done=True)
    return True


def _added(store: rt.StoreOp) -> tuple[rt.LoadOp, Operation] | None:
    """What a store reads of the element that it then sets, and the op that adds something to it, if it does no more."""
    op = store.value.owner
    if isinstance(op, rt.MathOp) and op.function.data == "fma":
        candidates: tuple[SSAValue, ...] = (op.arguments[2],)
    elif isinstance(op, arith.AddfOp):
        candidates = (op.lhs, op.rhs)
    else:
        return None
    for value in candidates:
        load = value.owner
        if (
            isinstance(load, rt.LoadOp)
            and load.buffer is store.buffer
            and load.index is store.index
            and load.parent is store.parent
            and value.has_one_use()
            and store.value.has_one_use()
        ):
            return load, op
    return None


def _is_of_nest(store: rt.StoreOp, alloc: rt.AllocOp) -> bool:
    """Whether a nest makes a sum of each element, in the order of these, and nothing in between touches the memory."""
    around = loops_around(store, alloc.parent)
    found = _added(store)
    if len(around) < 2 or store.index is not around[-1].body.block.args[0] or found is None:
        return False
    between = found[0].next_op
    while between is not None and between is not store:
        if between.regions or alloc.res in between.operands:
            return False
        between = between.next_op
    return between is store


def _sets_all(op: Operation, alloc: rt.AllocOp) -> float | None:
    """The number that an op sets all of memory to, NaN included; None if it does something else."""
    if isinstance(op, rt.FillOp):
        is_whole = op.destination is alloc.res and is_same_integer(op.count, alloc.count)
        return known_constant(op.value) if is_whole else None
    if not isinstance(op, scf.ForOp) or op.results or constant_integer(op.step) != 1 or constant_integer(op.lb) != 0:
        return None
    store, *rest = op.body.block.ops
    if len(rest) != 1 or not isinstance(store, rt.StoreOp) or not is_same_integer(op.ub, alloc.count):
        return None
    return known_constant(store.value) if store.index is op.body.block.args[0] else None


def _write(store: rt.StoreOp) -> None:
    """Adds in the place of a store."""
    found = _added(store)
    assert found is not None
    load, op = found
    write = OpWriter(store)
    if isinstance(op, rt.MathOp):
        value = write.real(arith.MulfOp, op.arguments[0], op.arguments[1])
    else:
        value = op.operands[1] if op.operands[0] is load.res else op.operands[0]
    write.before(ad.AccumulateOp(store.buffer, store.index, value, location=store.location))
    discard(store)
    discard(op)
    discard(load)
