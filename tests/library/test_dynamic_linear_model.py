"""gaussian_dlm_obs against a covariance filter in rational arithmetic, where variances differ by many orders.

What does it is the kernel `gaussian_dlm_filter`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ulam

PROGRAM = """
data {{ int n; int r; int T; }}
parameters {{ matrix[r, T] y; matrix[n, r] F; matrix[n, n] G; {V} V; matrix[n, n] W; vector[n] m0; matrix[n, n] C0; }}
model {{ y ~ gaussian_dlm_obs(F, G, V, W, m0, C0); }}
"""
STATES, OBSERVED, TIMES = 2, 3, 4

Matrix = list[list[Fraction]]


def exact(a: Any) -> Matrix:
    """The doubles themselves, as fractions."""
    return [[Fraction(float(x)) for x in row] for row in np.atleast_2d(a)]


def product(a: Matrix, b: Matrix) -> Matrix:
    return [
        [sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0)) for column in zip(*b, strict=True)]
        for row in a
    ]


def plus(a: Matrix, b: Matrix, sign: int = 1) -> Matrix:
    return [[x + sign * y for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def transposed(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def solved(a: Matrix, b: Matrix) -> tuple[Matrix, Fraction]:
    """A^-1 B and the determinant of a positive definite A, by elimination."""
    rows = [[*p, *q] for p, q in zip(a, b, strict=True)]
    determinant = Fraction(1)
    for j, pivot_row in enumerate(rows):
        determinant *= pivot_row[j]
        rows[j] = pivot_row = [x / pivot_row[j] for x in pivot_row]
        for i, row in enumerate(rows):
            if i != j:
                rows[i] = [x - row[j] * p for x, p in zip(row, pivot_row, strict=True)]
    return [row[len(a) :] for row in rows], determinant


def logarithm(x: Fraction) -> float:
    return math.log(x) if 1e-300 < x < 1e300 else math.log(x.numerator) - math.log(x.denominator)


def difference_of_densities(low: dict[str, Matrix], high: dict[str, Matrix]) -> float:
    """The log density at `high` less that at `low`, rounded once at the end."""
    quadratic, ratio = Fraction(0), Fraction(1)
    for sign, at in ((1, high), (-1, low)):
        m, C = at["m0"], at["C0"]
        observation = transposed(at["F"])
        for t in range(TIMES):
            m = product(at["G"], m)
            C = plus(product(product(at["G"], C), transposed(at["G"])), at["W"])
            covariance = product(C, at["F"])
            Q = plus(product(observation, covariance), at["V"])
            error = plus([[row[t]] for row in at["y"]], product(observation, m), -1)
            weights, determinant = solved(Q, [[*e, *c] for e, c in zip(error, transposed(covariance), strict=True)])
            quadratic += sign * sum((e[0] * w[0] for e, w in zip(error, weights, strict=True)), Fraction(0))
            ratio *= determinant if sign > 0 else 1 / determinant
            m = plus(m, product(covariance, [[row[0]] for row in weights]))
            C = plus(C, product(covariance, [row[1:] for row in weights]), -1)
    log_ratio = math.log1p(float(ratio - 1)) if abs(ratio - 1) < Fraction(1, 2) else logarithm(ratio)
    return -0.5 * (float(quadratic) + log_ratio)


def arguments(prior: float, noise: float) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    F = generator.normal(size=(STATES, OBSERVED))
    G = np.array([[0.9, 0.1], [-0.2, 0.8]])
    W = np.array([[0.5, 0.1], [0.1, 0.4]])
    m0 = generator.normal(size=STATES)
    state, columns = m0.copy(), []
    for _ in range(TIMES):  # observations that the model explains
        state = G @ state + np.linalg.cholesky(W) @ generator.normal(size=STATES)
        columns.append(F.T @ state + math.sqrt(noise) * generator.normal(size=OBSERVED))
    V = noise * np.array([[1.0, 0.3, -0.2], [0.3, 0.7, 0.1], [-0.2, 0.1, 1.6]])
    C0 = prior * np.array([[2.0, 0.3], [0.3, 1.0]])
    return {"y": np.array(columns).T, "F": F, "G": G, "V": V, "W": W, "m0": m0, "C0": C0}


Model = tuple[ulam.StanModel, bool]


@pytest.fixture(scope="module", params=["vector[r]", "matrix[r, r]"])
def model(request: pytest.FixtureRequest) -> Model:
    """The model, and whether V is a vector."""
    data = {"n": STATES, "r": OBSERVED, "T": TIMES}
    return ulam.StanModel(PROGRAM.format(V=request.param), data=data, opt_level=0), request.param == "vector[r]"


def point(model: Model, values: dict[str, np.ndarray]) -> np.ndarray:
    parts = [np.diag(v) if name == "V" and model[1] else v for name, v in values.items()]
    return np.concatenate([part.ravel(order="F") for part in parts])


@pytest.mark.parametrize(("prior", "noise"), [(1.0, 1.0), (1.0, 1e-8), (1e7, 1.0), (1e6, 1e-6), (1e4, 1e-12)])
def test_gradient_keeps_its_digits(model: Model, prior: float, noise: float) -> None:
    """Derivatives along each argument, by exact differences over a step whose square is lost in rounding."""
    values = arguments(prior, noise)
    if model[1]:
        values["V"] = np.diag(np.diag(values["V"]))
    theta = point(model, values)
    shares = model[0].log_density_gradient(theta)[1] * theta
    ends = np.cumsum([value.shape[0] if name == "V" and model[1] else value.size for name, value in values.items()])
    base = {name: exact(v) if v.ndim == 2 else transposed(exact(v)) for name, v in values.items()}
    step = Fraction(1, 2**80)
    largest = float(np.max(np.abs(shares)))
    for name, part in zip(values, np.split(shares, ends[:-1]), strict=True):
        low, high = ({**base, name: [[x * (1 + s * step) for x in row] for row in base[name]]} for s in (-1, 1))
        expected = difference_of_densities(low, high) / float(2 * step)
        assert np.sum(part) == pytest.approx(expected, rel=1e-10, abs=1e-10 * largest), name


def test_singular_covariances(model: Model) -> None:
    """A state that is known at first and has noise in one direction; an observation without error."""
    values = arguments(1.0, 1.0)
    values["W"] = np.array([[1.0, 2.0], [2.0, 4.0]])
    values["C0"] = np.zeros((2, 2))
    values["V"] = np.diag([0.0, 0.7, 1.6])
    value, gradient = model[0].log_density_gradient(point(model, values))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.usefixtures("quick_code")
def test_covariances_that_are_none() -> None:
    program = """
      data { matrix[2, 2] W; }
      model {
        matrix[2, 2] I = identity_matrix(2);
        target += gaussian_dlm_obs_lpdf(I | I, I, ones_vector(2), W, ones_vector(2), I);
      }"""
    assert np.isfinite(ulam.StanModel(program, data={"W": [[1, 2], [2, 4]]}).log_density(np.zeros(0)))
    with pytest.raises(ulam.Rejection, match="positive semidefinite"):
        ulam.StanModel(program, data={"W": [[1, 2], [2, 3]]}).log_density(np.zeros(0))
