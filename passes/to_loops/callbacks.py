"""What functions of the library can do with a function of the program that was passed to them.

`ode_rk45(f, y0, t0, ts, a, b)` makes the closure of `f` and what it is called with besides, `a` and `b`. The library's
definition takes the rest, `y0`, `t0` and `ts`, and has, as if they were functions (the file that uses them declares
them):

    callback(t, y)             f(t, y, a, b); the result, too, may be an array where the declaration has a vector
    callback_jacobian(t, y)    the same beside its derivatives: one column for f, one for each element of y, one for
                               each element of `callback_parameters()`; a constant
    callback_jacobian(t, y, yp)
                               the same for f(t, y, yp, ...): columns for y, then for yp
    callback_gradient(x, xc)   for f of reals that returns a real: its value, then its derivatives with respect to the
                               elements of `callback_parameters()`; a constant. One call of f
    callback_derivatives(x)    for f of a vector that returns a real: its value, its derivatives with respect to the
                               elements of x, then to those of `callback_parameters()`; a constant
    callback_slope_derivatives(x, v), callback_curvature_derivatives(x, v)
                               the same of the first, the second derivative of f along v
    callback_parameters()      the reals of a and b of which a gradient will be taken, one after the other
    callback_arguments()       all reals of a and b
    solver_step(), solver_failed_step()
                               count a step, and one that is taken back, in profiles
    is_differentiated(x)       whether a gradient with respect to x will be taken: known when compiling
    is_differentiated_again()  whether that gradient will be one of a derivative along a direction: known, too

"Will be taken" is Stan's static rule, in functions of which a gradient is made: 0 in generated quantities, or where the
log density alone is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute, Block, SSAValue

from ulam.dialects import ad, stan
from ulam.library.statuses import REJECTION
from ulam.passes.analysis.call_context import body_drops_constants
from ulam.passes.autodiff.forward_mode import forward_in_place
from ulam.passes.autodiff.reverse_mode import reverse_in_place
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.inlining import effective_autodiff, inline, is_unnormalized
from ulam.passes.to_loops.intrinsics import intrinsic
from ulam.passes.to_loops.lowering import Closure, Lowering
from ulam.passes.to_loops.values import (
    Container,
    Tuple,
    Value,
    for_each_element,
    in_buffer,
    peel,
    rank_of,
    total,
    write,
)


def capture(
    low: Lowering, op: stan.CallOp, arguments: Sequence[Value], autodiff: Sequence[bool]
) -> tuple[Closure, list[Value], list[bool]]:
    """The closure that a call of a higher-order function makes; its other arguments and which of them are autodiff."""
    assert op.callback is not None and op.captured is not None
    is_captured = [bool(bit) for bit in op.captured.get_values()]
    inner = [n for n, bit in enumerate(is_captured) if bit]
    outer = [n for n, bit in enumerate(is_captured) if not bit]
    closure = Closure(
        low.functions[op.callback.data], [low.own(arguments[n]) for n in inner], [autodiff[n] for n in inner]
    )
    return closure, [arguments[n] for n in outer], [autodiff[n] for n in outer]


def _closure(low: Lowering, op: stan.CallOp) -> Closure:
    for frame in reversed(low.frames):
        if frame.closure is not None:
            return frame.closure
    raise NotSupportedError(f"'{op.callee.data}' outside of a function that takes a function", op.location)


def _apply(
    low: Lowering,
    closure: Closure,
    first: Sequence[Value],
    captured: Sequence[Value],
    type_: Attribute,
    differentiated: Sequence[bool] | None = None,
    *,
    again: bool = False,
) -> Value:
    """A call of the closure's function, `first` before what it captured; the result as a value of `type_`.

    `differentiated`: which of all arguments a gradient will be taken of; none if it is not given. `again`: it is that
    of a derivative.
    """
    function = closure.function
    if differentiated is not None and (untraced := stan.UntracedAttr.of(function)) is not None:
        function = low.functions[untraced.function.data]
    formals = list(function.function_type.inputs)
    own = [_as(low, value, formal) for value, formal in zip(first, formals, strict=False)]
    arguments = [*own, *captured]
    # The function may call the library's function that is being written: each has its own meaning of the same names.
    outer = low.env, low.differentiated, low.differentiated_again
    low.env, low.differentiated, low.differentiated_again = dict(low.env), differentiated is not None, again
    result = inline(low, function, arguments, function.location, False, differentiated or [False] * len(arguments))
    low.env, low.differentiated, low.differentiated_again = outer
    assert result is not None
    return _as(low, result, type_)


def _as(low: Lowering, value: Value, type_: Attribute) -> Value:
    """A vector as an array of reals, and the other way round: their elements lie in the same order."""
    if not isinstance(value, Container) or value.type == type_:
        return value
    owned = low.own(value)
    assert isinstance(owned, Container) and owned.buffer is not None and rank_of(type_) == len(owned.dims)
    return in_buffer(low.builder, type_, owned.dims, owned.buffer, data_only=owned.data_only)


@intrinsic("callback")
def callback(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    closure = _closure(low, op)
    assert op.res is not None
    return _apply(low, closure, arguments, closure.arguments, op.res.type)


@intrinsic("solver_step")
def solver_step(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> None:
    _count_step(low, failed=False)


@intrinsic("solver_failed_step")
def solver_failed_step(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> None:
    _count_step(low, failed=True)


def _count_step(low: Lowering, *, failed: bool) -> None:
    """Of a solver: for profiles alone, in programs that have some."""
    if low.profiles:
        low.builder.insert(ad.ProfileStepOp(failed=failed))


@intrinsic("is_differentiated")
def is_differentiated(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    return low.builder.i32(int(low.differentiated and effective_autodiff(low, op)[0]))


@intrinsic("is_differentiated_again")
def is_differentiated_again(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    return low.builder.i32(int(low.differentiated_again))


@intrinsic("callback_parameters")
def callback_parameters(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    return _packed(low, _differentiated(low, _closure(low, op)))


@intrinsic("callback_arguments")
def callback_arguments(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    return _packed(low, [part for a in _closure(low, op).arguments for part in _reals(a)])


def _differentiated(low: Lowering, closure: Closure) -> list[Value]:
    """Scalars and containers of reals, with respect to which a gradient will be taken."""
    if not low.differentiated:
        return []
    pairs = zip(closure.arguments, closure.autodiff, strict=True)
    return [part for argument, bit in pairs if bit for part in _reals(argument)]


def _reals(value: Value) -> list[Value]:
    if isinstance(value, Tuple):
        return [part for field in value.fields for part in _reals(field)]
    real = value.element_type == f64 if isinstance(value, Container) else value.type == f64
    return [value] if real else []


def _count(low: Lowering, parts: Sequence[Value]) -> SSAValue:
    """Number of elements (i64)."""
    builder = low.builder
    count = builder.i64(0)
    for part in parts:
        size = total(builder, part.dims) if isinstance(part, Container) else builder.i64(1)
        count = builder.add(count, size)
    return count


def _packed(low: Lowering, parts: Sequence[Value]) -> Container:
    """All elements in one vector."""
    builder = low.builder
    count = _count(low, parts)
    buffer = builder.alloc(count)
    _pack(low, parts, buffer, builder.i64(0), lambda x: x)
    return in_buffer(builder, stan.VECTOR, [count], buffer, data_only=all(low.is_data(p) for p in parts))


def _pack(
    low: Lowering, parts: Sequence[Value], buffer: SSAValue, offset: SSAValue, change: Callable[[SSAValue], SSAValue]
) -> list[SSAValue]:
    """Writes the elements, changed, to a buffer from `offset` on; returns where each part begins."""
    builder = low.builder
    offsets: list[SSAValue] = []
    for part in parts:
        offsets.append(offset)
        if isinstance(part, Container):
            view = builder.view(buffer, offset)

            def body(k: SSAValue, element: SSAValue, _: object, view: SSAValue = view) -> Sequence[SSAValue]:
                builder.store(change(element), view, k, initial=True)
                return ()

            for_each_element(builder, part, body)
            offset = builder.add(offset, total(builder, part.dims))
        else:
            assert isinstance(part, SSAValue)
            builder.store(change(part), buffer, offset, initial=True)
            offset = builder.add(offset, builder.i64(1))
    return offsets


# ---------------------------------------------------------------- calls in parts


@intrinsic("reduce_sum", "reduce_sum_static")
def reduce_sum(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """One call with the whole array, as in Stan without threads; 0 without any call if it is empty."""
    builder = low.builder
    unnormalized = is_unnormalized(low, op)
    closure, (x, grainsize), autodiff = capture(low, op, arguments, effective_autodiff(low, op))
    sliced = low.own(x)
    assert isinstance(sliced, Container) and isinstance(grainsize, SSAValue)
    ok = builder.cmpi("sgt", grainsize, builder.i32(0))
    low.check(ok, REJECTION, f"{op.callee.data}: grainsize is {{0}}, but must be positive!", grainsize)

    def call() -> Sequence[SSAValue]:
        last = builder.truncate(sliced.dims[0])
        bits = [autodiff[0], False, False, *closure.autodiff]
        function = closure.function
        drops = body_drops_constants(function, unnormalized)
        values = [sliced, builder.i32(1), last, *closure.arguments]
        result = inline(low, function, values, function.location, drops, bits)
        assert isinstance(result, SSAValue)
        return (result,)

    is_there = builder.cmpi("sgt", sliced.dims[0], builder.i64(0))
    (result,) = builder.if_else(is_there, call, lambda: (builder.f64(0.0),))
    return result


@intrinsic("map_rect")
def map_rect(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """`f(phi, theta[i], x_r[i], x_i[i])` for each i, one result behind the other.

    There is room for as many as if all had the size of the first; where that does not do, for twice what is needed.
    """
    builder = low.builder
    closure, outer, autodiff = capture(low, op, arguments, effective_autodiff(low, op))
    shared, *parts = (low.own(value) for value in outer)
    assert isinstance(shared, Container)
    jobs = [part for part in parts if isinstance(part, Container)]
    count = jobs[0].dims[0]
    for job, what in zip(jobs[1:], ("real", "int"), strict=True):
        message = f"map_rect: there are parameters of {{0}} jobs, but {what} data of {{1}}"
        low.check_equal(count, job.dims[0], message)

    def call(i: SSAValue) -> Container:
        own = [_part(low, job, i) for job in jobs]
        function = closure.function
        result = inline(low, function, [shared, *own], function.location, False, autodiff)
        owned = low.own(result) if result is not None else None
        assert isinstance(owned, Container) and owned.buffer is not None
        return owned

    def one_behind_the_other() -> Sequence[SSAValue]:
        first = call(builder.i64(0))
        size = first.dims[0]
        length = builder.mul(count, size)
        buffer = builder.alloc(length)
        write(builder, first, builder.view(buffer, builder.i64(0)), initial=True)

        def further(i: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            held, length, room = carried
            result = call(i)
            needed = builder.add(length, result.dims[0])

            def larger() -> Sequence[SSAValue]:
                twice = builder.mul(needed, builder.i64(2))
                more = builder.alloc(twice)
                builder.copy(more, held, length, initial=True)
                return more, twice

            held, room = builder.if_else(builder.cmpi("sgt", needed, room), larger, lambda: (held, room))
            write(builder, result, builder.view(held, length), initial=True)
            return held, needed, room

        held, used, _ = builder.for_loop(builder.i64(1), count, further, (buffer, size, length))
        return held, used

    is_there = builder.cmpi("sgt", count, builder.i64(0))
    nothing = builder.i64(0)
    buffer, length = builder.if_else(is_there, one_behind_the_other, lambda: (builder.alloc(nothing), nothing))
    return in_buffer(builder, stan.VECTOR, [length], buffer, data_only=all(low.is_data(value) for value in outer))


def _part(low: Lowering, container: Container, i: SSAValue) -> Container:
    """Element `i` of an array of containers."""
    builder = low.builder
    assert container.buffer is not None
    dims = container.dims[1:]
    view = builder.view(container.buffer, builder.mul(i, total(builder, dims)))
    return in_buffer(builder, peel(container.type, 1), dims, view, data_only=container.data_only)


# ---------------------------------------------------------------- derivatives


@intrinsic("callback_jacobian")
def callback_jacobian(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """One reverse sweep for each row; the function's value comes with it."""
    builder = low.builder
    closure = _closure(low, op)
    owned = [low.own(argument) for argument in arguments]
    states = [argument for argument in owned if isinstance(argument, Container)]
    first = owned[: len(owned) - len(states)]
    y = states[0]
    n = y.dims[0]
    if stan.UntracedAttr.marks(closure.function):
        _apply(low, closure, owned, closure.arguments, y.type)  # a call to be recorded: derivatives are not
    parameters = _differentiated(low, closure)
    columns = _count(low, [*states, *parameters])
    dims = [n, builder.add(columns, builder.i64(1))]
    result = builder.alloc(total(builder, dims))

    def row(i: SSAValue, _: object) -> Sequence[SSAValue]:
        def element(f: Value) -> SSAValue:
            assert isinstance(f, Container)
            low.check_equal(f.dims[0], n, "the function returns {0} elements, but its argument has {1}")
            return f.at([i])

        value, gradient = _gradient(low, closure, first, states, parameters, columns, y.type, element)
        builder.store(value, result, i, initial=True)
        if gradient is None:
            gradient = builder.alloc(columns, zero=True)

        def column(j: SSAValue, _: object) -> Sequence[SSAValue]:
            position = builder.add(builder.mul(builder.add(j, builder.i64(1)), n), i)
            builder.store(builder.load(gradient, j), result, position, initial=True)
            return ()

        builder.for_loop(builder.i64(0), columns, column)
        return ()

    builder.for_loop(builder.i64(0), n, row)
    return in_buffer(builder, stan.MATRIX, dims, result)


@intrinsic("callback_gradient")
def callback_gradient(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """One reverse sweep; none, and a call as of `callback`, where no gradient will be taken."""
    builder = low.builder
    closure = _closure(low, op)
    parameters = _differentiated(low, closure)
    columns = _count(low, parameters)
    size = builder.add(columns, builder.i64(1))
    result = builder.alloc(size)
    if not parameters or stan.UntracedAttr.marks(closure.function):
        value = _apply(low, closure, arguments, closure.arguments, stan.REAL)
        assert isinstance(value, SSAValue)
        builder.store(value, result, builder.i64(0), initial=True)
    if parameters:

        def number(f: Value) -> SSAValue:
            assert isinstance(f, SSAValue)
            return f

        value, gradient = _gradient(low, closure, arguments, [], parameters, columns, stan.REAL, number)
        builder.store(value, result, builder.i64(0), initial=True)
        if gradient is None:
            gradient = builder.alloc(columns, zero=True)

        def copy(j: SSAValue, _: object) -> Sequence[SSAValue]:
            builder.store(builder.load(gradient, j), result, builder.add(j, builder.i64(1)), initial=True)
            return ()

        builder.for_loop(builder.i64(0), columns, copy)
    return in_buffer(builder, stan.VECTOR, [size], result)


_DIRECTIONAL = {"callback_derivatives": 0, "callback_slope_derivatives": 1, "callback_curvature_derivatives": 2}
"""How often the function is differentiated along a direction before its gradient is taken."""


@intrinsic(*_DIRECTIONAL)
def callback_derivatives(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """Forward mode along the direction, once or twice, then a reverse sweep."""
    builder = low.builder
    closure = _closure(low, op)
    x, *directions = (low.own(argument) for argument in arguments)
    assert isinstance(x, Container)
    order = _DIRECTIONAL[op.callee.data]
    if not order and stan.UntracedAttr.marks(closure.function):
        _apply(low, closure, [x], closure.arguments, stan.REAL)  # a call to be recorded: derivatives are not
    parameters = _differentiated(low, closure)
    columns = builder.add(x.dims[0], _count(low, parameters))
    size = builder.add(columns, builder.i64(1))
    result = builder.alloc(size)
    tangent = None
    if directions:
        (direction,) = directions
        assert isinstance(direction, Container)
        tangent = builder.alloc(size, zero=True)
        _pack(low, [direction], tangent, builder.i64(0), lambda v: v)

    def number(f: Value) -> SSAValue:
        assert isinstance(f, SSAValue)
        return f

    value, gradient = _gradient(low, closure, [], [x], parameters, columns, stan.REAL, number, tangent, order)
    builder.store(value, result, builder.i64(0), initial=True)
    if gradient is None:
        gradient = builder.alloc(columns, zero=True)
    builder.copy(builder.view(result, builder.i64(1)), gradient, columns, initial=True)
    return in_buffer(builder, stan.VECTOR, [size], result)


def _gradient(
    low: Lowering,
    closure: Closure,
    first: Sequence[Value],
    states: Sequence[Container],
    parameters: Sequence[Value],
    columns: SSAValue,
    type_: Attribute,
    number: Callable[[Value], SSAValue],
    direction: SSAValue | None = None,
    order: int = 0,
) -> tuple[SSAValue, SSAValue | None]:
    """A number of the function's value, which is one of `type_`, and the buffer of its gradient; None if that is 0.

    The gradient is with respect to `states`, the arguments after `first`, and to `parameters`: `columns` reals in all.
    `order`: it is that of the number's derivative of this order along `direction`, which then takes the number's place.
    """
    builder = low.builder
    block = Block()
    with builder.inside(block):
        point = builder.alloc(builder.add(columns, builder.i64(1)))
        values = [*states, *parameters]
        offsets = _pack(low, values, point, builder.i64(0), lambda x: builder.math("value_of", x))
        builder.insert(ad.IndependentOp(point, columns))
        copies = iter([_from_buffer(low, v, point, o) for v, o in zip(values, offsets, strict=True)])
        own = [*first, *(next(copies) for _ in states)]
        captured = [
            _rebuilt(argument, copies) if bit and low.differentiated else argument
            for argument, bit in zip(closure.arguments, closure.autodiff, strict=True)
        ]
        bits = [*(False for _ in first), *(True for _ in states)]
        bits += [bit and low.differentiated for bit in closure.autodiff]
        value = number(low.own(_apply(low, closure, own, captured, type_, bits, again=order > 0)))
        builder.insert(ad.TargetAddOp(value))
    for _ in range(order):
        assert direction is not None
        forward_in_place(block, builder.known, direction, low.outlined.tangents)
    value, gradient = reverse_in_place(block, builder.known, low.outlined.derivatives)
    for op in list(block.ops):
        op.detach()
        builder.block.add_op(op)
    return value, gradient


def _from_buffer(low: Lowering, like: Value, buffer: SSAValue, offset: SSAValue) -> Value:
    """The value of the shape of `like` whose elements lie in `buffer`."""
    if isinstance(like, Container):
        return in_buffer(low.builder, like.type, like.dims, low.builder.view(buffer, offset))
    return low.builder.load(buffer, offset)


def _rebuilt(value: Value, copies) -> Value:  # noqa: ANN001
    """`value` with its reals replaced by the copies, in the order of `_reals`."""
    if isinstance(value, Tuple):
        return Tuple(value.type, [_rebuilt(field, copies) for field in value.fields])
    return next(copies) if _reals(value) else value
