"""Writes a loop over reduced rows, as the loop over all rows is. It finds what is linear in the numbers of a row, which
has been computed for all rows at once (`form_values`).
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.form_columns import inner_loops
from ulam.passes.loops.form_values import Combination, FormValues, ReducedForms
from ulam.passes.loops.linear_rows import Copier, Environment
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.row_forms import RowForms
from ulam.passes.rewriting import cloned, discard, replace_uses


@record
class FormRows:
    """Writes the loop over reduced rows."""

    found: RowForms
    values: FormValues
    reduced: ReducedForms
    _fixed: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    """What stands ahead of it, of what all rows do alike."""

    def write(self, write: OpWriter) -> tuple[SSAValue, ...]:
        """What it leaves behind."""
        copies: dict[SSAValue, SSAValue] = {}
        for op in self.found.fixed:
            self._fixed[op] = cloned(op, copies)
            write.before(self._fixed[op])
        self.values.write(self.reduced, self._copier(), write)
        loop = self.found.loop
        copied: dict[SSAValue, SSAValue] = {}
        new = cloned(loop, copied)
        new.operands = [write.whole(0), self.reduced.rows, write.whole(1), *new.iter_args]
        same_ops = dict(zip(ops_within(loop), ops_within(new), strict=True))
        begin = new.body.block.first_op
        assert begin is not None
        self._begin_row(new.body.block.args[0], write, OpWriter(begin))
        write.before(new)
        for op, ahead in self._fixed.items():
            for result, other in zip(same_ops[op].results, ahead.results, strict=True):
                replace_uses(result, other)
        for op in (*reversed(self._fixed), *self.found.holding):
            discard(same_ops[op])
        terminator(new.body.block).operands = new.body.block.args[1:]  # flags, which stay 0
        for op, position, lack in self.found.missing:
            self._complete(same_ops[op], position, lack)
        for combination in self.values.combinations:
            self._replace(combination, copied)
        return tuple(new.results)

    def _begin_row(self, row: SSAValue, ahead: OpWriter, write: OpWriter) -> None:
        """Finds the number 1 of a row: that of the first one, or of a group's."""
        self._row = row
        if self.values.columns.keys:
            self._first = write.put(rt.LoadOp(self.reduced.table, row))
            self._count = write.real(arith.MulfOp, self._first, self._first)
            self._is_first = write.compare("une", self._first, 0.0)
        else:
            self._is_first = write.compare_integers("eq", row, write.whole(0))
            self._first = ahead.put(rt.LoadOp(self.reduced.table, ahead.whole(0)))
            self._count = ahead.put(arith.SIToFPOp.create(operands=[self.reduced.count], result_types=[f64]))

    def _copier(self) -> Copier:
        """What stays is what the loop as it was finds."""
        return Copier(lambda value: not is_inside(value, self.found.loop))

    def _complete(self, op: Operation, position: int, lack: int) -> None:
        """Multiplies an operand by the number 1 of the row, or its square; other rows do not have it."""
        write, value = OpWriter(op), op.operands[position]
        factor = self._first if lack == 1 else self._count
        operands = [self._is_first, write.real(arith.MulfOp, value, factor), write.number(0.0)]
        found = write.put(arith.SelectOp.create(operands=operands, result_types=[f64]))
        op.operands = [found if n == position else operand for n, operand in enumerate(op.operands)]

    def _replace(self, combination: Combination, copied: dict[SSAValue, SSAValue]) -> None:
        env: Environment = {}
        for loop in inner_loops(combination.value, self.found.loop):
            variable = loop.body.block.args[0]
            env[variable] = copied[variable]
        old = copied[combination.value]
        replace_uses(old, self.values.load(combination, self._row, self._copier(), env, OpWriter.behind(old)))
