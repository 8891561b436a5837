"""Sums in elements of containers at levels 3 and 4 (`carry-elements`, `dead-stores`, `private-rows`), and loops that
leave the branches which ask whether they run (`loops-from-guards`, `memory-from-guards`): the values and derivatives of
level 0, errors too.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes

import ulam
from ulam import Rejection, StanModel

SUMS = """
data { int N; int K; matrix[N, K] X; vector[N] y; }
parameters { real a; vector[K] b; real<lower=0> s; }
transformed parameters {
  vector[N] mu;
  array[N, 2] real eta;
  for (n in 1:N) {
    mu[n] = a;
    for (k in 1:K) mu[n] = mu[n] + X[n, k] * b[k];
    for (j in 1:2) {
      eta[n, j] = mu[n] * j;
      for (k in 1:K) eta[n, j] += b[k] * eta[n, j];
    }
  }
}
model {
  vector[K] c = rep_vector(a, K);
  array[N] real t;
  for (n in 1:N) t[n] = 0;
  for (n in 1:N) for (k in 1:K) {
    t[n] += log1p_exp(X[n, k] + c[k]);
    if (k > 1) t[n] -= c[k - 1];
    if (n > 1) t[n] += 0.5 * t[n - 1];
  }
  for (n in 1:N) y[n] ~ student_t(4, mu[n], s);
  for (n in 1:N) if (y[n] > 0) target += -square(t[n]); else target += eta[n, 2];
}
"""

GUARDED = """
data { int N; vector[N] y; }
parameters { real a; vector[N] b; real s; real<lower=0> r; }
model {
  for (n in 1:N) y[n] ~ student_t(3, a + b[n], s);
  r ~ normal(0, 1);
}
"""

FILLED = """
data { int N; int K; int G; matrix[N, K] X; array[N] int g; vector[N] y; }
parameters { vector[K] b; matrix[G, K] B; real<lower=0> s; }
model {
  vector[N] mu;
  for (n in 1:N) mu[n] = X[n] * b + X[n] * B[g[n]]';
  y ~ student_t(4, mu, s);
  y ~ normal(mu, s);
}
"""


def _data(n: int, k: int) -> str:
    rng = np.random.default_rng(n + 7 * k)
    data: dict[str, Any] = {"N": n, "K": k, "X": rng.normal(size=(n, k)).tolist(), "y": rng.normal(size=n).tolist()}
    return json.dumps(data)


@pytest.mark.parametrize("level", [3, 4])
def test_sums_in_elements(level: int) -> None:
    """Elements that are read by later iterations as well, and containers without elements."""
    for n, k in ((9, 3), (1, 1), (40, 1), (3, 0), (0, 2)):
        model, plain = (StanModel(SUMS, _data(n, k), opt_level=of) for of in (level, 0))
        theta = 0.3 * np.cos(np.arange(1.0, 1 + plain.param_unc_num()))
        value, gradient = model.log_density_gradient(theta)
        expected, slopes = plain.log_density_gradient(theta)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-11, atol=1e-12)
        if level == 4:
            break


def test_guarded_loops() -> None:
    """Without an iteration nothing is looked at: no error, and no slope that is none where the scale is 0 or NaN."""
    model, plain = (StanModel(GUARDED, json.dumps({"N": 0, "y": []}), opt_level=of) for of in (3, 0))
    for scale in (0.0, -0.0, 1e-300, 1e300, -1.0, np.inf, -np.inf, np.nan, 2.0):
        theta = np.array([0.5, scale, 0.25])
        value, gradient = model.log_density_gradient(theta)
        expected, slopes = plain.log_density_gradient(theta)
        assert value == pytest.approx(expected, rel=1e-13)
        assert gradient.tolist() == [0.0, 0.0, pytest.approx(slopes[2], rel=1e-13)]
    model, plain = (StanModel(GUARDED, json.dumps({"N": 2, "y": [1.0, -0.5]}), opt_level=of) for of in (3, 0))
    for scale in (1e-100, 1e100, 2.0):
        theta = np.array([0.5, 0.1, -0.2, scale, 0.25])
        value, gradient = model.log_density_gradient(theta)
        expected, slopes = plain.log_density_gradient(theta)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-12, atol=0)
    for scale in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(Rejection, match="sigma is"):
            model.log_density(np.array([0.5, 0.1, -0.2, scale, 0.25]))


def test_guarded_memory() -> None:
    """A vector that rows fill, of no elements, too, where coefficients are not finite, and with a wrong index."""
    program = ulam.StanProgram(FILLED)
    for n, k in ((0, 2), (1, 1), (7, 0), (50, 3)):
        rng = np.random.default_rng(n + k)
        data: dict[str, Any] = {"N": n, "K": k, "G": 4, "X": rng.normal(size=(n, k)), "y": rng.normal(size=n)}
        data["g"] = rng.integers(1, 5, size=n)
        model, plain = (program(data, opt_level=of) for of in (3, 0))
        for at in (0, k, -1):
            assert_same_outcomes(plain, model, at=at)
    data["g"][3] = 5
    with pytest.raises(ulam.UlamError, match="index"):
        program(data).log_density(np.zeros(plain.param_unc_num()))
