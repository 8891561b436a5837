"""Calls: functions of the program and of the library are written in place; the rest are intrinsics and primitives."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.library.derivatives import has_primitive
from ulam.library.externals import is_external
from ulam.library.functions import kind_of
from ulam.library.requirements import PRIMITIVE_REQUIREMENTS, REQUIREMENTS
from ulam.passes.analysis.call_context import body_drops_constants
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.callbacks import capture
from ulam.passes.to_loops.densities import density, vectorized_function
from ulam.passes.to_loops.externals import call_external
from ulam.passes.to_loops.inlining import actual_argument, as_formal, effective_autodiff, inline, is_unnormalized
from ulam.passes.to_loops.kernels import INTRINSICS
from ulam.passes.to_loops.lowering import Lowering, all_scalar, handles, is_density
from ulam.passes.to_loops.operators import apply_elementwise
from ulam.passes.to_loops.requirements import check_primitive, require
from ulam.passes.to_loops.statements import add_value_to_target
from ulam.passes.to_loops.subjects import Subject, described
from ulam.passes.to_loops.transform_calls import is_over_arrays, transform_arrays
from ulam.passes.to_loops.values import Container, Value

_PARTS = frozenset(("reverse",))
"""Functions that only move elements: from level 3 on these are read where they are used, as layouts of data need it."""


@handles(stan.CallOp)
def call(low: Lowering, op: stan.CallOp) -> None:
    name = op.callee.data
    if op.res is not None and (end := feeds_target(low, op)) is not None:
        low.deferred.add(op.res)
        _keep_arguments(low, op, end)
        return
    if op.user is not None:
        result = call_user(low, op)
    elif name in REQUIREMENTS:
        require(low, op)
        return
    elif op.definition is not None and (name not in _PARTS or low.outlined.terms.whole):
        result = call_library(low, op)
    else:
        result = call_intrinsic(low, op)
    if op.res is not None:
        if result is None:
            raise NotSupportedError(f"'{name}' did not return a value", op.location)
        low.define(op.res, result)


# ---------------------------------------------------------------- sums that go into the target


def feeds_target(low: Lowering, op: stan.CallOp) -> Operation | None:
    """Where a call is written instead: where its value is added to the target (see `target_terms`)."""
    end = low.outlined.terms.waits_for(op)
    if isinstance(end, stan.ReturnOp) and not (low.frames and low.frames[-1].to_target):
        return None
    return end


def _keep_arguments(low: Lowering, op: stan.CallOp, end: Operation) -> None:
    """Copies the arguments of a call that waits for `end` if what they read is assigned before."""
    for ssa in op.arguments:
        value = low.env[ssa]
        if isinstance(value, Container) and value.variables and low.written_between(value.variables, op, end):
            low.env[ssa] = low.own(value)


def add_to_target(low: Lowering, ssa: SSAValue) -> None:
    """Adds a value to the target, summand by summand, so that loops over summands need not carry a sum."""
    if ssa not in low.deferred:
        add_value_to_target(low, low.value(ssa))
        return
    low.deferred.discard(ssa)
    op = ssa.owner
    assert isinstance(op, Operation)
    outer, low.builder.location = low.builder.location, low.place(op)
    if isinstance(op, stan.CallOp):
        if is_density(op):
            density(low, op, to_target=True)
        else:
            call_user(low, op, to_target=True)
    else:
        for operand in op.operands:
            add_to_target(low, operand)
    low.builder.location = outer


@handles(stan.TargetAddOp)
def target_add(low: Lowering, op: stan.TargetAddOp) -> None:
    add_to_target(low, op.value)


@handles(stan.ReturnOp)
def return_(low: Lowering, op: stan.ReturnOp) -> None:
    if op.value is None:
        return
    frame = low.frames[-1]
    if not frame.to_target:
        frame.result = low.own(low.value(op.value))
        return
    add_to_target(low, op.value)


# ---------------------------------------------------------------- functions


def call_user(low: Lowering, op: stan.CallOp, *, to_target: bool = False) -> Value | None:
    """A function of the program."""
    function = low.functions[op.callee.data]
    arguments = [low.own(low.value(a)) for a in op.arguments]
    unnormalized = body_drops_constants(function, is_unnormalized(low, op))
    return inline(low, function, arguments, op.location, unnormalized, effective_autodiff(low, op), to_target=to_target)


def call_library(low: Lowering, op: stan.CallOp) -> Value | None:
    """A function of library/*.stan."""
    assert op.definition is not None
    function = low.functions[op.definition.data]
    if is_density(op):
        return density(low, op)
    arguments = [low.value(a) for a in op.arguments]
    autodiff = effective_autodiff(low, op)
    unnormalized = is_unnormalized(low, op)
    unchecked = op.unchecked is not None
    is_over_elements = op.callback is None and all_scalar(function)
    over_elements = is_over_elements and any(isinstance(a, Container) for a in arguments)
    if over_elements and kind_of(op.callee.data).is_of_distribution:
        return vectorized_function(low, op, function, arguments)
    if over_elements:
        inputs = list(function.function_type.inputs)

        def element(*scalars: SSAValue) -> SSAValue:
            converted = [as_formal(low, s, t) for s, t in zip(scalars, inputs, strict=True)]
            result = inline(low, function, converted, op.location, unnormalized, autodiff, unchecked=unchecked)
            assert isinstance(result, SSAValue)
            return result

        assert op.res is not None
        return apply_elementwise(low, op.callee.data, op.res.type, arguments, element)
    if is_over_arrays(op, function, arguments):
        return transform_arrays(low, op, function, arguments, autodiff)
    closure = None
    if op.callback is not None:
        closure, arguments, autodiff = capture(low, op, arguments, autodiff)
    owned = [actual_argument(low, function, n, a, unchecked=unchecked) for n, a in enumerate(arguments)]
    told = _told_arguments(low, op)
    return inline(
        low, function, owned, op.location, unnormalized, autodiff, closure=closure, unchecked=unchecked, told=told
    )


def _told_arguments(low: Lowering, op: stan.CallOp) -> list[Subject | None]:
    """What errors call the arguments of a call by the library: those of the program's call are called as it does."""
    return [described(low, a) for a in op.arguments] if low.in_library() and op.callback is None else []


def call_intrinsic(low: Lowering, op: stan.CallOp) -> Value | None:
    """A function that the lowering knows itself, or a scalar primitive, element-wise in containers."""
    name = op.callee.data
    arguments = [low.value(a) for a in op.arguments]
    if is_external(name):
        return call_external(low, op, arguments)
    if (intrinsic := INTRINSICS.get(name)) is not None and (
        result := intrinsic(low, op, arguments)
    ) is not NotImplemented:
        return result
    if has_primitive(name) and op.res is not None:
        builder = low.builder
        requirements = () if low.in_library() or op.unchecked is not None else PRIMITIVE_REQUIREMENTS.get(name, ())
        location = low.error_location()

        def element(*scalars: SSAValue) -> SSAValue:
            reals = [builder.to_real(s) for s in scalars]
            for position, requirement, others in requirements:
                check_primitive(low, name, reals, position, requirement, others, location)
            return builder.math(name, *reals)

        return apply_elementwise(low, name, op.res.type, arguments, element)
    raise NotSupportedError(f"function '{name}' is not supported yet for these arguments", op.location)
