"""What a Stan value has become below the `stan` dialect: a scalar, a container, or a tuple.

A scalar is an SSA value (i32 or f64). A container is a shape and a rule that gives its elements: either a buffer or a
computation that is written where an element is asked for. Chains of element-wise operations thus become one loop body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import rt
from ulam.dialects.stan import type_attributes
from ulam.library.records import record
from ulam.passes.builder import BUFFER_INT, BUFFER_REAL, Builder
from ulam.passes.errors import NotSupportedError

ElementAt = Callable[[Sequence[SSAValue]], SSAValue]
ElementOf = Callable[[SSAValue], SSAValue]


class BlockProducer(Protocol):
    """Computes elements of a one-dimensional container block by block, so that they are used while in the cache."""

    def begin(self, first: SSAValue, end: SSAValue) -> None:
        """Writes the code that computes the elements from `first` up to `end`, excluded."""
        ...


BLOCK = 256
"""Elements of a block: 2 kB each for value and adjoint."""


@record(eq=False)
class Container:
    """A vector, row vector, matrix or array.

    `dims`: i64 sizes, array dimensions outermost first, then length, or rows and columns.
    `at(indices)` (from 0, as many as `dims`) writes the code that computes an element; `linear(k)` the same by
    position in element order (array dimensions first slowest, then column by column), None where that is no cheaper.
    `buffer`: the elements lie there, in element order, without gaps. `cheap`: reading an element twice costs no more
    than a load. `data_only`: depends on data alone.
    """

    type: Attribute
    dims: list[SSAValue]
    at: ElementAt
    linear: ElementOf | None = None
    buffer: SSAValue | None = None
    cheap: bool = False
    data_only: bool = False
    variables: frozenset[object] = field(default_factory=frozenset)
    """Variables (by identity) whose storage the elements are read from."""
    sizes_vary: bool = False
    """Not yet assigned, or perhaps not, and without declared sizes: the result of a function."""
    producers: tuple[BlockProducer, ...] = ()
    """What must have computed a block of elements before they are asked for: see `for_each_position`."""

    @property
    def array_rank(self) -> int:
        return self.type.rank.data if isinstance(self.type, type_attributes.ArrayType) else 0

    @property
    def inner(self) -> Attribute:
        """The type below the array dimensions."""
        return self.type.element if isinstance(self.type, type_attributes.ArrayType) else self.type

    @property
    def element_type(self) -> Attribute:
        """f64 or i32."""
        return element_type(self.type)

    @property
    def is_matrix_shaped(self) -> bool:
        return isinstance(self.inner, type_attributes.MatrixType)


@record(eq=False)
class Tuple:
    """A tuple of values."""

    type: Attribute
    fields: list[Value]


Value = SSAValue | Container | Tuple


def inner_rank(type_: Attribute) -> int:
    """Dimensions of a type that is not an array: matrix 2, vectors 1, scalars 0."""
    if isinstance(type_, type_attributes.MatrixType):
        return 2
    return 1 if isinstance(type_, type_attributes.VectorType | type_attributes.RowVectorType) else 0


def rank_of(type_: Attribute) -> int:
    """Dimensions of a type, array dimensions included."""
    if isinstance(type_, type_attributes.ArrayType):
        return type_.rank.data + inner_rank(type_.element)
    return inner_rank(type_)


_COMPLEX_TYPES = (
    type_attributes.ComplexType,
    type_attributes.ComplexVectorType,
    type_attributes.ComplexRowVectorType,
    type_attributes.ComplexMatrixType,
)


def element_type(type_: Attribute) -> Attribute:
    """Low-level type of the elements: i32 for arrays of int, else f64."""
    base = type_.element if isinstance(type_, type_attributes.ArrayType) else type_
    if isinstance(base, _COMPLEX_TYPES):
        raise NotSupportedError("complex numbers are not supported yet")
    return i32 if isinstance(base, type_attributes.IntType) else f64


def peel(type_: Attribute, depth: int) -> Attribute:
    """The type of `x[i1, ..., i_depth]`, single indices all."""
    if depth == 0:
        return type_
    if isinstance(type_, type_attributes.ArrayType):
        rank = type_.rank.data
        if depth < rank:
            return array_type(rank - depth, type_.element)
        return peel(type_.element, depth - rank)
    if isinstance(type_, type_attributes.MatrixType):
        return type_attributes.ROW_VECTOR if depth == 1 else type_attributes.REAL
    return type_attributes.REAL


def array_type(rank: int, element: Attribute) -> Attribute:
    """`array[...] element` of the given rank; `element` itself for rank 0."""
    return type_attributes.ArrayType(IntAttr(rank), element) if rank else element


def buffer_type(type_: Attribute) -> rt.BufferType:
    """The type of a buffer for the elements of a Stan type."""
    return BUFFER_INT if element_type(type_) == i32 else BUFFER_REAL


def total(builder: Builder, dims: Sequence[SSAValue]) -> SSAValue:
    """Number of elements, which surely fits into 64 bits: see `Builder.new_shape`."""
    if len(dims) > 1 and builder.new_shape is not None:
        builder.new_shape(dims)
    result = builder.i64(1)
    for size in dims:
        result = builder.mul(result, size)
    return result


def position(builder: Builder, type_: Attribute, dims: Sequence[SSAValue], indices: Sequence[SSAValue]) -> SSAValue:
    """Where element `indices` lies in element order."""
    inner = inner_rank(type_.element if isinstance(type_, type_attributes.ArrayType) else type_)
    if inner == 2:
        order = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
    else:
        order = list(range(len(dims)))
    result: SSAValue | None = None
    for k in order:
        result = indices[k] if result is None else builder.add(builder.mul(result, dims[k]), indices[k])
    assert result is not None
    return result


def in_buffer(
    builder: Builder,
    type_: Attribute,
    dims: Sequence[SSAValue],
    buffer: SSAValue,
    *,
    data_only: bool = False,
    variables: frozenset[object] = frozenset(),
) -> Container:
    """The container whose elements lie in `buffer`."""
    dims = list(dims)
    return Container(
        type_,
        dims,
        at=lambda indices: builder.load(buffer, position(builder, type_, dims, indices)),
        linear=lambda k: builder.load(buffer, k),
        buffer=buffer,
        cheap=True,
        data_only=data_only,
        variables=variables,
    )


def broadcast(
    builder: Builder, type_: Attribute, dims: Sequence[SSAValue], value: SSAValue, data_only: bool
) -> Container:
    """A container all of whose elements are `value`."""
    return Container(
        type_, list(dims), at=lambda _: value, linear=lambda _: value, cheap=True, data_only=data_only)  # fmt: skip


def for_each_element(
    builder: Builder,
    container: Container,
    body: Callable[[SSAValue, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
    initial: Sequence[SSAValue] = (),
    *,
    cold: bool = False,
) -> Sequence[SSAValue]:
    """A loop over all elements in element order; `body(position, element, carried)`."""
    return for_each_position(
        builder, [container], lambda k, values, carried: body(k, values[0], carried), initial, cold=cold)  # fmt: skip


def for_each_position(
    builder: Builder,
    containers: Sequence[Container],
    body: Callable[[SSAValue, list[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
    initial: Sequence[SSAValue] = (),
    *,
    cold: bool = False,
) -> Sequence[SSAValue]:
    """A loop over the elements of containers of equal shape; one flat loop where all of them can be read flat."""
    first = containers[0]
    producers = {id(p): p for c in containers for p in c.producers}
    if producers:
        return _for_each_block(builder, containers, list(producers.values()), body, initial)
    if len(first.dims) == 1 or all(c.linear is not None for c in containers):

        def flat(k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            values = [c.linear(k) if c.linear is not None else c.at([k]) for c in containers]
            return body(k, values, carried)

        return builder.for_loop(builder.i64(0), total(builder, first.dims), flat, initial, cold=cold)

    order = list(range(len(first.dims)))
    if first.is_matrix_shaped:
        order[-1], order[-2] = order[-2], order[-1]

    def nest(level: int, indices: dict[int, SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if level == len(order):
            full = [indices[k] for k in range(len(order))]
            return body(position(builder, first.type, first.dims, full), [c.at(full) for c in containers], carried)
        k = order[level]
        return builder.for_loop(
            builder.i64(0),
            first.dims[k],
            lambda i, inner: nest(level + 1, {**indices, k: i}, inner),
            carried,
            cold=cold,
        )

    return nest(0, {}, initial)


def _for_each_block(
    builder: Builder,
    containers: Sequence[Container],
    producers: Sequence[BlockProducer],
    body: Callable[[SSAValue, list[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
    initial: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    """The loop of `for_each_position` over blocks: what producers give is computed for a block, then used."""
    count = total(builder, containers[0].dims)
    size = builder.i64(BLOCK)

    def block(number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        first = builder.mul(number, size)
        end = builder.value(arith.MinSIOp, (builder.add(first, size), count), i64)
        for producer in producers:
            producer.begin(first, end)

        def element(k: SSAValue, inner: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return body(k, [c.linear(k) if c.linear is not None else c.at([k]) for c in containers], inner)

        return builder.for_loop(first, end, element, carried)

    blocks = builder.value(
        arith.ShRSIOp, (builder.add(count, builder.i64(BLOCK - 1)), builder.i64(BLOCK.bit_length() - 1)), i64
    )
    return builder.for_loop(builder.i64(0), blocks, block, initial)


def materialize(builder: Builder, container: Container, *, copy: bool = False) -> Container:
    """The same container with its elements in a buffer; with `copy`, in memory of its own."""
    if container.buffer is not None and not copy:
        return container
    count = total(builder, container.dims)
    buffer = builder.alloc(count, buffer_type(container.type))
    write(builder, container, buffer, initial=True)
    return in_buffer(builder, container.type, container.dims, buffer, data_only=container.data_only)


def write(builder: Builder, container: Container, buffer: SSAValue, *, initial: bool) -> None:
    """Writes all elements to `buffer`, in element order."""
    if container.buffer is not None:
        builder.copy(buffer, container.buffer, total(builder, container.dims), initial=initial)
        return

    def body(k: SSAValue, element: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        builder.store(element, buffer, k, initial=initial)
        return ()

    for_each_element(builder, container, body)
