"""Costly data-only expressions in loops become tables that are filled when data are bound.

    for i: ... lgamma(y[i] + 1) ...    →    bind:      for i: table[i] = lgamma(y[i] + 1)
                                            evaluate:  for i: ... table[i] ...

Only where data alone decide on the iterations: top-level loops, and loops and branches nested in them, with bounds and
conditions that are data. A table has an entry for each iteration of the nest, of loops over strips of rows one for each
row.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_of
from ulam.library.records import record
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.tables import (
    IterationTable,
    LoopsOrStrips,
    RowsOfStrips,
    is_costly_within,
    may_leave,
    table_ahead,
)
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


@record(frozen=True)
class TabulateData(TellingPass):
    """Computes costly functions of data within loops of `evaluate` ahead of the loops, into tables.

    `divisions`: quotients, too, where each row has one; tables of pairs of rows are larger than what they are made of.
    `strips`: in loops over strips of rows, too.
    """

    name = "tabulate-data"
    changes_only = EVALUATE

    divisions: bool = False
    strips: bool = False

    def changes(self, module: ModuleOp) -> bool:
        return tabulate_data(evaluate_of(module, self.name), divisions=self.divisions, strips=self.strips)


@record
class _Entry:
    """An expression that gets a table, with the loops around it, outermost first."""

    op: Operation
    loops: LoopsOrStrips


class _Costs:
    """What is computed for values, found once for nests side by side."""

    def __init__(self, divisions: bool) -> None:
        self._divisions = divisions
        self._calls: dict[SSAValue, bool] = {}
        self._quotients: dict[SSAValue, bool] = {}

    def are_worth_a_table(self, value: SSAValue, nest: Operation, loops: LoopsOrStrips) -> bool:
        """Whether reading a table is cheaper than computing a value, in an iteration of some loops."""
        if is_costly_within(value, nest, self._calls):
            return True
        divides = self._divisions and len(loops) == 1
        return divides and is_costly_within(value, nest, self._quotients, (arith.DivfOp,))


class _Strips:
    """Which loops over rows stand in loops over strips of these, in one module."""

    def __init__(self, function: func.FuncOp) -> None:
        self._function = function
        self._bound: dict[int, SSAValue] | None = None

    def rows_of(self, loop: scf.ForOp, around: scf.ForOp) -> RowsOfStrips | None:
        """A loop inside of another one as one over all rows, if it is over those of a strip."""
        if not isinstance(loop.ub.owner, arith.MinSIOp) or constant_integer(loop.step) != 1:
            return None
        from ulam.passes.loops.bound_forms import bound_ints  # noqa: PLC0415
        from ulam.passes.loops.rows_of_loops import strips_of  # noqa: PLC0415

        if self._bound is None:
            module = self._function.parent_op()
            assert isinstance(module, ModuleOp)
            self._bound = bound_ints(module)
        strips = strips_of(around, self._bound)
        if strips is None or loop.lb is not strips.begin or loop.ub is not strips.end.result:
            return None
        return RowsOfStrips(loop.body, around.lb, strips.end.rhs)


def tabulate_data(function: func.FuncOp, *, divisions: bool = False, strips: bool = False) -> bool:
    """Makes tables for all loops of a function; whether there were any. The options are those of the pass."""
    slices = DataSlices()
    costs, found_strips = _Costs(divisions), _Strips(function) if strips else None
    found = False
    for op in ops_of(function.body.block):
        if not isinstance(op, scf.ForOp | scf.IfOp):
            continue
        collector = _Collector(op, slices, costs, found_strips)
        collector.visit(op, ())
        if collector.entries:
            _tabulate(op, collector.entries, slices)
            found = True
    return found


@record
class _Collector:
    """Finds what of a nest gets tables."""

    nest: Operation
    slices: DataSlices
    costs: _Costs
    strips: _Strips | None
    entries: list[_Entry] = field(default_factory=list[_Entry])

    def visit(self, op: Operation, loops: LoopsOrStrips) -> None:
        """An op of the nest; `loops`: around it."""
        if op.regions:
            if not self.slices.has_data_control(op):
                return
            if isinstance(op, scf.ForOp):
                around = self._with(op, loops)
                if around is None:
                    return
                loops = around
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.ops:
                        self.visit(inner, loops)
        elif loops and self._gets_a_table(op, loops):
            self.entries.append(_Entry(op, loops))

    def _with(self, loop: scf.ForOp, loops: LoopsOrStrips) -> LoopsOrStrips | None:
        """The loops around what is inside of one more; None if its trip count depends on the iteration of another."""
        if loop is self.nest or all(may_leave(bound, self.nest) for bound in (loop.lb, loop.ub)):
            return (*loops, loop)
        around = loops[-1] if loops else None
        if self.strips is None or not isinstance(around, scf.ForOp):
            return None
        rows = self.strips.rows_of(loop, around)
        return (*loops[:-1], rows) if rows is not None and may_leave(rows.ub, self.nest) else None

    def _gets_a_table(self, op: Operation, loops: LoopsOrStrips) -> bool:
        return (
            len(op.results) == 1
            and op.results[0].type == f64
            and self.slices.is_data(op.results[0])
            and self.costs.are_worth_a_table(op.results[0], self.nest, loops)
            and not all(_is_data_user(use.operation, self.slices) for use in op.results[0].uses)
        )


def _is_data_user(op: Operation, slices: DataSlices) -> bool:
    """Whether the only consequence of a use is another data-only real."""
    return len(op.results) == 1 and op.results[0].type == f64 and not op.regions and slices.is_data(op.results[0])


def _tabulate(nest: Operation, entries: list[_Entry], slices: DataSlices) -> None:
    assert nest.parent is not None
    tables: dict[LoopsOrStrips, IterationTable] = {}
    memory: dict[Operation, SSAValue] = {}
    for entry in entries:
        allocation = table_ahead(nest, entry.loops, tables).allocate(entry.op)
        nest.parent.insert_op_before(allocation, nest)
        memory[entry.op] = allocation.res
    table_of = {entry.op: tables[entry.loops] for entry in entries}

    def store(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
        block = copy.parent
        assert block is not None
        ops, index = table_of[original].entry_here(values)
        block.add_ops([*ops, rt.StoreOp(copy.results[0], memory[original], index, initial=True)])

    nest.parent.insert_op_before(slices.copy(nest, [e.op for e in entries], store), nest)
    for op, allocated in memory.items():
        table_of[op].read_instead(op, allocated)
