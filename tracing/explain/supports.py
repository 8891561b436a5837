"""Where distributions have their mass: the support of each, as an interval that may depend on its arguments.

A row is the interval as messages show it, of numbers and names of the distribution's arguments as in library/*.stan.
`[` and `]` belong to it, `(` and `)` do not. What is not here is the whole line, or checked by the density itself.
Source: Stan Functions Reference, parts "Continuous distributions" and "Discrete distributions".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from ulam.tracing.explain.parts import short_text
from ulam.tracing.values import scalar_text

SUPPORTS: dict[str, str] = {
    # bounded
    "uniform": "[alpha, beta]",
    "beta": "[0, 1]",
    "beta_proportion": "(0, 1)",
    # positive
    "lognormal": "(0, inf)",
    "exponential": "[0, inf)",
    "gamma": "[0, inf)",
    "inv_gamma": "(0, inf)",
    "chi_square": "[0, inf)",
    "inv_chi_square": "(0, inf)",
    "scaled_inv_chi_square": "(0, inf)",
    "weibull": "[0, inf)",
    "frechet": "(0, inf)",
    "rayleigh": "(0, inf)",
    "loglogistic": "[0, inf)",
    # bounded below
    "pareto": "[y_min, inf)",
    "pareto_type_2": "[mu, inf)",
    "wiener": "(tau, inf)",
    # discrete
    "bernoulli": "[0, 1]",
    "bernoulli_logit": "[0, 1]",
    "binomial": "[0, N]",
    "binomial_logit": "[0, N]",
    "beta_binomial": "[0, N]",
    "discrete_range": "[low, high]",
    "poisson": "[0, inf)",
    "poisson_log": "[0, inf)",
    "neg_binomial": "[0, inf)",
    "neg_binomial_2": "[0, inf)",
    "neg_binomial_2_log": "[0, inf)",
    "beta_neg_binomial": "[0, inf)",
    "yule_simon": "[1, inf)",
}
"""Interval by distribution."""


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
    """The support for these arguments, scalars by name; None if it is not in the table, or an argument is missing."""
    row = SUPPORTS.get(distribution)
    if row is None:
        return None
    ends: list[float] = []
    for text in row[1:-1].split(", "):
        end = arguments.get(text, None) if text.isidentifier() and text != "inf" else _number(text)
        if end is None:
            return None
        ends.append(end)
    return Interval(ends[0], ends[1], row[0] == "[", row[-1] == "]")


def _number(text: str) -> float:
    return inf if text == "inf" else int(text)
