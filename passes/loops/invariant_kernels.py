"""Kernels that each iteration of a loop calls with the same inputs are called once, in front of it.

    for n: rt.kernel cholesky_decompose(%v, %k, %l)    →    if there is an n: rt.kernel cholesky_decompose(%v, %k, %l)
           t += f(y[n], %l)                                 for n: t += f(y[n], %l)

With them goes the memory that they fill, what fills their inputs, and what that is computed from, all of it the same in
each iteration. Densities of several outcomes are written so, row by row: `for (n in 1:N) col(y, n) ~ multi_normal(mu,
S)`.

The first iteration surely reaches them: nothing ahead of them leaves the loop but checks whose error refuses a point.
Of sizes and indices no such check tells, so kernels, which take buffers of reals and their sizes, may run before these
as well, and what fills memory may not. An error is told by the program as it is written (`locate`).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.loop_slices import LoopSlices, Slice, uses_of_memory
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.share_kernels import is_determined
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class InvariantKernels(TellingPass):
    """Calls kernels of `evaluate` once that each iteration of a loop would call with the same inputs."""

    name = "invariant-kernels"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        loops = [op.parent_op() for op in ops_within(function) if is_determined(op)]
        changed = False
        for loop in dict.fromkeys(reversed(loops)):  # inner ones first, so that what moves can move on
            while isinstance(loop, scf.ForOp) and _hoist(LoopSlices(loop)):
                changed = True
                loop = loop.parent_op()
        return changed


def _hoist(slices: LoopSlices) -> bool:
    """Moves kernels in front of a loop, and what kernels read; whether there was any."""
    needed: Slice = {}
    for op in slices.positions:
        if is_determined(op):
            wanted = dict(needed)
            if slices.add(op, wanted) and _is_filled_first(slices, wanted):
                needed = wanted
                continue
            for memory in op.operands:  # what it reads may be the same, though
                if not isinstance(memory.owner, rt.AllocOp) or not is_inside(memory, slices.loop):
                    continue
                wanted = dict(needed)
                if slices.add_value(memory, wanted) and _is_filled_first(slices, wanted):
                    needed = wanted
    if needed:
        _move(slices.loop, slices.ordered(needed))
    return bool(needed)


def _is_filled_first(slices: LoopSlices, needed: Slice) -> bool:
    """Whether memory that is filled ahead is read by what stays behind all that fills it."""
    body = slices.loop.body.block
    for op in needed:
        if isinstance(op, rt.AllocOp):
            last = max((slices.positions[writer] for writer in slices.writers_of(op.res)), default=-1)
            places = [ancestor_in(use, body) for use in uses_of_memory(op.res)]
            if any(place is None or (place not in needed and slices.positions[place] < last) for place in places):
                return False
    return True


def _move(loop: scf.ForOp, ops: list[Operation]) -> None:
    write = OpWriter(loop)
    for op in ops:
        op.detach()
        if op.results:
            write.before(op)
    filling = [op for op in ops if not op.results]
    inside = write.where_it_runs(loop)
    for op in filling:
        inside.before(op)
        if is_determined(op):
            remark_on(InvariantKernels.name, op, "called once, in front of the loop that repeats it", done=True)
