"""Sizes of the buffers that kernels are given, as ops."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ulam.passes.builder import Builder


def buffer_size(builder: Builder, text: str, sizes: Mapping[str, SSAValue]) -> SSAValue:
    """A buffer's size (`Parameter.size`): a product of size names and minima."""
    factors: list[SSAValue] = []
    for factor in text.replace("min(m,n)", "min").split("*"):
        if factor == "min":
            value = builder.value(arith.MinSIOp, (sizes["m"], sizes["n"]), i64)
        else:
            value = sizes[factor] if factor in sizes else builder.i64(int(factor))
        factors.append(value)
    unknown = [value for value in factors if value not in builder.known]
    if len(unknown) > 1 and builder.new_shape is not None:
        builder.new_shape(unknown)
    result = builder.i64(1)
    for value in factors:
        result = builder.mul(result, value)
    return result
