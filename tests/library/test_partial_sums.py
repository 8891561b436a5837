"""`reduce_sum` and `map_rect`: the same as the calls that they stand for, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from translation_validation import Subject, single_passes

from ulam import StanModel
from ulam.runtime.errors import FatalError, Rejection

pytestmark = pytest.mark.usefixtures("quick_code")

FUNCTIONS = """functions {
  real normals(array[] real y, int first, int last, real mu, real sigma) { return normal_lpdf(y | mu, sigma); }
  real counts_lpmf(array[] int n, int first, int last, vector eta) {
    return poisson_log_lupmf(n | eta[first:last]) + dot_self(eta[first:last]);
  }
  real rows_of(array[] vector x, int first, int last, matrix A) {
    real s = 0;
    for (i in first:last) s += quad_form(A, x[i - first + 1]);
    return s;
  }
  vector job(vector shared, vector own, data array[] real x, data array[] int k) {
    return [sum(shared) * own[1] * x[1], own[2] ^ 2 + k[1], log_sum_exp(own)]';
  }
}
data { int N; int M; array[N] real y; array[N] int n; array[M, 1] real x; array[M, 1] int k; int grainsize; }
parameters { real mu; real<lower=0> sigma; vector[N] eta; vector[2] a; array[M] vector[2] b; matrix[2, 2] A; }
"""
CALLED = """model {
  target += reduce_sum(normals, y, grainsize, mu, sigma);
  target += reduce_sum_static(counts_lupmf, n, grainsize, eta);
  target += 0.5 * reduce_sum(rows_of, b, grainsize, A);
  { vector[3 * M] z = map_rect(job, a, b, x, k); target += dot_self(z); }
}"""
WRITTEN = """model {
  target += normals(y, 1, N, mu, sigma);
  target += counts_lupmf(n | 1, N, eta);
  target += 0.5 * rows_of(b, 1, M, A);
  {
    vector[3 * M] z;
    for (m in 1:M) z[3 * m - 2 : 3 * m] = job(a, b[m], x[m], k[m]);
    target += dot_self(z);
  }
}"""
DATA: dict[str, Any] = {
    "N": 4, "M": 2, "y": [0.1, 0.5, -0.3, 2.0], "n": [1, 2, 0, 3], "x": [[0.5], [0.7]], "k": [[2], [3]], "grainsize": 1,
}  # fmt: skip
SUBJECT = Subject(FUNCTIONS + CALLED, DATA)


@pytest.mark.parametrize("level", range(5))
def test_as_written_out(level: int) -> None:
    called, written = (StanModel(FUNCTIONS + model, DATA, opt_level=level) for model in (CALLED, WRITTEN))
    theta = np.random.default_rng(level).uniform(-1, 1, called.param_unc_num())
    for propto in (True, False):
        value, gradient = called.log_density_gradient(theta, propto=propto)
        expected, expected_gradient = written.log_density_gradient(theta, propto=propto)
        assert value == pytest.approx(expected, rel=1e-13)
        assert called.log_density(theta, propto=propto) == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-13)
    direction = np.cos(np.arange(len(theta)))
    found = [model.log_density_hessian_vector_product(theta, direction)[1] for model in (called, written)]
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("pipeline", single_passes())
def test_passes(pipeline: str) -> None:
    units = ("gradient_propto", "constrain")
    assert not SUBJECT.compare(pipeline, units=units).differences


def test_nothing_to_sum() -> None:
    """The function is not called: it would reject."""
    program = """functions {
      real part(array[] int n, int first, int last, real a) { reject("called"); return a; }
      vector job(vector a, vector b, data array[] real x, data array[] int k) { reject("called"); return a; }
    }
    data { int N; array[N] int n; array[N] vector[1] b; array[N, 1] real x; array[N, 1] int k; }
    parameters { real a; }
    model { target += reduce_sum(part, n, 1, a) + size(map_rect(job, [a]', b, x, k)); }"""
    model = StanModel(
        program, {"N": 0, "n": [], "b": np.zeros((0, 1)), "x": np.zeros((0, 1)), "k": np.zeros((0, 1), int)}
    )
    assert model.log_density_gradient(np.array([0.5]))[0] == 0.0


def test_errors() -> None:
    theta = np.zeros(16)
    model = StanModel(FUNCTIONS + CALLED, {**DATA, "grainsize": 0})
    with pytest.raises(Rejection, match="reduce_sum: grainsize is 0, but must be positive!"):
        model.log_density(theta)
    program = FUNCTIONS + "model { target += sum(map_rect({0}, a, b, x{1}, k)); }"
    with pytest.raises(FatalError, match="map_rect: there are parameters of 2 jobs, but real data of 1"):
        StanModel(program.replace("{0}", "job").replace("{1}", "[1:1]"), DATA).log_density(theta)


@pytest.mark.parametrize("sizes", [[1, 3, 2, 5, 0, 4], [0, 4, 1], [3, 1]])
def test_jobs_of_different_sizes(sizes: list[int]) -> None:
    head = """
      functions {
        vector job(vector shared, vector own, data array[] real x, data array[] int k) {
          vector[k[1]] r;
          for (i in 1:k[1]) r[i] = shared[1] * own[1]^i * x[1];
          return r;
        }
      }
      data { int M; array[M, 1] real x; array[M, 1] int k; }
      parameters { vector[1] a; array[M] vector[1] b; }
      model {
        vector[sum(k[, 1])] z;
        {0}
        target += dot_product(z, linspaced_vector(size(z), 1, 2));
      }"""
    written = "int p = 1; for (m in 1:M) { z[p:(p + k[m, 1] - 1)] = job(a, b[m], x[m], k[m]); p += k[m, 1]; }"
    data = {"M": len(sizes), "x": [[n + 0.5] for n in range(len(sizes))], "k": [[k] for k in sizes]}
    called, plain = (StanModel(head.replace("{0}", s), data) for s in ("z = map_rect(job, a, b, x, k);", written))
    theta = np.random.default_rng(1).normal(size=called.param_unc_num())
    value, gradient = called.log_density_gradient(theta)
    expected, expected_gradient = plain.log_density_gradient(theta)
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-12, atol=1e-13)


def test_in_generated_quantities_and_functions() -> None:
    functions, _, rest = FUNCTIONS.partition("data {")
    inner = functions.rpartition("}")[0]
    program = (
        inner
        + "  real around(array[] real y, real mu) { return reduce_sum(normals, y, 2, mu, 1.5); }\n}\n"
        + "data {"
        + rest.partition("parameters")[0].rpartition("}")[0]
        + " real m; vector[2] a; array[M] vector[2] b; }\n"
        + "generated quantities { real s = around(y, m); vector[3 * M] z = map_rect(job, a, b, x, k); }"
    )
    data = {**DATA, "m": 0.25, "a": [0.3, 0.4], "b": [[1.0, 2.0], [3.0, 4.0]]}
    model = StanModel(program, data)
    values = model.param_constrain(np.zeros(0), include_gq=True, rng=model.new_rng(1))
    found = dict(zip(model.param_names(include_gq=True), values, strict=True))
    residuals = (np.array(DATA["y"]) - 0.25) / 1.5
    assert found["s"] == pytest.approx(np.sum(-0.5 * residuals**2 - np.log(1.5) - 0.5 * np.log(2 * np.pi)))
    expected = [0.35, 6.0, np.logaddexp(1, 2), 1.47, 19.0, np.logaddexp(3, 4)]
    np.testing.assert_allclose([found[f"z.{n}"] for n in range(1, 7)], expected)
