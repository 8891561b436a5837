"""The left-hand sides of assignments: what may be written, and that one statement writes each place once.

Source: Stan Reference Manual, "Assignment statement", "Tuple assignment".
"""

from __future__ import annotations

from ulam.frontend.check.context import ERROR, Checker, variables_of
from ulam.frontend.check.expressions import check_index, set_indexed, set_projection
from ulam.frontend.diagnostics import Note
from ulam.frontend.stan_types import TupleType
from ulam.frontend.syntax import (
    Expression,
    Indexed,
    IndexKind,
    TupleLiteral,
    TupleProjection,
    Variable,
)
from ulam.library.functions import normalized_name


def check_target(checker: Checker, target: Expression) -> None:
    """Fills the left-hand side of an assignment: a variable, an element, a part, or a field of one."""
    if isinstance(target, Variable):
        _check_variable(checker, target)
    elif isinstance(target, Indexed):
        check_target(checker, target.base)
        for index in target.indices:
            check_index(checker, index)
        inner = target.base
        while isinstance(inner, Indexed):
            if any(index.kind is not IndexKind.SINGLE for index in inner.indices):
                checker.error(
                    "a part that several indices name cannot be indexed again in an assignment", target.span,
                    "nested-multiple-index", "name the elements with one list of indices",
                )  # fmt: skip
                break
            inner = inner.base
        set_indexed(checker, target)
    elif isinstance(target, TupleProjection):
        check_target(checker, target.base)
        set_projection(checker, target)
    else:
        target.type = ERROR
        checker.error("this cannot be assigned to", target.span, "not-assignable")


def check_tuple_targets(checker: Checker, targets: TupleLiteral) -> None:
    """Fills the left-hand side of `(a, b[2], (c, d)) = ...`."""
    for element in targets.elements:
        if isinstance(element, TupleLiteral):
            check_tuple_targets(checker, element)
        else:
            check_target(checker, element)
    types = tuple(element.type for element in targets.elements)
    targets.type = ERROR if ERROR in types else TupleType(types)


def _check_variable(checker: Checker, target: Variable) -> None:
    symbol = checker.symbols.get(target.name)
    target.type = ERROR
    if symbol is None:
        if checker.is_function(normalized_name(target.name)):
            message = f"'{target.name}' is a function and cannot be assigned to"
            checker.error(message, target.span, "function-as-value")
        elif checker.first_report(target.name):
            help = checker.suggestion(target.name, functions=False)
            checker.error(f"'{target.name}' is not declared here", target.span, "undeclared", help)
        return
    target.type = symbol.type
    target.ad_level = checker.ad_level_of(symbol)
    notes = (Note(f"'{target.name}' is declared here", symbol.span),)
    if symbol.read_only:
        kind = "a function argument" if _is_argument(checker, target.name) else "a loop variable"
        checker.error(
            f"'{target.name}' is {kind} and cannot be assigned to", target.span, "read-only",
            "declare a local variable for the new value", notes,
        )  # fmt: skip
    elif symbol.is_global and symbol.origin is not checker.origin:
        checker.error(
            f"'{target.name}' belongs to {symbol.origin.value} and cannot be assigned to here",
            target.span, "read-only", "declare a local variable for the new value", notes,
        )  # fmt: skip


def _is_argument(checker: Checker, name: str) -> bool:
    return checker.function is not None and any(argument.name == name for argument in checker.function.arguments)


# ---------------------------------------------------------------- one statement, several places


def check_written_places(checker: Checker, targets: list[Expression]) -> None:
    """Reports a place that one statement writes twice, or writes and reads in an index of its left-hand side."""
    places: list[tuple[tuple[str, ...], Expression]] = []
    for target in targets:
        _collect_places(target, places)
    for position, (place, target) in enumerate(places):
        for earlier, _ in places[:position]:
            if place[: len(earlier)] == earlier or earlier[: len(place)] == place:
                checker.error(
                    f"'{place[0]}' is assigned twice in one statement", target.span, "assigned-twice",
                    "the order of the two assignments is not defined",
                )  # fmt: skip
                return
    written = {place[0] for place, _ in places}
    for target in targets:
        for variable in _read_in_indices(target):
            if variable.name in written:
                checker.error(
                    f"'{variable.name}' is read in an index of the statement that assigns it", variable.span,
                    "read-while-written", "copy the index to a variable first",
                )  # fmt: skip
                return


def _collect_places(target: Expression, places: list[tuple[tuple[str, ...], Expression]]) -> None:
    if isinstance(target, TupleLiteral):
        for element in target.elements:
            _collect_places(element, places)
        return
    path: list[str] = []
    node = target
    while not isinstance(node, Variable):
        if isinstance(node, TupleProjection):
            path.append(str(node.field))
            node = node.base
        elif isinstance(node, Indexed):
            node = node.base  # which element does not matter: two elements of one array are one place
        else:
            return
    places.append(((node.name, *reversed(path)), target))


def _read_in_indices(target: Expression) -> list[Variable]:
    """The variables in the indices of a left-hand side."""
    found: list[Variable] = []
    if isinstance(target, TupleLiteral):
        for element in target.elements:
            found += _read_in_indices(element)
    elif isinstance(target, TupleProjection):
        found += _read_in_indices(target.base)
    elif isinstance(target, Indexed):
        found += _read_in_indices(target.base)
        for index in target.indices:
            for bound in (index.lower, index.upper):
                if bound is not None:
                    found += variables_of(bound)
    return found
