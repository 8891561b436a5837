"""Calls that are written as operations on the parts of complex numbers, scalars and containers alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan

if TYPE_CHECKING:
    from ulam.passes.complex_to_pairs import Pair, Splitting


def result_of_parts(
    writer: Splitting, name: str, arguments: Sequence[SSAValue], type_: Attribute
) -> Pair | SSAValue:
    """The result of a function of `complex_functions.OF_PARTS`; `type_` is the type of a result that is real."""
    if name == "to_complex":
        return _to_complex(writer, arguments)
    if name == "polar":
        radius, angle = (_as_real(writer, a) for a in arguments)
        directions = (writer.call(f, [angle], stan.REAL) for f in ("cos", "sin"))
        real, imag = (writer.binary("*", radius, direction) for direction in directions)
        return real, imag
    real, imag = writer.parts(arguments[0])
    if name == "get_real":
        return real
    if name == "get_imag":
        return imag
    if name == "conj":
        return real, writer.call("minus", [imag], imag.type)
    if name == "norm":
        return writer.binary("+", writer.binary("*", real, real), writer.binary("*", imag, imag))
    if name == "arg":
        return writer.call("atan2", [imag, real], type_)
    assert name == "abs"
    return writer.call("hypot", [real, imag], type_)


def _to_complex(writer: Splitting, arguments: Sequence[SSAValue]) -> Pair:
    values = [_as_real(writer, a) for a in arguments]
    if len(values) < 2:
        real = values[0] if values else writer.real(0.0)
        return real, writer.zeros(real)
    containers = [v for v in values if stan.dimensions(v.type)]
    if len(containers) == 1:  # the scalar goes with each element
        values = [
            v if v is containers[0] else writer.call("fill_like", [containers[0], v], containers[0].type)
            for v in values
        ]
    elif containers:
        values[0] = writer.call("sized_as", values, values[0].type)
    return values[0], values[1]


def _as_real(writer: Splitting, value: SSAValue) -> SSAValue:
    """An int, or an array of them, as reals."""
    if stan.scalar_of(value.type) != stan.INT:
        return value
    real = stan.array_of(stan.REAL, value.type.rank.data) if isinstance(value.type, stan.ArrayType) else stan.REAL
    return writer.value(stan.PromoteOp(value, real))
