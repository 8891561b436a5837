"""What is computed ahead of loops that have no iteration, and has no slope then."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ulam
from ulam.emit.jit import verify
from ulam.passes.pipelines import LEVELS

DATA = "data { int N; int K; vector[N] x; array[N] vector[2] y; }"
PARAMETERS = "parameters { real a; real b; vector[K] c; }"
ELEMENTS = "vector[3] z; for (k in 1 : 3) z[k] = a + k;"
STATEMENTS = {
    "scalars": ELEMENTS + "for (n in 1 : N) for (k in 1 : 3) target += log(z[k]) * x[n];",
    "log_sum_exp": ELEMENTS + "for (n in 1 : N) target += log_sum_exp(log(z) + x[n]);",
    "divisions": "for (n in 1 : N) target += dot_product(x, x / b) + normal_lpdf(x[n] | a, sqrt(b));",
    "covariances": "for (n in 1 : N) y[n] ~ multi_normal([a, b]', [[a, b], [b, a]]);",
    "sums": "for (n in 1 : N) target += sum(sqrt(c)) * x[n];",
    "components": "for (n in 1 : N) { vector[K] p = log(c); for (k in 1 : K) p[k] += normal_lpdf(x[n] | c[k], exp(b)); "
    "target += log_sum_exp(p); }",
    "stored": "for (n in 1 : N) { vector[K] p = log(c) * sqrt(b); for (k in 1 : K) target += exp(p[k] * x[n] + a); }",
    "filled": "for (n in 1 : N) { vector[K] p = log(a) + c; target += normal_lpdf(x[n] | p, sqrt(b)); }",
    "counted": "for (n in 1 : N) target += normal_lpdf(a | b, 3) - log(a);",
    "nests": "for (k in 1 : K) for (n in 1 : N) target += normal_lpdf(x[n] | log(a), exp(b)) + x[n] * log(c[k]);",
    "nests_of_stored": "vector[K] z = log(c); real s = sqrt(a); for (k in 1 : K) for (i in 1 : 2) for (n in 1 : N) "
    "target += x[n] * z[k] * s;",
    "branches_in_nests": "for (k in 1 : K) if (k > a) for (n in 1 : N) target += x[n] * sqrt(a) * log(c[k]);",
    "filled_for_nests": "vector[3] z; real l = log(a); for (k in 1 : 3) z[k] = l + k; "
    "for (k in 1 : K) for (n in 1 : N) target += x[n] * z[k];",
    "reduced_rows": "for (n in 1 : N) x[n] ~ normal(b + n * sum(sqrt(c)), 2);",
    "reduced_vectors": "for (n in 1 : N) y[n] ~ multi_normal([a * n, x[n] * sum(log(c))]', [[2, 1], [1, 2]]);",
}
POINTS = [
    [a, b, *c]
    for a, b in itertools.product((0.0, -1.0, 1e300, np.inf), (0.0, -1.0, 800.0))
    for c in ((0.0, 1.0), (-1.0, -np.inf))
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_no_slope_without_an_iteration(name: str, level: int) -> None:
    """Nor a value; as the program has it, wherever parameters are."""
    code = f"{DATA} {PARAMETERS} model {{ target += a; {STATEMENTS[name]} }}"
    model = ulam.StanModel(code, {"N": 0, "K": 2, "x": [], "y": np.empty((0, 2))}, opt_level=level)
    for theta in POINTS:
        value, gradient = model.log_density_gradient(theta)
        assert value == theta[0]
        np.testing.assert_array_equal(gradient, [1.0, 0.0, 0.0, 0.0], err_msg=str(theta))


INNER = {
    "sums": "for (n in 1 : N) for (k in 1 : m[n]) target += x[k] * log(a[n]);",
    "squares": "for (n in 1 : N) { real s = 0; for (k in 1 : m[n]) s += x[k] * sqrt(a[n]) + b; target += s * s; }",
    "elements": "for (n in 1 : N) { vector[3] z; for (j in 1 : 3) z[j] = log(a[n] * j); "
    "for (k in 1 : m[n]) target += x[k] * z[1 + k % 3]; }",
    "densities": "for (n in 1 : N) for (k in 1 : m[n]) x[k] ~ normal(b, sqrt(a[n]));",
}
"""Ragged rows, some of them without elements."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", INNER)
def test_no_slope_without_an_inner_iteration(name: str, level: int) -> None:
    code = "data { int N; int K; vector[K] x; array[N] int m; } parameters { vector[N] a; real b; } "
    model = ulam.StanModel(
        f"{code} model {{ target += b; {INNER[name]} }}", {"N": 3, "K": 2, "x": [1, 1], "m": [0, 2, 0]}, opt_level=level
    )
    _, expected = model.log_density_gradient([2.0, 0.7, 3.0, 0.5])
    assert expected[1]
    for first, last in itertools.product((0.0, 1e300, np.inf), (0.0, 2.0)):
        _, gradient = model.log_density_gradient([first, 0.7, last, 0.5])
        np.testing.assert_array_equal(gradient, [0.0, expected[1], 0.0, expected[3]])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "statements",
    [
        "vector[1] s = [0.0]'; for (n in 1 : N) { for (k in 1 : m[n]) target += log(a[n]) * s[1]; s[1] = sqrt(a[n]); }",
        "vector[3] s = [0.5, 0.5, 0.5]'; for (n in 1 : N) { for (k in 1 : m[n]) target += log(a[n]) * s[1 + k % 3]; "
        "for (k in 1 : 3) s[k] = sqrt(a[n] + k); }",
        "vector[N] s = rep_vector(0.5, N); for (n in 1 : N) { for (k in 1 : m[n]) target += a[n] * s[1 + (n + k) % N]; "
        "s[n] = sqrt(a[n]); }",
    ],
)
def test_memory_that_iterations_have_in_common(statements: str, level: int) -> None:
    """What an iteration stores ahead of an inner loop that is idle there, one of the next may read."""
    code = f"data {{ int N; array[N] int m; }} parameters {{ vector[N] a; }} model {{ {statements} }}"
    model = ulam.StanModel(code, {"N": 4, "m": [2, 0, 3, 1]}, opt_level=level)
    point, step = np.array([1.3, 0.7, 2.1, 0.4]), 1e-6
    slopes = [
        (model.log_density(point + step * unit) - model.log_density(point - step * unit)) / (2 * step)
        for unit in np.eye(4)
    ]
    np.testing.assert_allclose(model.log_density_gradient(point)[1], slopes, rtol=1e-7)


@pytest.mark.parametrize("name", STATEMENTS)
def test_slopes_where_loops_run(name: str) -> None:
    code = f"{DATA} {PARAMETERS} model {{ target += a; {STATEMENTS[name]} }}"
    data = {"N": 3, "K": 2, "x": [0.3, -1.2, 2.0], "y": [[0.1, 0.2], [-1.0, 0.5], [2.0, 0.3]]}
    plain, fast = (ulam.StanModel(code, data, opt_level=level) for level in (0, 3))
    for theta in ([1.5, 0.7, 0.3, 1.1], [2.0, 1.1, 1e-3, 40.0]):
        (value, gradient), (found, slopes) = (model.log_density_gradient(theta) for model in (plain, fast))
        np.testing.assert_allclose(found, value, rtol=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "statements",
    [
        "vector[1] z; z[1] = log(a); if (a > 1) { %s z[1] = sqrt(b); for (i in 1 : min(m, N)) target += z[1] * x[i]; }",
        "real s = log(b); if (a > 1) { %s vector[K] z; for (k in 1 : K) z[k] = sqrt(s + k); "
        "for (i in 1 : min(m, N)) target += z[i] * x[i]; }",
    ],
)
def test_bounds_of_loops_in_branches(statements: str, level: int) -> None:
    """They are there in the branch alone."""
    code = f"{DATA} {PARAMETERS} model {{ {statements % 'int m = 0; while (m < a) m += 1;'} target += -a; }}"
    data = {"N": 3, "K": 3, "x": [0.3, -1.2, 2.0], "y": np.zeros((3, 2))}
    plain, model = (ulam.StanModel(code, data, opt_level=used) for used in (0, level))
    verify(model.llvm_ir("gradient_propto"))
    for theta in ([0.5, 0.7, 0.0, 0.0, 0.0], [2.5, 1.5, 0.0, 0.0, 0.0]):
        (value, gradient), (found, slopes) = (each.log_density_gradient(theta) for each in (plain, model))
        np.testing.assert_allclose(found, value, rtol=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-12)
