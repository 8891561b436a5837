"""Writes a loop over reduced rows, as the loop over all rows is, in one of two ways.

Where numbers hardly cancel in what is linear in them, it computes that row by row:

    for r: b[k] = R[r, 0] * (c[k] + sum over q of m[q] * c[k, q]) + sum over q of R[r, q] * c[k, q]

with R less the means m of columns q.

Else a kernel has done so for all rows, in twice the digits (`form_values`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.form_columns import inner_loops
from ulam.passes.loops.form_values import Combination, Entries, FormValues, ReducedForms, sum_over
from ulam.passes.loops.linear_rows import Copier, Environment
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_forms import RowForms
from ulam.passes.rewriting import cloned, discard, replace_uses


@record
class FormRows:
    """Writes the loops over reduced rows, of which one runs."""

    found: RowForms
    values: FormValues
    reduced: ReducedForms
    _fixed: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])

    def write(self, write: OpWriter) -> tuple[SSAValue, ...]:
        """What they leave behind."""
        copies: dict[SSAValue, SSAValue] = {}
        for op in self.found.fixed:
            self._fixed[op] = cloned(op, copies)
            write.before(self._fixed[op])
        result_types = [result.type for result in self.found.loop.results]
        ends = [scf.YieldOp.create(), scf.YieldOp.create()]
        arms = [Region(Block([end])) for end in ends]
        is_twofold = write.compare_integers("ne", self.reduced.is_twofold, write.whole(0))
        branch = scf.IfOp.create(operands=[is_twofold], result_types=result_types, regions=arms)
        write.before(branch)
        for end, kind in zip(ends, (_TwofoldRows, _PlainRows), strict=True):
            end.operands = kind(self.found, self.values, self.reduced, self._fixed).write(OpWriter(end)).results
        return tuple(branch.results)


@record
class _Rows(ABC):
    """Writes a loop over reduced rows. `fixed`: what stands ahead of it, of what all rows do alike."""

    found: RowForms
    values: FormValues
    reduced: ReducedForms
    fixed: dict[Operation, Operation]

    def write(self, write: OpWriter) -> scf.ForOp:
        """Writes it; what it leaves behind are its results."""
        loop = self.found.loop
        copied: dict[SSAValue, SSAValue] = {}
        new = cloned(loop, copied)
        new.operands = [write.whole(0), self.reduced.rows, write.whole(1), *new.iter_args]
        same_ops = dict(zip(ops_within(loop), ops_within(new), strict=True))
        begin = new.body.block.first_op
        assert begin is not None
        self.begin_row(new.body.block.args[0], write, OpWriter(begin))
        write.before(new)
        for op, ahead in self.fixed.items():
            for result, other in zip(same_ops[op].results, ahead.results, strict=True):
                replace_uses(result, other)
        for op in (*reversed(self.fixed), *self.found.holding):
            discard(same_ops[op])
        terminator(new.body.block).operands = new.body.block.args[1:]  # flags, which stay 0
        for op, position, lack in self.found.missing:
            self._complete(same_ops[op], position, lack)
        for combination in self.values.combinations:
            self._replace(combination, copied)
        return new

    @abstractmethod
    def begin_row(self, row: SSAValue, ahead: OpWriter, write: OpWriter) -> None:
        """Writes what is ahead of all rows, and finds the number 1 of a row: that of the first one, or of a group's."""

    @abstractmethod
    def value(self, combination: Combination, env: Environment, write: OpWriter) -> SSAValue:
        """A value of first degree, by the variables of the loops inside of the row."""

    def set_first(self, place: SSAValue, row: SSAValue, ahead: OpWriter, write: OpWriter) -> None:
        """Loads the number 1."""
        if self.values.columns.keys:
            self._first = write.put(rt.LoadOp(self.reduced.table, place))
            self._count = write.real(arith.MulfOp, self._first, self._first)
            self._is_first = write.compare("une", self._first, 0.0)
        else:
            self._is_first = write.compare_integers("eq", row, write.whole(0))
            self._first = ahead.put(rt.LoadOp(self.reduced.table, ahead.whole(0)))
            self._count = ahead.put(arith.SIToFPOp.create(operands=[self.reduced.count], result_types=[f64]))

    def of_first_row(self, value: SSAValue, write: OpWriter) -> SSAValue:
        """A value, which other rows do not have."""
        operands = [self._is_first, value, write.number(0.0)]
        return write.put(arith.SelectOp.create(operands=operands, result_types=[f64]))

    def copier(self) -> Copier:
        """What stays is what the loop as it was finds."""
        return Copier(lambda value: not is_inside(value, self.found.loop))

    def _complete(self, op: Operation, position: int, lack: int) -> None:
        """Multiplies an operand by the number 1 of the row, or its square."""
        write, value = OpWriter(op), op.operands[position]
        factor = self._first if lack == 1 else self._count
        found = self.of_first_row(write.real(arith.MulfOp, value, factor), write)
        op.operands = [found if n == position else operand for n, operand in enumerate(op.operands)]

    def _replace(self, combination: Combination, copied: dict[SSAValue, SSAValue]) -> None:
        env: Environment = {}
        for loop in inner_loops(combination.value, self.found.loop):
            variable = loop.body.block.args[0]
            env[variable] = copied[variable]
        old = copied[combination.value]
        replace_uses(old, self.value(combination, env, OpWriter.behind(old)))


@record
class _TwofoldRows(_Rows):
    """By a kernel."""

    def begin_row(self, row: SSAValue, ahead: OpWriter, write: OpWriter) -> None:
        """The values of all rows are computed ahead; the first column is at the begin of the table."""
        self.values.write(self.reduced, self.copier(), ahead)
        self._row = row
        self.set_first(row, row, ahead, write)

    def value(self, combination: Combination, env: Environment, write: OpWriter) -> SSAValue:
        """What the kernel has computed."""
        return self.values.load(combination, self._row, self.copier(), env, write)


@record
class _PlainRows(_Rows):
    """Row by row."""

    def begin_row(self, row: SSAValue, ahead: OpWriter, write: OpWriter) -> None:
        """A row begins with the number 1; those of groups are key by key."""
        self._start = write.put(integer(arith.MuliOp, row, self.reduced.columns))
        self.set_first(self._start, row, ahead, write)
        self._keys: Environment = {}
        if keys := self.values.columns.keys:
            reduced = self.reduced
            of_groups = write.put(integer(arith.MuliOp, reduced.own, reduced.span))
            is_of_group = write.compare_integers("slt", row, of_groups)
            group = write.put(arith.DivSIOp.create(operands=[row, reduced.own], result_types=[i64]))
            chosen = [is_of_group, group, write.whole(0)]
            group = write.put(arith.SelectOp.create(operands=chosen, result_types=[i64]))
            self._keys = dict.fromkeys(keys, write.put(integer(arith.AddiOp, reduced.low, group)))

    def value(self, combination: Combination, env: Environment, write: OpWriter) -> SSAValue:
        """The sum of its terms: with what rows have in the mean, and what a row has besides."""
        known = {**env, **self._keys}
        centre, rest = None, None
        for entries in combination.entries:
            centre = self._plus(centre, entries, self.reduced.means, known, write, only_if=self._is_first)
            if entries.column is not None:
                rest = self._plus(rest, entries, self._start, known, write)
        assert centre is not None
        found = self.of_first_row(write.real(arith.MulfOp, centre, self._first), write)
        return found if rest is None else write.real(arith.AddfOp, found, rest)

    def _plus(
        self, total: SSAValue | None, entries: Entries, begin: SSAValue, env: Environment, write: OpWriter,
        *, only_if: SSAValue | None = None,
    ) -> SSAValue:  # fmt: skip
        """Adds a term, with numbers that begin somewhere in the table."""
        copier = self.copier()

        def step(known: Environment, inside: OpWriter, sum_: SSAValue | None) -> SSAValue:
            number: SSAValue | None = None
            if entries.column is not None:
                at = self.values.columns.place(entries.column, copier, known, inside)
                number = inside.put(rt.LoadOp(self.reduced.table, inside.put(integer(arith.AddiOp, begin, at))))
            return entries.plus(sum_, number, copier, known, inside)

        if not entries.term.loops:
            return step(dict(env), write, total)
        start = write.number(0.0) if total is None else total
        return sum_over(entries.term.loops, copier, env, write, start, step, only_if)
