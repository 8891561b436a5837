"""Library functions that are kernels of the C runtime: dense linear algebra, sorting, random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import rt, stan
from ulam.library.kernels import KERNELS, Kernel
from ulam.passes.errors import NotSupportedError
from ulam.passes.lower.indexing import Selection
from ulam.passes.lower.indexing import select as select_part
from ulam.passes.lower.intrinsics import INTRINSICS
from ulam.passes.lower.lowering import FATAL, REJECTION, Lowering
from ulam.passes.lower.values import (
    Container,
    Value,
    buffer_type,
    for_each_position,
    in_buffer,
    materialize,
    peel,
    rank_of,
    total,
    write,
)

_UNIT = UnitAttr()
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
            count = _size(low, parameter.size, sizes)
            type_ = rt.BufferType(_ELEMENT[parameter.element])
            buffer = builder.value(rt.AllocOp, (count,), type_, {"stack": _UNIT} if scratch else None)
            arguments.append(buffer)
            filled.append(buffer)
        else:
            arguments.append(next(remaining))
    properties: dict[str, Attribute] = {"function": StringAttr(name)}
    if kernel.throws:
        properties["throws"] = _UNIT
        properties["site"] = IntegerAttr(low.new_site(REJECTION, "{text}"), i64)
    builder.emit(rt.KernelOp, arguments, (), properties)
    return filled


def _size(low: Lowering, text: str, sizes: dict[str, SSAValue]) -> SSAValue:
    """A buffer's size: a product of size names and minima."""
    builder = low.builder
    result = builder.i64(1)
    for factor in text.replace("min(m,n)", "min").split("*"):
        if factor == "min":
            value = builder.value(arith.MinSIOp, (sizes["m"], sizes["n"]), i64)
        else:
            value = sizes[factor] if factor in sizes else builder.i64(int(factor))
        result = builder.mul(result, value)
    return result


def _buffer(low: Lowering, value: Container) -> SSAValue:
    owned = materialize(low.builder, value)
    assert owned.buffer is not None
    return owned.buffer


def _square(low: Lowering, name: str, a: Container) -> SSAValue:
    low.check_equal(a.dims[0], a.dims[1], f"{name}: the matrix must be square, but has {{0}} rows and {{1}} columns")
    return a.dims[0]


# ---------------------------------------------------------------- of one square matrix


@dataclass(frozen=True)
class _OfMatrix:
    """How a function of one matrix uses its kernel: which output is the result, as what."""

    kernel: str
    output: int
    shape: str  # "" for a scalar, else sizes by name
    square: bool = True


_OF_MATRIX = {
    "cholesky_decompose": _OfMatrix("cholesky_decompose", 0, "n n"),
    "chol2inv": _OfMatrix("chol2inv", 0, "n n"),
    "inverse": _OfMatrix("inverse", 0, "n n"),
    "inverse_spd": _OfMatrix("inverse_spd", 0, "n n"),
    "determinant": _OfMatrix("determinant", 0, ""),
    "log_determinant": _OfMatrix("log_determinant", 0, ""),
    "log_determinant_spd": _OfMatrix("log_determinant_spd", 0, ""),
    "eigenvalues_sym": _OfMatrix("eigenvalues_sym", 0, "n"),
    "eigenvectors_sym": _OfMatrix("eigenvectors_sym", 0, "n n"),
    "matrix_exp": _OfMatrix("matrix_exp", 0, "n n"),
    "singular_values": _OfMatrix("singular_values", 0, "min", square=False),
    "svd_U": _OfMatrix("svd", 1, "m min", square=False),
    "svd_V": _OfMatrix("svd", 2, "n min", square=False),
    "qr_thin_Q": _OfMatrix("qr_thin", 0, "m min", square=False),
    "qr_thin_R": _OfMatrix("qr_thin", 1, "min n", square=False),
}


def _of_matrix(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    row = _OF_MATRIX[op.callee.data]
    builder = low.builder
    a = arguments[0]
    assert isinstance(a, Container) and op.res is not None
    if row.square:
        n = _square(low, op.callee.data, a)
        sizes = {"n": n}
    else:
        sizes = {"m": a.dims[0], "n": a.dims[1]}
    outputs = call_kernel(low, row.kernel, [_buffer(low, a)], sizes)
    result = outputs[row.output]
    if not row.shape:
        return builder.load(result, builder.i64(0))
    if not row.square:
        sizes["min"] = _size(low, "min(m,n)", sizes)
    dims = [sizes[name] for name in row.shape.split()]
    return in_buffer(builder, op.res.type, dims, result, data_only=a.data_only)


# ---------------------------------------------------------------- division


def mdivide_left(
    low: Lowering, a: Container, b: Container, type_: Attribute, kernel: str = "mdivide_left"
) -> Container:
    """`a \\ b`: a^-1 b, for a vector or a matrix b."""
    builder = low.builder
    n = _square(low, kernel, a)
    low.check_equal(n, b.dims[0], f"{kernel}: columns of the left side are {{0}}, but rows of the right side are {{1}}")
    m = b.dims[1] if len(b.dims) == 2 else builder.i64(1)
    (out,) = call_kernel(low, kernel, [_buffer(low, a), _buffer(low, b)], {"n": n, "m": m})[:1]
    return in_buffer(builder, type_, [n, m] if rank_of(type_) == 2 else [n], out, data_only=a.data_only and b.data_only)


def mdivide_right(
    low: Lowering, b: Container, a: Container, type_: Attribute, kernel: str = "mdivide_right"
) -> Container:
    """`b / a`: b a^-1, for a row vector or a matrix b."""
    builder = low.builder
    n = _square(low, kernel, a)
    low.check_equal(
        b.dims[-1], n, f"{kernel}: columns of the left side are {{0}}, but rows of the right side are {{1}}"
    )
    m = b.dims[0] if len(b.dims) == 2 else builder.i64(1)
    (out,) = call_kernel(low, kernel, [_buffer(low, b), _buffer(low, a)], {"n": n, "m": m})[:1]
    return in_buffer(builder, type_, [m, n] if rank_of(type_) == 2 else [n], out, data_only=a.data_only and b.data_only)


def _divide(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    name = op.callee.data
    a, b = arguments
    assert isinstance(a, Container) and isinstance(b, Container) and op.res is not None
    divide = mdivide_left if "left" in name else mdivide_right
    return divide(low, a, b, op.res.type, name)


# ---------------------------------------------------------------- sorting


def _sort(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    a = arguments[0]
    assert isinstance(a, Container) and op.res is not None
    name = op.callee.data + ("_int" if a.element_type == i32 else "")
    out = call_kernel(low, name, [_buffer(low, a)], {"n": a.dims[0]})[0]
    return in_buffer(builder, op.res.type, a.dims, out, data_only=a.data_only)


# ---------------------------------------------------------------- random numbers


def _random(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """`d_rng(...)`: one draw, or one for each element of container arguments."""
    assert op.res is not None
    kernel = KERNELS[op.callee.data]
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
        low.check_equal(
            containers[0].dims[0], other.dims[0], f"{op.callee.data}: sizes must match, but are {{0}} and {{1}}"
        )
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
                    low.check_equal(sizes[label], size, f"{name}: sizes must match, but are {{0}} and {{1}}")
                sizes.setdefault(label, size)
            inputs.append(_buffer(low, container))
        elif parameter.kind == "value":
            scalar = next(remaining)
            assert isinstance(scalar, SSAValue)
            if parameter.element == "f64":
                scalar = builder.to_real(scalar)
            elif "value*value" in kernel.arguments:
                n = builder.index(scalar)
                low.check(
                    builder.cmpi("sge", n, builder.i64(0)),
                    FATAL,
                    f"{name}: the size must not be negative, but is {{0}}",
                    n,
                )
                sizes["value"] = n
            inputs.append(scalar)
    out = call_kernel(low, name, inputs, sizes)[0]
    if not rank_of(type_):
        return builder.load(out, builder.i64(0))
    n = sizes.get("value", sizes.get("n"))
    assert n is not None
    return in_buffer(builder, type_, [n] * rank_of(type_), out)


INTRINSICS.update(dict.fromkeys(_OF_MATRIX, _of_matrix))
INTRINSICS.update(dict.fromkeys([name for name in KERNELS if name.startswith("mdivide_")], _divide))
INTRINSICS.update(dict.fromkeys(["sort_asc", "sort_desc", "sort_indices_asc", "sort_indices_desc"], _sort))
INTRINSICS.update(dict.fromkeys([name for name in KERNELS if name.endswith("_rng")], _random))
