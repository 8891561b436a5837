"""Checks that a variable has what its declaration says: data, transformed data and parameters, generated quantities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.library.constraints import CONTAINER_FAMILIES
from ulam.library.statuses import REJECTION
from ulam.passes.analysis.call_graph import library_function
from ulam.passes.builder import Builder
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.inlining import inline
from ulam.passes.to_loops.lowering import Lowering, handles
from ulam.passes.to_loops.parameters import shaped_like
from ulam.passes.to_loops.requirements import holds
from ulam.passes.to_loops.subjects import Subject
from ulam.passes.to_loops.values import Container, Value, for_each_position, in_buffer, total

_BOUND_CHECKS: tuple[tuple[str, str], ...] = (("lower", "require_at_least"), ("upper", "require_at_most"))


@handles(stan.CheckOp)
def check(low: Lowering, op: stan.CheckOp) -> None:
    """What a declaration says of one variable."""
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
    function = library_function(f"{family}_check", low.functions)
    if function is None:
        raise NotSupportedError(f"constraint '{constraint}' is not supported yet", op.location)
    assert isinstance(value, Container)
    low.subjects.append(op.var_name.data)
    rank = value.array_rank
    if rank == 0:
        inline(low, function, [low.own(value)], op.location, False, [True], told=[Subject(op.var_name.data)])
    else:
        owned = low.own(value)
        assert isinstance(owned, Container) and owned.buffer is not None
        builder, buffer, inner_dims = low.builder, owned.buffer, owned.dims[rank:]
        count = total(builder, inner_dims)

        def each(position: SSAValue, indices: list[SSAValue]) -> None:
            data = builder.view(buffer, builder.mul(position, count))
            part = in_buffer(builder, owned.inner, inner_dims, data, data_only=owned.data_only)
            subject = Subject(op.var_name.data).part(["single"] * rank, indices)
            inline(low, function, [part], op.location, False, [True], told=[subject])

        _for_each_element(builder, owned.dims[:rank], each)
    low.subjects.pop()


def _for_each_element(
    builder: Builder, dims: Sequence[SSAValue], body: Callable[[SSAValue, list[SSAValue]], None]
) -> None:
    """Loops over the elements of an array: `body` gets the position in memory, and the indices from 1."""

    def nest(level: int, position: SSAValue, indices: list[SSAValue]) -> None:
        if level == len(dims):
            body(position, indices)
            return

        def each(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            inner = builder.add(builder.mul(position, dims[level]), k)
            nest(level + 1, inner, [*indices, builder.add(k, builder.i64(1))])
            return ()

        builder.for_loop(builder.i64(0), dims[level], each)

    nest(0, builder.i64(0), [])


_SHORT_LIMITS = frozenset(range(-100, 101))


def _check_bound(low: Lowering, op: stan.CheckOp, value: Value, bound: Value, requirement: str) -> None:
    builder = low.builder
    name = op.var_name.data
    phrase = "greater than or equal to" if requirement == "require_at_least" else "less than or equal to"

    def precise(x: SSAValue, limit: SSAValue, indices: Sequence[SSAValue]) -> None:
        ok = holds(low, requirement, [x, limit])
        known = builder.known.get(limit)
        told = str(int(known)) if known in _SHORT_LIMITS else None  # an error has four values at most
        values = [x, *indices] if told is not None else [x, *indices, limit]
        where = f"[{', '.join(f'{{{n}}}' for n in range(1, 1 + len(indices)))}]" if indices else ""
        message = f"{name}{where} is {{0}}, but must be {phrase} {told or f'{{{len(values) - 1}}}'}"
        low.check(ok, REJECTION, message, *values, location=op.location)

    if not isinstance(value, Container):
        assert isinstance(value, SSAValue) and isinstance(bound, SSAValue)
        precise(value, bound, ())
        return
    containers = [value, shaped_like(low, op, bound, value)]
    is_told_here = low.precise or not low.differentiated  # what fails in a gradient is told by the unit `locate`
    is_short = isinstance(bound, SSAValue) and builder.known.get(bound) in _SHORT_LIMITS
    if is_told_here and 1 < len(value.dims) <= (3 if is_short else 2):

        def each(_: SSAValue, indices: list[SSAValue]) -> None:
            x, limit = (c.at([builder.sub(i, builder.i64(1)) for i in indices]) for c in containers)
            precise(x, limit, indices)

        _for_each_element(builder, value.dims, each)
        return

    def scan(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        precise(values[0], values[1], (builder.add(k, builder.i64(1)),))
        return ()

    for_each_position(builder, containers, scan)
