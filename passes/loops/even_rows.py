"""Gives the inner loops of a nest the same number of iterations in all rows, where data say how many each row has.

    for i: for j in 0:m[i]: s += f(x[first[i] + j])
    →   most = max over i of m[i]          (when data are bound)
        for i: for j in 0:most: s += (j < m[i] ? f(x[first[i] + min(j, m[i] - 1)]) : 0)

So rows run side by side (`strip_mine`). Beyond its own iterations a row computes its last one again, where all that is
read is there, and leaves everything as it was: sums get 0, what is carried or stored stays. Memory of the row is as
large as that of the largest, and is read there element by element. For rows that have one iteration at least, and no
more than a few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer, may_reassociate
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE, root
from ulam.passes.loops.op_writer import integer
from ulam.passes.rewriting import discard

_MANY = 1 << 31
_ACCESSES = (rt.LoadOp, ad.KeptOp, rt.StoreOp, ad.KeepOp, ad.AccumulateOp, ad.TakeOp)


@record
class EvenRows:
    """Changes a nest, if it has loops or memory whose size data give to each row, and nothing stands against it."""

    nest: scf.ForOp
    around: scf.ForOp
    """The nest itself, or a loop over groups of its rows, all of which are to be of one size."""
    before: list[Operation] = field(default_factory=list[Operation])
    """Ops in front of that loop that compute the greatest sizes."""

    shortest: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])
    """Least upper bounds, and the lower bounds that they must be above."""
    longest: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])
    """Greatest upper bounds, and the lower bounds."""

    @staticmethod
    def may_gain(nest: scf.ForOp) -> bool:
        """Whether an inner loop's size may depend on the row."""
        return any(isinstance(op, scf.ForOp) and is_inside(op.ub, nest) for op in nest.body.block.ops)

    def change(self) -> bool:
        """Whether the nest has changed."""
        loops = [op for op in self.nest.body.block.ops if isinstance(op, scf.ForOp) and self._is_of_row(op.ub)]
        if not loops or not all(map(self._is_simple, loops)):
            return False
        sized = [op for op in ops_within(self.nest.body.block) if isinstance(op, rt.AllocOp | rt.FillOp)]
        sizes = dict.fromkeys([*(loop.ub for loop in loops), *(op.count for op in sized if self._is_of_row(op.count))])
        slices = DataSlices()
        if not all(slices.is_data(size) and isinstance(size.owner, Operation) for size in sizes):
            return False
        if not all(map(slices.has_data_control, self._loops_around())):
            return False
        most, least = self._extremes(list(sizes), slices)
        for op in sized:
            if op.count in most:
                op.operands = [most.get(operand, operand) for operand in op.operands]
        for loop in loops:
            lower = constant_integer(loop.lb)
            assert lower is not None
            self.longest.append((most[loop.ub], lower))
            self.shortest.append((least[loop.ub], lower))
            _EvenLoop(self.nest, loop, most[loop.ub]).write()
        return True

    def undo(self) -> None:
        """Removes what was written in front of the nest, which is gone."""
        for op in reversed(self.before):
            discard(op)

    def _loops_around(self) -> Iterator[Operation]:
        """The nest, and what it stands in up to the loop over groups."""
        op: Operation | None = self.nest
        while op is not None:
            yield op
            op = op.parent_op() if op is not self.around else None

    def _is_of_row(self, value: SSAValue) -> bool:
        return is_inside(value, self.nest)

    def _is_simple(self, loop: scf.ForOp) -> bool:
        if constant_integer(loop.lb) is None or constant_integer(loop.step) != 1:
            return False
        return all(
            type(op) in PURE or isinstance(op, (*_ACCESSES, ad.TargetAddOp, scf.YieldOp)) for op in loop.body.block.ops
        ) and all(argument.type in (f64, i64, i1) for argument in loop.body.block.args)

    def _extremes(
        self, sizes: list[SSAValue], slices: DataSlices
    ) -> tuple[dict[SSAValue, SSAValue], dict[SSAValue, SSAValue]]:
        """The greatest and the least of some values over all rows, computed in front of all loops over these."""
        outer = self.around.parent
        assert outer is not None
        count, none, many = constant(2 * len(sizes), i64), constant(0, i64), constant(_MANY, i64)
        memory = rt.AllocOp(count.result, rt.BufferType(i64), location=self.nest.location)
        places = [constant(k, i64) for k in range(2 * len(sizes))]
        starts = [
            rt.StoreOp((many if k % 2 else none).result, memory.res, place.result) for k, place in enumerate(places)
        ]
        of_op = {size.owner: k for k, size in enumerate(sizes)}

        def note(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            block = copy.parent
            assert block is not None
            for part, cls in enumerate((arith.MaxSIOp, arith.MinSIOp)):
                place = places[2 * of_op[original] + part].result
                old = rt.LoadOp(memory.res, place)
                new = integer(cls, old.res, copy.results[0])
                block.add_ops([old, new, rt.StoreOp(new.results[0], memory.res, place)])

        found = slices.copy(self.around, [op for op in of_op if isinstance(op, Operation)], note)
        loads = [rt.LoadOp(memory.res, place.result) for place in places]
        self.before = [count, none, many, memory, *places, *starts, found, *loads]
        outer.insert_ops_before(self.before, self.around)
        most: dict[SSAValue, SSAValue] = {size: loads[2 * k].res for k, size in enumerate(sizes)}
        return most, {size: loads[2 * k + 1].res for k, size in enumerate(sizes)}


class _EvenLoop:
    """An inner loop that runs for the largest row. What it does beyond a row's own iterations changes nothing."""

    def __init__(self, nest: scf.ForOp, loop: scf.ForOp, most: SSAValue) -> None:
        self.nest, self.loop, self.most, self.end = nest, loop, most, loop.ub
        self.body = loop.body.block
        first = self.body.first_op
        assert first is not None
        self.first = first

    def write(self) -> None:
        variable = self.body.args[0]
        reversed_ = self._reversed_variable()
        one = self._before(self.first, constant(1, i64))
        last = self._before(self.first, integer(arith.SubiOp, self.end, one))
        place: SSAValue = variable
        if reversed_ is not None:  # the last iterations are those that all rows have
            greatest = self._before(self.first, integer(arith.SubiOp, self.most, one))
            place = self._before(self.first, integer(arith.SubiOp, greatest, variable))
        near = self._before(self.first, integer(arith.MinSIOp, place, last))
        test = arith.CmpiOp.create(
            operands=(place, self.end), result_types=(i1,), properties={"predicate": CMPI["slt"]}
        )
        self.active = self._before(self.first, test)
        self.place, self.near = place, near
        written = {value.owner for value in (last, near, self.active, place)}
        replaced = variable if reversed_ is None else reversed_
        for use in list(replaced.uses):
            if use.operation not in written:
                use.operation.operands[use.index] = near
        for op in list(self.body.ops):
            self._access(op)
        self._carry()
        self.loop.operands[1] = self.most

    def _reversed_variable(self) -> SSAValue | None:
        """`end - 1 - j`, if that is all that the loop has of its variable `j`."""
        variable = self.body.args[0]
        use = variable.first_use
        if use is None or not variable.has_one_use() or constant_integer(self.loop.lb) != 0:
            return None
        op = use.operation
        if not isinstance(op, arith.SubiOp) or use.index != 1 or op.parent is not self.body:
            return None
        last = op.lhs.owner
        is_last = isinstance(last, arith.SubiOp) and last.lhs is self.end and constant_integer(last.rhs) == 1
        return op.result if is_last else None

    # ------------------------------------------------------------ memory

    def _access(self, op: Operation) -> None:
        if isinstance(op, ad.TargetAddOp):
            op.operands[0] = self._or_zero(op.value, op)
            return
        if not isinstance(op, _ACCESSES):
            return
        self._take_own_place(op)
        if isinstance(op, ad.AccumulateOp):
            op.operands[2] = self._or_zero(op.value, op)
        elif isinstance(op, rt.StoreOp | ad.KeepOp):
            at = 0 if isinstance(op, rt.StoreOp) else 2
            buffer = op.buffer if isinstance(op, rt.StoreOp) else op.array
            old = self._before(op, rt.LoadOp(buffer, op.index, location=op.location))
            op.operands[at] = self._select(op.value, old, op)
        elif isinstance(op, ad.TakeOp):
            old = self._before(op, rt.LoadOp(op.buffer, op.index, location=op.location))
            left = self._select(self._before(op, constant(0.0, f64)), old, op)
            self.body.insert_op_before(rt.StoreOp(left, op.buffer, op.index, location=op.location), op)
            op.results[0].replace_all_uses_with(old)
            discard(op)

    def _take_own_place(self, op: Operation) -> None:
        """Lets an access to memory of the row go on beyond its own iterations: so it is beside that of other rows."""
        position = 2 if isinstance(op, rt.StoreOp) else 1
        buffer = op.operands[1 if isinstance(op, rt.StoreOp) else 0]
        base = root(buffer)
        if not isinstance(base, SSAValue) or not is_inside(base, self.nest):
            return
        ops: dict[Operation, None] = {}
        if not self._find_slice(op.operands[position], ops):
            return
        mapping: dict[SSAValue, SSAValue] = {self.near: self.place}
        for needed in reversed(ops):
            copy = needed.clone(mapping)
            self.body.insert_op_before(copy, op)
        op.operands[position] = mapping.get(op.operands[position], op.operands[position])

    def _find_slice(self, value: SSAValue, ops: dict[Operation, None]) -> bool:
        """Collects what of the loop an index is made of; False if it differs from row to row otherwise."""
        if value is self.near:
            return True
        if not is_inside(value, self.nest):
            return True
        owner = value.owner
        if isinstance(owner, Block) or owner.parent is not self.body or type(owner) not in PURE or owner.regions:
            return False
        ops.pop(owner, None)
        ops[owner] = None
        return all(self._find_slice(operand, ops) for operand in owner.operands)

    # ------------------------------------------------------------ what is carried

    def _carry(self) -> None:
        end = terminator(self.body)
        for k, argument in enumerate(self.body.args[1:]):
            value = end.operands[k]
            if value is argument:
                continue
            found = list(additions(argument, value))
            for op, position in found:
                op.operands[position] = self._or_zero(op.operands[position], op)
            if not found:
                end.operands[k] = self._select(value, argument, end)

    def _or_zero(self, value: SSAValue, before: Operation) -> SSAValue:
        return self._select(value, self._before(before, constant(0, value.type)), before)

    def _select(self, value: SSAValue, otherwise: SSAValue, before: Operation) -> SSAValue:
        op = arith.SelectOp.create(operands=(self.active, value, otherwise), result_types=(value.type,))
        return self._before(before, op)

    def _before(self, op: Operation, new: Operation) -> SSAValue:
        self.body.insert_op_before(new, op)
        return new.results[0]


def additions(argument: SSAValue, end: SSAValue) -> Iterator[tuple[Operation, int]]:
    """The additions of a sum that a loop carries, and which operand is added; none if it is no sum."""
    found: list[tuple[Operation, int]] = []
    value = argument
    while value is not end:
        use = value.first_use
        if use is None or not value.has_one_use() or use.operation.parent is not argument.owner:
            return
        op = use.operation
        is_sum = isinstance(op, arith.AddfOp) and may_reassociate(op)
        if not is_sum and not (isinstance(op, arith.OrIOp) and op.result.type == i64):
            return
        found.append((op, 1 - use.index))
        value = op.results[0]
    yield from found
