"""What an index of rows decides is computed once for each index: the same densities, errors and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_at, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """
data {
  int<lower=0> N, J, K;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=1, upper=K> h;
  array[N] int<lower=0, upper=1> right, seen;
  array[N] int<lower=0> count;
  vector[N] x, y;
  matrix[N, K] X;
  vector<lower=0>[N] t;
  int<lower=0, upper=1> used;
}
parameters { real a, b; vector[J] u, v; vector[K] w; vector[J] s; array[J] vector[2] p; real<lower=0> phi; }
"""
TABLES, REDUCED = "values by index", "reduced rows"
FORMS = {
    "discriminations": ("for (n in 1 : N) right[n] ~ bernoulli_logit(exp(u[g[n]]) * (w[h[n]] - v[g[n]]));", TABLES),
    "vectors": ("vector[N] slope = exp(u[g]); right ~ bernoulli_logit(slope .* (w[h] - v[g]));", TABLES),
    "two_indices": ("for (n in 1 : N) right[n] ~ bernoulli_logit(exp(u[g[n]]) * x[n] + exp(w[h[n]]));", TABLES),
    "elements_of_vectors": ("for (n in 1 : N) y[n] ~ logistic(p[g[n], 1] + b * x[n], exp(p[g[n]][2]));", TABLES),
    "lifetimes": ("for (n in 1 : N) t[n] ~ weibull(exp(0.1 * a), exp(u[g[n]]));", TABLES),
    "shapes": ("for (n in 1 : N) t[n] ~ gamma(exp(u[g[n]]), exp(a + b * x[n]));", TABLES),
    "overdispersion": ("count ~ neg_binomial_2_log(a + b * x, exp(u[g]));", TABLES),
    "tails": ("for (n in 1 : N) y[n] ~ student_t(1 + exp(u[g[n]]), a + b * x[n], exp(v[g[n]]));", TABLES),
    "shares": ("for (n in 1 : N) target += log_mix(Phi(u[g[n]]), normal_lpdf(y[n] | a, 1), normal_lpdf(y[n] | b, 2));",
               TABLES),
    "ratios": ("for (n in 1 : N) target += -log1p(square((y[n] - a) / exp(u[g[n]]))) - u[g[n]];", TABLES),
    "scales": ("y ~ normal(a + b * x, exp(u[g]));", REDUCED),
    "means_and_scales": ("y ~ normal(v[g] + b * x, exp(u[g]));", REDUCED),
    "positive_scales": ("y ~ normal(v[g] + b * x, s[g]);", REDUCED),
    "squares": ("for (n in 1 : N) target += -square((y[n] - v[g[n]]) / exp(u[g[n]])) - u[g[n]];", REDUCED),
    "designs": ("y ~ student_t(s[g], v[g] + X * w, exp(u[g]));", TABLES),
    "rows_of_designs": ("for (n in 1 : N) y[n] ~ logistic(v[g[n]] + X[n] * w, s[g[n]]);", TABLES),
    "designs_in_a_branch": ("if (used) { y ~ cauchy(a + X * w, exp(u[g])); }", TABLES),
    "in_a_branch": ("if (used) { for (n in 1 : N) y[n] ~ cauchy(a + b * x[n], exp(u[g[n]])); }", TABLES),
    "some_rows": ("for (n in 1 : N) { real r = exp(u[g[n]]); if (seen[n]) y[n] ~ cauchy(a, r); "
                  "else target += cauchy_lccdf(y[n] | b, r); }", TABLES),
}  # fmt: skip


def data(rng: np.random.Generator, n: int, j: int, used: int = 1) -> dict[str, Any]:
    return {
        "N": n, "J": j + 2, "K": 4, "g": rng.integers(2, j + 2, n), "h": rng.integers(1, 5, n),
        "right": rng.integers(0, 2, n), "seen": rng.integers(0, 2, n), "count": rng.poisson(3, n),
        "x": rng.standard_normal(n), "X": rng.standard_normal((n, 4)), "y": rng.standard_normal(n),
        "t": rng.gamma(2, 1, n), "used": used,
    }  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> dict[str, tuple[ulam.StanProgram, ulam.StanProgram]]:
    texts = {name: HEAD + "model { " + text + " }" for name, (text, _) in FORMS.items()}
    return {name: (ulam.StanProgram(text), ulam.StanProgram(text, opt_level=0)) for name, text in texts.items()}


def point_of(model: ulam.StanModel, rng: np.random.Generator) -> np.ndarray:
    names = model.param_unc_names()
    point = rng.normal(0, 0.5, len(names))
    return np.where([name.startswith("s.") for name in names], 0.5 + np.abs(point), point)


@pytest.mark.parametrize("name", FORMS)
def test_values_are_those_of_the_rows(programs: dict[str, Any], name: str) -> None:
    program, plain = programs[name]
    for n, j, is_taken in ((600, 7, True), (600, 500, False), (20, 3, False), (1, 1, False), (0, 1, False)):
        rng = np.random.default_rng(n + j)
        values = data(rng, n, j)
        model, other = program(values), plain(values)
        taken = {choice.layout for choice in model.layout_choices() if choice.taken}
        assert (FORMS[name][1] in taken) == is_taken
        for point in (point_of(model, rng), point_of(model, rng)):
            assert_same_at(model, other, point)


@pytest.mark.parametrize("name", ["in_a_branch", "designs_in_a_branch"])
def test_a_branch_that_is_not_taken_has_no_tables(programs: dict[str, Any], name: str) -> None:
    model = programs[name][0](data(np.random.default_rng(1), 600, 7, used=0))
    assert not any(choice.taken for choice in model.layout_choices())
    assert model.log_density(np.zeros(model.param_unc_num())) == pytest.approx(0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 800.0, -800.0, -0.0, 30.0])
@pytest.mark.parametrize(
    "name", ["discriminations", "lifetimes", "tails", "means_and_scales", "shares", "some_rows", "designs"]
)
def test_special_values_travel_as_before(programs: dict[str, Any], name: str, value: float) -> None:
    program, plain = programs[name]
    values = data(np.random.default_rng(5), 400, 6)
    model, other = program(values), plain(values)
    names = model.param_unc_names()
    for parameter in ("u.1", "u.3", "v.4", "a"):  # no row has the first
        point = point_of(model, np.random.default_rng(6))
        point[names.index(parameter)] = value
        assert_same_at(model, other, point)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan, 1e-310])
def test_a_scale_is_rejected_if_a_row_has_it(programs: dict[str, Any], value: float) -> None:
    program, plain = programs["positive_scales"]
    values = data(np.random.default_rng(7), 400, 6)
    values["g"][37] = 5
    model, other = program(values), plain(values)
    names = model.param_unc_names()
    for parameter in ("s.1", "s.8", "s.5"):  # no row has the first and the last
        point = point_of(model, np.random.default_rng(8))
        point[names.index(parameter)] = value
        assert_same_at(model, other, point)
        assert isinstance(outcome(other, point), str) == (parameter == "s.5" and not value > 0)
