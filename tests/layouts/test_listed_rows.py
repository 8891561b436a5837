"""Rows of a kind that a program lists: what they share is computed where they read it (`elements-by-index`), and equal
rows are computed once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, outcome

import ulam
from ulam.passes.loops.elements_by_index import ElementsByIndex
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

PROGRAM = """
data { int N; array[N] int<lower=0> y; vector[N] x; array[N] int<lower=1, upper=4> g; }
transformed data {
  int zeros = 0;
  for (n in 1 : N) zeros += y[n] == 0;
  array[zeros] int zero;
  array[N - zeros] int other;
  {
    int a = 0; int b = 0;
    for (n in 1 : N) { if (y[n] == 0) { a += 1; zero[a] = n; } else { b += 1; other[b] = n; } }
  }
}
parameters { real a; real b; vector[4] u; real<lower=0, upper=1> p; }
model {
  vector[N] eta = a + b * x + u[g];
  for (k in 1 : zeros) target += log_mix(p, 0, poisson_log_lpmf(0 | eta[zero[k]]));
  target += (N - zeros) * log1m(p);
  target += poisson_log_lpmf(y[other] | eta[other]);
}
"""
KEPT = {
    "read otherwise, too": "vector[N] eta = a + b * x; target += poisson_log_lpmf(y | eta[g]); target += -max(eta);",
    "costly elements": "vector[N] eta = exp(a + b * x); for (n in 1 : N) target += -log1p(eta[g[n]] * y[n]);",
    "parameters of elements": "vector[N] eta; for (n in 1 : N) eta[n] = u[n, 2] * a + b; "
    "target += poisson_log_lpmf(y | eta[g]);",
    "an element of each row": "vector[N] eta = a + b * x; for (n in 1 : N) target += poisson_log_lpmf(y[n] | eta[n]);",
}


def data_of(n: int, *, repeated: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 3, n) * 0.5 if repeated else rng.normal(size=n)
    return {"N": n, "y": rng.poisson(1, n), "x": x, "g": rng.integers(1, 5, n)}


@pytest.fixture(scope="module")
def program() -> ulam.StanProgram:
    return ulam.StanProgram(PROGRAM)


@pytest.mark.parametrize("n", [0, 1, 5, 900])
@pytest.mark.parametrize("repeated", [True, False])
def test_densities_are_those_of_level_0(program: ulam.StanProgram, n: int, repeated: bool) -> None:
    data = data_of(n, repeated=repeated)
    model, plain = program(data), ulam.StanModel(PROGRAM, data, opt_level=0)
    choices = [choice for choice in model.layout_choices() if choice.layout == "unique rows"]
    assert len(choices) == 2
    assert all(choice.taken == repeated for choice in choices if n == 900)
    rng = np.random.default_rng(1)
    for value in (0.3, np.nan, np.inf, -800.0):
        point = rng.normal(0, 0.4, model.param_unc_num())
        point[1] = value
        one, two = outcome(model, point), outcome(plain, point)
        if isinstance(one, str) or isinstance(two, str):
            assert one == two
        else:
            np.testing.assert_allclose(one[0], two[0], rtol=1e-11, atol=1e-10 * max(n, 1))
            np.testing.assert_allclose(one[1], two[1], rtol=1e-9, atol=1e-10 * max(n, 1))


@pytest.mark.parametrize("name", KEPT)
def test_what_is_read_otherwise_is_filled_once(name: str) -> None:
    """As the remarks tell, and with the gradient of level 0."""
    head = "data { int N; array[N] int y; vector[N] x; array[N] int g; } "
    head += "parameters { real a; real b; array[N] vector[2] u; }"
    text = f"{head} model {{ {KEPT[name]} }}"
    with collect_remarks() as remarks:
        Compiler(text, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    assert not any(remark.pass_name == ElementsByIndex.name for remark in remarks)
    data = data_of(30)
    model, plain = ulam.StanModel(text, data), ulam.StanModel(text, data, opt_level=0)
    point = np.random.default_rng(1).normal(size=plain.param_unc_num()) / 3
    np.testing.assert_allclose(model.log_density_gradient(point)[1], plain.log_density_gradient(point)[1], rtol=1e-10)


DESIGN = """
data { int N; matrix[N, 3] X; vector[N] x, y; array[N] int seen, g; }
transformed data {
  array[sum(seen)] int some;
  array[N - sum(seen)] int others;
  { int a = 0; int b = 0;
    for (n in 1 : N) { if (seen[n]) { a += 1; some[a] = n; } else { b += 1; others[b] = n; } } }
}
parameters { vector[3] b; real a; vector[4] u; real<lower=0> s; }
"""
LISTED = {
    "a product": "vector[N] mu = a + X * b; y[some] ~ normal(mu[some], s);",
    "another list": """vector[N] mu = a + X * b; y[some] ~ normal(mu[some], s);
      target += normal_lccdf(y[others] | mu[others], s);""",
    "loops": """vector[N] mu; for (n in 1 : N) mu[n] = a * x[n] + X[n] * b;
      for (k in 1 : size(some)) y[some[k]] ~ normal(mu[some[k]], s);
      target += normal_lcdf(y[others] | mu[others], s);""",
}
NOT_LISTED = {
    "two elements": "vector[N] mu = X * b; for (n in 1 : N) y[n] ~ normal(mu[n] - a * mu[g[n]], s);",
    "two lists": "vector[N] mu = X * b; for (n in 1 : N) y[n] ~ normal(mu[seen[n] + 1] - mu[g[n]], s);",
    "elements of groups": "vector[4] mu = a + u; y ~ normal(mu[g] + X * b, s); target += -max(mu);",
}


@pytest.mark.parametrize("name", [*LISTED, *NOT_LISTED])
def test_normal_rows_of_a_list_are_reduced(name: str) -> None:
    rng = np.random.default_rng(3)
    program = ulam.StanProgram(f"{DESIGN}model {{ u ~ std_normal(); {(LISTED | NOT_LISTED)[name]} }}")
    for n in (0, 2, 500):
        values = {
            "N": n, "X": rng.normal(size=(n, 3)), "x": rng.normal(size=n), "y": rng.normal(size=n),
            "seen": rng.integers(0, 2, n), "g": rng.integers(1, min(4, max(n, 1)) + 1, n),
        }  # fmt: skip
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, 3, 8):
            assert_same_outcomes(expected, found, at=at)
    if name in LISTED:
        assert any(choice.layout == "reduced rows" and choice.taken for choice in found.layout_choices())
