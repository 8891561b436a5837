"""Calls of kernels of the C runtime, with the buffers that they fill; and the divisions by a matrix, which are such."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import rt
from ulam.library.kernels import KERNELS
from ulam.library.size_messages import SIDE_SIZES, SQUARE
from ulam.library.statuses import REJECTION
from ulam.passes.kernel_buffers import buffer_size
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.values import Container, in_buffer, materialize, rank_of

_ELEMENT = {"f64": f64, "i32": i32, "i64": i64}


def call_kernel(
    low: Lowering, name: str, inputs: Sequence[SSAValue], sizes: dict[str, SSAValue], *, scratch: bool = False
) -> list[SSAValue]:
    """Calls kernel `name`; `inputs` are its buffers and values in order. Returns the buffers that it fills.

    `scratch`: the outputs are single values, read at once.
    """
    builder = low.builder
    kernel = KERNELS[name]
    remaining = iter(inputs)
    arguments: list[SSAValue] = []
    filled: list[SSAValue] = []
    for parameter in kernel.parameters:
        if parameter.kind == "size":
            arguments.append(sizes[parameter.size])
        elif parameter.kind in ("out", "kept"):
            count = buffer_size(builder, parameter.size, sizes)
            type_ = rt.BufferType(_ELEMENT[parameter.element])
            if scratch:
                buffer = builder.insert(rt.AllocOp(count, type_, stack=True)).res
            else:
                buffer = builder.alloc(count, type_)
            arguments.append(buffer)
            filled.append(buffer)
        else:
            arguments.append(next(remaining))
    site = low.new_site(REJECTION, "{text}") if kernel.throws else None
    builder.insert(rt.KernelOp(name, arguments, throws=kernel.throws, site=site))
    return filled


def buffer_of(low: Lowering, value: Container) -> SSAValue:
    """A buffer with the elements of a container, for a kernel to read."""
    owned = materialize(low.builder, value)
    assert owned.buffer is not None
    return owned.buffer


def check_square(low: Lowering, name: str, a: Container) -> SSAValue:
    """Throws unless a matrix is square; the number of its rows."""
    low.check_equal(a.dims[0], a.dims[1], SQUARE.format(name, "{0}", "{1}"))
    return a.dims[0]


def mdivide_left(
    low: Lowering, a: Container, b: Container, type_: Attribute, kernel: str = "mdivide_left"
) -> Container:
    """`a \\ b`: a^-1 b, for a vector or a matrix b."""
    builder = low.builder
    n = check_square(low, kernel, a)
    low.check_equal(n, b.dims[0], SIDE_SIZES.format(kernel, "{0}", "{1}"))
    m = b.dims[1] if len(b.dims) == 2 else builder.i64(1)
    (out,) = call_kernel(low, kernel, [buffer_of(low, a), buffer_of(low, b)], {"n": n, "m": m})[:1]
    return in_buffer(builder, type_, [n, m] if rank_of(type_) == 2 else [n], out, data_only=a.data_only and b.data_only)


def mdivide_right(
    low: Lowering, b: Container, a: Container, type_: Attribute, kernel: str = "mdivide_right"
) -> Container:
    """`b / a`: b a^-1, for a row vector or a matrix b."""
    builder = low.builder
    n = check_square(low, kernel, a)
    low.check_equal(b.dims[-1], n, SIDE_SIZES.format(kernel, "{0}", "{1}"))
    m = b.dims[0] if len(b.dims) == 2 else builder.i64(1)
    (out,) = call_kernel(low, kernel, [buffer_of(low, b), buffer_of(low, a)], {"n": n, "m": m})[:1]
    return in_buffer(builder, type_, [m, n] if rank_of(type_) == 2 else [n], out, data_only=a.data_only and b.data_only)
