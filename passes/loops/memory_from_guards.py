"""Memory that a branch gives is filled without the branch, where that only asks whether there are elements.

    m = if n > 0: a = alloc n; for k: for i in 0:n: a[i] += x[i, k] * b[g[i]]       m = alloc n
                  yield a                                                       →   for k: for i in 0:n: m[i] += ...
        else:     c = alloc n; for i in 0:n: c[i] = nan
                  yield c

A loop that a vector has become (`loop-vectorization`) looks at its arguments only if it has an iteration: hence the
branch. Without it what fills the vector is seen by passes that know loops of one block, layouts of rows among them.
Only arms that do nothing but to fill memory, in loops that have no iteration unless the branch is taken, or are made
so. Levels 3 and 4.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import is_same_integer, not_clamped
from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.bound_forms import BoundForms, bound_ints, is_asked_by
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class MemoryFromGuards(TellingPass):
    """Fills memory of `evaluate` outside of branches that only ask whether it has elements."""

    name = "memory-from-guards"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        branches = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.IfOp and _gives(op)]
        bound = bound_ints(module) if branches else {}
        return any([_take_out(branch, bound) for branch in branches])


def _gives(branch: scf.IfOp) -> bool:
    """Whether a branch gives memory, and nothing else."""
    return bool(branch.results) and all(result.type == rt.BufferType(f64) for result in branch.results)


def _take_out(branch: scf.IfOp, bound: dict[int, SSAValue]) -> bool:
    """Fills the memory of a branch in front of it, and takes the branch away; whether that may be."""
    taken, left = (region.block for region in branch.regions)
    given = list(zip(terminator(taken).operands, terminator(left).operands, strict=True))
    loops = [op for op in ops_of(taken) if isinstance(op, scf.ForOp)]
    if not loops or not (_only_fills(taken) and _only_fills(left)):
        return False
    forms = BoundForms(loops[0], narrow=True, bound=bound)
    if not all(_is_empty_unless(branch, one, other, forms) for one, other in given):
        return False
    remark_on(MemoryFromGuards.name, branch, "what it gives is filled outside of it", done=True)
    block = branch.parent
    assert block is not None
    for op in list(ops_of(taken))[:-1]:
        op.detach()
        block.insert_op_before(op, branch)
        if isinstance(op, scf.ForOp) and not _is_idle(op, branch.cond, bound):
            ends = (branch.cond, op.ub, op.lb)
            end = OpWriter(op).put(arith.SelectOp.create(operands=ends, result_types=(i64,)))
            op.operands = [op.lb, end, op.step]
    for result, (memory, _) in zip(branch.results, given, strict=True):
        replace_uses(result, memory)
    discard(branch)
    return True


def _is_empty_unless(branch: scf.IfOp, one: SSAValue, other: SSAValue, forms: BoundForms) -> bool:
    """Whether both arms give memory of theirs of the same size, and the branch asks whether that has elements."""
    first, second = one.owner, other.owner
    if not isinstance(first, rt.AllocOp) or not isinstance(second, rt.AllocOp):
        return False
    if not is_inside(one, branch) or not is_inside(other, branch):
        return False
    counts = [not_clamped(alloc.count) for alloc in (first, second)]
    return is_same_integer(*counts) and is_asked_by(branch.cond, (None, counts[0]), forms)


def _only_fills(arm: Block) -> bool:
    """Whether an arm does nothing but to take memory, and to compute what it stores in that or adds to it."""
    taken = {op.res for op in ops_of(arm) if isinstance(op, rt.AllocOp)}
    for op in list(ops_within(arm))[:-1]:
        if isinstance(op, rt.StoreOp | rt.FillOp | ad.AccumulateOp):
            if op.operands[1 if isinstance(op, rt.StoreOp) else 0] not in taken:
                return False
        elif isinstance(op, scf.ForOp):
            if op.results:
                return False
        elif isinstance(op, rt.LoadOp):
            if op.parent is arm:
                return False
        elif not (is_speculatable(op) or isinstance(op, rt.AllocOp | scf.YieldOp)):
            return False
    return True


def _is_idle(op: Operation, condition: SSAValue, bound: dict[int, SSAValue]) -> bool:
    """Whether an op only computes unless a condition holds."""
    if is_speculatable(op):
        return True
    if not isinstance(op, scf.ForOp) or op.results:
        return False
    if is_asked_by(condition, (op.lb, op.ub), BoundForms(op, narrow=True, bound=bound)):
        return True
    return all(_is_idle(inner, condition, bound) for inner in list(ops_of(op.body.block))[:-1])
