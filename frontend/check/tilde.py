"""`y ~ foo(a, b) T[l, u]`: which density is meant, and whether it can be truncated.

Source: Stan Reference Manual, "Distribution statements", "Truncated distributions".
"""

from __future__ import annotations

from ulam.frontend.check.call_kinds import resolve_call
from ulam.frontend.check.calls import (
    Candidate,
    apply_candidate,
    callback_positions,
    cheapest_candidates,
    check_supported_call,
    list_types,
    report_ambiguous,
    report_no_match,
)
from ulam.frontend.check.context import ERROR, Checker
from ulam.frontend.check.expressions import check_expression, check_scalar
from ulam.frontend.functions import higher_order
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.stan_types import INT, REAL, StanType, scalar_of
from ulam.frontend.syntax import Call, Expression, Tilde
from ulam.library import own_libraries
from ulam.library.functions import DENSITIES, FunctionKind, ending_of_distribution


def check_tilde(checker: Checker, node: Tilde) -> None:
    """Checks the statement and makes its `call`."""
    arguments = [node.variate, *node.arguments]
    callbacks = callback_positions(FunctionKind.MASS.of(node.distribution))
    for position, argument in enumerate(arguments):
        if position not in callbacks:
            check_expression(checker, argument)
    truncation = node.truncation
    if truncation is not None:
        for bound in (truncation.lower, truncation.upper):
            if bound is not None:
                check_scalar(checker, bound, "the bound of a truncation")
    ending = ending_of_distribution(node.distribution)
    if ending and not _is_distribution(checker, node.distribution):
        checker.error(
            f"'~' takes the name of a distribution without '{ending}'",
            node.distribution_span, "tilde-suffix", f"write {node.distribution.removesuffix(ending)}(...)",
        )  # fmt: skip
        return
    if not _is_distribution(checker, node.distribution):
        _report_unknown(checker, node)
        return
    if any(argument.type is ERROR for argument in arguments):
        return
    call = _density_call(checker, node, arguments)
    if call is None:
        return
    node.call = call
    if truncation is not None:
        _check_truncation(checker, node)


def _is_distribution(checker: Checker, name: str) -> bool:
    names = [kind.of(name) for kind in DENSITIES]
    # a distribution has one of both as a rule: libraries of other packages are not read for the one that is not there
    return any(checker.is_function(n, of_others=False) for n in names) or any(map(checker.is_function, names))


def _density_call(checker: Checker, node: Tilde, arguments: list[Expression]) -> Call | None:
    """The unnormalised density, chosen from `_lpdf` and `_lpmf` functions of the name; reports if there is none."""
    span = node.distribution_span
    for kind in DENSITIES:
        name = kind.of(node.distribution)
        if name in higher_order.LAPLACE:
            call = Call(name, list(arguments), span, has_bar=True, span=node.span)
            resolve_call(checker, call)
            call.unnormalized = True
            return call if call.type is not ERROR else None
    best = _cheapest_densities(checker, node, arguments)
    if len(best) != 1 and own_libraries.found() is None:
        for kind in DENSITIES:
            checker.is_function(kind.of(node.distribution))  # another package may have the one that is not there
        best = _cheapest_densities(checker, node, arguments)
    if len(best) == 1:
        call = Call(best[0].signature.name, list(arguments), span, has_bar=True, unnormalized=True, span=node.span)
        apply_candidate(checker, call, best[0])
        return call
    if best:
        report_ambiguous(checker, node.distribution, arguments, [c.signature for c in best], node.span)
        return None
    for kind in DENSITIES:
        if checker.is_function(kind.of(node.distribution)):
            report_no_match(checker, kind.of(node.distribution), arguments, node.span)
            break
    return None


def _cheapest_densities(checker: Checker, node: Tilde, arguments: list[Expression]) -> list[Candidate]:
    """The signatures that fit best; ints that fit both kinds are a mass function's."""
    best: list[Candidate] = []
    for kind in (FunctionKind.MASS, FunctionKind.DENSITY):
        candidates = cheapest_candidates(checker, kind.of(node.distribution), arguments)
        if candidates and (not best or len(candidates) < len(best)):
            best = candidates
    return best


def _check_truncation(checker: Checker, node: Tilde) -> None:
    """Truncation needs the log of the cumulative distribution function and of its complement."""
    truncation = node.truncation
    assert truncation is not None
    for bound in (truncation.lower, truncation.upper):
        if bound is None or bound.type is ERROR:
            continue
        arguments = [bound, *node.arguments]
        for kind in (FunctionKind.LOG_CDF, FunctionKind.LOG_CCDF):
            name = kind.of(node.distribution)
            candidates = cheapest_candidates(checker, name, arguments)
            if len(candidates) != 1 or candidates[0].signature.result != REAL:
                _report_no_truncation(checker, node, name, [argument.type for argument in arguments])
                return
    _choose_distribution_function(checker, node)


def _choose_distribution_function(checker: Checker, node: Tilde) -> None:
    """Which overload of the distribution function is called; reports one of the library that cannot be compiled yet.

    With two bounds, each entry of the parameters has a mass of its own (see `lower/truncation.py`), unless the
    program's own function is for containers alone.
    """
    truncation = node.truncation
    assert truncation is not None
    assert node.call is not None
    density, *promoted = [argument.type for argument in node.call.arguments]
    variate = INT if scalar_of(density) == INT else REAL
    name = (FunctionKind.LOG_CDF if truncation.upper is not None else FunctionKind.LOG_CCDF).of(node.distribution)
    by_entry = truncation.lower is not None and truncation.upper is not None
    if name not in checker.functions:
        truncation.formal_types = (variate, *(map(scalar_of, promoted) if by_entry else promoted))
        check_supported_call(
            checker, Signature(name, truncation.formal_types, REAL), truncation.formal_types, truncation.span
        )
        return
    whole = tuple(argument.type for argument in node.arguments)
    for types in (tuple(map(scalar_of, whole)), whole) if by_entry else (whole,):
        candidates = cheapest_candidates(checker, name, [node.variate, *node.arguments], (variate, *types))
        if len(candidates) == 1:
            truncation.formal_types = candidates[0].signature.arguments
            truncation.function = candidates[0].definition
            if truncation.function is not None:
                checker.called(truncation.function)
            return
    _report_no_truncation(checker, node, name, [variate, *whole])


def _report_no_truncation(checker: Checker, node: Tilde, name: str, types: list[StanType]) -> None:
    assert node.truncation is not None
    checker.error(
        f"'{node.distribution}' cannot be truncated here: there is no '{name}' for {list_types(types)}",
        node.truncation.span, "truncation",
    )  # fmt: skip


def _report_unknown(checker: Checker, node: Tilde) -> None:
    name = node.distribution
    help = checker.suggested_distribution(name)
    if f"{name}_log" in checker.functions:
        help = f"the suffix _log is gone: rename '{name}_log' to '{name}_lpdf', or '{name}_lpmf' for ints"
    elif help is None and checker.is_function(name):
        help = f"'{name}' is a function, not a distribution; '~' needs '{name}_lpdf' or '{name}_lpmf'"
    checker.error(f"there is no distribution '{name}'", node.distribution_span, "undeclared-distribution", help)
