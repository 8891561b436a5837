"""One part of the body of a nest, as a loop over the rows of a strip (`strips`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.builder import REASSOCIATE
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.row_nests import WHERE, DataColumn
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.rewriting import applied_to, copies

if TYPE_CHECKING:
    from ulam.passes.loops.strips import Strips

_MASKED_TAIL, _FUNCTIONS = rt.LoopAttr.of_kind("masked_tail"), rt.LoopAttr.of_kind("functions")
_SERIAL = rt.LoopAttr.of_kind("serial")


@record
class StoredByRow:
    """A value of each row that goes to an array: what a loop carries."""

    value: SSAValue
    array: SSAValue


@record(eq=False)
class ArmTaken:
    """Whether any row takes an arm. `found` is not 0 then, behind the loop."""

    condition: SSAValue
    sense: bool
    found: SSAValue | None = None


Carried = int | Operation | ArmTaken
"""What a loop over rows adds up: an outer sum by number, what all rows add to one element, whether an arm is taken."""

Part = list[Operation | StoredByRow | ArmTaken]
"""What one loop over the rows of a strip does."""


class RowLoop:
    """A loop over the rows of a strip, without other loops in it; in arms of branches for the rows that take them."""

    def __init__(self, strips: Strips, part: Part) -> None:
        self.strips, self.nest, self.part = strips, strips.nest, part
        self.ops = {op for op in part if isinstance(op, Operation)}
        self.stored = {entry.value for entry in part if isinstance(entry, StoredByRow)}
        self.touched = {inner for op in self.ops for inner in ops_within(op) if inner in self.nest.accesses}
        numbers = sorted({
            self.nest.summed[value]
            for op in self.ops for value in map(self.nest.resolved, free_values_of_op(op)) if value in self.nest.summed
        })  # fmt: skip
        totals = [op for op in part if isinstance(op, ad.AccumulateOp) and self.nest.is_total(op)]
        taken = [entry for entry in part if isinstance(entry, ArmTaken)]
        self.carried: list[Carried] = [*numbers, *totals, *taken]
        self.starts = [strips.sums[k] for k in numbers]
        for entry in self.carried[len(numbers) :]:
            zero = constant(0, f64 if isinstance(entry, Operation) else i64)
            strips.allocations.append(zero)
            self.starts.append(zero.result)
        self.body = Block(arg_types=[i64, *(start.type for start in self.starts)])
        self.current: dict[Carried, SSAValue] = dict(zip(self.carried, self.body.args[1:], strict=True))
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
            # a mask would have elements that are apart loaded one by one
            (_FUNCTIONS if any(map(is_costly_function, self.body.ops)) else _MASKED_TAIL).put(loop)
        written: list[Operation] = [loop]
        for entry, result in zip(self.carried, loop.results, strict=True):
            if isinstance(entry, int):
                strips.sums[entry] = result
            elif isinstance(entry, ArmTaken):
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
            if isinstance(entry, ArmTaken):
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
        kept = [(self.value(entry.value), entry.array) for entry in self.part if isinstance(entry, StoredByRow)]
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
