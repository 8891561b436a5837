"""Which ops keep a buffer beyond the iteration, or the run of a function, in which they stand."""

from __future__ import annotations

from xdsl.ir import Operation

from ulam.dialects import ad, rt

_KEEPERS: dict[type[Operation], slice] = {ad.KeepOp: slice(2, 3), ad.PushOp: slice(None), rt.StoreOp: slice(1)}
"""Op by which a buffer may outlive the iteration, and the operands by which it does.

Not calls: a function hands buffers on in what it returns, and nowhere else.
"""


def keeps_buffer(op: Operation) -> bool:
    """Whether `op` puts a buffer where it is found later."""
    kept = _KEEPERS.get(type(op))
    return kept is not None and any(type(value.type) is rt.BufferType for value in op.operands[kept])
