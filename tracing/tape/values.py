"""Values of a trace: Python ints and floats, NumPy arrays for containers, digests of those that are too large to keep.

How they are written: ints in decimal; reals in the shortest form that reads back, with a point or an exponent; truth
values as `true` and `false`; containers with up to six elements in full.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.tracing.instrument.graph import ValueType

SHOWN = 6
"""Elements of a container that are written out; of larger ones the first three and the last."""
INT_UNASSIGNED = -(2**31)


class _Missing:
    """See MISSING."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()
"""The value of what was not reached, or not kept."""


@dataclass(frozen=True)
class Digest:
    """Of a container that was not copied: sizes, least and greatest element, how many are NaN and infinite."""

    sizes: tuple[int, ...]
    least: float
    greatest: float
    nans: int
    infinities: int
    first: tuple[float, ...]
    last: float

    @property
    def count(self) -> int:
        return int(np.prod(self.sizes))


def unassigned(type_: ValueType, sizes: tuple[int, ...] = ()) -> Any:
    """What a variable holds before it is assigned."""
    if type_.rank:
        return np.full(sizes, INT_UNASSIGNED, np.int32) if type_.is_int else np.full(sizes, np.nan)
    return INT_UNASSIGNED if type_.is_int else float("nan")


def from_elements(type_: ValueType, sizes: tuple[int, ...], flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array that elements in the compiled program's order make: array dimensions first, matrices by column."""
    if type_.base != "matrix":
        return flat.reshape(sizes)
    return np.swapaxes(flat.reshape(*sizes[:-2], sizes[-1], sizes[-2]), -1, -2)


def from_digest(sizes: tuple[int, ...], data: bytes) -> Digest:
    """What the recorder noted of a large container."""
    least, greatest, nans, infinities, *first, last = struct.unpack("8d", data)
    return Digest(sizes, least, greatest, int(nans), int(infinities), tuple(first), last)


def digest(value: npt.NDArray[Any], type_: ValueType) -> Digest:
    """What the recorder would note of a container: in the order of compiled programs, matrices by column."""
    flat = (np.swapaxes(value, -1, -2) if type_.base == "matrix" else value).reshape(-1).astype(float)
    real = flat[~np.isnan(flat)]
    least = float(real[np.argmin(real)]) if len(real) else float("inf")
    greatest = float(real[np.argmax(real)]) if len(real) else float("-inf")
    first = tuple(flat[:3].tolist()) + (0.0,) * (3 - len(flat[:3]))
    nans, infinities = int(np.isnan(flat).sum()), int(np.isinf(flat).sum())
    return Digest(value.shape, least, greatest, nans, infinities, first, float(flat[-1]) if len(flat) else 0.0)


def converted(value: Any, type_: ValueType) -> Any:
    """An int where a real is wanted becomes one."""
    if type_.base == "real" and not type_.rank and isinstance(value, int):
        return float(value)
    if isinstance(value, np.ndarray) and value.dtype == np.int32 and not type_.is_int:
        return value.astype(float)
    return value


def scalar_text(value: Any, *, truth: bool = False) -> str:
    """An int, a real or a truth value."""
    if truth and isinstance(value, int):
        return "true" if value else "false"
    if isinstance(value, bool | int | np.integer):
        return str(int(value))
    return repr(float(value))


def value_text(value: Any, type_: ValueType) -> str:
    """A value as listings write it."""
    if value is MISSING:
        return "?"
    if isinstance(value, str):
        return value
    if isinstance(value, Digest):
        shown = [scalar_text(int(v) if type_.is_int else v) for v in (*value.first, value.last)]
        return _shortened(shown, value.count)
    if isinstance(value, np.ndarray):
        return _array_text(value)
    return scalar_text(value, truth=type_.base == "bool")


def _array_text(value: npt.NDArray[Any]) -> str:
    if value.size <= SHOWN:
        return _nested(value.tolist())
    flat = [scalar_text(v) for v in (*value.flat[:3].tolist(), value.flat[-1].item())]
    return _shortened(flat, value.size)


def complex_text(real: Any, imag: Any) -> str:
    """Complex numbers, by their parts, which may be containers."""
    if isinstance(real, Digest):
        numbers = [*zip(real.first, imag.first, strict=True), (real.last, imag.last)]
        return _shortened([_complex_number(*n) for n in numbers], real.count)
    if not isinstance(real, np.ndarray):
        return _complex_number(real, imag)
    if real.size > SHOWN:
        numbers = [(real.flat[n], imag.flat[n]) for n in (0, 1, 2, -1)]
        return _shortened([_complex_number(*n) for n in numbers], real.size)
    return _nested_pairs(real.tolist(), imag.tolist())


def _complex_number(real: float, imag: float) -> str:
    """`1.0 + 2.0i`: as an expression of Stan, if it is finite."""
    sign = "-" if np.signbit(imag) else "+"
    size = scalar_text(abs(float(imag)))
    return f"{scalar_text(float(real))} {sign} {size}{'' if np.isfinite(imag) else ' '}i"


def _nested_pairs(real: Any, imag: Any) -> str:
    if isinstance(real, list):
        return f"[{', '.join(_nested_pairs(r, i) for r, i in zip(real, imag, strict=True))}]"
    return _complex_number(real, imag)


def _shortened(shown: Sequence[str], count: int) -> str:
    """The first three elements of a container and the last."""
    return f"[{', '.join(shown[:3])}, …, {shown[3]}] (n={count})"


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_nested(v) for v in value)}]"
    return scalar_text(value)


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same, bit for bit, NaN being equal to NaN."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and a == b


# ---------------------------------------------------------------- indices


def selector(kinds: Sequence[str], indices: Sequence[Any], shape: Sequence[int]) -> tuple[Any, ...]:
    """Stan's indices, which must be in range, as NumPy's. A mesh where a list stands beside other indices: all
    combinations are meant, and NumPy would take lists together, and move their axis.
    """
    rest = list(indices)
    at: list[Any] = []
    for kind in kinds:
        if kind == "single":
            at.append(int(rest.pop(0)) - 1)
        elif kind == "multiple":
            at.append(np.asarray(rest.pop(0)) - 1)
        elif kind == "between":
            first, last = int(rest.pop(0)), int(rest.pop(0))
            at.append(slice(first - 1, max(last, first - 1)))
        elif kind == "from":
            at.append(slice(int(rest.pop(0)) - 1, None))
        elif kind == "to":
            at.append(slice(0, max(int(rest.pop(0)), 0)))
        else:
            at.append(slice(None))
    if len(at) == 1 or not any(isinstance(a, np.ndarray) for a in at):
        return tuple(at)
    return np.ix_(*(np.atleast_1d(np.arange(n)[a]) for a, n in zip(at, shape, strict=False)))


def is_mesh(at: tuple[Any, ...]) -> bool:
    """Whether what is selected has an axis for every index, also for single ones."""
    return len(at) > 1 and isinstance(at[0], np.ndarray)


def selected(container: npt.NDArray[Any], kinds: Sequence[str], indices: Sequence[Any]) -> Any:
    """`container[indices]`: an element (NumPy's), or an array."""
    at = selector(kinds, indices, container.shape)
    found = container[at]
    if not is_mesh(at):
        return found
    return np.squeeze(found, axis=tuple(n for n, kind in enumerate(kinds) if kind == "single"))


def replaced(operands: Sequence[Any], kinds: Sequence[str]) -> Any:
    """A container whose elements are replaced, in place: `operands` are the container, the indices, the new elements.

    Where an element is named twice the later one counts. MISSING where the container, or they, are not kept.
    """
    container, *indices, value = operands
    if isinstance(container, Digest) or isinstance(value, Digest):
        return MISSING
    at = selector(kinds, indices, container.shape)
    container[at] = np.reshape(value, container[at].shape) if is_mesh(at) else value
    return container
