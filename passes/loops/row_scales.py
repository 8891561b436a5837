"""Scales of rows that are products of what all rows share and of data: `sigma * se[n]`, `sigma / sqrt(w[n])`.

    ((y - mu) * inv(sigma * se)) ^ 2   =   inv(sigma)^2 * ((y - mu) * inv(se)) ^ 2
    log(sigma * se)                    =   log(sigma) + log(se)        where both are positive
    sqrt(tau * v)                      =   sqrt(tau) * sqrt(v)         where both are positive

    w * ((y - mu) * inv(sigma)) ^ 2        =   inv(sigma)^2 * ((y - mu) * sqrt(w)) ^ 2        where w >= 0
    y == 0 ? -inf : log density      =   log density            where the data y are positive

So rows of weighted normal models are those of unweighted ones, with other data. What is written here stands beside what
it equals, in the same loop, and is used where the loop is replaced alone.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant, predicate_of
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside
from ulam.passes.loops.affine_rows import Nest
from ulam.passes.loops.op_writer import OpWriter


@record
class RowScales:
    """The scales of the rows of a nest, and what has to hold of them."""

    nest: Nest
    shared: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """What evaluations have to find positive, and far from the largest and the smallest number: the same in all rows,
    or in those of the same keys."""
    sizes: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Data of rows that have to be so, too."""
    weighted: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """What is squared and has a weight. Where a weight is below 0 rows stay as they are, and where one of 0 hides a
    square that is infinite."""
    _factors: dict[SSAValue, tuple[SSAValue, SSAValue] | None] = field(
        default_factory=dict[SSAValue, "tuple[SSAValue, SSAValue] | None"]
    )
    _written: list[Operation] = field(default_factory=list[Operation])

    def is_positive(self, value: SSAValue) -> bool:
        """Whether a value is a scale, or what rows share; from now on it has to be positive."""
        if self.nest.is_common(value):
            self.shared[value] = None
            return True
        return self._split(value) is not None

    def of_residual(self, value: SSAValue) -> tuple[Operation, SSAValue] | None:
        """What is divided by a scale, as a product with what all rows share: the product, and what else there is."""
        op = value.owner
        if not isinstance(op, arith.MulfOp | arith.DivfOp) or not is_inside(value, self.nest.outer):
            return None
        for rest, divisor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if isinstance(op, arith.MulfOp):
                inverse = divisor.owner
                if not isinstance(inverse, rt.MathOp) or inverse.function.data != "inv":
                    continue
                divisor = inverse.arguments[0]
            if (factors := self._split(divisor)) is not None:
                common, size = (self._put(value, rt.MathOp("inv", (factor,))) for factor in factors)
                weighted = self.product(value, rest, size)
                product = self.product(value, weighted, common).owner
                assert isinstance(product, Operation)
                return product, weighted
            if isinstance(op, arith.DivfOp):
                break
        return None

    def with_weight(self, place: SSAValue, value: SSAValue, weight: SSAValue) -> SSAValue:
        """What is squared, with the root of a weight of its square: below 0 there is none, and rows stay."""
        self.weighted[value] = None
        return self.product(place, value, self._put(place, rt.MathOp("sqrt", (weight,))))

    def of_logarithm(self, value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
        """The logarithm of a scale, or less it: the part of what all rows share, and that of the data."""
        op = value.owner
        negative = isinstance(op, arith.NegfOp)
        log = op.operand.owner if isinstance(op, arith.NegfOp) else op
        if not isinstance(log, rt.MathOp) or log.function.data != "log" or not is_inside(value, self.nest.outer):
            return None
        if (factors := self._split(log.arguments[0])) is None:
            return None
        common, size = (self._put(value, rt.MathOp("log", (factor,))) for factor in factors)
        if negative:
            common, size = (
                self._put(value, arith.NegfOp.create(operands=[part], result_types=[part.type]))
                for part in (common, size)
            )
        return common, size

    def of_positive(self, value: SSAValue) -> SSAValue | None:
        """What a choice by `y == 0` is for positive data `y`, which the rows then have to have (`lognormal`)."""
        choice = value.owner
        if not isinstance(choice, arith.SelectOp) or not is_inside(value, self.nest.outer):
            return None
        condition = choice.cond.owner
        if not isinstance(condition, arith.CmpfOp) or predicate_of(condition) != "oeq":
            return None
        if known_constant(condition.rhs) != 0 or not self.nest.is_data(condition.lhs):
            return None
        self.sizes[condition.lhs] = None
        return choice.rhs

    def negated(self, difference: arith.SubfOp) -> SSAValue:
        """What is subtracted, with the other sign."""
        op = arith.NegfOp.create(operands=[difference.rhs], result_types=[difference.rhs.type])
        return self._put(difference.result, op)

    def keep_to_arms(self) -> None:
        """Asks for scales that an arm of a branch computes in rows that take it alone."""
        arms = {size: self.nest.arms_of(block_of(size)) for size in self.sizes}
        if self.nest.choices is not None:
            self.sizes = {
                self.nest.put_in(around, (size,), otherwise=1.0) if around else size: None
                for size, around in arms.items()
            }

    def take_back(self) -> None:
        """Erases what has been written."""
        if self.nest.choices is not None:
            self.nest.choices.take_back()
        for op in reversed(self._written):
            op.detach()
            op.erase()
        self._written.clear()

    def _split(self, value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
        """The factors of a scale: what rows share, and data."""
        if value not in self._factors:
            self._factors[value] = self._find(value)
        if (found := self._factors[value]) is not None:
            self.shared[found[0]] = self.sizes[found[1]] = None
        return found

    def _find(self, value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
        op = value.owner
        if isinstance(op, rt.MathOp) and op.function.data == "sqrt" and is_inside(value, self.nest.outer):
            return self._root(value, op)
        if not isinstance(op, arith.MulfOp | arith.DivfOp) or not is_inside(value, self.nest.outer):
            return None
        nest = self.nest
        if nest.is_common(op.lhs) and nest.is_data(op.rhs):
            size = op.rhs if isinstance(op, arith.MulfOp) else self._put(value, rt.MathOp("inv", (op.rhs,)))
            return op.lhs, size
        if isinstance(op, arith.MulfOp) and nest.is_data(op.lhs) and nest.is_common(op.rhs):
            return op.rhs, op.lhs
        return None

    def _root(self, value: SSAValue, root: rt.MathOp) -> tuple[SSAValue, SSAValue] | None:
        """The factors of the root of a product of positive factors."""
        if (factors := self._split(root.arguments[0])) is None:
            return None
        common, size = (self._put(value, rt.MathOp("sqrt", (factor,))) for factor in factors)
        return common, size

    def _put(self, place: SSAValue, op: Operation) -> SSAValue:
        """Writes an op ahead of the one that has a value."""
        assert isinstance(place.owner, Operation)
        OpWriter(place.owner).before(op)
        self._written.append(op)
        return op.results[0]

    def product(self, place: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """A product, written ahead of the op that has the value `place`."""
        assert isinstance(place.owner, Operation)
        found = OpWriter(place.owner).real(arith.MulfOp, a, b)
        assert isinstance(found.owner, Operation)
        self._written.append(found.owner)
        return found
