"""Random programs whose rows are affine in some columns, and may be equal in the others.

    program, data = affine_program(seed), affine_data(seed)

What a row adds are products of data and of functions of a predictor that few rows have apart, logarithms times counts,
densities of the exponential family, choices by data, weights; and what is not affine, beside it. Data have no, one or
many rows, of few or many numbers, of both signs, with zeros, and now and then one that is not finite.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

_HEAD = """data {
  int N; array[N] int<lower=1, upper=4> g; vector[N] x; vector[N] t; vector[N] w; vector[N] z;
  array[N] int<lower=0> y; array[N] int<lower=0> m;
}
parameters { real a; real b; vector[4] u; real<lower=0> k; }
model {
  k ~ exponential(1);
  for (n in 1:N) {
    {body}
  }
}
"""
_PREDICTORS = ("(a + b * x[n])", "u[g[n]]", "(a + u[g[n]])", "(b * x[n] + u[g[n]])", "(k * x[n])", "a")
_FUNCTIONS = (
    "{eta}", "exp(0.5 * {eta})", "log1p_exp({eta})", "inv_logit({eta})", "square({eta})", "exp(-0.3 * {eta})",
    "log(0.1 + k + square({eta}))",
)  # fmt: skip
_DATA = (
    "t[n]", "w[n]", "y[n]", "m[n]", "(m[n] - y[n])", "1", "2.5", "(t[n] - w[n])", "(y[n] - 3)", "z[n]", "-t[n]",
    "t[n] * w[n]", "(t[n] / 3)",
)  # fmt: skip
_CHOICES = ("y[n] == 0", "m[n] > 3", "y[n] < m[n]", "t[n] > 0", "w[n] == 0", "y[n] == m[n]", "x[n] > 0", "a > 0")
_DENSITIES = (
    "poisson_log_lpmf(y[n] | 0.3 * {f})", "poisson_lpmf(y[n] | exp(0.3 * {f}))",
    "exponential_lpdf(abs(t[n]) | exp(0.3 * {f}))", "binomial_logit_lpmf(min(y[n], m[n]) | m[n], {f})",
    "binomial_lpmf(min(y[n], m[n]) | m[n], inv_logit({f}))", "gamma_lpdf(0.1 + abs(t[n]) | 0.5 + k, exp(0.2 * {f}))",
)  # fmt: skip


class _Program:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def function(self) -> str:
        return self.rng.choice(_FUNCTIONS).replace("{eta}", self.rng.choice(_PREDICTORS))

    def term(self, depth: int = 0) -> str:
        """What is added to the target."""
        kind = self.rng.randrange(9 if depth < 2 else 5)
        if kind < 4:
            return f"{self.rng.choice(_DATA)} * {self.function()}"
        if kind == 4:
            return f"lmultiply(y[n], exp({self.function()}))"
        if kind == 5:
            return f"({self.rng.choice(_CHOICES)} ? {self.term(depth + 1)} : {self.term(depth + 1)})"
        if kind == 6:
            return self.rng.choice(_DENSITIES).replace("{f}", self.function())
        if kind == 7:
            return f"w[n] * ({self.term(depth + 1)})"
        return f"{self.term(depth + 1)} + {self.term(depth + 1)}"

    def statement(self) -> str:
        if self.rng.random() < 0.25:
            condition = self.rng.choice(_CHOICES)
            return f"if ({condition}) target += {self.term()}; else target += {self.term()};"
        return f"target += {self.term()};"


def affine_program(seed: int) -> str:
    """A program; the same for the same seed."""
    program = _Program(seed)
    statements = [program.statement() for _ in range(program.rng.randrange(1, 4))]
    return _HEAD.replace("{body}", " ".join(statements))


def affine_data(seed: int) -> dict[str, Any]:
    """Data for any of the programs."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([0, 1, 40, 300, 1500]))
    m = rng.integers(0, 6 if seed % 3 else 90, n)
    t = rng.normal(size=n) if seed % 2 else np.round(rng.exponential(1, n), 1)
    if n and seed % 11 == 0:
        t[0] = np.nan
    if n and seed % 13 == 0:
        t[n // 2] = np.inf
    return {
        "N": n, "g": rng.integers(1, 5, n), "x": rng.integers(0, 3, n) / 2, "t": t, "m": m,
        "w": rng.choice([-1.0, 0.0, 1.0, 0.5], n), "z": rng.integers(0, 2, n) * 1.0,
        "y": np.minimum(rng.poisson(2, n), m),
    }  # fmt: skip
