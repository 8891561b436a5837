"""What loops carry from iteration to iteration of data alone is read from a table that is filled when data are bound.

    for i: s = 0                              bind:      for i: s = 0
           for t: target += f(s, theta)   →                     for t: table[i, t] = s;  s = s + y[i, t]
                  s = s + y[i, t]             evaluate:  for i: for t: target += f(table[i, t], theta)

Numbers of what has happened so far, places in ragged data, sums over a part of the data, values that branches on data
choose, memory that an iteration takes for itself and fills with data: iterations then no longer wait for each other,
and know by their number what they read. Only where data alone decide on the iterations, with loops around whose bounds
do not depend on each other. Counters, which each iteration changes by the same, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i32, i64
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import is_speculatable, viewed
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.private_data import PrivateData
from ulam.passes.loops.tables import (
    IterationTable,
    Loops,
    LoopsOrStrips,
    are_as_many_as_data,
    leave,
    may_leave,
    table_ahead,
)
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_TYPES = (i32, i64, f64)


class CarriedData(TellingPass):
    """Gives what loops of `evaluate` carry of data alone tables that are filled ahead of the loops."""

    name = "carried-data"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        if must_be_precise(module):
            return False
        slices = DataSlices()
        nests = [op for op in evaluate_of(module, self.name).body.block.ops if type(op) in (scf.ForOp, scf.IfOp)]
        return any([_Nest(op, slices).change() for op in nests if _carries(op)])


def _carries(nest: Operation) -> bool:
    """Whether a loop carries something or takes memory, or a branch chooses; not if other ops have regions."""
    ops = [nest, *ops_within(nest)]
    nested = [op for op in ops if op.regions]
    is_there = any(op.results for op in nested) or any(type(op) is rt.AllocOp for op in ops)
    return is_there and all(type(op) in (scf.ForOp, scf.IfOp) for op in nested)


class _Nest:
    """A nest of loops and branches: which of its values are data, those that loops carry included."""

    def __init__(self, top: Operation, slices: DataSlices) -> None:
        self._top, self._slices = top, slices
        self._ops = list(ops_within(top))
        self._inside: set[SSAValue] = set()
        for op in (top, *self._ops):
            self._inside.update(op.results if op is not top else ())
            for region in op.regions:
                self._inside.update(argument for block in region.blocks for argument in block.args)
        self._varied: set[SSAValue] = set()
        self._private = PrivateData(self._ops)

    def change(self) -> bool:
        """Makes tables, and moves checks of data to the loops that fill them; whether there was any.

        All that stand where data decide: what fills the tables relies on them, and no check is made twice.
        """
        self._find_data()
        if not any(self._private) and not any(map(self._is_carried_data, (self._top, *self._ops))):
            return False
        while wrong := [memory for memory in self._private if not self._is_private(memory)]:
            for memory in wrong:
                self._private.remove(memory)
            self._find_data()
        places = self._places()
        checks = [op for op in self._ops if isinstance(op, rt.CheckOp) and self._is_checked(op)]
        late = [op for op in checks if not all(map(self._slices.is_data, op.operands))]
        if not places and not late and not self._private.are_read(self._needed()):
            return False
        self._tabulate(places, checks)
        for op in checks:
            discard(op)
        remark_on(CarriedData.name, self._top, "what it carries of data alone is read from tables", done=True)
        return True

    # ------------------------------------------------------------ what is data

    def _find_data(self) -> None:
        making = [op for op in (self._top, *self._ops) if op.results or op.regions]
        while any([self._note(op) for op in making]):
            pass  # what a loop carries depends on what its last op computes

    def _is_carried_data(self, op: Operation) -> bool:
        """Whether an op with regions carries or chooses data."""
        return bool(op.regions) and any(result not in self._varied for result in op.results)

    def _is_private(self, memory: rt.AllocOp) -> bool:
        """Whether memory of an iteration is filled with data, by data alone, before others read it."""
        loops = self._loops_around(memory.res)
        if not loops or not self._may_have_table(loops) or not may_leave(memory.count, self._top):
            return False
        for op in self._private.writers(memory):
            if not self._are_data(op.operands) or not self._has_data_control(op):
                return False
        return self._are_data((memory.count,)) and self._private.are_filled_first(memory, self._needed())

    def _is_data(self, value: SSAValue) -> bool:
        return value not in self._varied if value in self._inside else self._slices.is_data(value)

    def _are_data(self, values: Iterable[SSAValue]) -> bool:
        return all(map(self._is_data, values))

    def _note(self, op: Operation) -> bool:
        """Notes which results of an op, and values that it carries, are not data; whether that is news."""
        before = len(self._varied)
        if not op.regions:
            if op.results[0] not in self._varied and not self._computes_data(op):
                self._varied.update(op.results)
        elif isinstance(op, scf.ForOp):
            body, is_counted = op.body.block, self._are_data(op.operands[:3])
            if not is_counted:
                self._varied.add(body.args[0])
            for k, end in enumerate(terminator(body).operands):
                if not is_counted or not self._are_data((op.iter_args[k], end)):
                    self._varied.update((body.args[1 + k], op.results[k]))
        elif isinstance(op, scf.IfOp):
            for k, result in enumerate(op.results):
                ends = [terminator(region.block).operands[k] for region in op.regions]
                if not self._are_data((op.cond, *ends)):
                    self._varied.add(result)
        return len(self._varied) > before

    def _computes_data(self, op: Operation) -> bool:
        cls = type(op)
        if cls is rt.AllocOp:
            return op in self._private
        if cls is rt.LoadOp:
            assert isinstance(op, rt.LoadOp)
            source = viewed(op.buffer).owner
            is_known = isinstance(source, rt.BoundOp) or source in self._private
            return is_known and self._are_data((op.buffer, op.index))
        return is_speculatable(op) and self._are_data(op.operands)

    def _has_data_control(self, op: Operation) -> bool:
        """Whether data alone decide how often an op runs."""
        parent = op.parent_op()
        while parent is not None and op is not self._top:
            if not self._are_data(parent.operands[:3] if isinstance(parent, scf.ForOp) else parent.operands):
                return False
            op, parent = parent, parent.parent_op()
        return True

    def _is_checked(self, op: rt.CheckOp) -> bool:
        return self._are_data(op.operands) and self._has_data_control(op)

    # ------------------------------------------------------------ what needs a table

    def _places(self) -> dict[SSAValue, Loops]:
        """Values that get a table, with the loops around."""
        found: dict[SSAValue, Loops] = {}
        for value in filter(_is_carried_or_chosen, self._needed()):
            loops = self._loops_around(value)
            if loops and value.type in _TYPES and not _is_counter(value) and self._may_have_table(loops):
                found[value] = loops
        return found

    def _needed(self) -> Iterable[SSAValue]:
        """Values of data that are needed by what is not data, up to those that loops carry or branches choose."""
        working = self._working()
        work: list[SSAValue] = []
        for op in (self._top, *self._ops):
            if isinstance(op, scf.YieldOp):
                parent = op.parent_op()
                assert parent is not None
                work += [end for end, result in zip(op.operands, parent.results, strict=True) if result in self._varied]
            elif op.regions:
                work += op.operands[:3] if op in working and isinstance(op, scf.ForOp) else ()
                work += op.operands if op in working and not isinstance(op, scf.ForOp) else ()
                starts = op.operands[3:] if isinstance(op, scf.ForOp) else ()
                work += [start for start, result in zip(starts, op.results, strict=False) if result in self._varied]
            elif self._works(op):
                work += op.operands
        seen: dict[SSAValue, None] = {}
        while work:
            value = work.pop()
            if value in seen or value not in self._inside or value in self._varied:
                continue
            seen[value] = None
            if isinstance(value, OpResult) and not value.op.regions:
                work += value.op.operands
        return seen

    def _works(self, op: Operation) -> bool:
        """Whether an op without regions does more than to compute and to check data."""
        if type(op) is rt.CheckOp:
            return not self._is_checked(op)
        if self._private.is_writer(op):
            return False
        return type(op) is not scf.YieldOp and (not op.results or any(r in self._varied for r in op.results))

    def _working(self) -> set[Operation]:
        """Loops and branches with such ops inside."""
        found: set[Operation] = set()
        for op in self._ops:
            if not op.regions and self._works(op):
                parent = op.parent_op()
                while parent is not None and parent not in found and op is not self._top:
                    found.add(parent)
                    op, parent = parent, parent.parent_op()
        return found

    def _loops_around(self, value: SSAValue) -> Loops:
        """The loops that a value has a number for each iteration of; none if not data alone decide on these."""
        inner = value.owner.parent_op() if isinstance(value, BlockArgument) else value.owner
        assert isinstance(inner, Operation)
        loops: list[scf.ForOp] = []
        current = inner if isinstance(value, BlockArgument) else inner.parent_op()
        while current is not None and (current is self._top or self._top.is_ancestor(current)):
            if isinstance(current, scf.ForOp):
                loops.append(current)
            current = current.parent_op()
        return tuple(reversed(loops)) if self._has_data_control(inner) else ()

    def _may_have_table(self, loops: Loops) -> bool:
        """Whether no bound depends on the iteration of an outer loop, and the table would not outgrow the data."""
        is_rectangular = all(may_leave(bound, self._top) for loop in loops for bound in (loop.lb, loop.ub))
        return is_rectangular and are_as_many_as_data(loops, self._ops)

    # ------------------------------------------------------------ the tables

    def _tabulate(self, places: dict[SSAValue, Loops], checks: Sequence[Operation]) -> None:
        top, block = self._top, self._top.parent
        assert block is not None
        tables: dict[LoopsOrStrips, IterationTable] = {}
        memory: dict[SSAValue, SSAValue] = {}
        for value, loops in places.items():
            allocation = table_ahead(top, loops, tables).allocate(top, value.type)
            block.insert_op_before(allocation, top)
            memory[value] = allocation.res

        parts = {op: self._parts(op, tables) for op in self._private}

        def store(value: SSAValue, copied: SSAValue, target: Block, values: dict[SSAValue, SSAValue]) -> None:
            ops, index = tables[places[value]].entry_here(values)
            target.add_ops([*ops, rt.StoreOp(copied, memory[value], index, initial=True)])

        def view(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            if isinstance(original, rt.AllocOp):
                assert copy.parent is not None
                ops = parts[original].view(values)
                copy.parent.insert_ops_before(ops, copy)
                values[original.res] = ops[-1].results[0]
                discard(copy)

        written = [op for memory in self._private for op in (memory, *self._private.writers(memory))]
        block.insert_op_before(self._slices.copy(top, [*checks, *written], view, places, store), top)
        for value, buffer in memory.items():
            _read_instead(value, tables[places[value]], buffer)
        for op in self._private:
            assert op.parent is not None
            ops = parts[op].view({})
            op.parent.insert_ops_before(ops, op)
            op.res.replace_all_uses_with(ops[-1].results[0])
        for op in written:
            discard(op)

    def _parts(self, alloc: rt.AllocOp, tables: dict[LoopsOrStrips, IterationTable]) -> _Parts:
        """A table of which each iteration has a part, in place of memory of its own."""
        top, block = self._top, self._top.parent
        assert block is not None
        table = table_ahead(top, self._loops_around(alloc.res), tables)
        leave(alloc.count, top)
        ops, memory = table.allocate_parts(alloc)
        block.insert_ops_before(ops, top)
        return _Parts(table, memory, alloc.count)


@record(frozen=True)
class _Parts:
    """A table of which each iteration of some loops has `width` elements."""

    table: IterationTable
    buffer: SSAValue
    width: SSAValue

    def view(self, values: dict[SSAValue, SSAValue]) -> list[Operation]:
        """What gives the part of the present iteration; `values`: those that are called otherwise there."""
        ops, index = self.table.entry_here(values)
        offset = integer(arith.MuliOp, index, self.width)
        return [*ops, offset, rt.ViewOp(self.buffer, offset.results[0])]


def _is_carried_or_chosen(value: SSAValue) -> bool:
    if isinstance(value, BlockArgument):
        return value.index > 0
    return isinstance(value, OpResult) and bool(value.op.regions)


def _is_counter(value: SSAValue) -> bool:
    """Whether each iteration changes a number, or changed it, by the same."""
    assert isinstance(value, BlockArgument | OpResult)
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else value.op
    if not isinstance(loop, scf.ForOp):
        return False
    position = value.index - isinstance(value, BlockArgument)
    argument, end = loop.body.block.args[1 + position], terminator(loop.body.block).operands[position]
    op = end.owner
    if not isinstance(op, arith.AddiOp | arith.SubiOp):
        return False
    one, other = op.operands
    if isinstance(op, arith.AddiOp) and other is argument:
        one, other = other, one
    return one is argument and not is_inside(other, loop)


def _read_instead(value: SSAValue, table: IterationTable, buffer: SSAValue) -> None:
    """Puts what the table has for the present iteration in the place of a value."""
    ops, index = table.entry_here()
    load = rt.LoadOp(buffer, index)
    ops.append(load)
    value.replace_all_uses_with(load.res)
    if isinstance(value, OpResult):
        block = value.op.parent
        assert block is not None
        block.insert_ops_after(ops, value.op)
    else:
        assert isinstance(value.owner, Block) and value.owner.first_op is not None
        value.owner.insert_ops_before(ops, value.owner.first_op)
