"""Operators: the types that they take and give, what is said of operands that do not fit, and of what is seldom meant.

Operators in a row make trees as deep as the row is long, so these nodes are visited in a loop.
Source: Stan Reference Manual, "Expressions"; Stan Functions Reference, "Operators".
"""

from __future__ import annotations

from collections.abc import Callable

from ulam.frontend.check.context import ERROR, Checker, article, set_type
from ulam.frontend.functions import signatures
from ulam.frontend.promotion import promote
from ulam.frontend.stan_types import INT, MATRIX, REAL, ROW_VECTOR, VECTOR, ArrayType, StanType
from ulam.frontend.syntax import Binary, Expression, Unary

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def check_operators(
    checker: Checker, node: Unary | Binary, check_operand: Callable[[Checker, Expression], StanType]
) -> StanType:
    """Fills an operator and those below it; `check_operand` does so for what is no operator."""
    # Each node before its right, and that before its left operand: backwards, that is the order of evaluation.
    order: list[Expression] = []
    pending: list[Expression] = [node]
    while pending:
        found = pending.pop()
        order.append(found)
        if isinstance(found, Binary):
            pending += (found.left, found.right)
        elif isinstance(found, Unary):
            pending.append(found.operand)
    for found in reversed(order):
        if isinstance(found, Binary):
            _binary(checker, found)
        elif isinstance(found, Unary):
            _unary(checker, found)
        else:
            check_operand(checker, found)
    return node.type


def _unary(checker: Checker, node: Unary) -> StanType:
    operand = node.operand.type
    if operand is ERROR:
        return set_type(node, ERROR)
    found = signatures.unary_operator(node.operator, operand)
    if found is None:
        where = "postfix" if node.operator == "'" else "prefix"
        checker.error(
            f"{where} '{node.operator}' cannot be applied to {article(operand)}", node.span, "operator-type",
            "'!' takes an int" if node.operator == "!" else None,
        )  # fmt: skip
        return set_type(node, ERROR)
    node.operand = promote(node.operand, found[0])
    return set_type(node, found[1], node.operand)


def _binary(checker: Checker, node: Binary) -> StanType:
    left, right = node.left.type, node.right.type
    if left is ERROR or right is ERROR:
        node.type = INT if node.operator in _COMPARISONS or node.operator in ("&&", "||") else ERROR
        return node.type
    found = signatures.binary_operator(node.operator, left, right)
    if found is None:
        checker.error(
            f"operator '{node.operator}' is not defined for {article(left)} and {article(right)}",
            node.span,
            "operator-type",
            _operator_help(checker, node, left, right),
        )
        return set_type(node, ERROR)
    _warn_of_operator(checker, node, left, right)
    if found[0] is not left:
        node.left = promote(node.left, found[0])
    if found[1] is not right:
        node.right = promote(node.right, found[1])
    return set_type(node, found[2], node.left, node.right)


def _operator_help(checker: Checker, node: Binary, left: StanType, right: StanType) -> str | None:
    """What was probably meant by an operator that its operands do not have."""
    operator = node.operator
    if operator == "*" and left == right and left in (VECTOR, ROW_VECTOR):
        return "use '.*' to multiply element by element, or dot_product for the inner product"
    if operator == "/" and signatures.binary_operator("./", left, right) is not None:
        return "use './' to divide element by element"
    if operator in ("%", "%/%"):
        return f"'{operator}' is for two ints" + ("; fmod gives the remainder of reals" if operator == "%" else "")
    if operator in ("&&", "||"):
        return "both sides must be ints"
    if isinstance(left, ArrayType) or isinstance(right, ArrayType):
        return "arithmetic is not defined for arrays; to_vector makes a vector of an array of reals"
    return _transposition_help(checker, node, left, right)


_SHOWN_OPERAND = 40
_TRANSPOSED: dict[StanType, StanType] = {VECTOR: ROW_VECTOR, ROW_VECTOR: VECTOR}


def _transposition_help(checker: Checker, node: Binary, left: StanType, right: StanType) -> str | None:
    """Vectors and row vectors that were taken for one another: `X * b` with a row_vector `b`."""
    operator = node.operator
    first, second = (_transposed(checker, side) for side in (node.left, node.right))
    turned = _TRANSPOSED.get(right)
    if turned is not None and signatures.binary_operator(operator, left, turned) is not None:
        return f"transpose the right side, `{operator} {second}`, or declare it as {article(turned)}"
    turned = _TRANSPOSED.get(left)
    if turned is not None and signatures.binary_operator(operator, turned, right) is not None:
        return f"transpose the left side, `{first} {operator}`, or declare it as {article(turned)}"
    return None


def _transposed(checker: Checker, side: Expression) -> str:
    """What is written there, transposed."""
    text = " ".join(checker.source.text[side.span.start : side.span.end].split())
    text = text if len(text) < _SHOWN_OPERAND else "..."
    return f"({text})'" if isinstance(side, Unary | Binary) else f"{text}'"


def _warn_of_operator(checker: Checker, node: Binary, left: StanType, right: StanType) -> None:
    """Warns of what is legal and often not meant."""
    if node.operator == "/" and left == right == INT:
        checker.warning(
            "this is a division of ints, which rounds towards zero", node.span, "int-division",
            "write one of the numbers as a real, or '%/%' if rounding is meant",
        )  # fmt: skip
    elif node.operator == "^" and left == MATRIX and right in (INT, REAL):
        checker.warning(
            "'^' of a matrix raises each element to the power", node.span, "matrix-power",
            "write '.^' if this is meant, or matrix_power for the product of the matrix with itself",
        )  # fmt: skip
    elif node.operator in _COMPARISONS and isinstance(node.left, Binary) and node.left.operator in _COMPARISONS:
        checker.warning(
            "a chained comparison compares the result of the first one, 0 or 1", node.span, "chained-comparison",
            "join two comparisons with '&&'",
        )  # fmt: skip
