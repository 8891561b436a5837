"""Values of tuple type in listings of traces."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.trace import format_levels

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
functions {
  real f(tuple(real, array[] tuple(int, vector)) t, int k) { return t.1 * t.2[k].2[1]; }
  tuple(real, vector) g(vector v) { return (sum(v), v * 2); }
  real deep(tuple(real, real) t, int n) { if (n == 0) return t.1 + t.2; return deep(t, n - 1); }
}
data { array[2] tuple(int, vector[2]) d; }
parameters { tuple(real, array[2] tuple(real, vector[2])) q; }
model {
  tuple(real, vector[2]) h = g(q.2[2].2);
  target += f((q.1, d), 2) + h.1 + sum(h.2) + deep((q.1, 1), 100);
}
"""


def test_tuples_show_their_fields() -> None:
    model = ulam.StanModel(PROGRAM, {"d": [(1, [1, 2]), (2, [3, 4])]}, opt_level=0)
    text = format_levels(model.track_density(np.arange(7.0)))
    lines = text.splitlines()
    assert "⟨g⟩(@" in text and "= (11.0, [10.0, 12.0])" in text
    assert "[Arg:§1:%2] (0.0, ([1, 2], [[1.0, 2.0], [3.0, 4.0]]))" in text
    tuples = [line for line in lines if "tuple" in line or "field" in line]
    assert tuples and not any(line.endswith("?") for line in tuples)
