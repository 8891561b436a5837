"""Derivatives of functions that are called: of recursive ones, as all others are written in place.

    f(x, v) -> y    →    f.forward(x, v, v's shadow) -> (y, record)
                         f.reverse(record, y's adjoint) -> x's adjoint

The forward version computes the function and pushes one record of what its reverse needs. The reverse version takes the
record and the adjoints of real results; it adds to the shadows of buffer arguments and returns the adjoints of real
arguments. The shadow of a buffer that is a result is made in the forward version, and returned with it. A recursive
call inside becomes a call of the forward version, whose record goes into the record of the caller.

A pair is made for each choice of arguments and results that are active at a call; of functions of the library for a
few, and then one for all arguments that are real numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import SymbolRefAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.library.records import record
from ulam.passes.autodiff.activity import Activity, is_real
from ulam.passes.autodiff.frames import ReverseFrame
from ulam.passes.builder import BUFFER_REAL
from ulam.passes.errors import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ulam.passes.autodiff.sweeps import ReverseMode

RECORD = BUFFER_REAL
"""The type of the address of a record."""
OF_LIBRARY = "library."
"""What the names of functions of the library begin with."""
_CHOICES = 4
"""Pairs of a function of the library that are made for what is active at a call, before there is one for all."""


@record(frozen=True)
class Derivative:
    """A forward and a reverse version of `function`, for active operands and results by position."""

    function: str
    forward: SymbolRefAttr
    reverse: SymbolRefAttr
    operands: tuple[int, ...]
    results: tuple[int, ...]

    def of_type(self, values: Sequence[SSAValue], positions: Sequence[int], *, scalar: bool) -> list[int]:
        """Those of `positions` at which `values` has a scalar, or a buffer."""
        return [n for n in positions if (values[n].type == f64) == scalar]


@record
class ForwardCall:
    """A call of a forward version, in the forward sweep."""

    derivative: Derivative
    record: SSAValue


class Derivatives:
    """The derivatives that are asked for. The functions may be incomplete until these are written.

    `names`: of functions that are there, so that no derivative is called so.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = set(names)
        self.known: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Derivative] = {}
        self.pending: list[Derivative] = []
        self._pairs = Counter[str]()

    def of_call(self, op: func.CallOp, activity: Activity) -> Derivative | None:
        """The derivative of the function that `op` calls; None if none of its results is active."""
        operands = tuple(n for n, v in enumerate(op.operands) if is_real(v) and activity.is_active(v))
        results = tuple(n for n, v in enumerate(op.results) if is_real(v) and activity.is_active(v))
        if not results:
            return None
        name = op.callee.root_reference.data
        key = (name, operands, results)
        if key not in self.known and name.startswith(OF_LIBRARY) and self._pairs[name] >= _CHOICES:
            operands = tuple(n for n, v in enumerate(op.operands) if v.type == f64 or n in operands)
            key = (name, operands, results)
        if (found := self.known.get(key)) is None:
            number = 0
            while (forward := f"{name}.forward{f'.{number}' if number else ''}") in self._names:
                number += 1
            self._names.add(forward)
            reverse = forward.replace(".forward", ".reverse")
            symbols = SymbolRefAttr(forward), SymbolRefAttr(reverse)
            found = self.known[key] = Derivative(name, *symbols, operands, results)
            self.pending.append(found)
            self._pairs[name] += 1
        return found


def call_forward(op: func.CallOp, derivative: Derivative, shadows: dict[SSAValue, SSAValue]) -> Sequence[Attribute]:
    """Further result types of `op` as a call of the forward version, whose name and operands it gets."""
    buffers = [op.operands[n] for n in derivative.of_type(op.operands, derivative.operands, scalar=False)]
    if any(buffer not in shadows for buffer in buffers):
        what = "a container that is data in one case and depends on parameters in another cannot be differentiated yet"
        raise NotSupportedError(what, op.location)
    op.operands = [*op.operands, *(shadows[buffer] for buffer in buffers)]
    op.properties = {**op.properties, "callee": derivative.forward}
    made = derivative.of_type(op.results, derivative.results, scalar=False)
    return [*(op.results[n].type for n in made), RECORD]


def reverse_call(mode: ReverseMode, frame: ReverseFrame, op: Operation) -> None:
    """The reverse of a call: a call of the reverse version."""
    call = mode.shadows.calls.get(op)
    if call is None:
        return
    derivative = call.derivative
    scalars = derivative.of_type(op.results, derivative.results, scalar=True)
    arguments = derivative.of_type(op.operands, derivative.operands, scalar=True)
    adjoints = [mode.take(frame, op.results[n]) for n in scalars]
    if len(scalars) == len(derivative.results) and not any(adjoints):
        return
    zero = mode.builder.f64(0.0)
    operands = [mode.need(call.record, frame), *(a or zero for a in adjoints)]
    callee = {"callee": cast(Attribute, derivative.reverse)}
    results = mode.builder.emit(func.CallOp, operands, [f64] * len(arguments), callee).results
    for n, result in zip(arguments, results, strict=True):
        mode.add(frame, op.operands[n], result)
