"""Differential-algebraic equations: closed forms, Robertson's problem, equations that can be solved for y', errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ulam import StanModel
from ulam.runtime.errors import FatalError, Rejection

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """functions {
  // x = x0 exp(-a t), z = b x + t^2, of which only x has a derivative in time
  vector linear(real t, vector y, vector yp, real a, real b, data int way) {
    if (way == 1) return [not_a_number(), 0]';
    if (way == 2) return [yp[1] + a * y[1]]';
    if (way == 3) return [yp[1] + a * y[1], y[1] - b]';
    if (way == 4 && t > 0.5) return [yp[1] + a / 0, 0]';
    return [exp(yp[1] + a * y[1]) - 1, y[2] - b * y[1] - square(t)]';
  }
}
data { int T; array[T] real ts; real t0; real rel_tol; real abs_tol; int steps; int way; int n; }
transformed data { vector[n] yp0 = rep_vector(0.5, n); }
parameters { real a; real b; vector[2] y0; }
model {
  vector[2] start = [y0[1], b * y0[1] + 0 * y0[2]]';
  array[T] vector[2] y = dae_tol(linear, start, yp0, t0, ts, rel_tol, abs_tol, steps, a, b, way);
  target += y[1][1] + 2 * y[T][1] + 3 * y[T][2];
}
"""
U = np.array([1.3, 0.7, 2.0, 5.0])


def linear(**data: Any) -> StanModel:
    given = {"T": 2, "ts": [0.5, 2.0], "t0": 0.0, "rel_tol": 1e-8, "abs_tol": 1e-10, "steps": 1000, "way": 0, "n": 2}
    return StanModel(PROGRAM, given | data, opt_level=0)


@pytest.mark.parametrize("tolerance", [1e-5, 1e-10])
def test_closed_form(tolerance: float) -> None:
    """Values and derivatives with respect to parameters and initial values are within the tolerance."""
    a, b, x0, _ = U
    early, late = np.exp(-0.5 * a), np.exp(-2 * a)
    value, gradient = linear(rel_tol=tolerance, abs_tol=tolerance).log_density_gradient(U)
    assert value == pytest.approx(x0 * (early + 2 * late + 3 * b * late) + 12, rel=tolerance)
    expected = [x0 * (-0.5 * early - 4 * late - 6 * b * late), 3 * x0 * late, early + 2 * late + 3 * b * late, 0]
    np.testing.assert_allclose(gradient, expected, rtol=3 * tolerance, atol=3 * tolerance)


def test_default_tolerances() -> None:
    text = PROGRAM.replace("dae_tol(", "dae(").replace("rel_tol, abs_tol, steps, a, b, way);", "a, b, way);")
    data = {"T": 2, "ts": [0.5, 2.0], "t0": 0, "rel_tol": 1, "abs_tol": 1, "steps": 1, "way": 0, "n": 2}
    value = StanModel(text, data, opt_level=0).log_density(U)
    assert value == pytest.approx(linear(rel_tol=1e-12, abs_tol=1e-12).log_density(U), rel=1e-8)


ROBERTSON = """functions {
  vector f(real t, vector y, vector yp, real a, real b, real c) {
    return [yp[1] + a * y[1] - b * y[2] * y[3], yp[2] - a * y[1] + b * y[2] * y[3] + c * square(y[2]), sum(y) - 1]';
  }
  vector g(real t, vector y, real a, real b, real c) {
    real one = -a * y[1] + b * y[2] * y[3];
    real three = c * square(y[2]);
    return [one, -one - three, three]';
  }
}
data { int T; array[T] real ts; real tol; int is_dae; int k; }
parameters { real a; real b; real c; }
model {
  array[T] vector[3] y;
  if (is_dae) y = dae_tol(f, [1, 0, 0]', [-a, a, 0]', 0, ts, tol, 1e-4 * tol, 100000, a, b, c);
  else y = ode_bdf_tol(g, [1, 0, 0]', 0, ts, tol, 1e-4 * tol, 100000, a, b, c);
  target += y[T][k];
}
"""


@pytest.mark.parametrize("is_dae", [0, 1])
def test_robertson(is_dae: int) -> None:
    """The values at t = 40 and 4e10 are those of the literature: E. Hairer, G. Wanner, "Solving Ordinary Differential
    Equations II", IV.10; the CVODE and IDA example programs of SUNDIALS."""
    u = np.array([0.04, 1e4, 3e7])
    for t, k, expected in ((40.0, 1, 7.158270688e-01), (40.0, 2, 9.185535e-06), (40.0, 3, 2.841637458e-01),
                           (4e10, 1, 5.2083e-08)):  # fmt: skip
        data = {"T": 2, "ts": [0.4, t], "tol": 1e-8, "is_dae": is_dae, "k": k}
        model = StanModel(ROBERTSON, data, opt_level=0)
        assert model.log_density(u) == pytest.approx(expected, rel=2e-5 if t > 40 else 2e-7)
    model = StanModel(ROBERTSON, {"T": 1, "ts": [40.0], "tol": 1e-8, "is_dae": is_dae, "k": 1}, opt_level=0)
    other = StanModel(ROBERTSON, {"T": 1, "ts": [40.0], "tol": 1e-11, "is_dae": 1 - is_dae, "k": 1}, opt_level=0)
    np.testing.assert_allclose(u * model.log_density_gradient(u)[1], u * other.log_density_gradient(u)[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ({"n": 1}, FatalError, "the number of elements of yp0 is 1, but must be 2"),
        ({"ts": [2.0, 0.5]}, Rejection, "ts.* is 0.5, but must be greater than or equal to 2"),
        ({"t0": 0.5}, Rejection, "t0 is 0.5, but must be less than 0.5"),
        ({"rel_tol": 0.0}, Rejection, "rel_tol is 0, but must be positive finite"),
        ({"abs_tol": -1.0}, Rejection, "abs_tol is -1, but must be positive finite"),
        ({"steps": 3}, Rejection, "n_steps is 4, but must be at most max_num_steps, 3"),
        ({"way": 1}, Rejection, r"is nan, but must be finite"),
        ({"way": 2}, FatalError, "the function returns 1 elements, but its argument has 2"),
        ({"way": 3}, Rejection, "the steps have become too small|must be at most 500"),
        ({"way": 4}, Rejection, "the steps have become too small|must be at most 500"),
    ],
)
def test_errors(data: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        linear(**data).log_density(U)
