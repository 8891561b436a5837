"""Terms that data add in some rows, of coefficients that other rows have, too: levels 3 and 4 against level 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ulam

PROGRAM = """
data { int N; int J; array[N] int g; array[N] int h; array[N] int bit; array[N] int count; vector[N] x; vector[N] y; }
parameters { real a; real b; real c; real<lower=0> s; vector[J] u; vector[2] v; }
model { %s }
"""
MEANS = "vector[N] mu = a + b * x%s; for (n in 1 : N) if (count[n] == 0) mu[n] += %s; y ~ normal(mu, s);"
ROWS = "for (n in 1 : N) { real mu = a%s; if (bit[n] == 1) %s y[n] ~ normal(mu, s); }"
STATEMENTS = {
    "again": MEANS % ("", "a"),
    "again_beside_groups": MEANS % (" + u[g]", "a"),
    "twice_again": MEANS % ("", "a + a"),
    "slope": MEANS % (" + u[g]", "c * x[n]"),
    "choice": MEANS % (" + u[g]", "(bit[n] == 1 ? b : c) * x[n]"),
    "number": MEANS % ("", "(bit[n] == 1 ? 1.0 : 0.5) * b"),
    "group_again": ROWS % (" + u[g[n]]", "mu += u[g[n]];"),
    "other_group": ROWS % (" + u[g[n]]", "mu += v[h[n]];"),
    "both_groups": ROWS % (" + u[g[n]]", "mu += u[g[n]] + v[h[n]];"),
    "groups_alone": ROWS % ("", "mu += u[g[n]] + v[h[n]];"),
    "otherwise": ROWS % ("", "mu += u[g[n]]; else mu += 2 * u[g[n]];"),
    "two_branches": ROWS % ("", "mu += u[g[n]]; if (count[n] == 0) mu += u[g[n]] * x[n];"),
    "branch_in_branch": ROWS % ("", "{ if (count[n] == 0) mu += u[g[n]] * x[n]; mu += b; }"),
}


def _data(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "N": rows, "J": 4, "g": rng.integers(1, 5, rows), "h": rng.integers(1, 3, rows), "x": rng.normal(size=rows),
        "bit": rng.integers(0, 2, rows), "count": rng.integers(0, 3, rows), "y": rng.normal(size=rows),
    }  # fmt: skip


@pytest.mark.parametrize("name", STATEMENTS)
def test_as_level_0(name: str) -> None:
    data = _data(80)
    base, *others = (ulam.StanModel(PROGRAM % STATEMENTS[name], data, opt_level=level) for level in (0, 3, 4))
    assert any(choice.taken for choice in others[0].layout_choices())
    for point in (np.linspace(-0.6, 0.8, 10), np.linspace(1.0, -1.0, 10)):
        expected, slopes = base.log_density_gradient(point)
        for model in others:
            value, gradient = model.log_density_gradient(point)
            assert value == pytest.approx(expected, rel=1e-10)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-9)
