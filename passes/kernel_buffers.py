"""Sizes of the buffers that kernels are given, as ops."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ulam.passes.builder import Builder


def buffer_size(builder: Builder, text: str, sizes: Mapping[str, SSAValue]) -> SSAValue:
    """A buffer's size (`Parameter.size`): a product of size names and minima."""
    result = builder.i64(1)
    for factor in text.replace("min(m,n)", "min").split("*"):
        if factor == "min":
            value = builder.value(arith.MinSIOp, (sizes["m"], sizes["n"]), i64)
        else:
            value = sizes[factor] if factor in sizes else builder.i64(int(factor))
        result = builder.mul(result, value)
    return result
