"""Memory that a nest fills for the rows of a loop behind it is filled by a loop over these rows, where layouts gain.

    for i: for t: mu[t * N + i] = a[i] + b * x[i, t]           for r in 0:R: mu[r] = a[I[r]] + b * x[I[r], T[r]]
    for r in 0:R: target += f(y[r], mu[r])                →    for r in 0:R: target += f(y[r], mu[r])

`to_vector(Y) ~ normal(to_vector(mu), s)` and `mu[first[j] : last[j]] = ...; y ~ normal(mu, s)` are such. When data are
bound, the iterations of the nest that fill each element last are listed; if there is one for each, and a layout of the
rows is taken, both loops run over rows; else the nest and the loop do, as they were (`coalesce-loops`). A nest may
change what is there already (`mu[first[j] : last[j]] += a[j]`), if it does so once for each element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntAttr, ModuleOp, f64, i32, i64
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_before, is_inside
from ulam.passes.loops.affine_rows import Nest
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import DIVISIONS, PURE, offsets, root, viewed
from ulam.passes.loops.filled_buffers import are_changed, is_behind, loops_around, only_read_and_written, users
from ulam.passes.loops.index_forms import IndexForms
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import BlockEnd, OpWriter, integer
from ulam.passes.loops.ragged_rows import MOST_OPS, variables_of
from ulam.passes.loops.repeated_values import Repeatable, computed
from ulam.passes.loops.rows_alone import with_rows_alone
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses

_MOST_ROWS = 2**31 - 1
_IN_NESTS = (rt.LoadOp, rt.StoreOp, rt.AllocOp, rt.ViewOp, ad.AccumulateOp, scf.ForOp, scf.YieldOp)


@record
class FlatFill:
    """Memory with an element for each row of `reader`, which `nest` fills."""

    memory: rt.AllocOp
    before: list[Operation]
    """What fills it ahead of the nest."""
    nest: scf.ForOp
    reader: scf.ForOp


def write_flat_fills(name: str, module: ModuleOp, top: Block, slices: DataSlices) -> list[Operation]:
    """Puts loops over rows beside nests and loops that belong together; what is to be done when data are bound."""
    written: list[Operation] = []
    for fill in list(_flat_fills(top, slices)):
        flat = with_rows_alone(fill.nest)
        if flat is None:
            flat = cloned(fill.nest)
            top.insert_op_before(flat, fill.nest)
        if (writer := _Writer.of(fill, flat, module, slices)) is not None:
            remark_on(name, fill.nest, "what it fills is filled row by row when data are bound", done=True)
            written += writer.write()
        discard(flat)
    return written


def _flat_fills(top: Block, slices: DataSlices) -> Iterator[FlatFill]:
    """What nests fill for loops over rows that add to the target."""
    for reader in [op for op in ops_of(top) if type(op) is scf.ForOp]:
        ops = ops_of(reader.body.block)
        if not any(type(op) is ad.TargetAddOp for op in ops):
            continue
        row = reader.body.block.args[0]
        read = dict.fromkeys(op.buffer.owner for op in ops if type(op) is rt.LoadOp and op.index is row)
        found = [memory for memory in read if type(memory) is rt.AllocOp and memory.parent is top]
        fills = [fill for memory in found if (fill := _fill_of(memory, reader, slices)) is not None]
        if len(fills) == 1:
            yield fills[0]


def _fill_of(memory: rt.AllocOp, reader: scf.ForOp, slices: DataSlices) -> FlatFill | None:
    """The nest that fills memory of which each row of a loop reads its element; None if there is not one such nest."""
    top = reader.parent
    if not_clamped(memory.count) is not not_clamped(reader.ub) or memory.res.type != rt.BufferType(f64):
        return None
    if constant_integer(reader.lb) != 0 or constant_integer(reader.step) != 1 or not slices.is_data(reader.ub):
        return None
    assert top is not None
    using = {ancestor_in(op, top) for op in users(memory)}
    ordered: list[Operation] = [op for op in ops_of(top) if op in using]
    if len(ordered) < 2 or ordered[-1] is not reader or not only_read_and_written(memory):
        return None
    *before, nest, _ = ordered
    if type(nest) is not scf.ForOp or not any(type(op) is scf.ForOp for op in ops_of(nest.body.block)):
        return None
    if not all(type(op) in (rt.FillOp, scf.ForOp) for op in before) or not _reads_own(reader, memory):
        return None
    loops = [nest, *(op for op in before if isinstance(op, scf.ForOp))]
    if not all(_only_fills(loop, memory, reader) for loop in loops):
        return None
    if sum(1 for loop in (*loops, reader) for _ in ops_within(loop)) > MOST_OPS:
        return None
    return FlatFill(memory, before, nest, reader)


def _only_fills(loop: scf.ForOp, memory: rt.AllocOp, reader: scf.ForOp) -> bool:
    """Whether a loop does nothing but to compute what it stores in memory, and would do the same right ahead of another
    one, with all that stores there before and behind.
    """
    read = {root(op.buffer) for op in ops_within(loop) if isinstance(op, rt.LoadOp)} - {memory.res}
    if loop.results or not is_behind(reader, loop) or are_changed(read, loop, reader):
        return False
    for op in ops_within(loop):
        if type(op) not in PURE and type(op) not in DIVISIONS and not isinstance(op, _IN_NESTS):
            return False
        if isinstance(op, rt.StoreOp) and viewed(op.buffer) is not memory.res and not is_inside(op.buffer, loop):
            return False
    return True


def _reads_own(reader: scf.ForOp, memory: rt.AllocOp) -> bool:
    """Whether rows read nothing of memory but the element that has their number."""
    row = reader.body.block.args[0]
    used = [op for op in users(memory) if reader.is_ancestor(op)]
    return all(isinstance(op, rt.LoadOp) and op.buffer is memory.res and op.index is row for op in used)


@record
class _Writer:
    """Writes both loops over rows."""

    fill: FlatFill
    flat: scf.ForOp
    """A copy of the nest, whose rows hand nothing on."""
    store: rt.StoreOp
    """What stores an element, in the copy."""
    path: list[scf.ForOp]
    """The loops around it."""
    loads: list[rt.LoadOp]
    """What is read of the element that it sets."""
    module: ModuleOp
    slices: DataSlices
    numbers: dict[scf.ForOp, SSAValue] = field(default_factory=dict[scf.ForOp, SSAValue])
    """Loop → which iteration of it fills each row, in memory; of the outermost from 1 on, and 0 if there is none."""

    def __post_init__(self) -> None:
        self.index: SSAValue = self.store.index
        """Where an element is."""

    @staticmethod
    def of(fill: FlatFill, flat: scf.ForOp, module: ModuleOp, slices: DataSlices) -> _Writer | None:
        """None if rows could not compute by themselves what the nest stores, or gain nothing."""
        used = [op for op in users(fill.memory) if flat.is_ancestor(op)]
        stores = [op for op in used if isinstance(op, rt.StoreOp)]
        path = loops_around(stores[0], flat.parent) if len(stores) == 1 else []
        if len(path) < 2:
            return None
        (store,) = stores
        loads = [op for op in used if isinstance(op, rt.LoadOp) and _is_of_element(op, store)]
        if len(stores) + len(loads) != len(used):
            return None
        if not loads and not all(type(op) is rt.FillOp for op in fill.before):
            return None
        if not all(constant_integer(loop.step) == 1 and slices.has_data_control(loop) for loop in path):
            return None
        if constant_integer(path[0].lb) != 0:
            return None
        if not all(map(slices.is_data, (store.index, *offsets(store.buffer)))):
            return None
        variables = variables_of(path) | {load.res for load in loads}
        if not Repeatable(flat, variables, path[-1]).has(store.value):
            return None
        if not any(is_costly_function(op) for op in ops_within(fill.reader)):
            rows = tuple(loop.body.block.args[0] for loop in path)
            functions = {op.function.data for op in ops_within(fill.reader) if isinstance(op, rt.MathOp)}
            nest = Nest(flat, rows, slices)
            nest.leave_out([load.res for load in loads])
            if "square" not in functions or nest.terms(store.value) is None:
                return None
        return _Writer(fill, flat, store, path, loads, module, slices)

    def write(self) -> list[Operation]:
        """Puts a branch in the place of nest and loop; what is to be done when data are bound, which stands ahead."""
        reader = self.fill.reader
        top, ahead = reader.parent, reader.prev_op
        assert top is not None
        write = OpWriter(reader)
        slot = take_slots(self.module, 2)
        begin = top.first_op
        assert begin is not None
        reads: list[SSAValue] = []
        for n, value in enumerate(self._list_rows(write)):
            write.before(rt.SetBoundOp(slot + n, value))
            read = rt.BoundOp(slot + n, value.type)
            rt.CoalescedAttr(IntAttr(slot)).put(read)
            top.insert_op_before(read, begin)
            reads.append(read.res)
        written = list(ops_between(ahead, reader))
        self._write_branch(*reads)
        return written

    def _list_rows(self, write: OpWriter) -> tuple[SSAValue, SSAValue]:
        """Finds which iterations fill each element last; whether there is one for each, and then the number of rows."""
        zero, one = write.whole(0), write.whole(1)
        count = self.fill.reader.ub
        found = write.put(rt.AllocOp(write.whole(2), rt.BufferType(i64), zero=True))
        place = OpWriter(self.store)
        for offset in offsets(self.store.buffer):
            self.index = place.put(integer(arith.AddiOp, self.index, offset))
        mark = integer(arith.AddiOp, self.index, zero)
        place.before(mark)
        for loop in self.path[:-1] if self._is_told_by_rows() else self.path:
            self.numbers[loop] = write.put(rt.AllocOp(count, rt.BufferType(i32), zero=loop is self.path[0]))
        first = self.numbers[self.path[0]]

        def note(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            inside, row = BlockEnd(copy.parent), copy.results[0]
            before = inside.put(_wide(inside.put(rt.LoadOp(first, row))))
            is_new = inside.put(arith.CmpiOp(before, zero, "eq"))
            more = inside.put(arith.ExtUIOp(is_new, i64))
            many = inside.put(integer(arith.AddiOp, inside.put(rt.LoadOp(found, zero)), more))
            inside.put_op(rt.StoreOp(many, found, zero))
            all_ = inside.put(integer(arith.AddiOp, inside.put(rt.LoadOp(found, one)), one))
            inside.put_op(rt.StoreOp(all_, found, one))
            for loop, numbers in self.numbers.items():
                number = values[loop.body.block.args[0]]
                if numbers is first:
                    number = inside.put(integer(arith.AddiOp, number, one))
                inside.put_op(rt.StoreOp(inside.put(_narrow(number)), numbers, row))

        write.before(self.slices.copy(self.flat, [mark], note))
        discard(mark)
        many = write.put(rt.LoadOp(found, zero))
        conditions = [write.compare_integers("eq", many, count), write.compare_integers("sgt", many, zero)]
        conditions += [write.compare_integers("sle", many, write.whole(_MOST_ROWS))]
        if self.loads:
            conditions += [write.compare_integers("eq", many, write.put(rt.LoadOp(found, one)))]
        is_there = write.both(conditions)
        return is_there, write.put(arith.SelectOp.create(operands=(is_there, many, zero), result_types=(i64,)))

    def _is_told_by_rows(self) -> bool:
        """Whether the number of a row tells which iteration of the innermost loop fills it: these fill elements side by
        side. An index of coefficients stays an index.
        """
        inner, forms = self.path[-1], IndexForms(self.path[-1])
        form = forms.of(self.index)
        if form is None or {m: n for m, n in form.items() if forms.variable in m} != {(forms.variable,): 1}:
            return False
        coefficients = (op for op in ops_within(inner) if isinstance(op, rt.LoadOp))
        places = [op.index for op in coefficients if not self.slices.is_data_buffer(op.buffer)]
        variable = inner.body.block.args[0]
        return not any(
            place is variable or (isinstance(place, OpResult) and is_inside(place, inner)) for place in places
        )

    def _numbers_of(self, row: SSAValue, inside: OpWriter) -> dict[SSAValue, SSAValue]:
        """Variables of loops around the store → what they are where it fills a row."""
        known: dict[SSAValue, SSAValue] = {}
        for loop, numbers in self.numbers.items():
            number = inside.put(_wide(inside.put(rt.LoadOp(numbers, row))))
            if loop is self.path[0]:
                number = inside.put(integer(arith.SubiOp, number, inside.whole(1)))
            known[loop.body.block.args[0]] = number
        if self.path[-1] not in self.numbers:
            innermost = self.path[-1].body.block.args[0]
            first = computed(self.index, {**known, innermost: inside.whole(0)}, self.flat, inside)
            known[innermost] = inside.put(integer(arith.SubiOp, row, first))
        return known

    def _fill_ahead(self, memory: SSAValue, count: SSAValue, write: OpWriter) -> None:
        """Fills memory of the rows as it is filled ahead of the nest."""
        old, end = self.fill.memory, not_clamped(self.fill.reader.ub)
        for op in self.fill.before:
            copy = cloned(op, {old.res: memory})
            if isinstance(copy, scf.ForOp) and not_clamped(copy.ub) is end:
                copy.operands = [copy.lb, count, *copy.operands[2:]]
            write.before(copy)

    def _write_branch(self, condition: SSAValue, count: SSAValue) -> None:
        fill, reader = self.fill, self.fill.reader
        end, otherwise = scf.YieldOp.create(), Block()
        branch = scf.IfOp.create(
            operands=[condition],
            result_types=[result.type for result in reader.results],
            regions=[Region(Block([end])), Region(otherwise)],
            location=reader.location,
        )
        OpWriter(reader).before(branch)
        write = OpWriter(end)
        memory = write.put(rt.AllocOp(count, fill.memory.res.type, location=fill.memory.location))
        if self.loads:
            self._fill_ahead(memory, count, write)
        row, inside = new_loop(write, write.whole(0), count)
        known = self._numbers_of(row, inside)
        for load in self.loads:
            known[load.res] = inside.put(rt.LoadOp(memory, row, location=load.location))
        value = computed(self.store.value, known, self.flat, inside)
        inside.before(rt.StoreOp(value, memory, row, initial=not self.loads, location=self.store.location))
        rows = cloned(reader, {fill.memory.res: memory, reader.ub: count})
        write.before(rows)
        end.operands = list(rows.results)
        for result, new in zip(reader.results, branch.results, strict=True):
            replace_uses(result, new)
        for op in (fill.memory, *fill.before, fill.nest, reader):
            op.detach()
            otherwise.add_op(op)
        otherwise.add_op(scf.YieldOp.create(operands=list(reader.results)))


def _is_of_element(load: rt.LoadOp, store: rt.StoreOp) -> bool:
    """Whether an op reads the element that another one sets then."""
    is_same = load.buffer is store.buffer and load.index is store.index
    return is_same and load.parent is store.parent and is_before(load, store)


def _wide(value: SSAValue) -> Operation:
    return arith.ExtSIOp.create(operands=(value,), result_types=(i64,))


def _narrow(value: SSAValue) -> Operation:
    return arith.TruncIOp.create(operands=(value,), result_types=(i32,))
