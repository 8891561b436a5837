"""`sums-of-elements`, and sums in variables and branches (`sums-to-target`): levels 3 and 4 have the density, slopes
and errors of level 0, elements that nobody assigned and infinite ones included.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from ulam import StanModel, UlamError

PROGRAM = """
functions {
  real term(real y, real mu, real s) { if (y > 1) return normal_lpdf(y | mu, s); return s * mu; }
}
data { int N; int K; vector[N] y; int last; }
parameters { real mu; real<lower=0> s; }
model {
  vector[N] a;
  vector[N] b = rep_vector(0, N);
  array[N, K] real c;
  vector[N] d;
  for (n in 1:last) a[n] = term(y[n], mu, s);
  for (n in 1:N) {
    if (y[n] > 0) b[n] += log(s) * n;
    for (k in 1:K) { c[n, k] = k * log_sum_exp(mu, y[n]); if (k > 1) c[n, k] -= c[n, k] * mu; }
    if (y[n] != 3) d[n] = 1 / mu;
  }
  for (n in 1:N) target += sum(c[n]);
  target += sum(a) - sum(b);
  target += -sum(d);
}
"""


@pytest.mark.parametrize("level", [3, 4])
@pytest.mark.parametrize(
    "data",
    [
        {"N": 3, "K": 2, "y": [0.5, -1.0, 2.0], "last": 3},
        {"N": 3, "K": 2, "y": [0.5, -1.0, 2.0], "last": 2},  # an element of `a` is NaN
        {"N": 2, "K": 1, "y": [1.0, 3.0], "last": 2},  # one of `d`
        {"N": 2, "K": 0, "y": [1.0, 2.0], "last": 2},
        {"N": 0, "K": 2, "y": [], "last": 0},
        {"N": 2, "K": 1, "y": [1.0, 2.0], "last": 3},  # an index out of range
    ],
    ids=str,
)
def test_the_same_as_written(level: int, data: dict[str, object]) -> None:
    models = [StanModel(PROGRAM, json.dumps(data), opt_level=n) for n in (0, level)]
    for theta in ([0.3, -0.2], [0.0, 1.0], [-2.0, 800.0], [1e200, -800.0]):
        found: list[np.ndarray | str] = []
        for model in models:
            try:
                with np.errstate(all="ignore"):
                    value, slope = model.log_density_gradient(np.array(theta))
                found.append(np.append(slope, value))
            except UlamError as error:
                found.append(str(error))
        first, second = found
        if isinstance(first, str) or isinstance(second, str):
            assert isinstance(first, str) and first == second
        else:
            # Where s is infinite its own slope is 0 * infinity, unless a loop without an iteration alone reads it.
            known = ~np.isnan(first) & ~(np.isnan(second) & (theta[1] > 709))
            assert bool(np.isnan(first[-1])) == bool(np.isnan(second[-1]))
            np.testing.assert_allclose(second[known], first[known], rtol=1e-10)
