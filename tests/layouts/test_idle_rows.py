"""Rows with which nothing is done, as data say: their products with a design are not computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam
from ulam.runtime.layout_choices import LayoutChoice

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int<lower=0> N, K;
  matrix[N, K] X;
  array[N] int<lower=0, upper=2> kind;
  array[N] int<lower=0> c;
  vector[N] y;
}
parameters { real a; vector[K] b; real<lower=0> s; }
"""
CENSORED = {
    "a vector": """vector[N] mu = a + X * b; for (n in 1 : N)
      if (kind[n] == 1) target += normal_lccdf(y[n] | mu[n], s); else if (kind[n] == 0) y[n] ~ normal(mu[n], s);""",
    "the other way round": """vector[N] mu = X * b; for (n in 1 : N) {
      if (kind[n] != 1) { if (kind[n] == 0) y[n] ~ normal(a + mu[n], s); }
      else target += normal_lcdf(y[n] | a + mu[n], s); }""",
    "rows of the design": """for (n in 1 : N) { real mu = a + X[n] * b;
      if (kind[n] == 1) target += normal_lccdf(y[n] | mu, s); else if (kind[n] == 0) y[n] ~ normal(mu, s); }""",
    "three arms": """vector[N] mu = a + X * b; for (n in 1 : N) {
      if (kind[n] == 1) target += normal_lccdf(y[n] | mu[n], s);
      else if (kind[n] == 2) target += normal_lcdf(y[n] | mu[n], s); else y[n] ~ normal(mu[n], s); }""",
}
OTHERS = {
    "one arm": "vector[N] eta = X * b + a; for (n in 1 : N) if (kind[n] == 1) c[n] ~ poisson_log(eta[n]);",
    "two arms": """vector[N] eta = X * b + a; for (n in 1 : N) if (kind[n] == 1) c[n] ~ poisson_log(eta[n]);
      else if (kind[n] == 2) c[n] ~ neg_binomial_2_log(eta[n], s);""",
    "rows that are passed over": """vector[N] eta = a + X * b;
      for (n in 1 : N) { if (kind[n] != 1) continue; c[n] ~ poisson(exp(eta[n])); }""",
}


def data_of(n: int, kinds: tuple[float, ...] = (0.5, 0.3, 0.2), seed: int = 4) -> dict[str, Any]:
    """So much of the rows has each kind."""
    rng = np.random.default_rng(seed)
    return {
        "N": n, "K": 5, "X": rng.normal(size=(n, 5)), "kind": rng.choice(3, n, p=kinds), "c": rng.poisson(1, n),
        "y": rng.normal(size=n),
    }  # fmt: skip


def taken(model: ulam.StanModel) -> dict[str, LayoutChoice]:
    return {choice.layout: choice for choice in model.layout_choices() if choice.taken}


@pytest.mark.parametrize("name", [*CENSORED, *OTHERS])
def test_densities_are_those_of_level_0(name: str) -> None:
    program = ulam.StanProgram(f"{DATA}model {{ s ~ exponential(1); {(CENSORED | OTHERS)[name]} }}")
    cases = [data_of(0), data_of(1), data_of(3), data_of(700), data_of(200, (1, 0, 0)), data_of(200, (0, 1, 0))]
    cases.append(data_of(700) | {"X": np.round(data_of(700)["X"][:, :1]) * np.ones(5), "y": np.ones(700)})
    for values in cases:
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, 3, 6):
            assert_same_outcomes(expected, found, at=at)
        assert_same_products(expected, found, np.random.default_rng(3))


@pytest.mark.parametrize("name", CENSORED)
def test_censored_rows_alone_are_computed_beside_reduced_ones(name: str) -> None:
    values = data_of(700)
    found = taken(ulam.StanModel(f"{DATA}model {{ s ~ exponential(1); {CENSORED[name]} }}", values))
    assert found["reduced rows"].figures["coefficients"] == 6
    censored = values["kind"] >= 1 if name == "three arms" else values["kind"] == 1
    assert found["unique rows"].figures["computed"] == np.sum(censored)


@pytest.mark.parametrize("name", OTHERS)
def test_rows_with_which_nothing_is_done_are_left_out(name: str) -> None:
    values = data_of(700)
    found = taken(ulam.StanModel(f"{DATA}model {{ s ~ exponential(1); {OTHERS[name]} }}", values))
    working = values["kind"] >= 1 if name == "two arms" else values["kind"] == 1
    assert found["unique rows"].figures["computed"] == np.sum(working)


def test_equal_rows_among_the_others_are_computed_once() -> None:
    values = data_of(900)
    values["X"] = np.sign(values["X"])
    values["X"][:, 1:] = 1
    model = ulam.StanModel(f"{DATA}model {{ {OTHERS['one arm']} }}", values)
    figures = taken(model)["unique rows"].figures
    assert figures["computed"] < 100 and figures["groups"] > 1
    assert_same_outcomes(ulam.StanModel(f"{DATA}model {{ {OTHERS['one arm']} }}", values, opt_level=0), model, at=0)


@pytest.mark.parametrize("condition", ["eta[n] > 0", "c[n] > a"])
def test_conditions_of_parameters_leave_nothing_out(condition: str) -> None:
    program = f"{DATA}model {{ vector[N] eta = X * b; for (n in 1 : N) if ({condition}) c[n] ~ poisson_log(eta[n]); }}"
    model, plain = (ulam.StanModel(program, data_of(300), opt_level=level) for level in (3, 0))
    assert not taken(model)
    assert_same_outcomes(plain, model, at=0)


def test_what_all_rows_check_is_checked_of_all() -> None:
    """A vector with a bound: of rows with which nothing else is done, too."""
    program = f"""{DATA}transformed parameters {{ vector<upper=3>[N] eta = X * b; }}
      model {{ for (n in 1 : N) if (kind[n] == 1) c[n] ~ poisson_log(eta[n]); }}"""
    values = data_of(300)
    values["X"][values["kind"] == 0] *= 10
    told = []
    for level in (0, 3):
        with pytest.raises(ulam.Rejection) as error:
            ulam.StanModel(program, values, opt_level=level).log_density_gradient(np.ones(7))
        told.append(str(error.value))
    assert told[0] == told[1]
