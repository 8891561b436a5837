"""`interchange-loops` and `equal-sizes`: sums of columns are sums of rows; values and slopes are those of level 1."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.interchange_loops import InterchangeLoops
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = "data { int N; int K; matrix[N, K] X; vector[N] y; } parameters { vector[K] b; real s; } "
FORMS = {
    "columns": "vector[N] mu = rep_vector(s, N); for (k in 1:K) mu += X[, k] * b[k]; y ~ student_t(4, mu, 1);",
    "functions of them": (
        "vector[N] mu = s * y; for (k in 1:K) mu = square(mu) + exp(b[k] * X[, k]); target += log_sum_exp(mu);"
    ),
    "statements in between": (
        "vector[N] mu = s * y; for (k in 1:K) { mu += b[k] * X[, k]; target += -square(b[k]); } "
        "y ~ student_t(4, mu, 1);"
    ),
    "lags": (
        "vector[N - K] mu = rep_vector(s, N - K); for (k in 1:K) mu += b[k] * y[K + 1 - k:N - k]; "
        "y[K + 1:N] ~ normal(mu, exp(s));"
    ),
}
KEPT = {
    "what was there": (
        "vector[N] mu = s * y; for (k in 1:K) { mu = mu + b[k] * X[, k] * sum(mu); } y ~ student_t(4, mu, 1);"
    ),
}


def is_done(program: str) -> bool:
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    return any(remark.pass_name == InterchangeLoops.name and remark.done for remark in remarks)


@pytest.mark.parametrize("name", [*FORMS, *KEPT])
def test_values_and_slopes_are_those_of_level_1(name: str) -> None:
    """Also of no rows and of no steps."""
    program = HEAD + f"model {{ {(FORMS | KEPT)[name]} }}"
    assert is_done(program) == (name in FORMS)
    generator = np.random.default_rng(11)
    for rows, steps in ((7, 3), (5, 1), (3, 0), (0, 0)):
        data = {"N": rows, "K": steps, "X": generator.normal(size=(rows, steps)), "y": generator.normal(size=rows)}
        plain, inside = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
        point = generator.normal(size=steps + 1)
        value, gradient = plain.log_density_gradient(point)
        found, slopes = inside.log_density_gradient(point)
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", ["columns", "lags"])
def test_sums_of_columns_have_the_layout_of_products(form: str) -> None:
    """Loops over parts of data have the range of what they are compared with, whose size `bind` has checked."""
    program = HEAD + f"model {{ {FORMS[form].replace('student_t(4, mu, 1)', 'normal(mu, exp(s))')} }}"
    generator = np.random.default_rng(2)
    data = {"N": 60, "K": 3, "X": generator.normal(size=(60, 3)), "y": generator.normal(size=60)}
    model = ulam.StanModel(program, data, opt_level=3)
    model.log_density_gradient([0.1, 0.2, 0.3, 0.4])
    assert any("reduced rows: taken" in str(choice) for choice in model.layout_choices())
