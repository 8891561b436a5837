"""Size expressions as errors tell them: `N + 1` of `vector[N + 1] x`, as far as they are of variables and literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan

if TYPE_CHECKING:
    from xdsl.dialects.builtin import StringAttr

_SYMBOLS = ("+", "-", "*", "%/%", "%", "/")
_BINARY: dict[type[Operation], str] = {stan.BINARY_OPERATORS[symbol]: symbol for symbol in _SYMBOLS}


def name_of_size(size: SSAValue) -> str:
    """A size as Stan text; empty for a literal, and for what is not an expression of variables and literals."""
    return "" if isinstance(size.owner, stan.ConstantOp) else _text(size, 0) or ""


def _text(value: SSAValue, depth: int) -> str | None:
    op = value.owner
    if value.name_hint is not None or not isinstance(op, Operation) or depth > 8:
        return value.name_hint
    if isinstance(op, stan.ConstantOp):
        return str(op.value.value.data) if isinstance(op.value, IntegerAttr) else None
    if isinstance(op, stan.ReadOp):
        name: StringAttr = op.var.owner.var_name  # type: ignore[union-attr]
        return name.data
    if (symbol := _BINARY.get(type(op))) is not None:
        left, right = (_text(operand, depth + 1) for operand in op.operands)
        if left is None or right is None:
            return None
        text = f"{left} {symbol} {right}"
        return f"({text})" if depth else text
    if isinstance(op, stan.CallOp) and op.callback is None:
        parts = [_text(operand, depth + 1) for operand in op.operands]
        return None if None in parts else f"{op.callee.data}({', '.join(p for p in parts if p)})"
    if isinstance(op, stan.IndexOp) and all(kind.data == "single" for kind in op.kinds):
        parts = [_text(operand, depth + 1) for operand in op.operands]
        return None if None in parts else f"{parts[0]}[{', '.join(p for p in parts[1:] if p)}]"
    return None
