"""Rows of groups of different sizes are one loop for layouts: groups may overlap, be empty, leave rows out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int N; int J;
  array[J] int first; array[J] int last; array[J] int pos; array[J] int<lower=0> n;
  vector[N] x; vector[N] y; vector[J] w; matrix[N, 3] X;
  array[N] int<lower=0> c; array[N] int<lower=0, upper=1> b; array[N] int<lower=1, upper=3> item;
}
parameters { vector[J] u; vector[J] v; vector[3] z; real<lower=0> s; real<lower=0> phi; }
model {
  u ~ normal(0, 1);
"""
PROGRAMS = {
    "squares": """
  for (j in 1 : J) {
    v[j] ~ normal(z[1], s);
    for (k in first[j] : last[j]) y[k] ~ normal(u[j] + x[k] * v[j], s);
  }
  for (j in 1 : J) target += normal_lpdf(segment(y, pos[j], n[j]) | u[j], s);
  for (j in 1 : J) for (k in 1 : n[j]) y[pos[j] + n[j] - k] ~ normal(v[j] * (k - 1) + z[2] * x[pos[j] + k - 1], s);
  for (j in 1 : J) target += -0.5 * dot_self(y[first[j] : last[j]] - u[j]) / square(s);
  if (J > 2) for (i in 1 : 3) for (j in i : i + 2) for (k in first[j] : last[j]) y[k] ~ normal(z[i], s);
  for (i in 1 : 3) {
    for (j in 1 : J) {
      if (j < 2 * i) continue;
      for (k in first[j] : last[j]) X[k, i] ~ normal(z[item[k]] + z[i], s);
    }
  }
}""",
    "branches": """
  for (j in 1 : J) {
    if (n[j] == 0) continue;
    v[j] ~ normal(0, s);
    segment(y, pos[j], n[j]) ~ normal(u[j] + v[j] * segment(x, pos[j], n[j]), s);
  }
  for (j in 1 : J) {
    if (w[j] > 0.5) for (k in first[j] : last[j]) y[k] ~ normal(u[j], s);
    else {
      u[j] ~ normal(z[1], 1);
      for (i in 1 : 2) if (J > i + 2) for (k in 1 : n[j]) y[pos[j] + k - 1] ~ normal(z[i], s);
    }
  }
}""",
    "designs": """
  for (j in 1 : J) y[first[j] : last[j]] ~ normal(u[j] + X[first[j] : last[j]] * z, s);
  for (j in 1 : J) {
    v[j] ~ normal(0, s);
    segment(y, pos[j], n[j]) ~ normal(block(X, pos[j], 1, n[j], 3) * z + v[j] * segment(x, pos[j], n[j]), s);
  }
  for (j in 1 : J) {
    vector[n[j]] mu = block(X, pos[j], 1, n[j], 3) * z;
    vector[n[j]] eta = u[j] + mu + v[j] * segment(x, pos[j], n[j]);
    segment(y, pos[j], n[j]) ~ normal(eta, s);
  }
  for (j in 1 : J) target += normal_id_glm_lupdf(y[first[j] : last[j]] | X[first[j] : last[j]], u[j], z, s);
}""",
    "fills": """
  vector[N] mu;
  for (j in 1 : J) mu[first[j] : last[j]] = u[j] + v[j] * x[first[j] : last[j]];
  y ~ normal(mu, s);
  vector[N] nu;
  for (j in 1 : J) for (k in first[j] : last[j]) nu[k] = u[j] + X[k] * z;
  target += normal_lpdf(y | nu, s);
  vector[N] product;
  for (j in 1 : J) product[first[j] : last[j]] = v[j] + X[first[j] : last[j]] * z;
  y ~ normal(product, s);
  vector[N] eta;
  for (j in 1 : J) eta[first[j] : last[j]] = u[j] + rep_vector(z[1], last[j] - first[j] + 1);
  c ~ poisson_log(eta);
}""",
    "functions": """
  for (j in 1 : J) b[first[j] : last[j]] ~ bernoulli_logit(u[j]);
  for (j in 1 : J) if (n[j] > 2) for (k in first[j] : last[j]) c[k] ~ neg_binomial_2_log(0.1 * x[k] + v[j], phi);
  for (j in 1 : J) {
    real lp = 0;
    for (k in first[j] : last[j]) lp += bernoulli_logit_lpmf(b[k] | z[item[k]]);
    target += w[j] * lp;
  }
  for (j in 1 : J) for (k in first[j] : last[j]) {
    if (b[k] == 1) c[k] ~ poisson_log(u[j]);
    else c[k] ~ poisson_log(z[item[k]]);
  }
}""",
    # of one loop there are more pairs than of the data, the other one has equal rows
    "one of two loops": """
  for (j in 1 : J) {
    for (i in 1 : 3) for (k in first[j] : last[j]) b[k] ~ bernoulli_logit(z[i]);
    for (k in first[j] : last[j]) c[k] ~ poisson_log(z[item[k]]);
  }
}""",
    # what is added for each row belongs to several loops
    "several loops": """
  for (j in 1 : J) {
    y[first[j] : last[j]] ~ normal(u[j], s);
    y[first[j] : last[j]] ~ student_t(4, v[j], s);
    for (k in first[j] : last[j]) y[k] ~ normal(z[item[k]], s);
  }
}""",
}
KINDS = ("plain", "long", "empty", "none", "overlap", "gaps", "many", "backwards")
TAKEN = {"squares": "reduced rows", "designs": "reduced rows", "fills": "reduced rows", "functions": "unique rows"}


def data_of(kind: str, groups: int = 30) -> dict[str, Any]:
    """Groups whose rows are behind each other, or are not."""
    rng = np.random.default_rng(5)
    n = rng.poisson(12, groups)
    if kind == "empty":
        n[rng.random(groups) < 0.5] = 0
    if kind == "none":
        n[:] = 0
    if kind == "long":
        n[3:5] = 600, 256
    last = np.cumsum(n)
    first, size = last - n + 1, max(int(n.sum()), 1)
    pos = np.minimum(first, size)
    if kind == "overlap":
        first = np.maximum(1, first - 4)
    if kind == "gaps":
        first = first + 3
    if kind == "many":
        first[:], last[:] = 1, size
    if kind == "backwards":
        last = np.where(n < 12, first - 1 - rng.integers(0, 4, groups), last)
    return {
        "N": size, "J": groups, "first": first, "last": last, "pos": pos, "n": n, "x": rng.normal(size=size).round(1),
        "y": rng.normal(size=size), "w": rng.random(groups), "c": rng.poisson(2, size), "b": rng.integers(0, 2, size),
        "item": rng.integers(1, 4, size), "X": rng.normal(size=(size, 3)),
    }  # fmt: skip


def models(name: str, data: Mapping[str, Any]) -> tuple[ulam.StanModel, ulam.StanModel]:
    return ulam.StanModel(DATA + PROGRAMS[name], data, opt_level=0), ulam.StanModel(DATA + PROGRAMS[name], data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_of_level_0(name: str, kind: str) -> None:
    expected, found = models(name, data_of(kind))
    assert_same_outcomes(expected, found, at=3)


@pytest.mark.parametrize("name", TAKEN)
def test_layouts_are_taken(name: str) -> None:
    data = data_of("plain", 200)
    _, found = models(name, data)
    taken = [choice for choice in found.layout_choices() if choice.taken and choice.layout == TAKEN[name]]
    assert len(taken) >= 3, [choice.message for choice in found.layout_choices()]
    rows = sum(data["n"])
    assert sum(choice.figures["rows"] == rows for choice in taken) >= 2


def test_more_pairs_than_data_have_no_layout() -> None:
    _, found = models("functions", data_of("many"))
    assert not any(choice.taken and choice.figures["rows"] > 1000 for choice in found.layout_choices())


@pytest.mark.parametrize("weight", [np.inf, np.nan])
def test_weights_that_are_not_finite_stay_with_the_group(weight: float) -> None:
    """A weight of infinity times a sum is not the sum of such products: terms of 0 would be NaN."""
    data = data_of("plain", 200)
    data["w"][4] = weight
    expected, found = models("functions", data)
    point = np.random.default_rng(2).normal(0, 0.3, expected.param_unc_num())
    first, second = (model.log_density_gradient(point) for model in (expected, found))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(np.isfinite(first[1]), np.isfinite(second[1]))


@pytest.mark.parametrize("name", ["functions", "designs"])
def test_errors_are_told_as_before(name: str) -> None:
    data = data_of("plain")
    data["last"] = data["last"].copy()
    data["last"][5] = data["N"] + 3
    texts: list[str] = []
    for level in (0, 3):
        model = ulam.StanModel(DATA + PROGRAMS[name], data, opt_level=level)
        with pytest.raises(ulam.UlamError) as caught:
            model.log_density_gradient(np.zeros(model.param_unc_num()))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_hessians() -> None:
    expected, found = models("squares", data_of("overlap", 12))
    assert_same_products(expected, found, np.random.default_rng(3))


HISTORIES = """
data { int I, T; array[I] int first, last; array[I, T] int<lower=0, upper=1> y; array[I] int<lower=1, upper=2> sex; }
parameters { vector[T] stays, seen; vector[2] of_sex; }
model {
  for (i in 1 : I) {
    for (t in first[i] + 1 : last[i]) {
      1 ~ bernoulli_logit(stays[t - 1] + of_sex[sex[i]]);
      y[i, t] ~ bernoulli_logit(seen[t]);
    }
  }
}
"""
HISTORIES_BY_SLICES = """
data { int I, T; array[I] int first, last; array[I, T] int<lower=0, upper=1> y; array[I] int<lower=1, upper=2> sex; }
parameters { vector[T] stays, seen; vector[2] of_sex; }
model {
  for (i in 1 : I) {
    target += -sum(log1p_exp(-stays[first[i] : last[i] - 1] - of_sex[sex[i]]));
    y[i, first[i] + 1 : last[i]] ~ bernoulli_logit(seen[first[i] + 1 : last[i]]);
  }
}
"""


@pytest.mark.parametrize("program", [HISTORIES, HISTORIES_BY_SLICES])
def test_numbers_of_rows_tell_parameters_that_others_have_too(program: str) -> None:
    """As in capture histories; some are empty."""
    compiled = ulam.StanProgram(program)
    for seed, (many, times) in enumerate([(0, 3), (1, 1), (600, 5)]):
        rng = np.random.default_rng(seed)
        first = rng.integers(1, times + 1, many)
        values = {"I": many, "T": times, "first": first, "last": np.minimum(first + rng.integers(0, 4, many), times)}
        values |= {"y": rng.integers(0, 2, (many, times)), "sex": rng.integers(1, 3, many)}
        expected, found = (compiled(values, opt_level=level) for level in (0, 3))
        for at in (0, times):
            assert_same_outcomes(expected, found, at=at)
        assert_same_products(expected, found, rng)
        assert {c.layout for c in found.layout_choices() if c.taken} == ({"unique rows"} if many > 1 else set())
        if many > 1:
            beyond = values | {"last": np.where(np.arange(many) == 7, times + 1, values["last"])}
            messages = []
            for level in (0, 3):
                with pytest.raises(ulam.UlamError) as caught:
                    compiled(beyond, opt_level=level).log_density(np.zeros(2 * times + 2))
                messages.append(str(caught.value))
            assert messages[0] == messages[1]


def test_parameters_of_each_element_are_no_rows_of_others() -> None:
    values = {"J": 30, "N": 900, "first": np.arange(1, 900, 30), "last": np.arange(30, 901, 30), "y": [1] * 900}
    model = ulam.StanModel(
        "data { int J, N; array[J] int first, last; array[N] int y; } parameters { vector[N] theta; vector[J] mu; } "
        "model { for (j in 1:J) for (k in first[j]:last[j]) y[k] ~ poisson_log(mu[j] + theta[k]); }",
        values,
    )
    assert model.layout_choices() == []


def test_loops_over_the_same_rows_of_a_group() -> None:
    """Each has what the group adds once for each of them, whichever loop that is said to be of."""
    compiled = ulam.StanProgram(
        """
        data { int J, N; array[J] int first, last; vector[N] y, z; array[N] int<lower=0> c; }
        parameters { vector[J] a, b; real<lower=0> s, t; }
        model {
          for (j in 1 : J) {
            y[first[j] : last[j]] ~ normal(a[j], s);
            z[first[j] : last[j]] ~ normal(b[j], t);
            c[first[j] : last[j]] ~ poisson_log(a[j]);
          }
        }
        """
    )
    rng = np.random.default_rng(4)
    for first, last in ([1, 11, 301], [10, 300, 600]), ([1, 5, 590], [0, 200, 600]):
        values = {"J": 3, "N": 600, "first": first, "last": last, "y": rng.normal(size=600), "z": rng.normal(size=600)}
        values["c"] = rng.poisson(1, 600)
        expected, found = (compiled(values, opt_level=level) for level in (0, 3))
        for at in (0, 6, 7):
            assert_same_outcomes(expected, found, at=at)
        assert any(c.layout == "reduced rows" and c.taken for c in found.layout_choices())


def test_parameters_of_each_group_are_no_rows_of_others() -> None:
    """A place that is computed with the number of the group is that of no other one: no rows are equal."""
    model = ulam.StanModel(
        "data { int M, K; vector<lower=0>[K] alpha; } parameters { array[M] simplex[K] theta; } "
        "model { for (m in 1:M) theta[m] ~ dirichlet(alpha); }",
        {"M": 900, "K": 2, "alpha": [1.0, 1.0]},
    )
    assert model.layout_choices() == []
