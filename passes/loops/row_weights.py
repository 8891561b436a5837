"""Weights of rows: a column of data that multiplies all that a row adds.

    for n: target += w[n] * f(x[n], theta);  s += w[n] * g(x[n], theta)

The sums are those of `w` over all rows that have the same `x`, times `f` and `g`: rows are equal if they are equal but
for `w`. A value is of degree 1 if it is a product of the weight and of what does not depend on it, or a sum of such
products; all that leaves a row has to be.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.row_loops import LoopOverRows, RowColumn


def weight_of(rows: LoopOverRows) -> RowColumn | None:
    """The column that multiplies all that a row adds; None if there is none."""
    for column in rows.columns:
        if column.may_be_missing or column.inner is not None or column.loads[0].res.type != f64:
            continue
        if all(load.parent is rows.body for load in column.loads) and _Degrees(rows, column).all_are_one():
            return column
    return None


class _NoWeight(Exception):
    """Something is not of degree 1 in the column."""


class _Degrees:
    """Which values of a row are of degree 1 in a column, and which are sums that the loop carries of these."""

    def __init__(self, rows: LoopOverRows, column: RowColumn) -> None:
        self.rows = rows
        self.ones: set[SSAValue] = {load.res for load in column.loads}
        self.sums: set[SSAValue] = set()

    def all_are_one(self) -> bool:
        """Whether all that a row adds is of degree 1."""
        loops = self.rows.loops
        carried = [k if inside is None else inside for k, inside in self.rows.sums.items()]
        positions = [k for k in carried if loops[-1].results[k].type == f64]
        self.sums.update(self.rows.body.args[1 + k] for k in positions)
        try:
            self._visit(self.rows.body)
        except _NoWeight:
            return False
        outside = set(ops_within(self.rows.loop.body.block)) - set(ops_within(self.rows.body))
        if any(isinstance(op, ad.TargetAddOp) or op in self.rows.additions for op in outside):
            return False
        return all(terminator(self.rows.body).operands[k] in self.sums for k in positions)

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.IfOp):
                self._branch(op)
            elif isinstance(op, ad.TargetAddOp):
                self._demand(op.value in self.ones)
            elif isinstance(op, ad.AccumulateOp) and op in self.rows.additions:
                self._demand(op.value in self.ones)
            elif op.regions:
                for inner in ops_within(op):
                    self._demand(not isinstance(inner, ad.TargetAddOp) and inner not in self.rows.additions)
                    self._demand(not any(map(self._depends, inner.operands)))
                self._demand(not any(map(self._depends, op.operands)))
            elif not isinstance(op, scf.YieldOp) and any(map(self._depends, op.operands)):
                (self.sums if self._is_sum(op) else self.ones).add(op.results[0])

    def _branch(self, op: scf.IfOp) -> None:
        self._demand(not self._depends(op.cond))
        for region in op.regions:
            for block in region.blocks:
                self._visit(block)
        for k, result in enumerate(op.results):
            values = [terminator(region.block).operands[k] for region in op.regions]
            if any(value in self.sums for value in values):
                self._demand(all(value in self.sums for value in values))
                self.sums.add(result)
            elif any(value in self.ones for value in values):
                self._demand(all(map(self._is_one_or_zero, values)))
                self.ones.add(result)

    def _is_sum(self, op: Operation) -> bool:
        """Whether an op adds what is of degree 1 to a sum. Raises _NoWeight if its result is of another degree."""
        if isinstance(op, arith.SelectOp):
            self._demand(not self._depends(op.cond) and all(map(self._is_one_or_zero, op.operands[1:])))
            return False
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            values = list(op.operands)
            of_sum = [value in self.sums for value in values]
            self._demand(all(of or self._is_one_or_zero(value) for of, value in zip(of_sum, values, strict=True)))
            self._demand(not (of_sum[1] and (of_sum[0] or isinstance(op, arith.SubfOp))))
            return any(of_sum)
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            first, second, third = op.arguments
            self._demand((first in self.ones) != (second in self.ones))
            self._demand(not any(value in self.sums for value in (first, second)))
            self._demand(third in self.sums or self._is_one_or_zero(third))
            return third in self.sums
        self._demand(not any(value in self.sums for value in op.operands))
        if isinstance(op, arith.MulfOp):
            self._demand((op.lhs in self.ones) != (op.rhs in self.ones))
        else:
            self._demand(isinstance(op, arith.NegfOp) or (isinstance(op, arith.DivfOp) and op.rhs not in self.ones))
        return False

    def _is_one_or_zero(self, value: SSAValue) -> bool:
        return value in self.ones or known_constant(value) == 0

    def _depends(self, value: SSAValue) -> bool:
        return value in self.ones or value in self.sums

    @staticmethod
    def _demand(holds: bool) -> None:
        if not holds:
            raise _NoWeight
