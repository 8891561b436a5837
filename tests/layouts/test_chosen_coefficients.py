"""Coefficients of groups that data choose: read in a branch, and only there, reduced rows have a column for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """
data {
  int<lower=0> N, J, M;
  array[N] int g, h, k, c, d;
  int use;
  vector[N] x, z, y;
}
parameters { vector[J] u; vector[M] w; vector[3] v; real a; real b; real<lower=0> s; }
"""
FORMS = {
    "index_of_some_rows": "real mu = a + b * x[n]; if (c[n]) mu += u[g[n]]; y[n] ~ normal(mu, s);",
    "slope_of_some_rows": "real mu = u[h[n]] + b * x[n]; if (d[n]) mu += w[h[n]] * z[n]; y[n] ~ normal(mu, s);",
    "all_of_some_rows": (
        "real mu = a + x[n]; if (c[n]) mu += u[g[n]]; if (d[n]) mu += w[g[n]] * z[n]; y[n] ~ normal(mu, s);"
    ),
    "either": "real mu = b; if (c[n]) mu += u[g[n]]; else mu -= v[k[n]] * x[n]; y[n] ~ normal(mu, s);",
    "nested": "real mu = b * x[n]; if (c[n]) { mu += u[g[n]]; if (d[n]) mu += v[k[n]]; } y[n] ~ normal(mu, s);",
    "two_densities": "if (d[n]) y[n] ~ normal(u[h[n]] + w[h[n]] * z[n], s); else y[n] ~ normal(u[h[n]] + b, s);",
    "of_the_program": "real mu = a + b * x[n]; if (use) mu += u[g[n]]; y[n] ~ normal(mu, s);",
    "ternary": "y[n] ~ normal((c[n] ? u[g[n]] : b) + (k[n] > h[n] ? a : 0) * x[n] + v[k[n]], s);",
}
IN_MEMORY = """
model {
  vector[N] mu;
  for (n in 1 : N) {
    mu[n] = a + b * x[n];
    if (use) mu[n] += u[g[n]];
    if (d[n]) mu[n] += v[k[n]];
  }
  y ~ normal(mu, s);
}
"""


def program(form: str) -> str:
    """A loop over rows of one of the forms."""
    return HEAD + (IN_MEMORY if form == "in_memory" else f"model {{ for (n in 1 : N) {{ {FORMS[form]} }} }}")


def data_of(n: int, chosen: str) -> dict[str, Any]:
    """Of rows that are not chosen the index is none of the coefficients'; only some of the groups have slopes."""
    rng = np.random.default_rng(6)
    share = {"none": 0.0, "some": 0.5, "all": 1.0}[chosen]
    c, h = rng.uniform(size=n) < share, rng.integers(1, 6, n)
    d = (rng.uniform(size=n) < share) & (h <= 2)
    elsewhere = rng.choice([-(2**31), -1, 0, 99, 2**31 - 1], n)
    used = bool(c.all())
    return {
        "N": n, "J": 5, "M": 2, "h": h, "k": rng.integers(1, 4, n), "c": c.astype(int), "d": d.astype(int),
        "g": np.where(c, np.where(d, h, rng.integers(3, 6, n)), elsewhere), "use": int(used and n > 0),
        "x": rng.normal(size=n), "z": np.where(d, rng.normal(size=n), np.nan), "y": rng.normal(size=n),
    }  # fmt: skip


def pair(form: str, data: dict[str, Any]) -> list[ulam.StanModel]:
    """Models at level 0 and with layouts."""
    return [ulam.StanModel(program(form), data, opt_level=level) for level in (0, 3)]


@pytest.mark.parametrize("chosen", ["none", "some", "all"])
@pytest.mark.parametrize("form", [*FORMS, "in_memory"])
def test_rows_with_coefficients_that_data_choose_are_reduced(form: str, chosen: str) -> None:
    """Whether no row, some or all have them: what a row does not read may be no number, and its index none."""
    data = data_of(400, chosen)
    if form == "all_of_some_rows":
        data["d"] = data["d"] * data["c"]
    expected, found = pair(form, data)
    for at in (0, 6, 9):
        assert_same_outcomes(expected, found, at=at)
    assert_same_products(expected, found, np.random.default_rng(3))
    assert [choice.layout for choice in found.layout_choices() if choice.taken] == ["reduced rows"]


@pytest.mark.parametrize("form", [*FORMS, "in_memory"])
def test_few_rows_stay(form: str) -> None:
    """None, and one, of which nothing is gained."""
    for n in (0, 1):
        expected, found = pair(form, data_of(n, "all"))
        assert_same_outcomes(expected, found, at=1)
        assert not any(choice.taken for choice in found.layout_choices())


@pytest.mark.parametrize("form", ["index_of_some_rows", "nested", "in_memory"])
def test_an_index_out_of_range_is_told_where_it_is_read(form: str) -> None:
    """With the words of level 0."""
    data = data_of(100, "all")
    data["g"][60] = 6
    texts: set[str] = set()
    for model in pair(form, data):
        with pytest.raises(ulam.UlamError) as told:
            model.log_density_gradient(np.zeros(13))
        texts.add(str(told.value))
    assert len(texts) == 1 and "6 out of range" in texts.pop()


@pytest.mark.parametrize("chosen", ["none", "some", "all"])
@pytest.mark.parametrize("form", [*FORMS, "in_memory"])
def test_rows_of_other_densities_read_what_data_choose(form: str, chosen: str) -> None:
    """In all rows, or in a branch: parameters that are not finite, and data that are no numbers, count where taken."""
    data = data_of(300, chosen)
    if form == "all_of_some_rows":
        data["d"] = data["d"] * data["c"]
    text = program(form).replace("normal(", "student_t(3 + s, ")
    expected, found = (ulam.StanModel(text, data, opt_level=level) for level in (0, 3))
    for at in (0, 3, 6, 8, 10, 11):
        assert_same_outcomes(expected, found, at=at)
    assert_same_products(expected, found, np.random.default_rng(3))


def test_parameters_that_choose_are_not_linear() -> None:
    """A branch that parameters decide has no columns."""
    text = HEAD + "model { for (n in 1 : N) { real mu = a; if (b * x[n] > 0) mu += u[h[n]]; y[n] ~ normal(mu, s); } }"
    expected, found = (ulam.StanModel(text, data_of(300, "some"), opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=0)
    assert not any(choice.taken for choice in found.layout_choices())


def test_a_row_that_is_no_number_is_rejected_as_without() -> None:
    """Where the branch is taken and where it is not."""
    for row in (5, 6):
        data = data_of(200, "some")
        data["x"][row] = np.nan
        found = {str(outcome(model, np.zeros(13))) for model in pair("index_of_some_rows", data)}
        assert len(found) == 1
