"""Rows of data that are equal are computed once, with a weight; which are is found when data are bound.

    for n in 0:N: target += f(x[n], y[n], theta)
    →   for g in 0:G: for r in first[g]:first[g + 1]: target += weight[g] * f(x'[r], y'[r], theta)

`x'` and `y'` are copies of the columns with one row for all that are equal, those of a weight behind each other. A
weight is the same for a whole loop: sums are multiplied by it behind that loop, and products of factors stay products.
Rows of which there are 13 are in the groups with the weights 8, 4 and 1, unless groups of all weights are cheaper.

Where a branch on data, or a chain of else ifs, has costly arms, groups are of rows that take the same arm: the branch
is around the loop of a group, whose iterations have nothing to choose.

If too few rows are equal there is one group, with all rows, of weight 1, whose columns are the data as they are: the
same code. Behind reverse mode, where a loop adds to the target and to adjoints; see `row_loops` for which loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntAttr, ModuleOp, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer, not_clamped
from ulam.dialects.walk import ops_of, ops_within
from ulam.passes.analysis.nesting import ancestor_in, is_inside, terminator
from ulam.passes.builder import REASSOCIATE
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.data_branches import lift, may_lift, outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.index_forms import Form, known
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_arms import chain_of_branches, in_one_memory, only_chooses
from ulam.passes.loops.row_groups import RowGroups, Strided, element_of, kind_of
from ulam.passes.loops.row_loops import LoopOverRows, NoRows, RowColumn
from ulam.passes.loops.row_means import RowMeans
from ulam.passes.loops.row_weights import weight_of
from ulam.passes.loops.sorted_columns import SortedColumns
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.tables_of_arms import clear_where_unread
from ulam.passes.loops.unit_modules import bind_of, evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, copies, discard, replace_uses, take_arm
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}
_FEW = 64
"""Iterations of a loop of known size that are not worth it."""
_ONE_ARM = "all rows take the same arm"


class UniqueRows(TellingPass):
    """Lets loops over rows of data in `evaluate` run over those that differ, with weights."""

    name = "unique-rows"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        if must_be_precise(module):
            return False
        evaluate = evaluate_of(module, self.name)
        changed: list[_Weighted] = []
        for loop in outermost_loops(evaluate.body.block, DataSlices()):
            if (weighted := _change(loop, module, evaluate.body.block)) is not None:
                changed.append(weighted)
        if changed:
            written = [op for weighted in changed for op in weighted.before]
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
            for weighted in changed:
                if weighted.sorted is not None:
                    weighted.sorted.put_behind(weighted.is_taken, weighted.order)
        return bool(changed)


def _change(loop: scf.ForOp, module: ModuleOp, top: Block) -> _Weighted | None:
    """Makes a loop one over rows that differ; None if the loop stays."""
    if rt.LoopAttr.kind_of(loop)[0] in ("cold", "groups", "kinds"):
        return None
    try:
        rows = LoopOverRows(loop)
        weight = weight_of(rows)
        means = RowMeans.of(rows, weight)
        _find_worth(rows, means)
        if not may_lift(loop, top, slices := DataSlices()):
            raise NoRows("its data are known inside of a branch alone")
    except NoRows as why:
        remark_on(UniqueRows.name, loop, f"equal rows are not looked for: {why}", done=False)
        return None
    lift(loop, top, slices)
    weighted = _Weighted(rows, weight, means, module, top)
    weighted.write()
    remark_on(UniqueRows.name, loop, "equal rows are looked for when data are bound", done=True)
    return weighted


def _find_worth(rows: LoopOverRows, means: RowMeans) -> None:
    """Raises NoRows where nothing is gained, whatever the data are."""
    trips = 1
    for loop in rows.loops:
        lower, upper = constant_integer(loop.lb), constant_integer(loop.ub)
        trips *= _FEW if lower is None or upper is None else upper - lower
    if trips < _FEW:
        raise NoRows("there are few")
    ops = ops_within(rows.loop.body.block)
    if (
        rows.additions
        and not means.values
        and not any(is_costly_function(op) or isinstance(op, arith.DivfOp) for op in ops)
    ):
        raise NoRows("they cost little but for additions to elements")


def _slot_of(buffer: SSAValue) -> int:
    """The slot that a buffer is in; -1 if it is in none."""
    return buffer.owner.slot.value.data if isinstance(buffer.owner, rt.BoundOp) else -1


class _Weighted(RowGroups):
    """Writes a loop over rows as one over groups of rows.

    Where inner loops read data of the row, the loop as it was is kept for data without enough equal rows.
    `top`: what the loop stands in, or branches of data that it stands in.
    """

    def __init__(
        self, rows: LoopOverRows, weight: RowColumn | None, means: RowMeans, module: ModuleOp, top: Block
    ) -> None:
        super().__init__(module, rows.loop)
        self.rows, self.weight, self.means, self.top = rows, weight, means, top
        if any(type(op) is scf.ForOp for op in ops_of(rows.loop.body.block)):
            self.gain_more_than_nest()
        self.shared: dict[Attribute, SSAValue] = {}
        self.compared: list[Operation] = []
        """In the loop, and only for tables of what rows have to be equal in."""

    def write(self) -> None:
        anchor = ancestor_in(self.rows.loop, self.top)
        assert anchor is not None
        self._count()
        self.means.keep_choices()
        made = [value for value in self.means.values if not isinstance(value.owner, rt.LoadOp)]
        self.computed = [self._in_body(value) for value in (*self.rows.computed, *made)]
        is_kept = any(column.inner is not None for column in self.rows.columns)
        self.chain = [] if is_kept else chain_of_branches(self.rows)
        self.sorted = None if is_kept or self.chain else self._sorted()
        alike = in_one_memory(self.rows)
        flat = [self._flat(columns) for columns in alike]
        flat = [self._read_where_needed(*pair) for pair in zip(flat, alike, strict=True)]
        of_weight = next((flat[k] for k, columns in enumerate(alike) if columns[0] is self.weight), None)
        flat += [self._table([made]) for made in self.computed[: len(self.rows.computed)]]
        flat += [self._made_mean(value) for value in made]
        flat += [self._choice(value) for value in self.means.choices]
        found = self.layout(flat, is_kept, self._arms if self.chain else None, of_weight)
        for op in reversed(self.compared):
            discard(op)
        of_column = {column.loads[0]: taken for columns, taken in zip(alike, found, strict=False) for column in columns}
        columns = [of_column[column.loads[0]] for column in self.rows.columns] + found[len(alike) :]
        self._note()
        if is_kept:
            self._keep()
        self._keep_segments()
        self.top.insert_ops_before(self.before, anchor)
        self._write_loops(columns)

    # ------------------------------------------------------------ when data are bound

    def _keep(self) -> None:
        """Lets a copy of the loop do all if there are not enough equal rows, and else nothing."""
        loop = self.rows.loop
        assert loop.parent is not None
        self.groups = self.put(
            arith.SelectOp.create(operands=(self.is_taken, self.groups, self.zero), result_types=(i64,))
        )
        end = self.put(arith.SelectOp.create(operands=(self.is_taken, loop.lb, loop.ub), result_types=(i64,)))
        (copy,) = copies([loop], {})
        loop.parent.insert_op_after(copy, loop)
        for result, copied in zip(loop.results, copy.results, strict=True):
            replace_uses(result, copied)
        copy.operands = [loop.lb, end, loop.step, *loop.results]

    def _note(self) -> None:
        """Lets users see what was chosen."""
        if self.chain:
            one_arm = self.put(
                arith.SelectOp.create(operands=(self.is_moved, self.zero, self.one), result_types=(i64,))
            )
            parts = {"rows": self.count, "else": self.others, "parts": self.parts}
            self.note_choice("parts of rows", _ONE_ARM, parts, one_arm)
        self.note()

    def _sorted(self) -> SortedColumns | None:
        """What gives rows another order (`sort-rows`), if that can wait until it is known that all rows stay."""
        slots = {fact.slot.data for op in ops_within(self.rows.body) if (fact := ad.SegmentsAttr.of(op)) is not None}
        bind = bind_of(self.module)
        found = SortedColumns.of(bind.body.block, slots.pop()) if len(slots) == 1 and bind is not None else None
        if (
            found is None
            or self.computed
            or not all(
                not column.may_be_missing and column.strides[0] == {(): 1} and _slot_of(column.buffer) in found.slots
                for column in self.rows.columns
            )
        ):
            return None
        self.means = self.means.of_reals()  # tables of conditions would have to wait, too
        return found

    def _keep_segments(self) -> None:
        """Rows in the order of an index (`sort-rows`) are so no more where equal ones have been put together."""
        slots: dict[int, None] = {}
        for op in ops_within(self.rows.loop.body.block):
            if isinstance(op, ad.AccumulateOp) and (fact := ad.SegmentsAttr.take(op)) is not None:
                ad.SegmentsAttr(fact.slot, fact.key, IntAttr(0)).put(op)
                slots[fact.slot.data] = None
        for slot in slots if self.sorted is None else ():
            outcome = self.put(rt.BoundOp(slot, i64))
            left = self.put(arith.SelectOp.create(operands=(self.is_taken, self.zero, outcome), result_types=(i64,)))
            self.before.append(rt.SetBoundOp(slot, left))

    def _count(self) -> None:
        """The number of rows, and those of the loops that count them."""
        self.trips: list[SSAValue] = []
        for loop in self.rows.loops:
            span = self.integer(arith.SubiOp, loop.ub, loop.lb)
            self.trips.append(self.integer(arith.MaxSIOp, span, self.zero))
        self.count = self.trips[0]
        for trip in self.trips[1:]:
            self.count = self.integer(arith.MuliOp, self.count, trip)

    def _read_where_needed(self, flat: Strided, columns: list[RowColumn]) -> Strided:
        """A column that is not read if rows need it for the branches alone that groups are behind."""
        loads = [load.res for column in columns for load in column.loads]
        flat = replace(flat, is_read=not (flat.stays and all(only_chooses(load, self.chain) for load in loads)))
        if self.means.has(columns):
            is_mean = columns[0].loads[0].res.type == f64
            is_read = is_mean or (self.means.reads_choices_of(columns) and flat.is_read)
            return replace(flat, is_compared=False, is_mean=is_mean, is_read=is_read)
        return flat

    def _made_mean(self, value: SSAValue) -> Strided:
        """What rows compute of ints, which is put together as its mean."""
        table = self._shared(f64)
        assert isinstance(value.owner, Operation)
        fill = partial(self._fill_anew, [value.owner], table)
        return Strided(table, self.one, self.one, self.zero, False, fill=fill, is_compared=False, is_mean=True)

    def _choice(self, value: SSAValue) -> Strided:
        """A condition on ints of which rows have the mean: it tells which are equal."""
        as_int = arith.ExtUIOp.create(operands=(value,), result_types=(i32,))
        OpWriter.behind(value).before(as_int)
        self.compared.append(as_int)
        table = self._shared(i32)
        fill = partial(self._fill_anew, [as_int], table)
        return Strided(table, self.one, self.one, self.zero, False, fill=fill, is_read=False)

    def _flat(self, columns: list[RowColumn]) -> Strided:
        """Where a column is, in the order of the rows, or several of which each row has one at most."""
        column = columns[0]
        element = column.loads[0].res.type
        if column.may_be_missing and not self._is_a_table(columns):
            return self._table([load for column in columns for load in column.loads])
        offset = self._form(column.offset)
        strides: list[SSAValue] = []
        for loop, form in zip(self.rows.loops, column.strides, strict=True):
            strides.append(stride := self._form(form))
            offset = self._plus(offset, stride, loop.lb)
        if column.inner is not None and column.across is not None:
            across, inner = self._form(column.across), column.inner
            offset = self._plus(offset, across, inner.lb)
            span = self.integer(arith.SubiOp, not_clamped(inner.ub), inner.lb)
            width = self.integer(arith.MaxSIOp, span, self.zero)
            begin = self.put(rt.ViewOp(column.buffer, offset))
            return Strided(begin, strides[0], width, across, stays=False)
        if self.sorted is not None:
            given = self.put(rt.BoundOp(_slot_of(column.buffer) + 1, column.buffer.type))
            begin, otherwise = (self.put(rt.ViewOp(buffer, offset)) for buffer in (given, column.buffer))
            return Strided(begin, self.one, self.one, self.zero, stays=True, otherwise=otherwise)
        begin = self.put(rt.ViewOp(column.buffer, offset))
        if self.rows.inner is None:
            stays = column.strides[0] == {(): 1} and isinstance(column.buffer.owner, rt.BoundOp)
            return Strided(begin, strides[0], self.one, self.zero, stays)
        flat = self._shared(element)
        flatten = partial(self.kernel, f"flatten_{kind_of(element)}", begin, *self.trips, *strides, flat)
        return Strided(flat, self.one, self.one, self.zero, stays=False, fill=flatten)

    def _is_a_table(self, columns: list[RowColumn]) -> bool:
        """Whether rows have columns that not all of them load in a table that is 0 in the others."""
        bind = bind_of(self.module)
        return bind is not None and clear_where_unread(columns, self.rows.loop, bind.body.block)

    def _shared(self, element: Attribute) -> SSAValue:
        """Memory for a column that is nowhere in the order of the rows of a nest, which may have more of them than it
        has data: one column has it after the other.
        """
        if element not in self.shared:
            self.shared[element] = self.alloc(self.count, element)
        return self.shared[element]

    def _plus(self, offset: SSAValue, stride: SSAValue, number: SSAValue) -> SSAValue:
        if constant_integer(number) == 0:
            return offset
        return self.integer(arith.AddiOp, offset, self.integer(arith.MuliOp, stride, number))

    def _form(self, form: Form) -> SSAValue:
        if (number := known(form)) is not None and number in (0, 1):
            return self.one if number else self.zero
        ops, value = self.rows.write(form)
        self.before += ops
        return value

    def _in_body(self, value: SSAValue) -> Operation:
        """The op that computes a value of a row; in the inner loop, if rows are those of a nest."""
        op, body = value.owner, self.rows.body
        assert isinstance(op, Operation) and body.first_op is not None
        if ancestor_in(op, body) is not None:
            return op
        inside = cloned(op)
        body.insert_op_before(inside, body.first_op)
        for use in [use for use in value.uses if ancestor_in(use.operation, body) is not None]:
            use.operation.operands[use.index] = inside.results[0]
        return inside

    def _table(self, ops: Sequence[Operation]) -> Strided:
        """A table of what rows load or compute, where they do so, else zero."""
        element = ops[0].results[0].type
        if self.rows.inner is not None:
            table = self._shared(element)
            fill = partial(self._fill_anew, ops, table)
            return Strided(table, self.one, self.one, self.zero, stays=False, fill=fill)
        table = self.lasting(self.count, element, zero=True)
        self._fill(ops, table)
        return Strided(table, self.one, self.one, self.zero, stays=True)

    def _fill_anew(
        self, ops: Sequence[Operation], table: SSAValue, numbers: Mapping[Operation | Block, int] | None = None
    ) -> None:
        """Writes such a table where another one may have been."""
        none = self.put(constant(0.0, f64)) if element_of(table) == f64 else self.put(constant(0, i32))
        self.before.append(rt.FillOp(table, none, self.count))
        self._fill(ops, table, numbers)

    def _fill(
        self, ops: Sequence[Operation], table: SSAValue, numbers: Mapping[Operation | Block, int] | None = None
    ) -> None:
        """Writes what rows compute of their data into a table; a row that does several of these has the same of all.

        `numbers`: of conditions, wherever they are computed: the largest one of those that hold is written.
        """
        loops, trips = self.rows.loops, self.trips

        def store(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            block = copy.parent
            assert block is not None
            opened: list[Block] = []
            values = dict(values)
            for loop in loops:
                if not is_inside(original.results[0], loop):  # all its rows have that value
                    opened.append(Block(arg_types=[i64]))
                    values[loop.body.block.args[0]] = opened[-1].args[0]
                    block.add_op(scf.ForOp.create(operands=loop.operands[:3], regions=[Region(opened[-1])]))
                    block = opened[-1]
            index: SSAValue | None = None
            for loop, trip in reversed(list(zip(loops, trips, strict=True))):
                variable = loop.body.block.args[0]
                position = integer(arith.SubiOp, values.get(variable, variable), loop.lb)
                block.add_op(position)
                if index is None:
                    index = position.results[0]
                else:
                    scaled = integer(arith.MuliOp, index, trip)
                    total = integer(arith.AddiOp, scaled.results[0], position.results[0])
                    block.add_ops([scaled, total])
                    index = total.results[0]
            assert index is not None
            value = copy.results[0]
            if numbers is not None:
                number, known = constant(numbers[original], i32), rt.LoadOp(table, index)
                is_more = arith.CmpiOp.create(
                    operands=(number.result, known.res), result_types=(i1,), properties={"predicate": CMPI["sgt"]}
                )
                holds = arith.AndIOp.create(operands=(value, is_more.result), result_types=(i1,))
                chosen = arith.SelectOp.create(operands=(holds.result, number.result, known.res), result_types=(i32,))
                block.add_ops([number, known, is_more, holds, chosen])
                value = chosen.results[0]
            block.add_op(rt.StoreOp(value, table, index))
            for inner in opened:
                inner.add_op(scf.YieldOp.create())

        self.before.append(DataSlices().copy(self.rows.loop, ops, store))

    def _arms(self) -> SSAValue:
        """Which arm of the chain each row takes: the first one has the largest number, the last else has 0."""
        arms = self._shared(i32) if self.rows.inner is not None else self.alloc(self.count, i32)
        numbers: dict[Operation | Block, int] = {}
        for n, branch in enumerate(self.chain):
            numbers.setdefault(branch.cond.owner, len(self.chain) - n)
        self._fill_anew([op for op in numbers if isinstance(op, Operation)], arms, numbers)
        return arms

    # ------------------------------------------------------------ the loops

    def _write_loops(self, columns: list[SSAValue]) -> None:
        rows, loop = self.rows, self.rows.loop
        outer = loop.parent
        assert outer is not None
        body = Block(arg_types=[i64, *(loop.iter_args[k].type for k in rows.sums)])
        none = constant(0.0, f64)
        following = integer(arith.AddiOp, body.args[0], self.one)
        first, last = rt.LoadOp(self.starts, body.args[0]), rt.LoadOp(self.starts, following.results[0])
        weight = rt.LoadOp(self.weights, body.args[0])
        body.add_ops([following, first, last, weight])
        starts: list[SSAValue] = [
            body.args[1 + n] if value.type != f64 else none.result for n, value in enumerate(self._carried())
        ]
        inner = self._inner_loop(columns, first.res, last.res, weight.res, starts)
        chosen = self._chosen(inner, body) if self.chain else inner
        body.add_op(chosen)
        ends: list[SSAValue] = []
        for n, result in enumerate(chosen.results):
            if result.type != f64:
                ends.append(result)
                continue
            weighted = arith.MulfOp.create(operands=(weight.res, result), result_types=(f64,), properties=_STRICT)
            total = arith.AddfOp.create(
                operands=(body.args[1 + n], weighted.results[0]),
                result_types=(f64,),
                properties={"fastmath": REASSOCIATE},
            )
            body.add_ops([weighted, total])
            ends.append(total.results[0])
        body.add_op(scf.YieldOp.create(operands=ends))
        around = scf.ForOp.create(
            operands=(self.zero, self.groups, self.one, *self._carried()),
            result_types=[value.type for value in self._carried()],
            regions=[Region(body)],
            location=loop.location,
        )
        rt.LoopAttr.of_kind("groups").put(around)
        outer.insert_ops_before([none, around], loop)
        for n, k in enumerate(rows.sums):
            replace_uses(loop.results[k], around.results[n])
        for k, result in enumerate(loop.results):
            if k not in rows.sums:
                replace_uses(result, loop.iter_args[k])
        discard(loop)

    def _chosen(self, loop: scf.ForOp, body: Block) -> scf.IfOp:
        """A loop for each arm of a chain of branches, which all rows of a group take."""
        ops = list(ops_within(loop.body.block))
        positions = [ops.index(branch) for branch in self.chain]
        loops = [loop, *(each for _ in positions for each in copies([loop], {}))]
        for taken, each in enumerate(loops):
            ops = list(ops_within(each.regions[0].block))
            for n, position in enumerate(positions[: taken + 1]):
                branch = ops[position]
                assert isinstance(branch, scf.IfOp)
                take_arm(branch, branch.true_region if n == taken else branch.false_region)
        arm = rt.LoadOp(self.arms, body.args[0])
        body.add_op(arm)
        types = [result.type for result in loop.results]
        chosen: Operation = loops.pop()
        while loops:
            each = loops.pop()
            number = constant(len(self.chain) - len(loops), i64)
            is_taken = arith.CmpiOp.create(
                operands=(arm.res, number.result), result_types=(i1,), properties={"predicate": CMPI["eq"]}
            )
            body.add_ops([number, is_taken])
            regions = [Region(Block([op, scf.YieldOp.create(operands=op.results)])) for op in (each, chosen)]
            chosen = scf.IfOp.create(operands=(is_taken.result,), result_types=types, regions=regions)
        assert isinstance(chosen, scf.IfOp)
        return chosen

    def _carried(self) -> list[SSAValue]:
        return [self.rows.loop.iter_args[k] for k in self.rows.sums]

    def _inner_loop(
        self, columns: list[SSAValue], first: SSAValue, last: SSAValue, weight: SSAValue, starts: list[SSAValue]
    ) -> scf.ForOp:
        """The body of the loop as a loop over the rows of a group."""
        rows, loop = self.rows, self.rows.loop
        source = rows.body
        for column, taken in zip(rows.columns, columns, strict=False):
            for load in column.loads:
                load.operands = (taken, self._index(column, load, source.args[0]))
        for made, taken in zip(self.computed, columns[len(rows.columns) :], strict=False):
            assert made.parent is not None
            load = rt.LoadOp(taken, source.args[0], location=made.location)
            made.parent.insert_op_before(load, made)
            replace_uses(made.results[0], load.res)
        for op in list(ops_within(loop.body.block)):
            if isinstance(op, ad.TargetAddOp) or op in rows.additions:
                self._weigh(op, weight)
        if rows.inner is not None:
            begin = source.first_op
            assert begin is not None
            replace_uses(loop.body.block.args[0], source.args[0])  # of numbers of rows, which nothing needs any more
            for op in list(loop.body.block.ops):
                if op is rows.inner:
                    break
                op.detach()
                source.insert_op_before(op, begin)
        end = terminator(source)
        positions = [k if inside is None else inside for k, inside in rows.sums.items()]
        unchanged = [k for k in range(len(end.operands)) if k not in positions]
        own = rows.loops[-1]
        for k in unchanged:
            replace_uses(source.args[1 + k], _origin(own.iter_args[k], loop))
        kept = [end.operands[k] for k in positions]
        arguments = [source.args[1 + k] for k in positions]
        new: dict[SSAValue, SSAValue] = {
            argument: source.insert_arg(argument.type, len(source.args)) for argument in arguments
        }
        for argument, replacement in new.items():
            replace_uses(argument, replacement)
        end.operands = [new.get(value, value) for value in kept]
        for argument in list(source.args[1 : len(source.args) - len(new)]):
            source.erase_arg(argument)
        return scf.ForOp.create(
            operands=(first, last, self.one, *starts),
            result_types=[value.type for value in starts],
            regions=[own.detach_region(own.body)],
            attributes=own.attributes,
            location=own.location,
        )

    def _index(self, column: RowColumn, load: rt.LoadOp, row: SSAValue) -> SSAValue:
        """Where a row's element is among the copied ones."""
        around = load.parent_op()
        if column.inner is None:
            return row
        assert isinstance(around, scf.ForOp) and load.parent is not None
        position = integer(arith.SubiOp, around.body.block.args[0], around.lb)
        begin = integer(arith.MuliOp, position.results[0], self.kept)
        index = integer(arith.AddiOp, begin.results[0], row)
        load.parent.insert_ops_before([position, begin, index], load)
        return index.results[0]

    def _weigh(self, op: Operation, weight: SSAValue) -> None:
        """Multiplies what is added."""
        position = 0 if isinstance(op, ad.TargetAddOp) else 2
        product = arith.MulfOp.create(
            operands=(weight, op.operands[position]), result_types=(f64,), properties=_STRICT, location=op.location
        )
        assert op.parent is not None
        op.parent.insert_op_before(product, op)
        op.operands[position] = product.results[0]


def _origin(value: SSAValue, loop: scf.ForOp) -> SSAValue:
    """What a value is that the loop passes on unchanged."""
    if isinstance(value, BlockArgument) and value.owner is loop.body.block:
        return loop.iter_args[value.index - 1]
    return value
