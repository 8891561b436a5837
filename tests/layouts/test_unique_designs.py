"""Equal rows of designs are computed once, where several loops hand on what they compute of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from level_outcomes import outcome

import ulam
from ulam.runtime.layout_choices import LayoutChoice

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int N; int K; int J;
  matrix[N, K] X;
  array[N] int<lower=0> y;
  array[N] int<lower=1, upper=J> g;
  int prior;
}
"""
PROGRAMS = {
    "strips": "parameters { real a; vector[K] b; } model { y ~ bernoulli_logit_glm(X, a, b); b ~ normal(0, 1); }",
    "filled": """
parameters { vector[K] b; vector[J] u; }
model {
  vector[N] mu = X * b;
  for (n in 1:N) mu[n] += u[g[n]];
  for (n in 1:N) target += poisson_lpmf(y[n] | 0.1 + Phi(mu[n]));
  u ~ normal(0, 1);
}""",
    "kernel": """
parameters { matrix[K, J] b; }
model {
  matrix[N, J] eta = X * b;
  for (n in 1:N) g[n] ~ categorical_logit(eta[n]');
  to_vector(b) ~ normal(0, 1);
}""",
    "in a branch": """
parameters { real a; vector[K] b; vector[J] u; }
model {
  if (!prior) {
    vector[N] mu = rep_vector(0, N);
    mu += a;
    for (n in 1:N) mu[n] += u[g[n]];
    target += poisson_log_glm_lpmf(y | X, mu, b);
  }
  u ~ normal(0, 1);
}""",
    "inflated": """
parameters { real<lower=0, upper=1> q; vector[K] b; }
model {
  vector[N] eta = X[, 2:K] * b[2:K];
  for (n in 1:N) {
    if (y[n] == 0) target += log_sum_exp(log(q), log1m(q) - exp(eta[n]));
    else target += log1m(q) + poisson_log_lpmf(y[n] | eta[n]);
  }
}""",
    # What the loop reads is filled ahead of the branch in which it asks for cut points that are in order.
    "ahead of a branch": """
parameters { ordered[J - 1] c; vector[K] b; vector[J] u; }
model {
  vector[N] eta = X[, 1] * b[1] + X[, 2] * b[2];
  for (n in 1:N) eta[n] += u[g[n]];
  for (n in 1:N) target += ordered_logistic_lpmf(1 + y[n] | eta[n], c);
}""",
    # Memory of a row, with values that are kept for its derivatives.
    "vectors of rows": """
parameters { matrix[J - 1, 2] A; vector[J - 1] b; }
model {
  for (n in 1:N) {
    vector[J] eta = append_row(0, A[, 1 + y[n]] + b * X[n, 1]);
    g[n] ~ categorical_logit(eta);
  }
}""",
    "rows of an array": """
parameters { vector[K] b; }
transformed parameters { vector[N] eta; for (n in 1:N) eta[n] = dot_product(X[n], b); }
model { for (n in 1:N) y[n] ~ bernoulli(Phi_approx(eta[n])); }""",
}


def data_of(n: int, *, repeated: bool = True, columns: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(11)
    design = rng.integers(0, 2, (n, columns)) * 0.5 if repeated else rng.normal(size=(n, columns))
    return {
        "N": n, "K": columns, "J": 3, "X": design, "y": rng.integers(0, 2, n), "g": rng.integers(1, 4, n), "prior": 0,
    }  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> Mapping[str, ulam.StanProgram]:
    return {name: ulam.StanProgram(DATA + text) for name, text in PROGRAMS.items()}


def choices_of(model: ulam.StanModel) -> list[LayoutChoice]:
    return [choice for choice in model.layout_choices() if choice.layout == "unique rows"]


def assert_same(model: ulam.StanModel, other: ulam.StanModel, point: np.ndarray[Any, Any], size: float) -> None:
    """`size`: that of what is added up."""
    one, two = outcome(model, point), outcome(other, point)
    if isinstance(one, str) or isinstance(two, str):
        assert one == two
        return
    assert one[0] == pytest.approx(two[0], rel=1e-12, abs=1e-10 * size, nan_ok=True)
    np.testing.assert_allclose(one[1], two[1], rtol=1e-12, atol=1e-10 * size)


@pytest.mark.parametrize("n", [0, 1, 40, 255, 256, 900])
@pytest.mark.parametrize("name", PROGRAMS)
def test_equal_rows_are_computed_once(programs: Mapping[str, ulam.StanProgram], name: str, n: int) -> None:
    data = data_of(n)
    model, plain = programs[name](data), programs[name](data, layouts=False)
    for seed in range(2):
        point = np.random.default_rng(seed).normal(0, 0.5, model.param_unc_num())
        assert_same(model, plain, point, max(n, 1))
    (choice,) = choices_of(model)
    if n == 900:
        kinds = np.unique(np.column_stack([data["X"], data["y"], data["g"]]), axis=0).shape[0]
        assert choice.taken and choice.figures["rows"] == 900
        assert choice.figures["different"] <= kinds and choice.figures["computed"] < 600


@pytest.mark.parametrize("name", PROGRAMS)
def test_level_0_agrees(programs: Mapping[str, ulam.StanProgram], name: str) -> None:
    data = data_of(300)
    model, plain = programs[name](data), ulam.StanModel(DATA + PROGRAMS[name], data=data, opt_level=0)
    point = np.random.default_rng(3).normal(0, 0.5, model.param_unc_num())
    assert_same(model, plain, point, 300)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_that_differ_stay_as_they_are(programs: Mapping[str, ulam.StanProgram], name: str) -> None:
    data = data_of(600, repeated=False)
    model, plain = programs[name](data), programs[name](data, layouts=False)
    assert_same(model, plain, np.full(model.param_unc_num(), 0.2), 600)
    (choice,) = choices_of(model)
    assert not choice.taken and "few" in choice.reason and choice.figures["bytes"] <= 4 * 600 * 8


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e150, -800])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_not_finite_travels_as_before(
    programs: Mapping[str, ulam.StanProgram], name: str, value: float
) -> None:
    data = data_of(300)
    model, plain = programs[name](data), programs[name](data, layouts=False)
    for k in range(model.param_unc_num()):
        point = np.full(model.param_unc_num(), 0.1)
        point[k] = value
        one, two = outcome(model, point), outcome(plain, point)
        assert isinstance(one, str) == isinstance(two, str)
        if isinstance(one, str) or isinstance(two, str):
            assert one == two
        else:
            assert one[0] == pytest.approx(two[0], rel=1e-11, nan_ok=True)
            np.testing.assert_allclose(one[1], two[1], rtol=1e-9, atol=1e-7)


def test_the_error_of_a_row_is_that_of_the_first_in_the_users_order() -> None:
    text = (
        DATA + "parameters { vector[K] b; } model { vector[N] mu = X * b; for (n in 1:N) y[n] ~ poisson(1 + mu[n]); }"
    )
    data = data_of(300)
    data["X"][:7] = 0
    told = [outcome(ulam.StanModel(text, data=data, opt_level=level), np.full(5, -1.0)) for level in (0, 3)]
    assert told[0] == told[1] and "lambda is -1.5" in str(told[1])


def test_a_branch_that_is_not_taken_has_no_rows(programs: Mapping[str, ulam.StanProgram]) -> None:
    model = programs["in a branch"](data_of(300) | {"prior": 1})
    assert model.log_density(np.zeros(model.param_unc_num())) == 0
    (choice,) = choices_of(model)
    assert choice.figures["rows"] == 0


NOT_TAKEN = {
    "a parameter of each row": "parameters { vector[K] b; vector[N] e; } model { y ~ poisson_log_glm(X, e, b); }",
    "the row before": """
parameters { vector[K] b; }
model { vector[N] mu = X * b; for (n in 2:N) y[n] ~ poisson_log(mu[n] + 0.5 * mu[n - 1]); }""",
    "the number of a row": """
parameters { vector[K] b; }
model { vector[N] mu = X * b; for (n in 1:N) target += poisson_log_lpmf(y[n] | mu[n] + b[1] * n); }""",
    "something else reads it": """
parameters { vector[K] b; }
model { vector[N] mu = X * b; y ~ poisson(exp(mu)); if (max(mu) > 0) target += -max(mu); }""",
    "a design of parameters": """
parameters { vector[K] b; matrix[N, K] Z; } model { vector[N] mu = Z * b; y ~ poisson_log(mu); }""",
}


@pytest.mark.parametrize("text", NOT_TAKEN.values(), ids=list(NOT_TAKEN))
def test_where_rows_are_not_alike(text: str) -> None:
    data = data_of(60)
    model = ulam.StanModel(DATA + text, data=data)
    assert not any(choice.taken for choice in choices_of(model))
    plain = ulam.StanModel(DATA + text, data=data, opt_level=0)
    assert_same(model, plain, np.full(model.param_unc_num(), 0.1), 60)
