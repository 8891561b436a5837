"""Scalar clean-up, cheap enough to run always: constants folded, common values shared, invariants out of loops, dead
code gone. One round; what it leaves is little.
"""

from __future__ import annotations

from ulam.passes.nested import NestedPass


class Simplify(NestedPass):
    """Scalar clean-up, cheap enough to run always: fold, cse, licm, dce."""

    name = "simplify"

    def pipeline(self) -> str:
        return "fold,cse,licm,dce"
