"""Costly functions of what belongs to a group are computed once for each group, not in each of its rows.

    for n: target += f(y[n], exp(a[g[n]]))    →    bind:      heads = a row of each different g
                                                   evaluate:  for r in 0:kinds: t[g[heads[r]]] = exp(a[g[heads[r]]])
                                                              for n: target += f(y[n], t[g[n]])

A logarithm of a scale of each group, an exponential of an item's parameter, a gamma function of a shape: what rows read
at an index of the data, and nothing else of them, decides such a value. Nothing is computed that no row would compute.
Where such a value is added to the target as it is, the loop over kinds adds it as often as there are rows; flags that
it decides are set there, too. Rows then read tables as they read parameters, and find other layouts. Before reverse
mode, which takes the derivatives once for each kind, too. Rows that an index decides but for what they are affine in
are left alone: `unique-rows` computes each kind of them once as a whole.

Kinds are counted when data are bound; where rows are too few beside them, a copy of the loop runs as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, terminator
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.data_branches import lift, lift_values, may_lift, outermost_loops, where_it_runs
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.indexed_values import IndexedValues, RowsByIndex
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import BlockEnd, OpWriter, integer
from ulam.passes.loops.rows_of_loops import strips_of
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of, take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

ROWS_PER_KIND = 4
"""So many rows of each kind there must be on the average."""
FEWEST_ROWS = 32
"""So many rows more are worth the loops over kinds."""
FIGURES = ("rows", "different", "bytes")
NO_PLACE, NO_TABLE, MOST_PLACES = -(2**31), -1, 2**31 - 1

REASONS = ("too few rows have an index in common",)


class TabulateByIndex(TellingPass):
    """Computes costly functions of what rows of `evaluate` read at an index once for each index."""

    name = "tabulate-by-index"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        top, slices = evaluate.body.block, DataSlices()
        written: list[Operation] = []
        if must_be_precise(module):
            return False
        bound = bound_ints(module)
        for outer in outermost_loops(top, slices):
            if not may_lift(outer, top, slices):
                continue
            rows = RowsByIndex(outer, strips_of(outer, bound), slices)
            if found := rows.kinds():
                remark_on(self.name, outer, "what an index decides is computed once for each index", done=True)
                written += _Writer(module, rows, found, top, slices).write()
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return bool(written)


@record
class _Table:
    """What is known of the kinds of an index when data are bound."""

    found: IndexedValues
    kinds: SSAValue
    """How many there are; 0 where the loop runs as it was."""
    size: SSAValue
    """How many elements a table has, likewise."""
    heads: SSAValue
    """A row of each."""
    counts: SSAValue
    """How many rows each has."""


@record
class _Writer:
    """Writes tables for a loop over rows, and the loop as it was."""

    module: ModuleOp
    rows: RowsByIndex
    found: Sequence[IndexedValues]
    top: Block
    slices: DataSlices

    def write(self) -> list[Operation]:
        """Changes the loop; what is to be done when data are bound, which stands ahead of it."""
        outer = self.rows.outer
        is_plain = self.rows.loop is outer
        (lift if is_plain else lift_values)(outer, self.top, self.slices)
        anchor = ancestor_in(outer, self.top)
        assert anchor is not None
        ahead, write = anchor.prev_op, OpWriter(anchor)
        tables, taken = self._bind(write)
        if is_plain:
            ends = [_or_else(taken, *ends, write) for ends in ((outer.ub, outer.lb), (outer.lb, outer.ub))]
            slots = [self._in_slot(end, write) for end in ends]
        else:
            slots = [self._in_slot(taken, write)]
        written = list(ops_between(ahead, anchor))
        if is_plain:
            self._write_beside(tables, slots)
        else:
            self._write_branch(tables, *slots)
        return written

    def _in_slot(self, value: SSAValue, write: OpWriter) -> SSAValue:
        """A value of `bind`, as it is read in evaluations."""
        slot, begin = take_slots(self.module, 1), self.top.first_op
        assert begin is not None
        write.before(rt.SetBoundOp(slot, value))
        read = rt.BoundOp(slot, value.type)
        self.top.insert_op_before(read, begin)
        return read.res

    def _write_beside(self, tables: Sequence[_Table], ends: Sequence[SSAValue]) -> None:
        """Puts the loop as it was behind: of the two, which end at `ends`, one has rows."""
        loop, original = self.rows.outer, self.rows.original
        users = [[(use.operation, use.index) for use in result.uses] for result in loop.results]
        assert loop.parent is not None and loop.next_op is not None
        write = OpWriter(loop.next_op)
        write.before(original)
        loop.operands = [loop.lb, ends[0], *loop.operands[2:]]
        original.operands = [original.lb, ends[1], *original.operands[2:]]
        runs = write.compare_integers("slt", loop.lb, loop.ub)
        results = self._tabulate(tables, write)
        for result, other, each in zip(results, original.results, users, strict=True):
            chosen = arith.SelectOp.create(operands=(runs, result, other), result_types=(other.type,))
            value = write.put(chosen)
            for user, index in each:
                user.operands[index] = value

    def _write_branch(self, tables: Sequence[_Table], taken: SSAValue) -> None:
        """Puts the loop as it was into an arm: loops over strips know how many rows there are by one number."""
        outer, original = self.rows.outer, self.rows.original
        end = scf.YieldOp.create()
        arms = [Block([end]), Block([original, scf.YieldOp.create(operands=original.results)])]
        branch = scf.IfOp.create(
            operands=(taken,),
            result_types=[result.type for result in outer.results],
            regions=[Region(arm) for arm in arms],
            location=outer.location,
        )
        OpWriter(outer).before(branch)
        for result, new in zip(outer.results, branch.results, strict=True):
            replace_uses(result, new)
        outer.detach()
        arms[0].insert_op_before(outer, end)
        end.operands = self._tabulate(tables, OpWriter(end))

    def _tabulate(self, tables: Sequence[_Table], behind: OpWriter) -> list[SSAValue]:
        """Fills tables, and lets the loop read them; what it gives with what the loops over kinds give."""
        flags: dict[int, SSAValue] = {}
        memory = [_fill(self.rows, table, flags) for table in tables]
        for table, buffers in zip(tables, memory, strict=True):  # which copies of what rows do are made of
            _read(table.found, buffers)
        results: list[SSAValue] = list(self.rows.outer.results)
        for k, flag in flags.items():
            results[k] = behind.put(arith.OrIOp.create(operands=(results[k], flag), result_types=(i64,)))
        return results

    # ------------------------------------------------------------ when data are bound

    def _bind(self, write: OpWriter) -> tuple[list[_Table], SSAValue]:
        """Counts the kinds of each index; the tables, and whether rows read them."""
        zero = write.whole(0)
        count = write.trip_count(
            self.rows.first, where_it_runs(self.rows.outer, self.rows.end, self.rows.first, self.top)
        )
        end = where_it_runs(self.rows.outer, self.rows.outer.ub, self.rows.outer.lb, self.top)
        places = [self._places(found, count, end, write) for found in self.found]
        figures = [write.put(rt.AllocOp(write.whole(3), rt.BufferType(i64))) for _ in places]
        for each, figure in zip(places, figures, strict=True):
            write.before(rt.KernelOp("count_places", (each, count, figure)))
        different, sizes, rows = (
            [write.put(rt.LoadOp(figure, write.whole(n))) for figure in figures] for n in range(3)
        )
        taken = self._is_worth(rows, different, write)
        tables: list[_Table] = []
        bytes_ = zero
        for found, each, kinds, size in zip(self.found, places, different, sizes, strict=True):
            kinds, size = (_or_else(taken, value, zero, write) for value in (kinds, size))
            heads, times = (write.put(rt.AllocOp(kinds, rt.BufferType(i32))) for _ in range(2))
            write.before(rt.KernelOp("place_heads", (each, count, size, kinds, heads, times)))
            tables.append(_Table(found, kinds, size, heads, times))
            bytes_ = write.put(integer(arith.AddiOp, bytes_, write.put(integer(arith.ShLIOp, kinds, write.whole(3)))))
        self._note(taken, (count, self._sum(different, write), bytes_), write)
        return tables, taken

    def _places(self, found: IndexedValues, count: SSAValue, end: SSAValue, write: OpWriter) -> SSAValue:
        """The place in a table that each row reads, NO_TABLE if none has such; NO_PLACE where the row does not
        take the arm. `end`: of the loop."""
        places, variable = write.put(rt.AllocOp(count, rt.BufferType(i32))), self.rows.body.args[0]
        if found.block is not self.rows.body:
            write.before(rt.FillOp(places, write.put(constant(NO_PLACE, i32)), count, initial=True))
        mark = integer(arith.MaxSIOp, found.place, found.place)  # the copy of it is where a row takes the arm
        OpWriter(terminator(found.block)).before(mark)

        def note(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            inside = BlockEnd(copy.parent)
            row = inside.put(integer(arith.SubiOp, values[variable], self.rows.first))
            place = inside.put(integer(arith.MaxSIOp, copy.results[0], inside.put(constant(NO_TABLE, i64))))
            place = inside.put(integer(arith.MinSIOp, place, inside.put(constant(MOST_PLACES, i64))))
            narrow = inside.put(arith.TruncIOp.create(operands=(place,), result_types=(i32,)))
            inside.put_op(rt.StoreOp(narrow, places, row))

        copy = self.slices.copy(self.rows.outer, [mark], note)
        copy.operands = [copy.operands[0], end, *copy.operands[2:]]
        write.before(copy)
        discard(mark)
        return places

    def _is_worth(self, rows: Sequence[SSAValue], different: Sequence[SSAValue], write: OpWriter) -> SSAValue:
        """Whether kinds are few beside rows, by how many functions each index decides."""
        zero = write.whole(0)
        are_known = [write.compare_integers("sge", kinds, zero) for kinds in different]
        work = of_rows = zero
        for found, count, kinds in zip(self.found, rows, different, strict=True):
            functions = write.whole(found.functions)
            part = write.put(integer(arith.MuliOp, kinds, write.whole(ROWS_PER_KIND)))
            part = write.put(integer(arith.AddiOp, part, write.whole(FEWEST_ROWS)))
            work = write.put(integer(arith.AddiOp, work, write.put(integer(arith.MuliOp, part, functions))))
            of_rows = write.put(integer(arith.AddiOp, of_rows, write.put(integer(arith.MuliOp, count, functions))))
        return write.both([*are_known, write.compare_integers("sle", work, of_rows)])

    def _sum(self, values: Sequence[SSAValue], write: OpWriter) -> SSAValue:
        total = write.whole(0)
        for value in values:
            known = write.put(integer(arith.MaxSIOp, value, write.whole(0)))
            total = write.put(integer(arith.AddiOp, total, known))
        return total

    def _note(self, taken: SSAValue, figures: Sequence[SSAValue], write: OpWriter) -> None:
        """Lets users see what was chosen."""
        outcome = _or_else(taken, write.whole(0), write.whole(1), write)
        slot = take_slots(self.module, 1 + len(FIGURES))
        place = self.rows.outer.location
        write.before(rt.LayoutOp("values by index", slot, REASONS, FIGURES, outcome, figures, location=place))


def _or_else(condition: SSAValue, value: SSAValue, otherwise: SSAValue, write: OpWriter) -> SSAValue:
    return write.put(arith.SelectOp.create(operands=(condition, value, otherwise), result_types=(i64,)))


# ---------------------------------------------------------------- evaluations


def _fill(rows: RowsByIndex, table: _Table, flags: dict[int, SSAValue]) -> list[SSAValue]:
    """Computes what an index decides in a loop over its kinds; the memory of it. `flags` that it sets go on."""
    found, write = table.found, OpWriter(rows.outer)
    memory = [
        write.put(rt.AllocOp(table.size, rt.BufferType(f64 if value.type == f64 else i32))) for value in found.values
    ]
    starts = [flags.get(k, write.whole(0)) for k in found.flags]
    variable, inside = new_loop(write, write.whole(0), table.kinds, starts)
    kinds, end = inside.anchor.parent_op(), inside.anchor
    assert isinstance(kinds, scf.ForOp)
    rt.LoopAttr.of_kind("kinds").put(kinds)
    kinds.location = rows.outer.location
    row = inside.put(integer(arith.AddiOp, _wide(inside, table.heads, variable), rows.first))
    known: dict[SSAValue, SSAValue] = {rows.body.args[0]: row}
    for op in copies(found.needed, known):
        inside.before(op)
    for value, to in zip(found.values, memory, strict=True):
        _store(known[value], to, known[found.place], inside)
    for op in found.additions:
        count = inside.put(
            arith.SIToFPOp.create(operands=(_wide(inside, table.counts, variable),), result_types=(f64,))
        )
        inside.before(ad.TargetAddOp(inside.real(arith.MulfOp, count, known[op.value]), location=op.location))
    carried: list[SSAValue] = list(kinds.body.block.args[1:])
    for n, (k, merges) in enumerate(found.flags.items()):
        for _, added in merges:
            both = arith.OrIOp.create(operands=(carried[n], known[added]), result_types=(i64,))
            carried[n] = inside.put(both)
        flags[k] = kinds.results[n]
    end.operands = carried
    return memory


def _store(computed: SSAValue, table: SSAValue, place: SSAValue, inside: OpWriter) -> None:
    if computed.type == i1:
        computed = inside.put(arith.ExtUIOp.create(operands=(computed,), result_types=(i32,)))
    inside.before(rt.StoreOp(computed, table, place, initial=True))


def _read(found: IndexedValues, memory: Sequence[SSAValue]) -> None:
    """Lets rows read tables, and no longer do what is done once for each kind."""
    for value, table in zip(found.values, memory, strict=True):
        _read_instead(value, table, found)
    for op in found.additions:
        discard(op)
    for merges in found.flags.values():
        for merge, added in merges:
            nothing = OpWriter(merge).whole(0)
            merge.operands = [nothing if operand is added else operand for operand in merge.operands]


def _read_instead(value: SSAValue, table: SSAValue, found: IndexedValues) -> None:
    """Lets rows read a value in a table, at a place that may be computed behind it."""
    op = value.owner
    assert isinstance(op, Operation) and op.next_op is not None
    here, known = OpWriter(op.next_op), dict[SSAValue, SSAValue]()
    for maker in copies(found.makers, known):
        here.before(maker)
    read = here.put(rt.LoadOp(table, known.get(found.place, found.place), location=op.location))
    if value.type == i1:
        none = here.put(constant(0, i32))
        read = here.compare_integers("ne", read, none)
    replace_uses(value, read)


def _wide(write: OpWriter, numbers: SSAValue, index: SSAValue) -> SSAValue:
    """A number of 32 bits in memory."""
    return write.put(arith.ExtSIOp.create(operands=(write.put(rt.LoadOp(numbers, index)),), result_types=(i64,)))
