"""Evaluation of operators, and of functions where the result is exact, on literals: what the compiled program gives.

Ints have 32 bits and wrap. Reals are doubles. Not evaluated: division of ints by 0 (an error of the running program),
and what is not finite (it has no literal).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation

from ulam.dialects import scalar_ops, stan
from ulam.dialects.integers import wrapped
from ulam.dialects.scalar_ops import COMPARISONS, compare_integers, compare_reals, same_value

Literal = int | float

_ARITHMETIC: dict[str, tuple[type[Operation], type[Operation]]] = {
    "+": (arith.AddiOp, arith.AddfOp), "-": (arith.SubiOp, arith.SubfOp), "*": (arith.MuliOp, arith.MulfOp),
    ".*": (arith.MuliOp, arith.MulfOp), "/": (arith.DivSIOp, arith.DivfOp),
}  # fmt: skip
"""Operators → what they are of ints, and of reals."""
_INT_ARITHMETIC: dict[str, type[Operation]] = {"%/%": arith.DivSIOp, "%": arith.RemSIOp}
_EXACT: dict[str, tuple[float, float]] = {
    "exp": (0.0, 1.0), "exp2": (0.0, 1.0), "expm1": (0.0, 0.0), "log": (1.0, 0.0), "log2": (1.0, 0.0),
    "log10": (1.0, 0.0), "log1p": (0.0, 0.0), "sin": (0.0, 0.0), "cos": (0.0, 1.0), "tan": (0.0, 0.0),
    "sinh": (0.0, 0.0), "cosh": (0.0, 1.0), "tanh": (0.0, 0.0), "inv_logit": (0.0, 0.5), "Phi": (0.0, 0.5),
}  # fmt: skip
"""Functions at an argument where their value is exact."""


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
    if (exact := _EXACT.get(name)) is not None and same_value(exact[0], value):
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
        return _unary(symbol, operands[0])
    if len(operands) != 2:
        return None
    left, right = operands
    if isinstance(left, int) and isinstance(right, int):
        return _of_ints(symbol, left, right)
    return _of_reals(symbol, float(left), float(right))


def _unary(symbol: str, value: Literal) -> Literal | None:
    if symbol == "-":
        return wrapped(-value) if isinstance(value, int) else -value
    if symbol == "+":
        return value
    if symbol == "!":
        return int(value == 0)
    return None


def _of_ints(symbol: str, left: int, right: int) -> int | None:
    if (predicates := COMPARISONS.get(symbol)) is not None:
        return int(compare_integers(predicates[0], left, right, 32))
    op_class = _ARITHMETIC[symbol][0] if symbol in _ARITHMETIC else _INT_ARITHMETIC.get(symbol)
    value = None if op_class is None else scalar_ops.evaluate(op_class, left, right, 32)
    return None if value is None else int(value)


def _of_reals(symbol: str, left: float, right: float) -> Literal | None:
    if (predicates := COMPARISONS.get(symbol)) is not None:
        return int(compare_reals(predicates[1], left, right))
    op_classes = _ARITHMETIC.get("/" if symbol == "./" else symbol)
    value = None if op_classes is None else scalar_ops.evaluate(op_classes[1], left, right)
    return value if value is not None and math.isfinite(value) else None
