"""Loops leave branches that only ask whether they have an iteration.

    if n > 0:                                          s' = n > 0 ? s : 1
        check s > 0                                    if n > 0:
        target += n * g(s)                      →          check s > 0
        for i in 0:n: target += f(x[i], s)                 target += n * g(s)
                                                       for i in 0:n: target += f(x[i], s')

A statement of a vector, made of a loop (`loop-vectorization`), looks at arguments that the loop would not look at
without an iteration: hence the branch. Outside of it the loop can become one with that which fills the vector.

Loops over something else, as over elements that are checked, stay in it. What a loop reads is computed ahead of the
branch, of arguments that are harmless where it is not taken: nothing of what is computed then reaches a derivative.
Loops that fill memory leave branches in which no other loops are; what they load ahead, as a row does for all of its
columns, they load themselves. Levels 3 and 4.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer, predicate_of
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.free_values import free_values
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import is_speculatable, may_overlap, root, written_roots_within
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_MOST = 20
"""Ops that each iteration computes itself."""
_LEAST = {"sge": 0, "sgt": 1}
"""What an integer is at least that compares so with 0."""


class LoopsFromGuards(TellingPass):
    """Takes loops of `evaluate` out of branches that only ask whether they have an iteration."""

    name = "loops-from-guards"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        branches = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.IfOp]
        return any([_take_out(branch) for branch in branches])


def _take_out(branch: scf.IfOp) -> bool:
    """Takes the loops of a branch out of it; whether there was one."""
    ops = list(branch.true_region.block.ops)[:-1]
    loops = [op for op in ops if isinstance(op, scf.ForOp) and _only_runs_if(branch.cond, op)]
    if not loops or branch.results or (branch.false_region.blocks and len(list(branch.false_region.block.ops)) > 1):
        return False
    kept = [op for op in ops if op not in loops]
    fills = any(written_roots_within(loop) for loop in loops)
    may_stay = (rt.CheckOp, ad.TargetAddOp, rt.LoadOp if fills else scf.ForOp)
    if not all(isinstance(op, may_stay) or is_speculatable(op) for op in kept):
        return False
    if any(op.results or (not fills and written_roots_within(op)) for op in ops if isinstance(op, scf.ForOp)):
        return False
    needed: dict[Operation, None] = {}
    if not all(_collect(value, branch, needed, fills) for loop in loops for value in _read_by(loop)):
        return False
    inside = _depending_on_loads([op for op in kept if op in needed])
    if not all(_may_go_inside(loop, inside, loops) for loop in loops):
        return False
    remark_on(LoopsFromGuards.name, loops[0], "it stands outside of the branch that asks whether it runs", done=True)
    for loop in loops:
        _put_inside(inside, loop)
    _move(branch, [op for op in kept if op in needed and op not in inside], loops)
    return True


def _depending_on_loads(ops: list[Operation]) -> list[Operation]:
    """What of some ops, in order, loads from memory, or is computed of what others have loaded."""
    found: list[Operation] = []
    for op in ops:
        if isinstance(op, rt.LoadOp) or any(operand.owner in found for operand in op.operands):
            found.append(op)
    return found


def _may_go_inside(loop: scf.ForOp, ops: list[Operation], loops: list[scf.ForOp]) -> bool:
    """Whether a loop may compute ops itself: they are cheap, its range needs none of them, and no loop writes to what
    they read.
    """
    if len(ops) > _MOST or any(map(is_costly_function, ops)) or any(value.owner in ops for value in loop.operands):
        return False
    written = {memory for other in loops if ops for memory in written_roots_within(other)}
    return not any(
        may_overlap(root(op.buffer), memory) for op in ops if isinstance(op, rt.LoadOp) for memory in written
    )


def _put_inside(ops: list[Operation], loop: scf.ForOp) -> None:
    """Lets each iteration of a loop compute ops that stand ahead of it."""
    body = loop.body.block
    values: dict[SSAValue, SSAValue] = {}
    assert body.first_op is not None
    new = copies(ops, values)
    body.insert_ops_before(new, body.first_op)
    for old, value in values.items():
        for use in [use for use in old.uses if loop.is_ancestor(use.operation) and use.operation not in new]:
            use.operation.operands[use.index] = value


def _only_runs_if(condition: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a condition surely holds if a loop has an iteration."""
    compare, begin = condition.owner, constant_integer(loop.lb)
    if not isinstance(compare, arith.CmpiOp) or begin is None or (least := _LEAST.get(predicate_of(compare))) is None:
        return False
    number = constant_integer(compare.rhs)
    end, more = loop.ub, 0
    if isinstance(op := end.owner, arith.AddiOp | arith.SubiOp) and (offset := constant_integer(op.rhs)) is not None:
        end, more = op.lhs, offset if isinstance(op, arith.AddiOp) else -offset
    return number is not None and _narrow(end) is _narrow(compare.lhs) and begin + 1 - more >= number + least


def _narrow(value: SSAValue) -> SSAValue:
    return value.owner.input if isinstance(value.owner, arith.ExtSIOp) else value


def _read_by(loop: scf.ForOp) -> list[SSAValue]:
    return [*loop.operands, *free_values(loop.body)]


def _collect(value: SSAValue, branch: scf.IfOp, needed: dict[Operation, None], loads: bool) -> bool:
    """Adds the ops of a branch that a value is computed by; whether all of them may run ahead of it, or are `loads`."""
    op = value.owner
    if not is_inside(value, branch) or op in needed:
        return True
    if not isinstance(op, Operation) or not (is_speculatable(op) or (loads and isinstance(op, rt.LoadOp))):
        return False
    needed[op] = None
    return all(_collect(operand, branch, needed, loads) for operand in op.operands)


def _move(branch: scf.IfOp, ahead: list[Operation], loops: list[scf.ForOp]) -> None:
    """Moves ops in front of a branch, where they read what is harmless if that is not taken, and loops behind it."""
    block = branch.parent
    assert block is not None
    harmless: dict[SSAValue, SSAValue] = {}
    for op in ahead:
        for position, operand in enumerate(op.operands):
            if operand.type != f64 or is_inside(operand, branch) or isinstance(operand.owner, arith.ConstantOp):
                continue
            if (found := harmless.get(operand)) is None:
                one = constant(1.0, f64, op.location)
                choice = arith.SelectOp.create(
                    operands=(branch.cond, operand, one.result), result_types=(f64,), location=op.location
                )
                block.insert_ops_before([one, choice], branch)
                found = harmless[operand] = choice.result
            op.operands[position] = found
    for op in ahead:
        op.detach()
        block.insert_op_before(op, branch)
    for loop in reversed(loops):
        loop.detach()
        block.insert_op_after(loop, branch)
    if len(list(branch.true_region.block.ops)) == 1:
        discard(branch)
