"""Parameters: from the unconstrained vector to constrained values and back, by library/transforms.stan.

`X_constrain`, `X_log_jacobian`, `X_unconstrain`, `X_check`; how many unconstrained values make one container is a row
of `UNCONSTRAINED_SIZES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan, trace
from ulam.library.constraints import CONTAINER_FAMILIES, scalar_family
from ulam.library.functions import FunctionKind, kind_of
from ulam.library.records import record
from ulam.library.statuses import REJECTION
from ulam.passes.analysis.call_graph import library_function
from ulam.passes.builder import BUFFER_REAL, Builder
from ulam.passes.complex_types import part_number
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.inlining import as_formal, inline
from ulam.passes.to_loops.lowering import Holder, Lowering, handles
from ulam.passes.to_loops.sizes import checked_sizes, declared_dims
from ulam.passes.to_loops.statements import add_jacobian
from ulam.passes.to_loops.subjects import Subject
from ulam.passes.to_loops.tuple_arrays import ArraysOfTuples
from ulam.passes.to_loops.values import (
    Container,
    Tuple,
    Value,
    broadcast,
    for_each_element,
    for_each_position,
    in_buffer,
    materialize,
    total,
    write,
)

Declared = stan.DeclareOp | stan.ParameterOp | trace.ConstrainOp | trace.JacobianOp
"""Ops that have a variable's constraint, sizes and bounds."""


def declared_type(op: Declared) -> Attribute:
    """The type of the variable."""
    return op.declared if isinstance(op, trace.ConstrainOp | trace.JacobianOp) else op.res.type.element


@record
class Transform:
    """How one declaration is transformed: the family of functions and their further arguments."""

    family: str | None  # None: unconstrained
    arguments: list[Value]
    elementwise: bool
    unconstrained_size: SSAValue  # of the whole variable, i64
    slice_size: SSAValue | None  # of one container, where not element-wise


def transform_of(low: Lowering, op: Declared, dims: Sequence[SSAValue]) -> Transform:
    """The transform of a declared variable; its size operands have been lowered."""
    builder = low.builder
    count = total(builder, dims)
    constraint = op.constraint.data
    if constraint in ("none", "bounds", "offset_multiplier"):
        family, arguments = _scalar_family(low, op)
        return Transform(family, arguments, True, count, None)
    family = CONTAINER_FAMILIES.get(constraint)
    if family is None:
        raise NotSupportedError(f"constraint '{constraint}' is not supported yet", op.location)
    type_ = declared_type(op)
    rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
    written = [low.scalar(s) for s in list(op.sizes)[rank:]]
    n_sizes, unconstrained_size = UNCONSTRAINED_SIZES[constraint]
    written = written * (n_sizes // len(written)) if written else []
    slice_size = unconstrained_size(builder, *(low.size(size) for size in (list(op.sizes)[rank:] * 2)[:n_sizes]))
    count = builder.mul(total(builder, dims[:rank]), slice_size)
    return Transform(family, list(written), False, count, slice_size)


def unconstrained_size(low: Lowering, op: stan.ParameterOp, dims: Sequence[SSAValue], skipped: int = 0) -> SSAValue:
    """How many unconstrained values a parameter has (i64), without its first dimensions. Bounds do not change that."""
    builder, constraint = low.builder, op.constraint.data
    if constraint in ("none", "bounds", "offset_multiplier"):
        return total(builder, dims[skipped:])
    type_ = declared_type(op)
    rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
    n_sizes, size_of = UNCONSTRAINED_SIZES[constraint]
    slice_size = size_of(builder, *(low.size(size) for size in (list(op.sizes)[rank:] * 2)[:n_sizes]))
    return builder.mul(total(builder, dims[skipped:rank]), slice_size)


def _triangle(builder: Builder, size: SSAValue) -> SSAValue:
    """size (size - 1) / 2: the elements below a diagonal."""
    doubled = builder.mul(size, builder.sub(size, builder.i64(1)))
    if (known := builder.known.get(doubled)) is not None:
        return builder.i64(int(known) // 2)
    return builder.value(arith.ShRSIOp, (doubled, builder.i64(1)), i64)


def _lower_trapezoid(builder: Builder, rows: SSAValue, columns: SSAValue) -> SSAValue:
    """The elements of the lower triangle of a matrix with at least as many rows as columns."""
    below = builder.mul(builder.sub(rows, columns), columns)
    return builder.add(builder.add(_triangle(builder, columns), columns), below)


def _less_one(builder: Builder, size: SSAValue) -> SSAValue:
    return builder.sub(size, builder.i64(1))


UNCONSTRAINED_SIZES: dict[str, tuple[int, Callable[..., SSAValue]]] = {
    "simplex": (1, _less_one),
    "ordered": (1, lambda _, size: size),
    "positive_ordered": (1, lambda _, size: size),
    "unit_vector": (1, lambda _, size: size),
    "sum_to_zero_vector": (1, _less_one),
    "sum_to_zero_matrix": (2, lambda b, rows, columns: b.mul(_less_one(b, rows), _less_one(b, columns))),
    "cholesky_factor_corr": (1, _triangle),
    "cholesky_factor_cov": (2, _lower_trapezoid),
    "corr_matrix": (1, _triangle),
    "cov_matrix": (1, lambda b, size: b.add(_triangle(b, size), size)),
    "column_stochastic_matrix": (2, lambda b, rows, columns: b.mul(_less_one(b, rows), columns)),
    "row_stochastic_matrix": (2, lambda b, rows, columns: b.mul(rows, _less_one(b, columns))),
}
"""Constraint of a container → its number of sizes, and how many unconstrained values there are for them (i64)."""


def _scalar_family(low: Lowering, op: Declared) -> tuple[str | None, list[Value]]:
    builder = low.builder
    if op.constraint.data == "none":
        return None, []
    if op.constraint.data == "offset_multiplier":
        offset = low.value(op.offset) if op.offset is not None else builder.f64(0.0)
        multiplier = low.value(op.multiplier) if op.multiplier is not None else builder.f64(1.0)
        return "offset_multiplier", [offset, multiplier]
    family = scalar_family(lower=op.lower is not None, upper=op.upper is not None)
    return family, [low.value(bound) for bound in (op.lower, op.upper) if bound is not None]


def function_named(low: Lowering, name: str, op: Declared) -> stan.FuncOp:
    """A transform's function."""
    found = library_function(name, low.functions)
    if found is None:
        raise NotSupportedError(
            f"constraint '{op.constraint.data}' is not supported yet: no function '{name}'", op.location
        )
    return found


def _call(
    low: Lowering, name: str, op: Declared, arguments: Sequence[Value], *, unchecked: bool = False
) -> Value | None:
    function = function_named(low, name, op)
    inputs = list(function.function_type.inputs)
    actual = [as_formal(low, a, t) if isinstance(a, SSAValue) else a for a, t in zip(arguments, inputs, strict=False)]
    low.subjects.append(op.var_name.data)
    told = [Subject(op.var_name.data)] if kind_of(name) is FunctionKind.UNCONSTRAIN else []
    autodiff = [True] * len(inputs)
    given = actual[: len(inputs)]
    result = inline(low, function, given, op.location, False, autodiff, unchecked=unchecked, told=told)
    low.subjects.pop()
    return result


_ORDERED_BOUNDS = "lower_upper_bound"
"""The transform whose arguments are checked once, ahead of all elements."""


class Constrainer:
    """Applies the transform of a declared parameter to its unconstrained values.

    `constrains`: whether its value is asked for; `adjusts`: whether its log Jacobian goes into the target, as one sum
    or element by element (see `target_terms`). That sum is `adjustment`.
    """

    def __init__(
        self, low: Lowering, op: Declared, dims: list[SSAValue], *, constrains: bool = True, adjusts: bool = True
    ) -> None:
        self.low = low
        self.op = op
        self.dims = dims
        self.transform = transform_of(low, op, dims)
        self.constrains = constrains
        self.adjusts = adjusts and low.jacobian is not None
        self.adjustment: SSAValue | None = None
        if self.transform.family == _ORDERED_BOUNDS:
            _check_order(low, op, *self.transform.arguments)

    def run(self, unconstrained: SSAValue) -> Value | None:
        """The constrained value, if it is asked for: of a real, or of what the buffer `unconstrained` begins with."""
        low, builder, transform = self.low, self.low.builder, self.transform
        type_ = declared_type(self.op)
        if not self.dims:
            return unconstrained if transform.family is None else self._element(unconstrained, transform.arguments)
        if transform.family is None:
            return in_buffer(builder, type_, self.dims, unconstrained)
        if transform.elementwise:
            return self._elements(in_buffer(builder, type_, self.dims, unconstrained))
        value = self._containers(type_, unconstrained)
        return None if value is None else in_buffer(builder, type_, self.dims, _buffer(low, value))

    def _apply(self, arguments: Sequence[Value]) -> Value | None:
        family = self.transform.family
        value = _call(self.low, f"{family}_constrain", self.op, arguments, unchecked=family == _ORDERED_BOUNDS)
        assert value is not None
        return value

    def _log_jacobian(self, arguments: Sequence[Value]) -> SSAValue:
        jacobian = _call(self.low, f"{self.transform.family}_log_jacobian", self.op, arguments)
        assert isinstance(jacobian, SSAValue)
        return jacobian

    def _element(self, u: SSAValue, arguments: Sequence[Value]) -> SSAValue | None:
        if self.adjusts:
            self._add(self._log_jacobian([u, *arguments]))
        value = self._apply([u, *arguments]) if self.constrains else None
        assert not isinstance(value, Container | Tuple)
        return value

    # ------------------------------------------------------------ sums of adjustments

    def _add(self, jacobian: SSAValue) -> None:
        self.adjustment = jacobian
        add_jacobian(self.low, jacobian)

    @property
    def _initial(self) -> list[SSAValue]:
        """What a loop over parts carries: the sum, or nothing if each part is added to the target by itself."""
        return [self.low.builder.f64(0.0)] if self.adjusts and self.low.outlined.terms.whole else []

    def _adjust(self, arguments: Sequence[Value], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if not self.adjusts:
            return carried
        jacobian = self._log_jacobian(arguments)
        if carried:
            return (self.low.builder.addf(carried[0], jacobian),)
        add_jacobian(self.low, jacobian)
        return carried

    # ------------------------------------------------------------ containers

    def _elements(self, source: Container) -> Container | None:
        builder = self.low.builder
        out = builder.alloc(total(builder, source.dims), BUFFER_REAL) if self.constrains else None
        containers = [source, *(shaped_like(self.low, self.op, a, source) for a in self.transform.arguments)]

        def body(k: SSAValue, values: list[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            carried = self._adjust(values, carried)
            if out is not None:
                value = self._apply(values)
                assert isinstance(value, SSAValue)
                builder.store(value, out, k, initial=True)
            return carried

        for sum_ in for_each_position(builder, containers, body, self._initial):
            self._add(sum_)
        return None if out is None else in_buffer(builder, source.type, source.dims, out)

    def _containers(self, type_: Attribute, source: SSAValue) -> Container | None:
        builder, slice_size = self.low.builder, self.transform.slice_size
        assert slice_size is not None
        rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
        inner_dims = self.dims[rank:]

        def one(u_buffer: SSAValue, carried: Sequence[SSAValue]) -> tuple[Container | None, Sequence[SSAValue]]:
            arguments = [in_buffer(builder, stan.VECTOR, [slice_size], u_buffer), *self.transform.arguments]
            carried = self._adjust(arguments, carried)
            value = self._apply(arguments) if self.constrains else None
            assert value is None or isinstance(value, Container)
            return value, carried

        if rank == 0:
            value, sums = one(source, self._initial)
            if value is not None:
                value.dims = inner_dims
        else:
            out = builder.alloc(total(builder, self.dims), BUFFER_REAL) if self.constrains else None
            count = total(builder, inner_dims)

            def body(k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
                part, carried = one(builder.view(source, builder.mul(k, slice_size)), carried)
                if part is not None and out is not None:
                    write(builder, part, builder.view(out, builder.mul(k, count)), initial=True)
                return carried

            sums = builder.for_loop(builder.i64(0), total(builder, self.dims[:rank]), body, self._initial)
            value = None if out is None else in_buffer(builder, type_, self.dims, out)
        for sum_ in sums:
            self._add(sum_)
        return value


class UnconstrainedReader:
    """Reads parameters from the unconstrained vector, one after the other."""

    def __init__(self, low: Lowering, theta: SSAValue, arrays_of_tuples: ArraysOfTuples) -> None:
        self.low = low
        self.theta = theta
        self.offset = low.builder.i64(0)
        self.arrays_of_tuples = arrays_of_tuples

    def parameter(self, op: stan.ParameterOp) -> None:
        """Defines the variable of a declared parameter and adds its Jacobian."""
        low, builder = self.low, self.low.builder
        outer, builder.location = builder.location, op.location or builder.location
        dims = declared_dims(low, op)
        constrainer = Constrainer(low, op, dims)
        part = part_number(op.var_name.data)
        if (place := self.arrays_of_tuples.place(low, op, self.offset)) is not None:
            source, self.offset = place.gathered(low, self.theta), place.end
            source = source if dims else builder.load(source, builder.i64(0))
        elif part is not None:
            source = read_part(builder, self.theta, self.offset, part, dims)
            self.offset = builder.add(self.offset, taken_by(builder, constrainer.transform.unconstrained_size, part))
        else:
            source = builder.view(self.theta, self.offset) if dims else builder.load(self.theta, self.offset)
            self.offset = builder.add(self.offset, constrainer.transform.unconstrained_size)
        value = constrainer.run(source)
        assert value is not None
        holder = Holder(op.var_name.data, value)
        low.env[op.res] = holder
        low.globals[op.var_name.data] = holder
        builder.location = outer


def taken_by(builder: Builder, count: SSAValue, part: int | None) -> SSAValue:
    """How far what follows a variable, or a part of one, is behind it: the parts of a complex one begin together."""
    return count if part is None else builder.mul(count, builder.i64(2 * part))


def read_part(builder: Builder, source: SSAValue, offset: SSAValue, part: int, dims: Sequence[SSAValue]) -> SSAValue:
    """One part of complex numbers, which lie in pairs in `source`: a real, or a buffer."""
    first = builder.add(offset, builder.i64(part))
    if not dims:
        return builder.load(source, first)
    count, two = total(builder, dims), builder.i64(2)
    out = builder.alloc(count, BUFFER_REAL)

    def element(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        builder.store(builder.load(source, builder.add(first, builder.mul(k, two))), out, k, initial=True)
        return ()

    builder.for_loop(builder.i64(0), count, element)
    return out


def write_part(builder: Builder, value: Value, part: int, target: SSAValue, offset: SSAValue) -> None:
    """One part of complex numbers into every second element of `target`, from `offset` on."""
    first, two = builder.add(offset, builder.i64(part)), builder.i64(2)
    if isinstance(value, Container):

        def element(k: SSAValue, x: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.store(x, target, builder.add(first, builder.mul(k, two)), initial=True)
            return ()

        for_each_element(builder, value, element)
        return
    assert isinstance(value, SSAValue)
    builder.store(value, target, first, initial=True)


@handles(trace.ConstrainOp)
def constrain(low: Lowering, op: trace.ConstrainOp) -> None:
    """A parameter's value."""
    value = _constrainer(low, op, adjusts=False).run(_unconstrained(low, op))
    assert value is not None
    low.env[op.res] = value


@handles(trace.JacobianOp)
def jacobian(low: Lowering, op: trace.JacobianOp) -> None:
    """A parameter's Jacobian adjustment."""
    constrainer = _constrainer(low, op, constrains=False)
    constrainer.run(_unconstrained(low, op))
    low.env[op.res] = constrainer.adjustment or low.builder.f64(0.0)


def _constrainer(
    low: Lowering, op: trace.ConstrainOp | trace.JacobianOp, *, constrains: bool = True, adjusts: bool = True
) -> Constrainer:
    dims = checked_sizes(low, op.var_name.data, op.declared, op.sizes, op.constraint.data)
    return Constrainer(low, op, dims, constrains=constrains, adjusts=adjusts)


def _unconstrained(low: Lowering, op: trace.ConstrainOp | trace.JacobianOp) -> SSAValue:
    value = low.value(op.unconstrained)
    if isinstance(value, SSAValue):
        return value
    assert isinstance(value, Container)
    return _buffer(low, value)


def _check_order(low: Lowering, op: Declared, lower: Value, upper: Value) -> None:
    """Throws unless the lower bound is less than the upper one, element by element."""
    builder = low.builder
    message = f"{op.var_name.data}: the lower bound is {{0}}, but must be less than the upper bound, {{1}}"

    def check(a: SSAValue, b: SSAValue) -> None:
        a, b = builder.to_real(a), builder.to_real(b)
        low.check(builder.cmpf("olt", a, b), REJECTION, message, a, b)

    containers = [bound for bound in (lower, upper) if isinstance(bound, Container)]
    if not containers:
        assert isinstance(lower, SSAValue) and isinstance(upper, SSAValue)
        check(lower, upper)
        return
    pair = [shaped_like(low, op, bound, containers[0]) for bound in (lower, upper)]

    def scan(_: SSAValue, values: list[SSAValue], __: Sequence[SSAValue]) -> Sequence[SSAValue]:
        check(*values)
        return ()

    for_each_position(builder, pair, scan)


def _buffer(low: Lowering, value: Container) -> SSAValue:
    owned = materialize(low.builder, value)
    assert owned.buffer is not None
    return owned.buffer


def shaped_like(low: Lowering, op: Declared | stan.CheckOp, argument: Value, like: Container) -> Container:
    """A bound, offset or multiplier as a container of the variable's shape."""
    if isinstance(argument, Container):
        name = op.var_name.data
        outer = len(like.dims) - len(argument.dims)
        for expected, found in zip(like.dims[outer:], argument.dims, strict=True):
            message = f"{name}: the size is {{0}}, but a bound, offset or multiplier has size {{1}}"
            low.check_equal(expected, found, message)
        if outer:  # the elements of an array have the bound in common

            def at(indices: Sequence[SSAValue]) -> SSAValue:
                return argument.at(indices[outer:])

            return Container(like.type, like.dims, at=at, cheap=argument.cheap, data_only=argument.data_only)
        return argument
    assert isinstance(argument, SSAValue)
    return broadcast(low.builder, like.type, like.dims, argument, low.is_data(argument))


class UnconstrainedWriter:
    """Writes constrained values of parameters to the unconstrained vector."""

    def __init__(self, low: Lowering, source: SSAValue, theta: SSAValue, arrays_of_tuples: ArraysOfTuples) -> None:
        self.low = low
        self.source = source
        self.theta = theta
        self.arrays_of_tuples = arrays_of_tuples
        self.read = low.builder.i64(0)
        self.written = low.builder.i64(0)

    def parameter(self, op: stan.ParameterOp) -> None:
        """Writes the unconstrained values of one parameter; throws if the constrained ones are not valid."""
        low, builder = self.low, self.low.builder
        outer, builder.location = builder.location, op.location or builder.location
        dims = declared_dims(low, op)
        type_ = op.res.type.element
        transform = transform_of(low, op, dims)
        place = self.arrays_of_tuples.place(low, op, self.written)
        part = part_number(op.var_name.data)
        if place is None:
            out = builder.view(self.theta, self.written)
        else:
            out = builder.alloc(transform.unconstrained_size, BUFFER_REAL)
        value: Value
        if part is not None:
            found = read_part(builder, self.source, self.read, part, dims)
            value = in_buffer(builder, type_, dims, found) if dims else found
            if place is None:
                write_part(builder, value, part, self.theta, self.written)
            else:
                assert isinstance(value, Container)
                write(builder, value, out, initial=True)
        elif dims:
            value = in_buffer(builder, type_, dims, builder.view(self.source, self.read))
            self._container(op, transform, value, out)
        else:
            value = builder.load(self.source, self.read)
            u: Value | None = value
            if transform.family is not None:
                u = _call(low, f"{transform.family}_unconstrain", op, [value, *transform.arguments])
            assert isinstance(u, SSAValue)
            builder.store(u, out, builder.i64(0), initial=True)
        self.read = builder.add(self.read, taken_by(builder, total(builder, dims), part))
        if place is None:
            self.written = builder.add(self.written, taken_by(builder, transform.unconstrained_size, part))
        else:
            place.scatter(low, out, self.theta)
            self.written = place.end
        holder = Holder(op.var_name.data, value)
        low.env[op.res] = holder
        low.globals[op.var_name.data] = holder
        builder.location = outer

    def _container(self, op: stan.ParameterOp, transform: Transform, value: Container, out: SSAValue) -> None:
        low, builder = self.low, self.low.builder
        if transform.family is None:
            write(builder, value, out, initial=True)
            return
        if transform.elementwise:
            containers = [value, *(shaped_like(low, op, a, value) for a in transform.arguments)]

            def body(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                u = _call(low, f"{transform.family}_unconstrain", op, values)
                assert isinstance(u, SSAValue)
                builder.store(u, out, k, initial=True)
                return ()

            for_each_position(builder, containers, body)
            return
        assert value.buffer is not None and transform.slice_size is not None
        slice_size, rank = transform.slice_size, value.array_rank
        inner_dims = value.dims[rank:]
        count = total(builder, inner_dims)

        def each(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            part = in_buffer(builder, value.inner, inner_dims, builder.view(value.buffer, builder.mul(k, count)))  # type: ignore[arg-type]
            u = _call(low, f"{transform.family}_unconstrain", op, [part])
            assert isinstance(u, Container)
            write(builder, u, builder.view(out, builder.mul(k, slice_size)), initial=True)
            return ()

        builder.for_loop(builder.i64(0), total(builder, value.dims[:rank]), each)
