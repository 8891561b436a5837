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
Levels 3 and 4.
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
from ulam.passes.loops.effects import is_speculatable, written_roots_within
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

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
    if not all(isinstance(op, rt.CheckOp | ad.TargetAddOp | scf.ForOp) or is_speculatable(op) for op in kept):
        return False
    if not all(_only_adds(op) for op in ops if isinstance(op, scf.ForOp)):
        return False
    needed: dict[Operation, None] = {}
    if not all(_collect(value, branch, needed) for loop in loops for value in _read_by(loop)):
        return False
    remark_on(LoopsFromGuards.name, loops[0], "it stands outside of the branch that asks whether it runs", done=True)
    _move(branch, [op for op in kept if op in needed], loops)
    return True


def _only_runs_if(condition: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a condition surely holds if a loop has an iteration."""
    compare, begin = condition.owner, constant_integer(loop.lb)
    if not isinstance(compare, arith.CmpiOp) or begin is None or (least := _LEAST.get(predicate_of(compare))) is None:
        return False
    number = constant_integer(compare.rhs)
    end, more = loop.ub, 0
    if isinstance(op := end.owner, arith.AddiOp) and (offset := constant_integer(op.rhs)) is not None:
        end, more = op.lhs, offset
    return number is not None and _narrow(end) is _narrow(compare.lhs) and begin + 1 - more >= number + least


def _narrow(value: SSAValue) -> SSAValue:
    return value.owner.input if isinstance(value.owner, arith.ExtSIOp) else value


def _only_adds(loop: scf.ForOp) -> bool:
    """Whether a loop has no results and writes to no memory."""
    return not loop.results and not written_roots_within(loop)


def _read_by(loop: scf.ForOp) -> list[SSAValue]:
    return [*loop.operands, *free_values(loop.body)]


def _collect(value: SSAValue, branch: scf.IfOp, needed: dict[Operation, None]) -> bool:
    """Adds the ops of a branch that a value is computed by; whether all of them may run ahead of it."""
    op = value.owner
    if not is_inside(value, branch) or op in needed:
        return True
    if not isinstance(op, Operation) or not is_speculatable(op):
        return False
    needed[op] = None
    return all(_collect(operand, branch, needed) for operand in op.operands)


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
