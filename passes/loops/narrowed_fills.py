"""A loop that fills more of memory than others read fills that part alone, over their range.

    for i in 0:N: v[i] = f(i)                       for k in 0:N - 2: w[k] = f(k + 2)
    w = v from 2 on                           →
    for k in 0:N - 2: target += g(w[k])             for k in 0:N - 2: target += g(w[k])

So it is with means of autoregressions, of which the first ones are left out (`y[3:N] ~ normal(mu[3:N], s)`). The loops
may then become one (`private-rows`). Only where all else goes through one view, whose end is that of the memory.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.arith import AddiOp
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in
from ulam.passes.loops.bound_forms import BoundForms
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.index_forms import plus
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.rewriting import copies, discard

_IN_FILLS = (rt.LoadOp, rt.StoreOp, rt.ViewOp, scf.IfOp, scf.YieldOp)


def narrow_fill(alloc: rt.AllocOp, bound: dict[int, SSAValue]) -> bool:
    """Fills no more of memory than a view of it that all else goes through; whether more was filled."""
    found = _WideFill.of(alloc)
    if found is None or not found.ends_with_memory(bound):
        return False
    found.narrow()
    return True


@record
class _WideFill:
    """A loop that stores all elements of memory, and a view of it that other loops go along."""

    alloc: rt.AllocOp
    store: rt.StoreOp
    filling: scf.ForOp
    view: rt.ViewOp
    reader: scf.ForOp
    """One of the loops, which have the same range."""

    @staticmethod
    def of(alloc: rt.AllocOp) -> _WideFill | None:
        """That of an allocation, if nothing else has the memory."""
        users = [use.operation for use in alloc.res.uses]
        views = [op for op in users if isinstance(op, rt.ViewOp)]
        stores = [op for op in users if isinstance(op, rt.StoreOp)]
        if len(views) != 1 or len(stores) != 1 or not constant_integer(views[0].offset):
            return None
        if any(op not in (*views, *stores) and not isinstance(op, rt.FillOp) for op in users):
            return None
        (view,), (store,), block = views, stores, alloc.parent
        filling = store.parent_op()
        if block is None or not isinstance(filling, scf.ForOp) or {filling.parent, view.parent} != {block}:
            return None
        if store.index is not filling.body.block.args[0] or not _fills_all(filling, alloc):
            return None
        readers: list[scf.ForOp] = []
        for use in view.res.uses:
            loop = ancestor_in(use.operation, block)
            if not isinstance(loop, scf.ForOp) or not _goes_along(use.operation, loop):
                return None
            readers.append(loop)
        is_alike = all(loop.ub is readers[0].ub and filling.is_before_in_block(loop) for loop in readers)
        return _WideFill(alloc, store, filling, view, readers[0]) if readers and is_alike else None

    def ends_with_memory(self, bound: dict[int, SSAValue]) -> bool:
        """Whether the loops run to the last element, as what `bind` puts into slots says."""
        end = self.reader.ub.owner
        if not isinstance(end, rt.BoundOp) or end.parent is not self.alloc.parent:
            return False
        forms = BoundForms(self.reader, bound=bound)
        count, trips = forms.of(self.alloc.count), forms.of(not_clamped(forms.made(self.reader.ub)))
        offset = constant_integer(self.view.offset)
        return count is not None and offset is not None and trips == plus(count, {(): offset}, -1)

    def narrow(self) -> None:
        """Lets the loop run over the elements of the view."""
        write = OpWriter(self.filling)
        offset = write.whole(constant_integer(self.view.offset) or 0)
        self.view.detach()
        self.view.operands = [self.alloc.res, offset]
        write.before(self.view)
        variable, inside = new_loop(write, write.whole(0), self.reader.ub)
        values: dict[SSAValue, SSAValue] = {
            self.filling.body.block.args[0]: inside.put(integer(AddiOp, variable, offset))
        }
        for op in copies([op for op in ops_of(self.filling.body.block)[:-1] if op is not self.store], values):
            inside.before(op)
        value = values.get(self.store.value, self.store.value)
        inside.before(rt.StoreOp(value, self.view.res, variable, location=self.store.location))
        discard(self.filling)


def _fills_all(loop: scf.ForOp, alloc: rt.AllocOp) -> bool:
    """Whether all that a loop does is to store the elements of memory, each in an iteration."""
    is_whole = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1 and not loop.results
    if not is_whole or not_clamped(loop.ub) is not not_clamped(alloc.count):
        return False
    inside = list(ops_within(loop.body.block))
    if sum(isinstance(op, rt.StoreOp) for op in inside) != 1:
        return False
    return all(isinstance(op, _IN_FILLS) or type(op) in PURE for op in inside)


def _goes_along(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an op loads or stores the element of the iteration's number."""
    is_from_0 = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1
    return is_from_0 and isinstance(op, rt.LoadOp | rt.StoreOp) and op.index is loop.body.block.args[0]
