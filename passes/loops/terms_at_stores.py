"""What a loop adds to the target of each element of memory is added where the element is stored.

    for i: for j: s[(i - 1) * T + j] = f(i, j)          for i: for j: target += g(f(i, j))
    for k: target += g(s[k])                       →

The memory, of as many elements as the loops have iterations, is not needed then. `sums-of-elements` does the same in
the program for loops that provably reach all elements; here indices have been checked already, and what a program
computes, or what other passes have made of it, is seen.

One store, in every iteration, of rows one behind the other; nothing else reads the memory.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer
from ulam.passes.analysis.nesting import enclosing, is_before, is_inside
from ulam.passes.builder import WRAPS
from ulam.passes.loops.bound_forms import BoundForms
from ulam.passes.loops.filled_memory import FilledMemory, FilledMemoryPass
from ulam.passes.loops.index_forms import Form, known, plus, times
from ulam.passes.loops.row_memory import MemoryUses, always_runs, is_exact
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard

_TERMS = (ad.TargetAddOp, arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, arith.ConstantOp)
"""What terms may be computed with: all are NaN where the element is."""


class TermsAtStores(FilledMemoryPass):
    """Adds to the target where elements are stored, instead of in a loop over them."""

    name = "terms-at-stores"

    def move(self, memory: FilledMemory, bound: dict[int, SSAValue]) -> bool:
        store, load, filling, reading = memory.store, memory.load, memory.filling, memory.reading
        if load.parent is not reading.body.block or not _reads_all(reading, load, memory.alloc):
            return False
        if not is_before(filling, reading) or not always_runs(store, filling):
            return False
        if not _stores_all(filling, store, memory.alloc, memory.uses, bound):
            remark_on(self.name, reading, "the loops that fill the memory may not reach all elements", done=False)
            return False
        if memory.uses.fill is not None:
            _add_of_unfilled(memory.alloc.count, memory.uses.fill.value, filling, store)
        _add_at(store, load, reading)
        remark_on(self.name, store, "what is added of elements is added where they are made", done=True)
        return True


def _reads_all(loop: scf.ForOp, load: rt.LoadOp, alloc: rt.AllocOp) -> bool:
    """Whether a loop adds to the target what it computes of each element, and needs nothing else of the iteration."""
    variable = loop.body.block.args[0]
    if loop.results or constant_integer(loop.lb) != 0 or constant_integer(loop.step) != 1 or loop.ub is not alloc.count:
        return False
    if load.buffer is not alloc.res or load.index is not variable or sum(1 for _ in variable.uses) != 1:
        return False
    ops = [op for op in loop.body.block.ops if op is not load and op is not loop.body.block.last_op]
    if not all(isinstance(op, _TERMS) for op in ops):
        return False
    return any(isinstance(op, ad.TargetAddOp) for op in ops)


def _stores_all(
    loop: scf.ForOp, store: rt.StoreOp, alloc: rt.AllocOp, uses: MemoryUses, bound: dict[int, SSAValue]
) -> bool:
    """Whether a store reaches each element once: rows of a stride, one for each iteration, as many as have room."""
    forms = BoundForms(loop, narrow=True, bound=bound)
    access = next(access for access in uses.accesses if access.op is store)
    inner = enclosing(store, scf.ForOp)
    form = access.form(forms)
    if form is None or not isinstance(inner, scf.ForOp) or enclosing(inner, scf.ForOp) is not loop:
        return False
    if constant_integer(loop.step) != 1 or constant_integer(inner.step) != 1 or is_inside(inner.ub, loop):
        return False
    found, lower = forms.rows_in(form), constant_integer(loop.lb)
    if found is None or lower is None or known(found[0]) is not None:
        return False
    stride, row, column = found
    of_column = {m: c for m, c in column.items() if m}
    if of_column != {(forms.number(inner.body.block.args[0]),): 1} or lower + row != 0:
        return False
    if constant_integer(inner.lb) is None:
        return False
    least, most = forms.bounds(column)
    if least != {} or most is None or plus(most, {(): 1}) != stride:
        return False
    if forms.extended and not is_exact(forms, MemoryUses(uses.fill, [access], [loop]), [form]):
        return False
    return _size(alloc.count, forms) == times(stride, forms.span)


def _size(count: SSAValue, forms: BoundForms) -> Form | None:
    """The number of elements, as what it is the product of."""
    op = forms.made(count).owner
    if isinstance(op, arith.ExtSIOp):
        op = op.input.owner
    if not isinstance(op, arith.MuliOp):
        return None
    left, right = forms.of(op.operands[0]), forms.of(op.operands[1])
    return times(left, right) if left is not None and right is not None else None


def _add_at(store: rt.StoreOp, load: rt.LoadOp, reading: scf.ForOp) -> None:
    """Adds the terms of an element where it is stored, and takes away the loop over the elements."""
    assert store.parent is not None
    mapping: dict[SSAValue, SSAValue] = {load.res: store.value}
    terms = [op for op in reading.body.block.ops if op is not load and op is not reading.body.block.last_op]
    store.parent.insert_ops_before(copies(terms, mapping), store)
    discard(reading)


def _add_of_unfilled(count: SSAValue, left: SSAValue, loop: scf.ForOp, store: rt.StoreOp) -> None:
    """Adds what was left in memory of which nothing is filled: that has elements where both sizes are below 0."""
    inner = enclosing(store, scf.ForOp)
    assert isinstance(inner, scf.ForOp) and loop.parent is not None
    ops: list[Operation] = []

    def put(op: Operation) -> SSAValue:
        ops.append(op)
        return op.results[0]

    zero = put(constant(0, i64))
    steps: list[SSAValue] = []
    for one in (loop, inner):
        lower = constant_integer(one.lb)
        assert lower is not None
        span = (one.ub, put(constant(lower, i64)))
        difference = put(arith.SubiOp.create(operands=span, result_types=(i64,), properties=WRAPS))
        steps.append(put(arith.MaxSIOp.create(operands=(difference, zero), result_types=(i64,))))
    filled = put(arith.MuliOp.create(operands=steps, result_types=(i64,), properties=WRAPS))
    is_all = arith.CmpiOp.create(operands=(filled, count), result_types=(i1,), properties={"predicate": CMPI["eq"]})
    nothing = put(constant(0.0, f64))
    ops.append(is_all)
    rest = put(arith.SelectOp.create(operands=(is_all.result, nothing, left), result_types=(f64,)))
    ops.append(ad.TargetAddOp(rest))
    loop.parent.insert_ops_before(ops, loop)
