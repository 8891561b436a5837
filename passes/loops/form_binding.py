"""Writes the reduction of rows of which quadratic forms are added up, for `bind`."""

from __future__ import annotations

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.kernels import FORMS_SIZES, FORMS_STATE
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of
from ulam.passes.loops.coalesced_rows import claim
from ulam.passes.loops.form_columns import Column, FormColumns
from ulam.passes.loops.form_values import FormValues, ReducedForms
from ulam.passes.loops.linear_binding import branches_around, module_of, row_coefficient, trips, write_arm
from ulam.passes.loops.linear_rows import Copier, Environment, new_loop
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.unit_modules import take_slots

_REASONS = (
    "data that are not finite, or differ too much in size",
    "reduced rows would not be less work",
)  # in the order of row_forms.c
OF_KERNELS, OF_NUMBERS, OF_COMPONENTS = 5, 16, 32
"""Quarters."""
_FIGURES = ("rows", "columns", "bytes")
_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)


@record
class FormBinding:
    """The reduction of rows with these columns, of which evaluations need these values."""

    columns: FormColumns
    values: FormValues
    top: Block
    has_components: bool = False
    """Whether its rows are those of a nest over components, which LLVM widens row by row."""

    def write(self, write: OpWriter) -> ReducedForms:
        """Writes what evaluations then find: of data alone, `hoist-data` moves it."""
        loop = self.columns.found.loop
        copier = Copier(lambda value: block_of(value) is self.top)
        count, own = self.columns.write_places(copier, write)
        plan = self.values.write_plan(copier, write)
        known = write.put(rt.AllocOp(write.whole(1), _INTEGERS, zero=True))
        arm, env = self._arm(copier, write)
        arm.before(rt.StoreOp(trips(loop, copier, arm, env), known, arm.whole(0)))
        rows = write.put(rt.LoadOp(known, write.whole(0)))
        state = write.put(rt.AllocOp(write.whole(FORMS_STATE), _INTEGERS))
        quarters = write.whole(self._least_gain())
        write.before(rt.KernelOp("forms_begin", (state, count, rows, own, quarters)))
        row = write.put(rt.AllocOp(count, _REALS, zero=True))
        write.before(rt.StoreOp(write.number(1.0), row, write.whole(0)))
        n, turn = new_loop(write, write.whole(0), write.put(rt.LoadOp(state, write.whole(0))))
        again = write_arm(turn, turn.compare_integers("slt", n, turn.put(rt.LoadOp(state, turn.whole(0)))))
        inside, env = self._arm(copier, again)
        env, inside = copier.loop(loop, env, inside)
        for column in self.columns.columns:
            self._write_column(column, copier, env, inside, row)
        key = copier.value(self.columns.keys[0], env, inside) if self.columns.keys else inside.whole(0)
        inside.before(rt.KernelOp("forms_row", (state, state, row, count, key)))
        again.before(rt.KernelOp("forms_turn", (state, state, plan.memory, plan.size, plan.values)))
        sizes = write.put(rt.AllocOp(write.whole(FORMS_SIZES), _INTEGERS))
        write.before(rt.KernelOp("forms_sizes", (state, sizes)))
        found = [write.put(rt.LoadOp(sizes, write.whole(n))) for n in range(FORMS_SIZES)]
        (outcome, left, size), figures, (low, span) = found[:3], found[3:-2], found[-2:]
        slot = take_slots(module_of(loop), 1 + len(_FIGURES))
        layout = rt.LayoutOp("reduced rows", slot, _REASONS, _FIGURES, outcome, figures, location=loop.location)
        claim(layout, loop)
        write.before(layout)
        table = write.put(rt.AllocOp(size, _REALS))
        write.before(rt.KernelOp("forms_table", (state, table, size)))
        return ReducedForms(rows, left, count, table, size, plan, own, low, span)

    def _least_gain(self) -> int:
        """Of how many quarters of the rows that are left rows are reduced: what a kernel does for a row takes longer
        than arithmetic that LLVM widens.
        """
        if any(isinstance(op, rt.KernelOp) for op in ops_within(self.columns.found.loop)):
            return OF_KERNELS
        return OF_COMPONENTS if self.has_components else OF_NUMBERS

    def _arm(self, copier: Copier, write: OpWriter) -> tuple[OpWriter, Environment]:
        """The branches around the loop; a writer inside, and what is known there."""
        env: Environment = {}
        for branch, arm in branches_around(self.columns.found.loop, self.top):
            write, env = write_arm(write, copier.value(branch.cond, env, write), arm), dict(env)
        return write, env

    def _write_column(self, column: Column, copier: Copier, env: Environment, write: OpWriter, row: SSAValue) -> None:
        known, inside = dict(env), write
        for loop in self.columns.columns[column]:
            known, inside = copier.loop(loop, known, inside)
        data, divisors = column
        value = row_coefficient(LinearTerm(data=data, divisors=divisors), copier, known, inside)
        inside.before(rt.StoreOp(value, row, self.columns.place(column, copier, known, inside)))
