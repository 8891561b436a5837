"""What Stan has beyond the release of the reference values: closed forms, and the general form of what is built in."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from reference_programs import lines

import ulam
from ulam.frontend.functions import higher_order, signatures
from ulam.library.functions import DENSITIES, FunctionKind, named

pytestmark = pytest.mark.usefixtures("quick_code")

HERE = Path(__file__).parent
PARTIALS = HERE.parent / "reference" / "scalar_partials.jsonl"
DISTRIBUTIONS = (*DENSITIES, FunctionKind.CDF, FunctionKind.LOG_CDF, FunctionKind.LOG_CCDF)
TRANSFORMS = ("_constrain", "_unconstrain", "_jacobian")


def test_every_function_has_an_independent_value() -> None:
    """By the reference, extended precision (test_distribution_sweeps.py sees to distributions), or in a test here."""
    known = {line["function"].partition(".")[0] for line in lines("functions.jsonl")}
    texts = "".join(path.read_text(encoding="utf-8") for path in (PARTIALS, *HERE.glob("test_*.py")))
    known.update(re.findall(r"\w+", texts))
    unknown = [
        name
        for name in (*signatures.names(), *higher_order.names())
        if name not in known and named(name).kind not in (*DISTRIBUTIONS, FunctionKind.RNG)
    ]
    assert [name for name in unknown if not name.endswith(TRANSFORMS)] == []  # those: test_transform_functions.py


def basis(n: int) -> np.ndarray:
    """Orthonormal columns that sum to zero: of the isometric log-ratio transform, in the order of Stan."""
    columns = np.zeros((n, n - 1))
    for i in range(1, n):
        columns[:i, i - 1] = 1 / np.sqrt(i * (i + 1))
        columns[i, i - 1] = -i / np.sqrt(i * (i + 1))
    return columns


def simplex(free: np.ndarray) -> np.ndarray:
    """Of each column."""
    x = np.exp(basis(len(free) + 1) @ free)
    return x / x.sum(axis=0)


def log_jacobian(x: np.ndarray) -> float:
    """Of simplexes in columns."""
    return float(np.log(x).sum() + 0.5 * x.shape[1] * np.log(len(x)))


def test_newer_types_by_closed_forms() -> None:
    program = """parameters {
      sum_to_zero_vector[4] a;
      sum_to_zero_matrix[3, 4] b;
      column_stochastic_matrix[3, 2] c;
      row_stochastic_matrix[2, 4] d;
      simplex[5] e;
    }"""
    model = ulam.StanModel(program, opt_level=0)
    theta = np.random.default_rng(4).normal(size=model.param_unc_num())
    parts = np.split(theta, np.cumsum([3, 6, 4, 6]))
    first, second = (np.roll(basis(n), -1, axis=0) for n in (3, 4))  # matrices have what the others have first last
    a, b = basis(4) @ parts[0], first @ parts[1].reshape(3, 2).T @ second.T
    c, d, e = simplex(parts[2].reshape(2, 2).T), simplex(parts[3].reshape(3, 2)), simplex(parts[4][:, None])
    expected = np.concatenate([a, b.T.ravel(), c.T.ravel(), d.ravel(), e.ravel()])
    np.testing.assert_allclose(model.param_constrain(theta), expected, rtol=1e-13, atol=1e-14)
    jacobian = log_jacobian(c) + log_jacobian(d) + log_jacobian(e)
    assert model.log_density(theta) == pytest.approx(jacobian, rel=1e-13)
    assert model.log_density(theta, jacobian=False) == 0


def test_newer_matrix_functions() -> None:
    program = """data { matrix[3, 2] A; matrix[2, 3] B; }
    parameters { real p; }
    generated quantities {
      real t = trace_dot(A, B);
      row_vector[3] s = softmax(B[1]);
      array[2] row_vector[3] l = log_softmax({B[1], B[2]});
    }"""
    rng = np.random.default_rng(5)
    A, B = rng.normal(size=(3, 2)), rng.normal(size=(2, 3))
    model = ulam.StanModel(program, {"A": A.tolist(), "B": B.tolist()}, opt_level=0)
    logs = B - np.log(np.exp(B).sum(axis=1, keepdims=True))
    expected = np.concatenate([[0, np.trace(A @ B)], np.exp(logs[0]), logs.ravel("F")])
    found = model.param_constrain([0.0], include_gq=True, rng=model.new_rng(1))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


LIKELIHOODS = {
    "poisson_log": (
        "y, idx, m",
        "poisson_log_lpmf(y | theta[idx] + m[idx])",
        "array[] int y, array[] int idx, vector m",
    ),
    "bernoulli_logit": (
        "y, idx, m",
        "bernoulli_logit_lpmf(y | theta[idx] + m[idx])",
        "array[] int y, array[] int idx, vector m",
    ),
    "neg_binomial_2_log": (
        "y, idx, s, m",
        "neg_binomial_2_log_lpmf(y | theta[idx] + m[idx], s[idx])",
        "array[] int y, array[] int idx, vector s, vector m",
    ),
}


LIKELIHOOD = """data { array[4] int y; array[4] int idx; vector[3] s; vector[3] m; }
parameters { vector[3] theta; }
model { target += DENSITY; }"""


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_laplace_forms_are_the_general_one(likelihood: str) -> None:
    """`laplace_marginal_..._lpmf`, `laplace_latent_..._rng`, those with `_tol`, `laplace_latent_solve_tol`."""
    given, density, formals = LIKELIHOODS[likelihood]
    y, _, others = given.partition(", ")
    options = "(rep_vector(0.1, 3), 1e-10, 200, SOLVER, 50, 1)"
    calls = {
        f"laplace_marginal_{likelihood}_lpmf({y} | {others}, 1, cov, (v,))": (
            f"laplace_marginal(ll, ({given}), 1, cov, (v,))"
        ),
        f"laplace_marginal_tol_{likelihood}_lpmf({y} | {others}, 1, cov, (v,), {options})": (
            f"laplace_marginal_tol(ll, ({given}), 1, cov, (v,), {options})"
        ),
    }
    draws = {
        f"laplace_latent_{likelihood}_rng({given}, 1, cov, (v,))": f"laplace_latent_rng(ll, ({given}), 1, cov, (v,))",
        f"laplace_latent_tol_{likelihood}_rng({given}, 1, cov, (v,), {options})": (
            f"laplace_latent_tol_rng(ll, ({given}), 1, cov, (v,), {options})"
        ),
    }
    solved = f"laplace_latent_solve_tol(ll, ({given}), 1, cov, (v,), {options})"
    sides = []
    for side in (list(calls), list(calls.values())):
        sides.append("".join(f"target += {k + 1} * {call};\n" for k, call in enumerate(side)).replace("SOLVER", "2"))
    program = """functions {
      real ll(vector theta, FORMALS) { return DENSITY; }
      matrix cov(real v) { return add_diag(rep_matrix(0.4 * v, 3, 3), v); }
    }
    data { array[4] int y; array[4] int idx; vector[3] s; vector[3] m; }
    parameters { real<lower=0> v; }
    model { MODEL }
    generated quantities { QUANTITIES }"""
    program = program.replace("FORMALS", formals).replace("DENSITY", density)
    data = {"y": [0, 1, 1, 0], "idx": [1, 2, 3, 3], "s": [1.0, 2, 3], "m": [0.1, -0.2, 0.3]}
    found = []
    for model_text, drawn in zip(sides, (list(draws), list(draws.values())), strict=True):
        quantities = "".join(f"vector[3] g{k} = {call.replace('SOLVER', '3')};\n" for k, call in enumerate(drawn))
        quantities += f"tuple(vector[3], matrix[3, 3]) h = {solved.replace('SOLVER', '1')};\n"
        text = program.replace("MODEL", model_text).replace("QUANTITIES", quantities)
        model = ulam.StanModel(text, data, opt_level=0)
        value, gradient = model.log_density_gradient([0.2])
        written = model.param_constrain([0.2], include_gq=True, rng=model.new_rng(3))
        found.append(np.concatenate([[value], gradient, written]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    mean = found[0][-12:-9]
    slope = ulam.StanModel(LIKELIHOOD.replace("DENSITY", density), data, opt_level=0).log_density_gradient(mean)[1]
    covariance = 0.4 * np.exp(0.2) * np.ones((3, 3)) + np.exp(0.2) * np.eye(3)
    np.testing.assert_allclose(covariance @ slope, mean, rtol=1e-8, atol=1e-10)  # that it is the mode


def test_tails_of_the_beta_negative_binomial_end_soon() -> None:
    """Shapes of all sizes: soon a value, that of the masses where these fall fast, or an error that says so."""
    model = ulam.StanModel(
        """data { int n; }
           parameters { real r; real a; real b; }
           model { target += beta_neg_binomial_lccdf(n | r, a, b); }
           generated quantities {
             real both = beta_neg_binomial_cdf(n | r, a, b) + exp(beta_neg_binomial_lccdf(n | r, a, b));
             real masses = log_sum_exp(to_vector({
               beta_neg_binomial_lpmf(n + 1 | r, a, b), beta_neg_binomial_lpmf(n + 2 | r, a, b),
               beta_neg_binomial_lpmf(n + 3 | r, a, b)}));
           }""",
        {"n": 2},
    )
    rng = ulam.Rng(1)
    shapes = [1e-300, 0.5, 1e3, 1e10]
    for r, a, b in itertools.product(shapes, repeat=3):
        point = np.array([r, a, b])
        try:
            value, gradient = model.log_density_gradient(point, time_limit=20)
            *_, both, masses = model.param_constrain(point, include_gq=True, rng=rng)
        except ulam.Rejection as error:
            assert "too slowly" in str(error) or "too many" in str(error)
            assert max(r, b) > 1e9
            continue
        assert both == pytest.approx(1, rel=1e-9)
        assert value <= 1e-12 and not np.isnan(gradient).any()
        if a > 1e8 * max(r, b, 1):
            assert value == pytest.approx(masses, rel=1e-9)


def test_shapes_of_the_beta_negative_binomial_may_be_exchanged() -> None:
    """Also where they are equal: the gradient goes to both."""
    for name in ("lpmf", "lcdf", "lccdf"):
        model = ulam.StanModel(
            f"parameters {{ real r; real a; real b; }} model {{ target += beta_neg_binomial_{name}(9 | r, a, b); }}"
        )
        for r, b in ((2.0, 2.0), (0.3, 7.0)):
            value, (of_r, of_a, of_b) = model.log_density_gradient([r, 3, b])
            other, (of_b_other, of_a_other, of_r_other) = model.log_density_gradient([b, 3, r])
            expected = [value, of_r, of_a, of_b]
            np.testing.assert_allclose([other, of_r_other, of_a_other, of_b_other], expected, rtol=1e-12)
            assert (of_r == pytest.approx(of_b, rel=1e-12)) == (r == b)


def test_slopes_of_distribution_functions_where_their_formulas_have_none() -> None:
    """In the middle of a t distribution, and where a shape is 1 at an end: those of neighbours, on one side or both."""
    model = ulam.StanModel(
        """parameters { real y; real nu; real a; real b; }
           model {
             target += student_t_cdf(y | nu, 0.5, 2) + 2 * student_t_lcdf(y | nu, 0.5, 2);
             target += student_t_lccdf(y | nu, 0.5, 3);
             target += beta_cdf(y + 0.5 | a, b) + beta_cdf(y - 0.5 | b, a);
           }"""
    )
    for nu in (0.3, 1.0, 5.0, 1e6):
        point = np.array([0.5, nu, 1, 1])
        value, gradient = model.log_density_gradient(point)
        assert np.isfinite(gradient[:2]).all()
        density = math.exp(math.lgamma(0.5 * nu + 0.5) - math.lgamma(0.5 * nu)) / math.sqrt(nu * math.pi) / 2
        assert gradient[0] == pytest.approx(5 * density - 2 * density * 2 / 3 + 2, rel=1e-8)
        assert gradient[1] == 0
