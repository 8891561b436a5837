"""Parameters: from the unconstrained vector to constrained values and back, by library/transforms.stan.

`X_constrain`, `X_log_jacobian`, `X_unconstrain`, `X_check` and, for containers, `X_unconstrained_size`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.library.constraints import CONTAINER_FAMILIES, scalar_family
from ulam.passes.builder import BUFFER_REAL
from ulam.passes.errors import NotSupportedError
from ulam.passes.lower.calls import as_formal, holds, inline
from ulam.passes.lower.lowering import REJECTION, Holder, Lowering, handles
from ulam.passes.lower.statements import add_jacobian, declared_dims
from ulam.passes.lower.values import (
    Container,
    Value,
    broadcast,
    for_each_position,
    in_buffer,
    materialize,
    total,
    write,
)


@dataclass
class Transform:
    """How one declaration is transformed: the family of functions and their further arguments."""

    family: str | None  # None: unconstrained
    arguments: list[Value]
    elementwise: bool
    unconstrained_size: SSAValue  # of the whole variable, i64
    slice_size: SSAValue | None  # of one container, where not element-wise


def transform_of(low: Lowering, op: stan.DeclareOp | stan.ParameterOp, dims: Sequence[SSAValue]) -> Transform:
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
    type_ = op.res.type.element
    rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
    written = [low.scalar(s) for s in list(op.sizes)[rank:]]
    size_function = function_named(low, f"{family}_unconstrained_size", op)
    sizes = written * (len(size_function.function_type.inputs) // len(written)) if len(written) else []
    size = inline(low, size_function, sizes, op.location, False, [False] * len(sizes))
    assert isinstance(size, SSAValue)
    slice_size = builder.index(size)
    count = builder.mul(total(builder, dims[:rank]), slice_size)
    return Transform(family, list(sizes), False, count, slice_size)


def _scalar_family(low: Lowering, op: stan.DeclareOp | stan.ParameterOp) -> tuple[str | None, list[Value]]:
    builder = low.builder
    if op.constraint.data == "none":
        return None, []
    if op.constraint.data == "offset_multiplier":
        offset = low.value(op.offset) if op.offset is not None else builder.f64(0.0)
        multiplier = low.value(op.multiplier) if op.multiplier is not None else builder.f64(1.0)
        return "offset_multiplier", [offset, multiplier]
    family = scalar_family(lower=op.lower is not None, upper=op.upper is not None)
    return family, [low.value(bound) for bound in (op.lower, op.upper) if bound is not None]


def function_named(low: Lowering, name: str, op: stan.DeclareOp | stan.ParameterOp) -> stan.FuncOp:
    """A transform's function."""
    found = low.functions.get(name)
    if found is None:
        raise NotSupportedError(
            f"constraint '{op.constraint.data}' is not supported yet: no function '{name}'", op.location
        )
    return found


def _call(low: Lowering, name: str, op: stan.DeclareOp | stan.ParameterOp, arguments: Sequence[Value]) -> Value | None:
    function = function_named(low, name, op)
    inputs = list(function.function_type.inputs)
    actual = [as_formal(low, a, t) if isinstance(a, SSAValue) else a for a, t in zip(arguments, inputs, strict=False)]
    return inline(low, function, actual[: len(inputs)], op.location, False, [True] * len(inputs))


class UnconstrainedReader:
    """Reads parameters from the unconstrained vector, one after the other."""

    def __init__(self, low: Lowering, theta: SSAValue) -> None:
        self.low = low
        self.theta = theta
        self.offset = low.builder.i64(0)

    def parameter(self, op: stan.ParameterOp) -> None:
        """Defines the variable of a declared parameter and adds its Jacobian."""
        low, builder = self.low, self.low.builder
        outer, builder.location = builder.location, op.location or builder.location
        dims = declared_dims(low, op)
        type_ = op.res.type.element
        transform = transform_of(low, op, dims)
        if transform.family == "lower_upper_bound":
            _check_order(low, op, *transform.arguments)
        source = builder.view(self.theta, self.offset)
        value: Value
        if not dims:
            value = builder.load(self.theta, self.offset)
            if transform.family is not None:
                value = self._element(op, transform.family, value, transform.arguments)
        elif transform.family is None:
            value = in_buffer(builder, type_, dims, source)
        elif transform.elementwise:
            value = self._elements(op, transform, in_buffer(builder, type_, dims, source))
        else:
            value = self._containers(op, transform, type_, dims, source)
        self.offset = builder.add(self.offset, transform.unconstrained_size)
        holder = Holder(op.var_name.data, value)
        low.env[op.res] = holder
        low.globals[op.var_name.data] = holder
        builder.location = outer

    def _element(self, op: stan.ParameterOp, family: str, u: SSAValue, arguments: Sequence[Value]) -> SSAValue:
        low = self.low
        if low.jacobian is not None:
            jacobian = _call(low, f"{family}_log_jacobian", op, [u, *arguments])
            assert jacobian is not None
            add_jacobian(low, jacobian)
        value = _call(low, f"{family}_constrain", op, [u, *arguments])
        assert isinstance(value, SSAValue)
        return value

    def _elements(self, op: stan.ParameterOp, transform: Transform, source: Container) -> Container:
        builder = self.low.builder
        assert transform.family is not None
        family = transform.family
        out = builder.alloc(total(builder, source.dims), BUFFER_REAL)
        containers = [source, *(_shaped(self.low, op, a, source) for a in transform.arguments)]

        def body(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.store(self._element(op, family, values[0], values[1:]), out, k, initial=True)
            return ()

        for_each_position(builder, containers, body)
        return in_buffer(builder, source.type, source.dims, out)

    def _containers(
        self, op: stan.ParameterOp, transform: Transform, type_: Attribute, dims: list[SSAValue], source: SSAValue
    ) -> Value:
        low, builder = self.low, self.low.builder
        assert transform.slice_size is not None
        slice_size = transform.slice_size
        rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
        inner_dims = dims[rank:]

        def one(u_buffer: SSAValue) -> Container:
            u = in_buffer(builder, stan.VECTOR, [slice_size], u_buffer)
            arguments = [u, *transform.arguments]
            if low.jacobian is not None:
                jacobian = _call(low, f"{transform.family}_log_jacobian", op, arguments)
                assert jacobian is not None
                add_jacobian(low, jacobian)
            value = _call(low, f"{transform.family}_constrain", op, arguments)
            assert isinstance(value, Container)
            return value

        if rank == 0:
            value = one(source)
            value.dims = inner_dims
            return in_buffer(builder, type_, inner_dims, _buffer(low, value))
        out = builder.alloc(total(builder, dims), BUFFER_REAL)
        count = total(builder, inner_dims)

        def body(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            value = one(builder.view(source, builder.mul(k, slice_size)))
            write(builder, value, builder.view(out, builder.mul(k, count)), initial=True)
            return ()

        builder.for_loop(builder.i64(0), total(builder, dims[:rank]), body)
        return in_buffer(builder, type_, dims, out)


def _check_order(low: Lowering, op: stan.ParameterOp, lower: Value, upper: Value) -> None:
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
    pair = [_shaped(low, op, bound, containers[0]) for bound in (lower, upper)]

    def scan(_: SSAValue, values: list[SSAValue], __: Sequence[SSAValue]) -> Sequence[SSAValue]:
        check(*values)
        return ()

    for_each_position(builder, pair, scan)


def _buffer(low: Lowering, value: Container) -> SSAValue:
    owned = materialize(low.builder, value)
    assert owned.buffer is not None
    return owned.buffer


def _shaped(
    low: Lowering, op: stan.DeclareOp | stan.ParameterOp | stan.CheckOp, argument: Value, like: Container
) -> Container:
    """A bound, offset or multiplier as a container of the variable's shape."""
    if isinstance(argument, Container):
        name = op.var_name.data
        for expected, found in zip(like.dims, argument.dims, strict=True):
            message = f"{name}: the size is {{0}}, but a bound, offset or multiplier has size {{1}}"
            low.check_equal(expected, found, message)
        return argument
    assert isinstance(argument, SSAValue)
    return broadcast(low.builder, like.type, like.dims, argument, low.is_data(argument))


class UnconstrainedWriter:
    """Writes constrained values of parameters to the unconstrained vector."""

    def __init__(self, low: Lowering, source: SSAValue, theta: SSAValue) -> None:
        self.low = low
        self.source = source
        self.theta = theta
        self.read = low.builder.i64(0)
        self.written = low.builder.i64(0)

    def parameter(self, op: stan.ParameterOp) -> None:
        """Writes the unconstrained values of one parameter; throws if the constrained ones are not valid."""
        low, builder = self.low, self.low.builder
        outer, builder.location = builder.location, op.location or builder.location
        dims = declared_dims(low, op)
        type_ = op.res.type.element
        transform = transform_of(low, op, dims)
        out = builder.view(self.theta, self.written)
        value: Value
        if dims:
            value = in_buffer(builder, type_, dims, builder.view(self.source, self.read))
            self._container(op, transform, value, out)
        else:
            value = builder.load(self.source, self.read)
            u: Value | None = value
            if transform.family is not None:
                u = _call(low, f"{transform.family}_unconstrain", op, [value, *transform.arguments])
            assert isinstance(u, SSAValue)
            builder.store(u, out, builder.i64(0), initial=True)
        self.read = builder.add(self.read, total(builder, dims))
        self.written = builder.add(self.written, transform.unconstrained_size)
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
            containers = [value, *(_shaped(low, op, a, value) for a in transform.arguments)]

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


# ---------------------------------------------------------------- checks

_BOUND_CHECKS: tuple[tuple[str, str], ...] = (("lower", "require_at_least"), ("upper", "require_at_most"))


@handles(stan.CheckOp)
def check(low: Lowering, op: stan.CheckOp) -> None:
    """The declared constraint of data, transformed data, transformed parameters, generated quantities."""
    constraint = op.constraint.data
    value = low.value(op.value)
    if constraint in ("none", "offset_multiplier"):
        return
    if constraint == "bounds":
        for side, requirement in _BOUND_CHECKS:
            bound = getattr(op, side)
            if bound is not None:
                _check_bound(low, op, value, low.value(bound), requirement)
        return
    family = CONTAINER_FAMILIES.get(constraint)
    function = low.functions.get(f"{family}_check")
    if function is None:
        raise NotSupportedError(f"constraint '{constraint}' is not supported yet", op.location)
    assert isinstance(value, Container)
    low.subjects.append(op.var_name.data)
    rank = value.array_rank
    if rank == 0:
        inline(low, function, [low.own(value)], op.location, False, [True])
    else:
        owned = low.own(value)
        assert isinstance(owned, Container) and owned.buffer is not None
        builder, buffer, inner_dims = low.builder, owned.buffer, owned.dims[rank:]
        count = total(builder, inner_dims)

        def each(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            part = in_buffer(
                builder, owned.inner, inner_dims, builder.view(buffer, builder.mul(k, count)), data_only=owned.data_only
            )
            inline(low, function, [part], op.location, False, [True])
            return ()

        builder.for_loop(builder.i64(0), total(builder, owned.dims[:rank]), each)
    low.subjects.pop()


def _check_bound(low: Lowering, op: stan.CheckOp, value: Value, bound: Value, requirement: str) -> None:
    builder = low.builder
    name = op.var_name.data
    phrase = "greater than or equal to" if requirement == "require_at_least" else "less than or equal to"

    def precise(x: SSAValue, limit: SSAValue, position: SSAValue | None) -> None:
        ok = holds(low, requirement, [x, limit])
        where = "[{2}]" if position is not None else ""
        values = [x, limit] if position is None else [x, limit, position]
        low.check(ok, REJECTION, f"{name}{where} is {{0}}, but must be {phrase} {{1}}", *values, location=op.location)

    if not isinstance(value, Container):
        assert isinstance(value, SSAValue) and isinstance(bound, SSAValue)
        precise(value, bound, None)
        return
    containers = [value, _shaped(low, op, bound, value)]

    def scan(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        precise(values[0], values[1], builder.add(k, builder.i64(1)))
        return ()

    for_each_position(builder, containers, scan)
