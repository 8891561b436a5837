"""Activity: which values need an adjoint.

A value is *varied* if it depends on the independent variables, *useful* if the target depends on it, *active* if both.
Buffers are judged by class: two buffers that may be the same memory (views, carried or yielded buffers) are of one
class, and a class is active as a whole. Flow-insensitive: reachability, forwards and backwards.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import Float64Type, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import operand_tuple, ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.autodiff.classes import Classes
from ulam.passes.autodiff.partials import SCALAR_OPS, is_constant, row_name
from ulam.passes.loops.effects import kernel_buffers, written_buffers

_SCALARS = frozenset((*SCALAR_OPS, arith.SelectOp))
"""Ops from f64 to f64 that have a derivative."""

_FLOW: dict[type[Operation], tuple[int, int | None]] = {
    rt.LoadOp: (0, None),
    rt.StoreOp: (0, 1),
    rt.FillOp: (1, 0),
    rt.CopyOp: (1, 0),
    ad.AccumulateOp: (2, 0),
}
"""Op: the operand from which, and the operand (None: the result) to which values flow."""

_MAKES_BUFFERS = frozenset[type]((rt.AllocOp, rt.AllocBoundOp, rt.BoundOp))


class Activity:
    """The result of the analysis of one function."""

    def __init__(self, block: Block, varied: Sequence[SSAValue], useful: Sequence[SSAValue] = ()) -> None:
        """`varied` and `useful` (besides what is added to the target) are values that are so from outside."""
        self._classes = Classes()
        self._varied: set[SSAValue] = set()
        self._useful: set[SSAValue] = set()
        self.roots: dict[SSAValue, list[Operation]] = {}  # class → its allocations
        self.writers: dict[SSAValue, list[Operation]] = {}  # class → ops that write to it
        ops = list(ops_within(block))
        for op in ops:
            self._join_buffers(op)
        for op in ops:
            if type(op) in _MAKES_BUFFERS and isinstance(op.results[0].type, rt.BufferType):
                self.roots.setdefault(self.class_of(op.results[0]), []).append(op)
            for buffer in written_buffers(op):
                self.writers.setdefault(self.class_of(buffer), []).append(op)
        for value in varied:
            self._mark(self._varied, value)
        for value in useful:
            self._mark(self._useful, value)
        forwards: dict[SSAValue, list[SSAValue]] = {}
        backwards: dict[SSAValue, list[SSAValue]] = {}
        for op in ops:
            if type(op) is ad.TargetAddOp:
                self._useful.add(op.operands[0])
            for a, b in _dependences(op):
                if is_real(a) and is_real(b):
                    a, b = self._key(a), self._key(b)
                    forwards.setdefault(a, []).append(b)
                    backwards.setdefault(b, []).append(a)
        self._spread(forwards, self._varied)
        self._spread(backwards, self._useful)

    # ------------------------------------------------------------ answers

    def is_active(self, value: SSAValue) -> bool:
        """Whether a scalar, or a buffer's class, needs an adjoint."""
        key = self._key(value)
        return key in self._varied and key in self._useful

    def class_of(self, buffer: SSAValue) -> SSAValue:
        """The representative of a buffer's class."""
        return self._classes.find(buffer)

    def declare_like(self, value: SSAValue, like: SSAValue) -> None:
        """A value that was made after the analysis is as active as `like`."""
        if isinstance(value.type, rt.BufferType):
            self._classes.join(value, like)
            return
        if like in self._varied:
            self._varied.add(value)
        if like in self._useful:
            self._useful.add(value)

    # ------------------------------------------------------------ buffers

    def _key(self, value: SSAValue) -> SSAValue:
        return self.class_of(value) if isinstance(value.type, rt.BufferType) else value

    def _join(self, a: SSAValue, b: SSAValue) -> None:
        if isinstance(a.type, rt.BufferType):
            self._classes.join(a, b)

    def _join_buffers(self, op: Operation) -> None:
        if type(op) is rt.ViewOp:
            self._join(op.res, op.buffer)
        elif type(op) is arith.SelectOp:
            self._join(op.results[0], op.operands[1])
            self._join(op.results[0], op.operands[2])
        elif op.regions:
            for a, b in flow_pairs(op):
                self._join(a, b)

    # ------------------------------------------------------------ spreading

    def _spread(self, edges: dict[SSAValue, list[SSAValue]], marked: set[SSAValue]) -> None:
        """Marks all that can be reached."""
        work = list(marked)
        while work:
            for key in edges.get(work.pop(), ()):
                if key not in marked:
                    marked.add(key)
                    work.append(key)

    def _mark(self, marked: set[SSAValue], value: SSAValue) -> None:
        if is_real(value):
            marked.add(self._key(value))


def _dependences(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """(from, to) where the derivative of `to` by `from` may not be 0, for ops without regions too."""
    cls = type(op)
    if cls in _SCALARS:
        is_step = type(op) is rt.MathOp and is_constant(row_name(op))
        return [] if is_step else [(o, op.results[0]) for o in operand_tuple(op)]
    if cls in _FLOW:
        source, destination = _FLOW[cls]
        return [(op.operands[source], op.results[0] if destination is None else op.operands[destination])]
    if op.regions:
        return flow_pairs(op)
    if type(op) is rt.KernelOp:
        inputs, outputs = kernel_buffers(op)
        return [(a, b) for a in inputs for b in outputs]
    if type(op) is func.CallOp:
        return [(a, b) for a in op.operands for b in op.results]
    return []


def is_real(value: SSAValue) -> bool:
    """Whether a value is of a type that adjoints exist for: a real, or a buffer of reals."""
    type_ = value.type
    return type(type_) is Float64Type or (type(type_) is rt.BufferType and type_.element == f64)


def flow_pairs(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """(from, to) for values that control flow passes on."""
    if not op.regions:
        return []
    if isinstance(op, scf.ForOp):
        block = op.body.block
        yielded = terminator(block).operands
        pairs: list[tuple[SSAValue, SSAValue]] = list(zip(op.iter_args, block.args[1:], strict=True))
        pairs += zip(yielded, block.args[1:], strict=True)
        pairs += zip(yielded, op.results, strict=True)
        return pairs + list(zip(op.iter_args, op.results, strict=True))
    if isinstance(op, scf.IfOp):
        return [
            pair
            for region in op.regions
            if region.blocks and region.block.last_op is not None
            for pair in zip(region.block.last_op.operands, op.results, strict=True)
        ]
    if isinstance(op, scf.WhileOp):
        before, after = op.before_region.block, op.after_region.block
        passed = terminator(before).operands[1:]
        pairs: list[tuple[SSAValue, SSAValue]] = list(zip(op.arguments, before.args, strict=True))
        pairs += zip(passed, after.args, strict=True)
        pairs += zip(passed, op.results, strict=True)
        return pairs + list(zip(terminator(after).operands, before.args, strict=True))
    return []
