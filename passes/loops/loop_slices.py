"""What an op in the body of a loop is computed from there, so that it can be computed ahead of the loop."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.kernels import KERNELS
from ulam.library.statuses import REJECTION
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import (
    PURE,
    UNKNOWN,
    Effect,
    Root,
    changed_roots_within,
    effect,
    is_speculatable,
    root,
)
from ulam.passes.loops.share_kernels import is_determined

Slice = dict[Operation, None]
"""Ops of a body, each once."""
_FILLS = (rt.StoreOp, rt.CopyOp, rt.FillOp)


class LoopSlices:
    """The body of a loop: who writes what, and what its first iteration surely reaches.

    `varying`: slices may depend on which iteration it is; else they are the same in all.
    """

    def __init__(self, loop: scf.ForOp, *, varying: bool = False) -> None:
        self.loop = loop
        self.varying = varying
        self.positions: dict[Operation, int] = {}
        self._writers: dict[Root, list[Operation]] = {}
        self._surely: set[Operation] = set()
        self._unless_refused: set[Operation] = set()
        surely = unless_refused = True
        for n, op in enumerate(ops_of(loop.body.block)):
            self.positions[op] = n
            for written in changed_roots_within(op):
                self._writers.setdefault(written, []).append(op)
            if surely:
                self._surely.add(op)
            if unless_refused:
                self._unless_refused.add(op)
                inner = list(ops_within(op))
                unless_refused = all(map(_goes_on_unless_refused, inner))
                surely = surely and all(map(goes_on, inner))

    def reaches(self, op: Operation) -> bool:
        """Whether the first iteration surely reaches an op, if the point is not refused before."""
        return op in self._unless_refused

    def is_behind(self, op: Operation, other: Operation) -> bool:
        """Whether an op of the body stands behind another one."""
        return self.positions[op] > self.positions[other]

    def ordered(self, needed: Slice) -> list[Operation]:
        """The ops of a slice as they stand in the body."""
        return sorted(needed, key=self.positions.__getitem__)

    def writers_of(self, memory: Root) -> list[Operation]:
        """What may write memory in an iteration."""
        if memory is UNKNOWN:
            return [op for ops in self._writers.values() for op in ops]
        return self._writers.get(memory, []) + self._writers.get(UNKNOWN, [])

    def add(self, op: Operation, needed: Slice) -> bool:
        """Adds an op to a slice, with what it is computed from; False if that cannot be computed ahead of the loop."""
        if op in needed:
            return True
        if op not in self.positions or not self._may_move(op):
            return False
        needed[op] = None
        return all(self.add_value(value, needed) for value in free_values_of_op(op))

    def add_value(self, value: SSAValue, needed: Slice) -> bool:
        """The same of a value; of memory, with what it has."""
        if not is_inside(value, self.loop):
            return not (isinstance(value.type, rt.BufferType) and self.writers_of(root(value)))
        owner = value.owner
        if not isinstance(owner, Operation):
            return self.varying and value is self.loop.body.block.args[0]
        if not self.add(owner, needed):
            return False
        return not isinstance(owner, rt.AllocOp) or all(self.add(op, needed) for op in self.writers_of(value))

    def _may_move(self, op: Operation) -> bool:
        if is_determined(op):
            return not self.varying and op in self._unless_refused and _takes_reals(op)
        if isinstance(op, rt.AllocOp | rt.ViewOp) or is_speculatable(op):
            return True
        if op not in self._surely or (op.results and not self.varying):
            return False
        if type(op) is scf.ForOp:
            return all(map(_only_fills, ops_within(op)))
        return isinstance(op, _FILLS) or (self.varying and isinstance(op, rt.LoadOp))


def goes_on(op: Operation) -> bool:
    """Whether what follows an op surely runs, and may run ahead of it; its regions aside."""
    if not effect(op) & (Effect.LEAVE | Effect.ORDERED):
        return True
    if isinstance(op, rt.CheckOp):
        return rt.HarmlessAttr.marks(op)
    return _goes_on_unless_refused(op) and (type(op) is not rt.KernelOp or op.throws is None)


def _goes_on_unless_refused(op: Operation) -> bool:
    """Whether what follows an op surely runs, if the op does not refuse the point."""
    if isinstance(op, rt.CheckOp):
        return rt.HarmlessAttr.marks(op) or (op.status is not None and op.status.value.data == REJECTION)
    return is_determined(op) or isinstance(op, ad.TargetAddOp) or not effect(op) & (Effect.LEAVE | Effect.ORDERED)


def _takes_reals(op: Operation) -> bool:
    """Whether a kernel has buffers of reals and their sizes alone: it looks nothing up."""
    assert isinstance(op, rt.KernelOp)
    return all(p.kind == "size" or (p.is_buffer and p.element == "f64") for p in KERNELS[op.function.data].parameters)


def _only_fills(op: Operation) -> bool:
    return type(op) in PURE or isinstance(
        op, scf.ForOp | scf.IfOp | scf.YieldOp | rt.LoadOp | rt.StoreOp | ad.AccumulateOp
    )


def uses_of_memory(memory: SSAValue) -> list[Operation]:
    """What uses memory, or views of it."""
    found: list[Operation] = []
    for use in memory.uses:
        found.append(use.operation)
        if isinstance(use.operation, rt.ViewOp):
            found += uses_of_memory(use.operation.results[0])
    return found
