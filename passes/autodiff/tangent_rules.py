"""The tangents of ops without regions: one rule for each class of op, run behind the op.

The derivatives of `rt.math` are rows of `library/derivatives.txt`, as in reverse mode; those of kernels are told by
`kernel_tangents`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.library.derivatives import has_primitive, rule
from ulam.passes.autodiff.kernel_tangents import kernel_tangent
from ulam.passes.autodiff.rules import times_partial
from ulam.passes.autodiff.variation import has_tangent_type
from ulam.passes.builder import REASSOCIATE

if TYPE_CHECKING:
    from ulam.passes.autodiff.forward_mode import ForwardMode

Tangent = Callable[["ForwardMode", Operation], None]


# ---------------------------------------------------------------- arithmetic


def _set(mode: ForwardMode, result: SSAValue, terms: list[SSAValue | None], like: Operation | None = None) -> None:
    """The tangent of `result` is the sum of `terms`; of `like`, a sum itself, it has the freedom to be reordered."""
    reassociate = like is not None and like.properties.get("fastmath") == REASSOCIATE
    total: SSAValue | None = None
    for term in terms:
        if term is not None:
            total = term if total is None else mode.builder.addf(total, term, reassociate)
    if total is not None:
        mode.tangents[result] = total


def _scaled(mode: ForwardMode, tangent: SSAValue | None, factor: SSAValue) -> SSAValue | None:
    return None if tangent is None else mode.builder.mulf(tangent, factor)


def _negated(mode: ForwardMode, tangent: SSAValue | None) -> SSAValue | None:
    return None if tangent is None else mode.builder.negf(tangent)


def _add(mode: ForwardMode, op: arith.AddfOp) -> None:
    _set(mode, op.result, [mode.tangent(op.lhs), mode.tangent(op.rhs)], op)


def _sub(mode: ForwardMode, op: arith.SubfOp) -> None:
    left, right = mode.tangent(op.lhs), mode.tangent(op.rhs)
    if left is not None and right is not None:
        mode.tangents[op.result] = mode.builder.subf(left, right)
    else:
        _set(mode, op.result, [left, _negated(mode, right)])


def _mul(mode: ForwardMode, op: arith.MulfOp) -> None:
    _set(mode, op.result, [_scaled(mode, mode.tangent(op.lhs), op.rhs), _scaled(mode, mode.tangent(op.rhs), op.lhs)])


def _div(mode: ForwardMode, op: arith.DivfOp) -> None:
    """(a / b)' = (a' - (a / b) b') / b"""
    numerator, denominator = mode.tangent(op.lhs), _scaled(mode, mode.tangent(op.rhs), op.result)
    if numerator is not None and denominator is not None:
        numerator = mode.builder.subf(numerator, denominator)
    elif numerator is None:
        numerator = _negated(mode, denominator)
    if numerator is not None:
        mode.tangents[op.result] = mode.builder.divf(numerator, op.rhs)


def _neg(mode: ForwardMode, op: arith.NegfOp) -> None:
    _set(mode, op.result, [_negated(mode, mode.tangent(op.operand))])


def _select(mode: ForwardMode, op: arith.SelectOp) -> None:
    condition, then, otherwise = op.operands
    if mode.variation.is_varied(op.results[0]):
        tangents = mode.tangent_or_zero(then), mode.tangent_or_zero(otherwise)
        mode.tangents[op.results[0]] = mode.builder.select(condition, *tangents)


def _math(mode: ForwardMode, op: rt.MathOp) -> None:
    tangents = [mode.tangent(argument) for argument in op.arguments]
    if all(tangent is None for tangent in tangents):
        return
    if op.function.data == "value_of":  # a constant to reverse mode only: here it is what it computes, the identity
        _set(mode, op.res, tangents)
        return
    if not has_primitive(op.function.data):
        raise mode.unsupported(f"a function whose derivative is '{op.function.data}'", op)
    row = rule(op.function.data)
    terms: list[SSAValue | None] = []
    for tangent, partial in zip(tangents, row.partials, strict=True):
        terms.append(None if tangent is None else times_partial(mode, None, op, tangent, partial, row.arguments))
    _set(mode, op.res, terms)


# ---------------------------------------------------------------- memory


def _alloc(mode: ForwardMode, op: rt.AllocOp) -> None:
    if mode.variation.is_varied(op.res):
        mode.tangents[op.res] = mode.builder.value(rt.AllocOp, (op.count,), op.res.type, op.properties)


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


def _load(mode: ForwardMode, op: rt.LoadOp | ad.KeptOp) -> None:
    buffer, index = op.operands
    if has_tangent_type(op.res.type) and (tangent := mode.load(buffer, index)) is not None:
        mode.tangents[op.res] = tangent


def _store(mode: ForwardMode, op: rt.StoreOp) -> None:
    if (tangent := mode.tangent(op.buffer)) is not None:
        mode.builder.emit(rt.StoreOp, (mode.tangent_or_zero(op.value), tangent, op.index), (), op.properties)


def _copy(mode: ForwardMode, op: rt.CopyOp) -> None:
    destination, source = mode.tangent(op.destination), mode.tangent(op.source)
    if destination is None:
        return
    builder = mode.builder

    def clear() -> list[SSAValue]:
        builder.emit(rt.FillOp, (destination, builder.f64(0.0), op.count), (), op.properties)
        return []

    def copy() -> list[SSAValue]:
        assert source is not None
        builder.emit(rt.CopyOp, (destination, source, op.count), (), op.properties)
        return []

    if source is None:
        clear()
    elif (present := mode.unless_null(op.source, source)) is None:
        copy()
    else:
        builder.if_else(present, copy, clear)


def _fill(mode: ForwardMode, op: rt.FillOp) -> None:
    if (tangent := mode.tangent(op.destination)) is not None:
        mode.builder.emit(rt.FillOp, (tangent, mode.tangent_or_zero(op.value), op.count), (), op.properties)


def _accumulate(mode: ForwardMode, op: ad.AccumulateOp) -> None:
    buffer, value = mode.tangent(op.buffer), mode.tangent(op.value)
    if buffer is not None and value is not None:
        mode.builder.emit(ad.AccumulateOp, (buffer, op.index, value))


def _take(mode: ForwardMode, op: ad.TakeOp) -> None:
    if (tangent := mode.tangent(op.buffer)) is not None:
        mode.tangents[op.res] = mode.builder.value(ad.TakeOp, (tangent, op.index), f64)


def _keep(mode: ForwardMode, op: ad.KeepOp) -> None:
    if (tangent := mode.tangent(op.array)) is not None:
        mode.builder.emit(ad.KeepOp, (tangent, op.index, mode.tangent_or_zero(op.value)))


def _push(mode: ForwardMode, op: ad.PushOp) -> None:
    """Beside each record one of the tangents of all its reals."""
    if not mode.variation.is_varied(op.res):
        return
    values = [mode.tangent_or_zero(value) for value in op.values if has_tangent_type(value.type)]
    previous = mode.tangent_or_zero(op.previous)
    mode.tangents[op.res] = mode.builder.value(ad.PushOp, (previous, *values), op.res.type)


def _pop(mode: ForwardMode, op: ad.PopOp) -> None:
    tangent = mode.tangent(op.record)
    if tangent is None:
        return
    reals = [result for result in op.results if has_tangent_type(result.type)]
    popped = mode.builder.emit(ad.PopOp, (tangent,), [result.type for result in reals])
    mode.tangents.update(zip(reals, popped.results, strict=True))


TANGENT: dict[type[Operation], Tangent] = {
    arith.AddfOp: _add,
    arith.SubfOp: _sub,
    arith.MulfOp: _mul,
    arith.DivfOp: _div,
    arith.NegfOp: _neg,
    arith.SelectOp: _select,
    rt.MathOp: _math,
    rt.AllocOp: _alloc,
    rt.ViewOp: _view,
    rt.NullOp: _null,
    rt.LoadOp: _load,
    rt.StoreOp: _store,
    rt.CopyOp: _copy,
    rt.FillOp: _fill,
    rt.KernelOp: kernel_tangent,
    ad.AccumulateOp: _accumulate,
    ad.TakeOp: _take,
    ad.KeepOp: _keep,
    ad.KeptOp: _load,
    ad.PushOp: _push,
    ad.PopOp: _pop,
}  # type: ignore[dict-item]
