"""What the rows of a normal linear model are made of, for those that write their reduction and its use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.effects import BOUND, PURE, UNKNOWN, Root, root, written_roots_within
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_scales import RowScales
from ulam.passes.loops.tables import Loops
from ulam.passes.rewriting import applied_to, cloned

MOST_STRAIGHT = 6
"""So many shared coefficients are combined without memory."""
Leaf = tuple[SSAValue, ...]
Environment = dict[SSAValue, SSAValue]


@record(frozen=True)
class KeyedLeaf:
    """A coefficient of groups: what it is computed of, and its key in rows that have it (`LinearTerm.where`)."""

    leaf: Leaf
    key: SSAValue
    where: SSAValue | None = None

    @staticmethod
    def of(term: LinearTerm) -> KeyedLeaf:
        """That of a term."""
        assert term.key is not None
        return KeyedLeaf(term.leaf, term.key, term.where)


@record
class RowKey:
    """By which rows belong to groups: one integer of the data, for all coefficients that it chooses."""

    leaves: dict[KeyedLeaf, int] = field(default_factory=dict[KeyedLeaf, int])
    loops: Loops = ()
    """The loops inside of a row of whose iterations each has a value of its own: of them there are no groups."""

    def accepts(self, leaf: KeyedLeaf, loops: Loops) -> bool:
        """Whether the key of a coefficient is this one, wherever the coefficient is read."""
        return self.loops == loops and computes_same(next(iter(self.leaves)).key, leaf.key)

    @property
    def of_all_rows(self) -> SSAValue | None:
        """The key of a coefficient that all rows have; None if there is none."""
        return next((leaf.key for leaf in self.leaves if leaf.where is None), None)

    def value(self, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        """What it is in a row; NO_KEY where the row has none of the coefficients."""
        if self.of_all_rows is not None:
            return copier.value(self.of_all_rows, env, write)
        found: SSAValue | None = None
        for where in dict.fromkeys(leaf.where for leaf in self.leaves):
            assert where is not None
            other = copier.value(where, env, write)
            found = other if found is None else write.put(integer(arith.MaxSIOp, found, other))
        assert found is not None
        return found

    @property
    def in_some_rows(self) -> list[SSAValue]:
        """The keys of coefficients that not all rows of a group may have, as they are in rows that have them."""
        found = dict.fromkeys(leaf.where for leaf in self.leaves)
        return [where for where in found if where is not None] if len(found) > 1 else []


def _is_combined(key: RowKey) -> bool:
    """Whether a key is computed of several integers of the data."""
    return any(isinstance(leaf.key.owner, arith.AddiOp | arith.SubiOp | arith.MuliOp) for leaf in key.leaves)


def _is_of_key(term: LinearTerm) -> bool:
    """Whether nothing but the key of a term tells which coefficient an iteration of its loops reads."""
    variables = [loop.body.block.args[0] for loop in term.loops]
    work = list(term.leaf)
    while work and variables:
        value = work.pop()
        if value in variables:
            return False
        if value is not term.key and is_inside(value, term.loops[0]) and isinstance(value.owner, Operation):
            work += value.owner.operands
    return True


@record
class LinearColumns:
    """The coefficients of a sum of terms: shared ones, those of loops inside of rows, those of groups."""

    shared: dict[Leaf, int]
    looped: dict[Loops, dict[Leaf, int]]
    own: dict[KeyedLeaf, int]
    key: RowKey | None
    """By which rows belong to groups, if there is one key alone."""
    chosen: list[RowKey]
    """Several keys, or one of loops: groups are those of the one with most coefficients, as data say. Of the others the
    coefficients are shared ones, of which a row has few.
    """

    @staticmethod
    def of(terms: Sequence[LinearTerm]) -> LinearColumns | str:
        """The columns of terms; why there are none that could be reduced."""
        found = LinearColumns({}, {}, {}, None, [])
        for term in terms:
            if not term.leaf:
                continue
            if term.key is not None:
                if not _is_of_key(term):
                    return "a loop inside of rows reads coefficients of groups"
                found._add_key(KeyedLeaf.of(term), term.loops)
                continue
            leaves = found.looped.setdefault(term.loops, {}) if term.loops else found.shared
            leaves.setdefault(term.leaf, len(leaves))
        if len(found.chosen) > 1 and any(map(_is_combined, found.chosen)):
            return "several integers of the data choose a coefficient together, beside others"
        if len(found.chosen) == 1 and not found.chosen[0].loops:
            found.key = found.chosen.pop()
            found.own = found.key.leaves
        return found if found.shared or found.looped or found.own or found.chosen else "it has no coefficients"

    def _add_key(self, leaf: KeyedLeaf, loops: Loops) -> None:
        key = next((key for key in self.chosen if key.accepts(leaf, loops)), None)
        if key is None:
            self.chosen.append(key := RowKey(loops=loops))
        key.leaves.setdefault(leaf, len(key.leaves))

    def key_of(self, term: LinearTerm) -> int | None:
        """Which of several keys chooses the coefficient of a term; None if there is one alone."""
        leaf = KeyedLeaf.of(term)
        return next((n for n, key in enumerate(self.chosen) if leaf in key.leaves and key.loops == term.loops), None)

    @property
    def are_few(self) -> bool:
        """Whether the shared ones are combined without a kernel: where the program says how many there are. Those of
        groups add to each row of these."""
        return not (self.looped or self.chosen or (self.own and len(self.shared) > MOST_STRAIGHT))


def are_of_different_lengths(around: Sequence[scf.ForOp]) -> bool:
    """Whether a nest computes how often a loop inside runs. `around`: its loops, the outermost first."""
    return any(is_inside(bound, around[0]) for loop in around[1:] for bound in (loop.lb, loop.ub))


def computes_same(one: SSAValue, other: SSAValue) -> bool:
    """Whether two integers are computed alike, of the same data: those of two branches are two values."""
    if one is other:
        return True
    a, b = one.owner, other.owner
    if type(a) is not type(b) or not isinstance(a, Operation) or not isinstance(b, Operation):
        return False
    if type(a) is rt.LoadOp:
        return root(a.operands[0]) is BOUND and all(map(computes_same, a.operands, b.operands))
    if type(a) not in PURE or a.properties != b.properties or len(a.operands) != len(b.operands):
        return False
    return all(map(computes_same, a.operands, b.operands))


KindLeaf = tuple[Leaf, "KeyedLeaf | None"]
"""A coefficient, the same in all rows of a kind; of which key, if there is one."""


@record
class KindColumns:
    """The coefficients of a sum of terms in rows of one kind: single ones, and those of each iteration of loops."""

    alone: dict[KindLeaf, int] = field(default_factory=dict[KindLeaf, int])
    looped: dict[Loops, dict[KindLeaf, int]] = field(default_factory=dict[Loops, dict[KindLeaf, int]])

    @staticmethod
    def of(terms: Sequence[LinearTerm]) -> KindColumns | str:
        """The columns of terms; why there are none."""
        found = KindColumns()
        for term in terms:
            if not term.leaf:
                continue
            if term.key is not None and term.loops and is_inside(term.key, term.loops[0]):
                return "rows whose scales differ have lists of coefficients"
            columns = found.looped.setdefault(term.loops, {}) if term.loops else found.alone
            columns.setdefault(kind_leaf(term), len(columns))
        return found

    @property
    def keyed(self) -> list[KeyedLeaf]:
        """The coefficients that keys choose."""
        return [own for columns in (self.alone, *self.looped.values()) for _, own in columns if own is not None]


def kind_leaf(term: LinearTerm) -> KindLeaf:
    """The coefficient of a term."""
    return term.leaf, None if term.key is None else KeyedLeaf.of(term)


@record
class Square:
    """A multiple of a square that rows add up: how it is made of what is squared."""

    steps: list[tuple[Operation, int]]
    terms: list[LinearTerm]
    columns: LinearColumns
    into: int | None = None
    """What it is added to: the result of the nest that is a sum, None for the target."""
    kinds: KindColumns = field(default_factory=KindColumns)
    """The columns where scales differ between rows."""


@record
class RowKinds:
    """The integers of the data by which rows are of one kind: all that choose their coefficients and scales."""

    values: list[SSAValue] = field(default_factory=list[SSAValue])
    """As rows have them: NO_KEY where a row has nothing that is chosen by it."""
    of_factors: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Key that a scale is read by → the same as rows have it."""

    @staticmethod
    def of(squares: Sequence[Square], of_factors: dict[SSAValue, SSAValue]) -> RowKinds:
        """Those of coefficients and of factors."""
        leaves = [leaf for square in squares for leaf in square.kinds.keyed]
        found = RowKinds([], of_factors)
        for value in (*(_key_of_rows(leaf) for leaf in leaves), *of_factors.values()):
            if found._place(value) is None:
                found.values.append(value)
        return found

    def _place(self, value: SSAValue) -> int | None:
        return next((n for n, other in enumerate(self.values) if computes_same(value, other)), None)

    def factors(self, numbers: Sequence[SSAValue], write: OpWriter) -> Environment:
        """What keys of factors are, for a kind that has some numbers: conditions, too."""
        found = {key: self._number(value, numbers) for key, value in self.of_factors.items()}
        none = write.whole(0)
        return {
            key: write.compare_integers("ne", number, none) if key.type == i1 else number
            for key, number in found.items()
        }

    def of_leaf(self, leaf: KeyedLeaf, numbers: Sequence[SSAValue]) -> Environment:
        """The same for a coefficient."""
        return {leaf.key: self._number(_key_of_rows(leaf), numbers)}

    def _number(self, value: SSAValue, numbers: Sequence[SSAValue]) -> SSAValue:
        place = self._place(value)
        assert place is not None
        return numbers[place]


def _key_of_rows(leaf: KeyedLeaf) -> SSAValue:
    return leaf.key if leaf.where is None else leaf.where


@record(frozen=True)
class KeyedSum:
    """What rows of the same keys share, times data of the row if there are any, added up to what a square may be."""

    value: SSAValue
    data: SSAValue | None
    into: int | None


@record
class SquareSums:
    """A nest of which nothing is needed but sums, of squares, of data and of what is the same in all rows, or in those
    of the same keys.

    Of `constants` and `data`: with what they are added to, as that of a square.
    """

    loop: scf.ForOp
    around: list[scf.ForOp]
    squares: list[Square]
    constants: list[tuple[SSAValue, int | None]]
    fills: dict[scf.ForOp, bool]
    """Nests ahead that only fill what this one reads: reduced rows need them no more. Whether each stays, since
    something else reads that, too; the nest as it was then has a copy.
    """
    checked: list[LinearTerm]
    """What rows check besides what is squared: their data have to be moderate, too."""
    data: list[tuple[SSAValue, int | None]]
    scales: RowScales
    products: list[tuple[SSAValue, SSAValue, int | None]] = field(
        default_factory=list[tuple[SSAValue, SSAValue, "int | None"]]
    )
    """Of what is the same in all rows, each with data of the row that it is multiplied by."""
    keyed: list[KeyedSum] = field(default_factory=list[KeyedSum])
    keys: RowKinds = field(default_factory=lambda: RowKinds())
    """By which rows are of one kind, where scales differ between kinds."""

    @property
    def keyed_factors(self) -> list[SSAValue]:
        """What rows of the same keys share, but not all rows: scales, and what is added up beside squares."""
        nest = self.scales.nest
        steps = [(op, at) for square in self.squares for op, at in square.steps]
        scaling = (arith.MulfOp, arith.DivfOp)
        factors = [op.operands[1 - at] for op, at in steps if at >= 0 and isinstance(op, scaling)]
        found = dict.fromkeys((*factors, *self.scales.shared, *(each.value for each in self.keyed)))
        return [value for value in found if nest.is_of_keys(value)]

    @property
    def has_kinds(self) -> bool:
        """Whether rows of different keys have different scales."""
        return bool(self.keyed_factors)

    @property
    def summed(self) -> list[SSAValue]:
        """The data that are added up: themselves, and those of products."""
        return [*(value for value, _ in self.data), *(value for _, value, _ in self.products)]

    def is_filled_anyway(self, term: LinearTerm) -> bool:
        """Whether a nest that stays computes a term for something else, too."""
        variables = [variable for variable, _ in term.moved]
        return any(stays and is_inside(variable, fill) for fill, stays in self.fills.items() for variable in variables)

    @property
    def nests(self) -> list[scf.ForOp]:
        """The nest, and those that reduced rows have in their place, too."""
        return [self.loop, *(fill for fill, stays in self.fills.items() if not stays)]

    @property
    def sums(self) -> list[int]:
        """The results that are sums."""
        every = (*((None, square.into) for square in self.squares), *self.constants, *self.data, *self.products)
        into = {into for *_, into in every} | {each.into for each in self.keyed}
        return sorted(position for position in into if position is not None)

    def summary(self) -> str:
        """What becomes of it, for remarks."""
        if self.has_kinds:
            counts = ", ".join(str(len(square.kinds.alone)) for square in self.squares)
            looped = " and those of loops" if any(square.kinds.looped for square in self.squares) else ""
            return f"its rows are reduced by different scales when data are bound: {counts} coefficients{looped}"
        parts: list[str] = []
        for square in self.squares:
            columns = square.columns
            shared = f"{len(columns.shared)} shared coefficients"
            looped = " and those of loops" if columns.looped else ""
            mine = [len(key.leaves) for key in columns.chosen if not key.loops] or [len(columns.own)]
            own = f", {max(mine)} per group" if max(mine) else ""
            others = len(columns.chosen) - any(not key.loops for key in columns.chosen)
            chosen = f", those of {others} other indices" if others else ""
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
    own_columns: SSAValue
    """How many coefficients each group has."""


@record
class Places:
    """Where the shared coefficients are."""

    count: SSAValue
    of_loops_from: dict[Loops, SSAValue]
    """Where those of loops begin."""
    of_keys_from: list[SSAValue]
    """The same of several keys."""
    trips: dict[Loops, list[SSAValue]]
    ranges: list[tuple[SSAValue, SSAValue]]
    """The least value of each of these keys, and how many there are from it on; of that of groups none."""
    of_groups: list[SSAValue]
    """Whether each of these keys is that of groups."""
    taken: dict[SSAValue, tuple[SSAValue, SSAValue]]
    """Of coefficients that not all rows of a group have: from which key to which one some rows do."""

    def of_loops(self, loops: Loops, leaves: int, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        """Where the coefficients of an iteration begin."""
        found = write.whole(0)
        for loop, trip in zip(loops, self.trips[loops], strict=True):
            lower = copier.value(loop.lb, env, write)
            at = write.put(integer(arith.SubiOp, env[loop.body.block.args[0]], lower))
            found = write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, found, trip)), at))
        return _behind(self.of_loops_from[loops], found, leaves, write)

    def of_key(self, key: int, at: SSAValue, leaves: int, write: OpWriter) -> SSAValue:
        """Where the coefficients of a value of one of several keys begin, the at-th from the least one on."""
        return _behind(self.of_keys_from[key], at, leaves, write)

    def coefficient(self, leaf: KeyedLeaf, key: SSAValue, copier: Copier, write: OpWriter) -> SSAValue:
        """The coefficient of a group. Where no row of it has one, another is read: it is multiplied with 0."""
        if leaf.where is None or leaf.where not in self.taken:
            return _product(leaf.leaf, copier, {leaf.key: key}, write)
        low, end = self.taken[leaf.where]
        there = write.compare_integers("slt", low, end)
        last = write.put(integer(arith.SubiOp, end, write.whole(1)))
        key = write.put(integer(arith.MinSIOp, write.put(integer(arith.MaxSIOp, key, low)), last))
        blocks = [Block([scf.YieldOp.create()]), Block([scf.YieldOp.create()])]
        inside, outside = (OpWriter(terminator(block)) for block in blocks)
        terminator(blocks[0]).operands = [_product(leaf.leaf, copier, {leaf.key: key}, inside)]
        terminator(blocks[1]).operands = [outside.number(0.0)]
        regions = [Region(block) for block in blocks]
        return write.put(scf.IfOp.create(operands=[there], result_types=[f64], regions=regions))


def _product(leaf: Leaf, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
    found = copier.product(leaf, env, write)
    assert found is not None
    return found


def _behind(start: SSAValue, at: SSAValue, leaves: int, write: OpWriter) -> SSAValue:
    first = write.put(integer(arith.MuliOp, at, write.whole(leaves)))
    return write.put(integer(arith.AddiOp, first, start))


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
