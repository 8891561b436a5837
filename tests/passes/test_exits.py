"""break, continue and early return in a compiled model: the same density and gradient as written without them."""

from __future__ import annotations

import numpy as np
import pytest

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

WITH_EXITS = """
functions {
  real early(real x, int n) {
    for (i in 1:n) {
      if (x * i > 2) return x * i;
    }
    if (x < 0) return -x;
    return x * x;
  }
  vector sized(vector v, int k) {
    if (k == 1) return v * 2;
    if (k == 2) return append_row(v, v);
    return v[1:2];
  }
}
data {
  int N;
  array[N] int y;
}
parameters {
  real a;
  vector[3] b;
}
model {
  real s = 0;
  for (n in 1:N) {
    if (y[n] == 3) break;
    if (y[n] == 2) continue;
    real t;
    t = a * y[n];
    s += t * t;
  }
  int k = 0;
  while (1) {
    k += 1;
    s += b[k] * a;
    if (k == 3) break;
  }
  for (x in b) {
    if (x > 5) break;
    s += exp(x);
  }
  for (i in 1:3) target += sum(square(sized(b, i)));
  target += -s + early(a, 3) + early(b[1], 5) + early(b[2], 2);
}
"""

WITHOUT_EXITS = """
data {
  int N;
  array[N] int y;
}
parameters {
  real a;
  vector[3] b;
}
model {
  target += -square(a) - square(a * 5) - sum(b) * a - exp(b[1]) - exp(b[2]);
  target += 4 * dot_self(b) + 2 * dot_self(b) + dot_self(b[1:2]);
  target += square(a) - b[1] + 2 * b[2];
}
"""


def test_exits_in_a_model() -> None:
    data = {"N": 5, "y": [1, 2, 5, 3, 4]}
    theta = np.array([0.5, -0.7, 1.5, 6.0])
    value, gradient = ulam.StanModel(WITH_EXITS, data=data).log_density_gradient(theta)
    expected_value, expected_gradient = ulam.StanModel(WITHOUT_EXITS, data=data).log_density_gradient(theta)
    np.testing.assert_allclose(value, expected_value, rtol=1e-13)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-12)
