"""Takes the regions of profiles out: `StanModel(..., profile=False)`, and before regions of other kinds are put in."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes.variable_form import splice_body


class StripProfiles(ModulePass):
    """Puts the statements of profile statements in their place: nothing is left of the profile."""

    name = "strip-profiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for profile in [o for o in ops_within(op) if isinstance(o, stan.ProfileOp)]:
            splice_body(profile)
        for program in op.body.block.ops:
            stan.ProfilesAttr.take(program)
