"""Loops that each iteration of another one repeats, sums and the like, go in front of it.

    for n: t += f(n, max over i of k[i])    →    m = max over i of k[i], if there is an n
                                                 for n: t += f(n, m)

Such a loop only computes values, of what the outer loop does not change, and is surely reached by the first iteration.
It then runs if that one does: under the condition that the outer loop has an iteration, its end is where it was, else
its begin. Loops in branches on data, which compute of data alone, leave these in the same way: `hoist-data`, which
moves what stands in nothing else, can take them further. So do the ends of other loops there.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer
from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import in_order, is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import (
    PURE,
    Root,
    changed_roots_within,
    is_speculatable,
    overlap,
    root,
)
from ulam.passes.loops.loop_slices import goes_on
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class InvariantLoops(TellingPass):
    """Moves loops that compute the same in each iteration of loops of `evaluate` in front of these."""

    name = "invariant-loops"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        ops = list(ops_within(evaluate_of(module, self.name)))
        around = {op.parent_op() for op in ops if type(op) is scf.ForOp}
        slices = DataSlices()
        changed = False
        for op in reversed(ops):  # inner ones first, so that what moves can move on
            if op not in around:
                continue
            if isinstance(op, scf.ForOp):
                changed = _hoist(op.body.block, op) or changed
            elif isinstance(op, scf.IfOp) and slices.is_data(op.cond):
                for region in op.regions:
                    changed = any([_hoist(block, op, slices) for block in region.blocks]) or changed
        return changed


def _hoist(block: Block, around: scf.ForOp | scf.IfOp, data: DataSlices | None = None) -> bool:
    """Moves what is alike in all iterations in front of a loop, or in front of a branch what is made of `data` alone;
    whether there was anything.
    """
    written: set[Root] | None = None
    changed = False
    is_reached = True
    for op in ops_of(block):
        if data is not None and isinstance(op, scf.ForOp):
            changed = any([_lift(bound, around) for bound in (op.lb, op.ub)]) or changed
        if is_reached and type(op) is scf.ForOp and op.results:
            if written is None:
                written = changed_roots_within(around)
            free = free_values_of_op(op)
            constants = [value.owner for value in free if isinstance(value.owner, arith.ConstantOp)]
            outside = not any(is_inside(value, around) for value in free if value.owner not in constants)
            if outside and _only_computes(op, written) and (data is None or _is_of(data, op, free)):
                _take_out(constants, around)
                _move(op, around, _reached(block, around))
                changed = True
                continue
        is_reached = is_reached and all(map(goes_on, ops_within(op)))
    return changed


def _lift(value: SSAValue, branch: Operation) -> bool:
    """Computes the bound of a loop in front of the branch that it stands in, if that is possible."""
    needed: dict[Operation, None] = {}
    pending = [value]
    while pending:
        value = pending.pop()
        if is_inside(value, branch):
            op = value.owner
            if not isinstance(op, Operation) or op.parent_op() is not branch or not is_speculatable(op):
                return False
            needed[op] = None
            pending += op.operands
    block = branch.parent
    assert block is not None
    for op in in_order(needed):
        op.detach()
        block.insert_op_before(op, branch)
    return bool(needed)


def _only_computes(loop: scf.ForOp, written: set[Root]) -> bool:
    """Whether all that a loop does is to compute values of what is not written in what is around it."""
    return all(
        type(op) in PURE
        or isinstance(op, scf.ForOp | scf.IfOp | scf.YieldOp)
        or (isinstance(op, rt.LoadOp) and not overlap({root(op.buffer)}, written))
        for op in ops_within(loop)
    )


def _is_of(data: DataSlices, loop: scf.ForOp, free: Iterable[SSAValue]) -> bool:
    return all(data.is_data_buffer(v) if isinstance(v.type, rt.BufferType) else data.is_data(v) for v in free)


def _reached(block: Block, around: scf.ForOp | scf.IfOp) -> list[Operation]:
    """Ops of which the last one tells whether a block is reached; none if it surely is."""
    if isinstance(around, scf.ForOp):
        lower, upper = constant_integer(around.lb), constant_integer(around.ub)
        if lower is not None and upper is not None and lower < upper:
            return []
        return [_integer_comparison("slt", around.lb, around.ub)]
    negated = block is not around.true_region.block
    expected = constant(not negated, i1)
    return [expected, _integer_comparison("eq", around.cond, expected.result)]


def _integer_comparison(predicate: str, a: SSAValue, b: SSAValue) -> arith.CmpiOp:
    return arith.CmpiOp.create(operands=(a, b), result_types=(i1,), properties={"predicate": CMPI[predicate]})


def _take_out(constants: list[arith.ConstantOp], around: Operation) -> None:
    """Puts constants that stand in an op in front of it."""
    assert around.parent is not None
    for op in dict.fromkeys(constants):
        if around.is_ancestor(op):
            op.detach()
            around.parent.insert_op_before(op, around)


def _move(inner: scf.ForOp, around: scf.ForOp | scf.IfOp, reached: list[Operation]) -> None:
    block = around.parent
    assert block is not None
    inner.detach()
    guard = list(reached)
    if reached:
        end = arith.SelectOp.create(
            operands=(reached[-1].results[0], inner.ub, inner.lb), result_types=(inner.ub.type,)
        )
        guard.append(end)
        inner.operands[1] = end.results[0]
    for op in (*guard, inner):
        block.insert_op_before(op, around)
    remark_on(InvariantLoops.name, inner, "computed once, in front of what repeats it", done=True)
