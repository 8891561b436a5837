"""Values whose structure is known from a type or from another value: unassigned ones, and what loops carry.

A loop carries scalars and the buffers of containers: sizes do not change, but for a function's result, which takes the
sizes of what is returned; then they are carried, too. Tuples are taken apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.library.size_messages import ASSIGNED_SIZES
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.values import Container, Tuple, Value, broadcast, in_buffer, rank_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr


def size_count(type_: Attribute, location: LocationAttr | None) -> int:
    """How many sizes a value of this type has, as `stan.declare` lists them."""
    if isinstance(type_, stan.TupleType):
        return sum(size_count(field, location) for field in type_.elements)
    refuse_arrays_of_tuples(type_, location)
    return rank_of(type_)


def refuse_arrays_of_tuples(type_: Attribute, location: LocationAttr | None) -> None:
    if isinstance(type_, stan.ArrayType) and isinstance(type_.element, stan.TupleType):
        raise NotSupportedError("arrays of tuples are not supported yet", location)


def unassigned_value(low: Lowering, type_: Attribute, sizes: Sequence[SSAValue]) -> Value:
    """What a variable holds before it is assigned. Without sizes: of no element, and of any size later."""
    needed = size_count(type_, low.builder.location)
    if sizes and len(sizes) < needed and not isinstance(type_, stan.TupleType):
        sizes = [*sizes, sizes[-1]]  # square types
    varies = len(sizes) < needed
    iterator = iter([low.builder.i64(0)] * needed if varies else sizes)
    return _unassigned(low, type_, iterator, varies)


def _unassigned(low: Lowering, type_: Attribute, sizes: Iterator[SSAValue], varies: bool) -> Value:
    if isinstance(type_, stan.TupleType):
        return Tuple(type_, [_unassigned(low, field, sizes, varies) for field in type_.elements])
    if not rank_of(type_):
        return low.unassigned(type_)
    dims = [next(sizes) for _ in range(rank_of(type_))]
    result = broadcast(low.builder, type_, dims, low.unassigned(type_), True)
    result.sizes_vary = varies
    return result


def check_shape(low: Lowering, name: str, value: Value, sizes: Sequence[SSAValue]) -> Value:
    """The size check of a whole assignment; what is returned has the sizes declared.

    The value itself keeps its own: it may be used where those declared are not known, behind the loop for example.
    """
    if isinstance(value, Container) and len(sizes) < len(value.dims):
        sizes = [*sizes, sizes[-1]]  # square types
    return _checked_shape(low, name, value, iter(sizes))


def _checked_shape(low: Lowering, name: str, value: Value, sizes: Iterator[SSAValue]) -> Value:
    if isinstance(value, Tuple):
        fields = [_checked_shape(low, f"{name}.{n}", field, sizes) for n, field in enumerate(value.fields, 1)]
        return Tuple(value.type, fields)
    if isinstance(value, Container):
        declared = [next(sizes) for _ in value.dims]
        for size, found in zip(declared, value.dims, strict=True):
            check_assigned_size(low, name, size, found)
        return replace(value, dims=declared)
    return value


def check_assigned_size(low: Lowering, name: str, left: SSAValue, right: SSAValue) -> None:
    """Throws unless a size of a value is that of the variable, or the part of it, that it is assigned to."""
    if (function := low.called_function()) is not None:
        low.check_equal_size(function, left, right)
    else:
        low.check_equal(left, right, ASSIGNED_SIZES.format(name, "{0}", "{1}"))


# ---------------------------------------------------------------- loops and branches


def carried_parts(shape: Value, value: Value) -> list[SSAValue]:
    """What a loop carries of `value`, if `shape` is what it began with."""
    if isinstance(shape, Container):
        assert isinstance(value, Container) and value.buffer is not None
        return [value.buffer, *(value.dims if shape.sizes_vary else ())]
    if isinstance(shape, Tuple):
        assert isinstance(value, Tuple)
        return [p for s, f in zip(shape.fields, value.fields, strict=True) for p in carried_parts(s, f)]
    assert isinstance(value, SSAValue)
    return [value]


def from_carried_parts(low: Lowering, shape: Value, parts: Iterator[SSAValue]) -> Value:
    """The value that the parts stand for."""
    if isinstance(shape, Container):
        buffer = next(parts)
        dims = [next(parts) for _ in shape.dims] if shape.sizes_vary else shape.dims
        result = in_buffer(low.builder, shape.type, dims, buffer)
        result.sizes_vary = shape.sizes_vary
        return result
    if isinstance(shape, Tuple):
        return Tuple(shape.type, [from_carried_parts(low, field, parts) for field in shape.fields])
    return next(parts)


def sizes_vary_as(value: Value, *others: Value) -> Value:
    """`value`, which is one of `others`: its sizes may vary if theirs may."""
    if isinstance(value, Container):
        value.sizes_vary = any(isinstance(o, Container) and o.sizes_vary for o in others)
    elif isinstance(value, Tuple):
        for n, field in enumerate(value.fields):
            sizes_vary_as(field, *(o.fields[n] for o in others if isinstance(o, Tuple)))
    return value
