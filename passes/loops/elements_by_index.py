"""Elements of memory that one loop fills are computed where others read them by an index that is data.

    for n: eta[n] = a + b * x[n]                       for k: target += f(a + b * x[zero[k]])
    for k: target += f(eta[zero[k]])            →
    for k: target += g(eta[other[k]], ...)             for k: target += g(a + b * x[other[k]], ...)

So where a program lists the rows of a kind, as those with zeros or censored ones, and rows have a vector in common.
What such loops read is data alone then, and their rows may be equal (`unique-rows`). Only elements that cost little, as
sums of products and the exponential of one do, and memory that nothing else reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.costs import WIDENED
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.elements_at_reads import ops_needed, stay_until
from ulam.passes.loops.filled_buffers import is_behind, loops_around
from ulam.passes.loops.loop_fusion import CountedLoop
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_MOST = 12
"""Ops that compute an element."""
_MOST_TIMES = 2
"""Lists of rows for which elements are computed that evaluate a function."""


class ElementsByIndex(TellingPass):
    """Computes elements where loops read them by an index that is data."""

    name = "elements-by-index"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        slices = DataSlices()
        changed = False
        for alloc in [op for op in ops_within(evaluate_of(module, self.name)) if isinstance(op, rt.AllocOp)]:
            if alloc.res.type == rt.BufferType(f64) and _move(alloc, slices):
                changed = True
        return changed


def _move(alloc: rt.AllocOp, slices: DataSlices) -> bool:
    """Computes the elements of memory where they are read; whether that may be."""
    users = list(dict.fromkeys(use.operation for use in alloc.res.uses))
    loads = [op for op in users if isinstance(op, rt.LoadOp)]
    stores = [op for op in users if isinstance(op, rt.StoreOp) and op.buffer is alloc.res]
    if not loads or len(stores) != 1 or len(loads) + 1 != len(users):
        return False
    (store,) = stores
    filling = store.parent_op()
    if not isinstance(filling, scf.ForOp) or filling.parent is not alloc.parent or filling.results:
        return False
    if store.index is not filling.body.block.args[0] or not _only_fills(filling, store):
        return False
    if not all(_is_gathered(load, filling, slices) for load in loads):
        return False
    needed = ops_needed(store.value, filling.body.block)
    if needed is None or len(needed) > _MOST or not _are_cheap(needed, loads):
        return False
    if any(_is_parameter(op, filling, slices) for op in needed):
        return False
    for load in loads:
        reading = loops_around(load, alloc.parent)[0]
        if not is_behind(reading, filling) or not stay_until(needed, filling, reading):
            return False
    for load in loads:
        _write_at(load, needed, store, filling.body.block)
    discard(store)
    remark_on(ElementsByIndex.name, filling, "elements are computed where they are read by index", done=True)
    return True


def _are_cheap(needed: Sequence[Operation], loads: Sequence[rt.LoadOp]) -> bool:
    """Whether elements may be computed for each row that reads them: without functions that cost much, or with one that
    is computed for several rows at once, for two lists of rows, whose own functions cost as much. Two lists mostly
    have each element once; one index may have it many times.
    """
    costly = [op.function.data for op in needed if isinstance(op, rt.MathOp) and is_costly_function(op)]
    if not costly:
        return True
    lists = {_list_of(load) for load in loads}
    readers = [load.parent for load in loads]
    return (
        len(costly) == 1
        and costly[0] in WIDENED
        and len(loads) == len(lists) == _MOST_TIMES
        and all(reader is not None and any(map(is_costly_function, reader.ops)) for reader in readers)
    )


def _list_of(load: rt.LoadOp) -> SSAValue:
    """The list that has the index of an element."""
    op = load.index.owner
    while isinstance(op, Operation) and op.operands and not isinstance(op, rt.LoadOp):
        op = op.operands[0].owner
    return op.buffer if isinstance(op, rt.LoadOp) else load.index


def _is_parameter(op: Operation, filling: scf.ForOp, slices: DataSlices) -> bool:
    """Whether an op reads a parameter of the element: rows are equal only where the index is, which they had before."""
    if not isinstance(op, rt.LoadOp) or slices.is_data_buffer(op.buffer) or not is_inside(op.index, filling):
        return False
    return not _is_loaded(op.index, filling, slices)


def _only_fills(loop: scf.ForOp, store: rt.StoreOp) -> bool:
    others = (op for op in loop.body.block.ops if isinstance(op, rt.StoreOp) or op.regions)
    return constant_integer(loop.step) == 1 and list(others) == [store]


def _is_gathered(load: rt.LoadOp, filling: scf.ForOp, slices: DataSlices) -> bool:
    """Whether a loop that adds to the target reads an element that data of its row say."""
    around = loops_around(load, filling.parent)
    if len(around) != 1 or around[0] is filling or load.parent is not around[0].body.block:
        return False
    reading = around[0]
    return slices.has_data_control(reading) and _is_loaded(load.index, reading, slices) and _only_adds(reading)


def _is_loaded(index: SSAValue, loop: scf.ForOp, slices: DataSlices) -> bool:
    """Whether an index is read of the data of a row."""
    work = [index]
    while work:
        op = work.pop().owner
        if isinstance(op, Block) or op.parent is not loop.body.block:
            continue
        if isinstance(op, rt.LoadOp):
            return slices.is_data(index)
        work += op.operands
    return False


def _only_adds(loop: scf.ForOp) -> bool:
    return CountedLoop(loop).only_adds_to_target() and all(result.type != f64 for result in loop.results)


def _write_at(load: rt.LoadOp, needed: Sequence[Operation], store: rt.StoreOp, body: Block) -> None:
    """Puts copies of what computes an element in the place of its load."""
    values: dict[SSAValue, SSAValue] = {body.args[0]: load.index}
    assert load.parent is not None
    load.parent.insert_ops_before([cloned(op, values) for op in needed], load)
    replace_uses(load.res, values.get(store.value, store.value))
    discard(load)
