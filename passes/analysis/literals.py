"""Evaluation of operators, and of functions where the result is exact, on literals: what the compiled program gives.

Ints have 32 bits and wrap. Reals are doubles. Not evaluated: division of ints by 0 (an error of the running program),
and what is not finite (it has no literal).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Operation

from ulam.dialects import stan

Literal = int | float

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, ".*": operator.mul,
}  # fmt: skip
_EXACT: dict[str, tuple[float, float]] = {
    "exp": (0.0, 1.0), "exp2": (0.0, 1.0), "expm1": (0.0, 0.0), "log": (1.0, 0.0), "log2": (1.0, 0.0),
    "log10": (1.0, 0.0), "log1p": (0.0, 0.0), "sin": (0.0, 0.0), "cos": (0.0, 1.0), "tan": (0.0, 0.0),
    "sinh": (0.0, 0.0), "cosh": (0.0, 1.0), "tanh": (0.0, 0.0), "inv_logit": (0.0, 0.5), "Phi": (0.0, 0.5),
}  # fmt: skip
"""Functions at an argument where their value is exact."""
INT_MIN, INT_MAX = -(2**31), 2**31 - 1


def wrapped(value: int) -> int:
    """The int of 32 bits that `value` wraps to."""
    return (value - INT_MIN) % 2**32 + INT_MIN


def same_literal(one: Literal, other: Literal) -> bool:
    """Whether two literals are the same value of the same type; 0.0 and -0.0 are not."""
    return type(one) is type(other) and one == other and math.copysign(1, one) == math.copysign(1, other)


def evaluate(op: Operation, operands: Sequence[Literal]) -> Literal | None:
    """The value of an operator or promotion of literals; None if it is not to be evaluated."""
    if isinstance(op, stan.PromoteOp):
        return float(operands[0]) if op.results[0].type == stan.REAL else None
    if isinstance(op, stan.CallOp):
        return evaluate_function(op.callee.data, operands) if op.user is None else None
    symbol: str | None = getattr(op, "SYMBOL", None)
    return None if symbol is None else evaluate_operator(symbol, operands)


def evaluate_function(name: str, operands: Sequence[Literal]) -> Literal | None:
    """The value of a function of the library, of reals, where every implementation gives just that; else None."""
    if len(operands) == 2:
        return _power(*operands) if name == "pow" else None
    if len(operands) != 1:
        return None
    value = float(operands[0])
    if name == "sqrt" and value > 0 and (root := math.sqrt(value)) == int(root) and root * root == value:
        return root  # others are not shorter to read, or to compute
    if (exact := _EXACT.get(name)) is not None and same_literal(exact[0], value):
        return exact[1]
    return None


def _power(base: Literal, exponent: Literal) -> float | None:
    """Powers of integers that are integers, of at most 53 bits."""
    if not (base == int(base) and exponent == int(exponent) and 0 <= exponent <= 53 and abs(base) < 2**53):
        return None
    result = int(base) ** int(exponent)
    return float(result) if abs(result) <= 2**53 and result else None


def evaluate_operator(symbol: str, operands: Sequence[Literal]) -> Literal | None:
    """The value of an operator, as it is written, of literals; None if it is no operator, or not to be evaluated."""
    if len(operands) == 1:
        result = _unary(symbol, operands[0])
    elif len(operands) == 2:
        result = _binary(symbol, *operands)
    else:
        return None
    if isinstance(result, float) and not math.isfinite(result):
        return None
    return result


def _unary(symbol: str, value: Literal) -> Literal | None:
    if symbol == "-":
        return wrapped(-value) if isinstance(value, int) else -value
    if symbol == "+":
        return value
    if symbol == "!":
        return int(value == 0)
    return None


def _binary(symbol: str, left: Literal, right: Literal) -> Literal | None:
    if (compare := _COMPARISONS.get(symbol)) is not None:
        return int(compare(left, right))
    if (compute := _ARITHMETIC.get(symbol)) is not None:
        value = compute(left, right)
        return wrapped(value) if isinstance(value, int) else value
    if isinstance(left, int) and isinstance(right, int):
        return _divided(symbol, left, right)
    if symbol in ("/", "./") and right != 0:
        return left / right
    return None


def _divided(symbol: str, left: int, right: int) -> int | None:
    """Division rounds towards 0, and the remainder has the sign of the dividend."""
    if symbol not in ("/", "%/%", "%") or right == 0 or (left == INT_MIN and right == -1):
        return None
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return left - quotient * right if symbol == "%" else quotient
