"""`scaled-factors` and `solved-columns`: normal densities whose covariance is data, or a multiple of data."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_products, outcome

import ulam

HEAD = """
data { int n; int K; vector[n] y; matrix[n, K] X; vector[n] x; matrix[n, n] V; matrix[n, n] L; }
parameters { real a; real b; vector[K] c; real<lower=0> s; real t; }
"""
FORMS = {
    "covariances": "model { y ~ multi_normal(a + X * c, V); y ~ multi_normal(a + b * x, s ^ 2 * V); }",
    "a multiple that may be none": "model { y ~ multi_normal(a + X * c, V * t); }",
    "factors": (
        "model { y ~ multi_normal_cholesky(X * c + b * x, L); vector[n] mu; "
        "for (i in 1 : n) mu[i] = a + X[i] * c; y ~ multi_normal_cholesky(mu, s * L); }"
    ),
    "by hand": (
        "transformed parameters { vector[n] mu = a + X * c; } "
        "model { target += -0.5 * dot_self(mdivide_left_tri_low(L, y - mu)) / s - n * log(s); "
        "target += -log1p(dot_self(mdivide_left_tri_low(L, y - b * x))); }"
    ),
}


def data_of(n: int, generator: np.random.Generator) -> dict[str, Any]:
    root = generator.normal(size=(n, n + 3))
    covariance = root @ root.T / n + np.eye(n)
    return {
        "n": n,
        "K": 2,
        "y": generator.normal(2, 1, size=n),
        "X": generator.normal(size=(n, 2)),
        "x": generator.normal(size=n),
        "V": covariance,
        "L": np.linalg.cholesky(covariance),
    }


def points(size: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Ordinary ones; then coefficients that are not finite, or of which products overflow, and scales of that kind."""
    found = [generator.normal(size=size) * scale for scale in (0.1, 1.0, 30.0)]
    for at, values in (
        (0, (1e75, np.inf, np.nan)),
        (2, (1e60, -np.inf)),
        (-2, (-400.0, 400.0)),
        (-1, (-1.0, 0.0, 1e-320)),
    ):
        for value in values:
            found.append(generator.normal(size=size))
            found[-1][at] = value
    return found


def compare(program: str, data: dict[str, Any], generator: np.random.Generator) -> ulam.StanModel:
    """Values, gradients and errors of level 3 with those of level 0."""
    plain, fast = (ulam.StanModel(HEAD + program, data, opt_level=level) for level in (0, 3))
    for point in points(plain.param_unc_num(), generator):
        first, second = outcome(plain, point), outcome(fast, point)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
        elif np.isfinite(first[0]) and np.isfinite(first[1]).all():
            np.testing.assert_allclose(second[0], first[0], rtol=1e-11, atol=1e-9)
            size = max(1, np.abs(first[1]).max())
            np.testing.assert_allclose(second[1], first[1], rtol=1e-9, atol=1e-10 * size)
        else:
            assert np.isfinite(second[0]) == np.isfinite(first[0])
    return fast


@pytest.mark.parametrize("name", FORMS)
def test_densities_are_those_of_level_0(name: str) -> None:
    """Of so few rows that none are reduced, too."""
    generator = np.random.default_rng(3)
    for n in (1, 3, 40):
        model = compare(FORMS[name], data_of(n, generator), generator)
        taken = [choice.taken for choice in model.layout_choices() if choice.layout == "reduced rows"]
        if n > 3 and name == "factors":
            plain = ulam.StanModel(HEAD + FORMS[name], data_of(n, np.random.default_rng(9)), opt_level=0)
            fast = ulam.StanModel(HEAD + FORMS[name], data_of(n, np.random.default_rng(9)), opt_level=3)
            assert_same_products(plain, fast, generator)
        assert sum(taken) == (n == 40) * (1 if "multiple" in name else 2)


@pytest.mark.parametrize("name", ["covariances", "a multiple that may be none"])
@pytest.mark.parametrize("kind", ["not positive definite", "not symmetric", "nearly singular", "NaN", "infinite"])
def test_matrices_that_are_no_covariances_are_refused_as_they_were(name: str, kind: str) -> None:
    generator = np.random.default_rng(4)
    data = data_of(12, generator)
    V = data["V"]
    if kind == "not positive definite":
        V[5, 5] = -1.0
    elif kind == "not symmetric":
        V[3, 1] += 1e-5
    elif kind == "nearly singular":
        data["V"] = np.outer(V[0], V[0]) + 1e-4 * np.eye(12)
    else:
        V[2, 2] = np.nan if kind == "NaN" else np.inf
    compare(FORMS[name], data, generator)


def test_infinite_data_travel() -> None:
    generator = np.random.default_rng(5)
    for where in ("y", "x"):
        data = data_of(12, generator)
        data[where][4] = np.inf
        compare(FORMS["covariances"], data, generator)


@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e-6), (1e3, 1e-3)])
def test_what_cancels_is_no_less_exact(offset: float, spread: float) -> None:
    """Against rational arithmetic: observations far from 0, covariances that are nearly singular."""
    program = """
    data { int n; vector[n] y; vector[n] x; matrix[n, n] L; }
    parameters { real a; real b; }
    model { target += -0.5 * dot_self(mdivide_left_tri_low(L, y - a - b * x)); }
    """
    generator = np.random.default_rng(6)
    n = 24
    L = np.tril(generator.normal(size=(n, n)) / 4) + np.eye(n)
    L[:, n // 2 :] *= spread
    x = offset + generator.normal(size=n)
    y = 2 * x + offset + L @ generator.normal(size=n)
    data = {"n": n, "y": y, "x": x, "L": L}
    plain, fast = (ulam.StanModel(program, data, opt_level=level) for level in (0, 3))
    for point in ([offset, 2.0], [offset + 1e-3, 2.0 - 1e-9], [0.1, 0.3]):
        exact = exact_density(L, y, x, point)
        errors: list[np.ndarray] = []
        for model in (plain, fast):
            value, gradient = model.log_density_gradient(point)
            found = zip((value, *gradient), exact, strict=True)
            errors.append(np.array([abs(float(Fraction(number) - right)) for number, right in found]))
        size = np.array([max(1.0, abs(float(number))) for number in exact])
        assert (errors[1] <= 4 * errors[0] + 1e-11 * size).all(), (errors, size)


def exact_density(L: np.ndarray, y: np.ndarray, x: np.ndarray, point: list[float]) -> list[Fraction]:
    """What the program adds up, and its gradient."""
    a, b = map(Fraction, point)
    rows = [[Fraction(entry) for entry in row] for row in L.tolist()]
    columns: list[list[Fraction]] = []
    for right in ([Fraction(v) - a - b * Fraction(u) for v, u in zip(y.tolist(), x.tolist(), strict=True)],
                  [Fraction(1)] * len(y), [Fraction(u) for u in x.tolist()]):  # fmt: skip
        solved: list[Fraction] = []
        for i, row in enumerate(rows):
            rest = sum((row[j] * solved[j] for j in range(i)), Fraction(0))
            solved.append((right[i] - rest) / row[i])
        columns.append(solved)
    z, *slopes = columns
    products = [sum((u * v for u, v in zip(z, slope, strict=True)), Fraction(0)) for slope in (z, *slopes)]
    return [-products[0] / 2, products[1], products[2]]
