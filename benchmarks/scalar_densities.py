"""Densities and masses of univariate distributions in extended precision: more rows of scalar_functions.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
from mpmath import mpf  # pyright: ignore[reportMissingImports]
from scalar_distributions import ROWS
from scalar_functions import add, log_of, logit1p, normal_tail

__all__ = ["ROWS"]


def log_normal_density(z: Any) -> Any:
    return -z * z / 2 - mp.log(2 * mp.pi) / 2


LIMITED = lambda y, m, s: abs(y - m) / s < 1e6  # noqa: E731
lg = mp.loggamma
add("normal_lpdf", "moderate location scale", lambda y, m, s: log_normal_density((y - m) / s) - mp.log(s), LIMITED)
add(
    "cauchy_lpdf",
    "real location scale",
    lambda y, m, s: -mp.log1p(((y - m) / s) ** 2) - mp.log(s) - mp.log(mp.pi),
    LIMITED,
)
add(
    "student_t_lpdf",
    "moderate shape location scale",
    lambda y, n, m, s: (
        -(n + 1) / 2 * mp.log1p(((y - m) / s) ** 2 / n)
        - mp.log(s)
        + lg((n + 1) / 2)
        - lg(n / 2)
        - mp.log(n * mp.pi) / 2
    ),
    points=((1.0, 1e10, 0.0, 1.0), (1.0, 1e16, 0.0, 1.0)),
)
add(
    "double_exponential_lpdf",
    "moderate location scale",
    lambda y, m, s: -abs(y - m) / s - mp.log(2 * s),
    lambda y, m, s: y != m,
)
add(
    "logistic_lpdf",
    "moderate location scale",
    lambda y, m, s: -(y - m) / s - mp.log(s) - 2 * logit1p(-(y - m) / s),
    LIMITED,
    points=((-800.0, 0.0, 1.0), (800.0, 0.0, 1.0), (1e-9, 0.0, 1.0)),
    digits=800,
)
add(
    "gumbel_lpdf",
    "moderate location scale",
    lambda y, m, s: -(y - m) / s - mp.log(s) - mp.exp(-(y - m) / s),
    lambda y, m, s: -600 < (y - m) / s < 600,
    digits=400,
)
add(
    "skew_normal_lpdf",
    "moderate location scale moderate",
    lambda y, m, s, a: (
        log_normal_density((y - m) / s)
        - mp.log(s)
        + mp.log(2)
        + log_of(normal_tail(a * (y - m) / s), normal_tail(-a * (y - m) / s))
    ),
    lambda y, m, s, a: abs(a * (y - m) / s) < 1e3,
    digits=1000,
)
add(
    "exp_mod_normal_lpdf",
    "moderate location scale scale",
    lambda y, m, s, r: (
        mp.log(r / 2) + r * (m + r * s * s / 2 - y) + mp.log(mp.erfc((m + r * s * s - y) / (mp.sqrt(2) * s)))
    ),
    lambda y, m, s, r: abs(y - m) / s < 30 and r * s < 1e3,
    points=((0.0, 0.0, 1.0, 40.0), (0.0, 0.0, 1.0, 1e3), (0.0, 0.0, 100.0, 100.0)),
    digits=1000,
)
add(
    "skew_double_exponential_lpdf",
    "moderate location scale unit",
    lambda y, m, s, t: mp.log(2 * t * (1 - t) / s) - 2 * (1 - t if y < m else t) * abs(y - m) / s,
    lambda y, m, s, t: y != m,
)
add(
    "von_mises_lpdf",
    "moderate location positive",
    lambda y, m, k: k * mp.cos(y - m) - mp.log(2 * mp.pi * mp.besseli(0, k)),
    lambda y, m, k: 1e-20 < k < 1e6,
    points=((1.0, 1.0, 700.0), (1.0, 1.0, 49.0), (1.0, 0.9, 1e5), (3.0, 3.0, 1e4)),
)
add(
    "lognormal_lpdf", "positive location scale", lambda y, m, s: log_normal_density((mp.log(y) - m) / s) - mp.log(s * y)
)
add("exponential_lpdf", "positive scale", lambda y, b: mp.log(b) - b * y)
add("gamma_lpdf", "positive shape scale", lambda y, a, b: (a - 1) * mp.log(y) - b * y + a * mp.log(b) - lg(a))
add("inv_gamma_lpdf", "positive shape scale", lambda y, a, b: -(a + 1) * mp.log(y) - b / y + a * mp.log(b) - lg(a))
add("chi_square_lpdf", "positive shape", lambda y, n: (n / 2 - 1) * mp.log(y) - y / 2 - n / 2 * mp.log(2) - lg(n / 2))
add(
    "inv_chi_square_lpdf",
    "positive shape",
    lambda y, n: -(n / 2 + 1) * mp.log(y) - 1 / (2 * y) - n / 2 * mp.log(2) - lg(n / 2),
)
add(
    "scaled_inv_chi_square_lpdf",
    "positive shape scale",
    lambda y, n, s: -(n / 2 + 1) * mp.log(y) - n * s * s / (2 * y) + n * mp.log(s) + n / 2 * mp.log(n / 2) - lg(n / 2),
)
add(
    "weibull_lpdf",
    "positive shape scale",
    lambda y, a, s: mp.log(a) + (a - 1) * mp.log(y) - a * mp.log(s) - (y / s) ** a,
    lambda y, a, s: abs(a * float(mp.log(y / s))) < 300,
)
add(
    "frechet_lpdf",
    "positive shape scale",
    lambda y, a, s: mp.log(a) - (a + 1) * mp.log(y) + a * mp.log(s) - (s / y) ** a,
    lambda y, a, s: abs(a * float(mp.log(y / s))) < 300,
)
add(
    "rayleigh_lpdf", "positive scale", lambda y, s: mp.log(y) - (y / s) ** 2 / 2 - 2 * mp.log(s), lambda y, s: y < 1e100
)
add(
    "loglogistic_lpdf",
    "positive scale shape",
    lambda y, a, b: mp.log(b / a) + (b - 1) * mp.log(y / a) - 2 * logit1p(b * mp.log(y / a)),
    digits=800,
)
add(
    "pareto_lpdf",
    "positive scale shape",
    lambda y, m, a: mp.log(a) + a * mp.log(m) - (a + 1) * mp.log(y),
    lambda y, m, a: y > m,
)
add(
    "pareto_type_2_lpdf",
    "positive location scale shape",
    lambda y, m, s, a: mp.log(a / s) - (a + 1) * mp.log1p((y - m) / s),
    lambda y, m, s, a: y > m,
)
add(
    "beta_lpdf",
    "unit shape shape",
    lambda y, a, b: (a - 1) * mp.log(y) + (b - 1) * mp.log1p(-y) - lg(a) - lg(b) + lg(a + b),
    points=((0.3, 1e8, 1e8), (0.3, 1e-9, 1e-9), (0.5, 1e10, 1.0)),
    digits=400,
)
add(
    "beta_proportion_lpdf",
    "unit unit shape",
    lambda y, m, k: (m * k - 1) * mp.log(y) + ((1 - m) * k - 1) * mp.log1p(-y) - lg(m * k) - lg((1 - m) * k) + lg(k),
    lambda y, m, k: m > 1e-200,
    digits=400,
)
add("uniform_lpdf", "moderate location scale", lambda y, a, b: -mp.log(b - a), lambda y, a, b: a < y < b)
add("bernoulli_lpmf", "count unit", lambda n, t: mp.log(t) if n else mp.log1p(-t), lambda n, t: n < 2, digits=340)
add(
    "bernoulli_logit_lpmf",
    "count real",
    lambda n, x: -logit1p(-x if n else x),
    lambda n, x: n < 2 and abs(x) < 700,
    digits=400,
)
add(
    "binomial_lpmf",
    "count total unit",
    lambda n, N, t: n * mp.log(t) + (N - n) * mp.log1p(-t) + mp.log(mp.binomial(N, n)),
    lambda n, N, t: n <= N,
    digits=340,
)
add(
    "binomial_logit_lpmf",
    "count total real",
    lambda n, N, x: -n * logit1p(-x) - (N - n) * logit1p(x) + mp.log(mp.binomial(N, n)),
    lambda n, N, x: n <= N and abs(x) < 700,
    digits=400,
)
add(
    "beta_binomial_lpmf",
    "count total shape shape",
    lambda n, N, a, b: (
        mp.log(mp.binomial(N, n)) + lg(n + a) + lg(N - n + b) - lg(N + a + b) - lg(a) - lg(b) + lg(a + b)
    ),
    lambda n, N, a, b: n <= N,
    points=((3, 9, 1e9, 1e9), (3, 9, 1e12, 1.0)),
)
add("poisson_lpmf", "count positive", lambda n, r: n * mp.log(r) - r - lg(n + 1), digits=400)
add("poisson_log_lpmf", "count real", lambda n, x: n * x - mp.exp(x) - lg(n + 1), lambda n, x: x < 600, digits=400)
add(
    "neg_binomial_lpmf",
    "count shape scale",
    lambda n, a, b: lg(n + a) - lg(a) - lg(n + 1) - a * mp.log1p(1 / b) - n * mp.log1p(b),
    points=((3, 1e9, 1e9), (3, 9999.0, 1.0), (3, 10001.0, 1.0), (0, 1e-9, 1.0), (3, 1e8, 2e7)),
)
add(
    "neg_binomial_2_lpmf",
    "count scale shape",
    lambda n, m, p: lg(n + p) - lg(p) - lg(n + 1) + n * mp.log(m / (m + p)) - p * mp.log1p(m / p),
    points=((3, 2.0, 1e9), (3, 2.0, 9999.0), (3, 2.0, 10001.0), (3, 2.0, 1e16), (40, 39.0, 1e8)),
)
add(
    "neg_binomial_2_log_lpmf",
    "count location shape",
    lambda n, e, p: lg(n + p) - lg(p) - lg(n + 1) + n * (e - mp.log(p)) - (n + p) * logit1p(e - mp.log(p)),
    points=((3, 1.0, 1e9), (3, 1.0, 1e16), (3, 600.0, 1.0), (3, -600.0, 1.0)),
    digits=400,
)
add(
    "beta_neg_binomial_lpmf",
    "count shape shape shape",
    lambda n, r, a, b: (
        lg(n + r) + lg(a + b) - lg(n + r + a + b) - lg(r) - lg(a) + lg(r + a) + lg(n + b) - lg(b) - lg(n + 1)
    ),
    points=((3, 1e9, 2.0, 3.0), (3, 2.0, 1e9, 1e9), (3, 2.0, 3.0, 1e9)),
)
add(
    "yule_simon_lpmf",
    "count shape",
    lambda n, a: mp.log(a) + lg(a + 1) + lg(n) - lg(n + a + 1),
    lambda n, a: n > 0,
    points=((3, 1e9), (3, 1e-9)),
)


def wiener_series(x: Any, w: Any, term: Callable[[int], Any] = lambda k: k) -> Any:
    """The sum of k sin(k pi w) exp(-(k pi)^2 x / 2), of other factors than k, too: with digits for what cancels."""
    with mp.extradps(int(w * w / x) + 20):
        total, k = mpf(0), 1
        while (k * mp.pi) ** 2 * x < 5 * mp.mp.dps:
            total += term(k) * mp.sin(k * mp.pi * w) * mp.exp(-((k * mp.pi) ** 2) * x / 2)
            k += 1
        return total


def wiener_log_density(y: Any, a: Any, tau: Any, b: Any, d: Any) -> Any:
    t = y - tau
    return d * a * (1 - b) - d * d * t / 2 - 2 * mp.log(a) + mp.log(mp.pi * wiener_series(t / a**2, 1 - b))


def wiener_after(y: Any, a: Any, tau: Any, b: Any, d: Any) -> Any:
    """Of the upper bound after y (Blurton, Kesselmeier and Gondan, 2012)."""
    t, w = y - tau, 1 - b
    series = wiener_series(t / a**2, w, lambda k: k / ((d * a) ** 2 + (k * mp.pi) ** 2))
    return 2 * mp.pi * mp.exp(d * a * w - d * d * t / 2) * series


def wiener_until(y: Any, a: Any, tau: Any, b: Any, d: Any) -> Any:
    """Of the upper bound at all, less that after y."""
    with mp.extradps(int((1 - b) ** 2 * a**2 / (y - tau) + abs(d * a) + d * d * (y - tau)) + 20):
        return mp.expm1(-2 * d * a * b) / mp.expm1(-2 * d * a) - wiener_after(y, a, tau, b, d)


LATER = lambda y, a, tau, b, d: 1e-3 < (y - tau) / a**2 < 100 and abs(d * a) < 100  # noqa: E731
add("wiener_lpdf", "positive scale scale unit moderate", wiener_log_density, LATER)
for name, probability in (("wiener_lcdf_unnorm", wiener_until), ("wiener_lccdf_unnorm", wiener_after)):
    add(
        name,
        "positive scale scale unit moderate",
        lambda *x, probability=probability: mp.log(probability(*x)),
        LATER,
        expression=name + "({0}, {1}, {2}, {3}, {4})",
    )
