"""Which solutions of differential equations are functions of their own, where a program solves the same one often.

A solver calls a function of the program, so it is written for each; where it is called with the same one from many
places, all passes and LLVM go through as many copies. What a solver computes step by step are constants, to which
`ode_attach` and its like give derivatives afterwards. So it can be a function of the values alone of its arguments and
of those that the program's function is called with besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.passes.to_loops.lowering import CallFrame, Closure, Lowering
from ulam.passes.to_loops.repeated_functions import FEW, RepeatedFunctions
from ulam.passes.to_loops.values import Container, Tuple, Value, for_each_element, in_buffer, total

SOLUTIONS = frozenset({"ode_dormand_prince_states", "ode_cash_karp_states", "ode_radau_states", "dae_radau_states"})
"""Functions of the library whose results are constants to differentiation, and which call the program's function."""


def is_shared(
    low: Lowering, function: stan.FuncOp, arguments: Sequence[Value], repeated: RepeatedFunctions | None
) -> bool:
    """Whether a call of the library is to be one of a function that is written once for the program's function.

    Not where steps are counted for profiles: they are those of the statement around the call. Of data alone it stays
    where it can be computed when data are bound.
    """
    if repeated is None or function.stan_name.data not in SOLUTIONS or low.profiles:
        return False
    given = closure(low)
    if repeated.solves_once and all(low.is_data(value) for value in (*arguments, *given.arguments)):
        return False
    return can_be_passed(given) and repeated.places_with(given.function) > FEW


def closure(low: Lowering) -> Closure:
    """What `callback` means in what is being written; where no gradient will be taken, that of data."""
    found = next(frame.closure for frame in reversed(low.frames) if frame.closure is not None)
    return found if low.differentiated else replace(found, autodiff=[False] * len(found.autodiff))


def can_be_passed(closure: Closure) -> bool:
    """Whether all that the program's function is called with besides can be an argument of a `func.func`."""
    return all(_is_real_or_int(argument) for argument in closure.arguments)


def _is_real_or_int(value: Value) -> bool:
    if isinstance(value, Tuple):
        return all(_is_real_or_int(field) for field in value.fields)
    if not isinstance(value, Container):
        return True
    base = value.type.element if isinstance(value.type, stan.ArrayType) else value.type
    return isinstance(base, stan.IntType | stan.RealType | stan.VectorType | stan.RowVectorType | stan.MatrixType)


def constant(low: Lowering, value: Value) -> Value:
    """A value whose derivatives are 0."""
    builder = low.builder
    if isinstance(value, Tuple):
        return Tuple(value.type, [constant(low, field) for field in value.fields])
    if not low.differentiated or low.is_data(value):
        return value
    if not isinstance(value, Container):
        return builder.math("value_of", value) if value.type == f64 else value
    if value.element_type != f64:
        return value
    buffer = builder.alloc(total(builder, value.dims))

    def copy(k: SSAValue, element: SSAValue, _: object) -> Sequence[SSAValue]:
        builder.store(builder.math("value_of", element), buffer, k, initial=True)
        return ()

    for_each_element(builder, value, copy)
    return in_buffer(builder, value.type, value.dims, buffer)


def chain(low: Lowering) -> str:
    """The functions of the library, from the one that the program calls: errors tell of arguments as these do."""
    names: list[str] = []
    for frame in reversed(low.frames):
        if frame.function.library is None:
            break
        names.append(frame.function.sym_name.data)
    return " ".join(names)


def frames_with(frames: Sequence[CallFrame], own: Closure) -> list[CallFrame]:
    """The frames, with another closure in place of the innermost."""
    found = list(frames)
    last = max(n for n, frame in enumerate(found) if frame.closure is not None)
    found[last] = replace(found[last], closure=own)
    return found
