"""Rows that sum up coefficients which data of each entry choose, as products with sparse designs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int<lower=0> N, K, M, J;
  vector[M] w; array[M] int v; array[N + 1] int u;
  array[N, 2] int pair; array[N] int g;
  vector[N] x, y;
}
parameters { real a; vector[K] b; vector[J] e; real<lower=0> s; }
"""
FORMS = {
    "csr": "y ~ normal(csr_matrix_times_vector(N, K, w, v, u, b), s);",
    "csr beside others": "y ~ normal(a + e[g] + x * a + csr_matrix_times_vector(N, K, w, v, u, b), s);",
    "loops": """for (n in 1 : N) { real mu = a;
      for (k in u[n] : u[n + 1] - 1) mu += b[v[k]] * w[k]; y[n] ~ normal(mu, s); }""",
    "less": "for (n in 1 : N) { real mu = a; for (k in u[n] : u[n + 1] - 1) mu -= b[v[k]]; y[n] ~ normal(mu, s); }",
    "members of two": """for (n in 1 : N) { real mu = a;
      for (k in 1 : 2) mu += b[pair[n, k]] / 2; y[n] ~ normal(mu, s); }""",
    "means that something else reads": """vector[N] mu = a + csr_matrix_times_vector(N, K, w, v, u, b);
      y ~ normal(mu, s); g ~ poisson_log(mu);""",
    "two designs": """y ~ normal(a + csr_matrix_times_vector(N, K, w, v, u, b)
      + csr_matrix_times_vector(N, J, w, v, u, e), s);""",
}
OTHERS = {
    "counts": "g ~ poisson_log(a + csr_matrix_times_vector(N, K, w, v, u, b));",
    "heavy tails": "y ~ student_t(4, csr_matrix_times_vector(N, K, w, v, u, b) + e[g], s);",
    "a sum of a row": """for (n in 1 : N) { real eta = a; for (k in u[n] : u[n + 1] - 1) eta += b[v[k]];
      g[n] ~ neg_binomial_2_log(eta, s); }""",
    "computed weights": """for (n in 1 : N) { real eta = 0;
      for (k in u[n] : u[n + 1] - 1) eta += b[v[k]] * exp(-w[k] * x[n]); y[n] ~ logistic(eta, s); }""",
    "transformed coefficients": """vector[K] c = exp(b); vector[N] eta = csr_matrix_times_vector(N, K, w, v, u, c);
      g ~ poisson_log(eta); y ~ cauchy(eta, s);""",
    "two sums": """y ~ student_t(4, csr_matrix_times_vector(N, K, w, v, u, b)
      .* csr_matrix_times_vector(N, J, w, v, u, e), s);""",
}


def data_of(n: int, seed: int = 7) -> dict[str, Any]:
    """Rows of 0 to 3 entries; some have two of the same column."""
    rng = np.random.default_rng(seed)
    u = np.concatenate([[0], np.cumsum(rng.integers(0, 4, n))]) + 1
    m = int(u[-1]) - 1
    return {
        "N": n, "K": 8, "J": 8, "M": m, "w": rng.normal(size=m), "v": rng.integers(1, 9, m), "u": u,
        "pair": rng.integers(1, 9, (n, 2)), "g": rng.integers(1, 9, n), "x": rng.normal(size=n),
        "y": rng.normal(size=n),
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_densities_are_those_of_level_0(name: str) -> None:
    program = ulam.StanProgram(f"{DATA}model {{ b ~ normal(0, 1); {FORMS[name]} }}")
    empty = data_of(300) | {"u": np.ones(301, int), "M": 0, "w": np.zeros(0), "v": np.zeros(0, int)}
    cases = [data_of(0), data_of(1), data_of(2), data_of(1500), empty]
    cases.append(data_of(1500) | {"y": np.where(np.arange(1500) == 5, np.inf, data_of(1500)["y"])})
    for k, values in enumerate(cases):
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, 3, 17):
            assert_same_outcomes(expected, found, at=at)
        if k < 5:
            assert_same_products(expected, found, np.random.default_rng(3))
        taken = any(choice.layout == "reduced rows" and choice.taken for choice in found.layout_choices())
        assert taken or k != 3


def test_entries_are_summed_up_with_what_multiplies_them() -> None:
    """The same coefficients as those of a dense design with the same entries."""
    values = data_of(1500)
    dense = np.zeros((1500, 8))
    for n in range(1500):
        np.add.at(dense[n], values["v"][values["u"][n] - 1 : values["u"][n + 1] - 1] - 1,
                  values["w"][values["u"][n] - 1 : values["u"][n + 1] - 1])  # fmt: skip
    sparse = ulam.StanModel(f"{DATA}model {{ {FORMS['csr']} }}", values)
    program = "data { int N, K; matrix[N, K] X; vector[N] y; } parameters { vector[K] b; real<lower=0> s; }"
    other = ulam.StanModel(f"{program} model {{ y ~ normal(X * b, s); }}", values | {"X": dense})
    point = np.linspace(-1, 1, 9)
    whole = np.concatenate([[0], point[:8], np.zeros(8), point[8:]])
    (value, slopes), (expected, gradient) = sparse.log_density_gradient(whole), other.log_density_gradient(point)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slopes[[*range(1, 9), 17]], gradient, rtol=1e-10)


def test_an_entry_out_of_range_is_told_where_it_is_read() -> None:
    values = data_of(50)
    values["v"][3] = 9
    told = []
    for level in (0, 3):
        with pytest.raises(ulam.FatalError) as error:
            ulam.StanModel(f"{DATA}model {{ {FORMS['csr']} }}", values, opt_level=level).log_density(np.zeros(18))
        told.append(str(error.value))
    assert told[0] == told[1] and "out of range" in told[0]


@pytest.mark.parametrize(("n", "is_reduced"), [(2000, True), (20000, False)])
def test_many_columns_are_reduced_where_it_takes_a_moment(n: int, is_reduced: bool) -> None:
    """Rows of a few entries in 45 columns: a gradient of the loop takes no time to speak of."""
    rng = np.random.default_rng(2)
    values = data_of(n) | {"K": 45, "pair": rng.integers(1, 46, (n, 2))}
    model = ulam.StanModel(f"{DATA}model {{ {FORMS['members of two']} }}", values)
    (choice,) = (choice for choice in model.layout_choices() if choice.layout == "reduced rows")
    assert choice.taken == is_reduced and ("too long" in choice.reason) != is_reduced


@pytest.mark.parametrize("name", OTHERS)
def test_sums_of_entries_are_calls(name: str) -> None:
    program = ulam.StanProgram(f"{DATA}model {{ b ~ normal(0, 1); {OTHERS[name]} }}")
    empty = data_of(300) | {"u": np.ones(301, int), "M": 0, "w": np.zeros(0), "v": np.zeros(0, int)}
    ones = data_of(300) | {"w": np.ones(data_of(300)["M"])}
    chosen = np.random.default_rng(1).integers(1, 9, 600)
    pairs = {"u": 2 * np.arange(301) + 1, "M": 600, "w": np.ones(600), "v": chosen}
    for values in (data_of(0), data_of(1), data_of(3), data_of(1500), empty, ones, data_of(300) | pairs):
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, 3, 17):
            assert_same_outcomes(expected, found, at=at)
        assert_same_products(expected, found, np.random.default_rng(3))
        figures = [choice.figures for choice in found.layout_choices() if choice.layout == "listed entries"]
        assert figures and all(each["entries"] == values["M"] for each in figures)


NOT_LISTED = {
    "a parameter decides": """for (n in 1 : N) { real eta = 0; if (a > 0) for (k in u[n] : u[n + 1] - 1) eta += b[v[k]];
      y[n] ~ cauchy(eta, s); }""",
    "coefficients in order": """for (n in 1 : N) { real eta = 0; for (k in 1 : g[n]) eta += b[k] * w[k];
      y[n] ~ cauchy(eta, s); }""",
    "of the row before": """vector[N] eta; for (n in 1 : N) { real total = 0;
      for (k in u[n] : u[n + 1] - 1) total += w[k] * (v[k] < n ? eta[v[k]] : a); eta[n] = total; }
      y ~ cauchy(eta, s);""",
}


@pytest.mark.parametrize("name", NOT_LISTED)
def test_other_sums_stay(name: str) -> None:
    expected, found = (
        ulam.StanModel(f"{DATA}model {{ {NOT_LISTED[name]} }}", data_of(300), opt_level=level) for level in (0, 3)
    )
    assert_same_outcomes(expected, found, at=3)
    assert not any(choice.layout == "listed entries" for choice in found.layout_choices())


def test_coefficients_of_an_index_and_of_the_number_of_an_iteration_stay() -> None:
    """No integer of the data alone tells which one is read."""
    data = "data { int N, K, J; array[N] int g; matrix[N, K] X; vector[N] y; } parameters { matrix[K, J] B; real a; }"
    loop = "for (n in 1 : N) { real mu = a; for (k in 1 : K) mu += B[k, g[n]] * X[n, k]; y[n] ~ normal(mu, 1); }"
    rng = np.random.default_rng(2)
    values = {
        "N": 200, "K": 3, "J": 4, "g": rng.integers(1, 5, 200), "X": rng.normal(size=(200, 3)),
        "y": rng.normal(size=200),
    }  # fmt: skip
    expected, found = (ulam.StanModel(f"{data} model {{ {loop} }}", values, opt_level=level) for level in (0, 3))
    for at in (0, 5, 12):
        assert_same_outcomes(expected, found, at=at)
