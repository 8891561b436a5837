"""What an expression costs: the measure by which passes decide whether to keep a value or to compute it again.

One unit is about an addition. Of containers it counts the work per element, as element-wise operations are computed
where an element is used: `a + b * x` costs 2 whether `x` is a scalar or a vector, `exp(x)` 10, a product of matrices
100. Reading, converting and naming constants is free.
"""

from __future__ import annotations

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.library.costs import FunctionCost
from ulam.library.functions import function

_FREE = (stan.ConstantOp, stan.ReadOp, stan.PromoteOp, stan.FieldOp)
_SCALARS = (stan.INT, stan.REAL, stan.COMPLEX)
_STORED = frozenset(("append_array", "append_col", "append_row"))
"""What fills memory, whoever reads it."""

FUNCTION = 10
"""A function of scalars such as `exp`, also of every element of a container."""

KERNEL = 100
"""What takes time in proportion to more than the elements of its result."""


def own_cost(op: Operation) -> int:
    """The cost of an op of an expression, without that of its operands."""
    if isinstance(op, _FREE):
        return 0
    if isinstance(op, stan.CallOp):
        return _call_cost(op)
    if isinstance(op, stan.IndexOp):
        return FUNCTION if any(kind.data == "multiple" for kind in op.kinds) else 1
    operands = [operand.type for operand in op.operands]
    symbol: str | None = getattr(op, "SYMBOL", None)
    if symbol in ("*", "/", "\\", "^") and len(operands) == 2:
        if all(type_ not in _SCALARS for type_ in operands) or symbol == "\\":
            return KERNEL
        if symbol == "^":
            return FUNCTION if op.results[0].type in _SCALARS else KERNEL
    if symbol == ".^":
        return FUNCTION
    return 4 if symbol in ("/", "./", "%", "%/%") else 1


def memory_cost(op: stan.CallOp) -> int:
    """What it costs besides that a call fills memory, whoever reads it."""
    return FUNCTION if op.callee.data in _STORED else 0


def _call_cost(op: stan.CallOp) -> int:
    if "user" in op.properties:
        return KERNEL
    if not op.operands:
        return 0
    if function(op.callee.data).cost is not FunctionCost.CALL:
        return 1
    if len(op.operands) == 1 or all(operand.type in _SCALARS for operand in op.operands):
        return FUNCTION
    return KERNEL
