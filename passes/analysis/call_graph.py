"""Which functions of a program are recursive."""

from __future__ import annotations

from collections.abc import Mapping

from ulam.dialects import stan
from ulam.dialects.walk import ops_within


def recursive_functions(functions: Mapping[str, stan.FuncOp]) -> frozenset[str]:
    """The functions, by their symbols, from which a chain of calls leads back to themselves.

    Functions that a call passes on count as called. Source: Tarjan 1972, without recursion.
    """
    callees = {name: _callees(function, functions) for name, function in functions.items()}
    found: set[str] = {name for name, called in callees.items() if name in called}
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in callees:
        pending = [(root, iter(callees[root]))] if root not in numbers else []
        while pending:
            name, rest = pending[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                stack.append(name)
                on_stack.add(name)
            following = next(rest, None)
            if following is None:
                pending.pop()
                if pending:
                    caller = pending[-1][0]
                    lowest[caller] = min(lowest[caller], lowest[name])
                if lowest[name] == numbers[name]:
                    component = [stack.pop()]
                    while component[-1] != name:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.update(component)
            elif following not in numbers:
                pending.append((following, iter(callees[following])))
            elif following in on_stack:
                lowest[name] = min(lowest[name], numbers[following])
    return frozenset(found)


def _callees(function: stan.FuncOp, functions: Mapping[str, stan.FuncOp]) -> dict[str, None]:
    """The functions that the body of a function calls or passes on."""
    calls = [op for op in ops_within(function) if isinstance(op, stan.CallOp)]
    named = [call.callee for call in calls if call.user is not None]
    named += [call.callback for call in calls if call.callback is not None]
    return dict.fromkeys(name.data for name in named if name.data in functions)
