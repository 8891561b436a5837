"""`normal-terms`: densities of a factor that nothing else reads, however they are written; what else reads it."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ulam
from ulam.passes.loops.normal_terms import NormalTerms
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """data { int n; array[n] real x; vector[n] y; real e; int which; }
parameters { real<lower=0> rho; real<lower=0> s; real m; }
model { matrix[n, n] K = add_diag(gp_exp_quad_cov(x, s, rho), 0.1); vector[n] mu = m * y + 1;
  if (e != 0) { K[2, 1] = e; K[1, 2] = m * e; } """
FACTOR = "matrix[n, n] L = cholesky_decompose(K); "

FORMS = {
    "the density of a factor": FACTOR + "y ~ multi_normal_cholesky(mu, L);",
    "the density of a covariance": "y ~ multi_normal(mu, K);",
    "constant mean": FACTOR + "target += multi_normal_cholesky_lpdf(y | rep_vector(0, n), L);",
    "Student's t": "y ~ multi_student_t(4 + s, mu, K);",
    "written out": FACTOR + "vector[n] z = mdivide_left_tri_low(L, y - mu); "
    "target += -0.5 * dot_self(z); target += -sum(log(diagonal(L)));",
    "with weights": FACTOR + "target += -s * dot_self(mdivide_left_tri_low(L, y)) + m * sum(log(diagonal(L)));",
    "a matrix that changes later": FACTOR + "K[1, 1] += s; vector[n] r = K * y; y ~ multi_normal_cholesky(r, L); "
    "target += -K[1, 2];",
}

KEPT = {
    "a factor that is read elsewhere": FACTOR + "y ~ multi_normal_cholesky(mu, L); target += -L[n, 1];",
    "a solution that is read elsewhere": FACTOR + "vector[n] z = mdivide_left_tri_low(L, y - mu); "
    "target += -0.5 * dot_self(z) - sum(log(diagonal(L))) - z[n];",
    "another sum": FACTOR + "target += sum(log(diagonal(L))) - sum(abs(mdivide_left_tri_low(L, y - mu)));",
    "several densities": FACTOR + "y ~ multi_normal_cholesky(mu, L); x ~ normal(0, 1);"
    "mu ~ multi_normal_cholesky(y, L);",
    "part of the diagonal": FACTOR + "target += -sum(log(diagonal(L)[2 : n])) - dot_self(mdivide_left_tri_low(L, y));",
}


def program(forms: dict[str, str]) -> str:
    """All of them; data choose."""
    return HEAD + "".join(f"if (which == {k}) {{ {form} }} " for k, form in enumerate(forms.values())) + "}"


@functools.cache
def done(level: int, text: str) -> int:
    """How many factors and densities are one, as `--explain` tells it."""
    with collect_remarks() as remarks:
        Compiler(text, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    return sum(remark.pass_name == NormalTerms.name and remark.done for remark in remarks)


def test_densities() -> None:
    assert done(3, program(FORMS)) == len(FORMS)
    assert done(2, program(FORMS)) == 0


def test_what_else_reads_them() -> None:
    assert done(3, program(KEPT)) == 0


def models(forms: dict[str, str], which: int, n: int, e: float = 0, y: float = 0.5) -> list[ulam.StanModel]:
    """At levels 0 and 3."""
    x, observed = np.linspace(0, 3, n), np.sin(np.arange(n))
    observed[0] = y
    data = {"n": n, "x": list(x), "y": list(observed), "e": e, "which": which}
    return [ulam.StanModel(program(forms), data, opt_level=level) for level in (0, 3)]


@pytest.mark.parametrize("forms", [FORMS, pytest.param(KEPT, marks=pytest.mark.slow)])
def test_gradients_are_those_of_level_0(forms: dict[str, str]) -> None:
    for which in range(len(forms)):
        for n in (2, 13, 40):
            plain, joined = models(forms, which, n)
            for point in ([0.3, -0.2, 0.7], [-0.5, 0.4, -0.3]):
                value, gradient = plain.log_density_gradient(np.array(point))
                found, found_gradient = joined.log_density_gradient(np.array(point))
                scale = n + float(np.abs(gradient).sum())
                assert found == pytest.approx(value, rel=1e-12, abs=1e-12 * scale)
                np.testing.assert_allclose(found_gradient, gradient, rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.slow
def test_hessian() -> None:
    plain, joined = models({"": FORMS["the density of a factor"]}, 0, 5)
    point = np.array([0.3, -0.2, 0.7])
    np.testing.assert_allclose(joined.log_density_hessian(point)[2], plain.log_density_hessian(point)[2], rtol=1e-9)


def told(model: ulam.StanModel, m: float) -> float | str:
    """The log density, or the text of a rejection."""
    try:
        return float(model.log_density_gradient(np.array([0.1, 0.2, m]))[0])
    except ulam.Rejection as error:
        return str(error)


@pytest.mark.parametrize(("e", "m"), [(9.0, 1.0), (0.5, 2.0), (np.nan, 1.0), (np.inf, 1.0)])
def test_matrices_that_are_none(e: float, m: float) -> None:
    """Not positive definite, not symmetric, not numbers."""
    for which in range(len(FORMS)):
        plain, joined = models(FORMS, which, 3, e)
        assert told(joined, m) == told(plain, m)
        assert isinstance(told(joined, m), str)


@pytest.mark.parametrize("y", [np.nan, np.inf, 1e200])
def test_observations_that_are_none(y: float) -> None:
    """The same text, or the same value."""
    for which in range(len(FORMS)):
        plain, joined = (told(model, 0) for model in models(FORMS, which, 3, y=y))
        assert joined == plain or (np.isnan(joined) and np.isnan(plain))  # pyright: ignore[reportArgumentType, reportCallIssue]
