"""Expression propagation: a read of a variable becomes the expression that was assigned to it, where that still holds.

    int n = m + 1; for (i in 1:(n - 1)) ...   →   for (i in 1:((m + 1) - 1)) ...

It duplicates work so that partial evaluation sees whole expressions; lazy-code-motion must follow: what was substituted
is available where it was substituted, so it can always be shared again (within a block). Not substituted: what is
larger than `limit` ops; into a loop that does not contain the assignment, containers and calls. With
`preserve-numerics` only ints.

`when=useful`, for the levels, never repeats work: what costs more than a few scalar operations moves to the only place
that reads it, and its assignment goes. Source: optimization levels documentation, "Expression propagation".
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.library.records import record
from ulam.passes.analysis.available_assignments import RightHandSide
from ulam.passes.analysis.scopes import own_scopes
from ulam.passes.analysis.sizes import SizeFactsOnDemand
from ulam.passes.optimize.propagation import Budget, propagate
from ulam.passes.optimize.when import USEFUL, check_when
from ulam.passes.running import TellingPass


@record(frozen=True)
class ExpressionPropagation(TellingPass):
    """Substitutes expressions of at most `limit` ops; the module may grow by `budget` ops. `when`: always or useful."""

    name = "expression-propagation"

    preserve_numerics: bool = False
    limit: int = 16
    budget: int = 4000
    when: str = "always"

    def __post_init__(self) -> None:
        check_when(self.when)

    def changes(self, module: ModuleOp) -> bool:
        def wanted(assignment: stan.AssignOp, expression: RightHandSide) -> bool:
            return not self.preserve_numerics or assignment.value.type == stan.INT

        moves = SizeFactsOnDemand(module) if self.when == USEFUL else None
        return propagate(module, own_scopes(module), self.name, self.limit, Budget(self.budget), wanted, moves)
