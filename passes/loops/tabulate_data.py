"""Costly data-only expressions in loops become tables that are filled when data are bound.

    for i: ... lgamma(y[i] + 1) ...    →    bind:      for i: table[i] = lgamma(y[i] + 1)
                                            evaluate:  for i: ... table[i] ...

Only where data alone decide on the iterations: top-level loops, and loops and branches nested in them, with bounds and
conditions that are data. A table has an entry for each iteration of the nest.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_of
from ulam.library.records import record
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.tables import IterationTable, Loops, is_costly_within, may_leave, table_ahead
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


@record(frozen=True)
class TabulateData(TellingPass):
    """Computes costly functions of data within loops of `evaluate` ahead of the loops, into tables.

    `divisions`: quotients, too, where each row has one; tables of pairs of rows are larger than what they are made of.
    """

    name = "tabulate-data"
    changes_only = EVALUATE

    divisions: bool = False

    def changes(self, module: ModuleOp) -> bool:
        return tabulate_data(evaluate_of(module, self.name), divisions=self.divisions)


@record
class _Entry:
    """An expression that gets a table, with the loops around it, outermost first."""

    op: Operation
    loops: Loops


class _Costs:
    """What is computed for values, found once for nests side by side."""

    def __init__(self, divisions: bool) -> None:
        self._divisions = divisions
        self._calls: dict[SSAValue, bool] = {}
        self._quotients: dict[SSAValue, bool] = {}

    def are_worth_a_table(self, value: SSAValue, nest: Operation, loops: Loops) -> bool:
        """Whether reading a table is cheaper than computing a value, in an iteration of some loops."""
        if is_costly_within(value, nest, self._calls):
            return True
        divides = self._divisions and len(loops) == 1
        return divides and is_costly_within(value, nest, self._quotients, (arith.DivfOp,))


def tabulate_data(function: func.FuncOp, *, divisions: bool = False) -> bool:
    """Makes tables for all loops of a function; whether there were any. `divisions`: see the pass."""
    slices = DataSlices()
    costs = _Costs(divisions)
    found = False
    for op in ops_of(function.body.block):
        if not isinstance(op, scf.ForOp | scf.IfOp):
            continue
        entries: list[_Entry] = []
        _collect(op, op, (), slices, costs, entries)
        if entries:
            _tabulate(op, entries, slices)
            found = True
    return found


def _collect(
    nest: Operation,
    op: Operation,
    loops: Loops,
    slices: DataSlices,
    costs: _Costs,
    entries: list[_Entry],
) -> None:
    if op.regions:
        if not slices.has_data_control(op):
            return
        if isinstance(op, scf.ForOp):
            if op is not nest and not all(may_leave(bound, nest) for bound in (op.lb, op.ub)):
                return  # its trip count depends on the iteration of an outer loop
            loops = (*loops, op)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    _collect(nest, inner, loops, slices, costs, entries)
    elif (
        loops
        and len(op.results) == 1
        and op.results[0].type == f64
        and slices.is_data(op.results[0])
        and costs.are_worth_a_table(op.results[0], nest, loops)
        and not all(_is_data_user(use.operation, slices) for use in op.results[0].uses)
    ):
        entries.append(_Entry(op, loops))


def _is_data_user(op: Operation, slices: DataSlices) -> bool:
    """Whether the only consequence of a use is another data-only real."""
    return len(op.results) == 1 and op.results[0].type == f64 and not op.regions and slices.is_data(op.results[0])


def _tabulate(nest: Operation, entries: list[_Entry], slices: DataSlices) -> None:
    assert nest.parent is not None
    tables: dict[Loops, IterationTable] = {}
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
