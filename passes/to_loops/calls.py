"""Calls: functions of the program and of the library are written in place; the rest are intrinsics and primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, LocationAttr, i32
from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.library.derivatives import has_primitive
from ulam.library.requirements import (
    CONSTRAINT_TOLERANCE,
    NAN_IS_REFUSED,
    PRIMITIVE_REQUIREMENTS,
    REQUIREMENTS,
    ArgumentReference,
)
from ulam.library.statuses import REJECTION
from ulam.passes.analysis.call_context import body_drops_constants, dependence
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.lowering import (
    Closure,
    Frame,
    Lowering,
    all_scalar,
    handles,
    is_density,
    is_requirement,
)
from ulam.passes.to_loops.operators import apply_elementwise
from ulam.passes.to_loops.statements import add_value_to_target
from ulam.passes.to_loops.subjects import Subject, described, message_about, subject_of_requirement
from ulam.passes.to_loops.values import Container, Value, for_each_position


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
    elif op.definition is not None:
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
            from ulam.passes.to_loops.densities import density

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


def effective_autodiff(low: Lowering, op: stan.CallOp) -> list[bool]:
    """Which arguments Stan's static rule calls autodiff at this call.

    In a function that is written in place, an argument is autodiff only if it depends on an argument of the function
    that is autodiff at its own call. A block of the model that was made a function is none in this sense.
    """
    static = [bool(bit) for bit in cast("DenseArrayBase[IntegerType]", op.autodiff).get_values()]
    if not low.frames or low.frames[-1].function.model is not None:
        return static
    return [bit and depends_on_autodiff(low.frames[-1], arg) for bit, arg in zip(static, op.arguments, strict=True)]


def depends_on_autodiff(frame: Frame, ssa: SSAValue) -> bool:
    """Whether a value in a function's body depends on one of its autodiff arguments (or on a local variable)."""
    return bool(dependence(ssa, frame.autodiff, frame.any_autodiff))


def is_unnormalized(low: Lowering, op: stan.CallOp) -> bool:
    """Whether a call may drop constants: inside functions only if they were called so themselves."""
    return low.propto and op.unnormalized is not None and all(frame.unnormalized for frame in low.frames)


def call_user(low: Lowering, op: stan.CallOp, *, to_target: bool = False) -> Value | None:
    """A function of the program."""
    function = low.functions[op.callee.data]
    arguments = [low.own(low.value(a)) for a in op.arguments]
    unnormalized = body_drops_constants(function, is_unnormalized(low, op))
    return inline(low, function, arguments, op.location, unnormalized, effective_autodiff(low, op), to_target=to_target)


def inline(
    low: Lowering,
    function: stan.FuncOp,
    arguments: Sequence[Value],
    location: LocationAttr | None,
    unnormalized: bool,
    autodiff: Sequence[bool],
    *,
    to_target: bool = False,
    closure: Closure | None = None,
    unchecked: bool = False,
    told: Sequence[Subject | None] = (),
) -> Value | None:
    """Writes a function's body in place of a call, or calls it if it is recursive; returns its result.

    `unchecked`: without the requirements that the body states itself. `told`: what errors call the arguments, where
    that is not as the function calls them.
    """
    if not function.body.blocks:
        raise NotSupportedError(f"function '{function.stan_name.data}' is declared but not defined", location)
    if low.outlined.graph.is_recursive(function.sym_name.data):
        result = low.outlined.call(low, function, arguments, unnormalized, autodiff)
        if not to_target or result is None:
            return result
        add_value_to_target(low, result)
        return None
    block = function.body.block
    frame = Frame(function, location, unnormalized, to_target=to_target, closure=closure)
    for formal, actual, bit in zip(block.args, arguments, autodiff, strict=True):
        low.env[formal] = actual
        frame.autodiff[formal] = bit
    frame.told = {formal: subject for formal, subject in zip(block.args, told, strict=False) if subject is not None}
    low.frames.append(frame)
    outer = low.builder.location
    low.block_ops(op for op in block.ops if not (unchecked and is_requirement(op)))
    low.builder.location = outer
    low.frames.pop()
    return frame.result


def call_library(low: Lowering, op: stan.CallOp) -> Value | None:
    """A function of library/*.stan."""
    assert op.definition is not None
    function = low.functions[op.definition.data]
    if is_density(op):
        from ulam.passes.to_loops.densities import density

        return density(low, op)
    arguments = [low.value(a) for a in op.arguments]
    autodiff = effective_autodiff(low, op)
    unnormalized = is_unnormalized(low, op)
    unchecked = op.unchecked is not None
    is_over_elements = op.callback is None and all_scalar(function)
    over_elements = is_over_elements and any(isinstance(a, Container) for a in arguments)
    if over_elements and op.callee.data.endswith(("_cdf", "_lcdf", "_lccdf", "_rng")):
        from ulam.passes.to_loops.densities import vectorized_function

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
    closure = None
    if op.callback is not None:
        from ulam.passes.to_loops.callbacks import capture

        closure, arguments, autodiff = capture(low, op, arguments, autodiff)
    owned = [_argument(low, function, n, a, unchecked=unchecked) for n, a in enumerate(arguments)]
    told = _told_arguments(low, op)
    return inline(
        low, function, owned, op.location, unnormalized, autodiff, closure=closure, unchecked=unchecked, told=told
    )


def _told_arguments(low: Lowering, op: stan.CallOp) -> list[Subject | None]:
    """What errors call the arguments of a call by the library: those of the program's call are called as it does."""
    in_library = bool(low.frames) and low.frames[-1].function.library is not None
    return [described(low, a) for a in op.arguments] if in_library and op.callback is None else []


def _argument(low: Lowering, function: stan.FuncOp, n: int, argument: Value, *, unchecked: bool = False) -> Value:
    """An actual argument of a library function: computed once if it is used more than once.

    What an `unchecked` function uses once may be computed there even if it reads variables: nothing is assigned before.
    """
    formal = function.body.block.args[n]
    if isinstance(argument, Container):
        if argument.cheap and not argument.variables:
            return argument
        users = [use.operation for use in formal.uses if not (unchecked and is_requirement(use.operation))]
        is_used_there = len(users) == 1 and users[0].parent is function.body.block
        if is_used_there and (unchecked or not argument.variables):
            return argument
        return low.own(argument)
    if isinstance(argument, SSAValue):
        return as_formal(low, argument, formal.type)
    return argument


def as_formal(low: Lowering, scalar: SSAValue, formal: object) -> SSAValue:
    """int → real where the formal is real."""
    return low.builder.to_real(scalar) if scalar.type == i32 and isinstance(formal, stan.RealType) else scalar


def call_intrinsic(low: Lowering, op: stan.CallOp) -> Value | None:
    """A function that the lowering knows itself, or a scalar primitive, element-wise in containers."""
    from ulam.passes.to_loops.kernels import INTRINSICS

    name = op.callee.data
    arguments = [low.value(a) for a in op.arguments]
    if (intrinsic := INTRINSICS.get(name)) is not None and (
        result := intrinsic(low, op, arguments)
    ) is not NotImplemented:
        return result
    if has_primitive(name) and op.res is not None:
        builder = low.builder
        in_library = bool(low.frames) and low.frames[-1].function.library is not None
        requirements = () if in_library or op.unchecked is not None else PRIMITIVE_REQUIREMENTS.get(name, ())
        location = low.error_location()

        def element(*scalars: SSAValue) -> SSAValue:
            reals = [builder.to_real(s) for s in scalars]
            for position, requirement, others in requirements:
                check_primitive(low, name, reals, position, requirement, others, location)
            return builder.math(name, *reals)

        return apply_elementwise(low, name, op.res.type, arguments, element)
    raise NotSupportedError(f"function '{name}' is not supported yet for these arguments", op.location)


# ---------------------------------------------------------------- requirements

_INT_PREDICATES = {"gt": "sgt", "ge": "sge", "lt": "slt", "le": "sle", "eq": "eq"}
_REAL_PREDICATES = {"gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq"}
_UNORDERED_PREDICATES = {"gt": "ugt", "ge": "uge", "lt": "ult", "le": "ule", "eq": "ueq"}


def holds(low: Lowering, name: str, arguments: Sequence[SSAValue], *, nan_passes: bool = False) -> SSAValue:
    """Whether a requirement holds for scalar arguments (i1)."""
    builder = low.builder
    predicates = _UNORDERED_PREDICATES if nan_passes else _REAL_PREDICATES
    subject = arguments[0]
    result: SSAValue | None = None
    for condition in REQUIREMENTS[name].conditions:
        operand = condition.operand
        if not isinstance(operand, ArgumentReference) and subject.type == i32 and abs(operand) == float("inf"):
            continue
        bound = arguments[operand.position] if isinstance(operand, ArgumentReference) else builder.f64(operand)
        if condition.comparison == "near":
            distance = builder.math("fabs", builder.subf(builder.to_real(subject), builder.to_real(bound)))
            ok = builder.cmpf("ole", distance, builder.f64(CONSTRAINT_TOLERANCE))
        elif subject.type == i32 and (
            bound.type == i32 or builder.known.get(bound, 0.5) == int(builder.known.get(bound, 0))
        ):
            right = bound if bound.type == i32 else builder.i32(int(builder.known[bound]))
            ok = builder.cmpi(_INT_PREDICATES[condition.comparison], subject, right)
        else:
            ok = builder.cmpf(predicates[condition.comparison], builder.to_real(subject), builder.to_real(bound))
        result = ok if result is None else builder.both(result, ok)
    if result is None:
        if subject.type == i32 or REQUIREMENTS[name].conditions:
            return builder.i1(True)
        return builder.cmpf("ord", subject, subject)
    return result


def check_requirement(low: Lowering, op: stan.CallOp, arguments: Sequence[SSAValue], position: SSAValue | None) -> None:
    """The precise check: throws a rejection that names the subject, its value and what it must be."""
    name = op.callee.data
    subject = subject_of_requirement(low, op)
    if position is not None:
        subject = subject.part(["single"], [position])
    message, values = message_about(low, subject, low.called_function() or name, REQUIREMENTS[name].phrase, arguments)
    low.check(holds(low, name, arguments), REJECTION, message, *values)


_SUBJECTS = {1: ("x",), 2: ("first argument", "second argument")}


def check_primitive(
    low: Lowering,
    name: str,
    arguments: Sequence[SSAValue],
    position: int,
    requirement: str,
    others: Sequence[float],
    location: LocationAttr | None,
) -> None:
    """What Stan demands of an argument of a primitive that the program itself calls."""
    values = [arguments[position], *(low.builder.f64(other) for other in others)]
    ok = holds(low, requirement, values, nan_passes=name not in NAN_IS_REFUSED)
    subject = _SUBJECTS[len(arguments)][position]
    message = f"{name}: {subject} is {{0}}, but {REQUIREMENTS[requirement].phrase}"
    low.check(ok, REJECTION, message, *values, location=location)


def require(low: Lowering, op: stan.CallOp) -> None:
    """A `require_*` statement of the library, on scalars or on every element of a container."""
    arguments = [low.value(a) for a in op.arguments]
    containers = [a for a in arguments if isinstance(a, Container)]
    if not containers:
        check_requirement(low, op, [a for a in arguments if isinstance(a, SSAValue)], None)
        return
    check_container(low, op, arguments, containers)


def check_container(
    low: Lowering, op: stan.CallOp, arguments: Sequence[Value], containers: Sequence[Container]
) -> None:
    """Checks every element."""
    builder = low.builder

    def scan(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        iterator = iter(values)
        elements = [next(iterator) if isinstance(a, Container) else a for a in arguments]
        check_requirement(low, op, elements, builder.add(k, builder.i64(1)))  # type: ignore[arg-type]
        return ()

    for_each_position(builder, containers, scan)
