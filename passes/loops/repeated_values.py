"""What each row of a nest can compute anew of what the loops around compute for it."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import DIVISIONS, PURE, Root, may_overlap, root, written_roots_within
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.rewriting import cloned


@record
class Repeatable:
    """What of a nest can be computed of the numbers of its iterations, wherever that is."""

    outer: scf.ForOp
    variables: frozenset[SSAValue]
    """The numbers."""
    rows: scf.ForOp | None = None
    """The loop over rows: loops inside are computed for each row in any case."""
    _known: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])

    def __post_init__(self) -> None:
        self._written: set[Root] = set(written_roots_within(self.outer))

    def has(self, value: SSAValue) -> bool:
        """Whether a value is such."""
        if value not in self._known:
            self._known[value] = self._find(value)
        return self._known[value]

    def _find(self, value: SSAValue) -> bool:
        if value in self.variables or not is_inside(value, self.outer):
            return True
        op = value.owner
        if isinstance(op, Block):
            return False
        return all(map(self._may_be_repeated, (op, *ops_within(op)))) and all(map(self.has, free_values_of_op(op)))

    def _may_be_repeated(self, op: Operation) -> bool:
        if isinstance(op, rt.LoadOp):
            return not any(may_overlap(root(op.buffer), other) for other in self._written)
        if isinstance(op, scf.ForOp):
            return self.rows is not None and self.rows.is_ancestor(op)
        return type(op) in PURE or type(op) in DIVISIONS or isinstance(op, scf.IfOp | scf.YieldOp)


def computed(value: SSAValue, known: dict[SSAValue, SSAValue], outer: scf.ForOp, write: OpWriter) -> SSAValue:
    """A value of a nest, computed of what `known` has."""
    if value not in known:
        if not is_inside(value, outer):
            return value
        op = value.owner
        assert isinstance(op, Operation)
        for needed in free_values_of_op(op):
            computed(needed, known, outer, write)
        write.before(cloned(op, known))
    return known[value]
