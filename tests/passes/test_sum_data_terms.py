"""`sum-data-terms`: terms of data are one number, whatever it is."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from ulam import StanModel, StanProgram

TERMS = """
data { int N; int K; array[N] int y; array[N] int trials; vector[N] w; matrix[N, K] X; }
parameters { vector[K] b; }
model {
  target += binomial_logit_lpmf(y | trials, X * b);
  for (n in 1:N) {
    if (w[n] > 0) {
      target += log(w[n]) - w[n] * b[1];
    } else {
      target += w[n];
    }
  }
}
"""


@pytest.fixture(scope="module")
def programs() -> tuple[StanProgram, StanProgram]:
    return StanProgram(TERMS, opt_level=0), StanProgram(TERMS, opt_level=3)


def data(w: list[float]) -> str:
    n = len(w)
    trials = [7, 0, 3, 12, 1][:n]
    X = [[0.5, -1.0], [0.0, 2.0], [1.0, 1.0], [-0.25, 0.125], [3.0, -2.0]][:n]
    return json.dumps({"N": n, "K": 2, "y": [3, 0, 3, 0, 1][:n], "trials": trials, "w": w, "X": X})


@pytest.mark.parametrize(
    "w", [[], [0.5, -1.0, 2.0, 0.0, 1e-300], [1e308, -1e308, 3.0], [math.inf, -1.0], [1.0, math.nan]]
)
def test_value_and_gradient_stay(programs: tuple[StanProgram, StanProgram], w: list[float]) -> None:
    models = [program(data(w)) for program in programs]
    for theta in ([0.3, -0.2], [0.0, 4.0]):
        (value, gradient), (found, its_gradient) = (m.log_density_gradient(theta) for m in models)
        np.testing.assert_allclose(found, value, rtol=1e-13)
        np.testing.assert_allclose(its_gradient, gradient, rtol=1e-13)


def test_no_gradient_evaluates_them() -> None:
    """The function is called when data are bound alone."""
    model = StanModel(TERMS, data([0.5, -1.0]), opt_level=3)
    lines = model.llvm_ir("gradient_propto").split("define ")
    evaluate = next(part for part in lines if "@evaluate(" in part)
    assert "lgamma" not in evaluate
    assert "lchoose" not in evaluate


COUNTS = """
data { int N; int K; array[N] int y; vector[N] z; matrix[N, K] X; }
parameters { vector[K] b; real a; real<lower=0> phi; }
model {
  target += poisson_log_glm_lpmf(y | X, a * z, b);
  target += poisson_log_lpmf(y | z + X * b);
}
"""


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 700])
def test_constants_of_rows_of_strips_are_tabulated(n: int) -> None:
    """Beside what a product hands on strip by strip, where an infinite rate keeps them from being summed."""
    rng = np.random.default_rng(n)
    values = {"N": n, "K": 3, "y": rng.poisson(3, n), "z": rng.normal(size=n), "X": rng.normal(size=(n, 3))}
    model, plain = (StanModel(COUNTS, values, opt_level=level) for level in (3, 0))
    evaluate = next(part for part in model.llvm_ir("gradient_full").split("define ") if "@evaluate(" in part)
    assert "lgamma" not in evaluate
    for theta in (rng.normal(size=5), np.array([800.0, 1, 1, 1, 0])):
        (value, gradient), (found, slopes) = (each.log_density_gradient(theta) for each in (plain, model))
        np.testing.assert_allclose(found, value, rtol=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-10, atol=1e-10)
