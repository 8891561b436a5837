"""Parts of small pictures: scales, ticks, paths. They are inline SVG, whose colours are those of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ulam.runtime.markup import markup

Array = npt.NDArray[np.float64]

_ALIKE = 1e-12
"""Numbers that differ by a smaller part of themselves are one number to a picture."""


@dataclass(frozen=True)
class Scale:
    """Where numbers from `low` to `high` are drawn: from `start` to `end`. Others are drawn at the nearer end."""

    low: float
    high: float
    start: float
    end: float

    def places(self, values: Array) -> Array:
        """The places of numbers, none of them NaN."""
        inside = np.clip(values, self.low, self.high) / 2  # halves: the difference of two numbers may be infinite
        return self.start + (inside - self.low / 2) / (self.high / 2 - self.low / 2) * (self.end - self.start)

    def place(self, value: float) -> float:
        """The place of one number."""
        return float(self.places(np.array([value]))[0])

    def drawn(self, start: float, end: float) -> Scale:
        """The same numbers, drawn elsewhere."""
        return Scale(self.low, self.high, start, end)


def limits(values: Array) -> tuple[float, float] | None:
    """What of these numbers a picture shows, with some room; None if none is finite.

    A few numbers that are far from all others are left out, so that the others can be told apart.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    if high / 2 - low / 2 <= _ALIKE * max(abs(low), abs(high)) / 2:
        room = abs(low) / 10 or 1.0
        return max(low - room, -1.7e308), min(high + room, 1.7e308)
    least, most = (float(q) for q in np.quantile(finite, (0.005, 0.995)))
    core = most / 2 - least / 2
    if core > 0 and high / 2 - low / 2 > 8 * core:
        low, high = max(low, least - core), min(high, most + core)
    room = 0.04 * (high / 2 - low / 2)
    return max(low - 2 * room, -1.7e308), min(high + 2 * room, 1.7e308)


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers between two others, about so many."""
    span = high / count - low / count
    if not span > 0 or not math.isfinite(span):
        return []
    power = 10.0 ** math.floor(math.log10(span))
    if not power > 0 or not math.isfinite(power):
        return []
    step = next((power * factor for factor in (1, 2, 2.5, 5) if power * factor >= span), 10 * power)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [k * step for k in range(first, last + 1)] if last - first < 4 * count else []


def tick_texts(values: Sequence[float]) -> list[str]:
    """Ticks as text, with as many digits as tell them apart."""
    step = min((abs(b - a) for a, b in pairwise(values)), default=abs(values[0]) if values else 0.0)
    if max(map(abs, values), default=0.0) < 1e6 and (step >= 1e-4 or not step):
        formats = [f",.{digits}f" for digits in range(5)]
    else:
        formats = [f".{digits}g" for digits in range(3, 17)]
    for form in formats:
        texts = [format(value, form) for value in values]
        read = [float(text.replace(",", "")) for text in texts]
        if all(abs(number - value) <= step / 50 for number, value in zip(read, values, strict=True)):
            return [_signed(text) for text in texts]
    return [_signed(f"{value:g}") for value in values]


def _signed(text: str) -> str:
    return text.replace("e+", "e").replace("-", "−") if float(text.replace(",", "")) else "0"


def path(x: Array, y: Array) -> str:
    """A line through points; where a number is none it is broken. Steps are tenths of a pixel."""
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return ""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    return "".join(_run(x[begin:end], y[begin:end]) for begin, end in edges.reshape(-1, 2))


def _run(x: Array, y: Array) -> str:
    points = np.rint(10 * np.stack([x, y], axis=1)).astype(np.int64)
    first, steps = points[0].tolist(), np.diff(points, axis=0).tolist()
    if not steps:
        return f"M{tenths(first[0])} {tenths(first[1])}h0"
    return f"M{tenths(first[0])} {tenths(first[1])}l" + " ".join(f"{tenths(dx)} {tenths(dy)}" for dx, dy in steps)


def dots(x: Array, y: Array) -> str:
    """Points of the width of the line."""
    points = np.rint(10 * np.stack([x, y], axis=1)).astype(np.int64).tolist()
    return "".join(f"M{tenths(px)} {tenths(py)}h0" for px, py in points)


def crosses(x: Array, y: Array, size: float) -> str:
    """Marks that can be told from points without a colour."""
    points = np.rint(10 * np.stack([x - size, y - size], axis=1)).astype(np.int64).tolist()
    wide = f"{2 * size:g}"
    return "".join(f"M{tenths(px)} {tenths(py)}l{wide} {wide}m0-{wide}l-{wide} {wide}" for px, py in points)


def tenths(value: int) -> str:
    """A number of tenths, as short as it can be written."""
    whole, rest = divmod(abs(value), 10)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole or ''}.{rest}" if rest else f"{sign if whole else ''}{whole}"


def steps(edges: Array, heights: Array, base: float) -> str:
    """The outline of bars that stand side by side on a line."""
    x, y = np.repeat(edges, 2), np.concatenate([[base], np.repeat(heights, 2), [base]])
    return path(x, y) + "z"


def svg(width: float, height: float, label: str, parts: Iterator[str] | Sequence[str], kind: str = "") -> str:
    """A picture that is as wide as its place. `label` tells those who do not see it what it shows."""
    named = f' class="{kind}"' if kind else ""
    inner = "".join(parts)
    return f'<svg{named} viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{markup(label)}">{inner}</svg>'


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "") -> str:
    """Words within a picture."""
    named = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{named} x="{x:.4g}" y="{y:.4g}"{placed}>{markup(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.4g} {y1:.4g}L{x2:.4g} {y2:.4g}"/>'


def drawn(kind: str, d: str) -> str:
    """A path, if there is any."""
    return f'<path class="{kind}" d="{d}"/>' if d else ""


def y_axis(scale: Scale, x: float, right: float, count: int = 3) -> Iterator[str]:
    """Ticks at the left with lines across. Logarithms have powers of ten."""
    found = ticks(scale.low, scale.high, count)
    for value, label in zip(found, tick_texts(found), strict=True):
        place = scale.place(value)
        yield line(x, place, right, place, "grid")
        yield text(x - 5, place + 3.5, label, "tick", "end")


def x_axis(scale: Scale, y: float, top: float | None = None, count: int = 3) -> Iterator[str]:
    """Ticks below, with lines up to `top` if that is given."""
    found = ticks(scale.low, scale.high, count)
    for value, label in zip(found, tick_texts(found), strict=True):
        place = scale.place(value)
        if top is not None:
            yield line(place, y, place, top, "grid")
        yield text(place, y + 13, label, "tick", "middle")
