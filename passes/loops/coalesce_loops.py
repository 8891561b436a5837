"""Nests of loops, of which data say how often the inner one runs, get one loop over all their rows beside them.

    for j in 0:J: a = u[j]; for k in first[j]:last[j]: target += f(x[k], a)
    →   bind:      J', x' = j and x[k] of each pair (j, k), in order;  R = how many there are
        evaluate:  if (rows have a layout): for r in 0:R: target += f(x'[r], u[J'[r]])
                   else: the nest as it was

Data of groups of different sizes are written like this, with bounds, with `segment`, with `y[first : last]`; outcomes
in a matrix are, with the same bounds for all `j`. What finds layouts of the data (`linear-layouts`, `unique-rows` and
others) knows loops over rows whose groups are an index, and that is what the one loop is: pairs may be in several
groups or in none, and groups may be empty. Whatever else the outer loop does for a group gets a loop of its own.
Evaluations run the one loop where a layout of its rows was taken when data were bound (`choose-nests`): a group's
coefficient is found faster by the nest. Where nests hand on memory with an element for each row, as products of a
design, the rows of the one loop compute their own (`rows_alone`). Nests that fill memory for a loop over rows behind
them get such a loop, too (`flat_fills`).

Sums of squares whose rows are reduced (`linear-layouts`) need no such loop: the nest becomes two, of which one has the
rows alone, if these are found as they are then; in a branch on data its loops have no iteration where that is not
taken. Nothing is copied when data are bound.

    for j: target += g(u[j]); for k: target += square(y[k, j] - u[j])
    →   for j: for k: target += square(y[k, j] - u[j])
        for j: target += g(u[j])

Not done where there are more than twice as many pairs as elements of the data that they read, or for rows that nothing
could be gained of: those that are no sums of squares and evaluate no function, or have a coefficient each. Nor for
nests with as many rows in each iteration of which passes find layouts as they are.

Idea: loop coalescing (Polychronopoulos, 1987).
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntAttr, ModuleOp, f64, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_inside, terminator
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.coalesced_rows import is_coalesced
from ulam.passes.loops.data_branches import lift_values, may_lift, outermost_loops, where_it_runs
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.flat_fills import write_flat_fills
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_layouts import are_reduced
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import BlockEnd, OpWriter, integer
from ulam.passes.loops.ragged_rows import RaggedRows, SumOfRows, loops_of_rows, read_from_around, rows_of_nest
from ulam.passes.loops.repeated_values import computed
from ulam.passes.loops.rows_alone import with_rows_alone
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of, take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, copies, discard, replace_uses, sink_into_arm
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_MOST_ROWS = 2**31 - 1
_TIMES_DATA = 2


class CoalesceLoops(TellingPass):
    """Writes one loop over all rows beside nests whose rows are iterations of an inner loop."""

    name = "coalesce-loops"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        top, slices = evaluate.body.block, DataSlices()
        loops = list(outermost_loops(top, slices))
        nests = [loop for loop in loops if any(loops_of_rows(loop, slices))]
        if must_be_precise(module):
            return False
        written, is_split = write_flat_fills(self.name, module, top, slices), False
        for loop in nests:
            if is_coalesced(loop) or not may_lift(loop, top, slices):
                continue
            nest = with_rows_alone(loop) or loop
            if (found := rows_of_nest(nest, slices)) and not any(map(_may_leave, ops_within(nest))):
                writer = _Writer(loop, nest, found, module, top, slices)
                if nest is loop and writer.write_nest():
                    is_split = True
                    remark_on(self.name, loop, "its rows have a nest of their own, to be reduced", done=True)
                else:
                    remark_on(self.name, loop, "its rows are put into one loop when data are bound", done=True)
                    written += writer.write()
            if nest is not loop:
                discard(nest)
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return bool(written) or is_split


def _may_leave(op: Operation) -> bool:
    """Whether it depends on a check what may be read behind it."""
    return isinstance(op, rt.CheckOp) and not rt.HarmlessAttr.marks(op)


@record
class _Table:
    """What `bind` leaves of the rows of a loop."""

    rows: RaggedRows
    is_there: SSAValue
    count: SSAValue
    """The number of rows; 0 if the nest runs as it was."""
    numbers: dict[scf.ForOp, SSAValue] = field(default_factory=dict[scf.ForOp, SSAValue])
    """Loop → which iteration of it each row belongs to."""
    columns: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])
    """Of what loops inside of rows read: an element for each row of the first iteration, then for those of the next."""

    def place(
        self, op: Operation, inner: Block, row: SSAValue, count: SSAValue, write: OpWriter | BlockEnd
    ) -> SSAValue:
        """Where a row has what an op reads, in an iteration of a loop inside. `count`: of rows."""
        loop = self.rows.looped.get(op)
        if loop is None:
            return row
        at = write.put(integer(arith.SubiOp, inner.args[0], loop.lb))
        return write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, at, count)), row))


@record
class _Writer:
    """Writes the rows of the loops of a nest beside it."""

    original: scf.ForOp
    """The nest that stands beside the rows."""
    outer: scf.ForOp
    """The same with loops over rows: itself, or a copy."""
    rows: list[RaggedRows]
    module: ModuleOp
    top: Block
    slices: DataSlices

    def write(self) -> list[Operation]:
        """Puts a branch in the place of the nest; what is to be done when data are bound, which stands ahead of it."""
        end = self.outer.ub
        if self.outer.parent is not self.top:
            lift_values(self.outer, self.top, self.slices)
            end = where_it_runs(self.outer, end, self.outer.lb, self.top)
        anchor = ancestor_in(self.outer, self.top)
        assert anchor is not None
        ahead = anchor.prev_op
        write = OpWriter(anchor)
        tables = [self._table(rows, end, write) for rows in self.rows]
        are_there = write.both([table.is_there for table in tables])
        # Without rows none of the loops gets a layout: they run together, or the nest does.
        counts = [_count_if(are_there, table.count, write) for table in tables]
        slot = take_slots(self.module, 1 + len(tables))
        begin = self.top.first_op
        assert begin is not None
        reads: list[SSAValue] = []
        for n, value in enumerate((are_there, *counts)):
            write.before(rt.SetBoundOp(slot + n, value))
            read = rt.BoundOp(slot + n, value.type)
            rt.CoalescedAttr(IntAttr(slot)).put(read)
            self.top.insert_op_before(read, begin)
            reads.append(read.res)
        written = list(ops_between(ahead, anchor))
        self._write_branch(reads[0], reads[1:], tables)
        return written

    def write_nest(self) -> bool:
        """Lets the nest be two, of which one has nothing but the rows, if these are reduced then; whether they are."""
        if len(self.rows) > 1 or not self.rows[0].are_reduced_alone:
            return False
        (rows,), outer = self.rows, self.outer
        nest = _write_nest(rows, OpWriter(outer))
        if not are_reduced(nest, self.slices):
            discard(nest)
            return False
        results = self._write_rest(OpWriter(outer))
        for position, into in rows.flags.items():
            both = arith.OrIOp.create(operands=(results[into], nest.results[position]), result_types=(i64,))
            results[into] = OpWriter(outer).put(both)
        for result, new in zip(outer.results, results, strict=True):
            replace_uses(result, new)
        discard(outer)
        return True

    # ------------------------------------------------------------ when data are bound

    def _table(self, rows: RaggedRows, end: SSAValue, write: OpWriter) -> _Table:
        body = rows.loop.body.block
        mark = integer(arith.AddiOp, body.args[0], body.args[0])  # the copy of it is where a row is complete
        body.insert_op_before(mark, terminator(body))
        found = self._count(rows, mark, end, write)
        for loop in (*rows.path, rows.loop) if rows.uses_number or rows.has_key else rows.path:
            found.numbers[loop] = write.put(rt.AllocOp(found.count, rt.BufferType(i32)))
        for op in rows.columns:
            is_partial = op.parent is not rows.loop.body.block  # rows do not write it where a branch is not taken
            found.columns[op] = write.put(rt.AllocOp(found.count, rt.BufferType(op.results[0].type), zero=is_partial))
        for op, loop in rows.looped.items():
            trips = write.put(integer(arith.SubiOp, loop.ub, loop.lb))
            trips = write.put(integer(arith.MaxSIOp, trips, write.whole(0)))
            size = write.put(integer(arith.MuliOp, found.count, trips))
            found.columns[op] = write.put(rt.AllocOp(size, rt.BufferType(op.results[0].type), zero=True))
        at = write.put(rt.AllocOp(write.whole(1), rt.BufferType(i64), zero=True))

        def fill(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            inside = BlockEnd(copy.parent)
            row = inside.put(rt.LoadOp(at, zero))
            if original is not mark:
                place = found.place(original, copy.parent, row, found.count, inside)
                inside.put_op(rt.StoreOp(copy.results[0], found.columns[original], place))
                return
            for loop, numbers in found.numbers.items():
                number = values[loop.body.block.args[0]]
                narrow = arith.TruncIOp.create(operands=(number,), result_types=(i32,))
                inside.put_op(rt.StoreOp(inside.put(narrow), numbers, row))
            inside.put_op(rt.StoreOp(inside.put(integer(arith.AddiOp, row, one)), at, zero))

        zero, one = write.whole(0), write.whole(1)
        copy = self.slices.copy(self.outer, [*rows.columns, *rows.looped, mark], fill)
        copy.operands = [copy.operands[0], end, *copy.operands[2:]]
        arms = [Region(Block([copy, scf.YieldOp.create()])), Region(Block([scf.YieldOp.create()]))]
        write.before(scf.IfOp.create(operands=[found.is_there], regions=arms, location=rows.loop.location))
        discard(mark)
        return found

    def _count(self, rows: RaggedRows, mark: Operation, end: SSAValue, write: OpWriter) -> _Table:
        """How many rows there are; whether they are not too many for the data that they read."""
        sizes = write.put(rt.AllocOp(write.whole(3), rt.BufferType(i64), zero=True))
        zero, one, two = (write.whole(n) for n in range(3))
        loads = [op for op in rows.columns if isinstance(op, rt.LoadOp)][:1]
        weights = [value.owner for value in rows.factors if self.slices.is_data(value) and is_inside(value, self.outer)]
        weights = [op for op in weights if isinstance(op, Operation)]

        def count(original: Operation, copy: Operation, _: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            inside = BlockEnd(copy.parent)
            if original is mark:
                row = inside.put(rt.LoadOp(sizes, zero))
                inside.put_op(rt.StoreOp(inside.put(integer(arith.AddiOp, row, one)), sizes, zero))
                return
            if original in weights:
                nothing = inside.put(constant(0.0, f64))
                found = inside.put(arith.MulfOp(copy.results[0], nothing))
                is_none = inside.put(arith.CmpfOp(found, found, "uno"))
                flag = inside.put(arith.ExtUIOp(is_none, i64))
                both = inside.put(arith.OrIOp(inside.put(rt.LoadOp(sizes, two)), flag))
                inside.put_op(rt.StoreOp(both, sizes, two))
                return
            assert isinstance(copy, rt.LoadOp)
            element, buffer = copy.index, copy.buffer
            while isinstance(view := buffer.owner, rt.ViewOp):
                element, buffer = inside.put(integer(arith.AddiOp, element, view.offset)), view.buffer
            most = inside.put(integer(arith.MaxSIOp, inside.put(rt.LoadOp(sizes, one)), element))
            inside.put_op(rt.StoreOp(most, sizes, one))

        copy = self.slices.copy(self.outer, [*loads, *weights, mark], count)
        copy.operands = [copy.operands[0], end, *copy.operands[2:]]
        write.before(copy)
        many = write.put(rt.LoadOp(sizes, zero))
        conditions = [write.compare_integers("sgt", many, zero)]
        conditions.append(write.compare_integers("sle", many, write.whole(_MOST_ROWS)))
        if weights:
            conditions.append(write.compare_integers("eq", write.put(rt.LoadOp(sizes, two)), zero))
        if loads:
            data = write.put(integer(arith.AddiOp, write.put(rt.LoadOp(sizes, one)), one))
            most = write.put(integer(arith.MuliOp, data, write.whole(_TIMES_DATA)))
            conditions.append(write.compare_integers("sle", many, most))
        is_there = write.both(conditions)
        return _Table(rows, is_there, _count_if(is_there, many, write))

    # ------------------------------------------------------------ evaluations

    def _write_branch(self, condition: SSAValue, counts: list[SSAValue], tables: list[_Table]) -> None:
        outer = self.original
        end, otherwise = scf.YieldOp.create(), Block()
        branch = scf.IfOp.create(
            operands=[condition],
            result_types=[result.type for result in outer.results],
            regions=[Region(Block([end])), Region(otherwise)],
            location=outer.location,
        )
        OpWriter(outer).before(branch)
        results = self._write_rest(OpWriter(end))
        for table, count in zip(tables, counts, strict=True):
            loop = _write_rows(table, count, OpWriter(end))
            for position, into in table.rows.flags.items():
                both = arith.OrIOp.create(operands=(results[into], loop.results[position]), result_types=(i64,))
                results[into] = OpWriter(end).put(both)
        end.operands = results
        for result, new in zip(outer.results, branch.results, strict=True):
            replace_uses(result, new)
        outer.detach()
        otherwise.add_ops([outer, scf.YieldOp.create(operands=list(outer.results))])

    def _write_rest(self, write: OpWriter) -> list[SSAValue]:
        """The nest without the loops whose rows have one of their own; what it gives."""
        (rest,) = copies([self.outer], {})
        same = dict(zip(ops_within(self.outer), ops_within(rest), strict=True))
        write.before(rest)
        for rows in self.rows:
            loop = same[rows.loop]
            for result, start in zip(loop.results, loop.operands[3:], strict=True):
                replace_uses(result, start)
            discard(loop)
            for op in [*(op for op, _ in rows.repeated), *(found.end for found in rows.sums)]:
                if op is not None:
                    discard(same[op])
        return list(rest.results)


def _count_if(condition: SSAValue, count: SSAValue, write: OpWriter) -> SSAValue:
    """A number of rows, or 0."""
    return write.put(arith.SelectOp.create(operands=(condition, count, write.whole(0)), result_types=(i64,)))


def _write_rows(table: _Table, count: SSAValue, write: OpWriter) -> scf.ForOp:
    """The loop over all rows."""
    loop, known = table.rows.loop, dict[SSAValue, SSAValue]()
    row, inside = new_loop(write, write.whole(0), count, _starts(loop, write))
    for each, numbers in table.numbers.items():
        number = inside.put(rt.LoadOp(numbers, row))
        wide = arith.ExtSIOp.create(operands=(number,), result_types=(i64,))
        known[each.body.block.args[0]] = inside.put(wide)
    known.setdefault(loop.body.block.args[0], row)  # what is computed of it are places of columns, which nothing needs
    new = _write_body(table.rows, known, inside)
    for op, column in table.columns.items():
        copy = known[op.results[0]].owner
        assert isinstance(copy, Operation) and copy.parent is not None
        place = table.place(op, copy.parent, row, count, OpWriter(copy))
        load = rt.LoadOp(column, place, location=op.location)
        copy.parent.insert_op_before(load, copy)
        replace_uses(copy.results[0], load.res)
        discard(copy)
    return new


def _starts(loop: scf.ForOp, write: OpWriter) -> list[SSAValue]:
    """What flags and sums of rows begin with."""
    return [write.whole(0) if start.type == i64 else write.number(0.0) for start in loop.iter_args]


def _write_nest(rows: RaggedRows, write: OpWriter) -> scf.ForOp:
    """The loops around the rows, with nothing else in them."""
    known, loops = dict[SSAValue, SSAValue](), list[scf.ForOp]()
    for each in (*rows.path, rows.loop):
        lower, upper = (computed(bound, known, rows.outer, write) for bound in (each.lb, each.ub))
        upper = _end_in_branches(rows, each, (lower, upper), known, write)
        known[each.body.block.args[0]], write = new_loop(write, lower, upper, _starts(rows.loop, write))
        loops.append(_loop_of(write))
        loops[-1].location = each.location
    for around, inner in pairwise(loops):
        end = terminator(around.body.block)
        for position in rows.flags:
            both = arith.OrIOp.create(operands=(end.operands[position], inner.results[position]), result_types=(i64,))
            end.operands[position] = OpWriter(end).put(both)
    _write_body(rows, known, write)
    return loops[0]


def _end_in_branches(
    rows: RaggedRows,
    loop: scf.ForOp,
    bounds: tuple[SSAValue, SSAValue],
    known: dict[SSAValue, SSAValue],
    write: OpWriter,
) -> SSAValue:
    """Where a loop ends that has no iteration unless the branches that it stands in are taken."""
    lower, upper = bounds
    for branch, inner, holds in rows.branches:
        if inner is loop:
            condition = computed(branch.cond, known, rows.outer, write)
            ends = (upper, lower) if holds else (lower, upper)
            upper = write.put(arith.SelectOp.create(operands=(condition, *ends), result_types=(i64,)))
    return upper


def _write_body(rows: RaggedRows, known: dict[SSAValue, SSAValue], inside: OpWriter) -> scf.ForOp:
    """What a row does, in the loop that is written; the loop. `known`: the numbers of all loops."""
    body, new = list(rows.loop.body.block.ops), _loop_of(inside)
    new.location = rows.loop.location
    known.update(zip(rows.loop.body.block.args[1:], new.body.block.args[1:], strict=True))
    first = inside.anchor.prev_op
    for value in read_from_around(rows):
        computed(value, known, rows.outer, inside)
    repeated = list(ops_between(first, inside.anchor))
    new.body.block.insert_ops_before(copies(body[:-1], known), inside.anchor)
    inside.anchor.operands = [known.get(value, value) for value in body[-1].operands]
    for op, value in rows.repeated:
        inside.before(ad.TargetAddOp(known.get(value, value), location=op.location))
    for found in rows.sums:
        for op, value in found.additions:
            copy = known[op.results[0]].owner
            assert isinstance(copy, Operation)
            end = OpWriter(copy)
            end.before(ad.TargetAddOp(_scaled(known.get(value, value), found, known, end), location=op.location))
    for op in reversed(repeated):
        sink_into_arm(op)  # its slope may be infinite where that is not taken
    return new


def _loop_of(inside: OpWriter) -> scf.ForOp:
    """The loop that a writer is in."""
    loop = inside.anchor.parent_op()
    assert isinstance(loop, scf.ForOp)
    return loop


def _scaled(value: SSAValue, found: SumOfRows, known: dict[SSAValue, SSAValue], write: OpWriter) -> SSAValue:
    """What becomes of an addend on the way to the target."""
    for op, at in found.steps:
        operands = [value if n == at else known.get(operand, operand) for n, operand in enumerate(op.operands)]
        value = write.put(applied_to(op, operands))
    return value
