"""Calls of transforms of containers for arrays of such: `simplex_constrain` of an array of vectors, and the like.

The function of the library is for one container; here it is written once, in a loop over the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.library.functions import FunctionKind, kind_of, named
from ulam.passes.builder import BUFFER_REAL, Builder
from ulam.passes.to_loops.inlining import inline
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.parameters import UNCONSTRAINED_SIZES
from ulam.passes.to_loops.values import Container, Value, in_buffer, materialize, total, write

Dims = list[SSAValue]


def is_over_arrays(op: stan.CallOp, function: stan.FuncOp, arguments: Sequence[Value]) -> bool:
    """Whether a call is of a transform of containers, for an array of them."""
    if not arguments or not kind_of(op.callee.data).is_transform:
        return False
    formal, first = function.function_type.inputs.data[0], arguments[0]
    return isinstance(first, Container) and isinstance(first.type, stan.ArrayType) and first.type.element == formal


def transform_arrays(
    low: Lowering, op: stan.CallOp, function: stan.FuncOp, arguments: Sequence[Value], autodiff: Sequence[bool]
) -> Value:
    """The array of the results for each element."""
    builder = low.builder
    assert op.res is not None
    source = materialize(builder, arguments[0]) if isinstance(arguments[0], Container) else arguments[0]
    assert isinstance(source, Container) and source.buffer is not None
    buffer, rank = source.buffer, source.array_rank
    outer, inner = source.dims[:rank], source.dims[rank:]
    sizes = [low.builder.index(a) for a in arguments[1:] if isinstance(a, SSAValue)]
    dims = _result_dims(builder, op.callee.data, inner, sizes)
    count, result_count = total(builder, inner), total(builder, dims)
    out = builder.alloc(total(builder, [*outer, *dims]), BUFFER_REAL)

    def each(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        part = in_buffer(builder, source.inner, inner, builder.view(buffer, builder.mul(k, count)))
        value = inline(low, function, [part, *arguments[1:]], op.location, False, autodiff)
        if isinstance(value, Container):
            write(builder, value, builder.view(out, builder.mul(k, result_count)), initial=True)
        else:
            assert isinstance(value, SSAValue)
            builder.store(value, out, k, initial=True)
        return ()

    builder.for_loop(builder.i64(0), total(builder, outer), each)
    return in_buffer(builder, op.res.type, [*outer, *dims], out, data_only=all(map(low.is_data, arguments)))


def _grown(*by: int) -> Callable[[Builder, Dims, Dims], Dims]:
    """The sizes of what is transformed, each larger by a number."""

    def dims(builder: Builder, inner: Dims, _: Dims) -> Dims:
        return [builder.add(size, builder.i64(n)) if n else size for size, n in zip(inner, by, strict=True)]

    return dims


def _given(count: int) -> Callable[[Builder, Dims, Dims], Dims]:
    """The sizes that the call names, of one both rows and columns."""
    return lambda _, __, sizes: (sizes * 2)[:2] if count == 1 else sizes[:2]


_CONSTRAINED: dict[str, Callable[[Builder, Dims, Dims], Dims]] = {
    "simplex": _grown(1),
    "ordered": _grown(0),
    "positive_ordered": _grown(0),
    "unit_vector": _grown(0),
    "cholesky_factor_corr": _given(1),
    "cholesky_factor_cov": _given(2),
    "corr_matrix": _given(1),
    "cov_matrix": _given(1),
    "stochastic_column": _grown(1, 0),
    "stochastic_row": _grown(0, 1),
}
"""Transform → the sizes of one constrained value, by those of the unconstrained one and of the call."""

_UNCONSTRAINED_MATRICES = {"stochastic_column": _grown(-1, 0), "stochastic_row": _grown(0, -1)}
"""Transforms whose unconstrained values are matrices, too."""


def _result_dims(builder: Builder, name: str, inner: Dims, sizes: Dims) -> Dims:
    family, kind, _ = named(name)
    if kind is FunctionKind.JACOBIAN:
        return []
    by = 1 if kind is FunctionKind.CONSTRAIN else -1
    if family == "sum_to_zero":
        return _grown(*[by] * len(inner))(builder, inner, sizes)
    if kind is FunctionKind.CONSTRAIN:
        return _CONSTRAINED[family](builder, inner, sizes)
    if family in _UNCONSTRAINED_MATRICES:
        return _UNCONSTRAINED_MATRICES[family](builder, inner, sizes)
    n_sizes, size_of = UNCONSTRAINED_SIZES[family]
    return [size_of(builder, *inner[:n_sizes])]
