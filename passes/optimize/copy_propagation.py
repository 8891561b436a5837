"""Copy propagation: a read of a variable becomes the variable that was copied to it, where that still holds.

    int j = i; int k = i + j;   →   int j = i; int k = i + i;

The assignments stay; dead ones are left to dead-code-elimination. Source: optimization levels documentation, "Copy
propagation".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.passes.analysis.available_assignments import RightHandSide
from ulam.passes.analysis.scopes import Scope
from ulam.passes.optimize.propagation import Budget, propagate
from ulam.passes.optimize.scope_passes import ScopePass


class CopyPropagation(ScopePass):
    """Substitutes variables, loop variables and formals for their copies."""

    name = "copy-propagation"

    def work_on(self, module: ModuleOp, scopes: Sequence[Scope]) -> bool:
        def is_copy(assignment: stan.AssignOp, expression: RightHandSide) -> bool:
            return not expression.ops or isinstance(assignment.value.owner, stan.ReadOp)

        return propagate(module, scopes, self.name, 1, Budget(None), is_copy, None)
