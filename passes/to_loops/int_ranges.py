"""What is known of a program's data once they are bound: of ints their declared bounds, and that sizes are sizes.

    data { int<lower=0> N; int K; }  transformed parameters { matrix[N + 1, K - 1] x; }

Then N is from 0 to `MOST_SIZE` less 1, and K - 1 is not negative. Every size of a global variable is checked when
data are bound, before anything else of the program runs, so indices like `n + 1` in a loop up to N cannot wrap. Of
containers of reals: whether they are declared with a bound from 0 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.passes.builder import MOST_SIZE, Range
from ulam.passes.variable_form import literal_of

if TYPE_CHECKING:
    from ulam.passes.to_loops.programs import Global, ProgramParts

_ADD, _SUB = stan.BINARY_OPERATORS["+"], stan.BINARY_OPERATORS["-"]


def int_ranges(program: ProgramParts) -> dict[str, Range]:
    """Name of an int of the data block → its least and greatest value."""
    ranges: dict[str, Range] = {}
    for variable in program.globals.values():
        if variable.block == "data" and isinstance(variable.type, stan.IntType):
            ranges[variable.name] = _declared(variable)
    for variable in program.globals.values():
        for size in variable.sizes:
            _limit(ranges, size)
    return ranges


def is_never_negative(variable: Global) -> bool:
    """Whether data are declared not to be below 0."""
    lower = variable.op.lower
    least = None if variable.block != "data" or lower is None else literal_of(lower)
    return least is not None and least >= 0


def _declared(variable: Global) -> Range:
    least, greatest = (_literal(bound) for bound in (variable.op.lower, variable.op.upper))
    return (INT_MIN if least is None else least, INT_MAX if greatest is None else greatest)


def _literal(value: SSAValue | None) -> int | None:
    if value is not None and isinstance(op := value.owner, stan.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def _limit(ranges: dict[str, Range], size: SSAValue) -> None:
    """What follows from a size being one: of `N`, `N + 1` or `N - 1`."""
    op, offset = size.owner, 0
    if isinstance(op, _ADD | _SUB):
        left, right = op.operands
        if (known := _literal(right)) is not None:
            op, offset = left.owner, known if isinstance(op, _ADD) else -known
        elif (known := _literal(left)) is not None and isinstance(op, _ADD):
            op, offset = right.owner, known
    if not isinstance(op, stan.ReadOp):
        return
    name = op.var.owner.var_name.data  # type: ignore[union-attr]
    if (known_range := ranges.get(name)) is None:
        return
    least, greatest = known_range
    if INT_MIN <= least + offset:  # else the least one might wrap to a size
        ranges[name] = (max(least, -offset), min(greatest, MOST_SIZE - offset))
