"""Sums that only the target gets become additions to the target, where their terms are computed.

    s = 0; for n: s = s + f(n)      target += -s      →      for n: target += -f(n)      target += -0

    v = c ? f : g                   target += v       →      if (c): target += f   else: target += g

Whether a program adds to the target, to a variable, or calls a function that does, is then the same: reverse mode has
such a loop or branch in one piece (the target's adjoint is known), and what adds logarithms multiplies
(`logs_to_products`). Through nests of loops and branches, negations, sums and factors that are constants. What is read
in another way, as compensated sums are, stays; so does the number that a sum begins with.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, known_constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import enclosing, terminator
from ulam.passes.loops.sum_chains import chain_of, only_use
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_ROUNDS = 4
"""How often branches and loops are looked at anew: each may show more of the other."""
_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}


class SumsToTarget(TellingPass):
    """Adds to the target what loops and branches of `evaluate` compute for it alone."""

    name = "sums-to-target"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return run_on(evaluate_of(module, self.name))


def run_on(function: func.FuncOp) -> bool:
    """Adds to the target inside of loops and branches; whether there was anything. Nothing where the target is read."""
    ops = list(ops_within(function))
    if any(isinstance(op, ad.TargetOp) for op in ops):
        return False
    changed = False
    for _ in range(_ROUNDS):
        again = _leave_branches(function)
        loops = [op for op in ops_within(function) if type(op) is scf.ForOp]
        for loop in loops:
            for position, argument in enumerate(tuple(loop.body.block.args[1:])):
                if argument.type == f64:
                    again = _sum(loop, position) or again
        if not again:
            break
        changed = True
        for loop in reversed(loops):  # inner ones first
            _forget_unchanged(loop)
    return changed


# ---------------------------------------------------------------- branches


def _leave_branches(function: func.FuncOp) -> bool:
    """Adds the results of branches to the target in their arms; whether there were any."""
    changed = False
    pending = [op for op in ops_within(function) if type(op) is ad.TargetAddOp]
    while pending:
        addition = pending.pop()
        if not addition.value.has_one_use():
            continue
        op = addition.value.owner
        if not isinstance(op, Operation) or op.parent is not addition.parent:
            continue
        if isinstance(op, arith.AddfOp) and _has_branch(op):
            pending += _split(addition, (op.lhs, op.rhs))
        elif isinstance(op, arith.NegfOp) and _is_branch(op.operand, op):
            pending += _into_arms(_without_sign(addition, op), -1.0)
            changed = True
        elif _is_branch(addition.value, op):
            pending += _into_arms(addition, 1.0)
            changed = True
    return changed


def _has_branch(op: arith.AddfOp) -> bool:
    """Whether a summand is what a branch yields for this sum alone."""
    for value in op.operands:
        owner = value.owner
        if _is_branch(value, op):
            return True
        if isinstance(owner, arith.AddfOp) and owner.parent is op.parent and value.has_one_use() and _has_branch(owner):
            return True
    return False


def _is_branch(value: SSAValue, user: Operation) -> bool:
    """Whether a branch beside the only user of a value chooses it, and does more than to choose: one addition behind a
    choice is cheaper than two in its arms. Outside of loops what counts are those in its arms.
    """
    op = value.owner
    if not isinstance(op, scf.IfOp) or (op is not user and op.parent is not user.parent) or not value.has_one_use():
        return False
    does_more = scf.ForOp if enclosing(op, scf.ForOp) is None else rt.MathOp | scf.ForOp
    return any(isinstance(inner, does_more) for inner in ops_within(op))


def _split(addition: ad.TargetAddOp, summands: tuple[SSAValue, ...]) -> list[ad.TargetAddOp]:
    """Adds summands one by one."""
    block = addition.parent
    assert block is not None
    total = addition.value.owner
    parts = [ad.TargetAddOp(value, location=addition.location) for value in summands]
    block.insert_ops_before(parts, addition)
    discard(addition)
    assert isinstance(total, Operation)
    discard(total)
    return parts


def _without_sign(addition: ad.TargetAddOp, sign: arith.NegfOp) -> ad.TargetAddOp:
    addition.operands[0] = sign.operand
    discard(sign)
    return addition


def _into_arms(addition: ad.TargetAddOp, sign: float) -> list[ad.TargetAddOp]:
    """Adds what the arms of a branch yield there; the branch yields a zero that nobody reads."""
    branch = addition.value.owner
    assert isinstance(branch, scf.IfOp)
    position = branch.results.index(addition.value)  # type: ignore[arg-type]
    found: list[ad.TargetAddOp] = []
    for region in branch.regions:
        end = terminator(region.block)
        zero = constant(0.0, f64, addition.location)
        region.block.insert_op_before(zero, end)
        found.append(_add(end, end.operands[position], sign, addition))
        end.operands[position] = zero.result
    remark_on(SumsToTarget.name, branch, "what it chooses is added to the target in its arms", done=True)
    discard(addition)
    return found


# ---------------------------------------------------------------- loops


def _sum(loop: scf.ForOp, position: int) -> bool:
    chain = chain_of(loop, position)
    if chain is None or not any(isinstance(link, arith.AddfOp) for link in chain):
        return False
    scale = _scale(loop, position)
    if scale is None:
        return False
    for link in chain:
        if isinstance(link, arith.AddfOp):
            term = link.operands[1 - chain[link]]
            _add(link, term, scale, link)
            replace_uses(link.result, link.operands[chain[link]])
            discard(link)
        else:  # both arms yield what came in
            replace_uses(link.results[chain[link]], terminator(link.true_region.block).operands[chain[link]])
    remark_on(SumsToTarget.name, loop, "the terms of a sum are added to the target one by one", done=True)
    return True


def _forget_unchanged(loop: scf.ForOp) -> None:
    """What a loop carries but does not change is what it began with."""
    body = loop.body.block
    for argument, last, result in zip(body.args[1:], terminator(body).operands, loop.results, strict=True):
        if last is argument and argument.type == f64:
            start = loop.iter_args[result.index]
            replace_uses(result, start)
            for use in list(argument.uses):
                if use.operation is not body.last_op:
                    use.operation.operands[use.index] = start


def _add(before: Operation, term: SSAValue, scale: float, of: Operation) -> ad.TargetAddOp:
    """Adds a term, times a number, to the target."""
    block = before.parent
    assert block is not None
    if scale == -1.0:
        negated = arith.NegfOp.create(operands=(term,), result_types=(f64,), properties=_STRICT, location=of.location)
        block.insert_op_before(negated, before)
        term = negated.results[0]
    elif scale != 1.0:
        factor = constant(scale, f64)
        product = arith.MulfOp.create(
            operands=(factor.result, term), result_types=(f64,), properties=_STRICT, location=of.location
        )
        block.insert_ops_before([factor, product], before)
        term = product.results[0]
    addition = ad.TargetAddOp(term, location=of.location)
    block.insert_op_before(addition, before)
    return addition


def _scale(loop: scf.ForOp, position: int) -> float | None:
    """What a result of a loop is multiplied by on its way to the target; None if it goes elsewhere, too."""
    scale = 1.0
    value: SSAValue = loop.results[position]
    while True:
        use = only_use(value)
        if use is None:
            return None
        op = use.operation
        if op.parent is not loop.parent:
            return None  # in a loop it is added several times, in a branch perhaps not at all
        if isinstance(op, ad.TargetAddOp):
            return scale
        if isinstance(op, scf.YieldOp):
            outer = op.parent_op()
            if not isinstance(outer, scf.ForOp) or chain_of(outer, use.index) is None:
                return None
            loop, position = outer, use.index
            value = outer.results[position]
            continue
        if isinstance(op, arith.NegfOp):
            scale = -scale
        elif isinstance(op, arith.SubfOp):
            scale = -scale if use.index == 1 else scale
        elif isinstance(op, arith.MulfOp):
            number = known_constant(op.operands[1 - use.index])
            if number is None:
                return None
            scale *= float(number)
        elif isinstance(op, rt.MathOp) and op.function.data == "fma":
            if use.index < 2:
                number = known_constant(op.operands[1 - use.index])
                if number is None:
                    return None
                scale *= float(number)
        elif not isinstance(op, arith.AddfOp):
            return None
        value = op.results[0]
