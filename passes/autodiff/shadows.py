"""Shadows: beside each active buffer the buffer of its adjoints, made and carried along in the forward sweep."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.passes.analysis.nesting import terminator
from ulam.passes.autodiff.activity import Activity
from ulam.passes.autodiff.calls import Derivatives, ForwardCall, call_forward
from ulam.passes.rewriting import rebuild

_WITH_SHADOWS = frozenset[type]((rt.AllocOp, rt.ViewOp, rt.NullOp, scf.ForOp, scf.IfOp, scf.WhileOp, func.CallOp))


class Shadows:
    """Buffer → its shadow, both values of the forward sweep."""

    def __init__(self, activity: Activity, derivatives: Derivatives) -> None:
        self.activity = activity
        self.derivatives = derivatives
        self.of: dict[SSAValue, SSAValue] = {}
        self.calls: dict[Operation, ForwardCall] = {}

    def make(self, block: Block) -> None:
        """Adds the shadows of all active buffers that the ops of `block` make."""
        op = block.first_op
        while op is not None:
            following = op.next_op
            if type(op) not in _WITH_SHADOWS:
                pass
            elif isinstance(op, rt.AllocOp):
                if self._is_active(op.res):
                    self._beside(op, rt.AllocOp(op.count, op.res.type, zero=True, site=op.site))
            elif isinstance(op, rt.ViewOp):
                if self._is_active(op.res):
                    shadow = self.of[op.buffer]
                    self._beside(op, rt.ViewOp(shadow, op.offset))
            elif isinstance(op, rt.NullOp):  # of a branch that is never taken: see `ad.profile_begin`
                if self._is_active(op.res):
                    self.of[op.res] = op.res
            elif isinstance(op, scf.ForOp):
                self._loop(op)
            elif isinstance(op, scf.IfOp):
                self._branch(op)
            elif isinstance(op, scf.WhileOp):
                self._while(op)
            elif isinstance(op, func.CallOp):
                self._call(op)
            op = following

    def _is_active(self, buffer: SSAValue) -> bool:
        return isinstance(buffer.type, rt.BufferType) and self.activity.is_active(buffer)

    def _beside(self, op: Operation, shadow_op: Operation) -> None:
        assert op.parent is not None
        op.parent.insert_op_after(shadow_op, op)
        self.of[op.results[0]] = shadow_op.results[0]

    def _active_positions(self, values: Sequence[SSAValue]) -> list[int]:
        return [n for n, v in enumerate(values) if self._is_active(v)]

    def _extend_terminator(self, block: Block, positions: Sequence[int], skip: int = 0) -> None:
        end = terminator(block)
        end.operands = [*end.operands, *(self.of[end.operands[n + skip]] for n in positions)]

    def _new_arguments(self, block: Block, positions: Sequence[int], skip: int) -> None:
        for n in positions:
            primal = block.args[n + skip]
            self.of[primal] = block.insert_arg(primal.type, len(block.args))

    def _loop(self, op: scf.ForOp) -> None:
        positions = self._active_positions(op.results)
        block = op.body.block
        self._new_arguments(block, positions, 1)
        self.make(block)
        if not positions:
            return
        self._extend_terminator(block, positions)
        initial = [*op.iter_args, *(self.of[op.iter_args[n]] for n in positions)]
        self._replace(op, [op.lb, op.ub, op.step, *initial], positions)

    def _branch(self, op: scf.IfOp) -> None:
        positions = self._active_positions(op.results)
        for region in op.regions:
            if region.blocks:
                self.make(region.block)
                self._extend_terminator(region.block, positions)
        if positions:
            self._replace(op, list(op.operands), positions)

    def _while(self, op: scf.WhileOp) -> None:
        """What a `while` carries and what it hands on may differ in number: each has its own positions."""
        before, after = op.before_region.block, op.after_region.block
        carried, passed = self._active_positions(before.args), self._active_positions(op.results)
        self._new_arguments(before, carried, 0)
        self.make(before)
        self._extend_terminator(before, passed, 1)
        self._new_arguments(after, passed, 0)
        self.make(after)
        if not carried and not passed:
            return
        self._extend_terminator(after, carried)
        self._replace(op, [*op.operands, *(self.of[op.operands[n]] for n in carried)], passed)

    def _call(self, op: func.CallOp) -> None:
        """A call becomes one of the forward version, with the shadows of buffer results and a record."""
        derivative = self.derivatives.of_call(op, self.activity)
        if derivative is None:
            return
        old = list(op.results)
        further = call_forward(op, derivative, self.of)  # gives the call further operands
        new = self._rebuilt(op, list(op.operands), further)
        buffers = derivative.of_type(old, derivative.results, scalar=False)
        for n, shadow in zip(buffers, new.results[len(old) :], strict=False):
            self.of[new.results[n]] = shadow
        self.calls[new] = ForwardCall(derivative, new.results[-1])

    def _replace(self, op: Operation, operands: Sequence[SSAValue], positions: Sequence[int]) -> None:
        count = len(op.results)
        new = self._rebuilt(op, operands, [op.results[n].type for n in positions])
        for k, n in enumerate(positions):
            self.of[new.results[n]] = new.results[count + k]

    def _rebuilt(self, op: Operation, operands: Sequence[SSAValue], further: Sequence[Attribute]) -> Operation:
        """The op with results of the types `further` behind its own, which are as active as before."""
        old = list(op.results)
        new = rebuild(op, operands, [*(r.type for r in old), *further])
        for result, replacement in zip(old, new.results, strict=False):
            self.activity.declare_like(replacement, result)
        return new
