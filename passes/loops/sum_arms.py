"""Sums in the branches of loops: the arms sum up on their own, and one addition follows.

    for n, s = s0:                                 for n, s = s0:
      b = if c: yield s + x  else: yield s    →      b = if c: yield x  else: yield 0
      yield b                                        yield s + b

LLVM takes the loop for a sum then, and widens it. Additions that may be re-associated only; behind reverse mode, whose
additions to adjoints are of this kind.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation, SSAValue

from ulam.dialects.scalar_ops import constant, may_reassociate
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.sum_chains import Chain, chain_of
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_REASSOCIATE = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}


class SumArms(TellingPass):
    """Takes sums that loops of `evaluate` carry out of branches."""

    name = "sum-arms"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return run_on(evaluate_of(module, self.name))


def run_on(function: func.FuncOp) -> bool:
    """Takes the sums of all loops of a function out of branches; whether there were any."""
    changed = False
    for loop in [op for op in ops_within(function) if type(op) is scf.ForOp]:
        for position, argument in enumerate(tuple(loop.body.block.args[1:])):
            if argument.type == f64 and (chain := chain_of(loop, position)) is not None and _may_move(chain):
                for link in list(chain):
                    if isinstance(link, scf.IfOp):
                        _leave(link, chain)
                        changed = True
    return changed


def _may_move(chain: Chain) -> bool:
    return all(not isinstance(link, arith.AddfOp) or may_reassociate(link) for link in chain) and any(
        isinstance(link, scf.IfOp) for link in chain
    )


def _leave(branch: scf.IfOp, chain: Chain) -> None:
    """The arms of a branch begin with zero; what came in is added behind it."""
    block = branch.parent
    assert block is not None
    position = chain[branch]
    before = _sum_before(branch, chain)
    for region in branch.regions:
        arm = region.block
        use = next(use for use in before.uses if use.operation.parent is arm)
        op = use.operation
        if isinstance(op, arith.AddfOp):
            replace_uses(op.result, op.operands[1 - use.index])
            discard(op)
            continue
        assert arm.first_op is not None
        zero = constant(0.0, f64, branch.location)
        arm.insert_op_before(zero, arm.first_op)
        op.operands[use.index] = zero.result
    result = branch.results[position]
    total = arith.AddfOp.create(
        operands=(before, before), result_types=(f64,), properties=_REASSOCIATE, location=branch.location
    )
    replace_uses(result, total.results[0])
    total.operands[1] = result
    block.insert_op_after(total, branch)
    chain[total] = 0
    remark_on(SumArms.name, branch, "its arms sum up on their own", done=True)


def _sum_before(branch: scf.IfOp, chain: Chain) -> SSAValue:
    """The sum that comes into a branch whose inner ones have left their arms."""
    arm = branch.true_region.block
    value = terminator(arm).operands[chain[branch]]
    while isinstance(op := value.owner, Operation) and op.parent is arm:
        if isinstance(op, scf.ForOp):
            value = op.iter_args[op.results.index(value)]  # type: ignore[arg-type]
        else:
            assert isinstance(op, arith.AddfOp)
            value = op.operands[chain[op]]
    return value
