"""Sums that rows take of the first elements of what all have in common are summed up once, for all lengths.

    for n: s = 0                                     t[0] = 0
           for k in 0:m[n]: s += a[k]         →      for k in 0:max(m): t[k + 1] = t[k] + a[k]
           target += f(s, n)                         for n: target += f(t[m[n]], n)

So it is with effects of ordered categories, with hazards up to a time, and with all else that an inner loop carries
from a begin that all rows share to an end which data of the row say. That takes no longer, since a row with the last
end does as much, and a row is one that reads an element by an index of the data, for layouts.

Only where rows check nothing, so that there is all that is read ahead of them, and where they do not change it; of
elements of memory, so that the table is no larger than that.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE, Root, may_overlap, root, written_roots_within
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_rows import carry, new_loop
from ulam.passes.loops.op_writer import BlockEnd, OpWriter, integer
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES


class PrefixSums(TellingPass):
    """Sums up once, for all lengths, what rows of loops sum up to an end that data say."""

    name = "prefix-sums"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate, slices = evaluate_of(module, self.name), DataSlices()
        written: list[Operation] = []
        for nest in ops_of(evaluate.body.block):
            if type(nest) is scf.ForOp:
                for inner in _sums(nest, slices):
                    remark_on(self.name, inner, "its sums are computed once, for all ends that data say", done=True)
                    written += _write(nest, inner, slices)
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return bool(written)


def _sums(nest: scf.ForOp, slices: DataSlices) -> list[scf.ForOp]:
    """The loops of a nest that differ between rows by their end alone."""
    if not slices.has_data_control(nest):
        return []
    loops = [op for op in ops_within(nest.body.block) if type(op) is scf.ForOp]
    found = [loop for loop in loops if _is_sum(loop, nest, slices)]
    if not found or any(type(op) is rt.CheckOp and not rt.HarmlessAttr.marks(op) for op in ops_within(nest)):
        return []
    written = set(written_roots_within(nest))
    return [op for op in found if not any(may_overlap(source, target) for source in _read(op) for target in written)]


def _is_sum(loop: scf.ForOp, nest: scf.ForOp, slices: DataSlices) -> bool:
    """Whether a loop carries a real from where all rows begin to an end of the row, by what is the same in all rows."""
    if [result.type for result in loop.results] != [f64] or constant_integer(loop.step) != 1:
        return False
    if not is_inside(loop.ub, nest) or not slices.is_data(loop.ub) or not slices.is_data(loop.lb):
        return False
    if any(is_inside(value, nest) for value in (loop.lb, *loop.iter_args)):
        return False
    if not all(isinstance(op, rt.LoadOp | rt.ViewOp | scf.YieldOp) or type(op) in PURE for op in loop.body.block.ops):
        return False
    if not _goes_along_memory(loop):
        return False
    around = loop.parent_op()
    while around is not nest:
        if around is None or not slices.has_data_control(around):
            return False
        around = around.parent_op()
    return not any(is_inside(value, nest) for value in free_values_of_op(loop) if value is not loop.ub)


def _goes_along_memory(loop: scf.ForOp) -> bool:
    """Whether each iteration reads an element of its own."""
    loads = [op for op in loop.body.block.ops if isinstance(op, rt.LoadOp)]
    return any(load.index is loop.body.block.args[0] for load in loads)


def _read(loop: scf.ForOp) -> list[Root]:
    return [root(op.buffer) for op in loop.body.block.ops if isinstance(op, rt.LoadOp)]


def _write(nest: scf.ForOp, inner: scf.ForOp, slices: DataSlices) -> list[Operation]:
    """Lets rows read the sum of their length; what tells the longest, which stands ahead of the nest."""
    row = OpWriter(inner)
    length = integer(arith.MaxSIOp, row.put(integer(arith.SubiOp, inner.ub, inner.lb)), row.whole(0))
    row.before(length)
    before, write = nest.prev_op, OpWriter(nest)
    longest = _longest(nest, length, slices, write)
    found = list(ops_between(before, nest))
    table = _table(inner, longest, write)
    replace_uses(inner.results[0], row.put(rt.LoadOp(table, length.results[0], location=inner.location)))
    discard(inner)
    return found


def _longest(nest: scf.ForOp, length: Operation, slices: DataSlices, write: OpWriter) -> SSAValue:
    """The greatest length of all rows."""
    memory = write.put(rt.AllocOp(write.whole(1), rt.BufferType(i64), zero=True))

    def note(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
        assert copy.parent is not None
        inside = BlockEnd(copy.parent)
        zero = inside.put(constant(0, i64))
        longest = inside.put(integer(arith.MaxSIOp, inside.put(rt.LoadOp(memory, zero)), copy.results[0]))
        inside.put_op(rt.StoreOp(longest, memory, zero))

    write.before(slices.copy(nest, [length], note))
    return write.put(rt.LoadOp(memory, write.whole(0)))


def _table(inner: scf.ForOp, longest: SSAValue, write: OpWriter) -> SSAValue:
    """What the loop gives for each length up to the longest."""
    (start,), body = inner.iter_args, inner.body.block
    table = write.put(rt.AllocOp(write.put(integer(arith.AddiOp, longest, write.whole(1))), rt.BufferType(f64)))
    write.before(rt.StoreOp(start, table, write.whole(0), initial=True))
    end = write.put(integer(arith.AddiOp, inner.lb, longest))
    variable, inside = new_loop(write, inner.lb, end, [start])
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, (variable, inside.anchor.operands[0]), strict=True))
    for op in copies(ops_of(body)[:-1], values):
        inside.before(op)
    (given,) = terminator(body).operands
    total = values.get(given, given)
    first = inside.put(integer(arith.SubiOp, variable, inner.lb))
    place = inside.put(integer(arith.AddiOp, first, inside.whole(1)))
    inside.before(rt.StoreOp(total, table, place, initial=True))
    carry(inside, total)
    return table
