"""Outcomes in a matrix, or an array of arrays: each is a row for layouts, whichever loops go through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data {{
  int<lower=0> N, T; matrix[N, T] Y; matrix[N, T] X; array[N, T] int<lower=0> count; matrix[N, 2] W;
}}
parameters {{ vector[N] a; vector[T] d; real b; vector[2] w; real<lower=0> s; }}
model {{
  a ~ normal(0, 1);
  d ~ normal(0, 1);
  {}
}}
"""
SQUARES = {
    "by rows": "for (i in 1 : N) for (t in 1 : T) Y[i, t] ~ normal(a[i] + b * X[i, t], s);",
    "by columns": "for (t in 1 : T) for (i in 1 : N) Y[i, t] ~ normal(a[i] + b * X[i, t], s);",
    "whole rows": "for (i in 1 : N) Y[i] ~ normal(a[i] + W[i] * w + b * X[i], s);",
    "whole columns": "for (t in 1 : T) Y[ : , t] ~ normal(d[t] + b * X[ : , t], s);",
    "means first": """
  matrix[N, T] mu;
  for (i in 1 : N) for (t in 1 : T) mu[i, t] = b * X[i, t] + d[t];
  for (i in 1 : N) for (t in 1 : T) Y[i, t] ~ normal(mu[i, t], s);""",
    "means in a matrix": """
  matrix[N, T] mu;
  for (i in 1 : N) mu[i] = a[i] + b * X[i];
  to_vector(Y) ~ normal(to_vector(mu), s);""",
    "one vector": "to_vector(Y) ~ normal(to_vector(rep_matrix(a, T) + b * X), s);",
    "both numbers": "for (i in 1 : N) for (t in 1 : T) Y[i, t] ~ normal(a[i] + d[t] + b * X[i, t], s);",
    "no effects": "for (i in 1 : N) for (t in 1 : T) target += normal_lpdf(Y[i, t] | b * X[i, t], s);",
}
FUNCTIONS = {
    "by rows": "for (i in 1 : N) for (t in 1 : T) count[i, t] ~ poisson_log(a[i] + b * X[i, t]);",
    "by columns": "for (t in 1 : T) for (i in 1 : N) count[i, t] ~ poisson_log(d[t] + b * X[i, t]);",
    "inner effects": "for (i in 1 : N) count[i] ~ poisson_log(d + b * X[i]');",
}
SIZES = {
    "plain": (60, 20), "long": (20, 60), "few columns": (100, 7), "few rows": (7, 100),
    "one row": (1, 300), "one column": (300, 1), "no rows": (0, 4), "no columns": (4, 0),
}  # fmt: skip


def data_of(rows: int, columns: int) -> dict[str, Any]:
    """Few different numbers, so that outcomes are equal to others."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, (rows, columns)) / 2
    return {
        "N": rows, "T": columns, "X": x, "Y": x + rng.normal(size=(rows, columns)),
        "count": rng.poisson(0.7, (rows, columns)), "W": rng.normal(size=(rows, 2)),
    }  # fmt: skip


def models(name: str, data: dict[str, Any]) -> tuple[ulam.StanModel, ulam.StanModel]:
    program = PROGRAM.format(SQUARES[name[8:]] if name.startswith("squares") else FUNCTIONS[name[10:]])
    return ulam.StanModel(program, data, opt_level=0), ulam.StanModel(program, data)


NAMES = [*(f"squares {name}" for name in SQUARES), *(f"functions {name}" for name in FUNCTIONS)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_level_0(name: str, size: str) -> None:
    data = data_of(*SIZES[size])
    if size == "plain":
        data["X"][3, 4] = 0.125  # a row that is like no other
    expected, found = models(name, data)
    assert_same_outcomes(expected, found, at=data["N"] + data["T"])


@pytest.mark.parametrize("name", NAMES)
def test_layouts_are_taken(name: str) -> None:
    _, found = models(name, data_of(160, 20))
    taken = {choice.layout: choice for choice in found.layout_choices() if choice.taken}
    expected = "reduced rows" if name.startswith("squares") else "unique rows"
    assert expected in taken, found.layout_choices()
    assert taken[expected].figures["rows"] == 3200


@pytest.mark.parametrize("name", ["functions by rows", "functions inner effects", "squares means first"])
def test_rows_that_all_differ_stay_in_the_nest(name: str) -> None:
    """Where the nest stays, its rows run side by side, on data that are transposed when they are bound."""
    data = data_of(40, 30)
    data["X"] = np.random.default_rng(2).normal(size=(40, 30))
    if name.startswith("squares"):
        data["X"][5, 5] = np.inf
    expected, found = models(name, data)
    assert not any(choice.taken for choice in found.layout_choices())
    assert_same_outcomes(expected, found, at=70)


@pytest.mark.parametrize("statement", [
    "for (i in 1 : N) for (t in 1 : T) count[i, t] ~ poisson_log(u[i, t]);",
    "for (i in 1 : N) for (t in 1 : T) Y[i, t] ~ normal(u[i, t], s);",
])  # fmt: skip
def test_parameters_of_each_outcome_have_no_layout(statement: str) -> None:
    program = PROGRAM.format(statement).replace("real b;", "real b; matrix[N, T] u;")
    assert not ulam.StanModel(program, data_of(30, 20)).layout_choices()


def test_errors_are_told_as_before() -> None:
    data = data_of(20, 20)
    data["Y"][7, 3] = np.nan
    texts = [outcome(model, np.zeros(model.param_unc_num())) for model in models("squares by rows", data)]
    assert texts[0] == texts[1]
    assert "is nan" in str(texts[0])


def test_hessians() -> None:
    for name in ("squares by rows", "functions by rows"):
        expected, found = models(name, data_of(12, 10))
        assert_same_products(expected, found, np.random.default_rng(3))
