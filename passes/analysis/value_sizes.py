"""The sizes of expressions, from those of their operands, where they can be evaluated at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.passes.analysis.linear_forms import ONE, LinearForm

_ELEMENTWISE = ("+", "-", ".*", "./", ".^")


class KnownSizes(Protocol):
    """What is asked about operands; see `sizes.SizeFacts`."""

    def form(self, value: SSAValue) -> LinearForm: ...
    def sizes(self, container: SSAValue) -> list[LinearForm | None]: ...


def value_sizes(facts: KnownSizes, op: Operation) -> list[LinearForm | None]:
    """The sizes of a container that `op` computes, outermost first; empty if they are not understood."""
    symbol: str | None = getattr(op, "SYMBOL", None)
    if isinstance(op, stan.CallOp):
        return _of_call(facts, op)
    if isinstance(op, stan.IndexOp):
        return _of_index(facts, op)
    if isinstance(op, stan.ArrayOp | stan.RowVectorOp):
        return _of_literal(facts, op)
    if isinstance(op, stan.LiteralOp):
        return [LinearForm(size) for size in op.shape]
    if isinstance(op, stan.PromoteOp) or (symbol in ("-", "+") and len(op.operands) == 1):
        return facts.sizes(op.operands[0])
    if symbol == "'":
        return facts.sizes(op.operands[0])[::-1]
    if symbol == "*":
        return _of_product(facts, *op.operands)
    if symbol in _ELEMENTWISE or symbol == "/":
        return _of_first(facts, op)
    return []


def _of_first(facts: KnownSizes, op: Operation) -> list[LinearForm | None]:
    """The sizes of whichever container among the operands has known ones: they must be equal."""
    found: list[LinearForm | None] = []
    for operand in op.operands:
        if stan.dimensions(operand.type) == stan.dimensions(op.results[0].type):
            found = facts.sizes(operand)
            if None not in found:
                break
    return found


def _of_product(facts: KnownSizes, left: SSAValue, right: SSAValue) -> list[LinearForm | None]:
    if not stan.dimensions(left.type):
        return facts.sizes(right)
    if not stan.dimensions(right.type):
        return facts.sizes(left)
    rows = facts.sizes(left)[:1] if left.type in (stan.MATRIX, stan.VECTOR) else []
    columns = facts.sizes(right)[-1:] if right.type in (stan.MATRIX, stan.ROW_VECTOR) else []
    return rows + columns


def _of_index(facts: KnownSizes, op: stan.IndexOp) -> list[LinearForm | None]:
    sizes = facts.sizes(op.value)
    operands = iter(op.indices)
    found: list[LinearForm | None] = []
    for position, size in enumerate(sizes):
        kind = op.kinds.data[position].data if position < len(op.kinds.data) else "all"
        if kind == "single":
            next(operands)
        elif kind == "multiple":
            found.append(facts.sizes(next(operands))[0])
        elif kind == "all":
            found.append(size)
        else:
            for _ in range(2 if kind == "between" else 1):
                next(operands)
            found.append(None)
    return found


def _of_literal(facts: KnownSizes, op: Operation) -> list[LinearForm | None]:
    if not op.operands:
        return []
    return [LinearForm(len(op.operands)), *facts.sizes(op.operands[0])]


# ---------------------------------------------------------------- functions


def _filled(count: int) -> Callable[[KnownSizes, stan.CallOp], list[LinearForm | None]]:
    """Of a function whose last `count` arguments are the sizes; 0: all but the first."""

    def sizes(facts: KnownSizes, op: stan.CallOp) -> list[LinearForm | None]:
        given = list(op.operands)[-count:] if count else list(op.operands)[1:]
        inner = [] if count else facts.sizes(op.operands[0])
        return [*(facts.form(size) for size in given), *inner]

    return sizes


def _appended(facts: KnownSizes, op: stan.CallOp) -> list[LinearForm | None]:
    """Of `append_row` and `append_col` of vectors and scalars."""
    if stan.dimensions(op.results[0].type) != 1:
        return []
    total = LinearForm(0)
    for operand in op.operands:
        size = facts.sizes(operand)[0] if stan.dimensions(operand.type) else ONE
        if size is None:
            return []
        total = total.plus(size)
    return [total]


def _of_argument(position: int) -> Callable[[KnownSizes, stan.CallOp], list[LinearForm | None]]:
    """Of a function whose result has the sizes of one of its arguments."""
    return lambda facts, op: facts.sizes(op.operands[position])


_FUNCTIONS: dict[str, Callable[..., list[LinearForm | None]]] = {
    "rep_vector": _filled(1), "rep_row_vector": _filled(1), "rep_matrix": _filled(2), "rep_array": _filled(0),
    "zeros_vector": _filled(1), "ones_vector": _filled(1), "zeros_row_vector": _filled(1),
    "ones_row_vector": _filled(1), "append_row": _appended, "append_col": _appended,
    "diag_pre_multiply": _of_argument(1), "diag_post_multiply": _of_argument(0),
    "transpose": lambda facts, op: facts.sizes(op.operands[0])[::-1],
}  # fmt: skip
_SAME_LENGTH = frozenset(("to_vector", "to_row_vector", "to_array_1d"))


def _of_call(facts: KnownSizes, op: stan.CallOp) -> list[LinearForm | None]:
    name = op.callee.data
    if op.user is not None:
        return []
    if (rule := _FUNCTIONS.get(name)) is not None:
        return rule(facts, op)
    if len(op.operands) != 1 or op.callback is not None:
        return []
    type_, result = op.operands[0].type, op.results[0].type
    if type_ == result or (name in _SAME_LENGTH and stan.dimensions(type_) == 1):
        return facts.sizes(op.operands[0])  # a function of each element, of the order, of a square matrix
    return []
