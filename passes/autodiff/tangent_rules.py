"""The tangents of ops without regions: one rule for each class of op, run behind the op.

The derivatives of scalar ops are rows of `library/derivatives.txt`, the same as in reverse mode (see `partials`); those
of kernels are told by `kernel_tangents`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.library.derivatives import has_primitive
from ulam.passes.autodiff.kernel_tangents import kernel_tangent
from ulam.passes.autodiff.partials import SCALAR_OPS, ScalarDerivative
from ulam.passes.autodiff.variation import has_tangent_type
from ulam.passes.builder import REASSOCIATE
from ulam.passes.rewriting import applied_to

if TYPE_CHECKING:
    from ulam.passes.autodiff.forward_mode import ForwardMode

Tangent = Callable[["ForwardMode", Operation], None]


# ---------------------------------------------------------------- scalars


def _scalar(mode: ForwardMode, op: Operation) -> None:
    tangents = [mode.tangent(operand) for operand in op.operands]
    if all(tangent is None for tangent in tangents):
        return
    reassociate = op.properties.get("fastmath") == REASSOCIATE  # the sum of tangents is as free as that of values
    tangent = ScalarDerivative(mode, op).of_tangents(tangents, reassociate=reassociate)
    if tangent is not None:
        mode.tangents[op.results[0]] = tangent


def _math(mode: ForwardMode, op: rt.MathOp) -> None:
    name = op.function.data
    if name == "value_of":  # a constant to reverse mode only: here it is what it computes, the identity
        if (tangent := mode.tangent(op.arguments[0])) is not None:
            mode.tangents[op.res] = tangent
    elif has_primitive(name):
        _scalar(mode, op)
    elif any(mode.tangent(argument) is not None for argument in op.arguments):
        raise mode.unsupported(f"a function whose derivative is '{name}'", op)


def _select(mode: ForwardMode, op: arith.SelectOp) -> None:
    condition, then, otherwise = op.operands
    if mode.variation.is_varied(op.results[0]):
        tangents = mode.tangent_or_zero(then), mode.tangent_or_zero(otherwise)
        mode.tangents[op.results[0]] = mode.builder.select(condition, *tangents)


# ---------------------------------------------------------------- memory


def _alloc(mode: ForwardMode, op: rt.AllocOp) -> None:
    if mode.variation.is_varied(op.res):
        mode.tangents[op.res] = mode.builder.insert(applied_to(op, (op.count,))).res


def _view(mode: ForwardMode, op: rt.ViewOp) -> None:
    tangent = mode.tangent(op.buffer)
    if tangent is None:
        return
    if (present := mode.unless_null(op.buffer, tangent)) is None:
        mode.tangents[op.res] = mode.builder.view(tangent, op.offset)
        return
    mode.tangents[op.res] = mode.builder.if_else(
        present, lambda: [mode.builder.view(tangent, op.offset)], lambda: [mode.null(tangent.type)]
    )[0]


def _null(mode: ForwardMode, op: rt.NullOp) -> None:
    if mode.variation.is_varied(op.res):
        mode.tangents[op.res] = mode.null(op.res.type)


def _data(mode: ForwardMode, op: Operation) -> None:
    """Buffers of data, in classes that may vary."""


def _load(mode: ForwardMode, op: rt.LoadOp | ad.KeptOp) -> None:
    buffer, index = op.operands
    if not has_tangent_type(op.res.type):
        return
    tangent = mode.load(buffer, index, ahead=rt.AheadAttr.marks(op))
    if tangent is not None:
        mode.tangents[op.res] = tangent


def _store(mode: ForwardMode, op: rt.StoreOp) -> None:
    if (tangent := mode.tangent(op.buffer)) is not None:
        mode.builder.store(mode.tangent_or_zero(op.value), tangent, op.index, initial=op.initial is not None)


def _copy(mode: ForwardMode, op: rt.CopyOp) -> None:
    destination, source = mode.tangent(op.destination), mode.tangent(op.source)
    if destination is None:
        return
    builder = mode.builder

    def clear() -> list[SSAValue]:
        builder.fill(destination, builder.f64(0.0), op.count, initial=op.initial is not None)
        return []

    def copy() -> list[SSAValue]:
        assert source is not None
        builder.copy(destination, source, op.count, initial=op.initial is not None)
        return []

    if source is None:
        clear()
    elif (present := mode.unless_null(op.source, source)) is None:
        copy()
    else:
        builder.if_else(present, copy, clear)


def _fill(mode: ForwardMode, op: rt.FillOp) -> None:
    if (tangent := mode.tangent(op.destination)) is not None:
        mode.builder.fill(tangent, mode.tangent_or_zero(op.value), op.count, initial=op.initial is not None)


def _accumulate(mode: ForwardMode, op: ad.AccumulateOp) -> None:
    buffer, value = mode.tangent(op.buffer), mode.tangent(op.value)
    if buffer is not None and value is not None:
        mode.builder.insert(ad.AccumulateOp(buffer, op.index, value))


def _take(mode: ForwardMode, op: ad.TakeOp) -> None:
    if (tangent := mode.tangent(op.buffer)) is not None:
        mode.tangents[op.res] = mode.builder.insert(ad.TakeOp(tangent, op.index)).res


def _keep(mode: ForwardMode, op: ad.KeepOp) -> None:
    if (tangent := mode.tangent(op.array)) is not None:
        mode.builder.insert(ad.KeepOp(tangent, op.index, mode.tangent_or_zero(op.value)))


def _push(mode: ForwardMode, op: ad.PushOp) -> None:
    """Beside each record one of the tangents of all its reals."""
    if not mode.variation.is_varied(op.res):
        return
    values = [mode.tangent_or_zero(value) for value in op.values if has_tangent_type(value.type)]
    previous = mode.tangent_or_zero(op.previous)
    mode.tangents[op.res] = mode.builder.insert(ad.PushOp(previous, values)).res


def _pop(mode: ForwardMode, op: ad.PopOp) -> None:
    tangent = mode.tangent(op.record)
    if tangent is None:
        return
    reals = [result for result in op.results if has_tangent_type(result.type)]
    popped = mode.builder.insert(ad.PopOp(tangent, [result.type for result in reals]))
    mode.tangents.update(zip(reals, popped.results, strict=True))


def _independent(mode: ForwardMode, op: ad.IndependentOp) -> None:
    tangent = mode.tangent(op.buffer)
    if mode.direction is not None and tangent is not None:
        mode.builder.copy(tangent, mode.direction, op.count)


TANGENT: dict[type[Operation], Tangent] = {
    **dict.fromkeys(SCALAR_OPS, _scalar),
    arith.SelectOp: _select,
    rt.MathOp: _math,
    rt.AllocOp: _alloc,
    rt.ViewOp: _view,
    rt.NullOp: _null,
    **dict.fromkeys((rt.BoundOp, rt.AllocBoundOp, rt.ConstantsOp), _data),
    rt.LoadOp: _load,
    rt.StoreOp: _store,
    rt.CopyOp: _copy,
    rt.FillOp: _fill,
    rt.KernelOp: kernel_tangent,
    ad.IndependentOp: _independent,
    ad.AccumulateOp: _accumulate,
    ad.TakeOp: _take,
    ad.KeepOp: _keep,
    ad.KeptOp: _load,
    ad.PushOp: _push,
    ad.PopOp: _pop,
}  # type: ignore[dict-item]
