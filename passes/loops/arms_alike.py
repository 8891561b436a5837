"""Arms of a branch that add the same functions of different values to the target: the branch chooses the values.

    if (c) { target += log(exp(x)); } else { target += log(exp(y)); }   →   z = c ? x : y;  target += log(exp(z))

Each function is there once then, in straight code, and rows whose densities differ in a mean are those of one density,
of which layouts know more. Only where the arms do nothing else but compute, and much more is saved than is chosen; what
is the same in all iterations, as a logarithm of a scale, is chosen and not computed again.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import scf
from xdsl.dialects.builtin import f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_of
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside, terminator
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.equal_loops import is_domain_check
from ulam.passes.rewriting import applied_to, discard, rebuild

_TIMES_CHOSEN = 3
"""So many ops have to be saved for each value that is chosen."""
_IN_ARMS = (rt.LoadOp, rt.CheckOp, ad.TargetAddOp, scf.YieldOp)


@record
class _Alike:
    """What two arms compute alike: pairs of their values."""

    arms: tuple[Block, Block]
    loop: Operation
    """What the branch stands in."""
    rows: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    chosen: dict[tuple[SSAValue, SSAValue], int] = field(default_factory=dict[tuple[SSAValue, SSAValue], int])
    """Pairs of values that the branch has to choose, in order."""
    merged: dict[tuple[SSAValue, SSAValue], tuple[Operation, Operation]] = field(
        default_factory=dict[tuple[SSAValue, SSAValue], tuple[Operation, Operation]]
    )
    """Pairs of results of the same op, operands first."""

    def visit(self, one: SSAValue, other: SSAValue) -> None:
        """Finds what two values have in common."""
        pair = (one, other)
        if one is other or pair in self.merged or pair in self.chosen:
            return
        first, second = one.owner, other.owner
        is_function = isinstance(first, rt.MathOp)
        if not self._are_same(first, second) or (is_function and not self._are_of_rows(one, other)):
            self.chosen[pair] = len(self.chosen)
            return
        assert isinstance(first, Operation) and isinstance(second, Operation)
        for a, b in zip(first.operands, second.operands, strict=True):
            self.visit(a, b)
        self.merged[pair] = (first, second)

    def is_worth_it(self) -> bool:
        """Whether enough is saved, and what is chosen are numbers."""
        if not all(one.type == other.type and one.type in (f64, i1, i32, i64) for one, other in self.chosen):
            return False
        is_some = any(isinstance(op, rt.MathOp) for op, _ in self.merged.values())
        return is_some and len(self.merged) >= _TIMES_CHOSEN * len(self.chosen)

    def _are_of_rows(self, one: SSAValue, other: SSAValue) -> bool:
        return self._is_of_row(one) and self._is_of_row(other)

    def _is_of_row(self, value: SSAValue) -> bool:
        """Whether a value is another one in each iteration: what is not is computed once, ahead of the loop."""
        if value not in self.rows:
            op = value.owner
            self.rows[value] = is_inside(value, self.loop) and (
                isinstance(op, Block) or bool(op.regions) or any(map(self._is_of_row, op.operands))
            )
        return self.rows[value]

    def _are_same(self, first: Operation | Block, second: Operation | Block) -> bool:
        """Whether two ops of the arms differ in operands alone."""
        if not isinstance(first, Operation) or not isinstance(second, Operation) or type(first) is not type(second):
            return False
        if (first.parent, second.parent) != self.arms or type(first) not in PURE or len(first.results) != 1:
            return False
        if len(first.operands) != len(second.operands) or first.properties != second.properties:
            return False
        types: list[list[Attribute]] = [[value.type for value in (*op.operands, *op.results)] for op in (first, second)]
        return bool(first.operands) and types[0] == types[1]


def merge_alike(branch: scf.IfOp) -> int:
    """Lets a branch choose what arms need, and does behind it what they do alike; the number of ops that are saved."""
    if len(branch.false_region.blocks) != 1:
        return 0
    arms = (branch.true_region.block, branch.false_region.block)
    loop = enclosing(branch, (scf.ForOp, scf.WhileOp))
    if loop is None or not all(type(op) in PURE or isinstance(op, _IN_ARMS) for arm in arms for op in ops_of(arm)):
        return 0
    alike = _Alike(arms, loop)
    pairs = [*_ends(arms, ad.TargetAddOp), *_ends(arms, rt.CheckOp)]
    for one, other in pairs:
        for values in zip(one.operands, other.operands, strict=True):
            alike.visit(*values)
    if not any(isinstance(op, ad.TargetAddOp) for op, _ in pairs) or not alike.is_worth_it():
        return 0
    _write(branch, alike, pairs)
    return len(alike.merged)


def _ends(arms: tuple[Block, Block], kind: type[Operation]) -> list[tuple[Operation, Operation]]:
    """What arms do besides computing, one by one, if they do as much: additions, and checks that may be late."""
    found = [[op for op in ops_of(arm) if type(op) is kind] for arm in arms]
    pairs = list(zip(*found, strict=False))
    if len(found[0]) != len(found[1]) or any(len(one.operands) != len(other.operands) for one, other in pairs):
        return []
    return pairs if kind is ad.TargetAddOp or all(map(is_domain_check, (*found[0], *found[1]))) else []


def _write(branch: scf.IfOp, alike: _Alike, pairs: list[tuple[Operation, Operation]]) -> None:
    first = len(branch.results)
    for n, arm in enumerate(alike.arms):
        end = terminator(arm)
        end.operands = [*end.operands, *(pair[n] for pair in alike.chosen)]
    types = [*(result.type for result in branch.results), *(one.type for one, _ in alike.chosen)]
    new = rebuild(branch, list(branch.operands), types)
    behind = new.next_op
    assert behind is not None and behind.parent is not None
    values = {pair: new.results[first + n] for pair, n in alike.chosen.items()}

    def merged(one: SSAValue, other: SSAValue) -> SSAValue:
        return one if one is other else values[one, other]

    for pair, (one, other) in alike.merged.items():
        copy = applied_to(one, list(map(merged, one.operands, other.operands)))
        behind.parent.insert_op_before(copy, behind)
        values[pair] = copy.results[0]
    for one, other in pairs:
        behind.parent.insert_op_before(applied_to(one, list(map(merged, one.operands, other.operands))), behind)
        discard(one)
        discard(other)
    for op in [op for both in reversed(alike.merged.values()) for op in both]:
        if op.parent in alike.arms and op.results[0].first_use is None:
            discard(op)
