"""Runs the rows of a nest side by side: its outer loop in strips, each strip inside of the inner loops.

    for i: { s = 0; for j: { s += f(x[i, j]) }; y[i] = g(s) }
    →   for strips of rows:
          for row: s[row] = 0
          for j: for row: s[row] += f(x[first + row, j])
          for row: y[first + row] = g(s[row])

This is strip-mining, distribution and interchange in one. LLVM widens inner loops only: where these have five
iterations, or each needs what the last one computed, nothing is widened, although the rows have nothing to do with each
other. What a row carries from one part of its body to the next becomes an array with an element for each row of the
strip; sums that all rows add to go through all parts (`row_nests`). Memory that a row takes for itself is taken for the
strip, element by element: LLVM does not widen such loops, so that alone is worth it where inner loops are straight code
by now. A branch with loops inside is run arm by arm, if any row of the strip takes the arm; parts of it leave out the
rows that do not. Additions to elements that data decide about get parts of their own, which stay scalar; loads of such
elements of a row's memory begin a part. Data with one row behind the other are transposed, once, when they are bound.

Where memory could be touched in another order, sizes decide when the loop begins (`index_forms`): the loop as it was is
kept for when they do not allow it, for few rows, and for long columns that are neighbours in memory. Idea: outer-loop
vectorization, Nuzman and Zaks, "Outer-loop vectorization: revisited for short SIMD architectures", PACT 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.builder import REASSOCIATE
from ulam.passes.loops.effects import is_speculatable, root
from ulam.passes.loops.even_rows import EvenRows
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.index_forms import Form, known, plus
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.row_columns import RowColumns
from ulam.passes.loops.row_nests import SCALAR, SHORT_COLUMNS, SIZE, WHERE, DataColumn, NotApplicable, RowNest
from ulam.passes.loops.transposed_tables import TransposedTable, fill
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, copies, discard, replace_uses
from ulam.passes.running import TellingPass

_STRIP = 64
"""Rows of a strip: many vectors, whose values for a few variables fit into the nearest cache."""

_SHIFT = 6
_FEWEST = 8
"""Rows that are worth a strip."""

_MOST_ARRAYS = 24
_MASKED_TAIL, _SERIAL = rt.LoopAttr.of_kind("masked_tail"), rt.LoopAttr.of_kind("serial")


@record(frozen=True)
class StripMine(TellingPass):
    """Runs rows of nests of loops in `evaluate` side by side, where inner loops are too short to be widened."""

    name = "strip-mine"

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        done = _visit(evaluate.body.block, may_transpose=True)
        if any(strips.tables or strips.is_even for strips in done):
            set_slots(module, hoist_data(evaluate, slots_of(module)))
        return bool(done)


def _visit(block: Block, *, may_transpose: bool) -> list[_Strips]:
    done: list[_Strips] = []
    for op in list(block.ops):
        if isinstance(op, scf.ForOp) and not rt.LoopAttr.is_cold(op):
            if not any(isinstance(inner, SCALAR) for inner in ops_within(op.body.block)):
                continue
            try:
                _merge_flags(op)
                _hoist(op)
                strips = _of_changed_copy(op, may_transpose) or _Strips(RowNest(op, may_transpose), op)
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


def _of_changed_copy(op: scf.ForOp, may_transpose: bool) -> _Strips | None:
    """Strips of a copy of a nest whose inner loops are of one size, or do less; None if there is nothing to gain."""
    outer = op.parent
    is_uneven = may_transpose and EvenRows.may_gain(op)
    if not (is_uneven or RowColumns.may_gain(op)) or outer is None or _has_more_ops(op, SIZE):
        return None
    nest = op.clone()
    outer.insert_op_before(nest, op)
    even, columns = EvenRows(nest), RowColumns(nest)
    try:
        is_even = is_uneven and even.change()
        if is_even:
            _hoist(nest)
        if columns.change() or is_even:
            _hoist(nest)
            strips = _Strips(RowNest(nest, may_transpose), op, is_even)
            strips.require(even, columns)
            if is_even:
                columns.done.append(f"its rows are as long as the longest, if each has 1 to {SHORT_COLUMNS} iterations")
            for message in dict.fromkeys(columns.done):
                remark_on(StripMine.name, op, message, done=True)
            return strips
    except NotApplicable as why:
        if is_uneven and str(why):
            remark_on(StripMine.name, op, f"its rows are not made even: {why}", done=False)
    discard(nest)
    even.undo()
    return None


def _has_more_ops(nest: scf.ForOp, number: int) -> bool:
    return next(islice(ops_within(nest.body.block), number, None), None) is not None


# ---------------------------------------------------------------- flags


def _merge_flags(nest: scf.ForOp) -> None:
    """Lets inner loops go on with the flag of the loop around them: `f | (inner != 0)`, with `inner` from 0."""
    for loop in [op for op in ops_within(nest.body.block) if isinstance(op, scf.ForOp)]:
        for k, result in enumerate(loop.results):
            if result.type == i64 and constant_integer(loop.iter_args[k]) == 0:
                _merge_flag(loop, k, result)


def _hoist(nest: scf.ForOp) -> None:
    """Moves what is the same in all iterations in front of the loop: sizes that are tested there."""
    block = nest.parent
    assert block is not None
    for op in list(nest.body.block.ops):
        if is_speculatable(op) and not any(is_inside(operand, nest) for operand in op.operands):
            op.detach()
            block.insert_op_before(op, nest)


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


@record
class _StoredByRow:
    """A value of each row that goes to an array: what a loop carries."""

    value: SSAValue
    array: SSAValue


@record(eq=False)
class _Taken:
    """Whether any row takes an arm. `found` is not 0 then, behind the loop."""

    condition: SSAValue
    sense: bool
    found: SSAValue | None = None


_Carried = int | Operation | _Taken
"""What a loop over rows adds up: an outer sum by number, what all rows add to one element, whether an arm is taken."""

_Part = list[Operation | _StoredByRow | _Taken]
"""What one loop over the rows of a strip does."""


@record
class _Strips:
    """Writes the strips of a nest. Raises NotApplicable before anything has changed."""

    nest: RowNest
    original: scf.ForOp
    """The loop in whose place strips are put: that of the nest, or what the nest is a copy of."""

    is_even: bool = False
    """Whether the sizes of inner loops are computed from data in front of the nest."""

    part: _Part = field(default_factory=list[Operation | _StoredByRow | _Taken])
    arms: list[tuple[SSAValue, bool]] = field(default_factory=list[tuple[SSAValue, bool]])
    """The arms of branches around what is being written: condition, and what it is there."""
    sums: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """Outer sum → what it is so far."""
    uniform: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    arrays: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    allocations: list[Operation] = field(default_factory=list[Operation])
    tables: dict[tuple[object, ...], TransposedTable] = field(
        default_factory=dict[tuple[object, ...], "TransposedTable"]
    )

    def require(self, even: EvenRows, columns: RowColumns) -> None:
        """Adds what must hold where inner loops have been changed."""
        conditions, forms = self.nest.conditions, self.nest.forms
        for loop, most in columns.products:
            lower, upper = forms.of(loop.lb), forms.of(not_clamped(loop.ub))
            if lower is None or upper is None:
                raise NotApplicable("")
            conditions.append(plus({(): most}, plus(upper, lower, -1), -1))
        for value, least, sign in [
            *((end, lower + SHORT_COLUMNS, -1) for end, lower in even.longest),
            *((end, -lower - 1, 1) for end, lower in even.shortest),
        ]:
            form = forms.of(value)
            assert form is not None
            conditions.append(plus({(): least}, form, sign))

    def replace(self) -> None:
        """Puts strips in the place of the loop, which stays for when they do not apply."""
        loop, forms = self.original, self.nest.forms
        limits = self.nest.limits()
        few = plus(forms.span, {(): _FEWEST}, -1)
        size = constant(_STRIP, i64)
        self.size = size.result
        before, applies = self._test([few, *self.nest.conditions, *limits])
        for column in self.nest.columns.values():
            if column.table not in self.tables:
                self.tables[column.table] = table = TransposedTable(self.nest, column, applies)
                before += table.ops
        if self.tables:
            before.append(fill(self.nest, self.tables, applies))
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
        if self.nest.loop is not loop:
            discard(self.nest.loop)
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
        span = integer(arith.SubiOp, loop.ub, loop.lb)
        raised = integer(arith.AddiOp, span.results[0], most.result)
        count = arith.ShRSIOp.create(operands=(raised.results[0], shift.result), result_types=(i64,))
        block.add_ops([zero, one, shift, most, span, raised, count])

        body = Block(arg_types=[i64, *(loop.results[k].type for k in summed)])
        done = integer(arith.MuliOp, body.args[0], self.size)
        first = integer(arith.AddiOp, loop.lb, done.results[0])
        left = integer(arith.SubiOp, loop.ub, first.results[0])
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
            if isinstance(op, scf.YieldOp) or (isinstance(op, rt.ViewOp) and root(op.results[0]) in nest.private):
                continue
            if isinstance(op, rt.AllocOp):
                count = self._times_strip(op.count, out)
                taken = applied_to(op, [count])
                out.add_op(taken)
                self.uniform[op.res] = taken.res
            elif isinstance(op, rt.FillOp):
                self._fill_private(op, out)
            elif not nest.is_of_row(op):
                out.add_ops(self._copied(op))
            elif isinstance(op, scf.ForOp):
                self._loop(op, out)
            elif isinstance(op, scf.IfOp) and nest.is_divided(op):
                self._branch(op, out)
            elif nest.is_scattered(op):
                self._end_part(out)
                self.part.append(op)
                self._end_part(out)
            elif not nest.is_recomputed(op):
                if nest.is_gathered(op):  # LLVM cannot tell these elements from those that the part has written
                    self._end_part(out)
                self.part.append(op)

    def _times_strip(self, value: SSAValue, out: Block) -> SSAValue:
        product = integer(arith.MuliOp, self.outside(value), self.size)
        out.add_op(product)
        return product.results[0]

    def _fill_private(self, op: rt.FillOp, out: Block) -> None:
        """Fills memory of all rows: that of one element is in one piece."""
        self._end_part(out)
        destination, views = op.destination, list[rt.ViewOp]()
        while isinstance(view := destination.owner, rt.ViewOp):
            views.append(view)
            destination = view.buffer
        buffer = self.outside(destination)
        for view in reversed(views):
            moved = rt.ViewOp(buffer, self._times_strip(view.offset, out))
            out.add_op(moved)
            buffer = moved.results[0]
        out.add_op(applied_to(op, [buffer, self.outside(op.value), self._times_strip(op.count, out)]))

    def _copied(self, op: Operation) -> list[Operation]:
        """An op that is the same for all rows."""
        mapping = {value: self.outside(value) for value in free_values_of_op(op)}
        found = copies([op], mapping)
        for result in op.results:
            self.uniform[result] = mapping[result]
        return found

    def array_of(self, value: SSAValue) -> SSAValue:
        """The array of what each row computes, new or from an earlier arm."""
        if value not in self.arrays:
            self.arrays[value] = self._array(value.type)
        return self.arrays[value]

    def outside(self, value: SSAValue) -> SSAValue:
        """What a uniform value is in the strips."""
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
        bounds = [self.outside(bound) for bound in (op.lb, op.ub, op.step)]
        written = scf.ForOp.create(
            operands=[*bounds, *starts], result_types=types, regions=[Region(inner)], location=op.location
        )
        out.add_op(written)
        for k, result in zip(kept, written.results, strict=True):
            self._set_current(op.results[k], result)
        for k, array in stored:
            self.arrays[op.results[k]] = array

    def _branch(self, op: scf.IfOp, out: Block) -> None:
        """A branch with loops inside: each arm, if any row takes it, in parts that leave out the rows that do not."""
        kept = [(k, self._array(result.type)) for k, result in enumerate(op.results) if result not in self.nest.summed]
        arms = [(region.block, sense) for region, sense in zip(op.regions, (True, False), strict=True) if region.blocks]
        taken = [_Taken(op.cond, sense) for _, sense in arms]
        self.part += taken
        self._end_part(out)
        for (arm, sense), tested in zip(arms, taken, strict=True):
            assert tested.found is not None
            found = arith.CmpiOp.create(
                operands=(tested.found, self.zero), result_types=(i1,), properties={"predicate": CMPI["ne"]}
            )
            before = dict(self.sums)
            block = Block()
            self.arms.append((op.cond, sense))
            self._sequence(arm, block)
            self.part += [_StoredByRow(terminator(arm).operands[k], array) for k, array in kept]
            self._end_part(block)
            self.arms.pop()
            block.add_op(scf.YieldOp.create(operands=list(self.sums.values())))
            otherwise = Block([scf.YieldOp.create(operands=list(before.values()))])
            branch = scf.IfOp.create(
                operands=(found.result,),
                result_types=[value.type for value in before.values()],
                regions=[Region(block), Region(otherwise)],
                location=op.location,
            )
            out.add_ops([found, branch])
            self.sums = dict(zip(before, branch.results, strict=True))
        for k, array in kept:
            self.arrays[op.results[k]] = array

    def _current(self, value: SSAValue) -> SSAValue:
        """What a sum is so far, or a uniform value."""
        value = self.nest.resolved(value)
        number = self.nest.summed.get(value)
        return self.outside(value) if number is None else self.sums[number]

    def _set_current(self, value: SSAValue, by: SSAValue) -> None:
        number = self.nest.summed.get(value)
        if number is None:
            self.uniform[value] = by
        else:
            self.sums[number] = by

    def _array(self, type_: Attribute) -> SSAValue:
        allocation = rt.AllocOp(self.size, rt.BufferType(i64 if type_ == i1 else type_), stack=True)
        self.allocations.append(allocation)
        return allocation.res

    # ------------------------------------------------------------ one loop over the rows

    def _end_part(self, out: Block) -> None:
        """Writes the loop that does what has been put off."""
        part, self.part = self.part, []
        if not part:
            return
        out.add_ops(_RowLoop(self, part).write())


class _RowLoop:
    """A loop over the rows of a strip, without other loops in it; in arms of branches for the rows that take them."""

    def __init__(self, strips: _Strips, part: _Part) -> None:
        self.strips, self.nest, self.part = strips, strips.nest, part
        self.ops = {op for op in part if isinstance(op, Operation)}
        self.stored = {entry.value for entry in part if isinstance(entry, _StoredByRow)}
        self.touched = {inner for op in self.ops for inner in ops_within(op) if inner in self.nest.accesses}
        numbers = sorted({
            self.nest.summed[value]
            for op in self.ops for value in map(self.nest.resolved, free_values_of_op(op)) if value in self.nest.summed
        })  # fmt: skip
        totals = [op for op in part if isinstance(op, ad.AccumulateOp) and self.nest.is_total(op)]
        taken = [entry for entry in part if isinstance(entry, _Taken)]
        self.carried: list[_Carried] = [*numbers, *totals, *taken]
        self.starts = [strips.sums[k] for k in numbers]
        for entry in self.carried[len(numbers) :]:
            zero = constant(0, f64 if isinstance(entry, Operation) else i64)
            strips.allocations.append(zero)
            self.starts.append(zero.result)
        self.body = Block(arg_types=[i64, *(start.type for start in self.starts)])
        self.current: dict[_Carried, SSAValue] = dict(zip(self.carried, self.body.args[1:], strict=True))
        self.row = self.body.args[0]
        position = integer(arith.AddiOp, strips.first, self.row)
        self.body.add_op(position)
        self.values: dict[SSAValue, SSAValue] = {self.nest.loop.body.block.args[0]: position.results[0]}

    def write(self) -> list[Operation]:
        """The loop, and what is behind it."""
        self._in_arms(self.strips.arms)
        self.body.add_op(scf.YieldOp.create(operands=list(self.current.values())))
        strips = self.strips
        loop = scf.ForOp.create(
            operands=(strips.zero, strips.rows, strips.one, *self.starts),
            result_types=[start.type for start in self.starts],
            regions=[Region(self.body)],
            location=self.nest.loop.location,
        )
        if any(self.nest.is_scattered(op) for op in self.ops):
            _SERIAL.put(loop)
        elif not any(self.nest.is_strided(op) for op in self.touched):
            _MASKED_TAIL.put(loop)  # a mask would have elements that are apart loaded one by one
        written: list[Operation] = [loop]
        for entry, result in zip(self.carried, loop.results, strict=True):
            if isinstance(entry, int):
                strips.sums[entry] = result
            elif isinstance(entry, _Taken):
                entry.found = result
            else:
                assert isinstance(entry, ad.AccumulateOp)
                buffer, index = strips.outside(entry.buffer), strips.outside(entry.index)
                written.append(ad.AccumulateOp(buffer, index, result, location=entry.location))
        return written

    def _in_arms(self, arms: Sequence[tuple[SSAValue, bool]]) -> None:
        """Writes the part for the rows that take all these arms; to sums others add nothing."""
        if not arms:
            self._rows()
            return
        (condition, sense), *others = arms
        test = self.value(condition)
        around, before, known_there = self.body, dict(self.current), dict(self.values)
        then, otherwise = Block(), Block()
        nothing = {entry: constant(0, value.type) for entry, value in before.items()}
        around.add_ops(nothing.values())
        self.body = then
        self.current.update((entry, zero.result) for entry, zero in nothing.items())
        self._in_arms(others)
        then.add_op(scf.YieldOp.create(operands=list(self.current.values())))
        otherwise.add_op(scf.YieldOp.create(operands=[zero.result for zero in nothing.values()]))
        blocks = (then, otherwise) if sense else (otherwise, then)
        branch = scf.IfOp.create(
            operands=(test,),
            result_types=[value.type for value in before.values()],
            regions=[Region(block) for block in blocks],
            location=self.nest.loop.location,
        )
        around.add_op(branch)
        self.body, self.values = around, known_there
        after = list(zip(before, before.values(), branch.results, strict=True))
        self.current = before
        for entry, value, more in after:
            before[entry] = self._sum(value, more)

    def _sum(self, value: SSAValue, more: SSAValue) -> SSAValue:
        """What a sum is with what is added, a flag with what is set."""
        if value.type == f64:
            op = arith.AddfOp.create(operands=(value, more), result_types=(f64,), properties={"fastmath": REASSOCIATE})
        else:
            op = arith.OrIOp.create(operands=(value, more), result_types=(i64,))
        self.body.add_op(op)
        return op.results[0]

    def _rows(self) -> None:
        """Writes the part."""
        outgoing: list[SSAValue] = []
        for entry in self.part:
            if isinstance(entry, _Taken):
                test = self.value(entry.condition)
                if not entry.sense:
                    test = self._put(arith.XOrIOp, test, self._number(1, i1), i1)
                self.current[entry] = self._sum(self.current[entry], self._widened(test))
            elif isinstance(entry, ad.AccumulateOp) and entry in self.current:
                self.current[entry] = self._sum(self.current[entry], self.value(entry.value))
            elif isinstance(entry, Operation):
                mapping: dict[SSAValue, SSAValue] = {}
                if self.nest.is_private(entry):
                    self._access_private(entry, mapping)
                else:
                    mapping.update((value, self.value(value)) for value in free_values_of_op(entry))
                    self.body.add_ops(copies([entry], mapping))
                for result in entry.results:
                    self.values[result] = mapping[result]
                    if (number := self.nest.summed.get(result)) is not None:
                        self.current[number] = mapping[result]
                    elif self._is_needed_elsewhere(result):
                        outgoing.append(result)
        kept = [(self.value(entry.value), entry.array) for entry in self.part if isinstance(entry, _StoredByRow)]
        kept += [(self.values[value], self.strips.array_of(value)) for value in outgoing]
        for value, array in kept:
            self.body.add_op(rt.StoreOp(self._widened(value) if value.type == i1 else value, array, self.row))

    def _access_private(self, op: Operation, mapping: dict[SSAValue, SSAValue]) -> None:
        """An access to memory of the row: its elements are as far apart as the strip has rows."""
        position, at = WHERE[type(op)]
        buffer, element = op.operands[position], self.value(op.operands[at])
        while isinstance(view := buffer.owner, rt.ViewOp):
            element = self._index(arith.AddiOp, element, self.value(view.offset))
            buffer = view.buffer
        index = self._index(arith.AddiOp, self._index(arith.MuliOp, element, self.strips.size), self.row)
        replaced = {position: self.strips.outside(buffer), at: index}
        copy = applied_to(op, [replaced.get(k) or self.value(operand) for k, operand in enumerate(op.operands)])
        self.body.add_op(copy)
        mapping.update(zip(op.results, copy.results, strict=True))

    def _index(self, cls: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        op = integer(cls, left, right)
        self.body.add_op(op)
        return op.results[0]

    def _put(self, cls: type[Operation], left: SSAValue, right: SSAValue, type_: Attribute) -> SSAValue:
        op = cls.create(operands=(left, right), result_types=(type_,))
        self.body.add_op(op)
        return op.results[0]

    def _number(self, number: int, type_: Attribute) -> SSAValue:
        op = constant(number, type_)
        self.body.add_op(op)
        return op.result

    def _widened(self, truth: SSAValue) -> SSAValue:
        op = arith.ExtUIOp.create(operands=(truth,), result_types=(i64,))
        self.body.add_op(op)
        return op.result

    def value(self, value: SSAValue) -> SSAValue:
        """A value in this loop: computed here, the same for all rows, from an array, or computed again."""
        value = self.nest.resolved(value)
        if (found := self.values.get(value)) is not None:
            return found
        if value not in self.nest.of_row:
            number = self.nest.summed.get(value)
            return self.strips.outside(value) if number is None else self.current[number]
        if (array := self.strips.arrays.get(value)) is not None:
            load = rt.LoadOp(array, self.row)
            self.body.add_op(load)
            self.values[value] = self._truth(load.res) if value.type == i1 else load.res
            return self.values[value]
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

    def _truth(self, number: SSAValue) -> SSAValue:
        op = arith.CmpiOp.create(
            operands=(number, self._number(0, i64)), result_types=(i1,), properties={"predicate": CMPI["ne"]}
        )
        self.body.add_op(op)
        return op.result

    def _from_table(self, value: SSAValue, column: DataColumn) -> SSAValue:
        """An element of data, from the table that has it beside that of the next row."""
        table = self.strips.tables[column.table]
        factors = [*self.nest.forms.values_of(column.column), self.nest.loop.body.block.args[0]]
        ops, index = table.index(column, {factor: self.value(factor) for factor in factors})
        load = rt.LoadOp(table.memory, index)
        self.body.add_ops([*ops, load])
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
