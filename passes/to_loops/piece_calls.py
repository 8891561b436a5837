"""The call of the pieces of a large program (`passes/pieces.py`): values into a buffer, and a kernel that calls each
piece, by a table whose address is in the bound table, and keeps the gradient.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.passes.builder import BUFFER_I64, BUFFER_REAL
from ulam.passes.pieces import PIECE_FUNCTION
from ulam.passes.to_loops.intrinsics import intrinsic
from ulam.passes.to_loops.kernel_calls import call_kernel
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.values import Container, Value, total, write


@intrinsic(PIECE_FUNCTION)
def evaluate_pieces(low: Lowering, op: stan.CallOp, arguments: list[Value]) -> Value:
    """The sum of all pieces; the arguments are what they read, of which each gets what it wants."""
    builder = low.builder
    values = [low.own(value) for value in arguments]
    ends = [builder.i64(0)]
    for value in values:
        count = total(builder, value.dims) if isinstance(value, Container) else builder.i64(1)
        ends.append(builder.add(ends[-1], count))
    theta = builder.alloc(ends[-1], BUFFER_REAL)
    places = builder.alloc(builder.i64(len(ends)), BUFFER_I64)
    for n, end in enumerate(ends):
        builder.store(end, places, builder.i64(n), initial=True)
    for value, begin in zip(values, ends, strict=False):
        if isinstance(value, Container):
            write(builder, value, builder.view(theta, begin), initial=True)
        else:
            assert isinstance(value, SSAValue)
            builder.store(value, theta, begin, initial=True)
    pieces = builder.bound(low.piece_slot, i64)
    sizes = {"n": ends[-1], "m": builder.i64(len(ends))}
    return builder.load(call_kernel(low, PIECE_FUNCTION, [theta, places, pieces], sizes)[0], builder.i64(0))
