"""Simplifications of one op that need no table: lazy operands, tuples and indices.

    1 ? f(x) : g(x)  →  f(x)      0 && f(x)  →  0      1 && i  →  i != 0      (a, b).1  →  a      x[i, :]  →  x[i]

Of `?:`, `&&` and `||` only the left operand has to be known, and the arm that is not taken goes, errors and all: it
would not have been evaluated. The elements of a tuple that are not asked for stay where they are evaluated.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.passes.analysis.nesting import terminator
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.variable_form import LAZY, constant, erase_unused, literal_of

_NOT_EQUAL = stan.BINARY_OPERATORS["!="]
_NOT = stan.UNARY_OPERATORS["!"]
_TRUTHS = (*(stan.BINARY_OPERATORS[s] for s in ("==", "!=", "<", "<=", ">", ">=")), _NOT, stan.AndOp, stan.OrOp)
PASS = "partial-evaluation"
SIMPLIFIED = frozenset[type]((stan.SelectOp, stan.AndOp, stan.OrOp, stan.FieldOp, stan.IndexOp))
"""The ops that `simplified` knows."""


def simplified(op: Operation) -> tuple[bool, Operation | None]:
    """Whether `op` could be simplified, and the op to go on with: `op` itself, or the first in place of it."""
    if isinstance(op, LAZY):
        return _lazy(op)
    if isinstance(op, stan.FieldOp) and isinstance(op.operands[0].owner, stan.TupleOp):
        number = op.field.value.data
        return _replaced(op, op.operands[0].owner.operands[number - 1], f"field {number} of a tuple written there")
    if isinstance(op, stan.IndexOp):
        return _index(op)
    return False, op


def _replaced(op: Operation, value: SSAValue, message: str) -> tuple[bool, Operation | None]:
    """Lets the users of `op` use `value`."""
    remark(PASS, op.location, "expression", message, done=True)
    following = op.next_op
    replace_uses(op.results[0], value)
    operands = list(op.operands)
    discard(op)
    erase_unused(operands)
    return True, following


# ---------------------------------------------------------------- lazy operands


def _lazy(op: stan.SelectOp | stan.AndOp | stan.OrOp) -> tuple[bool, Operation | None]:
    left = literal_of(op.operands[0])
    if left is None:
        return False, op
    if isinstance(op, stan.SelectOp):
        taken = op.then if left != 0 else op.otherwise
        return _arm(op, taken, f"the condition is {left}", is_truth=False)
    symbol = "&&" if isinstance(op, stan.AndOp) else "||"
    if (left != 0) == isinstance(op, stan.AndOp):
        return _arm(op, op.right, f"the left side of {symbol} is {left}", is_truth=True)
    literal = constant(int(left != 0), op.location)
    assert op.parent is not None
    op.parent.insert_op_before(literal, op)
    _replaced(op, literal.res, f"the left side of {symbol} is {left}")
    return True, literal


def _arm(op: Operation, arm: Region, message: str, *, is_truth: bool) -> tuple[bool, Operation | None]:
    """Puts the ops of an arm in place of `op`; of `&&` and `||` as 0 or 1."""
    block, outer = arm.block, op.parent
    assert outer is not None
    end = terminator(block)
    value = end.operands[0]
    discard(end)
    first: Operation | None = None
    for inner in ops_of(block):
        inner.detach()
        outer.insert_op_before(inner, op)
        first = first or inner
    if is_truth and not isinstance(value.owner, _TRUTHS):
        zero = constant(0, op.location)
        truth = _NOT_EQUAL(value, zero.res, stan.INT, location=op.location)
        outer.insert_ops_before([zero, truth], op)
        value, first = truth.results[0], first or zero
    _, following = _replaced(op, value, message)
    return True, first if first is not None and first.parent is outer else following


# ---------------------------------------------------------------- indices


def _index(op: stan.IndexOp) -> tuple[bool, Operation | None]:
    kinds = [kind.data for kind in op.kinds.data]
    while kinds and kinds[-1] == "all":
        kinds.pop()
    base = op.operands[0]
    if not kinds:
        return _replaced(op, base, "an index that selects everything")
    inner = base.owner
    if (
        isinstance(inner, stan.IndexOp)
        and all(kind.data == "all" for kind in inner.kinds.data)
        and inner.operands[0].type == base.type
    ):
        base = inner.operands[0]
    elif len(kinds) == len(op.kinds.data):
        return False, op
    left = ArrayAttr(op.kinds.data[: len(kinds)])
    new = stan.IndexOp(base, left, op.indices, op.res.type, location=op.location)
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    _replaced(op, cast(SSAValue, new.results[0]), "an index that selects everything")
    return True, new
