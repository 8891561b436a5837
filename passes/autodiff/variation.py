"""Variation: which values of a function change with its independent variables, and so have a tangent.

Unlike activity (`activity`), it is asked of functions that reverse mode wrote, and of buffers that hold buffers.
Buffers that may be the same memory are of one class, which varies as a whole. Flow-insensitive, conservative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS, PULLBACKS
from ulam.passes.autodiff.activity import flow_pairs
from ulam.passes.autodiff.classes import Classes
from ulam.passes.loops.effects import written_buffer

_HOLDERS = (rt.StoreOp, rt.LoadOp, ad.KeepOp, ad.KeptOp, ad.PushOp, ad.PopOp, func.CallOp)
"""Ops by which one buffer comes to hold, or gives back, another."""


def has_tangent_type(type_: Attribute) -> bool:
    """Whether values of a type may vary: reals, buffers of reals, buffers of such buffers."""
    while isinstance(type_, rt.BufferType):
        type_ = type_.element
    return type_ == f64


class Variation:
    """The result of the analysis of one function."""

    def __init__(self, block: Block, varied: Iterable[SSAValue]) -> None:
        """`varied`: the independent variables, and what else is to have a tangent."""
        self._classes = Classes()
        self._varied: set[SSAValue] = set()
        self._without_memory: set[SSAValue] = set()
        ops = list(ops_within(block))
        for op in ops:
            self._join_buffers(op)
        edges: dict[SSAValue, list[SSAValue]] = {}
        for op in ops:
            if isinstance(op, rt.BoundOp | rt.AllocBoundOp | rt.ConstantsOp) and has_tangent_type(op.results[0].type):
                self._without_memory.add(self._key(op.results[0]))
            for source, destination in _flow(op):
                if has_tangent_type(source.type) and has_tangent_type(destination.type):
                    edges.setdefault(self._key(source), []).append(self._key(destination))
        self._spread(edges, varied)

    def is_varied(self, value: SSAValue) -> bool:
        """Whether a scalar, or a buffer's class, has a tangent."""
        return has_tangent_type(value.type) and self._key(value) in self._varied

    def may_lack_memory(self, buffer: SSAValue) -> bool:
        """Whether some buffers of the class are data, whose tangent is `rt.null`: all its elements are 0."""
        return self._key(buffer) in self._without_memory

    def let_lack_memory(self, buffer: SSAValue) -> None:
        """Says so of a buffer that comes from outside."""
        self._without_memory.add(self._key(buffer))

    def declare_like(self, value: SSAValue, like: SSAValue) -> None:
        """A value that was made after the analysis varies as `like` does."""
        self._classes.join(value, like)

    def _key(self, value: SSAValue) -> SSAValue:
        return self._classes.find(value)

    def _join(self, a: SSAValue, b: SSAValue) -> None:
        if isinstance(a.type, rt.BufferType) and has_tangent_type(a.type) and has_tangent_type(b.type):
            self._classes.join(a, b)

    def _join_buffers(self, op: Operation) -> None:
        if isinstance(op, rt.ViewOp):
            self._join(op.res, op.buffer)
        elif isinstance(op, arith.SelectOp):
            self._join(op.results[0], op.operands[1])
            self._join(op.results[0], op.operands[2])
        elif isinstance(op, _HOLDERS):
            buffers = [v for v in (*op.operands, *op.results) if isinstance(v.type, rt.BufferType)]
            buffers = [v for v in buffers if has_tangent_type(v.type)]
            for other in buffers[1:]:
                self._join(buffers[0], other)
        else:
            for a, b in flow_pairs(op):
                self._join(a, b)

    def _spread(self, edges: dict[SSAValue, list[SSAValue]], varied: Iterable[SSAValue]) -> None:
        work = [self._key(value) for value in varied if has_tangent_type(value.type)]
        self._varied.update(work)
        while work:
            for key in edges.get(work.pop(), ()):
                if key not in self._varied:
                    self._varied.add(key)
                    work.append(key)


def _flow(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """(from, to) where the derivative of `to` by `from` may not be 0; regions are walked on their own."""
    if op.regions:
        return flow_pairs(op)
    if isinstance(op, rt.MathOp) and op.function.data == "fixed_value_of":
        return []
    if isinstance(op, rt.KernelOp):
        sources, destinations = kernel_flow(op)
        return [(a, b) for a in sources for b in destinations]
    if isinstance(op, func.CallOp):
        buffers = [v for v in op.operands if isinstance(v.type, rt.BufferType)]
        return [(a, b) for a in op.operands for b in (*buffers, *op.results)]
    pairs: list[tuple[SSAValue, SSAValue]] = [(a, b) for a in op.operands for b in op.results]
    if (written := written_buffer(op)) is not None:
        pairs += [(a, written) for a in op.operands if a is not written]
    return pairs


def kernel_flow(op: rt.KernelOp) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    """Buffers of reals that a kernel, or the pullback of one, reads and those that it writes."""
    name = op.function.data
    if (kernel := PULLBACKS.get(name)) is not None:
        count = len(kernel.parameters)
        adjoints = list(zip(kernel.adjoints, op.arguments[count:], strict=True))
        inputs = [adjoint for n, adjoint in adjoints if kernel.parameters[n].kind == "in"]
        outputs = [adjoint for n, adjoint in adjoints if kernel.parameters[n].kind != "in"]
        return [*(op.arguments[n] for n in kernel.adjoints), *outputs], inputs
    if (kernel := KERNELS.get(name)) is None:
        return (), ()
    pairs = list(zip(kernel.parameters, op.arguments, strict=True))
    reals = [(parameter, argument) for parameter, argument in pairs if parameter.element == "f64"]
    return (
        [argument for parameter, argument in reals if parameter.kind == "in"],
        [argument for parameter, argument in reals if parameter.kind in ("out", "kept")],
    )
