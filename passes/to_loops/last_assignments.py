"""After which place nothing is assigned to a variable any more."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.passes.analysis.nesting import ancestor_in

_NEVER = -1


class LastAssignments:
    """Of the variables of a function in the `stan` dialect, which does not change meanwhile; each is looked at once."""

    def __init__(self) -> None:
        self._positions: dict[Block, dict[Operation, int]] = {}
        self._last: dict[SSAValue, int] = {}

    def is_before(self, var: SSAValue, read: Operation) -> bool:
        """Whether nothing is assigned to a variable after `read`, nor in an op of the variable's block around both."""
        declaration = var.owner
        if isinstance(declaration, stan.GlobalOp):
            return True  # assigned in the block that declares it only
        assert isinstance(declaration, Operation) and declaration.parent is not None
        block = declaration.parent
        if (last := self._last.get(var)) is None:
            last = self._last[var] = self._found(var, block)
        here = ancestor_in(read, block)
        return last == _NEVER if here is None else self._of(block)[here] > last

    def _found(self, var: SSAValue, block: Block) -> int:
        last = _NEVER
        for use in var.uses:
            if isinstance(use.operation, stan.AssignOp):
                there = ancestor_in(use.operation, block)
                if there is None:
                    return len(self._of(block))
                last = max(last, self._of(block)[there])
        return last

    def _of(self, block: Block) -> dict[Operation, int]:
        """The places of a block's ops."""
        if (found := self._positions.get(block)) is None:
            found = self._positions[block] = {op: place for place, op in enumerate(block.ops)}
        return found
