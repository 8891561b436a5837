"""Sums that become additions to the target count as often as they are added."""

from __future__ import annotations

import numpy as np
import pytest

import ulam


def test_a_sum_that_is_added_several_times_counts_as_often() -> None:
    """A sum that the iterations of a loop had in common was added to the target once, where it is computed."""
    text = """data { vector[3] x; } parameters { real a; vector[3] u; }
    model {
      real q = a;
      for (k in 1 : 3) {
        q = 0.7 * tanh(q);
        for (n in 1 : 3) for (m in 1 : n) target += normal_lpdf(x[n] * a | u[m] * x[3], exp(x[n]));
      }
      target += q;
    }"""
    data = {"x": [0.5, -1.0, 2.0]}
    expected, found = (ulam.StanModel(text, data, opt_level=level) for level in (0, 3))
    point = np.array([0.7, 0.1, -0.2, 0.3])
    assert found.log_density(point) == pytest.approx(expected.log_density(point), rel=1e-12)
