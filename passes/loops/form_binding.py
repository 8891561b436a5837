"""Writes the reduction of rows of which quadratic forms are added up, for `bind`."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, SSAValue

from ulam.dialects import rt
from ulam.library.kernels import FORMS_SIZES, FORMS_STATE
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside
from ulam.passes.loops.affine_rows import LinearTerm
from ulam.passes.loops.coalesced_rows import claim
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.linear_binding import branches_around, module_of, row_coefficient, trips, write_arm
from ulam.passes.loops.linear_rows import Copier, Environment, Loops, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_forms import RowForms, Unfit, are_alike
from ulam.passes.loops.unit_modules import take_slots

_REASONS = (
    "data that are not finite, or differ too much in size",
    "reduced rows would not be less work",
    "large numbers cancel each other, in each row more exactly",
)  # in the order of row_forms.c
_FIGURES = ("rows", "columns", "bytes")
_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)
_Column = tuple[tuple[SSAValue, ...], tuple[SSAValue, ...]]
"""A number of each row: factors, and divisors."""


@record
class ReducedForms:
    """What `bind` leaves: how many rows there were and are, 0 if these are not used; columns; the table, and where the
    means are in it. Where coefficients belong to groups: how many rows each has, ahead of the others; the least key,
    and how many keys there are.
    """

    count: SSAValue
    rows: SSAValue
    columns: SSAValue
    table: SSAValue
    means: SSAValue
    own: SSAValue
    low: SSAValue
    span: SSAValue


def inner_loops(value: SSAValue, outer: scf.ForOp) -> list[scf.ForOp]:
    """The loops between a loop and a value, the outermost first; none if it is not inside."""
    found: list[scf.ForOp] = []
    if not is_inside(value, outer):
        return found
    block = block_of(value)
    current = None if block is None else block.parent_op()
    while current is not None and current is not outer:
        assert isinstance(current, scf.ForOp)
        found.append(current)
        current = current.parent_op()
    return found[::-1]


@record
class FormBinding:
    """The columns of the data that rows are made of. Raises Unfit if these cannot be computed ahead."""

    found: RowForms
    top: Block
    slices: DataSlices
    columns: dict[_Column, Loops] = field(default_factory=dict[_Column, Loops])
    """Each with the loops in each iteration of which there is another one; those of coefficients of groups first."""
    keys: list[SSAValue] = field(default_factory=list[SSAValue])
    """What chooses the group of a row: values that are computed alike."""

    def __post_init__(self) -> None:
        own: set[_Column] = set()
        for value, terms in self.found.linear.items():
            for term in terms:
                if term.moved:
                    raise Unfit("what it reads is filled by the number of the row")
                if term.key is not None:
                    self._add_key(term.key)
                    own.add((term.data, term.divisors))
                if self.is_of_rows(term):
                    loops = self.loops_of((*term.data, *term.divisors), value, term)
                    if not all(self.slices.is_data(bound) for loop in loops for bound in (loop.lb, loop.ub)):
                        raise Unfit("how many numbers a row has depends on parameters")
                    if any(map(self._varies_inside, loops)):
                        raise Unfit("an inner loop has other ends in each iteration of one around it")
                    self.columns[term.data, term.divisors] = loops
        if not self.columns:
            raise Unfit("its rows have no data")
        for checked in self.found.checked.values():
            for term in checked:
                if term.key is not None:
                    self._add_key(term.key)
        self.columns = dict(sorted(self.columns.items(), key=lambda item: item[0] not in own))
        self._own = [column for column in self.columns if column in own]

    def _add_key(self, key: SSAValue) -> None:
        """Notes a value that chooses the group of a row."""
        if key in self.keys:
            return
        facts = self.found.nest.facts(key)
        if facts is None or not facts.variables <= {self.found.loop.body.block.args[0]}:
            raise Unfit("a row has coefficients of several groups")
        if self.keys and not are_alike(key, self.keys[0], self.found.loop):
            raise Unfit("rows have coefficients of several groups")
        self.keys.append(key)

    def summary(self) -> str:
        """How many columns there are, for remarks."""
        looped = sum(bool(loops) for loops in self.columns.values())
        groups = f", {len(self._own)} of them by group" if self.keys else ""
        return f"{len(self.columns) - looped} columns, and {looped} of loops{groups}"

    def is_of_rows(self, term: LinearTerm) -> bool:
        """Whether the data of a term are other ones in each row."""
        nest = self.found.nest
        return not all(nest.is_shared(value) for value in (*term.data, *term.divisors))

    def _varies_inside(self, loop: scf.ForOp) -> bool:
        """Whether a loop has other ends in other rows, or in other iterations of a loop inside of a row."""
        return any(facts is None or facts.variables for facts in map(self.found.nest.facts, (loop.lb, loop.ub)))

    def loops_of(self, values: tuple[SSAValue, ...], user: SSAValue, term: LinearTerm) -> Loops:
        """The loops inside of a row that values depend on, which stand for a term of `user`."""
        variables = frozenset[SSAValue]()
        for value in values:
            facts = self.found.nest.facts(value)
            assert facts is not None
            variables |= facts.variables
        loops = (*inner_loops(user, self.found.loop), *term.loops)
        return tuple(loop for loop in loops if loop.body.block.args[0] in variables)

    def place(self, column: _Column, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        """Where a number stands in a row."""
        at = write.whole(0)
        for loop, trip in zip(self.columns[column], self._trips[column], strict=True):
            lower = copier.value(loop.lb, env, write)
            inner = write.put(integer(arith.SubiOp, env[loop.body.block.args[0]], lower))
            at = write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, at, trip)), inner))
        return write.put(integer(arith.AddiOp, at, self._starts[column]))

    def write(self, write: OpWriter) -> ReducedForms:
        """Writes what evaluations then find: of data alone, `hoist-data` moves it."""
        loop = self.found.loop
        copier = Copier(lambda value: block_of(value) is self.top)
        self._trips: dict[_Column, list[SSAValue]] = {}
        self._starts: dict[_Column, SSAValue] = {}
        own, count = write.whole(0), write.whole(1)
        for column, loops in self.columns.items():
            self._starts[column] = count
            self._trips[column] = [trips(inner, copier, write) for inner in loops]
            size = write.whole(1)
            for trip in self._trips[column]:
                size = write.put(integer(arith.MuliOp, size, trip))
            count = write.put(integer(arith.AddiOp, count, size))
            own = count if column in self._own else own
        if self.keys and not self._own:
            own = write.whole(1)  # the number 1
        known = write.put(rt.AllocOp(write.whole(1), _INTEGERS, zero=True))
        arm, env = self._arm(copier, write)
        arm.before(rt.StoreOp(trips(loop, copier, arm, env), known, arm.whole(0)))
        rows = write.put(rt.LoadOp(known, write.whole(0)))
        state = write.put(rt.AllocOp(write.whole(FORMS_STATE), _INTEGERS))
        write.before(rt.KernelOp("forms_begin", (state, count, rows, own)))
        row = write.put(rt.AllocOp(count, _REALS, zero=True))
        write.before(rt.StoreOp(write.number(1.0), row, write.whole(0)))
        n, turn = new_loop(write, write.whole(0), write.put(rt.LoadOp(state, write.whole(0))))
        again = write_arm(turn, turn.compare_integers("slt", n, turn.put(rt.LoadOp(state, turn.whole(0)))))
        inside, env = self._arm(copier, again)
        env, inside = copier.loop(loop, env, inside)
        for column in self.columns:
            self._write_column(column, copier, env, inside, row)
        key = copier.value(self.keys[0], env, inside) if self.keys else inside.whole(0)
        inside.before(rt.KernelOp("forms_row", (state, state, row, count, key)))
        again.before(rt.KernelOp("forms_turn", (state, state)))
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
        means = write.put(integer(arith.MuliOp, left, count))
        return ReducedForms(rows, left, count, table, means, own, low, span)

    def _arm(self, copier: Copier, write: OpWriter) -> tuple[OpWriter, Environment]:
        """The branches around the loop; a writer inside, and what is known there."""
        env: Environment = {}
        for branch, arm in branches_around(self.found.loop, self.top):
            write, env = write_arm(write, copier.value(branch.cond, env, write), arm), dict(env)
        return write, env

    def _write_column(self, column: _Column, copier: Copier, env: Environment, write: OpWriter, row: SSAValue) -> None:
        known, inside = dict(env), write
        for loop in self.columns[column]:
            known, inside = copier.loop(loop, known, inside)
        data, divisors = column
        value = row_coefficient(LinearTerm(data=data, divisors=divisors), copier, known, inside)
        inside.before(rt.StoreOp(value, row, self.place(column, copier, known, inside)))
