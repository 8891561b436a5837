"""Terms that counts alone decide are computed once for each count, whatever else the rows of a loop read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import outcome

import ulam

PROGRAM = """
functions {
  real counts(int y, real eta, real k) {
    return lgamma(y + k) - lgamma(k) + k * log(k) + y * eta - (y + k) * log(k + exp(eta));
  }
}
data {
  int N; int K; int J; matrix[N, K] X; array[N] int<lower=0> y; array[N] int<lower=1, upper=J> g; vector[N] x;
}
parameters { real a; vector[K] b; vector<lower=0>[J] phi; real<lower=0> k; }
model {
  y ~ neg_binomial_2_log_glm(X, a, b, k);
  for (n in 1:N) target += neg_binomial_2_lpmf(y[n] | exp(a * x[n]), phi[g[n]]);
  for (n in 1:N) target += counts(y[n], a + x[n], k);
}
"""


@pytest.fixture(scope="module")
def program() -> ulam.StanProgram:
    return ulam.StanProgram(PROGRAM)


def data_of(n: int, most: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {
        "N": n, "K": 3, "J": 2, "X": rng.normal(size=(n, 3)), "y": rng.integers(0, most, n),
        "g": rng.integers(1, 3, n), "x": rng.normal(size=n),
    }  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 300, 513])
def test_density_and_gradient_are_those_of_the_whole_loop(program: ulam.StanProgram, n: int) -> None:
    model, plain = program(data_of(n)), ulam.StanModel(PROGRAM, data=data_of(n), opt_level=0)
    for seed in range(3):
        point = np.random.default_rng(seed).normal(0, 0.7, model.param_unc_num())
        (value, gradient), (other, slopes) = model.log_density_gradient(point), plain.log_density_gradient(point)
        assert value == pytest.approx(other, rel=1e-12, abs=1e-10 * n)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-10 * max(n, 1))
    if n >= 300:
        taken = [c.figures["different"] for c in model.layout_choices() if c.layout == "unique rows" and c.taken]
        assert sorted(taken) == [5, 5, 10]


def test_counts_that_differ(program: ulam.StanProgram) -> None:
    data = data_of(200, 10**6)
    model, plain = program(data), program(data, layouts=False)
    assert not any(choice.taken for choice in model.layout_choices() if choice.layout == "unique rows")
    point = np.full(model.param_unc_num(), 0.3)
    (value, gradient), (other, slopes) = model.log_density_gradient(point), plain.log_density_gradient(point)
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 6.0, -300.0])
def test_what_is_not_finite_travels_as_before(program: ulam.StanProgram, value: float) -> None:
    model, plain = program(data_of(300)), program(data_of(300), layouts=False)
    for k in range(model.param_unc_num()):
        point = np.full(model.param_unc_num(), 0.1)
        point[k] = value
        one, two = outcome(model, point), outcome(plain, point)
        if isinstance(one, str) or isinstance(two, str):
            assert one == two
        else:
            assert one[0] == pytest.approx(two[0], rel=1e-11, nan_ok=True)
            np.testing.assert_allclose(one[1], two[1], rtol=1e-8)
