"""Columns of data in which all that a row adds is affine: rows may be equal but for them, and have their mean.

    for n: target += y[n] * eta(x[n]) - exp(eta(x[n]))

Rows with the same `x` add together what as many rows with the mean of their `y` do. So the sums of outcomes of the
exponential family are sufficient, of counts with a mean that some rows share as of times. Where a choice depends on
such a column (`y[n] == 0 ? 0 : y[n] * log_lambda`) rows are equal if they choose alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, known_constant, predicate_of
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.row_loops import LoopOverRows, RowColumn
from ulam.passes.rewriting import applied_to, discard, replace_uses

_OF_REALS = {"eq": "oeq", "ne": "one", "slt": "olt", "sle": "ole", "sgt": "ogt", "sge": "oge"}
"""Predicates of ints → of reals."""
_TURNED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}
"""With the operands the other way round."""


class _NotAffine(Exception):
    """Something that a row adds is not affine in a column."""


@record
class RowMeans:
    """The columns of a loop in which rows may differ."""

    columns: list[RowColumn] = field(default_factory=list[RowColumn])
    values: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Reals of rows that stand for their means: loads of these columns, or what is computed of ints."""
    choices: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Conditions on columns of ints, of data: equal rows have the same."""

    @staticmethod
    def of(rows: LoopOverRows, weight: RowColumn | None) -> RowMeans:
        """Those of a loop, as many as there are together; `weight`: the column that multiplies all that rows add."""
        found = RowMeans()
        if rows.inner is not None or any(column.inner is not None for column in rows.columns):
            return found
        able = [
            column
            for column in rows.columns
            if column is not weight and all(rows.is_made_once(load.res) for load in column.loads)
        ]
        for column in sorted(able, key=lambda column: column.loads[0].res.type != f64):
            try:
                more = _with(found, column, rows)
                _Affine(rows, frozenset(more.values)).demand()
            except _NotAffine:
                continue
            found = more
        return found

    def has(self, columns: Sequence[RowColumn]) -> bool:
        """Whether rows may differ in all of some columns."""
        return all(any(column is own for own in self.columns) for column in columns)

    def reads_choices_of(self, columns: Sequence[RowColumn]) -> bool:
        """Whether conditions are computed of any of these, as they are."""
        return any(_depends(choice, column) for choice in self.choices for column in columns)

    def _compare_signs(self, value: SSAValue) -> None:
        """Compares a real, in the place of the int that it is made of, with 0."""
        made = value.owner
        if not isinstance(made, arith.SIToFPOp):
            return
        for op in [use.operation for use in made.input.uses]:
            sign = _sign_of(op, made.input)
            if sign is None or op.parent is not made.parent or op.results[0] not in self.choices:
                continue
            made.detach()
            OpWriter.behind(made.input).before(made)
            del self.choices[op.results[0]]
            replace_uses(op.results[0], OpWriter(op).compare(_OF_REALS[sign], value, 0.0))
            discard(op)

    def of_reals(self) -> RowMeans:
        """Without columns of ints, which have conditions alone."""
        columns = [column for column in self.columns if column.loads[0].res.type == f64]
        return RowMeans(columns, self.values)

    def keep_choices(self) -> None:
        """Lets rows compute conditions of ints as they are, where reals that are made of these become means; where they
        are compared with 0 means do, since rows with other signs stay apart."""
        for value in self.values:
            self._compare_signs(value)
            for use in [use for use in value.uses if isinstance(use.operation, arith.CmpfOp)]:
                if any(known_constant(operand) == 0 for operand in use.operation.operands):
                    self.choices.pop(use.operation.results[0], None)
                    continue
                made = value.owner
                assert isinstance(made, arith.SIToFPOp)
                use.operation.operands[use.index] = OpWriter(use.operation).put(applied_to(made, made.operands))


def _sign_of(op: Operation, value: SSAValue) -> str | None:
    """How an op compares an int with 0: as a predicate of the int; None if it does something else."""
    if not isinstance(op, arith.CmpiOp) or (predicate := predicate_of(op)) not in _OF_REALS:
        return None
    if op.lhs is value and constant_integer(op.rhs) == 0:
        return predicate
    return _TURNED.get(predicate, predicate) if op.rhs is value and constant_integer(op.lhs) == 0 else None


def _with(found: RowMeans, column: RowColumn, rows: LoopOverRows) -> RowMeans:
    """With one column more."""
    own = RowMeans()
    for load in column.loads:
        if load.res.type == f64:
            own.values[load.res] = None
        else:
            _follow(load.res, own, rows, DataSlices())
    return RowMeans([*found.columns, column], found.values | own.values, found.choices | own.choices)


def _follow(value: SSAValue, more: RowMeans, rows: LoopOverRows, slices: DataSlices) -> None:
    """Finds the reals and conditions that rows compute of an int, and nothing else than them."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, arith.SelectOp | scf.IfOp) and use.index == 0 and value.type == i1:
            more.choices[value] = None
        elif type(op) not in PURE or not rows.is_made_once(op.results[0]):
            raise _NotAffine
        elif isinstance(op, arith.SIToFPOp):
            more.values[op.result] = None
            for condition in [inner.operation for inner in op.result.uses if isinstance(inner.operation, arith.CmpfOp)]:
                if slices.is_data(condition.results[0]):
                    _follow(condition.results[0], more, rows, slices)
        elif op.results[0].type == f64:
            raise _NotAffine
        else:
            _follow(op.results[0], more, rows, slices)


def _depends(value: SSAValue, column: RowColumn) -> bool:
    op = value.owner
    return op in column.loads or (isinstance(op, Operation) and any(_depends(v, column) for v in op.operands))


@record
class _Affine:
    """Which values of a row are affine in others, and depend on them."""

    rows: LoopOverRows
    means: frozenset[SSAValue]
    """Reals that rows have the mean of; of equal rows they have one sign."""
    affine: set[SSAValue] = field(default_factory=set[SSAValue])

    def demand(self) -> None:
        """Raises _NotAffine if something that a row leaves behind is neither affine nor independent."""
        self.affine.update(self.means)
        self._visit(self.rows.body)

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.IfOp):
                self._branch(op)
            elif op.regions:
                _demand(not any(self._any(inner.operands) for inner in ops_within(op)))
                _demand(not self._any(op.operands))
            elif self._any(op.operands) and not isinstance(op, scf.YieldOp):
                self._use(op)

    def _branch(self, op: scf.IfOp) -> None:
        blocks = [block for region in op.regions for block in region.blocks]
        for block in blocks:
            self._visit(block)
        for k, result in enumerate(op.results):
            if self._any([terminator(block).operands[k] for block in blocks]):
                self.affine.add(result)

    def _use(self, op: Operation) -> None:
        """An op that reads some of them."""
        if isinstance(op, ad.TargetAddOp):
            return
        if isinstance(op, ad.AccumulateOp):
            _demand(op in self.rows.additions)
            return
        if isinstance(op, arith.MulfOp):
            _demand(not (self._any([op.lhs]) and self._any([op.rhs])))
        elif isinstance(op, arith.DivfOp):
            _demand(not self._any([op.rhs]))
        elif isinstance(op, rt.MathOp) and op.function.data == "fma":
            _demand(not (self._any(op.arguments[:1]) and self._any(op.arguments[1:2])))
        elif isinstance(op, rt.MathOp) and op.function.data == "lmultiply":
            _demand(op.arguments[0] in self.means and not self._any(op.arguments[1:]))  # of one sign it is affine
        elif isinstance(op, arith.CmpfOp):
            _demand(self._is_choice(op))
            return
        else:
            _demand(isinstance(op, arith.AddfOp | arith.SubfOp | arith.NegfOp | arith.SelectOp))
        self.affine.add(op.results[0])

    def _is_choice(self, op: arith.CmpfOp) -> bool:
        """Whether an op compares one of them with 0, which is as for their mean, or data that are made of ints, which
        `_follow` has seen."""
        own = [operand for operand in op.operands if self._any([operand])]
        if len(own) == 1 and own[0] in self.means and any(known_constant(operand) == 0 for operand in op.operands):
            return True
        return all(isinstance(value.owner, arith.SIToFPOp) for value in own) and DataSlices().is_data(op.result)

    def _any(self, values: Sequence[SSAValue]) -> bool:
        return any(value in self.affine for value in values)


def _demand(holds: bool) -> None:
    if not holds:
        raise _NotAffine
