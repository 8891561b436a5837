"""Loops inside of each other that add to the target: levels 3 and 4 against level 0."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import nest_data, nest_program

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

NESTS = [
    # what an inner loop adds to the target belongs to the rows of the loop around it
    "for (k in 1 : K) for (n in 1 : N) for (m in 1 : 2) target += normal_lpdf(x[n] | u[m], exp(x[n]));",
    # the size of the innermost loop is the number of the loop around it
    "for (k in 2 : 3) for (n in 1 : N) for (m in 1 : n) target += -exp(x[m]) * a;",
    "for (k in 1 : K) for (n in 1 : N) { for (m in n : N) target += student_t_lpdf(x[m] | 3, a * x[m], s); "
    "target += log1p_exp(u[n]); }",
    # the same again in each iteration
    "for (k in 0 : 2) for (n in 1 : N) for (m in 1 : n) x[n] ~ normal(a * u[m], exp(x[n]));",
]


def _agree(code: str, data: dict[str, object], seed: int) -> None:
    base, *others = (ulam.StanModel(code, data, opt_level=level) for level in (0, 3, 4))
    point = np.random.default_rng(seed).normal(0, 0.7, base.param_unc_num())
    expected, slopes = base.log_density_gradient(point)
    size = max(1.0, abs(expected), *np.abs(slopes))
    for model in others:
        value, gradient = model.log_density_gradient(point)
        assert value == pytest.approx(expected, abs=1e-10 * size), code
        np.testing.assert_allclose(gradient, slopes, atol=1e-10 * size, err_msg=code)


@pytest.mark.parametrize("nest", NESTS)
def test_nests(nest: str) -> None:
    code = f"""data {{ int N; int K; vector[N] x; }} parameters {{ real a; real<lower=0> s; vector[3] u; }}
    model {{ {nest} }}"""
    for count in (0, 1, 3):
        _agree(code, {"N": count, "K": 3, "x": [0.3, -1.2, 0.8][:count]}, count)


@pytest.mark.parametrize("seed", [*range(12), 152, 196, 212])
def test_random_nests(seed: int) -> None:
    _agree(nest_program(seed), nest_data(seed), seed)
