"""Elements of memory that each row fills for itself, computed where the row reads them.

    for n: for k: for d: m[d] += B[d, k] * x[n, k]
           for d: b[d] = y[n, d] - m[d]              →   for n: for d: b[d] = y[n, d] - sum over k of B[d, k] * x[n, k]

Only what is linear in parameters with data of the row as coefficients, whose sums `form-layouts` then has whole.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in
from ulam.passes.loops.affine_rows import Nest
from ulam.passes.loops.copied_values import NotKnown, copied_value
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import UNKNOWN, root, written_roots_within
from ulam.passes.loops.filled_buffers import is_behind, loops_around, users
from ulam.passes.loops.linear_rows import carry, new_loop
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.rewriting import cloned, discard, replace_uses


@record
class _Writer:
    """An op that stores elements, or adds to them: an element in each iteration of `own`."""

    op: rt.StoreOp | ad.AccumulateOp
    around: list[scf.ForOp]
    own: scf.ForOp

    @property
    def value(self) -> SSAValue:
        """What it stores or adds."""
        return self.op.operands[2 if isinstance(self.op, ad.AccumulateOp) else 0]


def with_local_elements(loop: scf.ForOp, slices: DataSlices) -> scf.ForOp | None:
    """A copy of a loop over rows, in front of it, that computes elements where it reads them; None without any."""
    if not any(_writers(alloc, loop) for alloc in _local(loop)):
        return None
    rows = cloned(loop)
    OpWriter(loop).before(rows)
    changed = False
    for alloc in _local(rows):
        changed = _compute(alloc, rows, slices) or changed
    if changed:
        return rows
    rows.detach()
    rows.erase()
    return None


def local_element(
    alloc: rt.AllocOp, index: SSAValue, nest: scf.ForOp, known: dict[SSAValue, SSAValue], write: OpWriter
) -> SSAValue | None:
    """What an iteration of a loop in a nest has in an element of its own memory, written elsewhere; None if that cannot
    be told. `known`: the numbers of the iterations.
    """
    rows = alloc.parent_op()
    writers = _writers(alloc, rows) if isinstance(rows, scf.ForOp) else []
    return _element(writers, index, write, nest, known) if writers else None


def _local(loop: scf.ForOp) -> list[rt.AllocOp]:
    return [op for op in loop.body.block.ops if isinstance(op, rt.AllocOp)]


def _compute(alloc: rt.AllocOp, rows: scf.ForOp, slices: DataSlices) -> bool:
    """Lets the loads of memory compute what they read, if they can; what fills it then goes."""
    writers = _writers(alloc, rows)
    nest = Nest(rows, (rows.body.block.args[0],), slices)
    if not writers or any(nest.terms(writer.value) is None for writer in writers):
        return False
    loads = [op for op in users(alloc) if isinstance(op, rt.LoadOp)]
    for load in loads:
        try:
            replace_uses(load.res, _element(writers, load.index, OpWriter(load)))
        except NotKnown:
            return False
        discard(load)
    for op in [*dict.fromkeys(writer.around[0] for writer in writers), alloc]:
        discard(op)
    return True


def _writers(alloc: rt.AllocOp, rows: scf.ForOp) -> list[_Writer]:
    """What makes all elements of memory that is only loaded then, in order; none if something else is done."""
    block = rows.body.block
    found: list[_Writer] = []
    loads: list[rt.LoadOp] = []
    for op in users(alloc, views=True):
        if isinstance(op, rt.LoadOp):
            loads.append(op)
            continue
        writer = _writer(op, alloc, block)
        if writer is None:
            return []
        found.append(writer)
    nests = [writer.around[0] for writer in found]
    order = {op: n for n, op in enumerate(block.ops) if op in nests}
    found.sort(key=lambda writer: order[writer.around[0]])
    stores = [isinstance(writer.op, rt.StoreOp) for writer in found]
    if not found or any(stores[1:]) or not (stores[0] or alloc.zero is not None):
        return []
    if len(set(nests)) < len(nests) or not all(map(_does_nothing_else, nests)) or not _stays(nests, rows):
        return []
    last = found[-1].around[0]
    readers = [ancestor_in(load, block) for load in loads]
    return found if all(reader is not None and is_behind(reader, last) for reader in readers) else []


def _writer(op: Operation, alloc: rt.AllocOp, block: Block) -> _Writer | None:
    """An op that makes each element of memory in an iteration of a loop of its own."""
    if not isinstance(op, (rt.StoreOp, ad.AccumulateOp)) or op.buffer is not alloc.res:
        return None
    around = loops_around(op, block)
    index = op.operands[1 if isinstance(op, ad.AccumulateOp) else 2]
    own = next((loop for loop in around if index is loop.body.block.args[0]), None)
    if own is None or (isinstance(op, rt.StoreOp) and len(around) > 1):
        return None
    if any(constant_integer(loop.step) != 1 or loop.results for loop in around):
        return None
    is_whole = is_same_integer(own.ub, alloc.count) or not_clamped(own.ub) is not_clamped(alloc.count)
    return _Writer(op, around, own) if constant_integer(own.lb) == 0 and is_whole else None


def _does_nothing_else(nest: scf.ForOp) -> bool:
    """Whether one op of a nest writes."""
    writes = [op for op in ops_within(nest) if isinstance(op, (rt.StoreOp, ad.AccumulateOp))]
    others = (rt.KernelOp, rt.AllocOp, rt.FillOp, rt.CopyOp, rt.CheckOp, ad.TargetAddOp, scf.IfOp)
    return len(writes) == 1 and not any(isinstance(op, others) for op in ops_within(nest))


def _stays(nests: list[scf.ForOp], rows: scf.ForOp) -> bool:
    """Whether rows do not write to what nests read."""
    read = {root(op.buffer) for nest in nests for op in ops_within(nest) if isinstance(op, rt.LoadOp)}
    written = set(written_roots_within(rows))
    return UNKNOWN not in written and UNKNOWN not in read and written.isdisjoint(read)


def _element(
    writers: list[_Writer],
    index: SSAValue,
    write: OpWriter,
    nest: scf.ForOp | None = None,
    known: dict[SSAValue, SSAValue] | None = None,
) -> SSAValue:
    """The element of an index; elsewhere than in the nest that writes it, of iterations with the numbers `known`."""
    total: SSAValue | None = None
    for writer in writers:
        env: dict[SSAValue, SSAValue] = {**(known or {}), writer.own.body.block.args[0]: index}
        around = writer.around[0] if nest is None else nest
        left = [loop for loop in writer.around if loop is not writer.own]
        if not left:
            value = copied_value(writer.value, env, around, write)
            total = value if total is None else write.real(arith.AddfOp, total, value)
            continue
        insides = [write]
        sum_ = write.number(0.0) if total is None else total
        for loop in left:
            bounds = [copied_value(bound, env, around, insides[-1]) for bound in (loop.lb, loop.ub)]
            env[loop.body.block.args[0]], inside = new_loop(insides[-1], bounds[0], bounds[1], [sum_])
            sum_ = inside.anchor.operands[0]
            insides.append(inside)
        value = copied_value(writer.value, env, around, insides[-1])
        sum_ = insides[-1].real(arith.AddfOp, sum_, value, reassociate=True)
        for inside in reversed(insides[1:]):
            sum_ = carry(inside, sum_)
        total = sum_
    assert total is not None
    return total
