"""Rows of which a branch of data decides what they add: squares of one arm, or of both, have reduced rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int<lower=0> N; int<lower=1> J; array[N] int<lower=0, upper=J> id; array[N] int<lower=0, upper=1> seen;
  vector[N] y; vector[N] x; array[N] int<lower=0> c; vector[N] w; array[J] int first, last;
}
parameters { vector[J] a; real b; real rho; real<lower=0> s; }
"""
FORMS = {
    "lags within groups": """a ~ normal(0, 1); for (n in 2 : N)
      if (id[n] > 0 && id[n] == id[n - 1]) y[n] ~ normal(a[id[n]] + rho * y[n - 1], s);""",
    "lags where there are any": "for (n in 1 : N) if (n > 1) y[n] ~ normal(b + rho * y[n - 1], s);",
    "observed rows": """a ~ normal(0, 1); for (n in 1 : N) { real mu = b * x[n] + rho;
      if (seen[n]) target += normal_lpdf(y[n] | mu, s); }""",
    "two branches": """for (n in 1 : N) { if (seen[n]) y[n] ~ normal(b * x[n] + rho, s);
      if (c[n] > 0) target += -square(y[n] - b * x[n] * c[n]); }""",
    "rows that are passed over": "for (n in 1 : N) { if (!seen[n]) continue; y[n] ~ normal(rho + b * x[n], s); }",
    "nests": """a ~ normal(0, 1); for (j in 1 : J) { for (n in first[j] : last[j]) {
      if (seen[n]) y[n] ~ normal(a[j] + b * x[n], s); } }""",
    "logarithms": "for (n in 1 : N) if (seen[n]) w[n] ~ lognormal(rho + b * x[n], s);",
    "censored rows": """a ~ normal(0, 1); for (n in 1 : N) { real mu = rho + b * x[n];
      if (seen[n]) y[n] ~ normal(mu, s); else target += normal_lccdf(y[n] | mu, s); }""",
    "censored rows of a vector": """vector[N] mu = rho + b * x; for (n in 1 : N) {
      if (seen[n]) y[n] ~ normal(mu[n], s); else target += normal_lcdf(y[n] | mu[n], s); }""",
    "censored rows of a design": """vector[N] mu = append_col(x, w) * [rho, b]'; for (n in 1 : N) {
      if (seen[n]) target += normal_lpdf(y[n] | mu[n], s); else target += normal_lccdf(y[n] | mu[n], s); }""",
    "two loops over a vector": """vector[N] mu = rho + b * x; for (n in 1 : N) if (seen[n]) y[n] ~ normal(mu[n], s);
      for (n in 1 : N) if (!seen[n]) target += normal_lccdf(y[n] | mu[n], s);""",
    "groups": """a ~ normal(0, 1); for (n in 1 : N) if (id[n] > 0) {
      y[n] ~ normal(a[id[n]] + b * x[n], s); } else y[n] ~ student_t(4, rho, s);""",
    "two scales": "for (n in 1 : N) if (seen[n]) y[n] ~ normal(rho + b * x[n], s); else y[n] ~ normal(rho, 2 * s);",
    "three arms": """for (n in 1 : N) { if (c[n] == 0) y[n] ~ normal(b * x[n] + rho, s);
      else if (c[n] == 1) y[n] ~ cauchy(rho, s); else target += normal_lcdf(y[n] | b * x[n], s); }""",
    "three arms, the last of which has squares": """for (n in 1 : N) { real mu = b * x[n] + rho;
      if (c[n] == 0) target += normal_lccdf(y[n] | mu, s);
      else if (c[n] == 1) target += normal_lcdf(y[n] | mu, s); else y[n] ~ normal(mu, s); }""",
    "branches in branches": """for (n in 1 : N) { real mu = b * x[n]; if (id[n] > 0) mu += a[id[n]];
      if (c[n] < 2) { if (seen[n]) y[n] ~ normal(mu + x[n] * rho, s);
        else if (c[n] == 0) w[n] ~ lognormal(mu, s); } }""",
    "the first row": "for (n in 1 : N) if (n > 1) y[n] ~ normal(b + rho * y[n - 1], s); else y[n] ~ logistic(b, s);",
    "another outcome": "for (n in 1 : N) { y[n] ~ normal(rho + b * x[n], s); c[n] ~ poisson_log(rho + b * x[n]); }",
    "another outcome in an arm": """for (n in 1 : N) { c[n] ~ poisson_log(rho * x[n]);
      if (seen[n]) w[n] ~ lognormal(rho + b * x[n], s); }""",
    "weights": "for (n in 1 : N) if (c[n] > 0) target += c[n] * normal_lpdf(y[n] | rho + b * x[n], s);",
}


def data(n: int, *, seen: float = 0.5) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {
        "N": n, "J": 4, "id": np.sort(rng.integers(0, 5, n)), "seen": (rng.random(n) < seen).astype(int),
        "y": rng.normal(size=n), "x": rng.normal(size=n), "c": rng.poisson(1, n), "w": rng.exponential(1, n),
        "first": [1 + n * j // 4 for j in range(4)], "last": [n * j // 4 for j in range(1, 5)],
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_densities_are_those_of_level_0(name: str) -> None:
    program = ulam.StanProgram(f"{DATA}model {{ s ~ exponential(1); {FORMS[name]} }}")
    cases = [data(0), data(1), data(2), data(900), data(900, seen=0), data(900, seen=1)]
    cases.append(data(900) | {"y": np.where(np.arange(900) == 5, np.inf, data(900)["y"]), "seen": [1] * 900})
    for k, values in enumerate(cases):
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, 4, 5, 6):
            assert_same_outcomes(expected, found, at=at)
        if k < 6:
            assert_same_products(expected, found, np.random.default_rng(3))
        taken = any(choice.layout == "reduced rows" and choice.taken for choice in found.layout_choices())
        assert taken or k != 3


def test_data_of_rows_that_do_not_take_an_arm_may_be_anything() -> None:
    program = ulam.StanProgram(f"{DATA}model {{ s ~ exponential(1); {FORMS['logarithms']} }}")
    values = data(900)
    values["w"] = np.where(values["seen"] == 1, values["w"], -np.inf)
    expected, found = (program(values, opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=4)
    assert [choice.taken for choice in found.layout_choices() if choice.layout == "reduced rows"] == [True]


def test_what_rows_of_one_arm_check_is_checked_of_them_alone() -> None:
    form = "if (seen[n]) y[n] ~ normal(b * x[n], s); else y[n] ~ gamma(exp(rho), s)"
    program = ulam.StanProgram(f"{DATA}model {{ for (n in 1 : N) {form}; }}")
    values = data(400)
    values["y"] = np.where(values["seen"] == 1, values["y"], np.abs(values["y"]))
    expected, found = (program(values, opt_level=level) for level in (0, 3))
    for at in (4, 5):
        assert_same_outcomes(expected, found, at=at)
    assert [choice.taken for choice in found.layout_choices() if choice.layout == "reduced rows"] == [True]


def test_means_that_another_outcome_needs_anyway_save_nothing() -> None:
    program = ulam.StanProgram("""
      data { int N; int K; matrix[N, K] X; array[N] int seen; vector[N] y; }
      parameters { vector[K] beta; real<lower=0> s; }
      model { vector[N] mu = X * beta; for (n in 1 : N) { y[n] ~ normal(mu[n], s); seen[n] ~ poisson_log(mu[n]); } }""")
    rng = np.random.default_rng(1)
    for n, is_taken in ((100, False), (900, True)):
        values = {"N": n, "K": 30, "X": rng.normal(size=(n, 30)), "seen": np.arange(n) % 3 > 0, "y": rng.normal(size=n)}
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        assert_same_outcomes(expected, found, at=3)
        assert [choice.taken for choice in found.layout_choices() if choice.layout == "reduced rows"] == [is_taken]


def test_conditions_of_parameters_stay_branches() -> None:
    program = f"{DATA}model {{ for (n in 1 : N) if (x[n] > b) y[n] ~ normal(b * x[n], s); }}"
    model, plain = (ulam.StanModel(program, data(300), opt_level=level) for level in (3, 0))
    assert not any(choice.layout == "reduced rows" for choice in model.layout_choices())
    assert_same_outcomes(plain, model, at=4)
