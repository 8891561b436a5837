"""Calls of external functions: kernels that others bring (`library/externals.py`)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ulam.dialects import rt, stan
from ulam.library.externals import external_function
from ulam.passes.builder import BUFFER_REAL
from ulam.passes.to_loops.kernel_calls import buffer_of, call_kernel
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.values import Container, Value, in_buffer


def call_external(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """The result of an external function."""
    builder = low.builder
    function = external_function(op.callee.data)
    if low.frames and low.frames[-1].function.stan_name.data == function.name:
        builder.location = low.frames[-1].location  # errors are of the call, not of the declaration
    inputs: list[SSAValue] = []
    sizes: dict[str, SSAValue] = {}
    for n, (formal, argument) in enumerate(zip(function.arguments, arguments, strict=True)):
        if isinstance(argument, Container):
            inputs.append(buffer_of(low, argument))
            sizes |= {f"a{n}d{k}": size for k, size in enumerate(argument.dims)}
        elif formal.is_int:
            assert isinstance(argument, SSAValue)
            inputs.append(argument)
        else:
            assert isinstance(argument, SSAValue)
            inputs.append(builder.alloc(builder.i64(1), BUFFER_REAL))
            builder.store(builder.to_real(argument), inputs[-1], builder.i64(0), initial=True)
    dims = [_size(low, function.name, text, sizes, arguments) for text in function.sizes]
    if dims:
        low.check_shape(function.name, dims)
    sizes |= {f"od{k}": size for k, size in enumerate(dims)}
    (result,) = call_kernel(low, op.callee.data, inputs, sizes)
    assert op.res is not None and isinstance(result.type, rt.BufferType)
    if not dims:
        return builder.load(result, builder.i64(0))
    data_only = all(a.data_only for a in arguments if isinstance(a, Container))
    return in_buffer(builder, op.res.type, dims, result, data_only=data_only)


def _size(low: Lowering, name: str, text: str, sizes: dict[str, SSAValue], arguments: list[Value]) -> SSAValue:
    """A size of the result, by its code."""
    if text in sizes:
        return sizes[text]
    if text.startswith("n"):
        return low.builder.i64(int(text[1:]))
    value = arguments[int(text[1:])]
    assert isinstance(value, SSAValue)
    size = low.builder.index_to_check(value)
    low.check_size(size, f"{name}: a size of the result must not be negative")
    return size
