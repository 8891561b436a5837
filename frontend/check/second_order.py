"""Which functions can be differentiated twice, as the Laplace approximation does with its likelihood.

Solvers and integrators cannot, so a likelihood must not call them, directly or through other functions of the user.
Source: Stan Functions Reference, "Embedded Laplace Approximation".
"""

from __future__ import annotations

from ulam.frontend.check.context import Checker
from ulam.frontend.functions import higher_order
from ulam.frontend.syntax import Call, FunctionDefinition, nodes_below
from ulam.library.functions import function


def check_second_order(checker: Checker) -> None:
    """Reports likelihoods of Laplace approximations that cannot be differentiated twice."""
    for call in checker.second_order:
        if call.callback is None:
            continue
        culprit = _first_order_call(call.callback, set())
        if culprit is not None:
            checker.error(
                f"'{call.callback.name}' cannot be differentiated twice, because it calls '{culprit.name}'",
                call.arguments[0].span, "second-order",
            )  # fmt: skip


def _first_order_call(definition: FunctionDefinition, visited: set[int]) -> Call | None:
    if id(definition) in visited or definition.body is None:
        return None
    visited.add(id(definition))
    for call in nodes_below(definition.body, Call):
        if call.function is None:
            if higher_order.is_variadic(call.name) or not function(call.name).is_differentiable_twice:
                return call
        elif (found := _first_order_call(call.function, visited)) is not None:
            return found
    return None
