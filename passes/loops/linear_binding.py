"""Writes the reduction of the rows of a normal linear model, for `bind`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.library.kernels import DESIGN_BLOCK, DESIGN_HELD, DESIGN_SIZES, DESIGN_STATE
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, terminator
from ulam.passes.loops.coalesced_rows import claim, is_of_layouts
from ulam.passes.loops.data_choices import NO_KEY
from ulam.passes.loops.linear_rows import (
    Copier,
    Environment,
    KeyedLeaf,
    Places,
    Reduced,
    RowKey,
    Square,
    SquareSums,
    are_of_different_lengths,
    new_loop,
)
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.tables import Loops
from ulam.passes.loops.unit_modules import take_slots

REASONS = (
    "data that are not finite, or differ too much in size",
    "an index has too many values that no row has",
    "reduced rows would not be less work",
    "reducing the rows would take too long",
)  # in the order of linear_design.c
_AT_LEAST = 2
"""Entries that rows save in any case: the outcome, and the mean that something else has filled."""
_ROOM = 1e200
"""For a coefficient, and sums of its products."""
FIGURES = ("rows", "groups", "coefficients", "bytes")
_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)


@record
class Binding:
    """Writes what reduces the rows of a square, of data alone: `hoist-data` moves it."""

    statement: SquareSums
    square: Square
    top: Block
    write_to: OpWriter

    def write(self) -> Reduced:
        """What evaluations then find."""
        write, columns = self.write_to, self.square.columns
        copier = Copier(lambda value: block_of(value) is self.top)
        known = self._known(copier)
        places, entries, saved = self._places(copier, known)
        self._find_taken(copier, places)
        own = self._own_columns(known)
        width = write.put(integer(arith.AddiOp, places.count, write.put(integer(arith.AddiOp, own, write.whole(1)))))
        state = write.put(rt.AllocOp(write.whole(DESIGN_STATE), _INTEGERS))
        padded = write.whole(int(not columns.are_few))
        begin = (state, own, places.count, entries, saved, padded, known)
        write.before(rt.KernelOp("design_begin", begin))
        row = DesignRow(state, *block_of_rows(width, write), width, own, places)
        turns = write.put(rt.LoadOp(state, write.whole(0)))
        n, turn = new_loop(write, write.whole(0), turns)
        again = write_arm(turn, turn.compare_integers("slt", n, turn.put(rt.LoadOp(state, turn.whole(0)))))
        inside, env = self.inside(copier, again)
        self._write_row(copier, env, inside, row)
        again.before(rt.KernelOp("design_turn", row.held_rows))
        sizes = write.put(rt.AllocOp(write.whole(DESIGN_SIZES), _INTEGERS))
        write.before(rt.KernelOp("design_sizes", (state, sizes)))
        outcome, used, by_kernel, groups, low, room, shared_size, own_size, *figures = (
            write.put(rt.LoadOp(sizes, write.whole(n))) for n in range(DESIGN_SIZES)
        )
        slot = take_slots(module_of(self.statement.loop), 1 + len(FIGURES))
        location = self.statement.loop.location
        layout = rt.LayoutOp("reduced rows", slot, REASONS, FIGURES, outcome, figures, location=location)
        claim(layout, self.statement.loop)
        write.before(layout)
        shared = write.put(rt.AllocOp(shared_size, _REALS))
        own_rows = write.put(rt.AllocOp(own_size, _REALS))
        write.before(rt.KernelOp("design_tables", (state, shared, shared_size, own_rows, own_size)))
        is_used, is_by_kernel = (write.compare_integers("ne", flag, write.whole(0)) for flag in (used, by_kernel))
        tables = (shared, shared_size, own_rows, own_size)
        return Reduced(is_used, is_by_kernel, figures[0], groups, low, room, *tables, places, own)

    def sums(self) -> list[SSAValue]:
        """What the data that rows add up are in all."""
        write, data = self.write_to, self.statement.summed
        if not data:
            return []
        copier = Copier(lambda value: block_of(value) is self.top)
        found = write.put(rt.AllocOp(write.whole(len(data)), _REALS, zero=True))
        inside, env = self.inside(copier, write)
        for n, value in enumerate(data):
            before = inside.put(rt.LoadOp(found, inside.whole(n)))
            total = inside.real(arith.AddfOp, before, copier.value(value, env, inside))
            inside.before(rt.StoreOp(total, found, inside.whole(n)))
        return [write.put(rt.LoadOp(found, write.whole(n))) for n in range(len(data))]

    def _known(self, copier: Copier) -> SSAValue:
        """How many rows there are; of several keys the range of each, and which is that of groups: none of loops, but a
        last one without coefficients if there is no other.
        """
        write, keys = self.write_to, self.square.columns.chosen
        size = write.whole(3 + 3 * (len(keys) + any(key.loops for key in keys)))
        known = write.put(rt.AllocOp(size, _INTEGERS, zero=True))
        self.count_rows(copier, known)
        if not keys:
            return known
        for n, key in enumerate(keys):
            coefficients = -len(key.leaves) if key.loops else len(key.leaves)
            write.before(rt.StoreOp(write.whole(coefficients), known, write.whole(5 + 3 * n)))
        outside, env_of_row = self.inside(copier, write)
        for n, key in enumerate(keys):
            inside, env = _within_loops(key.loops, copier, env_of_row, outside)
            number = key.value(copier, env, inside)
            last = inside.whole(6 + 3 * n)
            _where_it_is(key, number, inside).before(rt.KernelOp("design_key", (known, known, last, number)))
        write.before(rt.KernelOp("design_groups", (known, known, size)))
        return known

    def _entries_of_loops(self, copier: Copier, known: SSAValue) -> SSAValue:
        """How many coefficients that keys of loops choose a row has, on the average."""
        write, keys = self.write_to, [key for key in self.square.columns.chosen if key.loops]
        zero, one = write.whole(0), write.whole(1)
        if not keys:
            return zero
        found = write.put(rt.AllocOp(one, _INTEGERS, zero=True))
        outside, env_of_row = self.inside(copier, write)
        for key in keys:
            inside, env = _within_loops(key.loops[:-1], copier, env_of_row, outside)
            more = trips(key.loops[-1], copier, inside, env)
            more = inside.put(integer(arith.MuliOp, more, inside.whole(len(key.leaves))))
            total = inside.put(integer(arith.AddiOp, inside.put(rt.LoadOp(found, inside.whole(0))), more))
            inside.before(rt.StoreOp(total, found, inside.whole(0)))
        rows = write.put(integer(arith.MaxSIOp, write.put(rt.LoadOp(known, zero)), one))
        return write.put(arith.DivSIOp.create(operands=(write.put(rt.LoadOp(found, zero)), rows), result_types=(i64,)))

    def count_rows(self, copier: Copier, known: SSAValue) -> None:
        """Adds up how many rows the innermost loop has, in the loops around it."""
        *around, innermost = self.statement.around
        inside, env = self._within(around, copier, self.write_to)
        zero, count = inside.whole(0), trips(innermost, copier, inside, env)
        found = inside.put(integer(arith.AddiOp, inside.put(rt.LoadOp(known, zero)), count))
        inside.before(rt.StoreOp(found, known, zero))

    def _own_columns(self, known: SSAValue) -> SSAValue:
        """How many coefficients each group has."""
        write, columns = self.write_to, self.square.columns
        if not columns.chosen:
            return write.whole(len(columns.own))
        which = write.put(rt.LoadOp(known, write.whole(2)))
        place = write.put(integer(arith.MuliOp, which, write.whole(3)))
        return write.put(rt.LoadOp(known, write.put(integer(arith.AddiOp, place, write.whole(5)))))

    def _places(self, copier: Copier, known: SSAValue) -> tuple[Places, SSAValue, SSAValue]:
        """Where shared coefficients are; how many entries a row has, and how many of these nothing else needs."""
        write, columns = self.write_to, self.square.columns
        places, saved = self.places_with_loops(len(columns.shared), columns.looped, copier)
        count = places.count
        looped = self._entries_of_loops(copier, known)
        if any(term.key is not None and term.loops for term in self._alone()):
            saved = write.put(integer(arith.AddiOp, saved, looped))
        few = len(columns.own) + sum(len(key.leaves) for key in columns.chosen if not key.loops) + 1
        entries = write.put(integer(arith.AddiOp, write.put(integer(arith.AddiOp, count, looped)), write.whole(few)))
        saved = write.put(integer(arith.MinSIOp, saved, entries))
        for n, key in enumerate(columns.chosen):
            low, span = (write.put(rt.LoadOp(known, write.whole(3 + 3 * n + k))) for k in range(2))
            which = write.put(rt.LoadOp(known, write.whole(2)))
            places.of_groups.append(write.compare_integers("eq", which, write.whole(n)))
            places.of_keys_from.append(count)
            places.ranges.append((low, span))
            size = write.put(integer(arith.MuliOp, span, write.whole(len(key.leaves))))
            count = write.put(integer(arith.AddiOp, count, size))
        places.count = count
        return places, entries, saved

    def places_with_loops(self, first: int, looped: Mapping[Loops, Sized], copier: Copier) -> tuple[Places, SSAValue]:
        """Where coefficients of loops are, behind the `first` that are in none; how many entries of a row nothing else
        needs, those of keys in loops apart.
        """
        write, alone, count = self.write_to, self._alone(), self.write_to.whole(first)
        saved = write.whole(len({(term.leaf, term.key) for term in alone if term.leaf and not term.loops}) + _AT_LEAST)
        places = Places(count, {}, [], {}, [], [], {})
        for loops, leaves in looped.items():
            places.of_loops_from[loops] = count
            places.trips[loops] = [trips(loop, copier, write) for loop in loops]
            size = write.whole(len(leaves))
            for trip in places.trips[loops]:
                size = write.put(integer(arith.MuliOp, size, trip))
            count = write.put(integer(arith.AddiOp, count, size))
            if any(term.loops == loops for term in alone):
                saved = write.put(integer(arith.AddiOp, saved, size))
        places.count = count
        return places, saved

    def _alone(self) -> list[LinearTerm]:
        """The terms that nothing else fills."""
        return [term for term in self.square.terms if not self.statement.is_filled_anyway(term)]

    def _find_taken(self, copier: Copier, places: Places) -> None:
        """Finds for which keys rows have coefficients that data choose, where not all rows of a group may have them."""
        write, columns = self.write_to, self.square.columns
        keys = [*columns.chosen, *([columns.key] if columns.key else [])]
        some = [where for key in keys for where in key.in_some_rows]
        if not some:
            return
        found = [write.put(rt.AllocOp(write.whole(2), _INTEGERS, zero=True)) for _ in some]
        inside, env = self.inside(copier, write)
        for where, taken in zip(some, found, strict=True):
            number = copier.value(where, env, inside)
            arm = _where_it_is(None, number, inside)
            following = arm.put(integer(arith.AddiOp, number, arm.whole(1)))
            arm.before(rt.KernelOp("sparse_range", (taken, taken, number, following)))
        for where, taken in zip(some, found, strict=True):
            low, end = (write.put(rt.LoadOp(taken, write.whole(k))) for k in range(2))
            places.taken[where] = low, end

    def inside(self, copier: Copier, write: OpWriter) -> tuple[OpWriter, Environment]:
        """The loops and branches around a row; a writer inside, and what is known there."""
        write, env = self._within(self._loops(), copier, write)
        for term in (*self.square.terms, *self.statement.checked):
            for variable, stands_for in reversed(term.moved):
                env[variable] = copier.value(stands_for, env, write)
        return write, env

    def _loops(self) -> list[scf.ForOp]:
        """The loops around a row; first, if that may be, the one whose number is that of the row's group: rows of a
        group follow each other then.
        """
        around, key = self.statement.around, self.square.columns.key
        if key is None or are_of_different_lengths(around):
            return around
        return sorted(around, key=lambda loop: loop.body.block.args[0] is not key.of_all_rows)

    def _within(self, loops: list[scf.ForOp], copier: Copier, write: OpWriter) -> tuple[OpWriter, Environment]:
        """The branches around the nest, and some of its loops."""
        env: Environment = {}
        for branch, arm in branches_around(self.statement.loop, self.top):
            write, env = write_arm(write, copier.value(branch.cond, env, write), arm), dict(env)
        for loop in loops:
            env, write = copier.loop(loop, env, write)
        return write, env

    def _write_row(self, copier: Copier, env: Environment, write: OpWriter, row: DesignRow) -> None:
        columns = self.square.columns
        row = row.next_of_block(write)
        sums: dict[int, SSAValue] = {}
        by_loops: dict[Loops, list[LinearTerm]] = {}
        chosen: dict[tuple[int, KeyedLeaf], list[LinearTerm]] = {}
        for term in self.square.terms:
            if term.loops and term.key is None:
                by_loops.setdefault(term.loops, []).append(term)
                continue
            column = len(columns.own) + columns.shared[term.leaf] if term.leaf and term.key is None else -1
            if term.key is not None:
                leaf = KeyedLeaf.of(term)
                if (other := columns.key_of(term)) is not None:
                    chosen.setdefault((other, leaf), []).append(term)
                    continue
                column = columns.own[leaf]
            value = row_coefficient(term, copier, env, write)
            add_to(sums, column, value, write, negative=term.negative != bool(term.leaf))
        self.add_checks(copier, env, write, sums, by_loops)
        for column, value in sums.items():
            if column < 0:
                place = row.place_of_y(write)
            elif columns.chosen:
                place = row.place(write.put(integer(arith.AddiOp, row.own, write.whole(column))), write)
            else:
                place = row.place_of(column, write)
            write.before(rt.StoreOp(value, row.block, place))
        for loops, terms in by_loops.items():
            leaves = columns.looped.get(loops, {})
            placed = [(term, leaves[term.leaf] if term.leaf else -1) for term in terms]
            self.write_loops(copier, env, write, row, loops, placed, len(leaves))
        key = self._write_chosen(copier, env, write, row, chosen)
        if columns.key is not None:
            key = columns.key.value(copier, env, write)
        row.end(key, write)

    def add_checks(
        self,
        copier: Copier,
        env: Environment,
        write: OpWriter,
        sums: dict[int, SSAValue],
        by_loops: dict[Loops, list[LinearTerm]],
    ) -> None:
        """Makes the outcome, column -1, NaN if something else of a row is not moderate, or a scale not positive."""
        for term in self.statement.checked:
            if term.loops:
                by_loops.setdefault(term.loops, [])
            else:
                add_to(sums, -1, _nothing(row_coefficient(term, copier, env, write), write), write, negative=False)
        for size in self.statement.scales.sizes:
            size = copier.value(size, env, write)
            log = write.put(rt.MathOp("log", (size,)))  # of what is not positive it is not finite
            add_to(sums, -1, _nothing(write.real(arith.DivfOp, log, size), write), write, negative=False)

    def _write_chosen(
        self,
        copier: Copier,
        env: Environment,
        write: OpWriter,
        row: DesignRow,
        chosen: dict[tuple[int, KeyedLeaf], list[LinearTerm]],
    ) -> SSAValue:
        """The columns of coefficients that several keys choose; the key of the row's group."""
        group, places = write.whole(0), row.places
        numbers: dict[int, SSAValue] = {}
        for n, (key, is_of_groups) in enumerate(zip(self.square.columns.chosen, places.of_groups, strict=True)):
            if not key.loops:
                numbers[n] = key.value(copier, env, write)
                group = _choice(is_of_groups, numbers[n], group, write)
        for (n, leaf), terms in chosen.items():
            key = self.square.columns.chosen[n]
            if key.loops:
                self._write_chosen_in_loops(copier, env, write, row, n, leaf, terms)
                continue
            inside = _where_it_is(key, numbers[n], write)
            at = inside.put(integer(arith.SubiOp, numbers[n], places.ranges[n][0]))
            first = places.of_key(n, at, len(key.leaves), inside)
            first = inside.put(integer(arith.AddiOp, first, row.own))
            first = _choice(places.of_groups[n], inside.whole(0), first, inside)
            index = inside.put(integer(arith.AddiOp, first, inside.whole(key.leaves[leaf])))
            entry: dict[int, SSAValue] = {}
            for term in terms:
                add_to(entry, 0, row_coefficient(term, copier, dict(env), inside), inside, negative=not term.negative)
            inside.before(rt.StoreOp(entry[0], row.block, row.place(index, inside)))
        return group

    def _write_chosen_in_loops(
        self,
        copier: Copier,
        env: Environment,
        write: OpWriter,
        row: DesignRow,
        n: int,
        leaf: KeyedLeaf,
        terms: list[LinearTerm],
    ) -> None:
        """Columns of coefficients that a key of loops chooses: of one column a row may have several entries."""
        key, places = self.square.columns.chosen[n], row.places
        inside, inner = _within_loops(key.loops, copier, env, write)
        at = inside.put(integer(arith.SubiOp, key.value(copier, inner, inside), places.ranges[n][0]))
        first = inside.put(integer(arith.AddiOp, places.of_key(n, at, len(key.leaves), inside), row.own))
        place = row.place(inside.put(integer(arith.AddiOp, first, inside.whole(key.leaves[leaf]))), inside)
        entry = {0: inside.put(rt.LoadOp(row.block, place))}
        for term in terms:
            add_to(entry, 0, row_coefficient(term, copier, inner, inside), inside, negative=not term.negative)
        inside.before(rt.StoreOp(entry[0], row.block, place))

    def write_loops(
        self,
        copier: Copier,
        env: Environment,
        write: OpWriter,
        row: DesignRow,
        loops: Loops,
        terms: Sequence[tuple[LinearTerm, int]],
        count: int,
    ) -> None:
        """The columns of coefficients of loops inside of a row; where terms are among `count` of an iteration."""
        inner, inside = dict(env), write
        for loop in loops:
            inner, inside = copier.loop(loop, inner, inside)
        sums: dict[int, SSAValue] = {}
        for term, column in terms:
            coefficient = row_coefficient(term, copier, inner, inside)
            add_to(sums, column, coefficient, inside, negative=term.negative != bool(term.leaf))
        for term in self.statement.checked:
            if term.loops == loops:
                nothing = _nothing(row_coefficient(term, copier, inner, inside), inside)
                add_to(sums, -1, nothing, inside, negative=False)
        first = row.own
        if count:
            at = row.places.of_loops(loops, count, copier, inner, inside)
            first = inside.put(integer(arith.AddiOp, first, at))
        for column, value in sums.items():
            if column < 0:
                place = row.place_of_y(inside)
                value = inside.real(arith.AddfOp, inside.put(rt.LoadOp(row.block, place)), value)
            else:
                place = row.place(inside.put(integer(arith.AddiOp, first, inside.whole(column))), inside)
            inside.before(rt.StoreOp(value, row.block, place))


@record
class DesignRow:
    """Where a row of the design is put together: in a block of rows, which has a column for each of the design's."""

    state: SSAValue
    block: SSAValue
    size: SSAValue
    keys: SSAValue
    """Of the rows of the block."""
    width: SSAValue
    own: SSAValue
    """How many columns are those of groups."""
    places: Places
    number: SSAValue | None = None
    """How many rows are ahead in the block."""

    def next_of_block(self, write: OpWriter) -> DesignRow:
        """The row that is put together next."""
        return replace(self, number=write.put(rt.LoadOp(self.state, write.whole(DESIGN_HELD))))

    def place(self, column: SSAValue, write: OpWriter) -> SSAValue:
        """Where the block has its number of a column."""
        assert self.number is not None
        first = write.put(integer(arith.MuliOp, column, write.whole(DESIGN_BLOCK)))
        return write.put(integer(arith.AddiOp, first, self.number))

    def place_of(self, column: int, write: OpWriter) -> SSAValue:
        """The same of a column whose number is known."""
        assert self.number is not None
        return write.put(integer(arith.AddiOp, self.number, write.whole(column * DESIGN_BLOCK)))

    def place_of_y(self, write: OpWriter) -> SSAValue:
        """The same of the last column."""
        return self.place(write.put(integer(arith.SubiOp, self.width, write.whole(1))), write)

    @property
    def held_rows(self) -> tuple[SSAValue, ...]:
        """What kernels take that reduce the rows of the block."""
        return self.state, self.state, self.block, self.size, self.keys

    def end(self, key: SSAValue, write: OpWriter) -> None:
        """Counts the row, and has the block reduced when it is full."""
        assert self.number is not None
        write.before(rt.StoreOp(key, self.keys, self.number))
        held = write.put(integer(arith.AddiOp, self.number, write.whole(1)))
        write.before(rt.StoreOp(held, self.state, write.whole(DESIGN_HELD)))
        is_full = write.compare_integers("eq", held, write.whole(DESIGN_BLOCK))
        write_arm(write, is_full).before(rt.KernelOp("design_rows", self.held_rows))


def block_of_rows(width: SSAValue, write: OpWriter) -> tuple[SSAValue, SSAValue, SSAValue]:
    """A block of rows, the size of it, and the keys of its rows."""
    size = write.put(integer(arith.MuliOp, width, write.whole(DESIGN_BLOCK)))
    keys = write.put(rt.AllocOp(write.whole(DESIGN_BLOCK), _INTEGERS, zero=True))
    return write.put(rt.AllocOp(size, _REALS, zero=True)), size, keys


def module_of(op: Operation) -> ModuleOp:
    """The module that an op stands in."""
    current: Operation | None = op
    while current is not None and not isinstance(current, ModuleOp):
        current = current.parent_op()
    assert current is not None
    return current


def branches_around(loop: scf.ForOp, top: Block) -> list[tuple[scf.IfOp, int]]:
    """Branches around a nest, the outermost first, and in which arm it stands; without those of layouts."""
    found: list[tuple[scf.IfOp, int]] = []
    current: Operation = loop
    while current.parent is not top:
        parent = current.parent_op()
        assert isinstance(parent, scf.IfOp) and current.parent is not None
        if not is_of_layouts(parent.cond):
            found.append((parent, [region.block for region in parent.regions].index(current.parent)))
        current = parent
    return found[::-1]


def write_arm(write: OpWriter, condition: SSAValue, which: int = 0) -> OpWriter:
    """Writes a branch; a writer in one of its arms."""
    arms = [Block([scf.YieldOp.create()]), Block([scf.YieldOp.create()])]
    write.before(scf.IfOp.create(operands=[condition], regions=[Region(block) for block in arms]))
    return OpWriter(terminator(arms[which]))


def _within_loops(loops: Loops, copier: Copier, env: Environment, write: OpWriter) -> tuple[OpWriter, Environment]:
    """Loops inside of a row; a writer inside, and what is known there."""
    env = dict(env)
    for loop in loops:
        env, write = copier.loop(loop, env, write)
    return write, env


def _choice(condition: SSAValue, one: SSAValue, other: SSAValue, write: OpWriter) -> SSAValue:
    """One of two integers."""
    return write.put(arith.SelectOp.create(operands=[condition, one, other], result_types=[i64]))


def _where_it_is(key: RowKey | None, value: SSAValue, write: OpWriter) -> OpWriter:
    """Writes where rows have a key: here, if all do. `value`: what it is."""
    if key is not None and key.of_all_rows is not None:
        return write
    return write_arm(write, write.compare_integers("ne", value, write.whole(NO_KEY)))


def add_to(sums: dict[int, SSAValue], column: int, value: SSAValue, write: OpWriter, *, negative: bool) -> None:
    """Adds to a column of a row."""
    if column in sums:
        sums[column] = write.real(arith.SubfOp if negative else arith.AddfOp, sums[column], value)
    else:
        sums[column] = write.put(arith.NegfOp.create(operands=[value], result_types=[f64])) if negative else value


def row_coefficient(term: LinearTerm, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
    """The data of a term."""
    found = copier.product(term.data, env, write)
    found = write.number(1.0) if found is None else found
    for divisor in term.divisors:
        found = write.real(arith.DivfOp, found, copier.value(divisor, env, write))
    return found


def _nothing(value: SSAValue, write: OpWriter) -> SSAValue:
    """0; NaN, for which rows are not reduced, if a value is so large that products with it may overflow."""
    return write.real(arith.MulfOp, write.real(arith.MulfOp, value, write.number(_ROOM)), write.number(0.0))


def trips(loop: scf.ForOp, copier: Copier, write: OpWriter, env: Environment | None = None) -> SSAValue:
    """How often a loop runs."""
    env = {} if env is None else env
    lower, upper = copier.value(loop.lb, env, write), copier.value(loop.ub, env, write)
    return write.trip_count(lower, upper)
