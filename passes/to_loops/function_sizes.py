"""How many ops a function has where it is written in place, with all that is written in it."""

from __future__ import annotations

from collections.abc import Callable, Container

from ulam.dialects import stan
from ulam.dialects.walk import ops_within


class FunctionSizes:
    """The sizes of functions in the `stan` dialect, each measured once.

    `refuses`: calls that leave one without. `are_called`: functions that are never written in place.
    """

    def __init__(
        self,
        functions: dict[str, stan.FuncOp],
        refuses: Callable[[stan.CallOp], bool],
        are_called: Container[str] = (),
    ) -> None:
        self._functions = functions
        self._refuses = refuses
        self._are_called = are_called
        self._known: dict[str, int | None] = {}

    def of(self, name: str) -> int | None:
        """The number of its ops and of those of what is written in it; None if one of its calls is refused."""
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._measured(self._functions[name])
        return self._known[name]

    def _measured(self, function: stan.FuncOp) -> int | None:
        size = 0
        for op in ops_within(function.body):
            size += 1
            if not isinstance(op, stan.CallOp):
                continue
            if self._refuses(op):
                return None
            if (callee := written_as(op)) is not None and callee not in self._are_called:
                inner = self.of(callee)
                if inner is None:
                    return None
                size += inner
        return size


def written_as(op: stan.CallOp) -> str | None:
    """The function with a body that a call is written as."""
    if op.user is not None:
        return op.callee.data
    return None if op.definition is None else op.definition.data
