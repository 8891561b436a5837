"""Ints as compiled programs have them: two's complement of 32 bits, or of another width.

Imports nothing, as the runtime needs it where no compiler is loaded.
"""

from __future__ import annotations

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
"""The ints of Stan."""


def wrapped(value: int, width: int = 32) -> int:
    """The signed value of the low `width` bits; of one bit, the bit."""
    if width == 1:
        return value & 1
    half = 1 << (width - 1)
    return ((value + half) & ((1 << width) - 1)) - half


def quotient(a: int, b: int) -> int:
    """`a / b`, rounded towards zero, of any size."""
    result = abs(a) // abs(b)
    return result if (a < 0) == (b < 0) else -result


def remainder(a: int, b: int) -> int:
    """`a % b`, with the sign of `a`."""
    return a - b * quotient(a, b)
