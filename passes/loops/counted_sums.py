"""Sums that loops carry and read, of numbers that do not change, are those numbers times what data have of them so far.

    for t, s = s0: ... f(s) ...               for t, k = 0, l = 0: ... f(s0 + k * u + l * v) ...
                   if (y[t]) s += u;     →                   if (y[t]) k += 1;
                   else s += v;                              else l += 1;

Also `s += u * x[t]` with data `x`. What the loop carries is data then, and read from tables (`carried-data`), so that
no iteration waits for the one before, and none has to be gone through backwards. What is only summed stays a sum. A
number that has not been added counts for nothing, whatever it is. Infinite ones times data of both signs, or 0, are no
number, as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside, terminator
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, rebuild
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

MOST_ADDENDS = 4
_Conditions = tuple[tuple[SSAValue, bool], ...]


@record(frozen=True)
class _Addend:
    """What an iteration adds where all conditions are as told: a number, times one of the data, negated or not."""

    number: SSAValue
    weight: SSAValue | None = None
    conditions: _Conditions = ()
    negated: bool = False


class CountedSums(TellingPass):
    """Counts in loops of `evaluate` how often what does not change was added to what they carry."""

    name = "counted-sums"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        if must_be_precise(module):
            return False
        slices = DataSlices()
        changed = False
        for loop in [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.ForOp]:
            current = loop
            for position in range(len(loop.iter_args)):
                sum_ = _Sum(current, position, slices)
                if sum_.is_read() and (addends := sum_.addends()):
                    current = sum_.count(addends)
                    remark_on(self.name, current, "what it sums is counted", done=True)
                    changed = True
        return changed


class _Sum:
    """What a loop carries in one of its places."""

    def __init__(self, loop: scf.ForOp, position: int, slices: DataSlices) -> None:
        self._loop, self._slices = loop, slices
        self._body = loop.body.block
        self._position = position
        self._argument: BlockArgument = self._body.args[1 + position]
        self._end = terminator(self._body).operands[position]
        self._steps: set[Operation] = set()

    # ------------------------------------------------------------ what it is

    def is_read(self) -> bool:
        """Whether an iteration does more with a real than to add to it: what it reads comes in no other order then."""
        return self._argument.type == f64 and self._end is not self._argument and len(list(self._argument.uses)) > 1

    def addends(self) -> list[_Addend]:
        """What an iteration adds; none if that is not known, or changes."""
        loop = self._loop
        if not (self._slices.is_data(loop.lb) and self._slices.is_data(loop.ub)):
            return []
        found = self._added(self._end, ())
        if found is None or len(found) > MOST_ADDENDS:
            return []
        if all(self._slices.is_data(addend.number) for addend in found):
            return []
        others = [use.operation for use in self._argument.uses if use.operation not in self._steps]
        return found if others else []

    def _added(self, value: SSAValue, conditions: _Conditions) -> list[_Addend] | None:
        """What is added to the argument to get a value; None if it is no such sum."""
        if value is self._argument:
            return []
        if not isinstance(value, OpResult):
            return None
        op = value.op
        arms = self._arms(op, value)
        if arms is not None:
            self._steps.update((op, *(terminator(region.block) for region in op.regions)))
            return _all(self._added(arm, (*conditions, (op.operands[0], truth))) for truth, arm in arms)
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            one, other = op.operands
            if isinstance(op, arith.AddfOp) and not self._is_sum(one):
                one, other = other, one
            added = self._numbers(other, conditions, isinstance(op, arith.SubfOp))
        elif _is_fma(op):
            one = op.operands[2]
            added = self._product(op, conditions, False)
        else:
            return None
        self._steps.add(op)
        return _all([self._added(one, conditions), added])

    def _is_sum(self, value: SSAValue) -> bool:
        """Whether it is the argument, or looks like what was added to it."""
        work, seen = [value], set[SSAValue]()
        while work:
            value = work.pop()
            if value is self._argument:
                return True
            if isinstance(value, OpResult) and value not in seen and is_inside(value, self._loop):
                seen.add(value)
                op = value.op
                arms = self._arms(op, value)
                if isinstance(op, arith.AddfOp | arith.SubfOp) or _is_fma(op):
                    work += op.operands
                elif arms is not None:
                    work += [arm for _, arm in arms]
        return False

    def _arms(self, op: Operation, value: OpResult) -> list[tuple[bool, SSAValue]] | None:
        """What a choice by data gives where its condition holds, and where it does not."""
        if not isinstance(op, arith.SelectOp | scf.IfOp) or not self._is_known(op.cond):
            return None
        if isinstance(op, arith.SelectOp):
            return [(True, op.lhs), (False, op.rhs)]
        if len(op.false_region.blocks):
            ends = [terminator(region.block).operands[value.index] for region in op.regions]
            return [(True, ends[0]), (False, ends[1])]
        return None

    def _numbers(self, value: SSAValue, conditions: _Conditions, negated: bool) -> list[_Addend] | None:
        """What is added as addends; None if it changes."""
        if self._is_unchanged(value):
            return [] if known_constant(value) == 0 else [_Addend(value, None, conditions, negated)]
        if not isinstance(value, OpResult):
            return None
        op = value.op
        arms = self._arms(op, value)
        if arms is not None:
            return _all(self._numbers(arm, (*conditions, (op.operands[0], truth)), negated) for truth, arm in arms)
        if isinstance(op, arith.NegfOp):
            return self._numbers(op.operand, conditions, not negated)
        if isinstance(op, arith.MulfOp):
            return self._product(op, conditions, negated)
        if _is_fma(op):
            return _all([self._product(op, conditions, negated), self._numbers(op.operands[2], conditions, negated)])
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            signs = (negated, negated != isinstance(op, arith.SubfOp))
            return _all(self._numbers(part, conditions, sign) for part, sign in zip(op.operands, signs, strict=True))
        return None

    def _product(self, op: Operation, conditions: _Conditions, negated: bool) -> list[_Addend] | None:
        """The first two operands of an op as a number times data."""
        one, other = op.operands[:2]
        for number, weight in ((one, other), (other, one)):
            if self._is_unchanged(number) and self._is_known(weight):
                return [_Addend(number, weight, conditions, negated)]
        return None

    def _is_visible(self, value: SSAValue) -> bool:
        """Whether it is there where the iteration ends."""
        return block_of(value) is self._body or not is_inside(value, self._loop)

    def _is_known(self, value: SSAValue) -> bool:
        """Whether it is data, and can be computed where the iteration ends."""
        return self._slices.is_data(value) and _can_be_computed(value, self._is_visible)

    def _is_unchanged(self, value: SSAValue) -> bool:
        """Whether it is the same in all iterations. What an arm of a branch computes stays there: its slope may be
        infinite where the arm is not taken."""
        return not is_inside(value, self._loop)

    # ------------------------------------------------------------ counting

    def count(self, addends: list[_Addend]) -> scf.ForOp:
        """Carries how often each number was added in the place of the sum; the loop anew."""
        loop, ahead = self._loop, OpWriter(self._loop)
        start, nothing = loop.iter_args[self._position], ahead.number(0.0)
        copies: dict[SSAValue, SSAValue] = {}
        added = [self._added_each_time(addend, copies) for addend in addends]
        tallies = [[self._body.insert_arg(f64, len(self._body.args)) for _ in each] for each in added]
        end = terminator(self._body)
        write = OpWriter(end)
        pairs = [
            (one, more) for each, new in zip(tallies, added, strict=True) for one, more in zip(each, new, strict=True)
        ]
        end.operands = [*end.operands, *(write.real(arith.AddfOp, one, more) for one, more in pairs)]
        terms: list[_Term] = []
        for addend in addends:
            value = ahead.put(rt.MathOp("value_of", (addend.number,)))
            terms.append(_Term(addend.number, ahead.real(arith.MulfOp, value, nothing), addend.negated))

        assert self._body.first_op is not None
        self._argument.replace_all_uses_with(_sum(OpWriter(self._body.first_op), start, terms, tallies))
        types = [*(result.type for result in loop.results), *(f64 for _ in pairs)]
        new = rebuild(loop, [*loop.operands, *(nothing for _ in pairs)], types)
        assert isinstance(new, scf.ForOp)
        totals = [[new.results[tally.index - 1] for tally in each] for each in tallies]
        result = new.results[self._position]
        if list(result.uses):
            result.replace_all_uses_with(_sum(OpWriter.behind(result), start, terms, totals))
        terminator(new.body.block).operands[self._position] = self._argument
        return new

    def _added_each_time(self, addend: _Addend, copies: dict[SSAValue, SSAValue]) -> list[SSAValue]:
        """What an iteration adds to the tallies of an addend: how often, or how much, and of which signs."""
        write = OpWriter(terminator(self._body))
        held: list[SSAValue] = []
        for condition, truth in addend.conditions:
            found = _copied(condition, write, copies, self._is_visible)
            held.append(found if truth else write.put(arith.XOrIOp(found, write.put(constant(True, i1)))))
        if addend.weight is None:
            return [write.where(held, write.number(1.0), 0.0)]
        weight = _copied(addend.weight, write, copies, self._is_visible)
        signs = [write.compare(predicate, weight, 0.0) for predicate in ("ule", "uge")]  # what is no number: both
        return [
            write.where(held, weight, 0.0),
            *(write.where([*held, sign], write.number(1.0), 0.0) for sign in signs),
        ]


def _is_fma(op: Operation) -> bool:
    return isinstance(op, rt.MathOp) and op.function.data == "fma"


def _all(parts: Iterable[list[_Addend] | None]) -> list[_Addend] | None:
    """The addends of all parts; None if those of one are not known."""
    found: list[_Addend] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def _can_be_computed(value: SSAValue, is_there: Callable[[SSAValue], bool]) -> bool:
    """Whether a value can be computed, where it does not harm, from what is there."""
    work, seen = [value], set[SSAValue]()
    while work:
        value = work.pop()
        if value in seen or is_there(value):
            continue
        seen.add(value)
        if not isinstance(value, OpResult) or value.op.regions or not is_speculatable(value.op):
            return False
        work += value.op.operands
    return True


def _copied(
    value: SSAValue, write: OpWriter, copies: dict[SSAValue, SSAValue], is_there: Callable[[SSAValue], bool]
) -> SSAValue:
    """A value computed anew from what is there."""
    if is_there(value):
        return value
    if value not in copies:
        assert isinstance(value, OpResult)
        copy = cloned(value.op, {operand: _copied(operand, write, copies, is_there) for operand in value.op.operands})
        write.before(copy)
        copies[value] = copy.results[value.index]
    return copies[value]


@record(frozen=True)
class _Term:
    """A number, and 0 times it."""

    number: SSAValue
    times_zero: SSAValue
    negated: bool

    def times(self, write: OpWriter, tallies: Sequence[SSAValue]) -> SSAValue:
        """What was added of it, by how often or how much it was, and from which signs."""
        amount, *signs = tallies
        product = write.real(arith.MulfOp, amount, self.number)
        if not signs:
            return write.where([write.compare("ogt", amount, 0.0)], product, 0.0)
        low, high = (write.compare("ogt", sign, 0.0) for sign in signs)
        were_any = write.put(arith.OrIOp(low, high))
        return write.real(
            arith.AddfOp,
            write.where([were_any], product, 0.0),
            write.where([low, high], self.times_zero, 0.0),
        )


def _sum(write: OpWriter, start: SSAValue, terms: Sequence[_Term], tallies: Sequence[Sequence[SSAValue]]) -> SSAValue:
    """What the sum is, from what there was of each number."""
    found = None if known_constant(start) == 0 else start
    for term, of_it in zip(terms, tallies, strict=True):
        product = term.times(write, of_it)
        if found is None:
            found = write.put(arith.NegfOp(product)) if term.negated else product
        else:
            found = write.real(arith.SubfOp if term.negated else arith.AddfOp, found, product)
    assert found is not None
    return found
