"""Loops that count by `while` are loops over elements: the same values as at level 0, and the layouts of a `for`."""

from __future__ import annotations

import numpy as np
import pytest

import ulam

PROGRAM = """
functions {
  int first_above(vector x, real least) {
    int n = 1;
    while (n <= size(x)) {
      if (x[n] > least) return n;
      n += 1;
    }
    return 0;
  }
  real weighted(vector x, int from, int to) {
    real total = 0;
    int n = from;
    while (n < to) {
      n += 1;
      total += n * x[n];
    }
    return total + n;
  }
}
data {
  int<lower=0> N; int<lower=0> J; array[N] int<lower=1, upper=J> g; vector[N] x; vector[N] y; int from;
}
parameters { real a; real b; vector[J] u; real<lower=0> s; }
model {
  int n = 1;
  while (n <= N) {
    y[n] ~ normal(a + b * x[n] + u[g[n]], s);
    n = n + 1;
  }
  target += a * n + b * first_above(x, 0.5) + weighted(x * a, from, N);
  n = 0;
  while (J >= n + 1) {
    int k = from;
    n += 1;
    while (k < n) {
      k += 1;
      target += -square(u[n] - k);
      if (k == 2) continue;
      target += u[n];
    }
    target += k * u[n] * 1e-3;
  }
}
generated quantities {
  int k = 3;
  while (k <= N) k += 1;
}
"""


@pytest.mark.parametrize(("n", "begin"), [(0, 0), (1, 0), (1, 1), (7, 3), (500, 0)])
def test_values_gradients_and_counters_are_those_of_level_0(n: int, begin: int) -> None:
    """Also where there is no iteration, and where something reads the counter behind the loop."""
    rng = np.random.default_rng(n)
    groups = 5
    data = {
        "N": n, "J": groups, "g": rng.integers(1, groups + 1, n), "x": rng.normal(size=n), "y": rng.normal(size=n),
        "from": min(begin, n),
    }  # fmt: skip
    expected, found = (ulam.StanModel(PROGRAM, data, opt_level=level) for level in (0, 3))
    for _ in range(3):
        point = rng.normal(0, 0.3, expected.param_unc_num())
        value, gradient = expected.log_density_gradient(point)
        other, slopes = found.log_density_gradient(point)
        assert other == pytest.approx(value, rel=1e-11)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(gradient).max()))
        counted = [m.param_constrain(point, include_gq=True, rng=m.new_rng(1)) for m in (found, expected)]
        np.testing.assert_array_equal(counted[0], counted[1])
    assert any(choice.taken for choice in found.layout_choices()) == (n == 500)


def test_an_index_out_of_range_is_told_as_at_level_0() -> None:
    """A bound that is larger than the container."""
    text = """data { int N; vector[3] x; } parameters { real a; }
    model { int n = 1; while (n <= N) { target += a * x[n]; n += 1; } }"""
    texts: set[str] = set()
    for level in (0, 3):
        with pytest.raises(ulam.UlamError) as told:
            ulam.StanModel(text, {"N": 5, "x": [1.0, 2.0, 3.0]}, opt_level=level).log_density([0.1])
        texts.add(str(told.value))
    assert len(texts) == 1 and "4 out of range" in texts.pop()


@pytest.mark.parametrize(
    ("bound", "begin"),
    [(5, 1), (1, 1), (-(2**31), 1), (-(2**31), -(2**31)), (2 - 2**31, -(2**31)), (2**31 - 1, 2**31 - 3)]
    + [(0, 2**31 - 1), (-(2**31), 2**31 - 1)],
)
def test_bounds_at_the_ends_of_ints(bound: int, begin: int) -> None:
    """The least int has none before it."""
    program = ulam.StanProgram(
        "data { int N, begin; } parameters { real a; } "
        "model { int n = begin; while (n < N) { target += a * n; n += 1; } target += n * 1e-9 * a; }"
    )
    values = {"N": bound, "begin": begin}
    expected, found = (program(values, opt_level=level).log_density_gradient([0.3]) for level in (0, 3))
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    assert found[1] == pytest.approx(expected[1], rel=1e-12)
