"""Kernels that each iteration of a loop calls with the same matrix are called once, for the columns of all iterations.

    for n: b = x[n] - mu                                      for n: B[:, n] = x[n] - mu
           rt.kernel mdivide_left_tri_low(L, b, K, 1, z)  →   rt.kernel mdivide_left_tri_low(L, B, K, N, Z)
           t += f(z)                                          for n: t += f(Z[:, n])

A column of such a result depends on the same column of what it is computed from alone (`OF_COLUMNS` of
library/kernels.py), and many columns take a fraction of the time of as many calls, derivatives too. Densities of
several outcomes are of this kind (`y ~ multi_normal(mu, S)`), where the size is not known before the data are.

What a column is computed from is computed in a loop of its own ahead, again where it is used otherwise, too.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS, OF_COLUMNS
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.batch_nests import nested_kernel
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.loop_slices import LoopSlices, Slice
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_REALS = rt.BufferType(f64)


class BatchKernels(TellingPass):
    """Calls kernels of `evaluate` once for the columns that the iterations of a loop would call them for."""

    name = "batch-kernels"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        kernels = [op for op in ops_within(function) if isinstance(op, rt.KernelOp) and op.function.data in OF_COLUMNS]
        return any([_batch(kernel) for kernel in kernels])


@record
class _ByColumns:
    """A kernel in a loop: its arguments by what they are, and where these stand."""

    kernel: rt.KernelOp
    loop: scf.ForOp

    def __post_init__(self) -> None:
        name = self.kernel.function.data
        parameters, by = KERNELS[name].parameters, OF_COLUMNS[name]
        positions = {(p.kind, p.size): n for n, p in enumerate(parameters)}
        self._given, self._result = (
            next(n for n, p in enumerate(parameters) if p.kind == kind and p.size.endswith(f"*{by}"))
            for kind in ("in", "out")
        )
        self._columns = positions["size", by]
        self._rows = [positions["size", parameters[n].size.partition("*")[0]] for n in (self._given, self._result)]

    @property
    def memory(self) -> tuple[SSAValue, SSAValue]:
        """A column that is given, and that of the result."""
        return self.kernel.arguments[self._given], self.kernel.arguments[self._result]

    @property
    def rows(self) -> tuple[SSAValue, SSAValue]:
        """Their lengths."""
        given, result = (self.kernel.arguments[n] for n in self._rows)
        return given, result

    def slice(self) -> list[Operation] | None:
        """What computes the given column in an iteration, in order; None if the kernel cannot be called ahead."""
        kernel, slices = self.kernel, LoopSlices(self.loop, varying=True)
        given, result = self.memory
        others = [a for n, a in enumerate(kernel.arguments) if n not in (self._given, self._result)]
        if constant_integer(kernel.arguments[self._columns]) != 1 or not slices.reaches(kernel):
            return None
        if any(is_inside(value, self.loop) or not slices.add_value(value, {}) for value in others):
            return None
        if not all(map(self._is_own, self.memory, self.rows)) or slices.writers_of(result) != [kernel]:
            return None
        needed: Slice = {}
        if not slices.add_value(given, needed) or any(slices.is_behind(op, kernel) for op in needed):
            return None
        return slices.ordered(needed)

    def _is_own(self, memory: SSAValue, rows: SSAValue) -> bool:
        alloc = memory.owner
        if not isinstance(alloc, rt.AllocOp) or alloc.parent is not self.loop.body.block:
            return False
        return is_same_integer(alloc.count, rows)

    def call_once(self, needed: list[Operation]) -> None:
        """Calls the kernel in front of the loop."""
        loop, kernel = self.loop, self.kernel
        write = OpWriter(loop)
        count = write.trip_count(loop.lb, loop.ub)
        given, result = (
            self._columns_like(memory, count, rows, write) for memory, rows in zip(self.memory, self.rows, strict=True)
        )
        n, inside = new_loop(write, loop.lb, loop.ub)
        mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: n}
        for op in needed:
            if op is self.memory[0].owner:
                mapping[op.results[0]] = self._column(inside, given, n, self.rows[0])
            else:
                inside.before(op.clone(mapping))
        arguments = list(kernel.arguments)
        arguments[self._given], arguments[self._columns], arguments[self._result] = given, count, result
        calling = write if kernel.throws is None else write.where_it_runs(loop)
        calling.before(applied_to(kernel, arguments))
        remark_on(BatchKernels.name, kernel, "called once, for the columns of all iterations", done=True)
        column = self._column(OpWriter(kernel), result, loop.body.block.args[0], self.rows[1])
        replace_uses(self.memory[1], column)
        discard(kernel)

    def _columns_like(self, memory: SSAValue, count: SSAValue, rows: SSAValue, write: OpWriter) -> SSAValue:
        assert isinstance(memory.owner, rt.AllocOp)
        size = write.put(integer(arith.MuliOp, count, rows))
        return write.put(rt.AllocOp(size, _REALS, zero=memory.owner.zero is not None))

    def _column(self, write: OpWriter, memory: SSAValue, n: SSAValue, rows: SSAValue) -> SSAValue:
        position = write.put(integer(arith.SubiOp, n, self.loop.lb))
        return write.put(rt.ViewOp(memory, write.put(integer(arith.MuliOp, position, rows))))


def _batch(kernel: rt.KernelOp) -> bool:
    """Calls a kernel in front of the loop that it stands in; whether that is possible."""
    loop = kernel.parent_op()
    if not isinstance(loop, scf.ForOp) or constant_integer(loop.step) != 1:
        return False
    if sum(parameter.kind in ("out", "kept") for parameter in KERNELS[kernel.function.data].parameters) == 1:
        found = _ByColumns(kernel, loop)
        needed = found.slice()
        if needed is not None:
            found.call_once(needed)
            return True
    nested = nested_kernel(kernel)
    if nested is not None:
        remark_on(BatchKernels.name, kernel, "called for the columns of all iterations of the outer loop", done=True)
        nested.call_ahead()
    return nested is not None
