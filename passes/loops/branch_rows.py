"""Rows that a branch of data leaves out, as loops of one iteration or none.

    for n: if c[n]: target += f(x[n])    →    for n: for k in 0:c[n]: target += f(x[n])

So `coalesce-loops` sees a nest whose rows are iterations of an inner loop, in a copy beside the loop: rows that the
branch takes are listed when data are bound, and what is linear in them has reduced rows. Branches that evaluate
functions are left to what puts rows into parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1, i64

from ulam.dialects import ad
from ulam.dialects.scalar_ops import constant, known_constant
from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.rewriting import copies, discard, replace_uses


def has_branch_rows(nest: scf.ForOp, slices: DataSlices) -> bool:
    """Whether data decide which iterations of an innermost loop add to the target, and no function is evaluated."""
    return any(True for _ in _branches(nest, slices))


def with_branches_as_loops(nest: scf.ForOp, slices: DataSlices) -> scf.ForOp | None:
    """A copy of a nest, in front of it, in which such branches are loops; None if there are none."""
    if not has_branch_rows(nest, slices):
        return None
    (copy,) = copies([nest], {})
    assert isinstance(copy, scf.ForOp) and nest.parent is not None
    nest.parent.insert_op_before(copy, nest)
    for branch in list(_branches(copy, slices)):
        _write_loop(branch)
    return copy


def _branches(nest: scf.ForOp, slices: DataSlices) -> Iterator[scf.IfOp]:
    for op in ops_within(nest):
        if type(op) is not scf.IfOp or not isinstance(loop := op.parent_op(), scf.ForOp):
            continue
        is_innermost = not any(type(inner) is scf.ForOp for inner in ops_of(loop.body.block))
        if is_innermost and slices.is_data(op.cond) and _taken(op) is not None:
            yield op


def _taken(branch: scf.IfOp) -> int | None:
    """The arm that adds to the target, without a function, if the other one does nothing."""
    for arm, other in ((0, 1), (1, 0)):
        if not branch.regions[arm].blocks or not _does_nothing(branch, other):
            continue
        body = list(ops_of(branch.regions[arm].block))
        is_plain = not any(inner.regions or is_costly_function(inner) for inner in body)
        return arm if is_plain and any(type(inner) is ad.TargetAddOp for inner in body) else None
    return None


def _does_nothing(branch: scf.IfOp, arm: int) -> bool:
    """Whether an arm computes nothing: checks hold there."""
    if not branch.regions[arm].blocks:
        return True
    *ops, end = ops_of(branch.regions[arm].block)
    given = zip(branch.results, end.operands, strict=True)
    return all(result.type == i1 and known_constant(value) in (1, -1, True) for result, value in given) and all(
        type(op) is arith.ConstantOp for op in ops
    )


def _write_loop(branch: scf.IfOp) -> None:
    """Puts a loop in the place of a branch, whose results become flags that are set where a check fails."""
    write, arm = OpWriter(branch), _taken(branch)
    assert arm is not None
    condition = branch.cond if arm == 0 else write.put(arith.XOrIOp(branch.cond, write.put(constant(True, i1))))
    count, zero = write.put(arith.ExtUIOp(condition, i64)), write.whole(0)
    _, inside = new_loop(write, zero, count, [zero] * len(branch.results))
    loop = inside.anchor.parent_op()
    assert isinstance(loop, scf.ForOp)
    loop.location = branch.location
    *ops, end = ops_of(branch.regions[arm].block)
    for op in ops:
        op.detach()
        inside.before(op)
    flags = []
    for argument, held in zip(loop.body.block.args[1:], end.operands, strict=True):
        holds = inside.put(constant(True, i1))
        fails = inside.put(arith.ExtUIOp(inside.put(arith.XOrIOp(held, holds)), i64))
        flags.append(inside.put(arith.OrIOp(argument, fails)))
    terminator(loop.body.block).operands = flags
    for result, flag in zip(branch.results, loop.results, strict=True):
        replace_uses(result, write.compare_integers("eq", flag, zero))
    discard(branch)
