"""Elements of a view that each iteration makes for itself are read where they are in the memory behind it.

    for n: v = view b[2 * g[n]]; target += f(v[0] + x[n] * v[1])
    →    for n: target += f(b[2 * g[n]] + x[n] * b[2 * g[n] + 1])

So rows read that pass a vector on (`dot_product(z, b[g[n]])`), once their inner loops are straight code. Adjoints are
then added to the memory itself, by an index, which what orders rows by an index, and what adds such sums apart from
the rest of a row, look for (`sort-rows`, `split-scatters`).

Only views of memory from outside of the loop, of which nothing but elements at constant places are read.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class ElementsOfViews(TellingPass):
    """Lets loops read elements of views, which their iterations make, in the memory behind these."""

    name = "elements-of-views"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        views = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is rt.ViewOp and _is_of_rows(op)]
        for view in views:
            for load in _readers(view):
                assert isinstance(load, rt.LoadOp)
                place = OpWriter(load).put(integer(arith.AddiOp, view.offset, load.index))
                load.operands = [view.buffer, place]
            discard(view)
        return bool(views)


def _is_of_rows(view: rt.ViewOp) -> bool:
    loop = view.parent_op()
    if not isinstance(loop, scf.ForOp) or is_inside(view.buffer, loop):
        return False
    readers = _readers(view)
    return bool(readers) and all(isinstance(op, rt.LoadOp) and constant_integer(op.index) is not None for op in readers)


def _readers(view: rt.ViewOp) -> list[Operation]:
    return [use.operation for use in view.results[0].uses]
