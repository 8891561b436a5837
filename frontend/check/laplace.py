"""Calls of the embedded Laplace approximation, whose arguments are functions with tuples of their arguments.

    laplace_marginal(likelihood, (arguments), block size, covariance, (arguments) [, (control)])

The `_bernoulli_logit`, `_poisson_log` and `_neg_binomial_2_log` forms have the likelihood built in and take its data.
Source: Stan Functions Reference, "Embedded Laplace Approximation".
"""

from __future__ import annotations

from ulam.frontend.check.context import ERROR, Checker, article, highest_ad_level
from ulam.frontend.check.higher_order import (
    Formals,
    Mismatch,
    callback_overloads,
    check_callback,
    check_formals,
    choose_overload,
    function_type,
)
from ulam.frontend.functions import higher_order
from ulam.frontend.functions.type_codes import arguments_of
from ulam.frontend.promotion import promote
from ulam.frontend.stan_types import INT, MATRIX, REAL, VECTOR, StanType, TupleType
from ulam.frontend.syntax import AdLevel, Call, Expression, FunctionDefinition, Parenthesized, TupleLiteral
from ulam.library.functions import FunctionKind, kind_of


def resolve_laplace(checker: Checker, node: Call) -> StanType:
    """Checks the arguments in groups, from left to right; the first group that does not fit is reported."""
    node.type = _result_type(node.name)
    arguments = node.arguments
    mismatch = _check(checker, node)
    if mismatch is not None:
        span = arguments[mismatch.argument].span if mismatch.argument < len(arguments) else node.span
        checker.error(f"in the call of '{node.name}': {mismatch.reason}", span, mismatch.code)
    node.formal_types = tuple(argument.type for argument in arguments)
    if kind_of(node.name) is not FunctionKind.RNG:
        node.ad_level = highest_ad_level(arguments)
    return node.type


def _result_type(name: str) -> StanType:
    if kind_of(name) is FunctionKind.RNG:
        return VECTOR
    return TupleType((VECTOR, MATRIX)) if "_solve" in name else REAL


def _check(checker: Checker, node: Call) -> Mismatch | None:
    arguments = node.arguments
    likelihood = higher_order.laplace_likelihood(node.name)
    if likelihood is None:
        if len(arguments) < 5:
            return Mismatch(len(arguments), f"at least 5 arguments are needed, but {len(arguments)} are given",
                            "argument-count")  # fmt: skip
        mismatch = _check_function(checker, node, 0, ((False, VECTOR),), REAL)
        position = 2
    else:
        formals = arguments_of(likelihood)
        mismatch = check_formals(arguments[: len(formals)], formals, first=0)
        position = len(formals)
        if mismatch is None:
            for index, (_, formal) in enumerate(formals):
                arguments[index] = promote(arguments[index], formal)
    if mismatch is not None:
        return mismatch
    return _check_rest(checker, node, position)


def _check_rest(checker: Checker, node: Call, position: int) -> Mismatch | None:
    """The block size of the Hessian, the covariance function with its arguments, the control arguments."""
    arguments = node.arguments
    if len(arguments) < position + 3:
        needed = "the block size of the Hessian, the covariance function and the tuple of its arguments"
        return Mismatch(len(arguments), f"{needed} must follow", "argument-count")
    block_size = arguments[position]
    if block_size.type not in (INT, ERROR):
        reason = f"the block size of the Hessian must be an int, but this is {article(block_size.type)}"
        return Mismatch(position, reason, "argument-type")
    mismatch = _check_function(checker, node, position + 1, (), MATRIX)
    if mismatch is not None:
        return mismatch
    control = arguments[position + 3 :]
    if "_tol" not in node.name:
        return Mismatch(position + 3, "there are too many arguments", "argument-count") if control else None
    if len(control) != 1:
        return Mismatch(position + 3, "one tuple of control arguments must come last", "argument-count")
    return _check_tuple(control[0], arguments_of(higher_order.LAPLACE_CONTROL), position + 3)


def _check_function(
    checker: Checker, node: Call, position: int, required: Formals, result: StanType
) -> Mismatch | None:
    """A function at `position` and the tuple of its further arguments after it."""
    overloads = callback_overloads(checker, node, position)
    given = node.arguments[position + 1]
    if overloads is None or given.type is ERROR:
        return None
    if "_latent_solve" in node.name and given.ad_level is AdLevel.AUTODIFF:
        return Mismatch(position + 1, "these arguments must be data", "data-required")
    mismatch: Mismatch | None = None
    fitting: list[tuple[FunctionDefinition, Formals]] = []
    for definition in overloads:
        found = check_callback(definition, required, result) or _check_first_data(definition, required)
        if found is not None:
            found.argument = position
            mismatch = found
            continue
        formals = tuple((formal.data_only, formal.type) for formal in definition.arguments[len(required) :])
        found = _check_tuple(given, formals, position + 1)
        if found is None:
            fitting.append((definition, formals))
        mismatch = found
    if not fitting:
        return mismatch
    chosen = choose_overload(checker, node, position, _elements(given), fitting)
    if chosen is not None:
        definition, formals = chosen
        node.arguments[position].type = function_type(definition)
        node.arguments[position + 1] = promote(given, TupleType(tuple(type_ for _, type_ in formals)))
        checker.called(definition)
        if position == 0:
            node.callback = definition
            checker.second_order.append(node)
        else:
            node.covariance = definition
    return None


def _check_first_data(definition: FunctionDefinition, required: Formals) -> Mismatch | None:
    for formal, (data_only, _) in zip(definition.arguments, required, strict=False):
        if formal.data_only is not data_only:
            return Mismatch(0, f"'{formal.name}' of '{definition.name}' cannot be marked 'data'")
    return None


def _check_tuple(given: Expression, formals: Formals, position: int) -> Mismatch | None:
    """Whether a tuple holds what the formals ask for."""
    if given.type is ERROR:
        return None
    if not isinstance(given.type, TupleType):
        return Mismatch(position, f"a tuple of arguments must come here, but this is {article(given.type)}")
    elements = _elements(given)
    mismatch = check_formals(elements, formals, first=0)
    if mismatch is None:
        return None
    return Mismatch(position, f"in this tuple, {mismatch.reason}", mismatch.code)


def _elements(given: Expression) -> list[Expression]:
    """The elements of a tuple literal, or stand-ins with the types of a tuple's elements."""
    while isinstance(given, Parenthesized):
        given = given.inner
    if isinstance(given, TupleLiteral):
        return given.elements
    assert isinstance(given.type, TupleType)
    return [Expression(span=given.span, type=type_, ad_level=given.ad_level) for type_ in given.type.elements]
