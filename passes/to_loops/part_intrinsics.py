"""Library functions that give parts of containers, as indices would: see `intrinsics`."""

from __future__ import annotations

from ulam.dialects import stan
from ulam.library.statuses import FATAL
from ulam.passes.to_loops.indexing import Selection, check_index
from ulam.passes.to_loops.indexing import select as select_part
from ulam.passes.to_loops.intrinsics import as_container, intrinsic, size_of
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.operators import materialize_unless_cheap
from ulam.passes.to_loops.values import Container, Value


@intrinsic("head", "tail", "segment")
def parts(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    name = op.callee.data
    size = value.dims[0]
    count = size_of(low, arguments[-1], name)
    if name == "head":
        start = builder.i64(0)
    elif name == "tail":
        start = builder.sub(size, count)
    else:
        start = builder.sub(builder.index_to_check(arguments[1]), builder.i64(1))  # type: ignore[arg-type]
        if not low.in_library():
            low.check(
                builder.cmpi("slt", start, size),
                FATAL,
                "segment: the first element asked for is {0}, but there are {1}",
                builder.add(start, builder.i64(1)),
                size,
            )
    end = builder.add(start, count)
    nonnegative = builder.cmpi("sge", start, builder.i64(0))
    low.check(
        builder.both(nonnegative, builder.cmpi("sle", end, size)),
        FATAL,
        f"{name}: elements up to {{0}} asked for, but there are {{1}}",
        end,
        size,
    )
    return _select(low, op, value, [Selection(None, count, start)])


@intrinsic("row", "col")
def row_or_column(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    builder = low.builder
    which = 0 if op.callee.data == "row" else 1
    n = check_index(low, builder.index_to_check(arguments[1]), value.dims[which])  # type: ignore[arg-type]
    chosen = [Selection(n)] if which == 0 else [Selection(None, value.dims[0], builder.i64(0)), Selection(n)]
    return _select(low, op, value, chosen)


@intrinsic("reverse")
def reverse(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """An array with its elements, of any type, in the opposite order."""
    builder = low.builder
    assert op.res is not None
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    last = builder.sub(value.dims[0], builder.i64(1))
    return Container(
        op.res.type,
        value.dims,
        lambda idx: value.at([builder.sub(last, idx[0]), *idx[1:]]),
        None,
        None,
        True,
        value.data_only,
        value.variables,
    )


@intrinsic("block", "sub_row", "sub_col")
def block(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    numbers = [builder.index_to_check(a) for a in arguments[1:]]  # type: ignore[arg-type]
    row, column = numbers[0], numbers[1]
    one = builder.i64(1)
    name = op.callee.data
    heights = {"block": (numbers[2], numbers[-1]), "sub_row": (one, numbers[2]), "sub_col": (numbers[2], one)}[name]
    chosen = []
    for start, length, size in zip((row, column), heights, value.dims, strict=True):
        first = builder.sub(start, one)
        if length is not one:
            low.check_size(length, f"{name}: a length must not be negative")
        inside = builder.both(
            builder.cmpi("sge", first, builder.i64(0)), builder.cmpi("sle", builder.add(first, length), size)
        )
        low.check(
            inside,
            FATAL,
            f"{name}: position {{0}} with length {{1}} is out of range; the size is {{2}}",
            start,
            length,
            size,
        )
        chosen.append(Selection(None, length, first))
    if name == "sub_row":
        chosen[0] = Selection(builder.sub(row, one))
    elif name == "sub_col":
        chosen[1] = Selection(builder.sub(column, one))
    return _select(low, op, value, chosen)


def _select(low: Lowering, op: stan.CallOp, value: Container, chosen: list[Selection]) -> Value:
    assert op.res is not None
    result = select_part(low, value, chosen, op.res.type)
    if isinstance(result, Container):
        positions = [s for c in chosen for s in (c.single, c.offset, c.size) if s is not None]
        result.data_only = value.data_only and all(low.is_data(p) for p in positions)
    return result
