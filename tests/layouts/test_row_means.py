"""Rows that are equal but for columns in which all that they add is affine are put together, with their means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_calls import run

import ulam

N = 600
HEAD = """
data {
  int N; array[N] int<lower=1, upper=4> g; vector[N] x; vector[N] t; vector<lower=0>[N] w;
  array[N] int<lower=0> y; array[N] int<lower=0> m;
}
parameters { real a; real b; vector[4] u; real<lower=0> k; }
model {
  k ~ exponential(1);
  u ~ normal(0, 1);
"""
FORMS = {
    "poisson_log": "y ~ poisson_log(a + b * x);",
    "poisson": "for (n in 1:N) y[n] ~ poisson(k * exp(u[g[n]]));",
    "binomial_logit": "y ~ binomial_logit(m, a + b * x);",
    "binomial": "for (n in 1:N) y[n] ~ binomial(m[n], inv_logit(u[g[n]]));",
    "probit": "for (n in 1:N) y[n] ~ binomial(m[n], Phi(a + b * x[n]));",
    "trials_as_index": "for (n in 1:N) y[n] ~ binomial_logit(m[n], a + b * x[n] + 0.1 * u[1 + m[n] % 4]);",
    "exponential": "t ~ exponential(exp(a + u[g]));",
    "gamma": "t ~ gamma(k, k ./ exp(a + b * x));",
    "weighted": "for (n in 1:N) target += w[n] * exponential_lpdf(t[n] | exp(u[g[n]]));",
    "by_hand": "for (n in 1:N) target += t[n] * u[g[n]] - exp(u[g[n]]) + w[n] * x[n] * a;",
    "zero_by_sign": "for (n in 1:N) target += (t[n] > 0 ? -t[n] * exp(u[g[n]]) : log1m_exp(-exp(a)));",
    "hurdle": "for (n in 1:N) if (y[n] == 0) target += bernoulli_logit_lpmf(0 | a + b * x[n]); else target += "
    "bernoulli_logit_lpmf(1 | a + b * x[n]) + exponential_lpdf(t[n] | exp(u[g[n]]));",
}
NONE = {
    "weibull": "t ~ weibull(k, exp(a + u[g]));",
    "squares": "t ~ normal(a + u[g] .* exp(b * x), k);",
    "beta_binomial": "y ~ beta_binomial(m, k + t, exp(a));",
}


def data_of(seed: int = 1, n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    m = rng.integers(40, 300, n)
    return {
        "N": n, "g": rng.integers(1, 5, n), "x": rng.integers(0, 3, n) / 2, "t": rng.exponential(1, n) + 0.001, "m": m,
        "w": rng.random(n) + 0.5, "y": rng.binomial(m, 0.3) * (rng.random(n) > 0.1),
    }  # fmt: skip


def pair(form: str, data: dict[str, Any]) -> tuple[ulam.StanModel, ulam.StanModel]:
    text = HEAD + form + "}"
    return ulam.StanModel(text, data), ulam.StanModel(text, data, opt_level=0)


def different(model: ulam.StanModel) -> int:
    """How many rows are computed, at most; all if there is no such layout."""
    found = [choice.figures["different"] for choice in model.layout_choices() if choice.layout == "unique rows"]
    return max(found, default=N) or N


@pytest.mark.parametrize("form", FORMS)
def test_rows_have_the_mean_of_what_they_are_affine_in(form: str) -> None:
    model, plain = pair(FORMS[form], data_of())
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 3.0):
        point = rng.normal(0, scale, model.param_unc_num())
        (value, gradient), (expected, slopes) = (each.log_density_gradient(point) for each in (model, plain))
        assert value == pytest.approx(expected, rel=1e-12)
        assert gradient == pytest.approx(slopes, rel=1e-11, abs=1e-11 * np.abs(slopes).max())
    assert different(model) <= (600 if form == "trials_as_index" else 24)


@pytest.mark.parametrize("form", NONE)
def test_other_rows_stay_apart(form: str) -> None:
    model, _ = pair(NONE[form], data_of())
    assert different(model) == N


@pytest.mark.parametrize("form", ["poisson_log", "exponential", "gamma", "by_hand", "poisson", "probit"])
@pytest.mark.parametrize("at", [np.inf, -np.inf, np.nan, 800.0, -800.0])
def test_what_is_not_finite_travels_as_before(form: str, at: float) -> None:
    """Data of 0 and others are not put together: 0 times what is infinite is no number."""
    data = data_of()
    data["t"][::7] = 0 if form != "gamma" else data["t"][::7]
    model, plain = pair(FORMS[form], data)
    for position in range(model.param_unc_num()):
        point = np.full(model.param_unc_num(), 0.1)
        point[position] = at
        outcomes: list[Any] = []
        for each in (model, plain):
            try:
                value, gradient = each.log_density_gradient(point)
                outcomes.append((value, *gradient))
            except ulam.UlamError as error:
                outcomes.append(str(error))
        assert isinstance(outcomes[0], str) == isinstance(outcomes[1], str), position
        if isinstance(outcomes[0], str):
            assert outcomes[0] == outcomes[1]
        else:
            assert np.allclose(*outcomes, rtol=1e-10, equal_nan=True), position


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_data_that_have_no_mean_keep_rows_apart(number: float) -> None:
    data = data_of()
    data["t"][3] = number
    model, plain = pair(FORMS["by_hand"], data)
    point = np.full(model.param_unc_num(), 0.1)
    (value, gradient), (expected, slopes) = (each.log_density_gradient(point) for each in (model, plain))
    assert np.allclose([value, *gradient], [expected, *slopes], equal_nan=True)
    assert different(model) == N


def test_means_are_exact_to_a_unit() -> None:
    """Of numbers that cancel, in twice the digits; those of weight 0 alone are one of them."""
    x = np.array([1e16, 1.0, -1e16, 1.0, 5.0, 7.0])
    groups = np.array([0, 0, 0, 0, 1, 1], np.int32)
    sizes = {"n": 6, "row": 1, "by": 1, "g": 2}
    assert list(run("group_means", [x, np.ones(6), groups], sizes)[-1]) == [0.5, 6.0]
    assert list(run("group_means", [x, np.array([1.0, 2, 1, 4, 0, 0]), groups], sizes)[-1]) == [0.75, 7.0]
    assert list(run("group_means", [x, np.ones(1), groups], sizes | {"by": 0})[-1]) == [0.5, 6.0]


def test_rows_whose_numbers_have_other_signs_stay_apart() -> None:
    """Of two columns: as many kinds as there are of an index and two signs."""
    rng, data = np.random.default_rng(4), data_of()
    data["t"], data["w"] = (rng.choice([-1.0, 0.0, 1.0], N) * rng.random(N) for _ in range(2))
    text = HEAD.replace("<lower=0>[N] w", "[N] w") + "for (n in 1:N) target += (t[n] - w[n]) * exp(u[g[n]]);}"
    model = ulam.StanModel(text, data)
    assert different(model) == len(set(zip(data["g"], np.sign(data["t"]), np.sign(data["w"]), strict=True))) == 36
