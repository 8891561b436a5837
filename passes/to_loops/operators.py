"""Operators and literals of the `stan` dialect, on scalars and containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, f64, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.scalar_ops import COMPARISONS
from ulam.library.size_messages import FACTOR_SIZES, LITERAL
from ulam.library.statuses import FATAL
from ulam.passes.builder import Builder
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.columns import add_columns, columns_in_a_row, sum_of
from ulam.passes.to_loops.kernel_calls import buffer_of, call_kernel, mdivide_left, mdivide_right
from ulam.passes.to_loops.lowering import Lowering, all_scalar, handles, is_density, is_requirement
from ulam.passes.to_loops.values import (
    BLOCK,
    Container,
    Tuple,
    Value,
    broadcast,
    buffer_type,
    element_type,
    for_each_position,
    in_buffer,
    materialize,
    position,
    total,
    write,
)

BINARY = stan.BINARY_OPERATORS
UNARY = stan.UNARY_OPERATORS
ScalarFunction = Callable[..., SSAValue]


# ---------------------------------------------------------------- literals


@handles(stan.ConstantOp)
def constant(low: Lowering, op: stan.ConstantOp) -> None:
    value = op.value
    if isinstance(value, FloatAttr):
        low.env[op.res] = low.builder.f64(value.value.data)
    elif isinstance(value, IntegerAttr):
        low.env[op.res] = low.builder.i32(value.value.data)
    # Strings are read by print from the op itself.


@handles(stan.PromoteOp)
def promote(low: Lowering, op: Operation) -> None:
    value = low.value(op.operands[0])
    low.define(op.results[0], promote_value(low.builder, value, op.results[0].type))


def promote_value(builder: Builder, value: Value, type_: Attribute) -> Value:
    """int → real, element-wise in containers."""
    if isinstance(value, Container):
        if value.element_type == element_type(type_):
            return value
        return elementwise(type_, [value], lambda x: builder.to_real(x))
    if isinstance(value, Tuple):
        assert isinstance(type_, stan.TupleType)
        fields = zip(value.fields, type_.elements, strict=True)
        return Tuple(type_, [promote_value(builder, field, t) for field, t in fields])
    return builder.to_real(value) if value.type == i32 and element_type(type_) == f64 else value


# ---------------------------------------------------------------- element-wise


def elementwise(
    type_: Attribute, operands: Sequence[Value], function: ScalarFunction, *, data_only: bool | None = None
) -> Container:
    """`function` applied to corresponding elements; scalars are repeated. Sizes must have been checked."""
    containers = [v for v in operands if isinstance(v, Container)]
    shape = containers[0]

    def at(indices: Sequence[SSAValue]) -> SSAValue:
        return function(*(v.at(indices) if isinstance(v, Container) else v for v in operands))

    def linear(k: SSAValue) -> SSAValue:
        return function(*(_linear(v, k) if isinstance(v, Container) else v for v in operands))

    orders = {c.is_matrix_shaped for c in containers if len(c.dims) > 1}  # matrices by column, arrays of ints by row
    flat = len(orders) < 2 and all(c.linear is not None or len(c.dims) == 1 for c in containers)
    return Container(
        type_,
        shape.dims,
        at,
        linear if flat else None,
        data_only=all(c.data_only for c in containers) if data_only is None else data_only,
        variables=frozenset().union(*(c.variables for c in containers)),
        producers=tuple(p for c in containers for p in c.producers),
    )


def _linear(container: Container, k: SSAValue) -> SSAValue:
    return container.linear(k) if container.linear is not None else container.at([k])


def _data_only(low: Lowering, *values: Value) -> bool:
    return all(low.is_data(v) for v in values)


def apply_elementwise(
    low: Lowering, name: str, type_: Attribute, operands: Sequence[Value], function: ScalarFunction
) -> Value:
    """Scalars: the function; else element-wise after a check of sizes."""
    containers = [v for v in operands if isinstance(v, Container)]
    if not containers:
        return function(*operands)
    for other in containers[1:]:
        low.check_equal_sizes(name, containers[0], other)
    return elementwise(type_, operands, function, data_only=_data_only(low, *operands))


# ---------------------------------------------------------------- arithmetic on scalars


def scalar_add(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    if a.type == i32 and b.type == i32:
        return builder.add(a, b)
    return builder.addf(builder.to_real(a), builder.to_real(b))


def scalar_sub(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    if a.type == i32 and b.type == i32:
        return builder.sub(a, b)
    return builder.subf(builder.to_real(a), builder.to_real(b))


def scalar_mul(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    if a.type == i32 and b.type == i32:
        return builder.mul(a, b)
    return builder.mulf(builder.to_real(a), builder.to_real(b))


def scalar_pow(builder: Builder, a: SSAValue, b: SSAValue) -> SSAValue:
    """`a ^ b`; small constant exponents become products, whose values `pow` rounds alike."""
    exponent = builder.known.get(b)
    base = builder.to_real(a)
    if exponent == 2:
        return builder.mulf(base, base)
    if exponent == 1:
        return base
    return builder.math("pow", base, builder.to_real(b))


def integer_divide(low: Lowering, a: SSAValue, b: SSAValue, op_class: type[Operation]) -> SSAValue:
    """Truncating division or remainder of ints; division by zero throws; the smallest int by -1 wraps."""
    builder = low.builder
    if builder.known.get(b) in (None, 0):
        low.check(builder.cmpi("ne", b, builder.i32(0)), FATAL, "Integer division by zero")
    if builder.known.get(b) in (None, -1):
        # The processor traps on smallest / -1: compute in 64 bits.
        wide = (builder.value(arith.ExtSIOp, (a,), i64), builder.value(arith.ExtSIOp, (b,), i64))
        return builder.truncate(builder.binary(op_class, *wide))
    return builder.binary(op_class, a, b)


@handles(BINARY["+"], BINARY["-"], BINARY[".*"], BINARY["./"], BINARY["^"], BINARY[".^"])
def elementwise_binary(low: Lowering, op: Operation) -> None:
    builder = low.builder
    functions: dict[str, ScalarFunction] = {
        "+": lambda a, b: scalar_add(builder, a, b),
        "-": lambda a, b: scalar_sub(builder, a, b),
        ".*": lambda a, b: scalar_mul(builder, a, b),
        "./": lambda a, b: builder.divf(builder.to_real(a), builder.to_real(b)),
        "^": lambda a, b: scalar_pow(builder, a, b),
        ".^": lambda a, b: scalar_pow(builder, a, b),
    }
    symbol = op.SYMBOL  # type: ignore[attr-defined]
    if symbol == "+" and low.deferred.intersection(op.operands):
        low.deferred.add(op.results[0])
        return
    a, b = low.value(op.operands[0]), low.value(op.operands[1])
    if symbol == "^" and isinstance(a, Container) and a.is_matrix_shaped:
        raise NotSupportedError("matrix power is not supported yet", op.location)
    low.define(op.results[0], apply_elementwise(low, symbol, op.results[0].type, (a, b), functions[symbol]))


@handles(BINARY["%"], BINARY["%/%"])
def integer_division(low: Lowering, op: Operation) -> None:
    kind = arith.RemSIOp if op.SYMBOL == "%" else arith.DivSIOp  # type: ignore[attr-defined]
    low.define(
        op.results[0], integer_divide(low, low.scalar(op.operands[0]), low.scalar(op.operands[1]), kind))  # fmt: skip


@handles(BINARY["/"])
def divide(low: Lowering, op: Operation) -> None:
    builder = low.builder
    a, b = low.value(op.operands[0]), low.value(op.operands[1])
    result = op.results[0]
    if isinstance(result.type, stan.IntType):
        low.define(result, integer_divide(low, low.scalar(op.operands[0]), low.scalar(op.operands[1]), arith.DivSIOp))
    elif isinstance(b, Container) and b.is_matrix_shaped and isinstance(a, Container):
        low.define(result, mdivide_right(low, a, b, result.type))
    else:

        def quotient(x: SSAValue, y: SSAValue) -> SSAValue:
            return builder.divf(builder.to_real(x), builder.to_real(y))

        low.define(result, apply_elementwise(low, "/", result.type, (a, b), quotient))


@handles(BINARY["\\"])
def left_divide(low: Lowering, op: Operation) -> None:
    a, b = low.container(op.operands[0]), low.container(op.operands[1])
    low.define(op.results[0], mdivide_left(low, a, b, op.results[0].type))


@handles(*(BINARY[symbol] for symbol in COMPARISONS))
def compare(low: Lowering, op: Operation) -> None:
    builder = low.builder
    a, b = low.scalar(op.operands[0]), low.scalar(op.operands[1])
    on_ints, on_reals = COMPARISONS[op.SYMBOL]  # type: ignore[attr-defined]
    if a.type == i32 and b.type == i32:
        condition = builder.cmpi(on_ints, a, b)
    else:
        condition = builder.cmpf(on_reals, builder.to_real(a), builder.to_real(b))
    low.env[op.results[0]] = builder.boolean(condition)


@handles(UNARY["-"], UNARY["+"])
def negate(low: Lowering, op: Operation) -> None:
    builder = low.builder
    value = low.value(op.operands[0])
    if op.SYMBOL == "+":  # type: ignore[attr-defined]
        low.define(op.results[0], value)
        return

    def negative(x: SSAValue) -> SSAValue:
        return builder.sub(builder.i32(0), x) if x.type == i32 else builder.negf(x)

    low.define(op.results[0], apply_elementwise(low, "-", op.results[0].type, (value,), negative))


@handles(UNARY["!"])
def logical_not(low: Lowering, op: Operation) -> None:
    builder = low.builder
    low.env[op.results[0]] = builder.boolean(builder.invert(builder.truth(low.scalar(op.operands[0]))))


@handles(UNARY["'"])
def transpose(low: Lowering, op: Operation) -> None:
    low.define(op.results[0], transposed(low.container(op.operands[0]), op.results[0].type))


def transposed(a: Container, type_: Attribute) -> Container:
    """`a'`: a view."""
    if len(a.dims) == 1:
        return Container(type_, a.dims, a.at, a.linear, a.buffer, a.cheap, a.data_only, a.variables)
    return Container(
        type_, [a.dims[1], a.dims[0]], lambda ij: a.at([ij[1], ij[0]]), None, None, a.cheap, a.data_only, a.variables
    )


# ---------------------------------------------------------------- products


@handles(BINARY["*"])
def multiply(low: Lowering, op: Operation) -> None:
    a, b = low.value(op.operands[0]), low.value(op.operands[1])
    if isinstance(a, Container) and isinstance(b, Container) and a.is_matrix_shaped and is_vector(b):
        a, b = materialize_unless_cheap(low, a), materialize_unless_cheap(low, b)
        if not a.variables and not b.variables and _goes_into_density(low, op.results[0]):
            columns = columns_in_a_row(a.dims[1])
            if columns is not None and not low.outlined.terms.whole:
                low.env[op.results[0]] = _rows_of_product(low, a, b, columns, op.results[0].type)
            else:
                low.env[op.results[0]] = _BlockedProduct(low, a, b).container(op.results[0].type)
            return
    low.define(op.results[0], product(low, a, b, op.results[0].type))


def is_vector(a: Container) -> bool:
    """A column vector."""
    return isinstance(a.type, stan.VectorType)


def _goes_into_density(low: Lowering, value: SSAValue, *, unchecked: bool = False) -> bool:
    """Whether the only use of a vector, perhaps after element-wise operations, is by a density of scalars.

    It may go there through a density that passes it on, such as a GLM; of an `unchecked` one requirements do not count.
    """
    uses = [use for use in value.uses if not (unchecked and is_requirement(use.operation))]
    if len(uses) != 1:
        return False
    user = uses[0].operation
    if user.parent is not (value.owner.parent if isinstance(value.owner, Operation) else value.owner):
        return False
    if isinstance(user, stan.CallOp) and (user.callee.data != "fma" or user.user is not None):
        if not is_density(user) or user.definition is None:
            return False
        function = low.functions[user.definition.data]
        formal = function.body.block.args[uses[0].index]
        return all_scalar(function) or _goes_into_density(low, formal, unchecked=user.unchecked is not None)
    elementwise_ops = (BINARY["+"], BINARY["-"], BINARY[".*"], UNARY["-"], stan.PromoteOp, stan.CallOp)
    return (
        isinstance(user, elementwise_ops)
        and isinstance(user.results[0].type, stan.VectorType)
        and _goes_into_density(low, user.results[0], unchecked=unchecked)
    )


def _rows_of_product(low: Lowering, a: Container, b: Container, columns: int, type_: Attribute) -> Container:
    """A matrix-vector product with few columns, whose elements are computed where a density asks for them."""
    builder = low.builder
    low.check_equal(a.dims[1], b.dims[0], FACTOR_SIZES.format("*", "{0}", "{1}"))
    places = [builder.i64(j) for j in range(columns)]
    factors = [b.at([j]) for j in places]

    def element(i: SSAValue) -> SSAValue:
        return sum_of(builder, *(builder.mulf(a.at([i, j]), f) for j, f in zip(places, factors, strict=True)))

    data_only = a.data_only and b.data_only
    return Container(type_, [a.dims[0]], lambda indices: element(indices[0]), element, data_only=data_only)


class _BlockedProduct:
    """A matrix-vector product whose elements are computed block by block, where a density asks for them.

    The matrix is then read once, also for the gradient: its block is still in the cache.
    """

    def __init__(self, low: Lowering, a: Container, b: Container) -> None:
        low.check_equal(a.dims[1], b.dims[0], FACTOR_SIZES.format("*", "{0}", "{1}"))
        self.low, self.a, self.b = low, a, b
        self.block: SSAValue | None = None
        self.first: SSAValue | None = None

    def container(self, type_: Attribute) -> Container:
        return Container(
            type_,
            [self.a.dims[0]],
            lambda indices: self.element(indices[0]),
            self.element,
            data_only=self.a.data_only and self.b.data_only,
            producers=(self,),
        )

    def element(self, k: SSAValue) -> SSAValue:
        assert self.block is not None and self.first is not None, "elements are computed block by block"
        return self.low.builder.load(self.block, self.low.builder.sub(k, self.first))

    def begin(self, first: SSAValue, end: SSAValue) -> None:
        builder = self.low.builder
        block = builder.alloc(builder.i64(BLOCK), zero=True)
        add_columns(builder, self.a, self.b, (first, end), block)
        self.block, self.first = block, first


def product(low: Lowering, a: Value, b: Value, type_: Attribute) -> Value:
    """Stan's `*`: of scalars, a scalar and a container, or the matrix product."""
    builder = low.builder
    if not (isinstance(a, Container) and isinstance(b, Container)):
        return apply_elementwise(low, "*", type_, (a, b), lambda x, y: scalar_mul(builder, x, y))
    if isinstance(a.type, stan.RowVectorType) and isinstance(b.type, stan.VectorType):
        return dot_product(low, a, b)
    if isinstance(a.type, stan.VectorType):
        if isinstance(b.type, stan.RowVectorType):
            outer_a, outer_b = materialize_unless_cheap(low, a), materialize_unless_cheap(low, b)
            return Container(
                type_,
                [a.dims[0], b.dims[0]],
                lambda ij: builder.mulf(outer_a.at([ij[0]]), outer_b.at([ij[1]])),
                data_only=a.data_only and b.data_only,
                variables=outer_a.variables | outer_b.variables,
            )
        raise NotSupportedError(f"product of {a.type} and {b.type}", builder.location)
    return matrix_product(low, a, b, type_)


def materialize_unless_cheap(low: Lowering, a: Container) -> Container:
    return a if a.cheap else materialize(low.builder, a)


def dot_product(low: Lowering, a: Container, b: Container) -> SSAValue:
    """Sum of products of corresponding elements."""
    builder = low.builder
    low.check_equal_sizes("dot_product", a, b)
    flat_b = Container(a.type, b.dims, b.at, b.linear, b.buffer, b.cheap, b.data_only, b.variables)

    def body(_: SSAValue, values: list[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        term = builder.mulf(builder.to_real(values[0]), builder.to_real(values[1]))
        return (builder.addf(carried[0], term, reassociate=True),)

    return for_each_position(builder, [a, flat_b], body, [builder.f64(0.0)])[0]


def matrix_product(low: Lowering, a: Container, b: Container, type_: Attribute) -> Container:
    """Matrix products: with a vector as loops that run down columns, of two matrices by a kernel."""
    builder = low.builder
    a, b = materialize_unless_cheap(low, a), materialize_unless_cheap(low, b)
    zero, one = builder.i64(0), builder.i64(1)
    row_result = isinstance(a.type, stan.RowVectorType)
    rows, inner = (one, a.dims[0]) if row_result else (a.dims[0], a.dims[1])
    vector_result = isinstance(b.type, stan.VectorType)
    columns = one if vector_result else b.dims[1]
    low.check_equal(inner, b.dims[0], FACTOR_SIZES.format("*", "{0}", "{1}"))
    dims = [columns] if row_result else [rows] if vector_result else [rows, columns]
    data_only = a.data_only and b.data_only
    if not row_result and not vector_result:
        factors = [buffer_of(low, materialize(builder, f, copy=bool(f.variables))) for f in (a, b)]
        (out,) = call_kernel(low, "multiply", factors, {"m": rows, "k": inner, "n": columns})
        return in_buffer(builder, type_, dims, out, data_only=data_only)
    out = builder.alloc(total(builder, dims), zero=not row_result)
    if row_result:
        # Each entry is a dot product down a column of b.
        def entry(j: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def term(i: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                return (builder.addf(carried[0], builder.mulf(a.at([i]), b.at([i, j])), reassociate=True),)

            sum_ = builder.for_loop(zero, inner, term, [builder.f64(0.0)])[0]
            builder.store(sum_, out, j, initial=True)
            return ()

        builder.for_loop(zero, columns, entry)
        return in_buffer(builder, type_, dims, out, data_only=data_only)

    def by_inner(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        factor = b.at([k])

        def down(i: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.insert(ad.AccumulateOp(out, i, builder.mulf(a.at([i, k]), factor)))
            return ()

        builder.for_loop(zero, rows, down)
        return ()

    builder.for_loop(zero, inner, by_inner)
    return in_buffer(builder, type_, dims, out, data_only=data_only)


# ---------------------------------------------------------------- container literals


@handles(stan.ArrayOp, stan.RowVectorOp)
def container_literal(low: Lowering, op: Operation) -> None:
    """`{a, b}`, `[a, b]`, and matrices `[r1, r2]` of row vectors."""
    builder = low.builder
    type_ = op.results[0].type
    elements = [low.value(v) for v in op.operands]
    count = builder.i64(len(elements))
    if not elements:
        dims = [count, count] if isinstance(type_, stan.MatrixType) else [count]
        low.define(op.results[0], broadcast(builder, type_, dims, builder.f64(0.0), True))
        return
    first = elements[0]
    if isinstance(first, Tuple):
        raise NotSupportedError("arrays of tuples are not supported yet", op.location)
    dims = [count, *(first.dims if isinstance(first, Container) else [])]
    template = in_buffer(builder, type_, dims, builder.alloc(total(builder, dims), buffer_type(type_)))
    slices: list[tuple[int, Container]] = []
    entries: list[tuple[SSAValue, SSAValue]] = []  # where, and what
    for n, element in enumerate(elements):
        if isinstance(element, Container):
            assert isinstance(first, Container)
            low.check_equal_sizes(LITERAL, first, element)
            if (written := _written_entries(op.operands[n])) is None:
                slices.append((n, element))
                continue
            for k, entry in enumerate(written):
                where = position(builder, template.type, template.dims, [builder.i64(n), builder.i64(k)])
                entries.append((where, low.scalar(entry)))
        elif isinstance(element, SSAValue):
            entries.append((builder.i64(n), element))
        else:
            raise NotSupportedError("arrays of tuples are not supported yet", op.location)
    _store_entries(builder, template, entries)
    for n, element in slices:
        _store_slice(builder, template, n, element)
    template.data_only = _data_only(low, *elements)
    low.define(op.results[0], template)


def _store_entries(builder: Builder, target: Container, entries: Sequence[tuple[SSAValue, SSAValue]]) -> None:
    """`target[where] = value` for each entry; if most are constants, these in one copy."""
    assert target.buffer is not None
    if target.element_type == f64:
        entries = [(where, builder.to_real(value)) for where, value in entries]
    known = builder.known
    constants = {
        known[where]: number
        for where, value in entries
        if where in known and (number := known.get(value)) is not None and isfinite(number)
    }
    if len(constants) > stan.FEW_NUMBERS and 2 * len(constants) > len(entries):
        count = builder.known.get(total(builder, target.dims))
        if count is not None and count <= 2 * len(constants):
            values = [constants.get(k, 0) for k in range(int(count))]
            _copy_constants(builder, target.buffer, values)
            entries = [(where, value) for where, value in entries if known.get(where) not in constants]
    for where, value in entries:
        builder.store(value, target.buffer, where, initial=True)


def _copy_constants(builder: Builder, buffer: SSAValue, values: Sequence[int | float]) -> None:
    """Fills the memory of a container with constants."""
    assert isinstance(buffer.type, rt.BufferType)
    if buffer.type.element == i32:
        dense = DenseArrayBase.from_list(i32, [int(value) for value in values])
    else:
        dense = DenseArrayBase.from_list(f64, [float(value) for value in values])
    constants = builder.insert(rt.ConstantsOp(dense)).res
    builder.copy(buffer, constants, builder.i64(len(values)), initial=True)


@handles(stan.LiteralOp)
def number_literal(low: Lowering, op: stan.LiteralOp) -> None:
    """A long literal of numbers alone: a copy of constants."""
    builder = low.builder
    values: Sequence[int | float] = op.numbers
    if op.res.type == stan.MATRIX or (isinstance(op.res.type, stan.ArrayType) and op.res.type.element == stan.MATRIX):
        values = _by_column(values, *op.shape[-2:])
    dims = [builder.i64(size) for size in op.shape]
    buffer = builder.alloc(builder.i64(len(values)), buffer_type(op.res.type))
    _copy_constants(builder, buffer, values)
    low.define(op.res, in_buffer(builder, op.res.type, dims, buffer, data_only=True))


def _by_column(values: Sequence[int | float], rows: int, columns: int) -> list[int | float]:
    """Matrices one after the other, each column by column in place of row by row."""
    size = rows * columns
    return [x for k in range(0, len(values), size) for j in range(columns) for x in values[k + j : k + size : columns]]


def _written_entries(value: SSAValue) -> Sequence[SSAValue] | None:
    """The scalars of a container of one dimension that is itself written as a literal: they need no copy of it."""
    op = value.owner
    if isinstance(op, stan.UNARY_OPERATORS["'"]):
        op = op.operands[0].owner
    if isinstance(op, (stan.ArrayOp, stan.RowVectorOp)) and op.operands and not stan.dimensions(op.operands[0].type):
        return op.operands
    return None


def _store_slice(builder: Builder, target: Container, n: int, element: Container) -> None:
    """`target[n + 1] = element`, for arrays and rows of matrices."""
    buffer = target.buffer
    assert buffer is not None

    def body(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        indices = [builder.i64(n), k]
        builder.store(element.at([k]), buffer, position(builder, target.type, target.dims, indices), initial=True)
        return ()

    if len(element.dims) == 1:
        builder.for_loop(builder.i64(0), element.dims[0], body)
        return
    count = total(builder, element.dims)
    part = builder.view(buffer, builder.mul(builder.i64(n), count))
    write(builder, element, part, initial=True)


@handles(stan.TupleOp)
def tuple_literal(low: Lowering, op: stan.TupleOp) -> None:
    low.env[op.res] = Tuple(op.res.type, [low.own(low.value(v)) for v in op.elements])


@handles(stan.FieldOp)
def tuple_field(low: Lowering, op: stan.FieldOp) -> None:
    value = low.value(op.value)
    assert isinstance(value, Tuple)
    low.env[op.res] = value.fields[op.field.value.data - 1]
