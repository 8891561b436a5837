"""What the rows of a normal linear model are made of, for those that write their reduction and its use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.affine_rows import LinearTerm
from ulam.passes.loops.effects import PURE, UNKNOWN, Root, root, written_roots_within
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_scales import RowScales
from ulam.passes.rewriting import applied_to, cloned

MOST_STRAIGHT = 6
"""So many shared coefficients are combined without memory."""
Leaf = tuple[SSAValue, ...]
Loops = tuple[scf.ForOp, ...]
Environment = dict[SSAValue, SSAValue]


@record
class LinearColumns:
    """The coefficients of a sum of terms: shared ones, those of loops inside of rows, those of groups."""

    shared: dict[Leaf, int]
    looped: dict[Loops, dict[Leaf, int]]
    own: dict[Leaf, int]
    key: SSAValue | None
    """By which rows belong to groups."""
    chosen: dict[SSAValue, dict[Leaf, int]]
    """By each other key. Of these the coefficients are shared ones, of which a row has few."""

    @staticmethod
    def of(terms: Sequence[LinearTerm]) -> LinearColumns | str:
        """The columns of terms; why there are none that could be reduced."""
        found = LinearColumns({}, {}, {}, None, {})
        for term in terms:
            if not term.leaf:
                continue
            if term.key is not None:
                if term.loops:
                    return "a loop inside of rows reads coefficients of groups"
                leaves = found.chosen.setdefault(term.key, {})
            else:
                leaves = found.looped.setdefault(term.loops, {}) if term.loops else found.shared
            leaves.setdefault(term.leaf, len(leaves))
        if found.chosen:
            found.key = max(found.chosen, key=lambda key: len(found.chosen[key]))
            found.own = found.chosen.pop(found.key)
        return found if found.shared or found.looped or found.own else "it has no coefficients"

    @property
    def are_few(self) -> bool:
        """Whether the shared ones are combined without a kernel: where the program says how many there are. Those of
        groups add to each row of these."""
        return not (self.looped or self.chosen or (self.own and len(self.shared) > MOST_STRAIGHT))


@record
class Square:
    """A multiple of a square that rows add up: how it is made of what is squared."""

    steps: list[tuple[Operation, int]]
    terms: list[LinearTerm]
    columns: LinearColumns
    into: int | None = None
    """What it is added to: the result of the nest that is a sum, None for the target."""


@record
class SquareSums:
    """A nest of which nothing is needed but sums, of squares, of data and of what is the same in all rows.

    Of `constants` and `data`: with what they are added to, as that of a square.
    """

    loop: scf.ForOp
    around: list[scf.ForOp]
    squares: list[Square]
    constants: list[tuple[SSAValue, int | None]]
    fills: list[scf.ForOp]
    """Nests ahead that only fill what this one reads: reduced rows need them no more."""
    checked: list[LinearTerm]
    """What rows check besides what is squared: their data have to be moderate, too."""
    data: list[tuple[SSAValue, int | None]]
    scales: RowScales
    products: list[tuple[SSAValue, SSAValue, int | None]] = field(
        default_factory=list[tuple[SSAValue, SSAValue, "int | None"]]
    )
    """Of what is the same in all rows, each with data of the row that it is multiplied by."""

    @property
    def summed(self) -> list[SSAValue]:
        """The data that are added up: themselves, and those of products."""
        return [*(value for value, _ in self.data), *(value for _, value, _ in self.products)]

    @property
    def sums(self) -> list[int]:
        """The results that are sums."""
        every = (*((None, square.into) for square in self.squares), *self.constants, *self.data, *self.products)
        return sorted({into for *_, into in every if into is not None})

    def summary(self) -> str:
        """What becomes of it, for remarks."""
        parts: list[str] = []
        for square in self.squares:
            columns = square.columns
            shared = f"{len(columns.shared)} shared coefficients"
            looped = " and those of loops" if columns.looped else ""
            own = f", {len(columns.own)} per group" if columns.own else ""
            chosen = f", those of {len(columns.chosen)} other indices" if columns.chosen else ""
            parts.append(f"{shared}{looped}{own}{chosen}")
        return f"its rows are reduced when data are bound: {'; '.join(parts)}"


@record
class Copier:
    """Writes values once more, where those that `stays` accepts can be used as they are."""

    stays: Callable[[SSAValue], bool]

    def value(self, value: SSAValue, env: Environment, write: OpWriter) -> SSAValue:
        """A value, by what variables are in `env`."""
        if value in env:
            return env[value]
        if self.stays(value):
            return value
        op = value.owner
        assert isinstance(op, Operation), value
        if isinstance(op, scf.IfOp):
            return self._choice(op, value, env, write)
        assert not op.regions, value
        operands = [self.value(operand, env, write) for operand in op.operands]
        env[value] = write.put(applied_to(op, operands))
        return env[value]

    def _choice(self, op: scf.IfOp, value: SSAValue, env: Environment, write: OpWriter) -> SSAValue:
        known = {free: self.value(free, env, write) for free in free_values_of_op(op)}
        copy = cloned(op, known)
        write.before(copy)
        env.update(zip(op.results, copy.results, strict=True))
        return env[value]

    def product(self, factors: Sequence[SSAValue], env: Environment, write: OpWriter) -> SSAValue | None:
        """A product; None of nothing."""
        found: SSAValue | None = None
        for factor in factors:
            one = self.value(factor, env, write)
            found = one if found is None else write.real(arith.MulfOp, found, one)
        return found

    def loop(
        self, loop: scf.ForOp, env: Environment, write: OpWriter, only_if: SSAValue | None = None
    ) -> tuple[Environment, OpWriter]:
        """A loop over the same range, or over nothing: what is known inside, and a writer there."""
        lower, upper = self.value(loop.lb, env, write), self.value(loop.ub, env, write)
        if only_if is not None:
            upper = write.put(arith.SelectOp.create(operands=[only_if, upper, lower], result_types=[i64]))
        variable, inside = new_loop(write, lower, upper)
        return {**env, loop.body.block.args[0]: variable}, inside


def new_loop(
    write: OpWriter, lower: SSAValue, upper: SSAValue, start: Sequence[SSAValue] = ()
) -> tuple[SSAValue, OpWriter]:
    """A loop by steps of 1 that carries values; its variable, and a writer inside."""
    body = Block(arg_types=[i64, *(value.type for value in start)])
    end = scf.YieldOp.create(operands=list(body.args[1:]))
    body.add_op(end)
    one = write.whole(1)
    loop = scf.ForOp.create(
        operands=[lower, upper, one, *start], result_types=[value.type for value in start], regions=[Region(body)]
    )
    write.before(loop)
    return body.args[0], OpWriter(end)


def carry(inside: OpWriter, value: SSAValue) -> SSAValue:
    """Lets the loop of a writer carry a value; the loop's result."""
    end = inside.anchor
    end.operands = [value]
    loop = end.parent_op()
    assert loop is not None
    return loop.results[0]


@record
class Reduced:
    """What `bind` leaves of a square."""

    used: SSAValue
    by_kernel: SSAValue
    """Whether they are as the kernel alone reads them: in twice the digits, or relative to two points."""
    rows: SSAValue
    """How many there were."""
    groups: SSAValue
    low: SSAValue
    room: SSAValue
    """For so many groups."""
    shared: SSAValue
    shared_size: SSAValue
    own: SSAValue
    own_size: SSAValue
    places: Places


@record
class Places:
    """Where the shared coefficients are."""

    count: SSAValue
    starts: dict[Loops | SSAValue, SSAValue]
    """Where those of loops, and of a key, begin."""
    trips: dict[Loops, list[SSAValue]]
    ranges: dict[SSAValue, tuple[SSAValue, SSAValue]]
    """The least value of a key, and how many there are from it on."""

    def of_loops(self, loops: Loops, leaves: int, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        """Where the coefficients of an iteration begin."""
        found = write.whole(0)
        for loop, trip in zip(loops, self.trips[loops], strict=True):
            lower = copier.value(loop.lb, env, write)
            at = write.put(integer(arith.SubiOp, env[loop.body.block.args[0]], lower))
            found = write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, found, trip)), at))
        return self._behind(loops, found, leaves, write)

    def of_key(self, key: SSAValue, at: SSAValue, leaves: int, write: OpWriter) -> SSAValue:
        """Where the coefficients of a value of a key begin, the at-th from the least one on."""
        return self._behind(key, at, leaves, write)

    def _behind(self, what: Loops | SSAValue, at: SSAValue, leaves: int, write: OpWriter) -> SSAValue:
        first = write.put(integer(arith.MuliOp, at, write.whole(leaves)))
        return write.put(integer(arith.AddiOp, first, self.starts[what]))


def is_of_column(
    value: SSAValue, nest: scf.ForOp, column: SSAValue, through: Collection[type[Operation]] = PURE
) -> bool:
    """Whether a value is computed from what is known outside of a nest and from the number of the column: by ops of
    some classes, and from memory that the nest does not write.
    """
    written: set[Root] | None = None
    work, seen = [value], {column}
    while work:
        value = work.pop()
        if value in seen or not is_inside(value, nest):
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, Block):
            return False
        if isinstance(op, rt.LoadOp):
            written = set(written_roots_within(nest)) if written is None else written
            source = root(op.buffer)
            if source is UNKNOWN or source in written or UNKNOWN in written:
                return False
        elif type(op) not in through:
            return False
        work += op.operands
    return True
