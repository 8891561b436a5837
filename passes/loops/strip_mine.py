"""Runs the rows of a nest side by side: its outer loop in strips, each strip inside of the inner loops.

    for i: { s = 0; for j: { s += f(x[i, j]) }; y[i] = g(s) }
    →   for strips of rows:
          for row: s[row] = 0
          for j: for row: s[row] += f(x[first + row, j])
          for row: y[first + row] = g(s[row])

This is strip-mining, distribution and interchange in one. LLVM widens inner loops only: where these have five
iterations, or each needs what the last one computed, nothing is widened, although the rows have nothing to do with each
other. What a row carries from one part of its body to the next becomes an array with an element for each row of the
strip; sums that all rows add to go through all parts (`row_nests`).

Where memory could be touched in another order, sizes decide when the loop begins (`index_forms`): the loop as it was is
kept for when they do not allow it, for few rows, and for long columns that are neighbours in memory. Idea: outer-loop
vectorization, Nuzman and Zaks, "Outer-loop vectorization: revisited for short SIMD architectures", PACT 2008.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import terminator
from ulam.passes.builder import REASSOCIATE, WRAPS
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.index_forms import Form, known, plus, times
from ulam.passes.loops.row_nests import SHORT_COLUMNS, DataColumn, NotApplicable, RowNest
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard, replace_uses
from ulam.passes.running import TellingPass

_STRIP = 64
"""Rows of a strip: many vectors, whose values for a few variables fit into the nearest cache."""

_SHIFT = 6
_FEWEST = 8
"""Rows that are worth a strip."""

_MOST_ARRAYS = 24
_MASKED_TAIL, _SERIAL = rt.LoopAttr.of_kind("masked_tail"), rt.LoopAttr.of_kind("serial")


@dataclass(frozen=True)
class StripMine(TellingPass):
    """Runs rows of nests of loops in `evaluate` side by side, where inner loops are too short to be widened."""

    name = "strip-mine"

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        done = _visit(evaluate.body.block, may_transpose=True)
        if any(strips.tables for strips in done):
            set_slots(module, hoist_data(evaluate, slots_of(module)))
        return bool(done)


def _visit(block: Block, *, may_transpose: bool) -> list[_Strips]:
    done: list[_Strips] = []
    for op in list(block.ops):
        if isinstance(op, scf.ForOp) and not rt.LoopAttr.is_cold(op):
            if not any(isinstance(inner, scf.ForOp) for inner in op.body.block.ops):
                continue
            try:
                _merge_flags(op)
                strips = _Strips(RowNest(op, may_transpose))
                strips.replace()
            except NotApplicable as why:
                if str(why):
                    remark_on(StripMine.name, op, f"its iterations do not run side by side: {why}", done=False)
            else:
                done.append(strips)
                continue
        for region in op.regions:
            for inner in region.blocks:
                done += _visit(inner, may_transpose=False)
    return done


# ---------------------------------------------------------------- flags


def _merge_flags(nest: scf.ForOp) -> None:
    """Lets inner loops go on with the flag of the loop around them: `f | (inner != 0)`, with `inner` from 0."""
    for loop in [op for op in ops_within(nest.body.block) if isinstance(op, scf.ForOp)]:
        for k, result in enumerate(loop.results):
            if result.type == i64 and constant_integer(loop.iter_args[k]) == 0:
                _merge_flag(loop, k, result)


def _merge_flag(loop: scf.ForOp, position: int, result: SSAValue) -> None:
    path: list[Operation] = []
    value = result
    for cls in (arith.CmpiOp, arith.XOrIOp, arith.ExtUIOp, arith.OrIOp):
        uses = list(value.uses)
        if len(uses) != 1 or not isinstance(op := uses[0].operation, cls) or op.parent is not loop.parent:
            return
        path.append(op)
        value = op.results[0]
    compared, inverted, widened, merged = path
    if compared.properties["predicate"] != CMPI["eq"] or 0 not in map(constant_integer, compared.operands):
        return
    if not any(constant_integer(operand) in (1, -1) for operand in inverted.operands):
        return
    body = loop.body.block
    if not _is_flag(body.args[position + 1], terminator(body).operands[position]):
        return
    (flag,) = (operand for operand in merged.operands if operand is not widened.results[0])
    owner = flag.owner
    if isinstance(owner, Operation) and owner.parent is loop.parent and not owner.is_before_in_block(loop):
        return
    loop.operands[3 + position] = flag
    replace_uses(merged.results[0], result)
    for op in reversed(path):
        discard(op)


def _is_flag(argument: SSAValue, value: SSAValue) -> bool:
    """Whether `value` is `argument`, or 1 is set in it."""
    if value is argument:
        return True
    op = value.owner
    if isinstance(op, arith.OrIOp):
        one, other = op.operands
        return any(
            _is_flag(argument, a) and isinstance(b.owner, arith.ExtUIOp) for a, b in ((one, other), (other, one))
        )
    if isinstance(op, scf.ForOp):
        k = op.results.index(value)
        body = op.body.block
        return _is_flag(argument, op.iter_args[k]) and _is_flag(body.args[k + 1], terminator(body).operands[k])
    return False


# ---------------------------------------------------------------- writing


@dataclass
class _StoredByRow:
    """A value of each row that goes to an array: what a loop carries."""

    value: SSAValue
    array: SSAValue


_Part = list[Operation | _StoredByRow]
"""What one loop over the rows of a strip does."""


@dataclass
class _Strips:
    """Writes the strips of a nest. Raises NotApplicable before anything has changed."""

    nest: RowNest
    part: _Part = field(default_factory=list[Operation | _StoredByRow])
    sums: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """Outer sum → what it is so far."""
    uniform: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    arrays: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    allocations: list[Operation] = field(default_factory=list[Operation])
    tables: dict[tuple[object, ...], _TransposedTable] = field(
        default_factory=dict[tuple[object, ...], "_TransposedTable"]
    )

    def replace(self) -> None:
        """Puts strips in the place of the loop, which stays for when they do not apply."""
        loop, forms = self.nest.loop, self.nest.forms
        limits = self.nest.limits()
        few = plus(forms.span, {(): _FEWEST}, -1)
        size = constant(_STRIP, i64)
        self.size = size.result
        before, applies = self._test([few, *self.nest.conditions, *limits])
        for column in self.nest.columns.values():
            if column.table not in self.tables:
                self.tables[column.table] = table = _TransposedTable(self.nest, column, applies)
                before += table.ops
        strips = self._strips()
        if len(self.allocations) > _MOST_ARRAYS:
            raise NotApplicable("rows carry too much from one loop to the next")
        outer = loop.parent
        assert outer is not None
        outer.insert_ops_before([size, *self.allocations, *before], loop)
        types = [result.type for result in loop.results]
        branch = scf.IfOp.create(operands=(applies,), result_types=types, location=loop.location)
        outer.insert_op_before(branch, loop)
        for old, new in zip(loop.results, branch.results, strict=True):
            replace_uses(old, new)
        loop.detach()
        branch.add_region(Region(strips))
        branch.add_region(Region(Block([loop, scf.YieldOp.create(operands=loop.results)])))
        where = f" where no inner loop has more than {SHORT_COLUMNS} iterations" if limits else ""
        remark_on(StripMine.name, loop, f"its iterations run side by side, {_STRIP} at a time{where}", done=True)

    def _test(self, forms: Iterable[Form]) -> tuple[list[Operation], SSAValue]:
        zero = constant(0, i64)
        ops: list[Operation] = [zero]
        applies: SSAValue | None = None
        for form in forms:
            if (number := known(form)) is not None and number >= 0:
                continue
            written, value = self.nest.forms.write(form)
            test = arith.CmpiOp.create(
                operands=(value, zero.result), result_types=(i1,), properties={"predicate": CMPI["sge"]}
            )
            ops += [*written, test]
            if applies is not None:
                both = arith.AndIOp.create(operands=(applies, test.result), result_types=(i1,))
                ops.append(both)
                applies = both.result
            else:
                applies = test.result
        if applies is None:
            true = constant(1, i1)
            ops.append(true)
            applies = true.result
        return ops, applies

    def _strips(self) -> Block:
        """The loop over strips, and the results of the whole."""
        loop = self.nest.loop
        summed = [k for k in range(len(loop.results)) if k in set(self.nest.summed.values())]
        block = Block()
        zero, one, shift, most = (constant(value, i64) for value in (0, 1, _SHIFT, _STRIP - 1))
        self.zero, self.one = zero.result, one.result
        span = _integer(arith.SubiOp, loop.ub, loop.lb)
        raised = _integer(arith.AddiOp, span.results[0], most.result)
        count = arith.ShRSIOp.create(operands=(raised.results[0], shift.result), result_types=(i64,))
        block.add_ops([zero, one, shift, most, span, raised, count])

        body = Block(arg_types=[i64, *(loop.results[k].type for k in summed)])
        done = _integer(arith.MuliOp, body.args[0], self.size)
        first = _integer(arith.AddiOp, loop.lb, done.results[0])
        left = _integer(arith.SubiOp, loop.ub, first.results[0])
        rows = arith.MinSIOp.create(operands=(left.results[0], self.size), result_types=(i64,))
        body.add_ops([done, first, left, rows])
        self.first, self.rows = first.results[0], rows.result
        self.sums = dict(zip(summed, body.args[1:], strict=True))
        self._sequence(loop.body.block, body)
        self._end_part(body)
        body.add_op(scf.YieldOp.create(operands=[self.sums[k] for k in summed]))

        strips = scf.ForOp.create(
            operands=(zero.result, count.result, one.result, *(loop.iter_args[k] for k in summed)),
            result_types=[loop.results[k].type for k in summed],
            regions=[Region(body)],
            location=loop.location,
        )
        block.add_op(strips)
        results = [
            strips.results[summed.index(k)] if k in summed else loop.iter_args[k] for k in range(len(loop.results))
        ]
        block.add_op(scf.YieldOp.create(operands=results))
        return block

    def _sequence(self, source: Block, out: Block) -> None:
        """Writes what a body does, but for its end."""
        nest = self.nest
        for op in source.ops:
            if isinstance(op, scf.YieldOp):
                continue
            if not nest.is_of_row(op):
                out.add_ops(self._copied(op))
            elif isinstance(op, scf.ForOp):
                self._loop(op, out)
            elif nest.is_scattered(op):
                self._end_part(out)
                self.part.append(op)
                self._end_part(out)
            elif not nest.is_recomputed(op):
                self.part.append(op)

    def _copied(self, op: Operation) -> list[Operation]:
        """An op that is the same for all rows."""
        mapping = {value: self._outside(value) for value in free_values_of_op(op)}
        found = copies([op], mapping)
        for result in op.results:
            self.uniform[result] = mapping[result]
        return found

    def _outside(self, value: SSAValue) -> SSAValue:
        value = self.nest.resolved(value)
        return self.uniform.get(value, value)

    def _loop(self, op: scf.ForOp, out: Block) -> None:
        """An inner loop, around loops over the rows."""
        nest = self.nest
        body = op.body.block
        ends = terminator(body).operands
        kept: list[int] = []
        types: list[Attribute] = []
        stored: list[tuple[int, SSAValue]] = []
        for k, argument in enumerate(body.args[1:]):
            if argument in nest.same:
                continue
            if argument in nest.of_row:
                array = self._array(argument.type)
                stored.append((k, array))
                self.part.append(_StoredByRow(op.iter_args[k], array))
            else:
                kept.append(k)
                types.append(argument.type)
        self._end_part(out)
        starts = [self._current(op.iter_args[k]) for k in kept]
        inner = Block(arg_types=[i64, *types])
        inner.args[0].name_hint = body.args[0].name_hint
        self.uniform[body.args[0]] = inner.args[0]
        for k, argument in zip(kept, inner.args[1:], strict=True):
            self._set_current(body.args[k + 1], argument)
        for k, array in stored:
            self.arrays[body.args[k + 1]] = array
        self._sequence(body, inner)
        self.part += [_StoredByRow(ends[k], array) for k, array in stored]
        self._end_part(inner)
        inner.add_op(scf.YieldOp.create(operands=[self._current(ends[k]) for k in kept]))
        bounds = [self._outside(bound) for bound in (op.lb, op.ub, op.step)]
        written = scf.ForOp.create(
            operands=[*bounds, *starts], result_types=types, regions=[Region(inner)], location=op.location
        )
        out.add_op(written)
        for k, result in zip(kept, written.results, strict=True):
            self._set_current(op.results[k], result)
        for k, array in stored:
            self.arrays[op.results[k]] = array

    def _current(self, value: SSAValue) -> SSAValue:
        """What a sum is so far, or a uniform value."""
        value = self.nest.resolved(value)
        number = self.nest.summed.get(value)
        return self._outside(value) if number is None else self.sums[number]

    def _set_current(self, value: SSAValue, by: SSAValue) -> None:
        number = self.nest.summed.get(value)
        if number is None:
            self.uniform[value] = by
        else:
            self.sums[number] = by

    def _array(self, type_: Attribute) -> SSAValue:
        allocation = rt.AllocOp(self.size, rt.BufferType(type_), stack=True)
        self.allocations.append(allocation)
        return allocation.res

    # ------------------------------------------------------------ one loop over the rows

    def _end_part(self, out: Block) -> None:
        """Writes the loop that does what has been put off."""
        part, self.part = self.part, []
        if not part:
            return
        row_loop = _RowLoop(self, part)
        loop, then = row_loop.write()
        out.add_op(loop)
        out.add_ops(then)


class _RowLoop:
    """A loop over the rows of a strip, without other loops in it."""

    def __init__(self, strips: _Strips, part: _Part) -> None:
        self.strips, self.nest, self.part = strips, strips.nest, part
        self.ops = {op for op in part if isinstance(op, Operation)}
        self.stored = {entry.value for entry in part if isinstance(entry, _StoredByRow)}
        self.sums = sorted({
            self.nest.summed[value]
            for op in self.ops for value in map(self.nest.resolved, free_values_of_op(op)) if value in self.nest.summed
        })  # fmt: skip
        self.totals = [op for op in part if isinstance(op, ad.AccumulateOp) and self.nest.is_total(op)]
        types = [strips.sums[k].type for k in self.sums] + [f64 for _ in self.totals]
        self.body = Block(arg_types=[i64, *types])
        self.sum_of = dict(zip(self.sums, self.body.args[1:], strict=False))
        self.total_of = dict(zip(self.totals, self.body.args[1 + len(self.sums) :], strict=True))
        self.row = self.body.args[0]
        position = _integer(arith.AddiOp, strips.first, self.row)
        self.body.add_op(position)
        self.touched: set[Operation] = {
            inner for op in self.ops for inner in ops_within(op) if inner in self.nest.accesses
        }
        self.values: dict[SSAValue, SSAValue] = {self.nest.loop.body.block.args[0]: position.results[0]}

    def write(self) -> tuple[Operation, list[Operation]]:
        """The loop, and what is behind it."""
        strips, body = self.strips, self.body
        outgoing: list[SSAValue] = []
        last: dict[int, SSAValue] = dict(self.sum_of)
        totals: dict[Operation, SSAValue] = {op: start for op, start in self.total_of.items()}
        for entry in self.part:
            if isinstance(entry, _StoredByRow):
                continue
            if entry in totals:
                assert isinstance(entry, ad.AccumulateOp)
                added = arith.AddfOp.create(
                    operands=(totals[entry], self.value(entry.value)),
                    result_types=(f64,),
                    properties={"fastmath": REASSOCIATE},
                )
                body.add_op(added)
                totals[entry] = added.result
                continue
            mapping = {value: self.value(value) for value in free_values_of_op(entry)}
            body.add_ops(copies([entry], mapping))
            for result in entry.results:
                self.values[result] = mapping[result]
                if (number := self.nest.summed.get(result)) is not None:
                    last[number] = mapping[result]
                elif self._is_needed_elsewhere(result):
                    outgoing.append(result)
        carried = [(self.value(entry.value), entry.array) for entry in self.part if isinstance(entry, _StoredByRow)]
        for value in outgoing:
            strips.arrays[value] = strips._array(value.type)  # pyright: ignore[reportPrivateUsage]
            carried.append((self.values[value], strips.arrays[value]))
        for value, array in carried:
            body.add_op(rt.StoreOp(value, array, self.row))
        body.add_op(scf.YieldOp.create(operands=[*(last[k] for k in self.sums), *(totals[op] for op in self.totals)]))
        return self._loop(body)

    def _loop(self, body: Block) -> tuple[Operation, list[Operation]]:
        strips = self.strips
        zero = constant(0.0, f64)
        starts = [strips.sums[k] for k in self.sums] + [zero.result for _ in self.totals]
        loop = scf.ForOp.create(
            operands=(strips.zero, strips.rows, strips.one, *starts),
            result_types=[start.type for start in starts],
            regions=[Region(body)],
            location=self.nest.loop.location,
        )
        is_scalar = any(self.nest.is_scattered(op) for op in self.ops)
        if is_scalar:
            _SERIAL.put(loop)
        elif not any(self.nest.is_strided(op) for op in self.touched):
            _MASKED_TAIL.put(loop)
        for k, result in zip(self.sums, loop.results, strict=False):
            strips.sums[k] = result
        then: list[Operation] = []
        for op, total in zip(self.totals, loop.results[len(self.sums) :], strict=True):
            assert isinstance(op, ad.AccumulateOp)
            buffer, index = strips._outside(op.buffer), strips._outside(op.index)  # pyright: ignore[reportPrivateUsage]
            then.append(ad.AccumulateOp(buffer, index, total, location=op.location))
        if self.totals:
            strips.allocations.append(zero)
        return loop, then

    def value(self, value: SSAValue) -> SSAValue:
        """A value in this loop: computed here, the same for all rows, from an array, or computed again."""
        value = self.nest.resolved(value)
        if (found := self.values.get(value)) is not None:
            return found
        if value not in self.nest.of_row:
            number = self.nest.summed.get(value)
            return self.strips._outside(value) if number is None else self.sum_of[number]  # pyright: ignore[reportPrivateUsage]
        if (array := self.strips.arrays.get(value)) is not None:
            load = rt.LoadOp(array, self.row)
            self.body.add_op(load)
            self.values[value] = load.res
            return load.res
        op = value.owner
        assert isinstance(op, Operation)
        if (column := self.nest.columns.get(op)) is not None:
            return self._from_table(value, column)
        if op in self.nest.accesses:
            self.touched.add(op)
        mapping = {operand: self.value(operand) for operand in op.operands}
        self.body.add_ops(copies([op], mapping))
        for result in op.results:
            self.values[result] = mapping[result]
        return self.values[value]

    def _from_table(self, value: SSAValue, column: DataColumn) -> SSAValue:
        """An element of data, from the table that has it beside that of the next row."""
        forms, table = self.nest.forms, self.strips.tables[column.table]
        form = plus(column.column, column.least, -1)
        ops, position = forms.write(form, {factor: self.value(factor) for factor in forms.values_of(form)})
        row = _integer(arith.SubiOp, self.value(self.nest.loop.body.block.args[0]), self.nest.loop.lb)
        begin = _integer(arith.MuliOp, position, table.rows)
        index = _integer(arith.AddiOp, begin.results[0], row.results[0])
        load = rt.LoadOp(table.memory, index.results[0])
        self.body.add_ops([*ops, row, begin, index, load])
        self.values[value] = load.res
        return load.res

    def _is_needed_elsewhere(self, value: SSAValue) -> bool:
        for use in value.uses:
            user = use.operation
            if self._is_here(user):
                continue
            if isinstance(user, scf.YieldOp | scf.ForOp):
                if value not in self.stored:
                    return True
            elif not self.nest.is_recomputed(user) or any(map(self._is_needed_elsewhere, user.results)):
                return True
        return False

    def _is_here(self, op: Operation) -> bool:
        current: Operation | None = op
        while current is not None and current is not self.nest.loop:
            if current in self.ops:
                return True
            current = current.parent_op()
        return False


class _TransposedTable:
    """Data of the rows with columns one behind the other: `table[column * rows + i] = data[stride * i + column]`."""

    def __init__(self, nest: RowNest, column: DataColumn, applies: SSAValue) -> None:
        forms = nest.forms
        zero, one = constant(0, i64), constant(1, i64)
        spans, span = forms.write(forms.span)
        widths, width = forms.write(plus(plus(column.most, column.least, -1), {(): 1}))
        rows, columns = (
            arith.SelectOp.create(operands=(applies, count, zero.result), result_types=(i64,))
            for count in (span, width)
        )
        self.rows = rows.result
        some = arith.MaxSIOp.create(operands=(columns.result, zero.result), result_types=(i64,))
        size = _integer(arith.MuliOp, rows.result, some.result)
        memory = rt.AllocOp(size.results[0], column.buffer.type, location=nest.loop.location)
        self.memory = memory.res

        body, inner = Block(arg_types=[i64]), Block(arg_types=[i64])
        begin = _integer(arith.MuliOp, body.args[0], rows.result)
        position = _integer(arith.AddiOp, nest.loop.lb, inner.args[0])
        place = times({column.stride: 1}, {(forms.variable,): 1, (): column.row})
        ops, start = forms.write(plus(place, column.least), {nest.loop.body.block.args[0]: position.results[0]})
        source = _integer(arith.AddiOp, start, body.args[0])
        load = rt.LoadOp(column.buffer, source.results[0])
        index = _integer(arith.AddiOp, begin.results[0], inner.args[0])
        store = rt.StoreOp(load.res, memory.res, index.results[0], initial=True)
        inner.add_ops([position, *ops, source, load, index, store, scf.YieldOp.create()])
        bounds = (zero.result, rows.result, one.result)
        body.add_ops([begin, scf.ForOp.create(operands=bounds, regions=[Region(inner)]), scf.YieldOp.create()])
        fill = scf.ForOp.create(operands=(zero.result, some.result, one.result), regions=[Region(body)])
        self.ops: list[Operation] = [zero, one, *spans, *widths, rows, columns, some, size, memory, fill]


def _integer(cls: type[Operation], left: SSAValue, right: SSAValue) -> Operation:
    return cls.create(operands=(left, right), result_types=(i64,), properties=WRAPS)
