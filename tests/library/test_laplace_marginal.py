"""The embedded Laplace approximation: exact for Gaussian likelihoods, else against quadrature and differences."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import StanModel
from ulam.runtime.errors import Rejection
from ulam.tools.stan_opt import main as stan_opt

pytestmark = pytest.mark.usefixtures("quick_code")

N = 6
X = np.linspace(0, 3, N)
GAUSSIAN = """functions {
  real ll(vector theta, vector y, real sigma) { return normal_lpdf(y | theta, sigma); }
  matrix cov(vector x, real alpha, real rho) { return gp_exp_quad_cov(to_array_1d(x), alpha, rho); }
}
data { int N; vector[N] x; vector[N] y; int b; int solver; int allow; vector[N] init; }
parameters { real<lower=0> alpha; real<lower=0> rho; real<lower=0> sigma; }
model {
  target += laplace_marginal_tol(ll, (y, sigma), b, cov, (x, alpha, rho), (init, 1e-8, 20, solver, 10, allow));
}
generated quantities {
  tuple(vector[N], matrix[N, N]) solved = laplace_latent_solve(ll, (y, sigma), b, cov, (x, alpha, rho));
  vector[N] drawn = laplace_latent_rng(ll, (y, sigma), b, cov, (x, alpha, rho));
}
"""


def gaussian(**data: Any) -> StanModel:
    rng = np.random.default_rng(1)
    given = {"N": N, "x": X, "y": rng.normal(size=N), "b": 1, "solver": 1, "allow": 0, "init": np.zeros(N)}
    return StanModel(GAUSSIAN, given | data, opt_level=0)


def closed_form(u: np.ndarray) -> tuple[float, np.ndarray]:
    """log N(y | 0, K + sigma^2 I) with the Jacobian of three exponentials, and its gradient."""
    alpha, rho, sigma = np.exp(u)
    y = np.random.default_rng(1).normal(size=N)
    distance = (X[:, None] - X) ** 2
    k = alpha**2 * np.exp(-0.5 * distance / rho**2)
    s = k + sigma**2 * np.eye(N)
    slopes = [2 * k, k * distance / rho**2, 2 * sigma**2 * np.eye(N)]
    w = np.linalg.solve(s, y)
    value = -0.5 * y @ w - 0.5 * np.linalg.slogdet(s)[1] - 0.5 * N * np.log(2 * np.pi) + u.sum()
    return value, np.array([0.5 * w @ d @ w - 0.5 * np.trace(np.linalg.solve(s, d)) + 1 for d in slopes])


POINTS = [np.array([0.2, -0.1, -0.5]), np.array([1.5, 0.8, -4.0]), np.array([-2.0, 1.5, 1.0])]


@pytest.mark.parametrize("b", [1, 2, 3, 6])
@pytest.mark.parametrize("solver", [1, 2, 3])
def test_gaussian_likelihoods_are_exact(b: int, solver: int) -> None:
    model = gaussian(b=b, solver=solver, init=np.zeros(N) if b < 3 else np.linspace(-1, 2, N))
    for u in POINTS:
        if solver == 2 and u[1] > 1:
            continue  # the covariance is singular to rounding
        value, gradient = model.log_density_gradient(u)
        expected, slopes = closed_form(u)
        assert value == pytest.approx(expected, rel=1e-11) == model.log_density(u)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-8)


def test_hessian_of_the_marginal() -> None:
    model, u, h = gaussian(), POINTS[0], 1e-5
    ends = [(closed_form(u + h * e)[1], closed_form(u - h * e)[1]) for e in np.eye(3)]
    np.testing.assert_allclose(model.log_density_hessian(u)[2], [(a - b) / (2 * h) for a, b in ends], atol=1e-7)


def test_latent_variables() -> None:
    """Mean and covariance of the exact posterior, and draws from it."""
    model, u = gaussian(), POINTS[0]
    alpha, rho, sigma = np.exp(u)
    k = alpha**2 * np.exp(-0.5 * (X[:, None] - X) ** 2 / rho**2)
    gain = np.linalg.solve(k + sigma**2 * np.eye(N), k).T
    mean, covariance = gain @ np.random.default_rng(1).normal(size=N), k - gain @ k
    rng = model.new_rng(7)
    rows = np.array([model.param_constrain(u, include_tp=False, include_gq=True, rng=rng) for _ in range(20000)])
    factor = rows[0, 3 + N : 3 + N + N * N].reshape(N, N).T
    np.testing.assert_allclose(rows[0, 3 : 3 + N], mean, rtol=1e-10)
    np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-12)
    assert (np.triu(factor, 1) == 0).all()
    draws = rows[:, -N:]
    np.testing.assert_allclose(draws.mean(0), mean, atol=5 * np.sqrt(covariance.max() / 20000))
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * covariance.max())


SEVERAL = """functions {
  matrix cov(vector x, real alpha, real rho) { return add_diag(gp_exp_quad_cov(to_array_1d(x), alpha, rho), 1e-8); }
  real pairs(vector theta, vector y, real s) {  // neither diagonal nor concave
    real r = 0;
    for (i in 1:3) {
      r += student_t_lpdf(y[i] | 4, theta[2 * i - 1] * exp(0.1 * theta[2 * i]), s)
           - 0.1 * square(theta[2 * i] - theta[2 * i - 1]) ^ 2;
    }
    return r;
  }
}
data { int N; int M; vector[N] x; array[M] int y; array[M] int idx; int solver; }
parameters { real<lower=0> alpha; real<lower=0> rho; real<lower=0> s; vector[N] m; }
model {
  STATEMENT
}
"""
STATEMENTS = {
    "poisson": "y ~ laplace_marginal_poisson_log(idx, m, 1, cov, (x, alpha, rho));",
    "pairs": "target += laplace_marginal_tol(pairs, (m[1:3] * 3, s), 2, cov, (x, alpha, rho), "
    "(rep_vector(0.3, N), 1e-8, 200, solver, 100, 1));",
    "binomial": "y ~ laplace_marginal_neg_binomial_2_log(idx, rep_vector(s, N), m, 1, cov, (x, alpha, rho));",
    "bernoulli": "target += laplace_marginal_tol_bernoulli_logit_lpmf("
    "y | idx, m, 1, cov, (x, alpha, rho), generate_laplace_options(N));",
}


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("poisson", 1),
        *(("pairs", solver) for solver in (1, 2, 3)),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in ("binomial", "bernoulli")),
    ],
)
def test_gradients_against_differences(name: str, solver: int) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 10) if name == "bernoulli" else rng.poisson(3, 10)
    data = {"N": N, "M": 10, "x": X, "y": y, "idx": [1, 2, 3, 4, 5, 6, 1, 2, 3, 3], "solver": solver}
    model = StanModel(SEVERAL.replace("STATEMENT", STATEMENTS[name]), data, opt_level=0)
    u = np.concatenate([[0.2, -0.1, 0.5], rng.normal(size=N) * 0.3])

    def differences(h: float) -> np.ndarray:
        ends = [model.log_density(u + h * e) - model.log_density(u - h * e) for e in np.eye(len(u))]
        return np.array(ends) / (2 * h)

    expected = (4 * differences(1e-4) - differences(2e-4)) / 3
    np.testing.assert_allclose(model.log_density_gradient(u)[1], expected, atol=2e-9)


KERNELS = {
    "cholesky": "multi_normal_lpdf(y | theta, add_diag(s * S, 0.5))",
    "product": "-0.2 * s * sum(square(to_matrix(theta, 2, 2) * to_matrix(theta .* y, 2, 2))) - dot_self(theta)",
    "triangular": "-dot_self(mdivide_left_tri_low(add_diag(s * S + 0.01 * theta * theta', 1), theta - y))",
    "right": "-dot_self((theta - y)' / add_diag(s * S + 0.01 * theta * theta', 1))",
    "recursion": "powers(theta - y, SPD, 2)",
}
SMALL_TERMS = {
    "sorted": "dot_product(square(sort_asc(s * theta)), y) + dot_product(square(sort_desc(theta)), y)",
    "solutions": "sum(mdivide_left(ANY, theta)) + sum(theta' / ANY) + sum(mdivide_left_spd(SPD, theta))",
    "determinants": "determinant(ANY) + log_determinant(ANY) + log_determinant_spd(SPD)",
    "inverses": "inverse(ANY)[1, 2] + inverse_spd(SPD)[3, 2] + chol2inv(cholesky_decompose(SPD))[1, 2]",
    "exponential": "sum(matrix_exp(0.3 * ANY)[1:3, 2:4])",
    "eigenvalues": "dot_product(eigenvalues_sym(SPD), y)",
    "eigenvectors": "sum(square(eigenvectors_sym(SPD)[1:2, 3])) + max(eigenvalues_sym(SPD))",
    "singular values": "dot_product(singular_values(ANY), y)",
    "svd of more rows": "sum(square(svd_U(TALL)[1:2, 1:2])) + sum(square(svd_V(TALL)[1:2, 1]))",
    "svd of more columns": "sum(square(svd_U(TALL')[1:2, 1:2])) + sum(square(svd_V(TALL')[1:2, 1]))",
    "qr of more rows": "qr_thin_R(TALL)[1, 3] + sum(qr_thin_Q(TALL)[1:2, 1:2])",
    "qr of more columns": "sum(qr_thin_R(TALL')[1:3, 3:4]) + sum(qr_thin_Q(TALL')[1:2, 1:2])",
    "filter": "gaussian_dlm_obs_lpdf(to_matrix(y * s, 2, 2) | to_matrix(theta, 2, 2), "
    "0.5 * to_matrix(theta + y, 2, 2), identity_matrix(2) * s, "
    "diag_matrix(square(theta[1:2]) + 1), theta[1:2], identity_matrix(2))",
}
"""Added to a likelihood that has one mode."""
KERNELS |= {name: f"-2 * dot_self(theta - y) + 0.1 * ({term})" for name, term in SMALL_TERMS.items()}
MATRICES = {
    "SPD": "add_diag(s * S + 0.1 * theta * theta', [1, 1.5, 2.2, 3 + s])",
    "ANY": "(0.1 * theta * y' + S + 0.3 * s * [[1, 2, 3, 4]]' * [[4, 3, 2, 1]])",
    "TALL": "to_matrix(append_row(append_row(theta + y, square(theta - 0.4)), [1, 0.5, 0.2, 0]' + s * theta), 4, 3)",
}


@pytest.mark.parametrize("name", ["cholesky", *(pytest.param(n, marks=pytest.mark.slow) for n in [*KERNELS][1:])])
def test_likelihoods_with_kernels(name: str) -> None:
    """Matrix functions of the runtime are differentiated three times, for the Hessian four times."""
    program = """functions {
      real powers(vector theta, matrix M, int n) {
        if (n == 0) return -0.5 * dot_self(theta);
        return powers(cholesky_decompose(M) * theta / 2, inverse(M), n - 1) - 0.1 * log_determinant(M);
      }
      real ll(vector theta, vector y, matrix S, real s) { return LL; }
      matrix cov(real a) { return add_diag(rep_matrix(0.3, 4, 4), a); }
    }
    data { vector[4] y; matrix[4, 4] S; }
    parameters { real<lower=0> a; real<lower=0> s; }
    model { target += laplace_marginal(ll, (y, S, s), 4, cov, (a,)); }"""
    data = {"y": [0.5, -0.3, 1, 0.2], "S": (np.full((4, 4), 0.2) + np.eye(4) * 0.5).tolist()}
    program = program.replace("LL", KERNELS[name])
    for matrix, written in MATRICES.items():
        program = program.replace(matrix, written)
    model = StanModel(program, data, opt_level=0)
    u, h = np.array([0.1, 0.3]), 1e-4
    ends = [(model.log_density(u + h * e) - model.log_density(u - h * e)) / (2 * h) for e in np.eye(2)]
    value, gradient, hessian = model.log_density_hessian(u)
    np.testing.assert_allclose(gradient, ends, atol=1e-7)
    ends = [(model.log_density_gradient(u + h * e)[1] - model.log_density_gradient(u - h * e)[1]) for e in np.eye(2)]
    np.testing.assert_allclose(hessian, np.array(ends) / (2 * h), atol=1e-6)
    assert np.isfinite(value)


def test_one_latent_variable_by_quadrature() -> None:
    """The approximation of a Poisson count with a narrow latent variable: its error is of the order of K^2."""
    program = """functions { matrix cov(real v) { return [[v]]; } }
    parameters { real<lower=0> v; }
    model { target += laplace_marginal_poisson_log_lpmf({3, 1} | {1, 1}, [0.5]', 1, cov, (v,)); }"""
    model = StanModel(program, opt_level=0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for v in (1e-3, 1e-2):
        rate = 0.5 + np.sqrt(v) * nodes
        integrand = np.exp(4 * rate - 2 * np.exp(rate)) / 6
        exact = np.log(weights @ integrand / np.sqrt(2 * np.pi))
        assert model.log_density(np.log([v]), jacobian=False) == pytest.approx(exact, abs=2 * v**2)


def test_errors() -> None:
    u = POINTS[0]
    for data, message in (
        ({"b": 4}, "must be 0"), ({"b": 0}, "hessian_block_size is 0, but must be positive"),
        ({"solver": 4}, r"solver is 4, but must be in the interval \[1, 3\]"),
        ({"y": [np.nan] * N}, "nan"),
    ):  # fmt: skip
        with pytest.raises(Exception, match=message):
            gaussian(**data).log_density(u)
    with pytest.raises(Rejection, match="positive definite"):
        gaussian(solver=2).log_density(np.array([0.0, 40.0, 0.0]))
    assert np.isfinite(gaussian(solver=2, allow=1).log_density(np.array([0.0, 40.0, 0.0])))
    convex = GAUSSIAN.replace("normal_lpdf(y | theta, sigma)", "dot_self(theta) / 4 - sum(theta .^ 4)")
    for allow in (0, 1):
        model = StanModel(convex, {"N": N, "x": X, "y": X, "b": 1, "solver": 1, "allow": allow, "init": X / 100})
        if allow:
            assert np.isfinite(model.log_density(u))
        else:
            with pytest.raises(Rejection, match="not positive semidefinite"):
                model.log_density(u)


def test_printing_puts_tuples_together_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.stan"
    file.write_text(SEVERAL.replace("STATEMENT", STATEMENTS["poisson"] + STATEMENTS["pairs"]))
    assert stan_opt(["-t", "stan", str(file)]) == 0
    text = capsys.readouterr().out
    assert "y ~ laplace_marginal_poisson_log(idx, m, 1, cov, (x, alpha, rho));" in text
    assert re.search(r"laplace_marginal_tol\(pairs, \(.*, s\), 2, cov, \(x, alpha, rho\), \(rep_vector.*, 1\)\)", text)
    file.write_text(text)
    assert stan_opt(["-t", "stan", str(file)]) == 0
    assert capsys.readouterr().out == text
