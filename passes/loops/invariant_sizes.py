"""Sizes of slices that are the same in all iterations, though their ends are not, are computed of what does not change.

    for t: size = max((t - 1) - (t - P) + 1, 0)      →      for t: size = max(P, 0)

So `y[(t - P):(t - 1)]` has P elements in each iteration: loops over it have the same ends in all rows, and its memory
is of one size.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation

from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import enclosing, is_inside
from ulam.passes.loops.index_forms import IndexForms
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class InvariantSizes(TellingPass):
    """Computes sizes in loops of `evaluate` of what these do not change."""

    name = "invariant-sizes"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        sizes = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is arith.MaxSIOp]
        forms: dict[Operation, IndexForms] = {}
        changed = False
        for size in sizes:
            loop = enclosing(size, scf.ForOp)
            if isinstance(loop, scf.ForOp) and constant_integer(size.rhs) == 0 and size.result.type == i64:
                if loop not in forms:
                    forms[loop] = IndexForms(loop)
                changed = _simplify(size, loop, forms[loop]) or changed
        return changed


def _simplify(size: arith.MaxSIOp, loop: scf.ForOp, forms: IndexForms) -> bool:
    """Whether a size was computed of what changes in a loop, and need not be."""
    if not is_inside(size.lhs, loop) or (form := forms.of(size.lhs)) is None:
        return False
    if any(is_inside(value, loop) for value in forms.values_of(form)):
        return False
    ops, value = forms.write(form)
    assert size.parent is not None
    size.parent.insert_ops_before(ops, size)
    size.operands = [value, size.rhs]
    return True
