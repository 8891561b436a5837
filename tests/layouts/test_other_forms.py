"""Programs in other forms than the plain one: they get its layouts, and errors and special values stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """
data {
  int<lower=0> N, K, J;
  array[N] int c, d, g;
  array[N] int<lower=0> z;
  vector[N] x, y;
  vector<lower=0>[N] t;
  matrix[N, K] X;
  array[N] vector[K] outcomes;
  array[N, K] int<lower=0, upper=1> caught;
}
transformed data {
  array[sum(d)] int ones;
  array[N - sum(d)] int zeros;
  {
    int one = 1, zero = 1;
    for (n in 1 : N) {
      if (d[n]) { ones[one] = n; one += 1; } else { zeros[zero] = n; zero += 1; }
    }
  }
}
parameters { real a, b; vector<lower=0, upper=1>[K] p; vector[K] beta; real<lower=0> s; }
"""
FORMS = {
    # an element of a vector that an inner loop adds to
    "sum_in_a_vector": (
        "for (n in 1 : N) { vector[2] of = [a, b]'; for (k in 1 : K) of[1] += bernoulli_lpmf(caught[n, k] | p[k]);"
        " target += log_sum_exp(of); }",
        "unique rows",
    ),
    # means that several loops with branches fill
    "branches_in_turn": (
        "vector[N] mu = rep_vector(a, N); for (n in 1 : N) if (c[n] == 1) mu[n] += b;"
        " for (n in 1 : N) { if (d[n]) mu[n] += beta[1] * x[n]; else mu[n] -= b; } y ~ normal(mu, s);",
        "reduced rows",
    ),
    "branches_of_counts": (
        "vector[N] mu = rep_vector(a, N); for (n in 1 : N) if (c[n] == 1) mu[n] += b;"
        " for (n in 1 : N) { if (d[n]) mu[n] += beta[1]; } z ~ poisson_log(mu);",
        "unique rows",
    ),
    # a vector of each row, which is a copy that loops change
    "copy_in_each_row": (
        "for (n in 1 : N) { vector[K] eta = beta; for (k in 1 : K) { if (caught[n, k]) eta[k] += a; }"
        " eta += b * d[n]; caught[n] ~ bernoulli_logit(eta); }",
        "unique rows",
    ),
    # a vector that is declared ahead of the loop
    "vector_ahead_of_the_loop": (
        "vector[K] of; for (n in 1 : N) { real eta = a + b * d[n]; of[1] = inv_logit(eta);"
        " for (k in 2 : (K - 1)) of[k] = inv_logit(eta - k) - inv_logit(eta - k - 1);"
        " of[K] = inv_logit(b); target += log(of[1 + c[n]]); }",
        "unique rows",
    ),
    # columns that the product puts together
    "row_put_together": (
        "for (n in 1 : N) y[n] ~ normal(append_col(1, X[n]) * append_row(a, beta), s);",
        "reduced rows",
    ),
    "columns_put_together": (
        "y ~ normal(append_col(rep_vector(1, N), X) * append_row(a, beta), s);",
        "reduced rows",
    ),
    # means that other statements read, too, filled by loops and by a product, step by step
    "mean_of_two_densities": (
        "vector[N] mu = a + b * x + beta[g]; y ~ normal(mu, s); z ~ poisson_log(mu);",
        "reduced rows",
    ),
    "mean_of_a_density_and_a_sum": (
        "vector[N] mu = a + X * beta; y ~ normal(mu, s); target += -0.1 * fmax(dot_self(mu), b);",
        "reduced rows",
    ),
    "mean_made_of_another_one": (
        "vector[N] e = X * beta; vector[N] mu = a + e + b * x; y ~ normal(mu, s); z ~ poisson_log(mu - e);"
        " c ~ poisson_log(e + a);",
        "reduced rows",
    ),
    "mean_of_some_rows": (
        "vector[N] mu = a + X * beta; y ~ normal(mu, s); if (N > 1) z[2 : N] ~ poisson_log(b + mu[2 : N]);",
        "reduced rows",
    ),
    "mean_of_counts_that_repeat": (
        "vector[N] mu = a + b * to_vector(c) + beta[g]; y ~ normal(mu, s); z ~ poisson_log(mu);",
        "unique rows",
    ),
    # a matrix with a column for each outcome, filled by columns and by rows
    "columns_of_outcomes": (
        "matrix[N, 2] mu; mu[, 1] = a + b * x; mu[, 2] = b + X * beta; y ~ normal(mu[, 1], s);"
        " z ~ poisson_log(mu[, 2]);",
        "reduced rows",
    ),
    "rows_of_outcomes": (
        "array[2] vector[N] mu; for (n in 1 : N) { mu[1, n] = a + b * x[n]; mu[2, n] = b + 0.1 * c[n]; }"
        " y ~ normal(mu[1], s); for (n in 1 : N) z[n] ~ poisson_log(mu[2, n]);",
        "reduced rows",
    ),
    "counts_in_a_column": (
        "matrix[N, 3] mu; mu[, 1] = a + b * x; mu[, 3] = b + 0.1 * to_vector(c); y ~ normal(mu[, 1], s);"
        " z ~ poisson_log(mu[, 3]);",
        "unique rows",
    ),
    # lists of the rows of two kinds, of a vector that evaluates a function
    "lists_of_kinds": (
        "vector[N] m = exp(a + b * to_vector(d)); z[ones] ~ neg_binomial_2(m[ones], s);"
        " z[zeros] ~ neg_binomial_2(m[zeros], 1 + s);",
        "unique rows",
    ),
    "lists_of_seen_and_unseen": (
        "vector[N] m = a + b * x + beta[g]; y[ones] ~ normal(m[ones], s);"
        " target += normal_lccdf(y[zeros] | m[zeros], s);",
        "reduced rows",
    ),
    # means of vectors that a nest fills, element by element
    "elements_of_mean_vectors": (
        "array[N] vector[K] mu; for (n in 1 : N) for (k in 1 : K) mu[n, k] = a + beta[k] * x[n];"
        " outcomes ~ multi_normal_cholesky(mu, add_diag(rep_matrix(0, K, K), s));",
        "reduced rows",
    ),
    # cutpoints that each row checks
    "checks_of_cutpoints": (
        "vector[2] cuts = [a, a + s]'; for (n in 1 : N) { real eta = b; if (d[n]) eta += beta[1];"
        " (1 + c[n]) ~ ordered_logistic(eta, cuts); }",
        "unique rows",
    ),
    # sums to an end that data say
    "ordered_effects": (
        "for (n in 1 : N) { real e = 0; for (k in 1 : c[n]) e += beta[k]; y[n] ~ normal(a + b * e, s); }",
        "reduced rows",
    ),
    "slices_of_effects": (
        "for (n in 1 : N) { if (c[n] == 0) y[n] ~ normal(a, s); else y[n] ~ normal(a + b * sum(beta[1 : c[n]]), s); }",
        "reduced rows",
    ),
    # coefficients of groups in rows of a matrix of two columns
    "rows_of_coefficients": (
        "matrix[3, 2] u = append_col(beta[1 : 3], [a, b, a]');"
        " y ~ normal(a + rows_dot_product(u[g], append_col(x, t)), s);",
        "reduced rows",
    ),
    # powers of data
    "hazard_by_hand": (
        "for (n in 1 : N) { real eta = a + b * d[n]; target += d[n] * (log(s) + (s - 1) * log(1 + t[n]) + eta)"
        " - exp(eta) * (1 + t[n])^s; }",
        "unique rows",
    ),
    "powers_of_a_vector": ("target += -dot_product(exp(a + b * to_vector(d)), t .^ s);", "unique rows"),
}  # fmt: skip


def program(form: str) -> str:
    """A program with one of the forms."""
    return f"{HEAD}model {{ a ~ std_normal(); b ~ std_normal(); beta ~ std_normal(); {FORMS[form][0]} }}"


def data_of(n: int, columns: int = 3) -> dict[str, Any]:
    """Rows of few kinds, but for `x`, `y` and `X`."""
    rng = np.random.default_rng(2)
    return {
        "N": n, "K": columns, "J": 3, "c": rng.integers(0, 3, n), "d": rng.integers(0, 2, n), "z": rng.poisson(1, n),
        "g": rng.integers(1, 4, n), "x": rng.normal(size=n), "y": rng.normal(size=n), "t": rng.integers(0, 5, n) * 0.5,
        "X": rng.normal(size=(n, columns)), "outcomes": rng.normal(size=(n, columns)),
        "caught": rng.integers(0, 2, (n, columns)),
    }  # fmt: skip


def taken(model: ulam.StanModel) -> set[str]:
    """The layouts that are used."""
    return {choice.layout for choice in model.layout_choices() if choice.taken}


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_have_the_layout(form: str) -> None:
    """Of few rows and of none, too, values and gradients are those of level 0."""
    for n in (600, 3, 0):
        expected, found = (ulam.StanModel(program(form), data_of(n), opt_level=level) for level in (0, 3))
        for at in (2, 5):
            assert_same_outcomes(expected, found, at)
        assert FORMS[form][1] in taken(found) or n < 600


def test_sums_in_elements_that_are_not_there_are_errors() -> None:
    """Of the same text, though the loop that adds to them may have no iteration: then there is none."""
    text = program("sum_in_a_vector").replace("of[1] += bernoulli", "of[c[n]] += bernoulli")
    beyond = np.where(np.arange(50) == 7, 3, 1)
    for elements, columns in ((np.full(50, 2), 3), (beyond, 0)):
        data = data_of(50, columns) | {"c": elements}
        assert_same_outcomes(*(ulam.StanModel(text, data, opt_level=level) for level in (0, 3)), at=2)
    texts: list[str] = []
    for level in (0, 3):
        model = ulam.StanModel(text, data_of(50) | {"c": beyond}, opt_level=level)
        with pytest.raises(ulam.FatalError) as error:
            model.log_density_gradient(np.zeros(model.param_unc_num()))
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_elements_that_arms_read_may_not_be_there() -> None:
    """A coefficient that no row reads, of a vector without elements."""
    text = program("branches_in_turn")
    for chosen in (0, 1):
        data = data_of(300, chosen) | {"d": np.full(300, chosen)}
        expected, found = (ulam.StanModel(text, data, opt_level=level) for level in (0, 3))
        assert_same_outcomes(expected, found, 0)


def test_branches_of_parameters_keep_their_loops() -> None:
    """Means that a parameter chooses are no data."""
    text = program("branches_in_turn").replace("if (d[n]) mu", "if (x[n] * a > 0) mu")
    expected, found = (ulam.StanModel(text, data_of(300), opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, 0)
    assert "reduced rows" not in taken(found)


@pytest.mark.parametrize("declared", ["vector<lower=0>", "vector"])
def test_powers_of_zero_and_of_what_is_negative(declared: str) -> None:
    """Exponents that are whole numbers, 0 and infinite ones; data that may be negative keep their powers."""
    text = f"""
    data {{ int N; {declared}[N] t; }}
    parameters {{ real a; }}
    model {{ for (n in 1 : N) target += -pow(t[n], a); }}
    """
    times = np.concatenate(([0.0, 0.0, 1.0, 1e-310, 1e300], np.arange(200) % 7 * 0.5))
    times = times if "lower" in declared else np.concatenate((times, [-1.0, -2.0]))
    expected, found = (ulam.StanModel(text, {"N": len(times), "t": times}, opt_level=level) for level in (0, 3))
    for at in (0.0, 1.0, 2.0, 3.0, 0.5, -1.0, np.inf, -np.inf, np.nan):
        one, other = (outcome(model, np.array([at])) for model in (expected, found))
        assert not isinstance(one, str) and not isinstance(other, str)
        np.testing.assert_allclose(other[0], one[0], rtol=1e-12)
        np.testing.assert_allclose(other[1], one[1], rtol=1e-12)
