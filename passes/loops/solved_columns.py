"""Equations whose matrix is data are solved for the columns of what they are linear in, when data are bound.

    for k: b[k] = y[k] - (x[k, 1] * beta[1] + ...)       bind:      W = L^-1 [y, x]
    z = L^-1 b                                      →    evaluate:  for k: z[k] = W[k, 0] - W[k, 1] * beta[1] - ...

So for normal densities whose covariance is data, or a multiple of data (`sigma * L`: what is solved is divided by
sigma). A solution of n equations takes n^2 operations, W only as many as the right side; what is added up of it is
linear in parameters with data as coefficients then, and has reduced rows (`linear-layouts`). W is computed with twice
the digits, since what cancels in b does so in z now, and where large numbers do, coefficients are less those that fit
best (runtime/c/solved_columns.c).
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside
from ulam.passes.loops.affine_rows import Nest
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.filled_buffers import is_behind, is_changed, users
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_binding import row_coefficient, trips
from ulam.passes.loops.linear_rows import Copier, Environment, Leaf, carry, new_loop
from ulam.passes.loops.linear_terms import LinearTerm, Terms
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.scaled_data import ScaledData, read_scaled, scaled_data
from ulam.passes.loops.tables import Loops
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_REALS = rt.BufferType(f64)


class SolvedColumns(TellingPass):
    """Solves equations whose matrix is data when data are bound."""

    name = "solved-columns"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        top, slices = function.body.block, DataSlices()
        written: list[Operation] = []
        for op in list(top.ops):
            if isinstance(op, rt.KernelOp) and op.function.data == "mdivide_left_tri_low":
                found = _system(op, slices)
                if found is None:
                    continue
                remark_on(self.name, op, "its equations are solved when data are bound", done=True)
                written += found.bind(top)
                found.evaluate()
        if written:
            set_slots(module, hoist_data(function, slots_of(module), written))
        return bool(written)


@record
class _System:
    """A triangular system: the kernel that solves it, its matrix, the loop that fills the right side, with what; with
    those ahead that it reads.
    """

    kernel: rt.KernelOp
    matrix: ScaledData
    filler: scf.ForOp
    terms: Terms
    nests: list[scf.ForOp]

    def __post_init__(self) -> None:
        self._columns: dict[Loops, dict[Leaf, int]] = {(): {(): 0}}
        for term in self.terms:
            leaves = self._columns.setdefault(term.loops if term.leaf else (), {})
            leaves.setdefault(term.leaf, len(leaves))

    def bind(self, top: Block) -> list[Operation]:
        """Writes what is to be done when data are bound, in front of the kernel."""
        before = self.kernel.prev_op
        write = OpWriter(self.kernel)
        copier = Copier(lambda value: block_of(value) is top)
        n = self.kernel.arguments[2]
        count = write.whole(0)
        self._starts: dict[Loops, SSAValue] = {}
        self._trips: dict[Loops, list[SSAValue]] = {}
        for loops, leaves in self._columns.items():
            self._starts[loops], size = count, write.whole(len(leaves))
            self._trips[loops] = [trips(loop, copier, write) for loop in loops]
            for trip in self._trips[loops]:
                size = write.put(integer(arith.MuliOp, size, trip))
            count = write.put(integer(arith.AddiOp, count, size))
        self._count = count
        size = write.put(integer(arith.MuliOp, count, n))
        right, self._solved = write.put(rt.AllocOp(size, _REALS, zero=True)), write.put(rt.AllocOp(size, _REALS))
        env, inside = copier.loop(self.filler, {}, write)
        for term in self.terms:
            for variable, stands_for in reversed(term.moved):
                env[variable] = env[stands_for]
        row = inside.put(integer(arith.MuliOp, env[self.filler.body.block.args[0]], count))
        for term in self.terms:
            self._write_entry(term, copier, env, inside, row, right)
        self._centre = write.put(rt.AllocOp(count, _REALS))
        arguments = (self.matrix.data, right, n, count, self._solved, self._centre)
        write.before(rt.KernelOp("solve_columns", arguments))
        found: list[Operation] = []
        op = self.kernel.prev_op
        while op is not None and op is not before:
            found.append(op)
            op = op.prev_op
        return found[::-1]

    def _write_entry(
        self, term: LinearTerm, copier: Copier, env: Environment, write: OpWriter, row: SSAValue, right: SSAValue
    ) -> None:
        known, inside = dict(env), write
        for loop in term.loops:
            known, inside = copier.loop(loop, known, inside)
        at = self._place(term.loops if term.leaf else (), term.leaf, copier, known, inside)
        index = inside.put(integer(arith.AddiOp, row, at))
        value = row_coefficient(term, copier, known, inside)
        total = inside.put(rt.LoadOp(right, index))
        total = inside.real(arith.SubfOp if term.negative else arith.AddfOp, total, value)
        inside.before(rt.StoreOp(total, right, index))

    def _place(self, loops: Loops, leaf: Leaf, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
        at = write.whole(0)
        for loop, trip in zip(loops, self._trips[loops], strict=True):
            step = write.put(integer(arith.SubiOp, env[loop.body.block.args[0]], copier.value(loop.lb, env, write)))
            at = write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, at, trip)), step))
        leaves = self._columns[loops]
        at = write.put(integer(arith.MuliOp, at, write.whole(len(leaves))))
        first = write.put(integer(arith.AddiOp, self._starts[loops], write.whole(leaves[leaf])))
        return write.put(integer(arith.AddiOp, at, first))

    def evaluate(self) -> None:
        """Writes a loop in the place of the kernel."""
        write = OpWriter(self.kernel)
        solution = self.kernel.arguments[4]
        copier = Copier(lambda value: not any(is_inside(value, nest) for nest in self.nests))
        less = write.put(rt.AllocOp(self._count, _REALS))
        for loops, leaves in self._columns.items():
            env: Environment = {}
            inner = write
            for loop in loops:
                env, inner = copier.loop(loop, env, inner)
            for leaf in (leaf for leaf in leaves if leaf):
                at = self._place(loops, leaf, copier, env, inner)
                value = copier.product(leaf, env, inner)
                assert value is not None
                value = inner.real(arith.SubfOp, value, inner.put(rt.LoadOp(self._centre, at)))
                inner.before(rt.StoreOp(value, less, at, initial=True))
        k, inside = new_loop(write, write.whole(0), self.kernel.arguments[2])
        row = inside.put(integer(arith.MuliOp, k, self._count))
        start = inside.put(rt.LoadOp(self._solved, row))
        p, innermost = new_loop(inside, inside.whole(1), self._count, [start])
        index = innermost.put(integer(arith.AddiOp, row, p))
        entry, coefficient = (innermost.put(rt.LoadOp(*at)) for at in ((self._solved, index), (less, p)))
        product = innermost.real(arith.MulfOp, entry, coefficient)
        (before,) = innermost.anchor.operands
        total = carry(innermost, innermost.real(arith.AddfOp, before, product, reassociate=True))
        inside.before(rt.StoreOp(total, solution, k, initial=True))
        discard(self.kernel)
        if self.matrix.factor is not None:
            alloc = solution.owner
            assert isinstance(alloc, rt.AllocOp)
            for load in [op for op in users(alloc) if isinstance(op, rt.LoadOp)]:
                put = OpWriter.behind(load.res)
                divided = arith.DivfOp(load.res, self.matrix.factor)
                put.before(divided)
                for use in [use for use in load.res.uses if use.operation is not divided]:
                    use.operation.operands[use.index] = divided.result
            read_scaled(self.matrix)


def _system(kernel: rt.KernelOp, slices: DataSlices) -> _System | None:
    """A system whose matrix is data, or a multiple, of one right side that is linear in parameters."""
    matrix, right, n, columns, solution = kernel.arguments
    if constant_integer(columns) != 1 or not slices.is_data(n):
        return None
    found = scaled_data(matrix, n)
    if found is None or not _is_only_loaded(solution, kernel) or not isinstance(alloc := right.owner, rt.AllocOp):
        return None
    stores = [op for op in users(alloc) if not isinstance(op, rt.LoadOp) and op is not kernel]
    if len(stores) != 1 or not isinstance(store := stores[0], rt.StoreOp) or store.buffer is not right:
        return None
    filler = store.parent_op()
    if not isinstance(filler, scf.ForOp) or filler.parent is not kernel.parent or not is_behind(kernel, filler):
        return None
    variable = filler.body.block.args[0]
    is_whole = constant_integer(filler.lb) == 0 and constant_integer(filler.step) == 1 and is_same_integer(filler.ub, n)
    if not is_whole or store.index is not variable or is_changed(filler, kernel):
        return None
    nest = Nest(filler, (variable,), slices, stays=True)
    terms = nest.terms(store.value)
    if terms is None or any(term.key is not None for term in terms) or not any(term.leaf for term in terms):
        return None
    if any(is_changed(fill, kernel) for fill in nest.fills):
        return None
    return _System(kernel, found, filler, terms, [filler, *nest.fills])


def _is_only_loaded(solution: SSAValue, kernel: rt.KernelOp) -> bool:
    alloc = solution.owner
    return isinstance(alloc, rt.AllocOp) and all(op is kernel or isinstance(op, rt.LoadOp) for op in users(alloc))
