"""Which functions can be differentiated twice, as the Laplace approximation does with its likelihood.

Solvers and integrators cannot, so a likelihood must not call them, directly or through other functions of the user.
Source: Stan Functions Reference, "Embedded Laplace Approximation".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ulam.frontend.check.context import Checker
from ulam.frontend.functions import higher_order
from ulam.frontend.syntax import Call, FunctionDefinition, SyntaxNode
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
    for call in _calls(definition.body):
        if call.function is None:
            if higher_order.is_variadic(call.name) or not function(call.name).is_differentiable_twice:
                return call
        elif (found := _first_order_call(call.function, visited)) is not None:
            return found
    return None


def _calls(node: SyntaxNode) -> Iterator[Call]:
    """All calls below a node of the tree."""
    pending = [node]
    while pending:
        found = pending.pop()
        if isinstance(found, FunctionDefinition):
            continue
        if isinstance(found, Call):
            yield found
        parts: list[SyntaxNode] = []
        for field in fields(found):  # pyright: ignore[reportArgumentType]
            value = getattr(found, field.name)
            parts += [part for part in (value if isinstance(value, list) else (value,)) if isinstance(part, SyntaxNode)]
        pending += reversed(parts)
