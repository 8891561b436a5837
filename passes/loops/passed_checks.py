"""Loops that do nothing but check memory, and when two of them check the same.

Statements that have an argument in common check it each for itself: `y ~ multi_normal(a, S); z ~ multi_normal(b, S);`
asks twice whether `S` is symmetric. Behind the first loop the second finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import blocks_of, operand_tuple
from ulam.passes.loops.effects import PURE, Root, root

Key = tuple[object, ...]

LARGEST = 60
"""Ops of a loop that is looked at."""
_SILENT = frozenset({"site", "status"})
"""Properties of a check that are of no matter once it has been passed."""


def checks_of(loop: scf.ForOp) -> tuple[Key, set[Root]] | None:
    """What a loop checks, equal for loops that check the same, and the memory that it reads; None if it does more."""
    if loop.results or not _ends_with_checks(loop.body.block):
        return None
    reading = _Reading()
    reading.refer(operand_tuple(loop))
    return (tuple(reading.key), reading.roots) if reading.block(loop.body.block) else None


def _ends_with_checks(block: Block) -> bool:
    """A quick look, by which most loops are told apart."""
    end = block.last_op
    last = None if end is None else end.prev_op
    return type(last) is rt.CheckOp or (type(last) is scf.ForOp and not last.results)


class _Reading:
    """What is read of a loop so far: `key`, in which values of the loop have numbers, and others are themselves."""

    def __init__(self) -> None:
        self.key: list[object] = []
        self.roots: set[Root] = set()
        self._numbers: dict[SSAValue, int] = {}
        self._count = 0

    def refer(self, values: tuple[SSAValue, ...]) -> None:
        """Notes operands."""
        for value in values:
            number = self._numbers.get(value)
            self.key.append(value if number is None else number)

    def block(self, block: Block) -> bool:
        """Reads a block; whether it only checks."""
        self._name(block.args)
        op = block.first_op
        while op is not None:
            self._count += 1
            cls = type(op)
            self.key.append(cls)
            if cls is scf.YieldOp:
                return op.next_op is None
            if self._count > LARGEST or not (cls in PURE or cls in _READS_AND_CHECKS):
                return False
            if cls is scf.ForOp and op.results:
                return False
            operands = operand_tuple(op)
            self.refer(operands[:1] if cls is rt.CheckOp else operands)
            if cls is rt.LoadOp:
                self.roots.add(root(operands[0]))
            self.key += ((name, value) for name, value in op.properties.items() if name not in _SILENT)
            self.key += (result.type for result in op.results)
            self._name(op.results)
            for inner in blocks_of(op):
                if not self.block(inner):
                    return False
            op = op.next_op
        return False

    def _name(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            self._numbers[value] = len(self._numbers)


_READS_AND_CHECKS = frozenset[type[Operation]]((rt.LoadOp, rt.CheckOp, scf.ForOp))
