"""Writes what is linear in the numbers of reduced rows, of all rows at once.

    b[r, k] = sum over columns q of R[r, q] * c[k, q], for all rows r and numbers k

A kernel adds them up, where numbers may cancel in twice the digits (runtime/c/form_values.c). Of c it is handed
*entries*, those that are not 0: which columns they belong to is written when data are bound, the coefficients in each
evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.library.kernels import FORMS_ROWS
from ulam.library.records import record
from ulam.passes.loops.form_columns import Column, FormColumns, inner_loops, place_in, product_of
from ulam.passes.loops.linear_binding import row_coefficient, trips
from ulam.passes.loops.linear_rows import Copier, Environment, carry, new_loop
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.tables import Loops

_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)


@record
class FormPlan:
    """Memory that says which columns values have, as runtime/c/reduced_forms.h has it; its size; how many values."""

    memory: SSAValue
    size: SSAValue
    values: SSAValue


@record
class ReducedForms:
    """What `bind` leaves: how many rows there were and are, 0 if these are not used; columns; the table and its size;
    which columns values have. Where coefficients belong to groups: how many rows each has, ahead of the others; the
    least key, and how many there are.
    """

    count: SSAValue
    rows: SSAValue
    columns: SSAValue
    table: SSAValue
    size: SSAValue
    plan: FormPlan
    own: SSAValue
    low: SSAValue
    span: SSAValue


@record
class Entries:
    """What a term is of a value: an entry for each iteration of `loops`; `added`: those that its coefficients are added
    up over.
    """

    term: LinearTerm
    column: Column | None
    """None: the number 1."""
    loops: Loops
    added: Loops

    @property
    def is_keyed(self) -> bool:
        """Whether each group has a coefficient."""
        return self.term.key is not None

    def plus(self, total: SSAValue | None, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        """A sum with the coefficient of an iteration."""
        term = self.term
        found = copier.product(term.leaf, env, write)
        if self.column is None and (term.data or term.divisors):
            data = row_coefficient(term, copier, env, write)
            found = data if found is None else write.real(arith.MulfOp, found, data)
        found = write.number(1.0) if found is None else found
        if total is not None:
            operation = arith.SubfOp if term.negative else arith.AddfOp
            return write.real(operation, total, found, reassociate=bool(term.loops))
        return write.put(arith.NegfOp.create(operands=[found], result_types=[f64])) if term.negative else found


@record
class Combination:
    """A value of first degree, another one in each iteration of some loops inside of the row."""

    value: SSAValue
    loops: Loops
    entries: list[Entries]


@record
class _Places:
    """Where the entries of a value are, of each kind: where they begin, and how many there are for each iteration."""

    first_value: SSAValue
    trips: list[SSAValue]
    starts: dict[bool, SSAValue]
    each: dict[bool, SSAValue]
    offsets: list[SSAValue]
    """Of each term, among those of an iteration."""
    inner_trips: list[list[SSAValue]]


@record
class FormValues:
    """The values of first degree that others are computed of. Raises Unfit if data do not say how many there are."""

    columns: FormColumns
    combinations: list[Combination] = field(default_factory=list[Combination])

    def __post_init__(self) -> None:
        linear = self.columns.found.linear
        owners = {value.owner for value in linear}
        for value in linear:
            if any(use.operation not in owners for use in value.uses):
                self.combinations.append(self._combination(value))

    def _combination(self, value: SSAValue) -> Combination:
        columns, entries = self.columns, list[Entries]()
        variables = frozenset[SSAValue]()
        for term in columns.found.linear[value]:
            column = (term.data, term.divisors) if columns.is_of_rows(term) else None
            of_column = () if column is None else columns.columns[column]
            loops = tuple(loop for loop in term.loops if loop in of_column)
            added = tuple(loop for loop in term.loops if loop not in of_column)
            bounds = tuple(bound for loop in added for bound in (loop.lb, loop.ub))
            variables |= columns.variables_of((*term.data, *term.divisors, *term.leaf, *bounds))
            entries.append(Entries(term, column, loops, added))
        around = inner_loops(value, columns.found.loop)
        loops = tuple(loop for loop in around if loop.body.block.args[0] in variables)
        columns.require_data(loops)
        return Combination(value, loops, entries)

    # ------------------------------------------------------------ when data are bound

    def write_plan(self, copier: Copier, write: OpWriter) -> FormPlan:
        """Writes which columns values have."""
        self._places = dict[SSAValue, _Places]()
        self._count = write.whole(0)
        self._totals = {kind: write.whole(0) for kind in (False, True)}
        for combination in self.combinations:
            self._places[combination.value] = self._place(combination, copier, write)
        behind = write.put(integer(arith.AddiOp, self._count, write.whole(1)))
        columns = write.put(integer(arith.AddiOp, behind, behind))
        of_groups = write.put(integer(arith.AddiOp, columns, self._totals[False]))
        size = write.put(integer(arith.AddiOp, of_groups, self._totals[True]))
        plan = FormPlan(write.put(rt.AllocOp(size, _INTEGERS)), size, self._count)
        first_starts = {False: write.whole(0), True: behind}
        first_columns = {False: columns, True: of_groups}
        for combination in self.combinations:
            self._write_columns(combination, plan.memory, first_starts, first_columns, copier, write)
        for kind, first in first_starts.items():
            end = write.put(integer(arith.AddiOp, first, self._count))
            write.before(rt.StoreOp(self._totals[kind], plan.memory, end))
        return plan

    def _place(self, combination: Combination, copier: Copier, write: OpWriter) -> _Places:
        """Puts a value behind those before."""
        each = {kind: write.whole(0) for kind in (False, True)}
        offsets, inner_trips = list[SSAValue](), list[list[SSAValue]]()
        for entries in combination.entries:
            offsets.append(each[entries.is_keyed])
            inner_trips.append([trips(loop, copier, write) for loop in entries.loops])
            more = product_of(inner_trips[-1], write)
            each[entries.is_keyed] = write.put(integer(arith.AddiOp, each[entries.is_keyed], more))
        outer_trips = [trips(loop, copier, write) for loop in combination.loops]
        found = _Places(self._count, outer_trips, dict(self._totals), each, offsets, inner_trips)
        iterations = product_of(outer_trips, write)
        self._count = write.put(integer(arith.AddiOp, self._count, iterations))
        for kind, number in each.items():
            more = write.put(integer(arith.MuliOp, iterations, number))
            self._totals[kind] = write.put(integer(arith.AddiOp, self._totals[kind], more))
        return found

    def _write_columns(
        self, combination: Combination, plan: SSAValue, first_starts: dict[bool, SSAValue],
        first_columns: dict[bool, SSAValue], copier: Copier, write: OpWriter,
    ) -> None:  # fmt: skip
        places = self._places[combination.value]
        env, inside = _inside(combination.loops, copier, {}, write)
        at = place_in(combination.loops, places.trips, copier, env, inside)
        number = inside.put(integer(arith.AddiOp, places.first_value, at))
        begins = {kind: self._begin(places, kind, at, inside) for kind in (False, True)}
        for kind, begin in begins.items():
            index = inside.put(integer(arith.AddiOp, first_starts[kind], number))
            inside.before(rt.StoreOp(begin, plan, index))
        for n, entries in enumerate(combination.entries):
            known, innermost = _inside(entries.loops, copier, env, inside)
            column = innermost.whole(0)
            if entries.column is not None:
                column = self.columns.place(entries.column, copier, known, innermost)
            entry = self._entry(places, n, entries, begins, copier, known, innermost)
            index = innermost.put(integer(arith.AddiOp, first_columns[entries.is_keyed], entry))
            innermost.before(rt.StoreOp(column, plan, index))

    def _begin(self, places: _Places, kind: bool, at: SSAValue, write: OpWriter) -> SSAValue:
        """The first entry of an iteration."""
        before = write.put(integer(arith.MuliOp, at, places.each[kind]))
        return write.put(integer(arith.AddiOp, places.starts[kind], before))

    def _entry(
        self, places: _Places, n: int, entries: Entries, begins: dict[bool, SSAValue], copier: Copier,
        env: Environment, write: OpWriter,
    ) -> SSAValue:  # fmt: skip
        """The number of an entry of the n-th term."""
        first = write.put(integer(arith.AddiOp, begins[entries.is_keyed], places.offsets[n]))
        return write.put(
            integer(arith.AddiOp, first, place_in(entries.loops, places.inner_trips[n], copier, env, write))
        )

    # ------------------------------------------------------------ in evaluations

    def write(self, reduced: ReducedForms, copier: Copier, write: OpWriter) -> None:
        """Computes the values of all rows."""
        room = write.put(integer(arith.MuliOp, self._totals[True], reduced.span))
        if self.columns.keys:
            room = write.put(integer(arith.AddiOp, room, write.whole(FORMS_ROWS)))
        shared = write.put(rt.AllocOp(self._totals[False], _REALS))
        keyed = write.put(rt.AllocOp(room, _REALS, zero=True))
        for combination in self.combinations:
            self._write_coefficients(combination, reduced, shared, keyed, copier, write)
        size = write.put(integer(arith.MuliOp, reduced.rows, self._count))
        self._found = write.put(rt.AllocOp(size, _REALS))
        sizes = (reduced.size, reduced.plan.size, self._totals[False], room)
        numbers = (self._count, reduced.columns, reduced.rows, reduced.own, reduced.span)
        arguments = (reduced.table, reduced.plan.memory, shared, keyed, *sizes, *numbers, self._found)
        write.before(rt.KernelOp("form_values", arguments, location=self.columns.found.loop.location))

    def _write_coefficients(
        self, combination: Combination, reduced: ReducedForms, shared: SSAValue, keyed: SSAValue, copier: Copier,
        write: OpWriter,
    ) -> None:  # fmt: skip
        places = self._places[combination.value]
        env, inside = _inside(combination.loops, copier, {}, write)
        at = place_in(combination.loops, places.trips, copier, env, inside)
        begins = {kind: self._begin(places, kind, at, inside) for kind in (False, True)}
        for n, entries in enumerate(combination.entries):
            known, innermost = _inside(entries.loops, copier, env, inside)
            entry = self._entry(places, n, entries, begins, copier, known, innermost)
            if not entries.is_keyed:
                value = _coefficient(entries, copier, known, innermost)
                innermost.before(rt.StoreOp(value, shared, entry, initial=True))
                continue
            first = innermost.put(integer(arith.MuliOp, entry, reduced.span))
            group, of_group = new_loop(innermost, innermost.whole(0), reduced.span)
            key = of_group.put(integer(arith.AddiOp, reduced.low, group))
            value = _coefficient(entries, copier, {**known, **dict.fromkeys(self.columns.keys, key)}, of_group)
            index = of_group.put(integer(arith.AddiOp, first, group))
            of_group.before(rt.StoreOp(value, keyed, index, initial=True))

    def load(
        self, combination: Combination, row: SSAValue, copier: Copier, env: Environment, write: OpWriter
    ) -> SSAValue:
        """A value of a reduced row, by the variables of the loops inside of the row."""
        places = self._places[combination.value]
        at = place_in(combination.loops, places.trips, copier, env, write)
        first = write.put(integer(arith.MuliOp, row, self._count))
        first = write.put(integer(arith.AddiOp, first, places.first_value))
        return write.put(rt.LoadOp(self._found, write.put(integer(arith.AddiOp, first, at))))


def _inside(loops: Loops, copier: Copier, env: Environment, write: OpWriter) -> tuple[Environment, OpWriter]:
    """What is known inside of a nest, and a writer there."""
    known = dict(env)
    for loop in loops:
        known, write = copier.loop(loop, known, write)
    return known, write


def _coefficient(entries: Entries, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
    """The coefficient of an entry."""
    if not entries.added:
        return entries.plus(None, copier, dict(env), write)

    def step(known: Environment, inside: OpWriter, total: SSAValue) -> SSAValue:
        return entries.plus(total, copier, known, inside)

    return sum_over(entries.added, copier, env, write, write.number(0.0), step)


def sum_over(
    loops: Sequence[scf.ForOp],
    copier: Copier,
    env: Environment,
    write: OpWriter,
    start: SSAValue,
    step: Callable[[Environment, OpWriter, SSAValue], SSAValue],
) -> SSAValue:
    """A sum over the iterations of loops: `step` gives it of the one so far."""
    known, inside, sums = dict(env), write, [start]
    writers: list[OpWriter] = []
    for loop in loops:
        lower, upper = copier.value(loop.lb, known, inside), copier.value(loop.ub, known, inside)
        variable, inside = new_loop(inside, lower, upper, [sums[-1]])
        known = {**known, loop.body.block.args[0]: variable}
        sums.append(inside.anchor.operands[0])
        writers.append(inside)
    found = step(known, inside, sums[-1])
    for inner in reversed(writers):
        found = carry(inner, found)
    return found
