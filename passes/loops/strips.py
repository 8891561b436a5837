"""The strips of a nest whose rows run side by side (`strip_mine`): its body in parts, each a loop over rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPI, constant, not_clamped
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import root
from ulam.passes.loops.even_rows import EvenRows
from ulam.passes.loops.index_forms import Form, known, plus
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.row_columns import RowColumns
from ulam.passes.loops.row_nests import SHORT_COLUMNS, NotApplicable, RowNest
from ulam.passes.loops.strip_rows import ArmTaken, Part, RowLoop, StoredByRow
from ulam.passes.loops.transposed_tables import TransposedTable, fill
from ulam.passes.rewriting import applied_to, copies, discard, replace_uses

_STRIP = 64
"""Rows of a strip: many vectors, whose values for a few variables fit into the nearest cache."""

_SHIFT = 6
_FEWEST = 8
"""Rows that are worth a strip."""

_MOST_ARRAYS = 24


@record
class Strips:
    """Writes the strips of a nest. Raises NotApplicable before anything has changed."""

    nest: RowNest
    original: scf.ForOp
    """The loop in whose place strips are put: that of the nest, or what the nest is a copy of."""

    is_even: bool = False
    """Whether the sizes of inner loops are computed from data in front of the nest."""

    part: Part = field(default_factory=list[Operation | StoredByRow | ArmTaken])
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
    unless: SSAValue | None = None
    """What says that the loop, which stands in a branch then, does not run."""
    ahead: list[Operation] = field(default_factory=list[Operation])
    """What says whether strips apply, and fills tables."""

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

    def replace(self) -> str:
        """Puts strips in the place of the loop, which stays for when they do not apply. What then is to be told."""
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
        self.ahead = before
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
        return f"its iterations run side by side, {_STRIP} at a time{where}"

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
        if applies is None or self.unless is not None:
            true = constant(1, i1)
            ops.append(true)
            applies = applies or true.result
            if self.unless is not None:
                runs = arith.XOrIOp.create(operands=(self.unless, true.result), result_types=(i1,))
                both = arith.AndIOp.create(operands=(applies, runs.result), result_types=(i1,))
                ops += [runs, both]
                applies = both.result
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
                self.part.append(StoredByRow(op.iter_args[k], array))
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
        self.part += [StoredByRow(ends[k], array) for k, array in stored]
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
        taken = [ArmTaken(op.cond, sense) for _, sense in arms]
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
            self.part += [StoredByRow(terminator(arm).operands[k], array) for k, array in kept]
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
        out.add_ops(RowLoop(self, part).write())
