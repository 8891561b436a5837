"""Expressions as short texts, for remarks and printed analyses."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ulam.dialects import stan
from ulam.passes.variable_form import Variable, literal_of

_DEEPEST = 8


def variable_name(variable: SSAValue) -> str:
    """The name of a declared or global variable."""
    owner = variable.owner
    assert isinstance(owner, Variable | stan.GlobalOp)
    return owner.var_name.data


def expression_text(value: SSAValue, depth: int = 0) -> str:
    """A short text of an expression, with all parentheses. What is nested deeply becomes `...`."""
    op = value.owner
    if isinstance(op, Block):
        return value.name_hint or "argument"
    if (literal := literal_of(value)) is not None:
        return str(literal)
    if isinstance(op, stan.ReadOp):
        return variable_name(op.var)
    if depth == _DEEPEST:
        return "..."
    operands = [expression_text(operand, depth + 1) for operand in op.operands]
    symbol: str | None = getattr(op, "SYMBOL", None)
    if isinstance(op, stan.PromoteOp):
        return operands[0]
    if isinstance(op, stan.IndexOp):
        return f"{operands[0]}[{', '.join(operands[1:])}]"
    if symbol is not None and len(operands) == 2:
        return f"({operands[0]} {symbol} {operands[1]})"
    if symbol is not None:
        return f"{operands[0]}'" if symbol == "'" else f"{symbol}{operands[0]}"
    name = op.callee.data if isinstance(op, stan.CallOp) else op.name.removeprefix("stan.")
    return f"{name}({', '.join(operands)})"
