"""A choice between logarithms in a loop becomes the logarithm of a choice.

    y == 1 ? log(p) : log1m(p)    →    q = 1 - p      log(y == 1 ? p : q) + (y == 1 ? 0 : (1 - q) - p)
    c ? f(a) : f(b)               →    f(c ? a : b)

A loop that is widened computes both arms; so it computes one, and one quotient for the derivative. What rounding takes
from 1 - p is added again: log1m keeps its digits where p is tiny. The choice is made of arguments, so an arm that is
not taken has no infinite slope.

Branches that do nothing but compute such results become choices.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside, terminator
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.value_ranges import ValueRanges
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses

_LOOPS = (scf.ForOp, scf.WhileOp)
_LOGS = ("log", "log1m")
_MOST = 12
"""Ops that arms may have besides."""


@record(frozen=True)
class LogsOfChoices(FunctionPass):
    """Makes logarithms of choices of choices between logarithms, of all functions or of the one that is named."""

    name = "logs-of-choices"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        choices = [op for op in ops_within(function) if isinstance(op, scf.IfOp | arith.SelectOp)]
        ranges = ValueRanges(function)
        for choice in choices:
            if enclosing(choice, _LOOPS) is not None and _rewrite(choice, ranges):
                remark(LogsOfChoices.name, choice.location, "choice", "one function of chosen arguments", done=True)
                changed = True
        return changed


class _Arms(NamedTuple):
    """What a result is in one case and in the other: functions of one argument."""

    one: rt.MathOp
    other: rt.MathOp


def _rewrite(choice: scf.IfOp | arith.SelectOp, ranges: ValueRanges) -> bool:
    if isinstance(choice, arith.SelectOp):
        arms = _arms(choice.lhs, choice.rhs)
        if arms is None or not all(_is_of(arm, choice) for arm in arms):
            return False
        replace_uses(choice.result, _function(OpWriter(choice), choice.cond, arms, ranges))
        discard(choice)
        return True
    return _rewrite_branch(choice, ranges)


def _rewrite_branch(branch: scf.IfOp, ranges: ValueRanges) -> bool:
    if not all(region.blocks and _computes_only(region.block) for region in branch.regions):
        return False
    ends = [terminator(region.block) for region in branch.regions]
    additions = [_added(region.block) for region in branch.regions]
    if (additions[0] is None) != (additions[1] is None):
        return False
    # results, and what is added to the target, in either case
    pairs: list[tuple[SSAValue, SSAValue]] = list(zip(ends[0].operands, ends[1].operands, strict=True))
    if additions[0] is not None and additions[1] is not None:
        pairs.append((additions[0].value, additions[1].value))
    functions = [_arms(*pair) for pair in pairs]
    if all(arms is None for arms in functions):
        return False
    for arms, pair in zip(functions, pairs, strict=True):
        if arms is not None:
            if not all(arm.parent_op() is branch and arm.res.has_one_use() for arm in arms):
                return False
        elif pair[0].type == f64 and any(is_inside(value, branch) for value in pair):
            return False
    _dissolve(branch, pairs, functions, additions[0], ranges)
    return True


def _added(block: Block) -> ad.TargetAddOp | None:
    return next((op for op in block.ops if isinstance(op, ad.TargetAddOp)), None)


def _dissolve(
    branch: scf.IfOp,
    pairs: list[tuple[SSAValue, SSAValue]],
    functions: list[_Arms | None],
    addition: ad.TargetAddOp | None,
    ranges: ValueRanges,
) -> None:
    """Computes both arms in front of the branch, chooses, and takes the branch away."""
    assert branch.parent is not None
    for region in branch.regions:
        for op in ops_of(region.block)[:-1]:
            op.detach()
            if not isinstance(op, ad.TargetAddOp):
                branch.parent.insert_op_before(op, branch)
    write = OpWriter(branch)
    chosen: list[SSAValue] = []
    for pair, arms in zip(pairs, functions, strict=True):
        if arms is None:
            chosen.append(_choice(write, branch.cond, *pair))
            continue
        chosen.append(_function(write, branch.cond, arms, ranges))
    for result, value in zip(branch.results, chosen, strict=False):
        replace_uses(result, value)
    if addition is not None:
        branch.parent.insert_op_before(ad.TargetAddOp(chosen[-1], location=addition.location), branch)
        addition.drop_all_references()
    discard(branch)


def _is_of(arm: rt.MathOp, choice: Operation) -> bool:
    """Whether nothing but a choice in the same block needs an arm."""
    return arm.parent is choice.parent and arm.res.has_one_use()


def _computes_only(block: Block) -> bool:
    """Whether an arm computes one function, little else, and adds to the target once at most."""
    others = [op for op in block.ops if not isinstance(op, scf.YieldOp)]
    pure = [op for op in others if not isinstance(op, ad.TargetAddOp)]
    costly = [op for op in pure if is_costly_function(op) or isinstance(op, arith.DivfOp)]
    return len(pure) <= _MOST and len(costly) == 1 and len(others) <= len(pure) + 1 and all(map(is_speculatable, pure))


def _arms(one: SSAValue, other: SSAValue) -> _Arms | None:
    first, second = one.owner, other.owner
    if not isinstance(first, rt.MathOp) or not isinstance(second, rt.MathOp) or first is second:
        return None
    if not all(len(op.operands) == 1 and is_costly_function(op) for op in (first, second)):
        return None
    names = first.function.data, second.function.data
    return _Arms(first, second) if names[0] == names[1] or set(names) == set(_LOGS) else None


def _function(write: OpWriter, condition: SSAValue, arms: _Arms, ranges: ValueRanges) -> SSAValue:
    """The function of the arguments that a condition chooses."""
    one, other = arms
    if one.function == other.function:
        argument = _choice(write, condition, one.operands[0], other.operands[0])
        return write.put(rt.MathOp(one.function, (argument,), location=one.location))
    is_log_first = one.function.data == "log"
    log, complement = (one, other) if is_log_first else (other, one)
    return _log(write, condition, log.operands[0], complement.operands[0], is_log_first, ranges)


def _log(
    write: OpWriter, condition: SSAValue, x: SSAValue, p: SSAValue, is_log_first: bool, ranges: ValueRanges
) -> SSAValue:
    """log(x) if the condition holds, or does not if not `is_log_first`, else log1m(p)."""
    one, zero = write.number(1.0), write.number(0.0)
    # 1 - p, but -0 for 0: as the slope of log1m(p), that of its logarithm is infinity there
    rest = write.put(arith.NegfOp(write.real(arith.SubfOp, p, one), arith.FastMathFlagsAttr("none")))
    lost = write.real(arith.SubfOp, write.real(arith.SubfOp, one, rest), p)
    if ranges.of(p)[0] < -1:  # what is lost would have to be divided by the rest, which may be large
        lost = write.where([write.compare("ogt", p, -1.0)], lost, 0.0)
    pairs = [(x, rest), (zero, lost)]
    chosen, correction = (_choice(write, condition, *(pair if is_log_first else reversed(pair))) for pair in pairs)
    log = write.put(rt.MathOp("log", (chosen,)))
    return write.real(arith.AddfOp, log, write.put(rt.MathOp("value_of", (correction,))))


def _choice(write: OpWriter, condition: SSAValue, one: SSAValue, other: SSAValue) -> SSAValue:
    return write.put(arith.SelectOp.create(operands=(condition, one, other), result_types=(one.type,)))
