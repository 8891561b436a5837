"""Statements: where they may stand, what they assign, and whether a function returns on every path.

Source: Stan Reference Manual, "Statements".
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from ulam.frontend.check.assignments import check_target, check_tuple_targets, check_written_places
from ulam.frontend.check.call_kinds import resolve_call
from ulam.frontend.check.context import ERROR, Checker, Origin, article
from ulam.frontend.check.declarations import check_declaration, conversion_help
from ulam.frontend.check.expressions import (
    check_arguments,
    check_condition,
    check_expression,
    check_int,
)
from ulam.frontend.check.tilde import check_tilde
from ulam.frontend.functions import signatures
from ulam.frontend.promotion import promote, promotion_cost
from ulam.frontend.stan_types import (
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    VOID,
    ArrayType,
    StanType,
    array_of,
)
from ulam.frontend.syntax import (
    Assignment,
    BlockStatement,
    Break,
    CallStatement,
    Continue,
    Declaration,
    Empty,
    Expression,
    For,
    ForEach,
    If,
    IntLiteral,
    JacobianIncrement,
    Print,
    PrintKind,
    Profile,
    Return,
    SizedType,
    Statement,
    StringLiteral,
    TargetIncrement,
    Tilde,
    TupleAssignment,
    Variable,
    While,
)
from ulam.library.functions import FunctionKind


class Flow(Enum):
    """How control goes on after a statement."""

    ON = "on"  # to the next statement, on some path
    RETURNS = "returns"  # every path returns, rejects, or loops until it does
    LEAVES_LOOP = "leaves loop"  # some path breaks out of the loop


def check_block(checker: Checker, statements: list[Statement], *, is_global: bool = False) -> Flow:
    """Checks statements in order; what they declare stays in scope (the caller opens one)."""
    flow = Flow.ON
    last_type: SizedType | None = None
    ended = False
    for statement in statements:
        if ended and not isinstance(statement, Empty):
            checker.warning("this statement is never reached", statement.span, "unreachable")
            ended = False
        if isinstance(statement, Declaration):
            first = statement.sized_type is not last_type
            last_type = statement.sized_type
            check_declaration(checker, statement, is_global=is_global, first_of_type=first)
            continue
        next_flow = check_statement(checker, statement)
        if flow is Flow.ON:
            flow = next_flow
        ended = ended or isinstance(statement, _ENDS_OF_FLOW)
    return flow


_ENDS_OF_FLOW = (Break, Continue, Return)


def check_statement(checker: Checker, statement: Statement) -> Flow:
    """Checks one statement."""
    return _CHECKS[type(statement)](checker, statement)


def _scoped(checker: Checker, statement: Statement) -> Flow:
    """Checks the body of a loop or branch, whose declarations end with it."""
    with checker.scope():
        return check_block(checker, [statement])


# ---------------------------------------------------------------- assignments


def _assignment(checker: Checker, node: Assignment) -> Flow:
    check_target(checker, node.target)
    check_written_places(checker, [node.target])
    value = check_expression(checker, node.value)
    target = node.target.type
    if target is ERROR or value is ERROR:
        return Flow.ON
    if node.operator == "=":
        _warn_of_self_assignment(checker, node)
        node.value = _converted(checker, node.value, target)
        return Flow.ON
    operand = signatures.compound_assignment(node.operator[:-1], target, value)
    if operand is None:
        checker.error(
            f"'{node.operator}' cannot change {article(target)} by {article(value)}",
            node.span, "assignment-type", "the result must have the type of the left-hand side",
        )  # fmt: skip
        return Flow.ON
    node.value = promote(node.value, operand)
    return Flow.ON


def _warn_of_self_assignment(checker: Checker, node: Assignment) -> None:
    target, value = node.target, node.value
    if isinstance(target, Variable) and isinstance(value, Variable) and target.name == value.name:
        checker.warning(f"'{target.name}' is assigned to itself", node.span, "self-assignment")


def _converted(checker: Checker, value: Expression, target: StanType) -> Expression:
    """The value as the type of what it is assigned to; reports a type that does not fit."""
    if promotion_cost(value.type, target) is None:
        checker.error(
            f"{article(value.type)} cannot be assigned to {article(target)}", value.span, "assignment-type",
            conversion_help(target, value.type),
        )  # fmt: skip
        return value
    return promote(value, target)


def _tuple_assignment(checker: Checker, node: TupleAssignment) -> Flow:
    check_tuple_targets(checker, node.targets)
    check_written_places(checker, list(node.targets.elements))
    value = check_expression(checker, node.value)
    if node.targets.type is not ERROR and value is not ERROR:
        node.value = _converted(checker, node.value, node.targets.type)
    return Flow.ON


def _target_increment(checker: Checker, node: TargetIncrement) -> Flow:
    check_expression(checker, node.value)
    require_target_allowed(checker, node, "target += ...")
    return Flow.ON


def require_target_allowed(checker: Checker, node: Statement, what: str) -> None:
    """Reports a change of the target where there is none."""
    if checker.origin is not Origin.MODEL and checker.kind() is not FunctionKind.LP and not checker.library_mode:
        checker.error(
            f"'{what}' is allowed only in the model block and in functions whose name ends in _lp",
            node.span, "target-not-allowed",
            "draw with a function whose name ends in _rng, or compute a density with one in _lpdf or _lpmf"
            if checker.origin is Origin.GENERATED_QUANTITIES else None,
        )  # fmt: skip


def _jacobian_increment(checker: Checker, node: JacobianIncrement) -> Flow:
    check_expression(checker, node.value)
    allowed = checker.origin is Origin.TRANSFORMED_PARAMETERS or checker.kind() is FunctionKind.JACOBIAN
    if not allowed and not checker.library_mode:
        checker.error(
            "'jacobian += ...' is allowed only in transformed parameters and in functions whose name ends in _jacobian",
            node.span, "jacobian-not-allowed",
        )  # fmt: skip
    return Flow.ON


def _tilde(checker: Checker, node: Tilde) -> Flow:
    check_tilde(checker, node)
    require_target_allowed(checker, node, "~")
    return Flow.ON


# ---------------------------------------------------------------- calls and messages


def _call_statement(checker: Checker, node: CallStatement) -> Flow:
    check_arguments(checker, node.call)
    result = resolve_call(checker, node.call)
    if result not in (VOID, ERROR):
        checker.error(
            f"the result of '{node.call.name}', {article(result)}, is not used", node.span, "unused-result",
            "only functions that return nothing can be called as a statement",
        )  # fmt: skip
    return Flow.ON


def _print(checker: Checker, node: Print) -> Flow:
    for argument in node.arguments:
        if not isinstance(argument, StringLiteral):
            check_expression(checker, argument)
    return Flow.ON if node.kind is PrintKind.PRINT else Flow.RETURNS


# ---------------------------------------------------------------- control flow


def _block(checker: Checker, node: BlockStatement) -> Flow:
    with checker.scope():
        return check_block(checker, node.statements)


def _profile(checker: Checker, node: Profile) -> Flow:
    with checker.scope():
        return check_block(checker, node.statements)


def _if(checker: Checker, node: If) -> Flow:
    check_condition(checker, node.condition, "the condition of 'if'")
    then = _scoped(checker, node.then)
    otherwise = _scoped(checker, node.otherwise) if node.otherwise is not None else Flow.ON
    if Flow.LEAVES_LOOP in (then, otherwise):
        return Flow.LEAVES_LOOP
    return Flow.RETURNS if then is otherwise is Flow.RETURNS else Flow.ON


def _while(checker: Checker, node: While) -> Flow:
    check_condition(checker, node.condition, "the condition of 'while'")
    checker.loop_depth += 1
    flow = _scoped(checker, node.body)
    checker.loop_depth -= 1
    endless = isinstance(node.condition, IntLiteral) and node.condition.text.strip("0") != ""
    if flow is Flow.RETURNS or endless and flow is Flow.ON:
        return Flow.RETURNS
    return Flow.ON


def _for(checker: Checker, node: For) -> Flow:
    check_int(checker, node.lower, "the lower bound of a loop")
    check_int(checker, node.upper, "the upper bound of a loop")
    return _loop(checker, node, INT)


def _for_each(checker: Checker, node: ForEach) -> Flow:
    container = check_expression(checker, node.container)
    element: StanType = ERROR
    if isinstance(container, ArrayType):
        element = array_of(container.element, container.rank - 1)
    elif container in (VECTOR, ROW_VECTOR, MATRIX):
        element = REAL
    elif container is not ERROR:
        checker.error(
            f"a loop can go over an array, a vector, a row_vector or a matrix, but this is {article(container)}",
            node.container.span, "loop-container",
        )  # fmt: skip
    return _loop(checker, node, element)


def _loop(checker: Checker, node: For | ForEach, variable: StanType) -> Flow:
    with checker.scope():
        checker.declare(node.variable, variable, node.variable_span, read_only=True)
        checker.loop_depth += 1
        flow = _scoped(checker, node.body)
        checker.loop_depth -= 1
    return flow if flow is Flow.RETURNS else Flow.ON


def _break(checker: Checker, node: Break) -> Flow:
    if not checker.loop_depth:
        checker.error("'break' is not inside a loop", node.span, "not-in-loop")
    return Flow.LEAVES_LOOP


def _continue(checker: Checker, node: Continue) -> Flow:
    if not checker.loop_depth:
        checker.error("'continue' is not inside a loop", node.span, "not-in-loop")
    return Flow.ON


def _return(checker: Checker, node: Return) -> Flow:
    function = checker.function
    if node.value is not None:
        found = check_expression(checker, node.value)
        if function is None or function.result == VOID:
            where = "outside of a function" if function is None else f"in '{function.name}', which returns nothing"
            checker.error(f"a value cannot be returned {where}", node.span, "misplaced-return")
        elif found is not ERROR:
            if promotion_cost(found, function.result) is None:
                checker.error(
                    f"'{function.name}' returns {article(function.result)}, but this is {article(found)}",
                    node.value.span, "return-type", conversion_help(function.result, found),
                )  # fmt: skip
            else:
                node.value = promote(node.value, function.result)
    elif function is None:
        checker.error("'return' is not inside a function", node.span, "misplaced-return")
    elif function.result != VOID:
        checker.error(
            f"'{function.name}' must return {article(function.result)}", node.span, "misplaced-return",
            "write the value after 'return'",
        )  # fmt: skip
    return Flow.RETURNS


def _empty(checker: Checker, node: Empty) -> Flow:
    return Flow.ON


_CHECKS: dict[type[Statement], Callable[[Checker, Any], Flow]] = {
    Assignment: _assignment,
    TupleAssignment: _tuple_assignment,
    TargetIncrement: _target_increment,
    JacobianIncrement: _jacobian_increment,
    Tilde: _tilde,
    CallStatement: _call_statement,
    Print: _print,
    BlockStatement: _block,
    Profile: _profile,
    If: _if,
    While: _while,
    For: _for,
    ForEach: _for_each,
    Break: _break,
    Continue: _continue,
    Return: _return,
    Empty: _empty,
}
