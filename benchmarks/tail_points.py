"""Points far out in the tails of univariate distributions, with large and tiny shapes: what tails.py compares at.

A recipe draws the arguments of a distribution: the outcome first, by its distance from the middle in units of the
scale, up to 100, or for positive outcomes by the exponent of ten.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

Point = tuple[float, ...]


def power(g: Random, low: float, high: float) -> float:
    """A number whose decimal exponent is uniform."""
    return 10 ** g.uniform(low, high)


def distance(g: Random) -> float:
    """In units of the scale, on either side: half of them beyond 10."""
    return g.choice([-1, 1]) * g.choice([power(g, -2, 1), g.uniform(10, 100)])


def location(g: Random) -> float:
    return g.choice([-1, 1]) * power(g, -1, 2)


def scale(g: Random) -> float:
    return power(g, -2, 2)


def shape(g: Random) -> float:
    return g.choice([power(g, -1, 1), power(g, -4, 4)])


def unit(g: Random) -> float:
    return g.choice([g.uniform(0, 1), power(g, -12, -1), 1 - power(g, -12, -1)])


def count(g: Random) -> int:
    return g.choice([g.randrange(0, 20), g.randrange(0, 500)])


def _of_location(g: Random, *more: float) -> Point:
    m, s = location(g), scale(g)
    return (m + s * distance(g), m, s, *more)


def _of_student(g: Random) -> Point:
    y, m, s = _of_location(g)
    return (y, shape(g), m, s)


def _lognormal(g: Random) -> Point:
    m, s = location(g) / 10, power(g, -1, 0.5)
    return (math.exp(max(-600.0, min(600.0, m + s * distance(g)))), m, s)


def _of_gamma(g: Random, factor: Callable[[float, float, float], float], *, half: bool = False) -> Point:
    """Standard outcomes from far below the shape to far above; the arguments behind it: shape, rate or scale."""
    a, b = shape(g), scale(g)
    x = g.choice([a * power(g, -6, 0), a + g.uniform(-10, 40) * math.sqrt(a), a + g.uniform(0, 600)])
    x = abs(x) or 1.0
    return (factor(x, a, b), 2 * a if half else a, b)


def _weibull(g: Random, sign: int) -> Point:
    a, s = power(g, -1, 1.5), scale(g)
    exponent = g.choice([power(g, -12, 0), g.uniform(1, 800)])
    return (s * exponent ** (sign / a), a, s)


def _pareto(g: Random) -> Point:
    m, a = scale(g), shape(g)
    return (m * (1 + power(g, -9, 6)), m, a)


def _pareto_2(g: Random) -> Point:
    m, s, a = abs(location(g)), scale(g), shape(g)
    return (m + s * power(g, -9, 6), m, s, a)


def _beta(g: Random) -> Point:
    return (unit(g), shape(g), shape(g))


def _uniform(g: Random) -> Point:
    m, s = location(g), scale(g)
    return (m + s * unit(g), m, m + s)


def _binomial(g: Random) -> Point:
    n = g.choice([g.randrange(1, 20), g.randrange(1, 700)])
    return (g.randrange(0, n), n, unit(g))


def _wiener(g: Random) -> Point:
    """Times from early ones, which few of the walks have, to late ones; starts next to a bound, too."""
    a, tau = power(g, -1, 1), power(g, -2, 0)
    b = g.choice([g.uniform(0, 1), power(g, -6, -1), 1 - power(g, -6, -1)])
    return (tau + a * a * power(g, -3, 1), a, tau, b, g.choice([-1, 1]) * power(g, -2, 1.3) / a)


def _beta_binomial(g: Random) -> Point:
    n = g.randrange(2, 60)
    return (g.randrange(0, n), n, shape(g), shape(g))


RECIPES: dict[str, Callable[[Random], Any]] = {
    **dict.fromkeys(("normal", "cauchy", "double_exponential", "logistic", "gumbel"), _of_location),
    "std_normal": lambda g: (distance(g),),
    "student_t": _of_student,
    "skew_normal": lambda g: _of_location(g, g.choice([-1, 1]) * power(g, -2, 2)),
    "exp_mod_normal": lambda g: _of_location(g, power(g, -2, 1)),
    "skew_double_exponential": lambda g: _of_location(g, unit(g)),
    "von_mises": lambda g: (g.uniform(-3.1, 3.1), g.uniform(-3.1, 3.1), power(g, -2, 3)),
    "lognormal": _lognormal,
    "exponential": lambda g: (power(g, -9, 2.9) / (b := scale(g)), b),
    "gamma": lambda g: _of_gamma(g, lambda x, a, b: x / b),
    "inv_gamma": lambda g: _of_gamma(g, lambda x, a, b: b / x),
    "chi_square": lambda g: _of_gamma(g, lambda x, a, b: 2 * x, half=True)[:2],
    "inv_chi_square": lambda g: _of_gamma(g, lambda x, a, b: 0.5 / x, half=True)[:2],
    "scaled_inv_chi_square": lambda g: _of_gamma(g, lambda x, a, b: a * b * b / x, half=True),
    "weibull": lambda g: _weibull(g, 1),
    "frechet": lambda g: _weibull(g, -1),
    "rayleigh": lambda g: ((s := scale(g)) * g.choice([power(g, -6, 0), g.uniform(1, 40)]), s),
    "loglogistic": lambda g: ((s := scale(g)) * power(g, -6, 6), s, power(g, -1, 1.5)),
    "pareto": _pareto,
    "pareto_type_2": _pareto_2,
    "beta": _beta,
    "beta_proportion": lambda g: (unit(g), g.uniform(0.001, 0.999), power(g, -2, 4)),
    "uniform": _uniform,
    "bernoulli": lambda g: (0, unit(g)),
    "bernoulli_logit": lambda g: (g.randrange(2), g.choice([-1, 1]) * power(g, -2, 2.8)),
    "binomial": _binomial,
    "binomial_logit": lambda g: (*_binomial(g)[:2], g.choice([-1, 1]) * power(g, -2, 2)),
    "beta_binomial": _beta_binomial,
    "poisson": lambda g: (count(g), power(g, -6, 3)),
    "poisson_log": lambda g: (count(g), g.uniform(-40, 8)),
    "neg_binomial": lambda g: (count(g), shape(g), power(g, -4, 4)),
    "neg_binomial_2": lambda g: (count(g), power(g, -4, 4), shape(g)),
    "neg_binomial_2_log": lambda g: (count(g), g.uniform(-30, 30), shape(g)),
    "beta_neg_binomial": lambda g: (count(g), power(g, -2, 2), power(g, -1, 2), power(g, -2, 2)),
    "wiener": _wiener,
    "yule_simon": lambda g: (1 + count(g), shape(g)),
}
"""Draws the arguments, in the order of the function's, by the name of the distribution."""
