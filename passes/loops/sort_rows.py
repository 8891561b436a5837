"""Rows that add to elements of buffers by data indices get an order when data are bound: equal indices side by side.

    for n: ... y[n], theta[g[n]] ... adj[g[n]] += v     →     bind:      order, runs = segment_rows(g);  y' = y[order]
                                                              evaluate:  for n: ... y'[n], theta[g'[n]] ...
                                                                         for runs: adj[g'[run]] += sum of v

The loop stays as it is and reads other memory: columns of data in the order of the rows. Where `bind` finds too few
rows per index, or rows in that order already, that memory is the data themselves. What the additions become is for
`split-scatters` to write: they are marked (`ad.segments`).

The order of rows may change if all that iterations leave behind are sums and flags, and if all that they read by the
number of the row is data. Rows that evaluate no function are as fast as they are read, and beside a function that is
not widened additions cost nothing: they stay. Of several indices the kernel takes all together or one of them, by what
is then left to add. What that is worth depends on what rows cost besides (`_work`), and on how many of them add to what
the one before added to: such additions wait for each other, others hardly cost more than a sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, ModuleOp, f64, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.library.costs import WIDENED
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.coalesced_rows import is_alone
from ulam.passes.loops.data_branches import lift, may_lift, outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE, is_speculatable
from ulam.passes.loops.even_rows import additions
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.sorted_columns import NEEDLESS
from ulam.passes.loops.split_scatters import RUNS_SHIFT
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import bind_of, evaluate_of, take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

MOST_KEYS = 8
_ROW, _FUNCTION = 2, 2
REASONS = ("too few rows wait for the one before, which adds to the same element", NEEDLESS)
FIGURES = ("rows", "segments", "longest", "sorted", "bytes")


class SortRows(TellingPass):
    """Puts rows that add to the same elements side by side when data are bound."""

    name = "sort-rows"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        bind = bind_of(module)
        if bind is None:
            return False
        changed = False
        slices, top = DataSlices(), evaluate_of(module, self.name).body.block
        for loop in outermost_loops(top, slices):
            is_over_rows = rt.LoopAttr.kind_of(loop)[0] not in ("cold", "kinds")
            if not is_over_rows or not any(isinstance(op, ad.AccumulateOp) for op in loop.body.block.ops):
                continue
            if is_alone(loop, top):
                continue  # the nest, which runs without another layout, has rows in order
            try:
                rows = SortableRows.of(loop, slices)
                if not may_lift(loop, top, slices):
                    raise NotSorted("its data are known inside of a branch alone")
            except NotSorted as why:
                if str(why):
                    remark_on(self.name, loop, f"its rows stay in their order: {why}", done=False)
                continue
            lift(loop, top, slices)
            _Sorter(module, bind, rows).run()
            remark_on(self.name, loop, "rows are put in the order of an index when data are bound", done=True)
            changed = True
        return changed


class NotSorted(Exception):
    """Why the rows of a loop stay as they are; no text where there is nothing to gain."""


@record
class SortableRows:
    """A loop over rows whose order does not matter."""

    loop: scf.ForOp
    scatters: list[ad.AccumulateOp]
    keys: list[SSAValue]
    """The indices of the scatters, each once."""
    columns: list[rt.LoadOp]
    """What reads data by the number of the row."""
    first: int
    """The iteration that is the first row."""

    @staticmethod
    def of(loop: scf.ForOp, slices: DataSlices) -> SortableRows:
        """The loop as one over rows. Raises NotSorted."""
        body = loop.body.block
        row = body.args[0]
        scatters = [op for op in body.ops if isinstance(op, ad.AccumulateOp) and is_inside(op.index, loop)]
        if not scatters:
            raise NotSorted
        first = constant_integer(loop.lb)
        if first is None or constant_integer(loop.step) != 1 or not slices.is_data(loop.ub):
            raise NotSorted("how many there are is not data")
        functions = [op.function.data for op in body.ops if isinstance(op, rt.MathOp) and is_costly_function(op)]
        if not functions:
            raise NotSorted("they compute too little")
        if not WIDENED.issuperset(functions):
            raise NotSorted("they compute so much that additions do not count")
        by_row: dict[SSAValue, None] = {row: None}
        columns: list[rt.LoadOp] = []
        keys: dict[SSAValue, None] = {}
        for op in body.ops:
            reads_row = [k for k, operand in enumerate(op.operands) if operand in by_row]
            if isinstance(op, ad.AccumulateOp):
                if reads_row:
                    raise NotSorted("an element of each row is added to")
                if is_inside(op.buffer, loop) or (is_inside(op.index, loop) and not slices.is_data(op.index)):
                    raise NotSorted("where it adds changes from evaluation to evaluation")
                if op in scatters:
                    keys[op.index] = None
            elif isinstance(op, rt.LoadOp):
                if reads_row:
                    if not slices.is_data_buffer(op.buffer) or not slices.is_data(op.index):
                        raise NotSorted("what is no data is read for each row")
                    columns.append(op)
            elif isinstance(op, scf.YieldOp | ad.TargetAddOp) or (is_speculatable(op) and not op.regions):
                if reads_row:
                    if type(op) not in PURE or len(op.results) != 1 or op.results[0].type != i64:
                        raise NotSorted("the number of the row is computed with")
                    by_row[op.results[0]] = None
            else:
                raise NotSorted("it does more than to add")
        end = terminator(body)
        for argument, value in zip(body.args[1:], end.operands, strict=True):
            if value is not argument and not list(additions(argument, value)):
                raise NotSorted("a row needs what the one before computed")
        if len(keys) > MOST_KEYS:
            raise NotSorted(f"it adds by more than {MOST_KEYS} indices")
        return SortableRows(loop, scatters, list(keys), columns, first)


class _Sorter:
    """Writes what `bind` does for a loop, and lets the loop read it."""

    def __init__(self, module: ModuleOp, bind: func.FuncOp, rows: SortableRows) -> None:
        self.module, self.rows, self.loop = module, rows, rows.loop
        self.copied: dict[SSAValue, SSAValue] = {}
        self.write = OpWriter(terminator(bind.body.block))

    def run(self) -> None:
        zero, one = self.write.whole(0), self.write.whole(1)
        self.first = self.write.whole(self.rows.first)
        rows = self.write.put(integer(arith.SubiOp, self._bound(self.loop.ub), self.first))
        self.one, self.count = one, self.write.put(integer(arith.MaxSIOp, rows, zero))
        slot = take_slots(self.module, 3)
        of_element: dict[tuple[SSAValue, SSAValue], list[rt.LoadOp]] = {}
        for load in self.rows.columns:
            of_element.setdefault((load.buffer, load.index), []).append(load)
        places = [(loads, *self._source(loads[0])) for loads in of_element.values()]
        mark = self.write.put(rt.MarkOp())
        order, runs, first, figures = self._segments()
        outcome, is_sorted, segments, longest = (self._element(figures, k) for k in range(4))
        for k, value in enumerate((outcome, runs, first)):
            self.write.before(rt.SetBoundOp(slot + k, value))
        taken = self.write.compare_integers("ne", outcome, zero)
        moved = self.write.both([taken, self.write.compare_integers("eq", is_sorted, zero)])
        own = [self._column(loads[0], column, source, order, moved) for loads, column, source in places]
        self._read([(loads, column) for loads, column, _ in places])
        eight = self.write.whole(3)
        shifted = self.write.put(integer(arith.ShLIOp, self._sum(own), eight))
        bytes_ = self.write.put(integer(arith.AddiOp, shifted, self._table_bytes))
        untaken = self.write.compare_integers("eq", outcome, zero)
        result = self.write.put(arith.SelectOp.create(operands=(untaken, one, zero), result_types=(i64,)))
        noted = take_slots(self.module, 1 + len(FIGURES))
        values = (self.count, segments, longest, is_sorted, bytes_)
        place = self.loop.location
        self.write.before(rt.LayoutOp("rows by index", noted, REASONS, FIGURES, result, values, location=place))
        self.write.before(rt.ReleaseOp(mark))
        for scatter in self.rows.scatters:
            key = self.rows.keys.index(scatter.index)
            ad.SegmentsAttr(IntAttr(slot), IntAttr(key), IntAttr(self.rows.first)).put(scatter)

    # ------------------------------------------------------------ what bind does

    def _segments(self) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
        """The order, the runs of equal rows, the first of each block, and what the kernel tells."""
        keys = self.rows.keys
        number = self.write.whole(len(keys))
        fewest, ends = self._shifted(self.count, 2), self._shifted(self.count, RUNS_SHIFT)
        runs = self.write.put(integer(arith.AddiOp, fewest, ends))
        runs = self.write.put(integer(arith.AddiOp, runs, self.write.whole(2)))
        raised = self.write.put(integer(arith.AddiOp, self.count, self.write.whole((1 << RUNS_SHIFT) - 1)))
        blocks = self._shifted(raised, RUNS_SHIFT)
        blocks = self.write.put(integer(arith.AddiOp, blocks, self.one))
        order = self.write.put(rt.AllocOp(self.count, rt.BufferType(i32)))
        memory = self.write.put(rt.AllocBoundOp(runs, rt.BufferType(i32)))
        first = self.write.put(rt.AllocBoundOp(blocks, rt.BufferType(i64)))
        figures = self.write.put(rt.AllocOp(self.write.whole(4), rt.BufferType(i64)))
        mark = self.write.put(rt.MarkOp())
        table = self._keys()
        uses = [sum(scatter.index is key for scatter in self.rows.scatters) for key in keys]
        numbers = self.write.put(rt.ConstantsOp(DenseArrayBase.from_list(i32, uses)))
        work = self.write.whole(_work(self.loop))
        arguments = (table, self.count, number, numbers, work, runs, blocks, order, memory, first, figures)
        self.write.before(rt.KernelOp("segment_rows", arguments))
        self.write.before(rt.ReleaseOp(mark))
        self._table_bytes = self.write.put(
            integer(
                arith.AddiOp,
                self.write.put(integer(arith.ShLIOp, runs, self.write.whole(2))),
                self.write.put(integer(arith.ShLIOp, blocks, self.write.whole(3))),
            )
        )
        return order, memory, first, figures

    def _keys(self) -> SSAValue:
        """A table of the indices, those of a key one behind the other."""
        keys = self.rows.keys
        entries = self.write.put(integer(arith.MuliOp, self.count, self.write.whole(len(keys))))
        table = self.write.put(rt.AllocOp(entries, rt.BufferType(i32)))
        body = Block(arg_types=[i64])
        iteration = integer(arith.AddiOp, body.args[0], self.first)
        body.add_op(iteration)
        mapping: dict[SSAValue, SSAValue] = {self.loop.body.block.args[0]: iteration.results[0]}
        for k, key in enumerate(keys):
            value = self._at_row(key, body, mapping)
            place = constant(k, i64)
            base = integer(arith.MuliOp, self.count, place.result)
            index = integer(arith.AddiOp, base.results[0], body.args[0])
            narrow = arith.TruncIOp.create(operands=(value,), result_types=(i32,))
            store = rt.StoreOp(narrow.results[0], table, index.results[0], initial=True)
            body.add_ops([place, base, index, narrow, store])
        self._loop(body)
        return table

    def _read(self, columns: list[tuple[list[rt.LoadOp], int]]) -> None:
        """Lets the loop read columns in slots."""
        reads = [rt.BoundOp(slot, loads[0].buffer.type) for loads, slot in columns]
        assert self.loop.parent is not None
        self.loop.parent.insert_ops_before(reads, self.loop)
        for read, (loads, _) in zip(reads, columns, strict=True):
            for load in loads:
                row = self.loop.body.block.args[0]
                if self.rows.first:
                    number = integer(arith.SubiOp, row, self.loop.lb)
                    self.loop.body.block.insert_op_before(number, load)
                    row = number.results[0]
                load.operands = [read.res, row]

    def _source(self, load: rt.LoadOp) -> tuple[int, SSAValue | None]:
        """The slot for a column, and the column as it is, in the slot behind; None if it is computed."""
        rest = self._rest_of(load.index)
        if rest is None:
            return take_slots(self.module, 1), None
        position = self.first
        for cls, value in rest:
            position = self.write.put(integer(cls, position, self._bound(value)))
        source = self.write.put(rt.ViewOp(self._bound(load.buffer), position))
        slot = take_slots(self.module, 2)
        self.write.before(rt.SetBoundOp(slot + 1, source))
        return slot, source

    def _column(
        self, load: rt.LoadOp, slot: int, source: SSAValue | None, order: SSAValue, moved: SSAValue
    ) -> SSAValue:
        """Puts a column in the order, into a slot; what it takes, in 8 bytes."""
        element = load.res.type
        zero = self.write.whole(0)
        if source is None:
            memory = self.write.put(rt.AllocBoundOp(self.count, load.buffer.type))
            body = Block(arg_types=[i64])
            place = rt.LoadOp(order, body.args[0])
            wide = arith.ExtSIOp.create(operands=(place.res,), result_types=(i64,))
            iteration = integer(arith.AddiOp, wide.results[0], self.first)
            body.add_ops([place, wide, iteration])
            value = self._at_row(load.res, body, {self.loop.body.block.args[0]: iteration.results[0]})
            body.add_op(rt.StoreOp(value, memory, body.args[0], initial=True))
            self._loop(body)
            found, size = memory, self.count
        else:
            size = self.write.put(arith.SelectOp.create(operands=(moved, self.count, zero), result_types=(i64,)))
            memory = self.write.put(rt.AllocBoundOp(size, load.buffer.type))
            kernel = "take_reals" if element == f64 else "take_ints"
            strides = (self.one, self.one, self.one)
            self.write.before(rt.KernelOp(kernel, (source, order, size, *strides, self.count, memory)))
            found = self.write.put(arith.SelectOp.create(operands=(moved, memory, source), result_types=(memory.type,)))
        self.write.before(rt.SetBoundOp(slot, found))
        return size if element == f64 else self._shifted(size, 1)

    def _rest_of(self, index: SSAValue) -> list[tuple[type[Operation], SSAValue]] | None:
        """What is added to the number of the iteration and subtracted, all from outside of the loop; None if the index
        is another function of it.
        """
        rest: list[tuple[type[Operation], SSAValue]] = []
        while index is not self.loop.body.block.args[0]:
            op = index.owner
            if not isinstance(op, arith.AddiOp | arith.SubiOp):
                return None
            index, other = op.lhs, op.rhs
            if isinstance(op, arith.AddiOp) and not is_inside(index, self.loop):
                index, other = other, index
            if is_inside(other, self.loop) or not is_inside(index, self.loop):
                return None
            rest.append((type(op), other))
        return rest

    def _at_row(self, value: SSAValue, body: Block, mapping: dict[SSAValue, SSAValue]) -> SSAValue:
        """A value of data that the loop computes, in another loop."""
        for op in _slice(value, self.loop):
            if op.results[0] not in mapping:
                for operand in op.operands:
                    if not is_inside(operand, self.loop):
                        mapping[operand] = self._bound(operand)
                body.add_op(op.clone(mapping))
        return mapping[value] if is_inside(value, self.loop) else self._bound(value)

    # ------------------------------------------------------------ writing

    def _shifted(self, value: SSAValue, bits: int) -> SSAValue:
        return self.write.put(arith.ShRSIOp.create(operands=(value, self.write.whole(bits)), result_types=(i64,)))

    def _sum(self, values: list[SSAValue]) -> SSAValue:
        found = self.write.whole(0)
        for value in values:
            found = self.write.put(integer(arith.AddiOp, found, value))
        return found

    def _element(self, buffer: SSAValue, index: int) -> SSAValue:
        return self.write.put(rt.LoadOp(buffer, self.write.whole(index)))

    def _loop(self, body: Block) -> None:
        body.add_op(scf.YieldOp.create())
        operands = (self.write.whole(0), self.count, self.one)
        loop = scf.ForOp.create(operands=operands, regions=[Region(body)], location=self.loop.location)
        self.write.before(loop)

    def _bound(self, value: SSAValue) -> SSAValue:
        """A value of data that `evaluate` has outside of loops, in `bind`."""
        if value not in self.copied:
            op = value.owner
            assert isinstance(op, Operation)
            copy = op.clone({operand: self._bound(operand) for operand in op.operands})
            self.copied[value] = self.write.put(copy)
        return self.copied[value]


def _work(loop: scf.ForOp) -> int:
    """What a row takes besides additions by an index, in such additions, where it is widened: measured, roughly."""
    found = _ROW
    for op in loop.body.block.ops:
        if isinstance(op, rt.MathOp) and is_costly_function(op):
            found += _FUNCTION
        elif isinstance(op, arith.DivfOp) or (isinstance(op, rt.LoadOp) and op.res.type == f64):
            found += is_inside(op.operands[1], loop)
    return found


def _slice(value: SSAValue, loop: scf.ForOp) -> Iterator[Operation]:
    """The ops of the loop that a value is computed by, in order, maybe several times."""
    if is_inside(value, loop) and isinstance(value.owner, Operation):
        for operand in value.owner.operands:
            yield from _slice(operand, loop)
        yield value.owner
