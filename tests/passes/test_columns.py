"""Products of a matrix and a vector that go into densities: several columns at a time at levels 3 and 4, any number."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.columns_together import TOGETHER
from ulam.passes.to_loops.columns import IN_A_ROW

PROGRAM = """data { int N; int K; matrix[N, K] X; matrix[N, 3] Z; array[N] int<lower=0, upper=1> y; vector[N] w; }
parameters { real a; vector[K] b; vector[3] c; real<lower=0> s; }
model {
  y ~ bernoulli_logit(a + X * b);
  w ~ normal(X * b + Z * c, s);
  y ~ poisson_log_glm(Z, a, c);
}"""


def models(N: int, K: int, *levels: int, entry: float = 0.5) -> list[ulam.StanModel]:
    generator = np.random.default_rng(K)
    X, Z = generator.normal(size=(N, K)), generator.normal(size=(N, 3))
    if N and K:
        X[N - 1, K - 1] = entry
    data = {"N": N, "K": K, "X": X.tolist(), "Z": Z.tolist(), "y": list(generator.integers(0, 2, N)), "w": [0.5] * N}
    return [ulam.StanModel(PROGRAM, data, opt_level=level) for level in levels]


def check(plain: ulam.StanModel, fast: ulam.StanModel) -> None:
    generator = np.random.default_rng(1)
    for _ in range(2):
        point = 0.3 * generator.normal(size=plain.param_unc_num())
        value, gradient = plain.log_density_gradient(point)
        found, found_gradient = fast.log_density_gradient(point)
        scale = 1 + float(np.abs(gradient).sum())
        np.testing.assert_allclose(found, value, rtol=1e-11)
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-10, atol=1e-11 * scale)


@pytest.mark.parametrize("N", [1, 300])
def test_any_number_of_columns(N: int) -> None:
    for K in range(2 * TOGETHER + 2):
        check(*models(N, K, 0, 3))


@pytest.mark.slow
@pytest.mark.parametrize("K", [0, 1, 5, IN_A_ROW, IN_A_ROW + 1, 4 * TOGETHER])
def test_numbers_that_are_known(K: int) -> None:
    check(*models(300, K, 0, 4))


@pytest.mark.parametrize("entry", [np.inf, -np.inf, np.nan, 1e308])
def test_entries_that_are_none(entry: float) -> None:
    """A row that is infinite or NaN is so in the same way, whatever the number of columns."""
    program = "data { int N; int K; matrix[N, K] X; vector[N] w; } parameters { vector[K] b; } model { %s }"
    for K in (1, 2, 3, 5):
        X = np.ones((2, K))
        X[1, K - 1] = entry
        data = {"N": 2, "K": K, "X": X.tolist(), "w": [1.0, 2.0]}
        for density in ("target += student_t_lpdf(X * b | 3, w, 1);",):
            found: list[float] = []
            for level in (0, 3):
                model = ulam.StanModel(program % density, data, opt_level=level)
                try:
                    found.append(float(model.log_density(np.full(K, 0.5))))
                except ulam.Rejection as error:
                    found.append(hash(str(error)))
            np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
