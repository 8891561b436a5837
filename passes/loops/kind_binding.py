"""Writes the reduction of rows of normal linear models whose scales differ, kind by kind, for `bind`.

    for n: target += -0.5 * square((y[n] - (a[g[n]] + b * x[n])) / s[g[n]]) - log(s[g[n]])

Rows are of one kind if all integers of the data are the same that choose their coefficients and scales, as `g[n]`, and
all conditions on data that do. The rows of a kind are a linear model with a scale of its own, whose coefficients are
the same in all of them: its reduction is that of runtime/c/row_kinds.c.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.library.kernels import DESIGN_BLOCK, DESIGN_HELD, KINDS_SIZES, KINDS_STATE
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of
from ulam.passes.loops.coalesced_rows import claim
from ulam.passes.loops.linear_binding import (
    Binding,
    DesignRow,
    add_to,
    block_of_rows,
    module_of,
    row_coefficient,
    write_arm,
)
from ulam.passes.loops.linear_rows import Copier, Environment, Places, kind_leaf, new_loop
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.tables import Loops
from ulam.passes.loops.unit_modules import take_slots

_REASONS = (
    "data that are not finite, or differ too much in size",
    "the indices of scales and coefficients have too many combinations",
    "columns nearly depend on each other within rows of the same indices, or are far from 0",
)  # in the order of row_kinds.c
_FIGURES = ("rows", "kinds", "coefficients", "bytes")
_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)


@record(frozen=True)
class KindTables:
    """What `bind` leaves of a square: of each number those of all kinds side by side, `room` for each."""

    used: SSAValue
    rows: SSAValue
    """How many there were."""
    kinds: SSAValue
    room: SSAValue
    keys: SSAValue
    table: SSAValue
    """Reduced rows, coefficients that fit best, sums of data."""
    size: SSAValue
    sums_from: SSAValue
    """Where the sums of data begin."""
    places: Places
    """Where coefficients of loops are."""


@record(frozen=True)
class _Memory:
    """Where rows are put together: numbers of the design, keys, and data that are added up."""

    design: DesignRow
    keys: SSAValue
    keys_size: SSAValue
    sums: SSAValue
    sums_size: SSAValue

    @property
    def held_rows(self) -> tuple[SSAValue, ...]:
        """What kernels take that reduce the rows of the block."""
        design = self.design
        return (design.state, design.state, design.block, design.size, *self.others)

    @property
    def others(self) -> tuple[SSAValue, ...]:
        """Keys and data that are added up."""
        return self.keys, self.keys_size, self.sums, self.sums_size


class KindBinding(Binding):
    """Writes what reduces the rows of a square kind by kind."""

    def write_kinds(self) -> KindTables:
        """What evaluations then find."""
        write, keys = self.write_to, self.statement.keys.values
        copier = Copier(lambda value: block_of(value) is self.top)
        known = write.put(rt.AllocOp(write.whole(1), _INTEGERS, zero=True))
        self.count_rows(copier, known)
        places, saved = self.places_with_loops(len(self.square.kinds.alone), self.square.kinds.looped, copier)
        sums = len(self.statement.keyed)
        state = write.put(rt.AllocOp(write.whole(KINDS_STATE), _INTEGERS))
        count = write.put(rt.LoadOp(known, write.whole(0)))
        begin = (state, places.count, write.whole(len(keys)), write.whole(sums), count, saved)
        write.before(rt.KernelOp("kinds_begin", begin))
        memory = self._memory(state, places)
        turns = write.put(rt.LoadOp(state, write.whole(0)))
        n, turn = new_loop(write, write.whole(0), turns)
        again = write_arm(turn, turn.compare_integers("slt", n, turn.put(rt.LoadOp(state, turn.whole(0)))))
        inside, env = self.inside(copier, again)
        self._write_kind_row(copier, env, inside, memory)
        again.before(rt.KernelOp("kinds_turn", memory.held_rows))
        return self._tables(state, places)

    def _memory(self, state: SSAValue, places: Places) -> _Memory:
        write, statement = self.write_to, self.statement
        width = write.put(integer(arith.AddiOp, places.count, write.whole(1)))
        design = DesignRow(state, *block_of_rows(width, write), width, write.whole(0), places)
        sizes = [write.whole(DESIGN_BLOCK * count) for count in (len(statement.keys.values), len(statement.keyed))]
        keys = write.put(rt.AllocOp(sizes[0], _INTEGERS, zero=True))
        sums = write.put(rt.AllocOp(sizes[1], _REALS, zero=True))
        return _Memory(design, keys, sizes[0], sums, sizes[1])

    def _tables(self, state: SSAValue, places: Places) -> KindTables:
        write, statement = self.write_to, self.statement
        sizes = write.put(rt.AllocOp(write.whole(KINDS_SIZES), _INTEGERS))
        write.before(rt.KernelOp("kinds_sizes", (state, sizes)))
        outcome, used, kinds, room, keys_size, size, sums_from, *figures = (
            write.put(rt.LoadOp(sizes, write.whole(n))) for n in range(KINDS_SIZES)
        )
        slot = take_slots(module_of(statement.loop), 1 + len(_FIGURES))
        location = statement.loop.location
        layout = rt.LayoutOp("reduced rows", slot, _REASONS, _FIGURES, outcome, figures, location=location)
        claim(layout, statement.loop)
        write.before(layout)
        keys = write.put(rt.AllocOp(keys_size, _INTEGERS))
        table = write.put(rt.AllocOp(size, _REALS))
        write.before(rt.KernelOp("kinds_tables", (state, keys, keys_size, table, size)))
        is_used = write.compare_integers("ne", used, write.whole(0))
        return KindTables(is_used, figures[0], kinds, room, keys, table, size, sums_from, places)

    def _write_kind_row(self, copier: Copier, env: Environment, write: OpWriter, memory: _Memory) -> None:
        columns, row = self.square.kinds, memory.design.next_of_block(write)
        sums: dict[int, SSAValue] = {}
        by_loops: dict[Loops, list[LinearTerm]] = {}
        for term in self.square.terms:
            if term.loops:
                by_loops.setdefault(term.loops, []).append(term)
                continue
            column = columns.alone[kind_leaf(term)] if term.leaf else -1
            value = row_coefficient(term, copier, env, write)
            add_to(sums, column, value, write, negative=term.negative != bool(term.leaf))
        self.add_checks(copier, env, write, sums, by_loops)
        for column, value in sums.items():
            place = row.place_of_y(write) if column < 0 else row.place_of(column, write)
            write.before(rt.StoreOp(value, row.block, place))
        for loops, terms in by_loops.items():
            leaves = columns.looped.get(loops, {})
            placed = [(term, leaves[kind_leaf(term)] if term.leaf else -1) for term in terms]
            self.write_loops(copier, env, write, row, loops, placed, len(leaves))
        for n, key in enumerate(self.statement.keys.values):
            number = copier.value(key, env, write)
            if number.type == i1:
                number = write.put(arith.ExtUIOp(number, i64))
            write.before(rt.StoreOp(number, memory.keys, row.place_of(n, write)))
        for n, each in enumerate(self.statement.keyed):
            value = write.number(1.0) if each.data is None else copier.value(each.data, env, write)
            write.before(rt.StoreOp(value, memory.sums, row.place_of(n, write)))
        assert row.number is not None
        held = write.put(integer(arith.AddiOp, row.number, write.whole(1)))
        write.before(rt.StoreOp(held, row.state, write.whole(DESIGN_HELD)))
        is_full = write.compare_integers("eq", held, write.whole(DESIGN_BLOCK))
        write_arm(write, is_full).before(rt.KernelOp("kinds_rows", memory.held_rows))
