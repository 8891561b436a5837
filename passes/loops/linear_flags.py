"""Checks of rows that are linear in coefficients: whether they hold where all coefficients are finite.

for n, flag = 0: ... yield flag | !(mu < inf)          check flag == 0
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from ulam.dialects.scalar_ops import known_constant, predicate_of
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside, terminator
from ulam.passes.loops.affine_rows import Arms, MeansAhead, Nest
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.row_scales import RowScales

_INFINITE = float("inf")


@record
class Flags:
    """Whether flags that loops carry stay 0 where all terms are finite, and far from the largest number."""

    nest: Nest
    scales: RowScales | None
    known: set[LinearTerm]
    checked: dict[LinearTerm, None] = field(default_factory=dict[LinearTerm, None])
    """Other terms of the same coefficients that have to be so, as of means whose rows have weights."""
    moved: tuple[tuple[SSAValue, SSAValue], ...] = ()
    """As that of terms: of rows of a nest that stand for those of another one."""
    sums: Collection[int] = ()
    """Results of the nest that are sums."""

    def of_fill(self, fill: MeansAhead) -> Flags:
        """The same of a nest ahead."""
        return Flags(fill.nest, None, self.known, self.checked, fill.moved)

    def are_kept(self, loop: scf.ForOp) -> bool:
        """Whether all that a loop gives are such flags, or sums of the nest."""
        is_nest = loop is self.nest.outer
        return all((is_nest and n in self.sums) or self._is_flag(loop, n) for n in range(len(loop.results)))

    def _is_flag(self, loop: scf.ForOp, position: int, around: SSAValue | None = None) -> bool:
        """Whether one of the results of a loop is such a flag; others of an inner loop may be sums of the nest.
        `around`: that of the loop around, with which an inner one may go on.
        """
        start, end = loop.iter_args[position], terminator(loop.body.block).operands[position]
        begins = known_constant(start) == 0 or (around is not None and self._is_kept(start, around))
        return begins and self._is_kept(end, loop.body.block.args[position + 1])

    def _is_kept(self, value: SSAValue, carried: SSAValue) -> bool:
        if value is carried or known_constant(value) == 0:
            return True
        op = value.owner
        if isinstance(op, arith.OrIOp):
            return self._is_kept(op.lhs, carried) and self._is_kept(op.rhs, carried)
        if isinstance(op, arith.ExtUIOp):
            negation = op.input.owner
            return isinstance(negation, arith.XOrIOp) and known_constant(negation.rhs) == 1 and self.holds(negation.lhs)
        if not isinstance(op, scf.ForOp) or not is_inside(value, self.nest.outer):
            return False
        return self._is_flag(op, op.results.index(value), carried)

    def holds(self, condition: SSAValue) -> bool:
        """Whether a condition is true in all rows."""
        op = condition.owner
        if isinstance(op, arith.AndIOp):
            return self.holds(op.lhs) and self.holds(op.rhs)
        if isinstance(op, arith.CmpiOp):
            flags = op.lhs.owner
            if known_constant(op.rhs) != 0 or predicate_of(op) != "eq" or not is_inside(op.lhs, self.nest.outer):
                return False
            return isinstance(flags, scf.ForOp) and self._is_flag(flags, flags.results.index(op.lhs))
        if isinstance(op, scf.IfOp) and is_inside(condition, self.nest.outer):
            position = op.results.index(condition)
            return all(self.holds(terminator(region.block).operands[position]) for region in op.regions)
        if not isinstance(op, arith.CmpfOp):
            return known_constant(condition) == 1
        limit, predicate = known_constant(op.rhs), predicate_of(op)
        is_above = limit == 0 and predicate in ("ogt", "oge")
        if is_above and self.scales is not None and self.scales.is_positive(op.lhs):
            return True
        beyond = (limit == _INFINITE and predicate in ("olt", "ole")) or (
            limit == -_INFINITE and predicate in ("ogt", "oge")
        )
        if beyond and self.scales is not None and op.lhs in self.scales.shared:
            return True
        return (beyond or (predicate == "ord" and op.lhs is op.rhs)) and self.is_finite(op.lhs)

    def is_finite(self, value: SSAValue) -> bool:
        """Whether a value of a row is finite; one of an arm, where that is taken."""
        arms: Arms = ()
        while (block := block_of(value)) is not None and is_inside(value, self.nest.outer):
            if not isinstance(branch := block.parent_op(), scf.IfOp):
                break
            given = list(terminator(block).operands)
            if value not in given:
                if (found := self.nest.arms_of(block)) is None:
                    return False
                arms = found
                break
            value = branch.results[given.index(value)]
        terms = self.nest.terms_in(arms, value)
        if terms is None:
            return self._is_finite_multiple(value)
        terms = [replace(term, negative=False, moved=(*term.moved, *self.moved)) for term in terms]
        others = [term for term in terms if term not in self.known]
        coefficients = {(term.leaf, term.key, term.loops) for term in self.known}
        if any(term.leaf and (term.leaf, term.key, term.loops) not in coefficients for term in others):
            return False
        self.checked.update(dict.fromkeys(others))
        return True

    def _is_finite_multiple(self, value: SSAValue) -> bool:
        """Whether a value is a finite one of a row, divided by what all rows share and evaluations find moderate."""
        op = value.owner
        if self.scales is None or not isinstance(op, arith.DivfOp) or not is_inside(value, self.nest.outer):
            return False
        if not self.nest.is_shared(op.rhs) or not self.is_finite(op.lhs):
            return False
        self.scales.shared[op.rhs] = None
        return True
