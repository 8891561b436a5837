"""Functions written in place of calls: their bodies, their arguments, and what Stan's static rules say of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, LocationAttr, i32
from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.passes.analysis.call_context import dependence
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.lowering import CallFrame, Closure, Lowering, is_requirement
from ulam.passes.to_loops.statements import add_value_to_target
from ulam.passes.to_loops.subjects import Subject
from ulam.passes.to_loops.values import Container, Value


def effective_autodiff(low: Lowering, op: stan.CallOp) -> list[bool]:
    """Which arguments Stan's static rule calls autodiff at this call.

    In a function that is written in place, an argument is autodiff only if it depends on an argument of the function
    that is autodiff at its own call. A block of the model that was made a function is none in this sense.
    """
    static = [bool(bit) for bit in cast("DenseArrayBase[IntegerType]", op.autodiff).get_values()]
    if not low.frames or low.frames[-1].function.model is not None:
        return static
    return [bit and depends_on_autodiff(low.frames[-1], arg) for bit, arg in zip(static, op.arguments, strict=True)]


def depends_on_autodiff(frame: CallFrame, ssa: SSAValue) -> bool:
    """Whether a value in a function's body depends on one of its autodiff arguments (or on a local variable)."""
    return bool(dependence(ssa, frame.autodiff, frame.any_autodiff))


def is_unnormalized(low: Lowering, op: stan.CallOp) -> bool:
    """Whether a call may drop constants: inside functions only if they were called so themselves."""
    return low.propto and op.unnormalized is not None and all(frame.unnormalized for frame in low.frames)


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
    """Writes a function's body in place of a call, or calls it if it is recursive or written often; returns its result.

    `unchecked`: without the requirements that the body states itself. `told`: what errors call the arguments, where
    that is not as the function calls them.
    """
    if not function.body.blocks:
        raise NotSupportedError(f"function '{function.stan_name.data}' is declared but not defined", location)
    if low.outlined.is_called(low, function, arguments, unnormalized, autodiff):
        result = low.outlined.call(low, function, arguments, unnormalized, autodiff)
        if not to_target or result is None:
            return result
        add_value_to_target(low, result)
        return None
    in_solver = _in_solver(low)
    if closure is None and low.outlined.shared.is_called(function, arguments, autodiff, in_solver=in_solver):
        result = low.outlined.call_shared(low, function, arguments, unnormalized, autodiff, in_solver=in_solver)
        if result is not None:
            return result
    if in_solver and (result := low.outlined.call_solution(low, function, arguments, autodiff)) is not None:
        return result
    block = function.body.block
    frame = CallFrame(function, location, unnormalized, to_target=to_target, closure=closure)
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


def _in_solver(low: Lowering) -> bool:
    """Whether what is written is part of a function of the library that calls one of the program, not of the latter."""
    for frame in reversed(low.frames):
        if frame.function.library is None:
            return False
        if frame.closure is not None:
            return True
    return False


def actual_argument(low: Lowering, function: stan.FuncOp, n: int, argument: Value, *, unchecked: bool = False) -> Value:
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
        if argument.buffer is not None and _in_solver(low):
            return argument  # part of a state, which is not differentiated: no reverse sweep reads it later
        return low.own(argument)
    if isinstance(argument, SSAValue):
        return as_formal(low, argument, formal.type)
    return argument


def as_formal(low: Lowering, scalar: SSAValue, formal: object) -> SSAValue:
    """int → real where the formal is real."""
    return low.builder.to_real(scalar) if scalar.type == i32 and isinstance(formal, stan.RealType) else scalar
