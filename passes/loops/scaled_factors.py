"""The Cholesky factor of a multiple of data is a multiple of that of the data, which is there when these are bound.

    for i: S[i] = c * V[i]                  bind:      F = the factor of V
    L = the factor of S            →        evaluate:  for i: L[i] = sqrt(c) * F[i]

Where V has no factor, or c is not positive or is far from 1, S is factored as it was, too, which tells what is wrong
with it.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.filled_buffers import users
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.scaled_data import ScaledData, scaled_data
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)
_LARGEST = 1e140
"""What multiplies data that squares have room for; beyond it a multiple may have no factor, though the data have."""


class ScaledFactors(TellingPass):
    """Factors data when they are bound where a multiple of them is to be factored."""

    name = "scaled-factors"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        slices = DataSlices()
        written: list[Operation] = []
        for op in list(function.body.block.ops):
            if isinstance(op, rt.KernelOp) and op.function.data == "cholesky_decompose":
                found = scaled_data(*op.arguments[:2])
                if found is not None and _is_for_it_alone(found, op) and slices.is_data(op.arguments[1]):
                    remark_on(self.name, op, "the data that it is a multiple of are factored once", done=True)
                    written += _Factor(op, found).write()
        if written:
            set_slots(module, hoist_data(function, slots_of(module), written))
        return bool(written)


def _is_for_it_alone(found: ScaledData, kernel: rt.KernelOp) -> bool:
    """Whether memory is filled for a kernel, and nothing else reads it."""
    alloc = found.memory.owner
    if found.store is None or not isinstance(alloc, rt.AllocOp) or alloc.parent is not kernel.parent:
        return False
    return set(users(alloc)) == {found.store, kernel}


@record
class _Factor:
    """A kernel that factors a multiple of data."""

    kernel: rt.KernelOp
    found: ScaledData

    def write(self) -> list[Operation]:
        """Writes what takes the kernel's place; returned is what is of data alone."""
        kernel, factor = self.kernel, self.found.factor
        assert factor is not None and kernel.parent is not None
        write = OpWriter(kernel)
        n, factored = kernel.arguments[1], kernel.arguments[2]
        before = kernel.prev_op
        size = write.put(integer(arith.MuliOp, n, n))
        of_data, outcome = write.put(rt.AllocOp(size, _REALS)), write.put(rt.AllocOp(write.whole(1), _INTEGERS))
        write.before(rt.KernelOp("factor_if_positive", (self.found.data, n, of_data, outcome)))
        has_factor = write.put(rt.LoadOp(outcome, write.whole(0)))
        written: list[Operation] = []
        op = kernel.prev_op
        while op is not None and op is not before:
            written.append(op)
            op = op.prev_op
        is_there = write.compare_integers("ne", has_factor, write.whole(0))
        fits = write.both(
            [is_there, write.compare("ogt", factor, 1 / _LARGEST), write.compare("olt", factor, _LARGEST)]
        )
        arms = [Region(Block([scf.YieldOp.create()])), Region(Block([scf.YieldOp.create()]))]
        write.before(scf.IfOp.create(operands=[fits], regions=arms))
        root = write.put(rt.MathOp("sqrt", (factor,)))
        i, inside = new_loop(write, write.whole(0), write.put(integer(arith.MuliOp, n, n)))  # that of `bind` moves
        inside.before(rt.StoreOp(_product(inside, root, of_data, i), factored, i, initial=True))
        self._move_into(arms[1].block)
        return written[::-1]

    def _move_into(self, block: Block) -> None:
        """Factors the multiple of data in a branch, in memory of its own."""
        alloc, store, end = self.found.memory.owner, self.found.store, block.last_op
        assert isinstance(alloc, rt.AllocOp) and store is not None and end is not None
        filler = store.parent_op()
        assert filler is not None
        own = rt.AllocOp(alloc.count, _REALS)
        for op in (alloc, filler, own, self.kernel):
            if op.parent is not None:
                op.detach()
            block.insert_op_before(op, end)
        self.kernel.operands = [
            own.res if operand is self.kernel.arguments[2] else operand for operand in self.kernel.operands
        ]


def _product(write: OpWriter, factor: SSAValue, data: SSAValue, i: SSAValue) -> SSAValue:
    return write.real(arith.MulfOp, factor, write.put(rt.LoadOp(data, i)))
