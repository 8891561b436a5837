"""Kernels in nests whose matrix is the same for all iterations of the outer loop are called once for each of the inner.

    for n: for k: b = y[n] - mu[k]                            for k: for n: B[k][:, n] = y[n] - mu[k]
                  rt.kernel normal_terms(S[k], b, K, 1, ...)  →    rt.kernel normal_terms(S[k], B[k], K, N, ...)
                  t += f(...)                                 for n: for k: t += f(... of column n of k)

Mixtures of normal densities are such nests. What a column is computed from is computed ahead in a nest of its own, and
so is the matrix, where iterations of the inner loop compute it; they do so still where it is used otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer
from ulam.library.kernels import KERNELS, OF_COLUMNS
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.effects import changed_roots_within, root
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.loop_slices import LoopSlices, Slice, uses_of_memory
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.rewriting import applied_to, discard, replace_uses

_REALS = rt.BufferType(f64)
_Place = tuple[SSAValue, ...]
"""Sizes from the outermost to the innermost, or positions: those of a part of memory in row-major order."""


@record
class NestedKernel:
    """A kernel in a nest of two loops, and what has to be computed ahead of it."""

    kernel: rt.KernelOp
    inner: scf.ForOp
    outer: scf.ForOp

    def __post_init__(self) -> None:
        parameters, by = KERNELS[self.kernel.function.data].parameters, OF_COLUMNS[self.kernel.function.data]
        arguments = list(zip(parameters, self.kernel.arguments, strict=True))
        self._given = next(a for p, a in arguments if p.kind == "in" and p.size.endswith(f"*{by}"))
        self._columns = next(n for n, p in enumerate(parameters) if p.kind == "size" and p.size == by)
        self._matrices = [a for p, a in arguments if p.kind == "in" and a is not self._given]
        self._results = {a: p.size.split("*")[-1] == by for p, a in arguments if p.kind in ("out", "kept")}
        """What is written → whether it has a column for each that is given."""
        self._sizes = {p.size: a for n, (p, a) in enumerate(arguments) if p.kind == "size" and n != self._columns}
        self._lengths = {a: p.size.removesuffix(by).removesuffix("*") for p, a in arguments if self._has_columns(a)}
        """What has columns → the name of their length, if that is not 1."""
        self._within = LoopSlices(self.inner, varying=True)
        self._around = LoopSlices(self.outer, varying=True)
        self._of_matrices: Slice = {}
        self._of_column: Slice = {}
        self._of_row: Slice = {}

    def find(self) -> bool:
        """Whether the kernel can be called ahead of the nest."""
        loops = (self.inner, self.outer)
        if any(constant_integer(loop.step) != 1 for loop in loops) or not self._within.reaches(self.kernel):
            return False
        if constant_integer(self.kernel.arguments[self._columns]) != 1 or not self._around.reaches(self.inner):
            return False
        if any(is_inside(value, self.outer) for value in (self.inner.lb, self.inner.ub, *self._sizes.values())):
            return False
        if not all(map(self._is_own, (self._given, *self._results))):
            return False
        if any(self._within.writers_of(result) != [self.kernel] for result in self._results):
            return False
        if not all(self._within.add_value(matrix, self._of_matrices) for matrix in self._matrices):
            return False
        if not self._within.add_value(self._given, self._of_column):
            return False
        if any(self._within.is_behind(op, self.kernel) for op in (*self._of_matrices, *self._of_column)):
            return False
        known = [*self._matrices, *(v for op in self._of_matrices for v in free_values_of_op(op))]
        given = [v for op in self._of_column for v in free_values_of_op(op)]
        if not self._are_around(known, None) or not self._are_around(given, self._of_row):
            return False
        return not any(self._around.is_behind(op, self.inner) for op in self._of_row)

    def _is_own(self, memory: SSAValue) -> bool:
        alloc = memory.owner
        if not isinstance(alloc, rt.AllocOp) or alloc.parent is not self.inner.body.block:
            return False
        if is_inside(alloc.count, self.outer):
            return False
        if memory not in self._lengths:
            return True
        length = self._lengths[memory]
        return is_same_integer(alloc.count, self._sizes[length]) if length else constant_integer(alloc.count) == 1

    def _are_around(self, values: Iterable[SSAValue], needed: Slice | None) -> bool:
        """Whether values of outside of the inner loop are there ahead of the outer one, or can be computed there for
        each of its iterations: what is then `needed`.
        """
        for value in values:
            if is_inside(value, self.inner):
                continue
            if is_inside(value, self.outer):
                if needed is None or not self._around.add_value(value, needed):
                    return False
            elif isinstance(value.type, rt.BufferType) and self._around.writers_of(root(value)):
                return False
        return True

    def call_ahead(self) -> None:
        """Calls the kernel in front of the nest."""
        write = OpWriter(self.outer)
        rows, entries = (write.trip_count(loop.lb, loop.ub) for loop in (self.outer, self.inner))
        sizes = {memory: self._size(memory) for memory in (self._given, *self._results)}
        whole: dict[SSAValue, SSAValue] = {}
        for memory, size in sizes.items():
            count = _product(write, (entries, rows, size) if self._has_columns(memory) else (entries, size))
            whole[memory] = write.put(rt.AllocOp(count, _REALS, zero=memory is self._given and _is_zero(memory)))
        tables = self._tables()
        for memory in tables:
            count = _product(write, (entries, self._size(memory)))
            whole[memory] = write.put(rt.AllocOp(count, _REALS, zero=_is_zero(memory)))
        if self.kernel.throws is not None:
            write = write.where_it_runs(self.outer)
        self._write_calls(write, rows, sizes, whole)
        self._read_tables(tables, whole)
        in_body = OpWriter(self.kernel)
        n, k = (self._position(loop, loop.body.block.args[0], in_body) for loop in (self.outer, self.inner))
        for memory in self._results:
            size = sizes[memory]
            place = _place(in_body, (k, n), (rows, size)) if self._results[memory] else _place(in_body, (k,), (size,))
            replace_uses(memory, in_body.put(rt.ViewOp(whole[memory], place)))
        discard(self.kernel)

    def _write_calls(
        self, write: OpWriter, rows: SSAValue, sizes: dict[SSAValue, SSAValue], whole: dict[SSAValue, SSAValue]
    ) -> None:
        k, inside = new_loop(write, self.inner.lb, self.inner.ub)
        known: dict[SSAValue, SSAValue] = {self.inner.body.block.args[0]: k}
        entry = self._position(self.inner, k, inside)
        for op in self._within.ordered(self._of_matrices):
            if isinstance(op, rt.AllocOp) and op.res in whole and op.res not in sizes:
                place = _place(inside, (entry,), (self._size(op.res),))
                known[op.res] = inside.put(rt.ViewOp(whole[op.res], place))
            else:
                inside.before(op.clone(known))
        n, innermost = new_loop(inside, self.outer.lb, self.outer.ub)
        # A loop that fills matrix and column has both anew for a row.
        is_apart = not any(op in self._of_matrices for op in self._within.writers_of(self._given))
        mapping: dict[SSAValue, SSAValue] = dict(known) if is_apart else {self.inner.body.block.args[0]: k}
        mapping[self.outer.body.block.args[0]] = n
        for op in self._around.ordered(self._of_row):
            innermost.before(op.clone(mapping))
        row = self._position(self.outer, n, innermost)
        for op in self._within.ordered(self._of_column):
            if op is self._given.owner:
                place = _place(innermost, (entry, row), (rows, sizes[self._given]))
                mapping[self._given] = innermost.put(rt.ViewOp(whole[self._given], place))
            elif not is_apart or op not in self._of_matrices:
                innermost.before(op.clone(mapping))
        arguments = [known.get(a, a) for a in self.kernel.arguments]
        for position, argument in enumerate(self.kernel.arguments):
            if argument in sizes:
                steps = (rows, sizes[argument]) if self._has_columns(argument) else (sizes[argument],)
                place = _product(inside, (entry, *steps))
                arguments[position] = inside.put(rt.ViewOp(whole[argument], place))
        arguments[self._columns] = rows
        inside.before(applied_to(self.kernel, arguments))

    def _tables(self) -> list[SSAValue]:
        """Memory of matrices that is read otherwise, too, and need not be filled where it is."""
        others = (self._given, *self._results)
        allocs = (op.res for op in self._of_matrices if isinstance(op, rt.AllocOp))
        found: list[SSAValue] = [memory for memory in allocs if memory not in others and self._is_own(memory)]
        for memory in tuple(found):
            users = {ancestor_in(use, self.inner.body.block) for use in uses_of_memory(memory)}
            if users <= {*self._of_matrices, self.kernel}:
                found.remove(memory)
        while True:  # what fills one that stays fills no other
            kept = [m for m in found if all(self._fills(op, found) for op in self._within.writers_of(m))]
            if len(kept) == len(found):
                return kept
            found = kept

    def _fills(self, op: Operation, tables: list[SSAValue]) -> bool:
        return op in self._of_matrices and not op.results and changed_roots_within(op) <= set(tables)

    def _read_tables(self, tables: list[SSAValue], whole: dict[SSAValue, SSAValue]) -> None:
        for op in [op for memory in tables for op in self._within.writers_of(memory)]:
            if op.parent is not None:
                discard(op)
        for memory in tables:
            alloc = memory.owner
            assert isinstance(alloc, rt.AllocOp)
            in_body = OpWriter(alloc)
            entry = self._position(self.inner, self.inner.body.block.args[0], in_body)
            replace_uses(memory, in_body.put(rt.ViewOp(whole[memory], _place(in_body, (entry,), (alloc.count,)))))
            discard(alloc)

    def _has_columns(self, memory: SSAValue) -> bool:
        return memory is self._given or self._results.get(memory, False)

    @staticmethod
    def _size(memory: SSAValue) -> SSAValue:
        assert isinstance(memory.owner, rt.AllocOp)
        return memory.owner.count

    @staticmethod
    def _position(loop: scf.ForOp, index: SSAValue, write: OpWriter) -> SSAValue:
        return write.put(integer(arith.SubiOp, index, loop.lb))


def _is_zero(memory: SSAValue) -> bool:
    return isinstance(memory.owner, rt.AllocOp) and memory.owner.zero is not None


def nested_kernel(kernel: rt.KernelOp) -> NestedKernel | None:
    """A kernel of columns in a nest of two loops, if it can be called ahead of it."""
    inner = kernel.parent_op()
    outer = inner.parent_op() if isinstance(inner, scf.ForOp) else None
    if not isinstance(inner, scf.ForOp) or not isinstance(outer, scf.ForOp):
        return None
    found = NestedKernel(kernel, inner, outer)
    return found if found.find() else None


def _product(write: OpWriter, factors: _Place) -> SSAValue:
    total = factors[0]
    for factor in factors[1:]:
        total = write.put(integer(arith.MuliOp, total, factor))
    return total


def _place(write: OpWriter, positions: _Place, sizes: _Place) -> SSAValue:
    """Where a part begins, of memory whose parts have these sizes below the first."""
    at = positions[0]
    for position, size in zip((*positions[1:], None), sizes, strict=True):
        at = write.put(integer(arith.MuliOp, at, size))
        if position is not None:
            at = write.put(integer(arith.AddiOp, at, position))
    return at
