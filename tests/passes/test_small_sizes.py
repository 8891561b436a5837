"""`small-sizes`: versions of nests for few components agree with level 0, with no rows and in errors, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ulam import Rejection, StanModel
from ulam.passes.loops.small_sizes import SmallSizes
from ulam.passes.remarks import Remark, collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """data {{ int N; int K; matrix[N, K] X; vector[N] y; array[N] int g; }}
parameters {{ vector[K] b; real a; real<lower=0> s; matrix[N + 1, K] u; }}
model {{ {} }}"""
COLUMNS = """for (n in 1:N) { real m = a; for (k in 1:K) m += square(X[n, k] - b[k]); y[n] ~ student_t(4, m, s); }"""
LAGS = """for (n in (K + 1):N) { real m = a; for (k in 1:K) m += b[k] * y[n - k]; y[n] ~ student_t(5, m, s); }"""
STATES = """
  vector[K] x = rep_vector(a, K);
  for (n in 1:N) { for (k in 1:K) x[k] = tanh(b[k] * x[k] + 0.1 * y[n]); y[n] ~ normal(sum(x), s); }
"""
VARIANCES = """
  vector[N] v;
  for (n in 1:min(K, N)) v[n] = s;
  for (n in (K + 1):N) { v[n] = s; for (k in 1:K) v[n] += square(b[k]) * (square(y[n - k]) + 0.1 * v[n - k]); }
  y ~ normal(a, sqrt(v));
"""
CHECKED = """
  for (n in 1:N) {
    real p = a;
    for (k in 1:K) p += X[n, k] * b[k];
    1 ~ bernoulli(p);
    if (b[K] > 100) reject("too much");
  }
"""
GROUPS = """for (n in 1:N) { real m = a; for (k in 1:K) m += X[n, k] * u[g[n], k]; y[n] ~ student_t(4, m, s); }"""
NESTS = {"columns": COLUMNS, "lags": LAGS, "states": STATES, "variances": VARIANCES, "checked": CHECKED}


def remarks(text: str) -> list[Remark]:
    """What the pass tells of a gradient."""
    with collect_remarks() as found:
        Compiler(text, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    return [remark for remark in found if remark.pass_name == SmallSizes.name]


def outcome(model: StanModel, theta: np.ndarray) -> tuple[Any, Any]:
    """Value and gradient; the error's text in their place if the point is refused."""
    try:
        return model.log_density_gradient(theta)
    except Rejection as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", NESTS)
def test_versions_agree_with_level_0(name: str) -> None:
    text = HEAD.format(NESTS[name])
    rng = np.random.default_rng(sum(map(ord, name)))
    for K in (1, 2, 3, 4):
        for N in (0, 1, 9):
            data = {
                "N": N, "K": K, "X": rng.normal(0, 0.2, (N, K)), "y": rng.normal(0, 1, N), "g": [1] * N,
            }  # fmt: skip
            models = [StanModel(text, data, opt_level=level) for level in (0, 3)]
            # A probability of 0.5 and one out of range; a parameter that is no number.
            for center in (0.5, 3.0, np.nan):
                theta = rng.normal(0, 0.1, models[0].param_unc_num())
                theta[K] = center
                (plain, gradient), (value, new) = (outcome(model, theta) for model in models)
                if isinstance(gradient, str):
                    assert (plain, gradient) == (value, new)
                else:
                    np.testing.assert_allclose(value, plain, rtol=1e-10, atol=1e-10)
                    np.testing.assert_allclose(new, gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["columns", "lags", "states", "variances"])
def test_the_heaviest_nest_has_versions(name: str) -> None:
    (told,) = remarks(HEAD.format(NESTS[name]))
    assert told.done
    assert "versions for inner loops of 2" in told.message


def test_rows_that_data_choose_for_have_none() -> None:
    assert remarks(HEAD.format(GROUPS)) == []


def test_there_is_a_budget() -> None:
    """A long body has fewer versions, a longer one none, and that is told."""
    term = "y[n] ~ normal(m * {0}, s + {0});"
    found: list[tuple[bool, str]] = []
    for count in (1, 6, 40):
        body = " ".join(f"m += (m * {j}.5 + X[n, k] * {j}) * b[k];" for j in range(1, count + 1))
        told = remarks(HEAD.format(f"for (n in 1:N) {{ real m = a; for (k in 1:K) {{ {body} }} {term.format(1)} }}"))
        found.append((told[0].done, told[0].message))
    assert [done for done, _ in found] == [True, True, False]
    assert "2 and 3" in found[0][1]
    assert "too much code" in found[2][1]
