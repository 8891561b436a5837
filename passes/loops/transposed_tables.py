"""Data that rows of a nest read, transposed when they are bound: rows beside each other read what lies side by side."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.index_forms import plus
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.row_nests import DataColumn, RowNest


class TransposedTable:
    """Data of the rows with columns one behind the other: `table[column * rows + i] = data[stride * i + column]`."""

    def __init__(self, nest: RowNest, column: DataColumn, applies: SSAValue) -> None:
        self.nest, self.column = nest, column
        forms = nest.forms
        zero = constant(0, i64)
        spans, span = forms.write(forms.span)
        widths, width = forms.write(plus(plus(column.most, column.least, -1), {(): 1}))
        rows = arith.SelectOp.create(operands=(applies, span, zero.result), result_types=(i64,))
        self.rows = rows.result
        some = arith.MaxSIOp.create(operands=(width, zero.result), result_types=(i64,))
        size = integer(arith.MuliOp, rows.result, some.result)
        memory = rt.AllocOp(size.results[0], column.buffer.type, location=nest.loop.location)
        self.memory = memory.res
        self.ops: list[Operation] = [zero, *spans, *widths, rows, some, size, memory]

    def index(self, column: DataColumn, values: Mapping[SSAValue, SSAValue]) -> tuple[list[Operation], SSAValue]:
        """Where an element is, and the ops that compute it. `values`: loop variables → what they are called there."""
        forms, loop = self.nest.forms, self.nest.loop
        ops, position = forms.write(plus(column.column, column.least, -1), values)
        variable = loop.body.block.args[0]
        row = integer(arith.SubiOp, values.get(variable, variable), loop.lb)
        begin = integer(arith.MuliOp, position, self.rows)
        index = integer(arith.AddiOp, begin.results[0], row.results[0])
        return [*ops, row, begin, index], index.results[0]


def fill(nest: RowNest, tables: Mapping[tuple[object, ...], TransposedTable], applies: SSAValue) -> Operation:
    """A copy of the nest that does nothing but read what it reads of the data, into tables."""

    def store(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
        column = nest.columns[original]
        ops, index = tables[column.table].index(column, values)
        block = copy.parent
        assert block is not None
        block.add_ops([*ops, rt.StoreOp(copy.results[0], tables[column.table].memory, index, initial=True)])

    block = Block([DataSlices().copy(nest.loop, list(nest.columns), store), scf.YieldOp.create()])
    nothing = Block([scf.YieldOp.create()])
    return scf.IfOp.create(operands=(applies,), regions=[Region(block), Region(nothing)], location=nest.loop.location)
