"""Reading and assigning parts of containers: `x[i]`, `x[idx]`, `x[a:b]`, in any combination."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX
from ulam.library import size_messages
from ulam.library.records import record
from ulam.library.statuses import FATAL
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.lowering import Lowering, Storage, handles, names
from ulam.passes.to_loops.shapes import check_assigned_size
from ulam.passes.to_loops.values import (
    Container,
    Value,
    for_each_element,
    in_buffer,
    materialize,
    peel,
    position,
    write,
)

OUT_OF_RANGE = size_messages.OUT_OF_RANGE.format("{0:int}", "{1}")


@record
class Selection:
    """What one index selects of a dimension: one position, or `size` positions given by `map`."""

    single: SSAValue | None  # position from 0
    size: SSAValue | None = None
    offset: SSAValue | None = None  # a range: position k is offset + k
    gather: Container | None = None  # an int array: position k is gather[k] - 1

    def position(self, low: Lowering, k: SSAValue) -> SSAValue:
        """The position in the dimension of the `k`-th selected element."""
        builder = low.builder
        if self.gather is not None:
            return builder.sub(builder.index_to_check(self.gather.at([k])), builder.i64(1))
        assert self.offset is not None
        return builder.add(self.offset, k)


def check_index(low: Lowering, index: SSAValue, size: SSAValue) -> SSAValue:
    """Throws unless 1 <= index <= size (i64); returns index - 1."""
    builder = low.builder
    zero_based = builder.sub(index, builder.i64(1))
    known_index, known_size = builder.known.get(index), builder.known.get(size)
    if known_index is not None and known_size is not None and 1 <= known_index <= known_size:
        return zero_based
    if low.in_range(index, size):
        return zero_based
    low.check(builder.cmpi("ult", zero_based, size), FATAL, OUT_OF_RANGE, index, size)
    return zero_based


def selections(
    low: Lowering, dims: Sequence[SSAValue], kinds: Sequence[str], operands: Sequence[SSAValue]
) -> list[Selection]:
    """Evaluates and checks the indices of an index list."""
    remaining = iter(operands)
    return [_selection(low, kind, size, remaining) for kind, size in zip(kinds, dims, strict=False)]


def _selection(low: Lowering, kind: str, size: SSAValue, operands) -> Selection:  # noqa: ANN001
    builder = low.builder
    one = builder.i64(1)
    if kind == "single":
        return Selection(check_index(low, low.size(next(operands)), size))
    if kind == "multiple":
        indices = low.container(next(operands))
        if not indices.cheap:
            indices = materialize(builder, indices)

        def checked(k: SSAValue, element: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            check_index(low, builder.index_to_check(element), size)
            return ()

        for_each_element(builder, indices, checked)
        return Selection(None, indices.dims[0], None, indices)
    if kind == "all":
        return Selection(None, size, builder.i64(0))
    lower = low.size(next(operands)) if kind in ("between", "from") else one
    upper = low.integer(next(operands)) if kind in ("between", "to") else size
    length = builder.add(builder.sub(upper, lower), one)
    if builder.known.get(length, 1) <= 0 or length not in builder.known:
        length = builder.value(arith.MaxSIOp, (length, builder.i64(0)), i64)
    empty = builder.cmpi("sgt", lower, upper)
    if builder.range_of(lower)[1] > INT_MAX:  # stands for a negative int then
        empty = builder.both(empty, builder.cmpi("sle", lower, builder.i64(INT_MAX)))
    # An upper bound that is the size is in range, or above no element; a lower one is outside of what is empty.
    for bound, is_given, is_inside in ((lower, kind != "to", False), (upper, kind != "from", upper is size)):
        if is_given and not is_inside and not low.in_range(bound, size):
            inside = builder.cmpi("ult", builder.sub(bound, one), size)
            low.check(builder.either(inside, empty), FATAL, OUT_OF_RANGE, bound, size)
    return Selection(None, length, builder.sub(lower, one))


@handles(stan.IndexOp)
def index(low: Lowering, op: stan.IndexOp) -> None:
    base = low.container(op.value)
    if not base.cheap and any(kind.data != "single" for kind in op.kinds):
        base = materialize(low.builder, base)
    chosen = selections(low, base.dims, names(op.kinds), op.indices)
    gathers_ok = all(s.gather is None or s.gather.data_only for s in chosen)
    singles_ok = all(s.single is None or low.is_data(s.single) for s in chosen)
    result = select(low, base, chosen, op.res.type)
    if isinstance(result, Container):
        result.data_only = base.data_only and gathers_ok and singles_ok
    low.define(op.res, result)


def select(low: Lowering, base: Container, chosen: Sequence[Selection], type_: Attribute) -> Value:
    """The part of `base` that `chosen` (an index list, perhaps shorter than the dimensions) selects."""
    builder = low.builder
    chosen = [*chosen, *(Selection(None, size, builder.i64(0)) for size in base.dims[len(chosen) :])]
    if all(s.single is not None for s in chosen):
        return base.at([s.single for s in chosen if s.single is not None])

    def source(indices: Sequence[SSAValue]) -> list[SSAValue]:
        remaining = iter(indices)
        return [s.single if s.single is not None else s.position(low, next(remaining)) for s in chosen]

    dims = [s.size for s in chosen if s.single is None and s.size is not None]
    variables = base.variables.union(*(s.gather.variables for s in chosen if s.gather is not None))
    if (part := _contiguous_part(low, base, chosen, type_, dims)) is not None:
        return part
    return Container(
        type_, dims, lambda indices: base.at(source(indices)), None, None, base.cheap, base.data_only, variables
    )


def _contiguous_part(
    low: Lowering, base: Container, chosen: Sequence[Selection], type_: Attribute, dims: list[SSAValue]
) -> Container | None:
    """The part as a view of the base's buffer, where its elements lie one after the other."""
    builder = low.builder
    if base.buffer is None or any(s.gather is not None for s in chosen):
        return None
    order = list(range(len(chosen)))
    if base.is_matrix_shaped:
        order[-1], order[-2] = order[-2], order[-1]
    in_memory = [chosen[k] for k in order]
    free = next((n for n, s in enumerate(in_memory) if s.single is None), len(in_memory))
    whole = all(_is_whole(low, s, base.dims[k]) for s, k in list(zip(in_memory, order, strict=True))[free + 1 :])
    if not whole:
        return None
    start = [s.single if s.single is not None else s.offset for s in chosen]
    offset = position(builder, base.type, base.dims, [s for s in start if s is not None])
    buffer = builder.view(base.buffer, offset)
    return in_buffer(builder, type_, dims, buffer, data_only=base.data_only, variables=base.variables)


def _is_whole(low: Lowering, selection: Selection, size: SSAValue) -> bool:
    return selection.single is None and selection.size is size and low.builder.known.get(selection.offset) == 0  # type: ignore[arg-type]


# ---------------------------------------------------------------- assignment


@handles(stan.AssignOp)
def assign(low: Lowering, op: stan.AssignOp) -> None:
    target = low.env[op.var]
    if not isinstance(target, Storage):
        raise NotSupportedError("assignment to this variable is not supported", op.location)
    value = low.value(op.value)
    kinds = names(op.kinds)
    if isinstance(value, Container) and target in value.variables:
        value = materialize(low.builder, value, copy=True)
    chosen = selections(low, target.dims, kinds, op.indices)
    store(low, target, chosen, value, peel(target.type, 0))


def store(low: Lowering, target: Storage, chosen: Sequence[Selection], value: Value, type_: Attribute) -> None:
    """`target[chosen] = value`, sizes checked."""
    builder = low.builder
    if not isinstance(value, Container):
        if not isinstance(value, SSAValue):
            raise NotSupportedError("assignment to variables of tuple type is not supported yet", builder.location)
        indices = [s.single for s in chosen if s.single is not None]
        where = position(builder, type_, target.dims, indices) if indices else builder.i64(0)
        if target.buffer.type.element != value.type:  # type: ignore[attr-defined]
            value = builder.to_real(value)
        builder.store(value, target.buffer, where)
        return
    chosen = [*chosen, *(Selection(None, size, builder.i64(0)) for size in target.dims[len(chosen) :])]
    free = [s for s in chosen if s.single is None]
    for selection, size in zip(free, value.dims, strict=True):
        assert selection.size is not None
        check_assigned_size(low, target.name, selection.size, size)
    base = in_buffer(builder, target.type, target.dims, target.buffer)
    part = _contiguous_part(low, base, chosen, value.type, [s.size for s in free if s.size is not None])
    if part is not None and part.buffer is not None:
        write(builder, value, part.buffer, initial=False)
        return

    def at(level: int, indices: list[SSAValue]) -> None:
        if level == len(free):
            remaining = iter(indices)
            where = [s.single if s.single is not None else s.position(low, next(remaining)) for s in chosen]
            builder.store(value.at(indices), target.buffer, position(builder, target.type, target.dims, where))
            return

        def body(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            at(level + 1, [*indices, k])
            return ()

        builder.for_loop(builder.i64(0), value.dims[level], body)

    at(0, [])
