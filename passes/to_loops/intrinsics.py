"""Library functions that rearrange, measure or build containers: the lowering knows them itself.

`INTRINSICS[name](low, op, arguments)` gives the result, or NotImplemented if the arguments are not of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.library.catalog import KEPT_WITH
from ulam.library.statuses import FATAL, REJECTION
from ulam.passes.builder import BUFFER_INT
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.operators import (
    apply_elementwise,
    dot_product,
    materialize_unless_cheap,
    product,
    promote_value,
    scalar_add,
    scalar_mul,
    scalar_pow,
    scalar_sub,
    transposed,
)
from ulam.passes.to_loops.values import (
    Container,
    Value,
    array_type,
    broadcast,
    buffer_type,
    for_each_element,
    in_buffer,
    materialize,
    position,
    total,
    write,
)

Intrinsic = Callable[[Lowering, stan.CallOp, list[Value]], "Value | None"]
INTRINSICS: dict[str, Intrinsic] = {}


def intrinsic(*names: str) -> Callable[[Intrinsic], Intrinsic]:
    """Registers a function under Stan's names."""

    def register(function: Intrinsic) -> Intrinsic:
        for name in names:
            INTRINSICS[name] = function
        return function

    return register


@intrinsic(KEPT_WITH)
def _kept_with(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value | None:
    return arguments[0]


def as_container(value: Value) -> Container:
    assert isinstance(value, Container)
    return value


def size_of(low: Lowering, value: Value, what: str = "to_matrix") -> SSAValue:
    """An int argument that is a size: checked not to be negative, i64."""
    assert isinstance(value, SSAValue)
    size = low.builder.index_to_check(value)
    low.check_size(size, f"{low.subject() or what}: a size must not be negative")
    return size


# ---------------------------------------------------------------- sizes


@intrinsic("size", "num_elements", "rows", "cols")
def sizes(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    value = arguments[0]
    name = op.callee.data
    if not isinstance(value, Container):
        return builder.i32(1)
    one = builder.i64(1)
    if name == "num_elements":
        size = total(builder, value.dims)
    elif name == "size":
        size = value.dims[0] if value.array_rank else total(builder, value.dims)
    elif len(value.dims) == 2:
        size = value.dims[0 if name == "rows" else 1]
    else:
        is_row = isinstance(value.type, stan.RowVectorType)
        size = one if is_row == (name == "rows") else value.dims[0]
    return builder.truncate(size)


@intrinsic("dims")
def dims(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """Sizes of all dimensions; a vector has one column, too, and a row vector one row."""
    builder = low.builder
    assert op.res is not None
    value = arguments[0]
    found = list(value.dims) if isinstance(value, Container) else []
    if isinstance(value, Container) and isinstance(value.inner, stan.VectorType):
        found.append(builder.i64(1))
    elif isinstance(value, Container) and isinstance(value.inner, stan.RowVectorType):
        found.insert(value.array_rank, builder.i64(1))
    out = builder.alloc(builder.i64(len(found)), BUFFER_INT)
    for n, size in enumerate(found):
        builder.store(builder.truncate(size), out, builder.i64(n), initial=True)
    return in_buffer(builder, op.res.type, [builder.i64(len(found))], out, data_only=all(low.is_data(s) for s in found))


# ---------------------------------------------------------------- reductions


@intrinsic("sum")
def sum_(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    value = arguments[0]
    if not isinstance(value, Container):
        return value
    is_int = value.element_type == i32
    zero = builder.i32(0) if is_int else builder.f64(0.0)

    def body(_: SSAValue, element: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if is_int:
            return (builder.add(carried[0], element),)
        return (builder.addf(carried[0], element, reassociate=True),)

    return for_each_element(builder, value, body, [zero])[0]


@intrinsic("min", "max")
def extremum(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    smaller = op.callee.data == "min"

    def better(a: SSAValue, b: SSAValue) -> SSAValue:
        if a.type == i32:
            return builder.select(builder.cmpi("slt" if smaller else "sgt", a, b), a, b)
        return builder.select(builder.cmpf("olt" if smaller else "ogt", a, b), a, b)

    if len(arguments) == 2:
        a, b = arguments
        assert isinstance(a, SSAValue) and isinstance(b, SSAValue)
        return better(a, b)
    value = as_container(arguments[0])
    is_int = value.element_type == i32
    if is_int:
        ok = builder.cmpi("sgt", total(builder, value.dims), builder.i64(0))
        low.check(ok, FATAL, f"{op.callee.data}: the container must not be empty")
        start = builder.i32(INT_MAX if smaller else INT_MIN)
    else:
        start = builder.f64(float("inf") if smaller else float("-inf"))
    return for_each_element(builder, value, lambda _, x, carried: (better(x, carried[0]),), [start])[0]


@intrinsic("dot_product")
def dot(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    return dot_product(low, as_container(arguments[0]), as_container(arguments[1]))


# ---------------------------------------------------------------- operators by name


@intrinsic("add", "subtract", "elt_multiply", "elt_divide", "divide", "pow")
def operator_function(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    functions = {
        "add": lambda a, b: scalar_add(builder, a, b),
        "subtract": lambda a, b: scalar_sub(builder, a, b),
        "elt_multiply": lambda a, b: scalar_mul(builder, a, b),
        "elt_divide": lambda a, b: builder.divf(builder.to_real(a), builder.to_real(b)),
        "divide": lambda a, b: builder.divf(builder.to_real(a), builder.to_real(b)),
        "pow": lambda a, b: scalar_pow(builder, a, b),
    }
    assert op.res is not None
    name = op.callee.data
    if name in ("divide", "elt_divide") and isinstance(op.res.type, stan.IntType):
        return NotImplemented
    return apply_elementwise(low, name, op.res.type, arguments, functions[name])


@intrinsic("multiply")
def multiply(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    assert op.res is not None
    return product(low, arguments[0], arguments[1], op.res.type)


@intrinsic("minus", "plus")
def sign(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    assert op.res is not None
    if op.callee.data == "plus":
        return arguments[0]
    builder = low.builder
    return apply_elementwise(
        low,
        "minus",
        op.res.type,
        arguments,
        lambda x: scalar_sub(builder, builder.i32(0), x) if x.type == i32 else builder.negf(x),
    )


@intrinsic("abs")
def absolute(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    assert op.res is not None

    def element(x: SSAValue) -> SSAValue:
        if x.type == i32:
            return builder.select(builder.cmpi("slt", x, builder.i32(0)), builder.sub(builder.i32(0), x), x)
        return builder.math("abs", x)

    return apply_elementwise(low, "abs", op.res.type, arguments, element)


@intrinsic("transpose")
def transpose(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    assert op.res is not None
    return transposed(as_container(arguments[0]), op.res.type)


@intrinsic("logical_negation", "int_step")
def int_predicates(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    x = arguments[0]
    assert isinstance(x, SSAValue)
    if op.callee.data == "logical_negation":
        return builder.boolean(builder.invert(builder.truth(x)))
    positive = builder.cmpi("sgt", x, builder.i32(0)) if x.type == i32 else builder.cmpf("ogt", x, builder.f64(0.0))
    return builder.boolean(positive)


@intrinsic("to_int")
def to_int(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """A real of the data without its fraction; what no int can be is an error, also in elements that nobody reads."""
    builder = low.builder
    assert op.res is not None
    location = low.error_location()

    def element(x: SSAValue) -> SSAValue:
        if x.type == i32:
            return x
        lowest, highest = builder.f64(float(INT_MIN)), builder.f64(float(INT_MAX))
        inside = builder.both(builder.cmpf("oge", x, lowest), builder.cmpf("ole", x, highest))
        message = f"to_int: x is {{0}}, but must be between {INT_MIN} and {INT_MAX}"
        low.check(inside, REJECTION, message, x, location=location)
        return builder.value(arith.FPToSIOp, (x,), i32)

    result = apply_elementwise(low, "to_int", op.res.type, arguments, element)
    return low.own(result)


# ---------------------------------------------------------------- building


@intrinsic("rep_vector", "rep_row_vector", "rep_matrix", "rep_array")
def repeat(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    assert op.res is not None
    value, *counts = arguments
    new_dims = [size_of(low, c, op.callee.data) for c in counts]
    if isinstance(value, SSAValue):
        scalar = value
        if op.callee.data != "rep_array":
            scalar = builder.to_real(value)
        return broadcast(builder, op.res.type, new_dims, scalar, low.is_data(scalar))
    value = materialize_unless_cheap(low, as_container(value))
    if op.callee.data == "rep_matrix":
        is_row = isinstance(value.type, stan.RowVectorType)
        full = [new_dims[0], value.dims[0]] if is_row else [value.dims[0], new_dims[0]]
        at = (lambda ij: value.at([ij[1]])) if is_row else (lambda ij: value.at([ij[0]]))
        return Container(op.res.type, full, at, None, None, True, value.data_only, value.variables)
    skip = len(new_dims)
    return Container(
        op.res.type,
        [*new_dims, *value.dims],
        lambda idx: value.at(idx[skip:]),
        None,
        None,
        True,
        value.data_only,
        value.variables,
    )


@intrinsic("fill_like")
def fill_like(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """A container of the type and sizes of another, with a scalar for each element."""
    shape, scalar = as_container(arguments[0]), arguments[1]
    assert isinstance(scalar, SSAValue)
    return broadcast(low.builder, shape.type, shape.dims, scalar, low.is_data(scalar))


@intrinsic("sized_as")
def sized_as(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """The first container, which must have the sizes of the second."""
    first, second = (as_container(a) for a in arguments)
    low.check_equal_sizes(op.callee.data, first, second)
    return first


@intrinsic("to_vector", "to_row_vector", "to_array_1d")
def flatten(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    assert op.res is not None
    value = as_container(arguments[0])
    if op.callee.data != "to_array_1d" or isinstance(op.res.type.element, stan.RealType):  # type: ignore[union-attr]
        value = value if _int_result(op) else _of_reals(low, value)
    if len(value.dims) == 1:
        return Container(
            op.res.type, value.dims, value.at, value.linear, value.buffer, value.cheap, value.data_only, value.variables
        )
    if value.linear is None:
        value = materialize(builder, value)
    linear = value.linear
    assert linear is not None
    count = total(builder, value.dims)
    if value.buffer is not None:
        return in_buffer(
            builder, op.res.type, [count], value.buffer, data_only=value.data_only, variables=value.variables
        )
    return Container(
        op.res.type, [count], lambda idx: linear(idx[0]), linear, None, value.cheap, value.data_only, value.variables
    )


def _of_reals(low: Lowering, value: Container) -> Container:
    """An array of ints as one of reals."""
    if value.element_type != i32:
        return value
    return as_container(promote_value(low.builder, value, array_type(value.array_rank, stan.REAL)))


def _int_result(op: stan.CallOp) -> bool:
    type_ = op.res.type  # type: ignore[union-attr]
    return isinstance(type_, stan.ArrayType) and isinstance(type_.element, stan.IntType)


def _as_matrix(low: Lowering, value: Container, type_: Attribute) -> Container:
    """`to_matrix(x)`: the sizes stay; a vector is one column, a row vector one row."""
    if len(value.dims) == 2:
        linear = value.linear if value.is_matrix_shaped else None
        buffer = value.buffer if value.is_matrix_shaped else None
        return Container(type_, value.dims, value.at, linear, buffer, value.cheap, value.data_only, value.variables)
    one = low.builder.i64(1)
    is_row = isinstance(value.type, stan.RowVectorType)
    return Container(
        type_,
        [one, value.dims[0]] if is_row else [value.dims[0], one],
        lambda ij: value.at([ij[1 if is_row else 0]]),
        value.linear,
        value.buffer,
        value.cheap,
        value.data_only,
        value.variables,
    )


@intrinsic("to_array_2d")
def to_array_2d(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    assert op.res is not None
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    return Container(op.res.type, value.dims, value.at, None, None, value.cheap, value.data_only, value.variables)


@intrinsic("to_matrix")
def to_matrix(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    assert op.res is not None
    value = _of_reals(low, as_container(arguments[0]))
    if len(arguments) == 1:
        return _as_matrix(low, value, op.res.type)
    rows, columns = size_of(low, arguments[1]), size_of(low, arguments[2])
    count = total(builder, value.dims)
    low.check_equal(count, builder.mul(rows, columns), "to_matrix: {0} elements do not fill a matrix of {1}")
    value = value if value.linear is not None else materialize(builder, value)
    linear = value.linear
    assert linear is not None
    order = arguments[3] if len(arguments) == 4 else builder.i32(1)
    assert isinstance(order, SSAValue)
    by_column = builder.known.get(order)
    if by_column is None:
        column_major = builder.truth(order)

        def in_either_order(ij: Sequence[SSAValue]) -> SSAValue:
            down = builder.add(builder.mul(ij[1], rows), ij[0])
            across = builder.add(builder.mul(ij[0], columns), ij[1])
            return linear(builder.select(column_major, down, across))

        data_only = value.data_only and low.is_data(order)
        return Container(
            op.res.type, [rows, columns], in_either_order, None, None, value.cheap, data_only, value.variables
        )
    if not by_column:
        return Container(
            op.res.type,
            [rows, columns],
            lambda ij: linear(builder.add(builder.mul(ij[0], columns), ij[1])),
            None,
            None,
            value.cheap,
            value.data_only,
            value.variables,
        )
    if value.buffer is not None:
        return in_buffer(
            builder, op.res.type, [rows, columns], value.buffer, data_only=value.data_only, variables=value.variables
        )
    return Container(
        op.res.type,
        [rows, columns],
        lambda ij: linear(builder.add(builder.mul(ij[1], rows), ij[0])),
        linear,
        None,
        value.cheap,
        value.data_only,
        value.variables,
    )


@intrinsic("append_row", "append_col", "append_array")
def append(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    assert op.res is not None
    type_ = op.res.type
    one = builder.i64(1)
    if len(list(op.arguments)) != 2:
        return NotImplemented
    if rank_two(type_) and not isinstance(type_, stan.ArrayType):
        return _append_matrices(low, op, arguments)
    parts: list[Container] = []
    for argument in arguments:
        if isinstance(argument, Container):
            parts.append(argument)
        else:
            assert isinstance(argument, SSAValue)
            parts.append(broadcast(builder, type_, [one], builder.to_real(argument), low.is_data(argument)))
    first, second = parts
    for x, y in zip(first.dims[1:], second.dims[1:], strict=True):
        low.check_equal_size(op.callee.data, x, y)
    full = [builder.add(first.dims[0], second.dims[0]), *first.dims[1:]]
    result = in_buffer(
        builder,
        type_,
        full,
        builder.alloc(total(builder, full), buffer_type(type_)),
        data_only=all(low.is_data(p) for p in parts),
    )
    assert result.buffer is not None
    write(builder, first, result.buffer, initial=True)
    write(builder, second, builder.view(result.buffer, total(builder, first.dims)), initial=True)
    return result


def rank_two(type_: object) -> bool:
    """Whether a type is matrix-shaped."""
    return isinstance(type_, stan.MatrixType)


def _append_matrices(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    by_row = op.callee.data == "append_row"
    one = builder.i64(1)
    shapes: list[tuple[list[SSAValue], Container]] = []
    for argument in arguments:
        value = as_container(argument)
        if len(value.dims) == 2:
            shapes.append((value.dims, value))
        elif isinstance(value.type, stan.RowVectorType):
            shapes.append(([one, value.dims[0]], value))
        else:
            shapes.append(([value.dims[0], one], value))
    (a_dims, a), (b_dims, b) = shapes
    across = 1 if by_row else 0
    low.check_equal_size(op.callee.data, a_dims[across], b_dims[across])
    along = builder.add(a_dims[1 - across], b_dims[1 - across])
    full = [along, a_dims[1]] if by_row else [a_dims[0], along]
    result = in_buffer(
        builder, stan.MATRIX, full, builder.alloc(total(builder, full)), data_only=low.is_data(a) and low.is_data(b)
    )
    for part_dims, part, offset in ((a_dims, a, builder.i64(0)), (b_dims, b, a_dims[1 - across])):

        def column(
            j: SSAValue,
            _: Sequence[SSAValue],
            part: Container = part,
            part_dims: list[SSAValue] = part_dims,
            offset: SSAValue = offset,
        ) -> Sequence[SSAValue]:
            def row(i: SSAValue, __: Sequence[SSAValue]) -> Sequence[SSAValue]:
                element = (
                    part.at([i, j])
                    if len(part.dims) == 2
                    else part.at([j if isinstance(part.type, stan.RowVectorType) else i])
                )
                where = [builder.add(i, offset), j] if by_row else [i, builder.add(j, offset)]
                builder.store(element, result.buffer, position(builder, stan.MATRIX, full, where), initial=True)  # type: ignore[arg-type]
                return ()

            builder.for_loop(builder.i64(0), part_dims[0], row)
            return ()

        builder.for_loop(builder.i64(0), part_dims[1], column)
    return result


@intrinsic("diag_matrix")
def diag_matrix(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    n = value.dims[0]

    def at(ij: Sequence[SSAValue]) -> SSAValue:
        return builder.select(builder.cmpi("eq", ij[0], ij[1]), value.at([ij[0]]), builder.f64(0.0))

    return materialize(
        builder, Container(stan.MATRIX, [n, n], at, data_only=value.data_only, variables=value.variables)
    )


@intrinsic("diagonal")
def diagonal(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    builder = low.builder
    value = materialize_unless_cheap(low, as_container(arguments[0]))
    n = builder.value(arith.MinSIOp, (value.dims[0], value.dims[1]), i64)
    return Container(
        stan.VECTOR, [n], lambda i: value.at([i[0], i[0]]), None, None, True, value.data_only, value.variables
    )


@intrinsic("target")
def target(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    raise NotSupportedError("target() is not supported yet", op.location)
