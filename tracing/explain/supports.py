"""The supports of distributions, with numbers: intervals that may depend on a distribution's arguments.

What the library's densities say of their variates (`library/supports.py`) is their support. What they do not is
the whole line, or checked by the density itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ulam.library.functions import DENSITIES, function
from ulam.tracing.explain.parts import short_text
from ulam.tracing.tape.values import scalar_text


@dataclass(frozen=True)
class Interval:
    """A support with its numbers."""

    lower: float
    upper: float
    has_lower: bool
    has_upper: bool

    def __contains__(self, value: float) -> bool:
        above = self.lower < value or (self.has_lower and value == self.lower)
        below = value < self.upper or (self.has_upper and value == self.upper)
        return above and below

    def outside(self, name: str, value: float) -> str:
        """`y = 5.0 outside [-1.0, 1.0]`, with as many digits as it takes to see it."""
        shown = [short_text(number) for number in (value, self.lower, self.upper)]
        rounded = Interval(float(shown[1]), float(shown[2]), self.has_lower, self.has_upper)
        if float(shown[0]) in rounded:
            shown = [scalar_text(number) for number in (value, self.lower, self.upper)]
        opening, closing = "[" if self.has_lower else "(", "]" if self.has_upper else ")"
        return f"{name} = {shown[0]} outside {opening}{shown[1]}, {shown[2]}{closing}"


def support(distribution: str, arguments: Mapping[str, Any]) -> Interval | None:
    """The support for these arguments, scalars by name; None if the density's definition tells none, or an argument is
    missing."""
    known = next((found for kind in DENSITIES if (found := function(kind.of(distribution)).support) is not None), None)
    if known is None:
        return None
    lower, upper = (arguments.get(bound) if isinstance(bound, str) else bound for bound in (known.lower, known.upper))
    return None if lower is None or upper is None else Interval(lower, upper, known.has_lower, known.has_upper)
