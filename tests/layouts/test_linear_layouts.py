"""`linear-layouts`: rows of normal linear models, reduced when data are bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ulam
from ulam.passes.loops.linear_layouts import LinearLayouts
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compiler import CompileOptions, Compiler

HEAD = """
data { int n; int K; int J; matrix[n, K] X; vector[n] x; vector[n] y; array[n] int<lower=1, upper=J> g; int on; }
parameters { real a; real b; vector[K] c; vector[J] u; vector[J] v; vector[J] w; real<lower=0> s; real<lower=0> t; }
"""
# Several statements per program, so that less is compiled; the number of layouts that are found.
FORMS = {
    "vectors": (
        "model { y ~ normal(a + b * x - 2 * (x .* x) * t, s); target += normal_lpdf(y | a + X * c, t); "
        "if (on) target += normal_id_glm_lpdf(y | X, a, c, s); }",
        3,
    ),
    "loops": (
        "model { for (i in 3 : n) { real mu = a; for (k in 1 : 2) mu += c[k] * y[i - k]; y[i] ~ normal(mu, s); } "
        "{ vector[n] mu; for (i in 1 : n) { mu[i] = a * s + X[i] * c; mu[i] += x[i] * b / 3; } y ~ normal(mu, t); } "
        "target += -0.5 * dot_self(y - b * x); { vector[n] mu = a - b * x; for (i in 1 : n) "
        "target += normal_lpdf(y[i] | mu[i], s); } }",
        4,
    ),
    "groups": (
        "model { for (i in 2 : n) y[i] ~ normal(u[g[i]] + x[i] * u[g[i]] + b * x[i] + v[g[i - 1]], s); "
        "y ~ normal((a + b * w[g]) .* x + X * c, t); }",
        2,
    ),
}
KEPT = {
    "a parameter in the design": "model { y ~ normal(a + b * (x * c[1]) .* (x * c[2]) + exp(a * x), s); }",
    "a standard deviation per row": "model { y ~ normal(a + b * x, exp(t * x)); }",
    "an index that changes": "model { for (i in 1 : n) y[i] ~ normal(u[1 + (a > x[i] ? 1 : 0)], s); }",
    "a function of the mean": "model { y ~ normal(exp(a + b * x), s); }",
}


def remarks_of(program: str) -> list[bool]:
    """What is decided of loops with sums of squares, as `--explain` tells it."""
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    return [remark.done for remark in remarks if remark.pass_name == LinearLayouts.name]


def data_of(n: int, generator: np.random.Generator) -> dict[str, Any]:
    return {
        "n": n,
        "K": 2,
        "J": 3,
        "X": generator.normal(size=(n, 2)),
        "x": generator.normal(size=n),
        "y": generator.normal(size=n),
        "g": generator.integers(1, 3, size=n, endpoint=True),
        "on": 1,
    }


def outcome(model: ulam.StanModel, point: np.ndarray) -> tuple[float, np.ndarray] | str:
    try:
        return model.log_density_gradient(point)
    except ulam.Rejection as error:
        return str(error)


def points(size: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Ordinary ones; then each coefficient, and a scale, as no layout may be used, or only just."""
    found = [generator.normal(size=size) * scale for scale in (0.1, 1.0, 30.0)]
    for at in (0, 1, 2, 4, 7):
        for value in (1e60, 1e75, 1e200, np.inf, np.nan):
            found.append(generator.normal(size=size))
            found[-1][at] = value
    for value in (-800.0, 800.0):
        found.append(generator.normal(size=size))
        found[-1][-2] = value
    return found


@pytest.mark.parametrize("name", FORMS)
def test_densities_are_those_of_level_0(name: str) -> None:
    """Values, gradients and errors; of so few rows that none are reduced, too, and products with the Hessian."""
    program, count = FORMS[name]
    assert sum(remarks_of(HEAD + program)) == count
    generator = np.random.default_rng(7)
    for n in (3, 80):
        data = data_of(n, generator)
        plain, reduced = (ulam.StanModel(HEAD + program, data, opt_level=level) for level in (0, 3))
        size = plain.param_unc_num()
        for point in points(size, generator):
            first, second = outcome(plain, point), outcome(reduced, point)
            if isinstance(first, str) or isinstance(second, str):
                assert first == second
                continue
            np.testing.assert_allclose(second[0], first[0], rtol=1e-11, atol=1e-9)
            assert (np.isfinite(first[1]) == np.isfinite(second[1])).all()
            finite = np.isfinite(first[1])
            np.testing.assert_allclose(second[1][finite], first[1][finite], rtol=1e-10, atol=1e-10 * largest(first[1]))
        if n > 3 and name == "groups":
            point, direction = generator.normal(size=(2, size))
            products = [m.log_density_hessian_vector_product(point, direction)[1] for m in (plain, reduced)]
            np.testing.assert_allclose(products[1], products[0], rtol=1e-9, atol=1e-9 * largest(products[0]))


def largest(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=1.0))


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_linear_is_left_alone(name: str) -> None:
    assert not any(remarks_of(HEAD + KEPT[name]))


@pytest.mark.parametrize("column", ["x", "y"])
def test_data_that_are_not_finite_travel(column: str) -> None:
    """NaN is an error where it was; an infinite number leads to what it led to."""
    program, _ = FORMS["vectors"]
    generator = np.random.default_rng(8)
    for value in (np.nan, np.inf, 1e200, 1e-200):
        data = data_of(20, generator)
        data[column][3] = value
        models = [ulam.StanModel(HEAD + program, data, opt_level=level) for level in (0, 3)]
        point = generator.normal(size=models[0].param_unc_num())
        first, second = (outcome(model, point) for model in models)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
        else:
            np.testing.assert_allclose(second[0], first[0], rtol=1e-12)
            np.testing.assert_allclose(second[1], first[1], rtol=1e-10, atol=1e-10)
