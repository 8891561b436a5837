"""Distribution functions of univariate distributions in extended precision: more rows of scalar_functions.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
from mpmath import mpf  # pyright: ignore[reportMissingImports]
from mpmath.calculus.quadrature import GaussLegendre  # pyright: ignore[reportMissingImports]
from scalar_functions import ROWS, add, always, beta_tails, gamma_tails, log_of, normal_tail, small

__all__ = ["ROWS"]


def add_distribution(
    name: str,
    kinds: str,
    tails: Callable[..., tuple[Any, Any]],
    inside: Callable[..., bool] = always,
    suffixes: str = "cdf lcdf lccdf",
    slopes: Callable[..., Sequence[Any]] | None = None,
    **more: Any,
) -> None:
    """The distribution functions, from Pr(Y <= y) and Pr(Y > y); `slopes` are the partials of the first."""
    parts: dict[str, Callable[..., Any]] = {
        "cdf": lambda *x: tails(*x)[0],
        "lcdf": lambda *x: log_of(*tails(*x)),
        "lccdf": lambda *x: log_of(*reversed(tails(*x))),
    }
    for suffix in suffixes.split():
        known = slopes and {"slopes": partial(with_slopes, suffix, parts[suffix], tails, slopes)}
        add(f"{name}_{suffix}", kinds, parts[suffix], inside, **(known or {}), **more)


def with_slopes(
    suffix: str,
    value: Callable[..., Any],
    tails: Callable[..., tuple[Any, Any]],
    slopes: Callable[..., Sequence[Any]],
    *x: Any,
) -> list[Any]:
    """The value of a distribution function and its partials, from those of Pr(Y <= y)."""
    lower, upper = tails(*x)
    factor = {"cdf": 1, "lcdf": 1 / lower, "lccdf": -1 / upper}[suffix]
    return [value(*x), *(factor * slope for slope in slopes(*x))]


add_distribution(
    "std_normal",
    "real",
    lambda y: (normal_tail(y), normal_tail(-y)),
    small(37),
    "cdf",
    expression="std_normal_cdf({0} | )",
    digits=700,
)
add_distribution(
    "normal",
    "moderate location scale",
    lambda y, m, s: (normal_tail((y - m) / s), normal_tail((m - y) / s)),
    lambda y, m, s: abs(y - m) / s < 38,
    digits=700,
)
add_distribution(
    "lognormal",
    "positive location scale",
    lambda y, m, s: (normal_tail((mp.log(y) - m) / s), normal_tail((m - mp.log(y)) / s)),
    lambda y, m, s: abs(float(mp.log(y)) - m) / s < 38,
    digits=700,
)
add_distribution(
    "cauchy",
    "real location scale",
    lambda y, m, s: (mp.atan2(1, (m - y) / s) / mp.pi, mp.atan2(1, (y - m) / s) / mp.pi),
    lambda y, m, s: abs(y) < 1e12,
    digits=200,
)
add_distribution(
    "double_exponential",
    "moderate location scale",
    lambda y, m, s: (
        (mp.exp((y - m) / s) / 2, 1 - mp.exp((y - m) / s) / 2)
        if y < m
        else (1 - mp.exp((m - y) / s) / 2, mp.exp((m - y) / s) / 2)
    ),
    lambda y, m, s: y != m and abs(y - m) / s < 600,
    digits=600,
)
add_distribution(
    "logistic",
    "moderate location scale",
    lambda y, m, s: (1 / (1 + mp.exp((m - y) / s)), 1 / (1 + mp.exp((y - m) / s))),
    lambda y, m, s: abs(y - m) / s < 600,
    digits=600,
)
add_distribution(
    "gumbel",
    "moderate location scale",
    lambda y, m, s: (mp.exp(-mp.exp((m - y) / s)), -mp.expm1(-mp.exp((m - y) / s))),
    lambda y, m, s: -6 < (y - m) / s < 600,
    digits=800,
)
add_distribution(
    "exponential",
    "positive scale",
    lambda y, b: (-mp.expm1(-b * y), mp.exp(-b * y)),
    lambda y, b: b * y < 600 and y > 1e-200,
    digits=600,
)
add_distribution(
    "weibull",
    "positive shape scale",
    lambda y, a, s: (-mp.expm1(-((y / s) ** a)), mp.exp(-((y / s) ** a))),
    lambda y, a, s: a < 100 and abs(a * float(mp.log(y / s))) < 6,
    digits=800,
)
add_distribution(
    "frechet",
    "positive shape scale",
    lambda y, a, s: (mp.exp(-((s / y) ** a)), -mp.expm1(-((s / y) ** a))),
    lambda y, a, s: a < 100 and abs(a * float(mp.log(y / s))) < 6,
    digits=800,
)
add_distribution(
    "rayleigh",
    "positive scale",
    lambda y, s: (-mp.expm1(-((y / s) ** 2) / 2), mp.exp(-((y / s) ** 2) / 2)),
    lambda y, s: 1e-100 < y / s < 30,
    digits=600,
)
add_distribution(
    "loglogistic",
    "positive scale shape",
    lambda y, a, b: (1 / (1 + (a / y) ** b), 0),
    lambda y, a, b: abs(b * float(mp.log(y / a))) < 600,
    "cdf",
    digits=600,
)
add_distribution(
    "pareto",
    "positive scale shape",
    lambda y, m, a: (1 - (m / y) ** a, (m / y) ** a),
    lambda y, m, a: y > m and float(mp.log(y / m)) * a < 600,
    digits=600,
    points=((1.0000001, 1.0, 2.0), (2.5 * (1 + 2.0**-52), 2.5, 1.0)),
)
add_distribution(
    "pareto_type_2",
    "positive location scale shape",
    lambda y, m, s, a: (1 - (1 + (y - m) / s) ** -a, (1 + (y - m) / s) ** -a),
    lambda y, m, s, a: y > m and float(mp.log(1 + (y - m) / s)) * a < 600,
    digits=600,
)
add_distribution(
    "uniform",
    "moderate location scale",
    lambda y, a, b: ((y - a) / (b - a), (b - y) / (b - a)),
    lambda y, a, b: a < y < b,
)
add_distribution(
    "exp_mod_normal",
    "moderate location scale scale",
    lambda y, m, s, r: (
        normal_tail((y - m) / s) - mp.exp(r * (m + r * s * s / 2 - y)) * normal_tail((y - m) / s - r * s),
        normal_tail((m - y) / s) + mp.exp(r * (m + r * s * s / 2 - y)) * normal_tail((y - m) / s - r * s),
    ),
    lambda y, m, s, r: abs(y - m) / s < 30 and abs(r * (y - m)) < 300 and r * s < 30,
    points=(
        (0.3, 0.1, 1.0, 1e-5),
        (1.0, 0.0, 1.0, 1e3),
        (-5.0, 0.0, 1.0, 0.1),
        (1.0, 0.0, 0.01, 30.0),
        (1.0, 0.0, 1.0, 100.0),
    ),
    digits=1500,
)
add_distribution(
    "skew_double_exponential",
    "moderate location scale unit",
    lambda y, m, s, t: (
        (t * mp.exp(-2 * (1 - t) * (m - y) / s), 1 - t * mp.exp(-2 * (1 - t) * (m - y) / s))
        if y < m
        else (1 - (1 - t) * mp.exp(-2 * t * (y - m) / s), (1 - t) * mp.exp(-2 * t * (y - m) / s))
    ),
    lambda y, m, s, t: y != m and abs(y - m) / s < 250 and t > 1e-30,
    points=((1e-9, 0.0, 1.0, 1e-9), (0.5, 0.0, 1.0, 1e-12)),
    digits=800,
)


def student(t: Any, nu: Any) -> tuple[Any, Any]:
    tail = beta_tails(nu / 2, mpf(1) / 2, nu / (nu + t * t), t * t / (nu + t * t))[0] / 2
    return (tail, 1 - tail) if t < 0 else (1 - tail, tail)


add_distribution(
    "student_t",
    "moderate shape location scale",
    lambda y, n, m, s: student((y - m) / s, n),
    lambda y, n, m, s: 1e-3 < n and y != m and abs(y - m) / s > 1e-10,
    points=((1e-5, 3.0, 0.0, 1.0), (-1e8, 2.5, 0.0, 1.0), (2.0, 1000.0, 0.0, 1.0), (1e-8, 500.0, 0.0, 1.0)),
    digits=100,
)
GAMMA_LIKE = lambda z, a: 1e-200 < z < 600 and a > 1e-5  # noqa: E731
add_distribution(
    "gamma",
    "positive shape scale",
    lambda y, a, b: gamma_tails(a, b * y),
    lambda y, a, b: GAMMA_LIKE(b * y, a),
    points=((1.0, 1.0, 1.0), (1e-9, 1e-4, 1.0), (0.5, 0.01, 2.0), (250.0, 250.0, 1.0)),
)
add_distribution(
    "inv_gamma",
    "positive shape scale",
    lambda y, a, b: gamma_tails(a, b / y)[::-1],
    lambda y, a, b: GAMMA_LIKE(b / y, a),
)
add_distribution(
    "chi_square", "positive shape", lambda y, n: gamma_tails(n / 2, y / 2), lambda y, n: GAMMA_LIKE(y / 2, n / 2)
)
add_distribution(
    "inv_chi_square",
    "positive shape",
    lambda y, n: gamma_tails(n / 2, 1 / (2 * y))[::-1],
    lambda y, n: GAMMA_LIKE(1 / y / 2, n / 2),
)
add_distribution(
    "scaled_inv_chi_square",
    "positive shape scale",
    lambda y, n, s: gamma_tails(n / 2, n * s * s / (2 * y))[::-1],
    lambda y, n, s: GAMMA_LIKE(n * s * s / y / 2, n / 2),
)
add_distribution(
    "beta",
    "unit shape shape",
    lambda y, a, b: beta_tails(a, b, y, 1 - y),
    lambda y, a, b: a > 1e-5 and b > 1e-5 and y > 1e-100,
    points=((1e-12, 2.0, 3.0), (1e-20, 0.5, 0.5), (0.99999999, 3.0, 0.1)),
)
add_distribution(
    "beta_proportion",
    "unit unit shape",
    lambda y, m, k: beta_tails(m * k, k - m * k, y, 1 - y),
    lambda y, m, k: m * k > 1e-5 and k - m * k > 1e-5 and y > 1e-100,
    "lcdf lccdf",
)
add_distribution(
    "bernoulli", "count unit", lambda n, t: (1 - t, t) if n == 0 else (mpf(1), mpf(0)), lambda n, t: n == 0
)
add_distribution(
    "binomial",
    "count total unit",
    lambda n, N, t: beta_tails(mpf(N - n), mpf(n + 1), 1 - t, t),
    lambda n, N, t: n < N and t > 1e-100,
    points=((0, 60, 1e-20), (3, 10, 1e-12), (3, 10, 1 - 1e-12)),
)
add_distribution(
    "poisson", "count positive", lambda n, r: gamma_tails(mpf(n + 1), r)[::-1], lambda n, r: 1e-100 < r < 600
)
add_distribution(
    "neg_binomial",
    "count shape scale",
    lambda n, a, b: beta_tails(a, mpf(n + 1), b / (1 + b), 1 / (1 + b)),
    lambda n, a, b: a > 1e-5,
    points=((2, 3.0, 1e12), (2, 3.0, 1e-12), (0, 1e-3, 1e8)),
)
add_distribution(
    "neg_binomial_2",
    "count scale shape",
    lambda n, m, p: beta_tails(p, mpf(n + 1), p / (p + m), m / (p + m)),
    lambda n, m, p: p > 1e-5,
    points=((2, 1e-10, 3.0), (2, 1e10, 3.0), (0, 1e-3, 1e6)),
)


def beta_binomial_tails(n: int, N: int, a: Any, b: Any) -> tuple[Any, Any]:
    masses = [mp.binomial(N, k) * mp.beta(k + a, N - k + b) / mp.beta(a, b) for k in range(N + 1)]
    return mp.fsum(masses[: n + 1]), mp.fsum(masses[n + 1 :])


add_distribution("beta_binomial", "count total shape shape", beta_binomial_tails, lambda n, N, a, b: n < N <= 60)


@lru_cache
def nodes(precision: int) -> Any:
    """Of the rule of Gauss and Legendre with 192 points."""
    return GaussLegendre(mp.mp).get_nodes(-1, 1, degree=7, prec=precision)


def integrals(f: Callable[[Any], Sequence[Any]], places: Sequence[Any]) -> list[Any]:
    """Of functions without poles near by, panel by panel."""
    sums: list[Any] = []
    for low, high in pairwise(places):
        for node, weight in nodes(mp.mp.prec):
            parts = [weight * (high - low) / 2 * v for v in f((low + high + node * (high - low)) / 2)]
            sums = [s + p for s, p in zip(sums or [mpf(0)] * len(parts), parts, strict=True)]
    return sums


@lru_cache(8)
def skew_normal_tail(z: Any, a: Any) -> Any:
    """Pr(Z <= z) for z < 0, to full relative precision: of Owen's integral what is beyond a, or for a skew to the left
    the normal's two tails less the other."""
    if a < 0:
        return 2 * normal_tail(z) - skew_normal_tail(z, -a)
    precision: Any = mp.mp.prec
    h, width = -z, mp.sqrt(a * a + 2 * precision / (z * z)) - a
    places = [mpf(0), *(width * mpf(2) ** -k for k in range(14, -1, -1))]
    (integral,) = integrals(lambda d: [mp.exp(-h * h * d * (2 * a + d) / 2) / (1 + (a + d) ** 2)], places)
    return mp.exp(-h * h * (1 + a * a) / 2) * integral / mp.pi


def skew_normal_tails(y: Any, m: Any, s: Any, a: Any) -> tuple[Any, Any]:
    z = (y - m) / s
    if z < 0:
        lower = skew_normal_tail(z, a)
        return lower, 1 - lower
    upper = skew_normal_tail(-z, -a)
    return 1 - upper, upper


def skew_normal_slopes(y: Any, m: Any, s: Any, a: Any) -> tuple[Any, ...]:
    z = (y - m) / s
    density = mp.sqrt(2 / mp.pi) * mp.exp(-z * z / 2) * normal_tail(a * z) / s
    return density, -density, -z * density, -mp.exp(-z * z * (1 + a * a) / 2) / (mp.pi * (1 + a * a))


add_distribution(
    "skew_normal",
    "moderate location scale real",
    skew_normal_tails,
    lambda y, m, s, a: 0.01 < abs(y - m) / s < 40 and 1e-3 < abs(a) < 1e3,
    slopes=skew_normal_slopes,
)


@lru_cache(8)
def von_mises_moments(low: Any, high: Any, k: Any) -> Sequence[Any]:
    """The integrals of exp(k (cos t - 1)), and of it times 1 - cos t, to full relative precision."""
    width = mp.pi / mp.ceil(mp.pi * mp.sqrt(k + 1) / 3)
    nearest = mpf(0) if mp.ceil(low / (2 * mp.pi)) * 2 * mp.pi <= high else min(1 - mp.cos(low), 1 - mp.cos(high))
    limit = nearest + mp.mp.prec / k
    first, last = int(mp.floor(low / width)), int(mp.ceil(high / width))
    places = [low, *(j * width for j in range(first, last + 1) if low < j * width < high), high]
    sums = [mpf(0), mpf(0)]
    for panel in pairwise(places):
        if min(1 - mp.cos(x) for x in panel) < limit:
            found = integrals(lambda t: [e := mp.exp(-2 * k * mp.sin(t / 2) ** 2), 2 * mp.sin(t / 2) ** 2 * e], panel)
            sums = [s + f for s, f in zip(sums, found, strict=True)]
    return sums


HALF_TURN = mpf(3.141592653589793)


def von_mises_parts(y: Any, m: Any, k: Any) -> list[Sequence[Any]]:
    """Below y, above it, and both: moments."""
    ends = (-HALF_TURN - m, y - m, HALF_TURN - m)
    return [von_mises_moments(low, high, k) for low, high in (ends[:2], ends[1:], (-mp.pi, mp.pi))]


def von_mises_tails(y: Any, m: Any, k: Any) -> tuple[Any, Any]:
    lower, upper, both = von_mises_parts(y, m, k)
    return lower[0] / both[0], upper[0] / both[0]


def von_mises_slopes(y: Any, m: Any, k: Any) -> tuple[Any, ...]:
    lower, upper, both = von_mises_parts(y, m, k)
    here, border = (mp.exp(-2 * k * mp.sin(x / 2) ** 2) / both[0] for x in (y - m, HALF_TURN - m))
    part, sign = min((lower, 1), (upper, -1))
    return here, border - here, sign * (part[0] * both[1] / both[0] - part[1]) / both[0]


add_distribution(
    "von_mises",
    "moderate moderate shape",
    von_mises_tails,
    lambda y, m, k: abs(y) < 3.1 and abs(m) < 6 and k < 2000,
    slopes=von_mises_slopes,
)


def beta_neg_binomial_tails(n: int, r: Any, a: Any, b: Any) -> tuple[Any, Any]:
    g = mp.loggamma
    mass = total = mp.exp(g(a + b) - g(r + a + b) - g(a) + g(r + a))
    for k in range(n):
        mass *= (k + r) * (k + b) / ((k + 1) * (k + r + a + b))
        total += mass
    return total, 1 - total


add_distribution(
    "beta_neg_binomial", "count shape shape shape", beta_neg_binomial_tails, lambda n, r, a, b: a < 500, digits=400
)
add_distribution(
    "yule_simon", "count shape", lambda n, a: (1 - n * mp.beta(n, a + 1), n * mp.beta(n, a + 1)), lambda n, a: n > 0
)
