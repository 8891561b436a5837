"""Library functions that are kernels of the C runtime: dense linear algebra, sorting, random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.library.functions import function
from ulam.library.kernels import KERNELS, OF_MATRIX, RANDOM, Kernel
from ulam.passes.errors import NotSupportedError
from ulam.passes.kernel_buffers import buffer_size
from ulam.passes.to_loops.indexing import Selection
from ulam.passes.to_loops.indexing import select as select_part
from ulam.passes.to_loops.intrinsics import INTRINSICS
from ulam.passes.to_loops.kernel_calls import (
    buffer_of,
    call_kernel,
    check_square,
    mdivide_left,
    mdivide_right,
)
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.values import (
    Container,
    Value,
    buffer_type,
    for_each_position,
    in_buffer,
    peel,
    rank_of,
    total,
    write,
)

# ---------------------------------------------------------------- of one square matrix


def _of_matrix(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    row = function(op.callee.data).kernel
    assert row is not None and row.shape is not None
    builder = low.builder
    a = arguments[0]
    assert isinstance(a, Container) and op.res is not None
    if row.square:
        n = check_square(low, op.callee.data, a)
        sizes = {"n": n}
    else:
        sizes = {"m": a.dims[0], "n": a.dims[1]}
    outputs = call_kernel(low, row.name, [buffer_of(low, a)], sizes)
    result = outputs[row.output]
    if not row.shape:
        return builder.load(result, builder.i64(0))
    if not row.square:
        sizes["min"] = buffer_size(low.builder, "min(m,n)", sizes)
    dims = [sizes[name] for name in row.shape.split()]
    return in_buffer(builder, op.res.type, dims, result, data_only=a.data_only)


# ---------------------------------------------------------------- division


def _divide(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    name = op.callee.data
    a, b = arguments
    assert isinstance(a, Container) and isinstance(b, Container) and op.res is not None
    divide = mdivide_left if "left" in name else mdivide_right
    return divide(low, a, b, op.res.type, name)


# ---------------------------------------------------------------- time series


def _gaussian_dlm_filter(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    containers = [a for a in arguments if isinstance(a, Container)]
    y, _, G, *_ = containers
    sizes = {"r": y.dims[0], "t": y.dims[1], "n": G.dims[0]}
    for container, names in zip(containers, ("r t", "n r", "n n", "r", "n n", "n", "n n"), strict=True):
        for name, size in zip(names.split(), container.dims, strict=True):
            low.check_equal_size("gaussian_dlm_obs_lpdf", sizes[name], size)
    total = call_kernel(low, op.callee.data, [buffer_of(low, a) for a in containers], sizes)[0]
    return low.builder.load(total, low.builder.i64(0))


# ---------------------------------------------------------------- sorting


def _sort(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    a = arguments[0]
    assert isinstance(a, Container) and op.res is not None
    name = op.callee.data + ("_int" if a.element_type == i32 else "")
    out = call_kernel(low, name, [buffer_of(low, a)], {"n": a.dims[0]})[0]
    return in_buffer(builder, op.res.type, a.dims, out, data_only=a.data_only)


# ---------------------------------------------------------------- random numbers


def _random(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """`d_rng(...)`: one draw, or one for each element of container arguments."""
    use = function(op.callee.data).kernel
    assert op.res is not None and use is not None
    kernel = use.kernel
    if any(p.kind == "in" for p in kernel.parameters) or "value*value" in kernel.arguments:
        if any(isinstance(a, Container) and a.array_rank for a in arguments):
            return _random_containers(low, op, kernel, arguments)
        return _random_container(low, op, kernel, arguments, op.res.type)
    if any(isinstance(a, Container) for a in arguments):
        return _random_elements(low, op, arguments)
    return _draw(low, op.callee.data, [a for a in arguments if isinstance(a, SSAValue)])


def _draw(low: Lowering, name: str, arguments: Sequence[SSAValue]) -> SSAValue:
    builder = low.builder
    values = [p for p in KERNELS[name].parameters if p.kind == "value"]
    converted = [builder.to_real(a) if p.element == "f64" else a for p, a in zip(values, arguments, strict=True)]
    out = call_kernel(low, name, converted, {}, scratch=True)[0]
    return builder.load(out, builder.i64(0))


def _random_elements(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    assert op.res is not None
    containers = [a for a in arguments if isinstance(a, Container)]
    for other in containers[1:]:
        low.check_equal_size(op.callee.data, containers[0].dims[0], other.dims[0])
    dims = containers[0].dims
    out = builder.alloc(total(builder, dims), buffer_type(op.res.type))

    def body(k: SSAValue, elements: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        iterator = iter(elements)
        scalars = [next(iterator) if isinstance(a, Container) else a for a in arguments]
        builder.store(_draw(low, op.callee.data, scalars), out, k, initial=True)  # type: ignore[arg-type]
        return ()

    for_each_position(builder, containers, body)
    return in_buffer(builder, op.res.type, dims, out)


def _random_containers(low: Lowering, op: stan.CallOp, kernel: Kernel, arguments: list[Value]) -> Value:
    """A draw for each element of array arguments, which are of vectors as long as the draws."""
    builder = low.builder
    assert op.res is not None
    type_ = op.res.type
    owned = [low.own(a) for a in arguments]
    arrays = [a for a in owned if isinstance(a, Container) and a.array_rank]
    for other in arrays[1:]:
        low.check_equal_sizes(op.callee.data, arrays[0], other)
    dims = list(arrays[0].dims)
    out = builder.alloc(total(builder, dims), buffer_type(type_))

    def draw(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        elements = [
            select_part(low, a, [Selection(k)], peel(a.type, 1)) if isinstance(a, Container) and a.array_rank else a
            for a in owned
        ]
        drawn = _random_container(low, op, kernel, elements, peel(type_, 1))
        assert isinstance(drawn, Container)
        write(builder, drawn, builder.view(out, builder.mul(k, dims[1])), initial=True)
        return ()

    builder.for_loop(builder.i64(0), dims[0], draw)
    return in_buffer(builder, type_, dims, out)


def _random_container(
    low: Lowering, op: stan.CallOp, kernel: Kernel, arguments: Sequence[Value], type_: Attribute
) -> Value:
    """One draw from a distribution of containers, or with container arguments."""
    builder = low.builder
    name = op.callee.data
    inputs: list[SSAValue] = []
    sizes: dict[str, SSAValue] = {}
    remaining = iter(arguments)
    for parameter in kernel.parameters:
        if parameter.kind == "in":
            container = next(remaining)
            if not isinstance(container, Container) or container.array_rank:
                raise NotSupportedError(f"'{name}' is not supported yet for these arguments", op.location)
            expected = parameter.size.split("*")
            for label, size in zip(expected, container.dims, strict=False):
                if label in sizes:
                    low.check_equal_size(name, sizes[label], size)
                sizes.setdefault(label, size)
            inputs.append(buffer_of(low, container))
        elif parameter.kind == "value":
            scalar = next(remaining)
            assert isinstance(scalar, SSAValue)
            if parameter.element == "f64":
                scalar = builder.to_real(scalar)
            elif "value*value" in kernel.arguments:
                n = builder.index_to_check(scalar)
                low.check_size(n, f"{name}: the size must not be negative")
                low.check_shape(name, [n, n])
                sizes["value"] = n
            inputs.append(scalar)
    out = call_kernel(low, name, inputs, sizes)[0]
    if not rank_of(type_):
        return builder.load(out, builder.i64(0))
    n = sizes.get("value", sizes.get("n"))
    assert n is not None
    return in_buffer(builder, type_, [n] * rank_of(type_), out)


INTRINSICS.update(dict.fromkeys(OF_MATRIX, _of_matrix))
INTRINSICS.update(dict.fromkeys([name for name in KERNELS if name.startswith("mdivide_")], _divide))
INTRINSICS["gaussian_dlm_filter"] = _gaussian_dlm_filter
INTRINSICS.update(dict.fromkeys(["sort_asc", "sort_desc", "sort_indices_asc", "sort_indices_desc"], _sort))
INTRINSICS.update(dict.fromkeys(RANDOM, _random))
