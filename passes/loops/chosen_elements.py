"""Coefficients that data choose in some rows are read in all of them: elsewhere from an element that is 0.

    for n: mu = b * x[n]                                bind:      t[n] = c[n] ? g[n] + 1 : 0;   z'[n] = c[n] ? z[n] : 0
           if c[n]: mu += a[g[n]] * z[n]           →    evaluate:  a' = [0, a]
           target += f(mu, y[n])                                   for n: v = b * x[n] + a'[t[n]] * z'[n]
                                                                          target += f(c[n] ? v : b * x[n], y[n])

The loop has no branch then, and is widened. Where the branch is not taken, what is multiplied is 0, and so are all
slopes but that of the element which is 0, which nothing gets: what parameters and data are there reaches no derivative.
So arms may add, and multiply what only they read with something else. Loops that evaluate functions alone: others are
reduced, or wait for memory in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_of
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import UNKNOWN, Root, root, written_roots_within
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import BlockEnd, OpWriter, integer
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_SUMS = (arith.AddfOp, arith.SubfOp, arith.NegfOp)


class ChosenElements(TellingPass):
    """Lets rows read elements of parameters without a branch, where data decide which rows have them."""

    name = "chosen-elements"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        branches = list(_branches(evaluate.body.block))
        if not branches or must_be_precise(module):
            return False
        slices = DataSlices()
        written: list[Operation] = []
        for branch, loop in branches:
            if (found := _Choice.of(branch, loop, slices)) is not None:
                remark_on(self.name, branch, "what it reads is read in all rows", done=True)
                written += found.write()
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return bool(written)


def _branches(top: Block) -> Iterator[tuple[scf.IfOp, scf.ForOp]]:
    """Branches that give values in rows of loops."""
    for loop in ops_of(top):
        if type(loop) is scf.ForOp:
            for op in ops_of(loop.body.block):
                if type(op) is scf.IfOp and op.results:
                    yield op, loop


@record
class _Choice:
    """A branch of data in a loop over rows, whose arms are linear in what they read."""

    branch: scf.IfOp
    loop: scf.ForOp
    slices: DataSlices
    elements: list[rt.LoadOp] = field(default_factory=list[rt.LoadOp])
    """Of parameters, in the arms."""
    data: list[Operation] = field(default_factory=list[Operation])
    """Reals of data that the arms compute, which others there are computed of."""
    kept: list[Operation] = field(default_factory=list[Operation])
    """What is computed of both."""

    @staticmethod
    def of(branch: scf.IfOp, loop: scf.ForOp, slices: DataSlices) -> _Choice | None:
        """None if the arms do something else."""
        is_by_one = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1
        if not is_by_one or not slices.is_data(loop.ub) or not slices.is_data(branch.cond):
            return None
        if any(result.type != f64 for result in branch.results):
            return None
        if not any(is_costly_function(op) for op in ops_of(loop.body.block)):
            return None
        found = _Choice(branch, loop, slices)
        written = set(written_roots_within(loop))
        ops = [op for region in branch.regions for op in ops_of(region.block)[:-1]]
        if not all(found._take(op, written) for op in ops) or not found.elements:
            return None
        ends = [end for region in branch.regions for end in terminator(region.block).operands]
        return found if all(map(found._is_known, ends)) else None

    def _take(self, op: Operation, written: set[Root]) -> bool:
        """Whether an op of an arm can stand outside of it."""
        if len(op.results) != 1 or op.regions:
            return False
        if self.slices.is_data(op.results[0]):
            if op.results[0].type == f64:
                self.data.append(op)
            return True
        if isinstance(op, rt.LoadOp):
            self.elements.append(op)
            source = root(op.buffer)
            stays = source is not UNKNOWN and source not in written and UNKNOWN not in written
            return stays and self.slices.is_data(op.index) and not is_inside(op.buffer, self.loop)
        self.kept.append(op)
        if isinstance(op, arith.MulfOp):
            return any(map(self._is_read, op.operands))
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return any(map(self._is_read, op.operands[:2]))
        return isinstance(op, _SUMS)

    def _is_read(self, value: SSAValue) -> bool:
        """Whether a value is 0 where the arm is not taken, and no slope of it is needed."""
        return value.owner in self.elements or value.owner in self.data

    def _is_known(self, end: SSAValue) -> bool:
        return not is_inside(end, self.branch) or end.owner in self.kept or self._is_read(end)

    # ------------------------------------------------------------ writing

    def write(self) -> list[Operation]:
        """Takes the branch away; what is to be done when data are bound, which stands ahead of the loop."""
        loop, ahead = self.loop, self.loop.prev_op
        write = OpWriter(loop)
        count = write.put(integer(arith.MaxSIOp, loop.ub, write.whole(0)))
        used = [op for op in self.data if any(self._is_needed(use.operation) for use in op.results[0].uses)]
        tables = {op: write.put(rt.AllocOp(count, rt.BufferType(f64), zero=True)) for op in used}
        places = {op: write.put(rt.AllocOp(count, rt.BufferType(i32), zero=True)) for op in self.elements}
        ranges = {op: self._range(op, write) for op in self.elements}
        if used:
            write.before(self.slices.copy(loop, used, lambda op, copy, values: self._store(copy, tables[op], values)))
        for op in self.elements:
            write.before(self._listed(op, places[op], ranges[op][0]))
        written = list(ops_between(ahead, loop))
        known: dict[SSAValue, SSAValue] = {}
        inside, row = OpWriter(self.branch), loop.body.block.args[0]
        for op in self.elements:
            padded = self._padded(op, *ranges[op], OpWriter(loop))
            number = inside.put(rt.LoadOp(places[op], row))
            wide = inside.put(arith.ExtSIOp.create(operands=(number,), result_types=(i64,)))
            known[op.res] = inside.put(rt.LoadOp(padded, wide, location=op.location))
        for op, table in tables.items():
            known[op.results[0]] = inside.put(rt.LoadOp(table, row, location=op.location))
        self._replace(known, inside)
        return written

    def _is_needed(self, user: Operation) -> bool:
        """Whether an op stays that uses a value."""
        return user in self.kept or isinstance(user, scf.YieldOp)

    def _store(self, copy: Operation, table: SSAValue, values: dict[SSAValue, SSAValue]) -> None:
        assert copy.parent is not None
        copy.parent.add_op(rt.StoreOp(copy.results[0], table, values[self.loop.body.block.args[0]]))

    def _index(self, op: rt.LoadOp) -> Operation:
        """What has the place of an element, in the arm: its copy is where a row reads one."""
        found = integer(arith.AddiOp, op.index, op.index)
        assert op.parent is not None
        op.parent.insert_op_before(found, op)
        return found

    def _range(self, op: rt.LoadOp, write: OpWriter) -> tuple[SSAValue, SSAValue]:
        """The first element that rows read, and the end."""
        extent = write.put(rt.AllocOp(write.whole(2), rt.BufferType(i64), zero=True))
        mark = self._index(op)

        def note(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            inside = BlockEnd(copy.parent)
            place = copy.operands[0]
            following = inside.put(integer(arith.AddiOp, place, inside.put(constant(1, i64))))
            inside.put_op(rt.KernelOp("sparse_range", (extent, extent, place, following)))

        write.before(self.slices.copy(self.loop, [mark], note))
        discard(mark)
        first, end = (write.put(rt.LoadOp(extent, write.whole(n))) for n in range(2))
        return first, end

    def _listed(self, op: rt.LoadOp, table: SSAValue, first: SSAValue) -> Operation:
        """Lists the elements that rows read, from 1 on."""
        mark = self._index(op)

        def note(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            inside = BlockEnd(copy.parent)
            place = inside.put(integer(arith.SubiOp, copy.operands[0], first))
            place = inside.put(integer(arith.AddiOp, place, inside.put(constant(1, i64))))
            narrow = arith.TruncIOp.create(operands=(place,), result_types=(i32,))
            inside.put_op(narrow)
            self._store(narrow, table, values)

        found = self.slices.copy(self.loop, [mark], note)
        discard(mark)
        return found

    def _padded(self, op: rt.LoadOp, first: SSAValue, end: SSAValue, write: OpWriter) -> SSAValue:
        """The elements that rows read, behind one that is 0."""
        one = write.whole(1)
        size = write.put(integer(arith.SubiOp, end, first))
        padded = write.put(rt.AllocOp(write.put(integer(arith.AddiOp, size, one)), rt.BufferType(f64)))
        write.before(rt.StoreOp(write.number(0.0), padded, write.whole(0), initial=True))
        k, inside = new_loop(write, write.whole(0), size)
        value = inside.put(rt.LoadOp(op.buffer, inside.put(integer(arith.AddiOp, k, first))))
        inside.before(rt.StoreOp(value, padded, inside.put(integer(arith.AddiOp, k, one)), initial=True))
        return padded

    def _replace(self, known: dict[SSAValue, SSAValue], inside: OpWriter) -> None:
        branch = self.branch
        for op in self.kept:
            copy = applied_to(op, [known.get(operand, operand) for operand in op.operands])
            inside.before(copy)
            known[op.results[0]] = copy.results[0]
        arms = [list(terminator(region.block).operands) for region in branch.regions]
        for n, result in enumerate(branch.results):
            values = [known.get(ends[n], ends[n]) for ends in arms]
            operands = (branch.cond, *values)
            choice = arith.SelectOp.create(operands=operands, result_types=(f64,), location=branch.location)
            replace_uses(result, inside.put(choice))
        discard(branch)

