"""The reverse of ops without regions: what each adds to the adjoints of its operands.

The derivatives of scalar ops are rows of `library/derivatives.txt` (see `partials`), those of kernels their pullbacks.
What moves values, such as `arith.select`, has a rule here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.library.externals import is_external
from ulam.library.kernels import KERNELS
from ulam.passes.autodiff.calls import reverse_call
from ulam.passes.autodiff.external_pullbacks import external_pullback
from ulam.passes.autodiff.partials import SCALAR_OPS, ScalarDerivative
from ulam.passes.loops.effects import offsets, viewed

if TYPE_CHECKING:
    from ulam.passes.autodiff.frames import ReverseFrame
    from ulam.passes.autodiff.sweeps import ReverseMode

Reverse = Callable[["ReverseMode", "ReverseFrame", Operation], None]


# ---------------------------------------------------------------- scalars


def _scalar(r: ReverseMode, frame: ReverseFrame, op: Operation) -> None:
    g = r.take(frame, op.results[0])
    if g is None:
        return
    derivative = ScalarDerivative(r, op, frame)
    for position, operand in enumerate(op.operands):
        if not r.is_active(operand):
            continue
        contribution = derivative.times_adjoint(g, position)
        if contribution is not None and op in r.speculated and not derivative.is_finite(position):
            contribution = r.builder.select(r.is_idle(op, frame), r.builder.f64(0.0), contribution)
        r.add(frame, operand, contribution)


def _select(r: ReverseMode, frame: ReverseFrame, op: arith.SelectOp) -> None:
    if op.results[0].type != f64:
        return
    g = r.take(frame, op.results[0])
    if g is None:
        return
    zero = r.builder.f64(0.0)
    condition = r.need(op.operands[0], frame)
    if r.is_active(op.operands[1]):
        r.add(frame, op.operands[1], r.builder.select(condition, g, zero))
    if r.is_active(op.operands[2]):
        r.add(frame, op.operands[2], r.builder.select(condition, zero, g))


# ---------------------------------------------------------------- memory


def _load(r: ReverseMode, frame: ReverseFrame, op: rt.LoadOp) -> None:
    if op.res.type != f64:
        return
    g = r.take(frame, op.res)
    if g is None or not r.is_active(op.buffer):
        return

    def accumulate() -> tuple[()]:
        r.accumulate(frame, op.buffer, op.index, g)
        return ()

    if rt.AheadAttr.marks(op):
        r.builder.if_else(_is_there(r, frame, op), accumulate)
    else:
        accumulate()


def _is_there(r: ReverseMode, frame: ReverseFrame, op: rt.LoadOp) -> SSAValue:
    """Whether the memory has the element that is loaded. Where the adjoint's is not, even a zero may not be added."""
    memory = viewed(op.buffer).owner
    assert isinstance(memory, rt.AllocOp)
    place = reduce(r.builder.add, [r.need(index, frame) for index in (op.index, *offsets(op.buffer))])
    return r.builder.cmpi("ult", place, r.need(memory.count, frame))


def _store(r: ReverseMode, frame: ReverseFrame, op: rt.StoreOp) -> None:
    if op.value.type != f64 or not r.is_active(op.buffer):
        return
    shadow, index = r.shadow(op.buffer, frame), r.need(op.index, frame)
    if op.initial is not None:
        if r.is_active(op.value):
            r.add(frame, op.value, r.builder.load(shadow, index))
        return
    g = r.builder.insert(ad.TakeOp(shadow, index)).res
    r.add(frame, op.value, g)


def _accumulate(r: ReverseMode, frame: ReverseFrame, op: ad.AccumulateOp) -> None:
    if r.is_active(op.buffer) and r.is_active(op.value):
        shadow, index = r.shadow(op.buffer, frame), r.need(op.index, frame)
        r.add(frame, op.value, r.builder.load(shadow, index))


def _copy(r: ReverseMode, frame: ReverseFrame, op: rt.CopyOp) -> None:
    if not r.is_active(op.destination):
        return
    builder = r.builder
    target = r.shadow(op.destination, frame)
    count = r.need(op.count, frame)
    if r.is_active(op.source):
        source = r.shadow(op.source, frame)

        def body(i: SSAValue, _: object) -> tuple[()]:
            builder.insert(ad.AccumulateOp(source, i, builder.load(target, i)))
            return ()

        builder.for_loop(builder.i64(0), count, body)
    if op.initial is None:
        builder.fill(target, builder.f64(0.0), count, initial=True)


def _fill(r: ReverseMode, frame: ReverseFrame, op: rt.FillOp) -> None:
    if op.value.type != f64 or not r.is_active(op.destination):
        return
    builder = r.builder
    target = r.shadow(op.destination, frame)
    count = r.need(op.count, frame)
    if r.is_active(op.value):
        total = builder.for_loop(
            builder.i64(0),
            count,
            lambda i, carried: (builder.addf(carried[0], builder.load(target, i), reassociate=True),),
            [builder.f64(0.0)],
        )[0]
        r.add(frame, op.value, total)
    if op.initial is None:
        builder.fill(target, builder.f64(0.0), count, initial=True)


def _target_add(r: ReverseMode, frame: ReverseFrame, op: ad.TargetAddOp) -> None:
    r.add(frame, op.value, r.builder.f64(1.0))


def _kernel(r: ReverseMode, frame: ReverseFrame, op: rt.KernelOp) -> None:
    kernel = KERNELS.get(op.function.data)
    if kernel is None:
        return
    positions = kernel.adjoints
    active = [r.is_active(op.arguments[n]) for n in positions]
    outputs = [n for n in positions if kernel.parameters[n].kind != "in"]
    inputs = [n for n in positions if kernel.parameters[n].kind == "in"]
    if not any(r.is_active(op.arguments[n]) for n in outputs) or not any(r.is_active(op.arguments[n]) for n in inputs):
        return
    if is_external(op.function.data):
        external_pullback(r, frame, op, kernel, inputs)
        return
    if kernel.pullback is None:
        r.unsupported(f"function '{op.function.data}' has no derivative yet", op)
    arguments = [r.need(a, frame) for a in op.arguments]
    for n, is_active in zip(positions, active, strict=True):
        if is_active:
            arguments.append(r.shadow(op.arguments[n], frame))
        else:
            arguments.append(r.builder.insert(rt.NullOp(op.arguments[n].type)).res)
    r.builder.insert(rt.KernelOp(kernel.pullback, arguments))


# ---------------------------------------------------------------- profiles


def _profile_end(r: ReverseMode, frame: ReverseFrame, op: ad.ProfileEndOp) -> None:
    """The reverse half of a region begins where the forward half ends."""
    begin = ad.ProfileBeginOp(op.region, op.named, gradient=op.gradient is not None, reverse=True)
    r.conditions[op.begin] = r.builder.insert(begin).res


def _profile_begin(r: ReverseMode, frame: ReverseFrame, op: ad.ProfileBeginOp) -> None:
    begin = r.conditions.pop(op.res)
    r.builder.insert(ad.ProfileEndOp(begin, op.region, op.named, gradient=op.gradient is not None, reverse=True))


REVERSE: dict[type[Operation], Reverse] = {
    **dict.fromkeys(SCALAR_OPS, _scalar),
    arith.SelectOp: _select,
    rt.LoadOp: _load,
    rt.StoreOp: _store,
    rt.CopyOp: _copy,
    rt.FillOp: _fill,
    rt.KernelOp: _kernel,
    func.CallOp: reverse_call,
    ad.AccumulateOp: _accumulate,
    ad.TargetAddOp: _target_add,
    ad.ProfileBeginOp: _profile_begin,
    ad.ProfileEndOp: _profile_end,
}  # type: ignore[dict-item]
