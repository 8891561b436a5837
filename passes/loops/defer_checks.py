"""Domain checks in loops of `evaluate` become a flag that is tested behind the loop, which then has no branch.

    for i { check(x[i] > 0); ... }   →   bad = 0; for i { bad |= !(x[i] > 0); ... }; check(bad == 0) "locate"

Only in loops that surely end, and have no effect that cannot be taken back, on nonsense as well: checks of indices and
sizes stay before the access. From here on every check says only that there is an error (`checks`).

With `branches`, checks in the arms of branches of such loops do so, too:

    if (c) { check(ok); ... }   →   fine = if (c) { ...; ok } else { true }; check(fine)

With `brief`, checks of long units say no more than that: without sites and values, which nobody reads unless the
program as it is written has no error there, all those of a function leave it at one place.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, i1, i64
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.attributes import number
from ulam.dialects.scalar_ops import CMPI, constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.library.statuses import LOCATE
from ulam.passes.analysis.nesting import terminator
from ulam.passes.idle_passes import MANY
from ulam.passes.loops.checks import is_deferrable
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import rebuild
from ulam.passes.settled import EVALUATE

_MAY_NOT_GO_ON = (scf.WhileOp, func.CallOp, rt.KernelOp, rt.SetBoundOp)


@record(frozen=True)
class DeferChecks(ModulePass):
    """Replaces checks in loops of `evaluate` by a flag; all checks leave open which error comes first.

    `brief`: in units of more than `above` ops they do not tell what they see either.
    """

    name = "defer-checks"
    changes_only = EVALUATE  # what it says of errors of other functions is no matter to those that settle

    branches: bool = False
    brief: bool = False
    above: int = MANY

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        defer_checks(evaluate_of(op, self.name), branches=self.branches)
        checks: list[rt.CheckOp] = []
        count = 0
        for inner in ops_within(op):
            count += 1
            if type(inner) is rt.CheckOp:
                checks.append(inner)
        _leave_location_open(checks)
        if self.brief and count > self.above:
            for check in checks:
                check.properties["site"] = number(-1)
                check.operands = (check.ok,)


def defer_checks(function: func.FuncOp, *, branches: bool = False) -> None:
    """Replaces checks in loops by a flag that is tested behind the loop; with `branches`, those in branches, too."""
    _defer_in(function.body.block, branches, in_loop=False)


def _defer_in(block: Block, branches: bool, *, in_loop: bool) -> None:
    """`in_loop`: the block runs in a loop that may go on behind a check."""
    op = block.first_op
    while op is not None:
        following = op.next_op
        if not op.regions:
            op = following
            continue
        may_go_on = isinstance(op, scf.ForOp) and _may_go_on(op)
        for region in op.regions:
            for inner in region.blocks:
                _defer_in(inner, branches, in_loop=may_go_on or (in_loop and isinstance(op, scf.IfOp)))
        if may_go_on:
            assert isinstance(op, scf.ForOp)
            checks = _deferrable(op.body.block)
            if checks:
                _defer(op, checks)
        elif branches and in_loop and isinstance(op, scf.IfOp):
            arms = [_deferrable(region.block) if region.blocks else [] for region in op.regions]
            if any(arms):
                _leave_branch(op, arms)
        op = following


def _deferrable(block: Block) -> list[rt.CheckOp]:
    return [op for op in block.ops if type(op) is rt.CheckOp and is_deferrable(op)]


def _leave_branch(branch: scf.IfOp, arms: list[list[rt.CheckOp]]) -> None:
    """Puts one check behind a branch in the place of those of its arms."""
    for region, checks in zip(branch.regions, arms, strict=True):
        if not region.blocks:
            region.add_block(Block([scf.YieldOp.create()]))
        fine: SSAValue | None = None
        for check in checks:
            if fine is None:
                fine = check.ok
            else:
                both = arith.AndIOp.create(operands=(fine, check.ok), result_types=(i1,))
                region.block.insert_op_before(both, check)
                fine = both.result
            check.detach()
            check.erase()
        end = terminator(region.block)
        if fine is None:
            true = constant(1, i1)
            region.block.insert_op_before(true, end)
            fine = true.result
        end.operands = [*end.operands, fine]
    new = rebuild(branch, list(branch.operands), [*(r.type for r in branch.results), i1])
    assert new.parent is not None
    new.parent.insert_op_after(rt.CheckOp(new.results[-1], -1, status=LOCATE, location=branch.location), new)


def _may_go_on(loop: scf.ForOp) -> bool:
    """Whether the loop surely ends, and is without effects, also on nonsense."""
    return not any(type(op) in _MAY_NOT_GO_ON for op in ops_within(loop))


def _defer(loop: scf.ForOp, checks: list[rt.CheckOp]) -> None:
    body = loop.body.block
    flag = body.insert_arg(i64, len(body.args))
    current: SSAValue = flag
    for check in checks:
        true = constant(1, i1)
        bad = arith.XOrIOp.create(operands=(check.ok, true.result), result_types=(i1,))
        wide = arith.ExtUIOp.create(operands=(bad.result,), result_types=(i64,))
        both = arith.OrIOp.create(operands=(current, wide.result), result_types=(i64,))
        body.insert_ops_before([true, bad, wide, both], check)
        check.detach()
        check.erase()
        current = both.result
    end = body.last_op
    assert end is not None and loop.parent is not None
    end.operands = [*end.operands, current]
    zero = constant(0, i64)
    loop.parent.insert_op_before(zero, loop)
    new = rebuild(loop, [*loop.operands, zero.result], [*(r.type for r in loop.results), i64])
    assert new.parent is not None
    none = arith.CmpiOp.create(
        operands=(new.results[-1], zero.result), result_types=(i1,), properties={"predicate": CMPI["eq"]}
    )
    new.parent.insert_ops_after([none, rt.CheckOp(none.result, -1, status=LOCATE)], new)


def _leave_location_open(checks: Iterable[rt.CheckOp]) -> None:
    """Every check leaves with LOCATE: the error that it sees may not be the first of the program."""
    status = number(LOCATE)
    for check in checks:
        if is_deferrable(check):
            rt.HarmlessAttr().put(check)
        check.properties["status"] = status
