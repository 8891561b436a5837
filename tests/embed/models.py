"""The models of these tests, by name, each with its data; each is compiled once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import ulam

SCHOOLS: dict[str, Any] = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}

PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "schools": (
        """
        data { int J; vector[J] y; vector<lower=0>[J] sigma; }
        parameters { real mu; real<lower=0> tau; vector[J] z; }
        transformed parameters { vector[J] theta = mu + tau * z; }
        model { mu ~ normal(0, 5); tau ~ normal(0, 5); z ~ std_normal(); y ~ normal(theta, sigma); }
        """,
        SCHOOLS,
    ),
    "logistic": (
        """
        data { int N; matrix[N, 3] x; array[N] int<lower=0, upper=1> y; }
        parameters { real a; vector[3] b; }
        model { a ~ normal(0, 2); b ~ normal(0, 2); y ~ bernoulli_logit_glm(x, a, b); }
        """,
        {"N": 40, "x": np.sin(np.arange(120.0)).reshape(40, 3), "y": [k % 3 == 0 for k in range(40)]},
    ),
    "refusing": (
        """
        data { int N; array[3] int k; }
        parameters { real a; real<lower=0> s; }
        model {
          if (a > 1.5) reject("a is ", a);
          if (a < -10) target += k[N + 1];
          a ~ normal(0, s); s ~ normal(1, 1);
        }
        """,
        {"N": 3, "k": [1, 2, 3]},
    ),
    "subnormal": ("parameters { vector[2] x; } model { target += (x[1] * 1e-300 * x[2] * 1e-15) * 1e300 * 1e15; }", {}),
    "constant": ("parameters { vector[0] x; } model { target += 2.5; }", {}),
}


@cache
def model(name: str, level: int = 3) -> ulam.StanModel:
    program, data = PROGRAMS[name]
    return ulam.StanModel(program, data, opt_level=level)


def points(name: str, count: int) -> np.ndarray:
    """Unconstrained points, a third of them large: those of `refusing` are partly refused."""
    size = model(name).param_unc_num()
    scale = np.where(np.arange(count) % 3, 1.0, 3.0)[:, None]
    return np.random.default_rng(size).normal(size=(count, size)) * scale


def expected(name: str, x: Any) -> tuple[float, np.ndarray]:
    """What a function that knows of no rejections is to give."""
    try:
        return model(name).log_density_gradient(x)
    except ulam.Rejection:
        return -np.inf, np.zeros(np.size(x))


def same_bits(one: Any, other: Any) -> bool:
    """Equal numbers, signs of zeros too; NaN is NaN."""
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a), np.signbit(b))
