"""Several outcomes of each row, each with a scale of its own: `y[n] ~ normal(mu, sigma)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """
data {
  int<lower=0> N, K, D; vector[N] x; matrix[N, D] X; array[N] vector[D] z; array[N] vector[K] y; matrix[N, K] Y;
  matrix[K, N] T; array[K] vector[N] c;
}
parameters { vector[K] a; matrix[K, D] B; matrix[D, K] C; real b; vector<lower=0>[K] sigma; }
"""
ROWS = {
    "vectors": "for (n in 1 : N) y[n] ~ normal(a * x[n] + b, sigma);",
    "means in columns": "matrix[K, N] mu; for (n in 1 : N) mu[ , n] = a * x[n]; "
    "for (n in 1 : N) y[n] ~ normal(mu[ , n], sigma);",
    "means in rows": "matrix[N, K] mu; for (n in 1 : N) mu[n] = (a + B * z[n])'; "
    "for (n in 1 : N) Y[n] ~ normal(mu[n], sigma);",
    "means in vectors": "array[N] vector[K] mu; for (n in 1 : N) mu[n] = a + B * z[n]; "
    "for (n in 1 : N) y[n] ~ normal(mu[n], exp(sigma));",
    "elements": "matrix[K, N] mu; for (n in 1 : N) for (k in 1 : K) mu[k, n] = a[k] * x[n]; "
    "for (n in 1 : N) for (k in 1 : K) T[k, n] ~ normal(mu[k, n], sigma[k]);",
}

COLUMNS = {
    "vectors": "for (k in 1 : K) c[k] ~ normal(a[k] * x + b, sigma[k]);",
    "columns of a matrix": "for (k in 1 : K) Y[ , k] ~ normal(X * C[ , k], sigma[k]);",
    "rows of a matrix, one scale": "for (k in 1 : K) T[k] ~ normal(a[k] + x' * B[k, 1], b * b + 1);",
    "elements": "for (k in 1 : K) for (n in 1 : N) T[k, n] ~ normal(a[k] * x[n], exp(sigma[k]));",
    "a product of matrices": "matrix[N, K] eta = X * C; for (k in 1 : K) Y[ , k] ~ normal(eta[ , k], sigma[k]);",
    "elements of a product": "matrix[N, K] eta = X * C; for (k in 1 : K) for (n in 1 : N) "
    "Y[n, k] ~ normal(eta[n, k], sigma[k]);",
    "a product by rows": "matrix[N, K] eta = X * C; for (n in 1 : N) Y[n] ~ normal(eta[n], sigma);",
    "priors inside": "for (k in 1 : K) { a[k] ~ normal(0, 1); C[ , k] ~ normal(0, 2); "
    "c[k] ~ normal(a[k] + X * C[ , k], sigma[k]); }",
    "columns ahead, read by rows": "matrix[K, N] mu; for (n in 1 : N) mu[ , n] = a * x[n]; "
    "for (k in 1 : K) T[k] ~ normal(mu[k], sigma[k]);",
    "products ahead, read by rows": "matrix[K, N] mu; for (n in 1 : N) mu[ , n] = a + B * z[n]; "
    "for (k in 1 : K) c[k] ~ normal(mu[k], sigma[k]);",
    "rows ahead, read by columns": "matrix[N, K] mu; for (n in 1 : N) mu[n] = a' * x[n] + b; "
    "for (k in 1 : K) c[k] ~ normal(mu[ , k], sigma[k]);",
    "all elements of a product": "to_vector(Y) ~ normal(to_vector(X * C), b * b + 1);",
    "all elements of a sum": "to_vector(Y) ~ normal(to_vector(X * C + rep_matrix(a', N)), b * b + 1);",
    "a transposed product": "matrix[N, K] mu = X * B'; for (n in 1 : N) Y[n] ~ normal(mu[n], 2);",
    "all elements of means by columns": "matrix[K, N] mu; for (n in 1 : N) mu[ , n] = a + B * z[n]; "
    "to_vector(T) ~ normal(to_vector(mu), b * b + 1);",
    "vectors ahead": "array[K] vector[N] mu; for (k in 1 : K) mu[k] = a[k] * x; "
    "for (k in 1 : K) c[k] ~ normal(mu[k], sigma[k]);",
}


def data_of(n: int, k: int, d: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(n + k)
    y = rng.normal(size=(n, k))
    return {
        "N": n, "K": k, "D": d, "x": rng.normal(size=n), "X": rng.normal(size=(n, d)), "z": rng.normal(size=(n, d)),
        "y": y, "Y": y + 1, "T": y.T - 1, "c": y.T * 2,
    }  # fmt: skip


def models(statements: str, data: dict[str, Any]) -> tuple[ulam.StanModel, ulam.StanModel]:
    program = f"{HEAD} model {{ {statements} }}"
    return ulam.StanModel(program, data, opt_level=0), ulam.StanModel(program, data)


def taken(model: ulam.StanModel) -> list[str]:
    """The layouts that a model has."""
    return [choice.layout for choice in model.layout_choices() if choice.taken]


@pytest.mark.parametrize("statements", [*ROWS.values(), *COLUMNS.values()], ids=[*ROWS, *(f"by {n}" for n in COLUMNS)])
def test_densities_are_those_of_level_0(statements: str) -> None:
    """Any number of rows and of outcomes; coefficients and scales that are not finite, huge, or 0."""
    for n, k in ((0, 2), (40, 0), (1, 1), (3, 2), (80, 4)):
        data = data_of(n, k)
        expected, found = models(statements, data)
        if k > 0:
            assert taken(found) == (["reduced rows"] if n == 80 else [])
        size = expected.param_unc_num()
        for at in {0, max(0, k - 1), size - 1}:
            assert_same_outcomes(expected, found, at=at)
    assert_same_products(expected, found, np.random.default_rng(2))


@pytest.mark.parametrize(
    "statements",
    [
        "for (n in 1 : N) y[n] ~ normal(a * x[n], sigma - 1);",
        "for (k in 1 : K) c[k] ~ normal(a[k] * x, sigma[k] - 1);",
    ],
)
def test_scales_that_are_not_positive_are_told_as_before(statements: str) -> None:
    """Of one outcome alone: rows are then not reduced, and the error is that of the program."""
    expected, found = models(statements, data_of(60, 3))
    assert taken(found) == ["reduced rows"]
    for scales, is_rejected in (((2.0, 3.0, 1.5), False), ((2.0, 0.5, 1.5), True), ((2.0, 3.0, 1.0), True)):
        point = np.zeros(expected.param_unc_num())
        point[-3:] = np.log(scales)
        one, other = outcome(expected, point), outcome(found, point)
        assert isinstance(one, str) == is_rejected
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
            continue
        np.testing.assert_allclose(other[0], one[0], rtol=1e-12)
        np.testing.assert_allclose(other[1], one[1], rtol=1e-10, atol=1e-10)


def test_data_that_are_not_finite_travel() -> None:
    """NaN is the error that it was; infinite numbers leave rows as they are."""
    for value in (np.nan, np.inf, 1e200):
        data = data_of(80, 3)
        data["c"][1, 4] = value
        expected, found = models(COLUMNS["vectors"], data)
        assert taken(found) == []
        assert_same_outcomes(expected, found, at=0)


KEPT = {
    "as many rows as outcomes": ("for (k in 1 : K) c[k] ~ normal(a[k] * x, sigma[k]);", 12, 6),
    "a scale of each row": ("for (k in 1 : K) c[k] ~ normal(a[k] * x, exp(b * x));", 80, 3),
    "the outcome before": ("for (k in 2 : K) { vector[N] r = c[k] - a[k]; for (n in 1 : N) r[n] *= exp(x[n] * b); "
                           "target += -dot_self(r); }", 80, 3),
    "other rows of each outcome": ("for (k in 1 : K) for (n in k : N) T[k, n] ~ normal(a[k] * x[n], sigma[k]);", 30, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_has_no_reduced_rows_is_as_before(name: str) -> None:
    statements, n, k = KEPT[name]
    expected, found = models(statements, data_of(n, k))
    assert taken(found) == []
    assert_same_outcomes(expected, found, at=0)
