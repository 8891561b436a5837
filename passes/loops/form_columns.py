"""Which numbers rows are made of whose quadratic forms are added up: the number 1, and columns of data."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.linear_binding import trips
from ulam.passes.loops.linear_rows import Copier, Environment
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_forms import RowForms, Unfit, are_alike
from ulam.passes.loops.tables import Loops

Column = tuple[tuple[SSAValue, ...], tuple[SSAValue, ...]]
"""A number of each row: factors, and divisors."""


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
class FormColumns:
    """The columns of the data that rows are made of. Raises Unfit if these cannot be computed ahead."""

    found: RowForms
    slices: DataSlices
    columns: dict[Column, Loops] = field(default_factory=dict[Column, Loops])
    """Each with the loops in each iteration of which there is another one; those of coefficients of groups first."""
    keys: list[SSAValue] = field(default_factory=list[SSAValue])
    """What chooses the group of a row: values that are computed alike."""

    def __post_init__(self) -> None:
        own: set[Column] = set()
        for value, terms in self.found.linear.items():
            for term in terms:
                if term.moved:
                    raise Unfit("what it reads is filled by the number of the row")
                if term.key is not None:
                    self._add_key(term.key)
                    own.add((term.data, term.divisors))
                if self.is_of_rows(term):
                    loops = self.loops_of((*term.data, *term.divisors), value, term)
                    self.require_data(loops)
                    self.columns[term.data, term.divisors] = loops
        if not self.columns:
            raise Unfit("its rows have no data")
        for checked in self.found.checked.values():
            for term in checked:
                if term.key is not None:
                    self._add_key(term.key)
        self.columns = dict(sorted(self.columns.items(), key=lambda item: item[0] not in own))
        self.own = [column for column in self.columns if column in own]

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

    def require_data(self, loops: Loops) -> None:
        """Raises where data alone do not say how often loops run, or not once for all."""
        if not all(self.slices.is_data(bound) for loop in loops for bound in (loop.lb, loop.ub)):
            raise Unfit("how many numbers a row has depends on parameters")
        if any(self.variables_of((loop.lb, loop.ub)) for loop in loops):
            raise Unfit("an inner loop has other ends in each iteration of one around it")

    def summary(self) -> str:
        """How many columns there are, for remarks."""
        looped = sum(bool(loops) for loops in self.columns.values())
        groups = f", {len(self.own)} of them by group" if self.keys else ""
        return f"{len(self.columns) - looped} columns, and {looped} of loops{groups}"

    def is_of_rows(self, term: LinearTerm) -> bool:
        """Whether the data of a term are other ones in each row."""
        nest = self.found.nest
        return not all(nest.is_shared(value) for value in (*term.data, *term.divisors))

    def variables_of(self, values: tuple[SSAValue, ...]) -> frozenset[SSAValue]:
        """The variables of loops that values are computed from."""
        variables = frozenset[SSAValue]()
        for value in values:
            facts = self.found.nest.facts(value)
            assert facts is not None
            variables |= facts.variables
        return variables

    def loops_of(self, values: tuple[SSAValue, ...], user: SSAValue, term: LinearTerm) -> Loops:
        """The loops inside of a row that values depend on, which stand for a term of `user`."""
        variables = self.variables_of(values)
        loops = (*inner_loops(user, self.found.loop), *term.loops)
        return tuple(loop for loop in loops if loop.body.block.args[0] in variables)

    # ------------------------------------------------------------ where they are

    def write_places(self, copier: Copier, write: OpWriter) -> tuple[SSAValue, SSAValue]:
        """How many there are, and of how many, the first ones, groups have coefficients."""
        self._trips: dict[Column, list[SSAValue]] = {}
        self._starts: dict[Column, SSAValue] = {}
        own, count = write.whole(0), write.whole(1)
        for column, loops in self.columns.items():
            self._starts[column] = count
            self._trips[column] = [trips(inner, copier, write) for inner in loops]
            count = write.put(integer(arith.AddiOp, count, product_of(self._trips[column], write)))
            own = count if column in self.own else own
        if self.keys and not self.own:
            own = write.whole(1)  # the number 1
        return count, own

    def place(self, column: Column, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        """Where a number stands in a row."""
        at = place_in(self.columns[column], self._trips[column], copier, env, write)
        return write.put(integer(arith.AddiOp, at, self._starts[column]))


def place_in(
    loops: Loops, trips_of_loops: list[SSAValue], copier: Copier, env: Environment, write: OpWriter
) -> SSAValue:
    """How many iterations of a nest of loops are before one."""
    at = write.whole(0)
    for loop, trip in zip(loops, trips_of_loops, strict=True):
        lower = copier.value(loop.lb, env, write)
        inner = write.put(integer(arith.SubiOp, env[loop.body.block.args[0]], lower))
        at = write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, at, trip)), inner))
    return at


def product_of(numbers: list[SSAValue], write: OpWriter) -> SSAValue:
    """A product of integers."""
    found = write.whole(1)
    for number in numbers:
        found = write.put(integer(arith.MuliOp, found, number))
    return found
