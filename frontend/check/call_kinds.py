"""Calls: finds what a call means, by the kind of function that its name tells, and writes it into the call."""

from __future__ import annotations

from ulam.frontend.check.calls import (
    all_signatures,
    apply_candidate,
    callback_positions,
    cheapest_candidates,
    check_placement,
    report_ambiguous,
    report_no_match,
)
from ulam.frontend.check.context import (
    ERROR,
    Checker,
    Origin,
    highest_ad_level,
)
from ulam.frontend.diagnostics import Note
from ulam.frontend.functions import definitions, higher_order, renamed_functions
from ulam.frontend.functions.support import unsupported_higher_order
from ulam.frontend.stan_types import REAL, VOID, StanType
from ulam.frontend.syntax import AdLevel, Call
from ulam.library.catalog import KEPT_WITH
from ulam.library.derivatives import has_primitive
from ulam.library.functions import DENSITIES, FunctionKind, kind_of, named, normalized_name
from ulam.library.intrinsics import INTERNAL_FUNCTIONS


def resolve_call(checker: Checker, node: Call) -> StanType:
    """Chooses the function of a call whose arguments are checked; fills the node and returns the result's type."""
    written = node.name
    node.name = normalized_name(written)
    node.unnormalized = node.name != written
    if not check_placement(checker, node, written):
        node.type = _likely_result(checker, node.name)
        return node.type
    if node.name == "target":
        return _resolve_target(checker, node)
    if checker.library_mode and kind_of(node.name) is FunctionKind.REQUIREMENT:
        node.formal_types = tuple(argument.type for argument in node.arguments)
        return VOID
    if checker.library_mode and node.name == KEPT_WITH:
        node.formal_types = tuple(argument.type for argument in node.arguments)
        node.type, node.ad_level = REAL, highest_ad_level(node.arguments)
        return REAL
    if not _check_name(checker, node, written):
        return ERROR
    if callback_positions(node.name):
        return _resolve_higher_order(checker, node)
    if any(argument.type is ERROR for argument in node.arguments):
        node.type = _likely_result(checker, node.name)
        return node.type
    return _resolve_first_order(checker, node)


def _resolve_higher_order(checker: Checker, node: Call) -> StanType:
    if (problem := unsupported_higher_order(node.name)) is not None:
        checker.unsupported(problem[0], node.name_span, problem[1])
    if node.name in higher_order.LAPLACE:
        from ulam.frontend.check.laplace import resolve_laplace

        return resolve_laplace(checker, node)
    from ulam.frontend.check.higher_order import resolve_higher_order

    return resolve_higher_order(checker, node)


def _resolve_first_order(checker: Checker, node: Call) -> StanType:
    candidates = cheapest_candidates(checker, node.name, node.arguments)
    if len(candidates) == 1:
        return apply_candidate(checker, node, candidates[0])
    if candidates:
        report_ambiguous(checker, node.name, node.arguments, [c.signature for c in candidates], node.span)
    else:
        report_no_match(checker, node.name, node.arguments, node.span)
    node.type = _likely_result(checker, node.name)
    return node.type


def _resolve_target(checker: Checker, node: Call) -> StanType:
    """`target()`."""
    node.type = REAL
    if node.arguments:
        checker.error("target() takes no arguments", node.span, "argument-count")
    if checker.origin in (Origin.MODEL, Origin.TRANSFORMED_PARAMETERS):
        node.ad_level = AdLevel.AUTODIFF
    elif checker.kind() is FunctionKind.LP:
        node.ad_level = AdLevel.AUTODIFF
    else:
        checker.error(
            "target() can be read only in the model block, in transformed parameters and in _lp functions",
            node.span, "target-not-allowed",
        )  # fmt: skip
    return REAL


# ---------------------------------------------------------------- messages


def _check_name(checker: Checker, node: Call, written: str) -> bool:
    """Whether the name is that of a function; reports it if not."""
    name = node.name
    known = checker.is_function(name)
    symbol = checker.symbols.get(name)
    if symbol is not None and not (known and name not in checker.functions):
        note = Note(f"'{name}' is declared here", symbol.span)
        checker.error(f"'{name}' is a variable and cannot be called", node.name_span, "not-a-function", None, (note,))
    elif known or (checker.library_mode and _is_internal(name)):
        _warn_if_deprecated(checker, node)
        return True
    elif checker.first_report(name):
        checker.error(
            f"there is no function '{written}'", node.name_span, "undeclared-function",
            _unknown_function_help(checker, name),
        )  # fmt: skip
    node.type = ERROR
    return False


def _is_internal(name: str) -> bool:
    """Whether it is a function that definitions of the library can call, and programs cannot."""
    return bool(definitions.overloads(name)) or has_primitive(name) or name in INTERNAL_FUNCTIONS


def _warn_if_deprecated(checker: Checker, node: Call) -> None:
    replacement = renamed_functions.DEPRECATED.get(node.name)
    if replacement is not None and node.name not in checker.functions:
        checker.warning(f"'{node.name}' is deprecated", node.name_span, "deprecated", f"use {replacement}")


def _unknown_function_help(checker: Checker, name: str) -> str | None:
    if name in renamed_functions.REMOVED:
        return f"this function is gone; write {renamed_functions.REMOVED[name]}"
    for replacement in renamed_functions.replacements(name):
        if checker.is_function(replacement):
            return f"this function is gone; write '{replacement}'"
    stem, kind, _ = named(name)
    for other in DENSITIES:
        if kind.is_density and checker.is_function(other.of(stem)):
            return f"this distribution has '{other.of(stem)}'"
        if checker.is_function(other.of(name)):
            return f"'{name}' is a distribution: call {other.of(name)}(y | ...), or write y ~ {name}(...)"
    if checker.is_function(FunctionKind.RNG.of(name)):
        return f"did you mean '{FunctionKind.RNG.of(name)}'?"
    return checker.suggestion(name, functions=True)


def _likely_result(checker: Checker, name: str) -> StanType:
    """The result's type if all overloads agree in it, so that a wrong call is not reported twice."""
    results = {signature.result for signature in all_signatures(checker, name)}
    return results.pop() if len(results) == 1 else ERROR
