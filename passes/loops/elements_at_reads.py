"""Elements of memory that one loop fills are computed where a nest of other loops reads each of them once.

    for k: p[k] = f(x[k])                     for i: for j: target += g(f(x[M * j + i]), y[i, j])
    for i: for j: target += g(p[M * j + i], y[i, j])    →

A matrix that is computed as a whole, and read row by row: loops of other ranges, which cannot be fused. The rows of the
nest then read data alone, as if the program had computed the element there. Only where the nest does nothing but add to
the target, in which its reverse then stands, and no element is read twice.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.passes.analysis.nesting import enclosing, is_before, is_inside
from ulam.passes.loops.bound_forms import BoundForms
from ulam.passes.loops.effects import PURE, may_overlap, root, written_roots_within
from ulam.passes.loops.filled_memory import FilledMemory, FilledMemoryPass
from ulam.passes.loops.loop_fusion import CountedLoop
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.row_memory import MemoryAccess, is_never_negative
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses

_MOST = 40
"""Ops that compute an element."""


class ElementsAtReads(FilledMemoryPass):
    """Computes elements where a nest of loops reads them, instead of in a loop over all of them."""

    name = "elements-at-reads"

    def move(self, memory: FilledMemory, bound: dict[int, SSAValue]) -> bool:
        store, load, filling, reading = memory.store, memory.load, memory.filling, memory.reading
        if memory.uses.fill is not None:
            return False
        access = next(access for access in memory.uses.accesses if access.op is load)
        if not _fills(filling, store, memory.alloc) or not is_before(filling, reading):
            return False
        if not _is_over_rows(reading, load) or not _reads_once(reading, access, bound):
            return False
        needed = ops_needed(store.value, filling.body.block)
        if needed is None or not stay_until(needed, filling, reading):
            return False
        _write_at(load, access, needed, store, filling.body.block)
        discard(store)
        remark_on(self.name, reading, "elements that it alone reads are computed there", done=True)
        return True


def _fills(loop: scf.ForOp, store: rt.StoreOp, alloc: rt.AllocOp) -> bool:
    """Whether a loop stores an element in each iteration, at its number."""
    is_whole = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1
    return (
        is_whole
        and store.parent is loop.body.block
        and store.index is loop.body.block.args[0]
        and (store.buffer is alloc.res)
    )


def _is_over_rows(reading: scf.ForOp, load: rt.LoadOp) -> bool:
    """Whether a nest of two loops, around a load, adds to the target and carries no number from row to row."""
    inner = enclosing(load, scf.ForOp)
    if not isinstance(inner, scf.ForOp) or enclosing(inner, scf.ForOp) is not reading:
        return False
    return CountedLoop(reading).only_adds_to_target() and all(result.type != f64 for result in inner.results)


def _reads_once(reading: scf.ForOp, access: MemoryAccess, bound: dict[int, SSAValue]) -> bool:
    """Whether no two iterations of a nest of two loops read the same element."""
    inner = enclosing(access.op, scf.ForOp)
    assert isinstance(inner, scf.ForOp)
    forms = BoundForms(reading, narrow=True, bound=bound)
    element = access.form(forms)
    if element is None or forms.extended:
        return False
    variable = forms.number(inner.body.block.args[0])
    if sum(variable in monomial for monomial in element) != 1 or any(
        monomial.count(variable) > 1 or forms.variable in monomial for monomial in element if variable in monomial
    ):
        return False
    conditions = forms.apart([element])
    return conditions is not None and all(map(is_never_negative, conditions))


def ops_needed(value: SSAValue, body: Block) -> list[Operation] | None:
    """What computes an element in a loop, in order; None if that is more than values and loads."""
    found: set[Operation] = set()
    work = [value]
    while work:
        value = work.pop()
        op = value.owner
        if isinstance(op, Block):
            if op is body and value is not body.args[0]:
                return None
        elif op.parent is body and op not in found:
            if type(op) not in PURE and not isinstance(op, rt.LoadOp):
                return None
            found.add(op)
            work += op.operands
        elif op.parent is not body and is_inside(value, body.parent_op() or op):
            return None
    return [op for op in body.ops if op in found] if len(found) <= _MOST else None


def stay_until(needed: list[Operation], filling: scf.ForOp, reading: scf.ForOp) -> bool:
    """Whether what is loaded is not written before a nest is through."""
    loaded = [root(op.buffer) for op in needed if isinstance(op, rt.LoadOp)]
    op: Operation | None = filling
    while op is not None:
        if any(may_overlap(read, written) for written in written_roots_within(op) for read in loaded):
            return False
        op = op.next_op if op is not reading else None
    return True


def _write_at(load: rt.LoadOp, access: MemoryAccess, needed: list[Operation], store: rt.StoreOp, body: Block) -> None:
    """Puts copies of what computes an element in the place of its load."""
    assert load.parent is not None
    ops, index = _index_of(access)
    values: dict[SSAValue, SSAValue] = {body.args[0]: index}
    for op in needed:
        ops.append(cloned(op, values))  # which lets `values` know its result
    load.parent.insert_ops_before(ops, load)
    replace_uses(load.res, values.get(store.value, store.value))
    discard(load)


def _index_of(access: MemoryAccess) -> tuple[list[Operation], SSAValue]:
    """The number of an element in its memory, views included."""
    index, *offsets = reversed(access.path)
    ops: list[Operation] = []
    for offset in offsets:
        ops.append(total := integer(arith.AddiOp, offset, index))
        index = total.results[0]
    return ops, index
