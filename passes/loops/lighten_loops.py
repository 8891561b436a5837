"""Checks of data, and costly work on data, run once; invariant checks run before loops, others set a flag; what outer
loops repeat becomes a table. Nothing in units that print or draw: they stay precise (`checks`).
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ulam.library.records import record
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.nested import NestedPass

_OF_DATA = "if-changed{passes=invariant-loops then=hoist-data},sum-data-terms,"
"""What loops compute of data may decide what is tabulated; what they add up of it is one number."""


@record(frozen=True)
class LightenLoops(NestedPass):
    """Takes checks, work on data and repeated work out of the loops of `evaluate`, unless the unit prints or draws.

    `reassociate`: out of the branches in them, too, which changes the order of sums. `few`: by few passes, without what
    gains in nests of loops alone.
    """

    name = "lighten-loops"

    reassociate: bool = False
    few: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if must_be_precise(op):
            return
        evaluate_of(op, self.name)
        super().apply(ctx, op)

    def pipeline(self) -> str:
        branches = self.reassociate
        tables = "tabulate-data{divisions=true strips=true}" if branches else "tabulate-data"
        hoist = "hoist-data{rejections=true}" if branches else "hoist-data"
        in_nests = (
            "cse",
            # Rows that check what all of them share do so once, now that what is checked is a value.
            *(['if-changed{passes="invariant-loops" then="cse,dce"}'] if branches else []),
            'if-changed{passes="tabulate-invariants{branches=true}" then="cse,dce,hoist-data{rejections=true}"}'
            if branches
            else 'if-changed{passes="tabulate-invariants" then="dce"}',
        )
        of_data = _OF_DATA if branches and not self.few else ""
        return ",".join(
            (
                *(["share-arms"] if branches and not self.few else []),
                f"licm{{guarded=true{' branches=true' * branches} function=evaluate}}",
                f'if-changed{{passes="separate-data-checks,{of_data}{tables}" then="cse,dce,{hoist}"}}',
                "defer-checks{branches=true brief=true}" if branches else "defer-checks",
                *(() if self.few else in_nests),
            )
        )
