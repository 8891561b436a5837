"""Which functions of the library a large program calls, instead of writing them in place once more.

Written in place, a function is optimised together with what is around it; in the hundredth place that is worth less
than the time that it takes to compile. One that can fail is called, too, if its error can be told at the program's
call (`outlined`), but for requirements, which are about what the program calls the arguments: they stay in place.

Solvers are large, and written once for each function of the program that is solved: their parts that call no function
of the program are in place once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.library.requirements import REQUIREMENTS
from ulam.passes.to_loops.function_sizes import FunctionSizes
from ulam.passes.to_loops.values import Value

PLACES = 40
"""So often a function is written in place in a unit; further calls are calls."""
PLACES_IN_SOLVERS = 1
"""The same of what solvers call."""
LARGE = 40
"""Ops, those of the functions that it calls included, from which a function is worth a call."""
_OF_CALLBACKS = ("callback", "is_differentiated", "solver_")
"""How the functions begin that mean something only where a function of the program is at hand (`callbacks`)."""


class SharedFunctions:
    """The functions of the library in one unit: how often each has been written in place, and how large it is."""

    def __init__(self, functions: dict[str, stan.FuncOp], *, of_data: bool = False) -> None:
        """`of_data`: calls with data alone count, too, as nothing is computed earlier than it is asked for."""
        self._of_data = of_data
        self._places: dict[str, int] = {}
        self._sizes = FunctionSizes(functions, _is_refused)
        self.failing: set[str] = set()
        """Those that turned out to have errors of their own."""

    def is_called(
        self, function: stan.FuncOp, arguments: Sequence[Value], autodiff: Sequence[bool], *, in_solver: bool
    ) -> bool:
        """Whether the call is to be one. Data alone is left in place, from where it is computed when data are bound.

        `in_solver`: it is part of a function of the library that calls one of the program.
        """
        name = function.sym_name.data
        if function.library is None or name in self.failing or not (self._of_data or in_solver or any(autodiff)):
            return False
        outputs = function.function_type.outputs.data
        if len(outputs) != 1:
            return False
        is_scalar = isinstance(outputs[0], stan.RealType | stan.IntType)
        if not in_solver and not (is_scalar and all(isinstance(argument, SSAValue) for argument in arguments)):
            return False
        places = self._places[name] = self._places.get(name, 0) + 1
        if places <= (PLACES_IN_SOLVERS if in_solver else PLACES) or (size := self._sizes.of(name)) is None:
            return False
        return size >= LARGE


def _is_refused(op: stan.CallOp) -> bool:
    """Whether a call is a requirement, or has to do with functions of the program."""
    if op.callee.data in REQUIREMENTS or op.callback is not None or op.user is not None:
        return True
    return op.callee.data.startswith(_OF_CALLBACKS)
