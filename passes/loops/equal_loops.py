"""Loops that both arms of a branch have: sums of the same terms become one loop ahead of the branch.

    if (c) { for k: target += f(k); } else { s = 0; for k: s += f(k); ... }
    →   s = 0; for k: s += f(k);    if (c) { target += s; } else { ... }

Only loops that do nothing but compute, load, check domains and sum up one real. They are compared by what they compute,
whatever the order of their ops.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.checks import is_deferrable
from ulam.passes.loops.effects import Effect, effect, is_speculatable
from ulam.passes.rewriting import discard, rebuild, replace_uses

_STOPS_LOADS = Effect.WRITE | Effect.ORDERED
_REASSOCIATE = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}
_STRICT = {"fastmath": arith.FastMathFlagsAttr("none")}


def stops_loads(op: Operation) -> bool:
    """Whether a load behind `op` may not run ahead of it."""
    return any(
        not is_deferrable(inner)
        if isinstance(inner, rt.CheckOp)
        else not isinstance(inner, ad.TargetAddOp) and bool(effect(inner) & _STOPS_LOADS)
        for inner in ops_within(op)
    )


def is_domain_check(op: Operation) -> bool:
    """Whether `op` is a check that may come early or late."""
    return isinstance(op, rt.CheckOp) and is_deferrable(op)


@record(frozen=True)
class SummingLoop:
    """A loop that adds the sum of `terms` to the target in each iteration, or, if `is_carried`, to what it carries."""

    op: scf.ForOp
    terms: tuple[SSAValue, ...]
    checked: tuple[SSAValue, ...]
    is_carried: bool

    @staticmethod
    def of(loop: Operation) -> SummingLoop | None:
        """The loop as such; None if it is another kind of loop."""
        if not isinstance(loop, scf.ForOp) or len(loop.results) > 1 or not _is_pure(loop.body.block):
            return None
        body = loop.body.block
        added = [term for op in body.ops if isinstance(op, ad.TargetAddOp) for term in _summands(op.value, body)]
        checked = tuple(inner.ok for inner in body.ops if isinstance(inner, rt.CheckOp))
        if not loop.results:
            return SummingLoop(loop, tuple(added), checked, False) if added else None
        total, carried = terminator(body).operands[0], body.args[1]
        if added or known_constant(loop.iter_args[0]) != 0.0 or not isinstance(total.owner, arith.AddfOp):
            return None
        addition = total.owner
        if addition.lhs is not carried or not carried.has_one_use() or addition.fastmath.data == ():
            return None
        return SummingLoop(loop, tuple(_summands(addition.rhs, body)), checked, True)

    def equals(self, other: SummingLoop) -> bool:
        """Whether both sum up the same terms over the same range, and check the same."""
        if tuple(self.op.operands[:3]) != tuple(other.op.operands[:3]) or len(self.terms) != len(other.terms):
            return False
        if len(self.checked) != len(other.checked):
            return False
        same = LoopComparison(self.op, other.op).same
        return all(map(same, self.terms, other.terms)) and all(map(same, self.checked, other.checked))

    def result(self) -> SSAValue:
        """The sum, as a result of the loop; it no longer adds to the target."""
        if self.is_carried:
            return self.op.results[0]
        body = self.op.body.block
        for inner in list(body.ops):
            if isinstance(inner, ad.TargetAddOp):
                discard(inner)
        argument = body.insert_arg(f64, 1)
        end = terminator(body)
        part = self.terms[0]
        for term in self.terms[1:]:
            part = _add(part, term, _STRICT, end)
        end.operands = [_add(argument, part, _REASSOCIATE, end)]
        zero = constant(0.0, f64)
        assert self.op.parent is not None
        self.op.parent.insert_op_before(zero, self.op)
        return rebuild(self.op, [*self.op.operands, zero.result], [f64]).results[0]

    def use_instead(self, total: SSAValue) -> None:
        """Lets users have `total`, which an equal loop has computed, and removes this one."""
        op = self.op
        assert op.parent is not None
        if self.is_carried:
            replace_uses(op.results[0], total)
        else:
            op.parent.insert_op_before(ad.TargetAddOp(total, location=op.location), op)
        discard(op)


def share_loops(branch: scf.IfOp) -> int:
    """Puts loops that both arms of a branch have in front of it; their number."""
    arms = [list(_summing_loops(region.block)) for region in branch.regions]
    count = 0
    for first in arms[0] if arms[1] else ():
        if any(is_inside(value, branch) for value in _outside_values(first.op)):
            continue
        second = next((loop for loop in arms[1] if loop.equals(first)), None)
        if second is None:
            continue
        arms[1].remove(second)
        _move(branch, first, second)
        count += 1
    return count


def _summing_loops(arm: Block) -> Iterator[SummingLoop]:
    """The loops of an arm that may run ahead of the branch: nothing in front of them writes, or checks an index."""
    for op in arm.ops:
        if (loop := SummingLoop.of(op)) is not None:
            yield loop
        if stops_loads(op):
            return


def _move(branch: scf.IfOp, first: SummingLoop, second: SummingLoop) -> None:
    arm = branch.true_region.block
    mark = first.op.next_op
    assert mark is not None and branch.parent is not None
    total = first.result()
    loop = total.owner
    assert isinstance(loop, scf.ForOp)
    start = loop.iter_args[0].owner
    if isinstance(start, Operation) and is_inside(loop.iter_args[0], branch):
        start.detach()
        branch.parent.insert_op_before(start, branch)
    loop.detach()
    branch.parent.insert_op_before(loop, branch)
    if not first.is_carried:
        arm.insert_op_before(ad.TargetAddOp(total, location=loop.location), mark)
    second.use_instead(total)


def _outside_values(op: scf.ForOp) -> list[SSAValue]:
    """What a loop uses from outside of it, but for the 0 that its sum begins with."""
    values: list[SSAValue] = list(op.operands[:3])
    for inner in ops_within(op.body):
        values += [operand for operand in inner.operands if not is_inside(operand, op)]
    return values


def _is_pure(block: Block) -> bool:
    """Whether the ops of a loop's body compute, load, check domains or add to the target, and no more."""
    return all(
        is_speculatable(op)
        or isinstance(op, rt.LoadOp | scf.YieldOp | ad.TargetAddOp)
        or is_domain_check(op)
        or _is_choice(op)
        for op in block.ops
    )


def _is_choice(op: Operation) -> bool:
    """Whether `op` is a branch that only chooses between values."""
    return isinstance(op, scf.IfOp) and all(
        is_speculatable(inner) or isinstance(inner, rt.LoadOp | scf.YieldOp) or _is_choice(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
    )


def _summands(value: SSAValue, body: Block) -> list[SSAValue]:
    """The terms of a sum, from left to right."""
    op = value.owner
    if isinstance(op, arith.AddfOp) and op.parent is body and value.has_one_use():
        return [*_summands(op.lhs, body), *_summands(op.rhs, body)]
    return [value]


class LoopComparison:
    """Of what two loops compute from the same values."""

    def __init__(self, first: scf.ForOp, second: scf.ForOp) -> None:
        self._loops = first, second
        self._known: dict[tuple[SSAValue, SSAValue], bool] = {}

    def same(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether a value of the first loop is always that of the second."""
        if a is b:
            return not is_inside(a, self._loops[0])
        if (known := self._known.get((a, b))) is None:
            known = self._known[a, b] = self._compare(a, b)
        return known

    def _compare(self, a: SSAValue, b: SSAValue) -> bool:
        first, second = a.owner, b.owner
        if isinstance(a, BlockArgument) or isinstance(b, BlockArgument):
            heads = tuple(loop.body.block.args[0] for loop in self._loops)
            return (a, b) == heads
        assert isinstance(first, Operation) and isinstance(second, Operation)
        if type(first) is not type(second) or a.type != b.type:
            return False
        if isinstance(first, arith.ConstantOp) and isinstance(second, arith.ConstantOp):
            return _literal(first) == _literal(second)
        if not is_inside(a, self._loops[0]) or not is_inside(b, self._loops[1]):
            return False
        if len(first.operands) != len(second.operands) or first.properties != second.properties:
            return False
        if first.results.index(a) != second.results.index(b):
            return False
        return all(map(self.same, first.operands, second.operands)) and self._same_ends(first, second, a)

    def _same_ends(self, first: Operation, second: Operation, result: SSAValue) -> bool:
        """Whether the arms of two branches yield the same for a result."""
        if not first.regions:
            return True
        if not isinstance(first, scf.IfOp) or not isinstance(second, scf.IfOp):
            return False
        place = first.results.index(result)
        return all(
            self.same(terminator(one.block).operands[place], terminator(other.block).operands[place])
            for one, other in zip(first.regions, second.regions, strict=True)
        )


def _literal(op: arith.ConstantOp) -> tuple[str, Attribute]:
    """What a constant is: 0.0 is not -0.0."""
    return str(op.value), op.result.type


def _add(a: SSAValue, b: SSAValue, properties: dict[str, arith.FastMathFlagsAttr], before: Operation) -> SSAValue:
    addition = arith.AddfOp.create(operands=(a, b), result_types=(f64,), properties=properties)
    assert before.parent is not None
    before.parent.insert_op_before(addition, before)
    return addition.result
