"""`form-layouts`: rows of vectors of which quadratic forms are added up, reduced when data are bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_products, outcome

import ulam
from ulam.passes.loops import row_elements
from ulam.passes.loops.form_layouts import FormLayouts
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """
data { int n; int K; int P; array[n] vector[K] y; matrix[n, K] Y; matrix[n, P] X; array[n] row_vector[2] z;
       vector[n] w; array[n] int g; matrix[K, K] V; }
parameters { vector[K] mu; matrix[K, P] B; matrix[K, 2] F; vector<lower=0>[K] s; cholesky_factor_corr[K] L; real a;
             real<lower=-1.2, upper=1.2> rho; }
"""
# Several statements per program, so that less is compiled; the number of layouts that are found.
FORMS = {
    "arrays": (
        "model { matrix[K, K] C = diag_pre_multiply(s, L); y ~ multi_normal_cholesky(mu, C); "
        "target += multi_normal_lpdf(y | rep_vector(a, K), F * F' + diag_matrix(s)); "
        "y ~ multi_normal_prec(mu, tcrossprod(C)); z ~ multi_normal([a, rho], [[1, rho], [rho, 1]]); }",
        4,
    ),
    "loops": (
        "model { matrix[K, K] C = diag_pre_multiply(s, L); "
        "for (i in 1 : n) Y[i] ~ multi_normal(mu, add_diag(tcrossprod(F), s)); "
        "for (i in 2 : n) y[i] ~ multi_normal_cholesky(mu + B[, 1] * w[i] + a * (y[i - 1] - mu), C); "
        "for (i in 1 : n) { vector[K] r = y[i] - B * X[i]' - a; target += -0.5 * r' * (C \\ r) - log(a ^ 2 + 1); } "
        "for (i in 1 : n) target += -0.5 * quad_form(V, y[i] - mu) + a * w[i]; }",
        4,
    ),
    "means ahead": (
        "model { array[n] vector[K] m; for (i in 1 : n) m[i] = mu + B * X[i]'; "
        "y ~ multi_normal(m, quad_form_diag(multiply_lower_tri_self_transpose(L), s)); }",
        1,
    ),
    # Matrices of which loops read rows; the first row stands ahead of one of them, and a sum reads another, too.
    "products ahead": (
        "model { matrix[n, K] m = X * B'; matrix[n, K] M = rep_matrix(mu', n) + X * B'; matrix[n, K] W = m * a; "
        "for (i in 1 : n) y[i] ~ multi_normal_cholesky(m[i]', diag_pre_multiply(s, L)); "
        "for (i in 1 : n) Y[i] ~ multi_normal(M[i], multiply_lower_tri_self_transpose(L)); "
        "array[n] vector[K] q; for (i in 1 : n) q[i] = W[i]'; y ~ multi_normal_cholesky(q, L); "
        "target += -log1p(sum(square(W))); }",
        3,
    ),
    "vectors ahead": (
        "model { array[n] vector[K] m; for (i in 1 : n) m[i] = B * X[i]'; y ~ multi_normal_cholesky(m, L); "
        "array[n] vector[K] q; for (i in 1 : n) { q[i] = mu; q[i] += a * w[i]; } "
        "y ~ multi_normal(q, quad_form_diag(multiply_lower_tri_self_transpose(L), s)); }",
        2,
    ),
    # Coefficients of groups, beside those of all, with data of the row, in loops, of a matrix and of vectors.
    "groups": (
        "transformed parameters { array[2] vector[K] m; for (j in 1 : 2) m[j] = mu + F[, j] * a; } "
        "model { y ~ multi_normal_cholesky(m[g], diag_pre_multiply(s, L)); "
        "for (i in 1 : n) y[i] ~ multi_normal_cholesky(F[, g[i]] + B * X[i]', L); "
        "for (i in 1 : n) y[i] ~ multi_normal_cholesky(mu + F[, g[i]] * w[i] + B[, 1] * w[i], L); "
        "for (i in 2 : n) y[i] ~ multi_normal_cholesky(m[g[i - 1]] + m[g[i - 1]] .* X[i - 1, 1], L); }",
        4,
    ),
    "slopes of groups": (
        "model { matrix[2, P] S = (F')[, 1 : P]; w ~ normal(rows_dot_product(S[g], X), s[1]); "
        "for (i in 1 : n) w[i] ~ normal(a + dot_product(X[i], S[g[i]]), s[2]); }",
        2,
    ),
    "products with rows of groups": (
        "model { matrix[2, P] S = (F')[, 1 : P]; w ~ normal((X .* S[g]) * rep_vector(1, P), s[1]); }",
        1,
    ),
    "means of groups in a loop": (
        "model { matrix[2, P] S = (F')[, 1 : P]; vector[n] m; for (i in 1 : n) m[i] = X[i] * B[1]' + X[i] * S[g[i]]'; "
        "w ~ normal(m, s[1]); }",
        1,
    ),
    "products beside products with rows of groups": (
        "model { matrix[2, P] S = (F')[, 1 : P]; w ~ normal(X * B[1]' + rows_dot_product(X, S[g]), s[2]); }",
        1,
    ),
    "two outcomes": (
        "model { matrix[2, 2] S = [[s[1] ^ 2, rho * s[1] * s[2]], [rho * s[1] * s[2], s[2] ^ 2]]; "
        "for (i in 1 : n) { vector[2] m = [mu[1] + X[i] * B[1]', mu[2] + a * w[i]]'; z[i] ~ multi_normal(m, S); } }",
        1,
    ),
}  # fmt: skip
KEPT = {
    "a covariance for each row": "model { for (i in 1 : n) y[i] ~ multi_normal_cholesky(mu, exp(w[i] * a) * L); }",
    "means of two groups": "model { for (i in 2 : n) y[i] ~ multi_normal_cholesky(F[, g[i]] + F[, g[i - 1]], L); }",
    "a covariance for each group": "model { for (i in 1 : n) y[i] ~ multi_normal_cholesky(mu, exp(F[1, g[i]]) * L); }",
    "means that are not linear": "model { for (i in 1 : n) y[i] ~ multi_normal_cholesky(mu * exp(a * w[i]), L); }",
    "no normal density": "model { for (i in 1 : n) y[i] ~ multi_student_t_cholesky(7, mu, L); }",
    "rows of a product in another order": "model { matrix[n, K] m = X * B'; "
    "for (i in 1 : n) y[i] ~ multi_normal_cholesky(m[n - i + 1]', L); }",
    "a triangle of coefficients": "model { for (i in 1 : n) { vector[K] r = y[i] - mu; for (k in 1 : K) "
    "for (j in k + 1 : K) r[k] += F[k, 1] * y[i, j]; target += -dot_self(L * r); } }",
    "what a row has left over": "model { matrix[n, K] r; for (i in 1 : n) { r[i] = Y[i] - mu'; "
    "r[i]' ~ multi_normal_cholesky(rep_vector(0, K), L); } target += -sum(exp(r)); }",
}


def remarks_of(program: str) -> list[bool]:
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    return [remark.done for remark in remarks if remark.pass_name == FormLayouts.name]


def data_of(n: int, generator: np.random.Generator) -> dict[str, Any]:
    return {
        "n": n,
        "K": 3,
        "P": 2,
        "y": generator.normal(1, 2, size=(n, 3)),
        "Y": generator.normal(size=(n, 3)) * [1, 3, 0.1],
        "X": generator.normal(size=(n, 2)),
        "z": generator.normal(size=(n, 2)),
        "w": generator.normal(size=n),
        "g": generator.integers(1, 2, size=n, endpoint=True),
        "V": [[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 3.0]],
    }


def points(size: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Ordinary ones, covariances that are none among them; then coefficients as no layout may be used, or only just."""
    found = [generator.normal(size=size) * scale for scale in (0.1, 0.1, 1.0, 1.0, 3.0)]
    found[1][-1] = 6.0
    for at in (0, 4, -2):
        for value in (1e60, 1e75, 1e200, np.inf, np.nan):
            found.append(generator.normal(size=size))
            found[-1][at] = value
    return found


@pytest.mark.parametrize("name", FORMS)
def test_densities_are_those_of_level_0(name: str) -> None:
    """Values, gradients and errors; of so few rows that none are reduced, too."""
    program, count = FORMS[name]
    assert sum(remarks_of(HEAD + program)) == count
    generator = np.random.default_rng(7)
    for n in (3, 80):
        data = data_of(n, generator)
        plain, reduced = (ulam.StanModel(HEAD + program, data, opt_level=level) for level in (0, 3))
        taken = [choice.taken for choice in reduced.layout_choices() if "columns" in choice.figures]
        assert taken == [n > 3] * count
        size = plain.param_unc_num()
        for point in points(size, generator):
            first, second = outcome(plain, point), outcome(reduced, point)
            if isinstance(first, str) or isinstance(second, str):
                assert first == second
                continue
            assert np.isfinite(first[0]) == np.isfinite(second[0])
            if np.isfinite(first[0]):
                close(first, second)
        if n > 3 and name == "two outcomes":
            assert_same_products(plain, reduced, generator)


@pytest.mark.parametrize("name", ["means ahead", "groups", "slopes of groups", "two outcomes"])
def test_rows_of_twice_the_digits(name: str) -> None:
    """Where numbers cancel: values, gradients and products of Hessians."""
    program, _ = FORMS[name]
    generator = np.random.default_rng(7)
    data = data_of(80, generator)
    for column in ("y", "X", "z", "w"):
        data[column] += 1e4
    plain, reduced = (ulam.StanModel(HEAD + program, data, opt_level=level) for level in (0, 3))
    assert all(choice.taken for choice in reduced.layout_choices() if "columns" in choice.figures)
    for _ in range(3):
        point = generator.normal(size=plain.param_unc_num()) / 10
        first, second = outcome(plain, point), outcome(reduced, point)
        assert not isinstance(first, str) and not isinstance(second, str)
        close(first, second)
    assert_same_products(plain, reduced, generator)


def close(first: tuple[float, np.ndarray], second: tuple[float, np.ndarray]) -> None:
    np.testing.assert_allclose(second[0], first[0], rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(second[1], first[1], rtol=1e-9, atol=1e-10 * max(1, np.abs(first[1]).max()))


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_quadratic_form_of_data_is_left_alone(name: str) -> None:
    assert not any(remarks_of(HEAD + KEPT[name]))


def test_elements_of_long_computations_are_left_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices that are made of each other: rows compute elements of them only if that is short work."""
    program, found = FORMS["products ahead"]
    monkeypatch.setattr(row_elements, "MOST_OPS", 8)
    assert 0 < sum(remarks_of(HEAD + program)) < found


def test_data_that_are_not_finite_travel() -> None:
    """NaN is an error where it was; infinite numbers, and such as squares have no room for, leave rows as they are."""
    program, _ = FORMS["two outcomes"]
    generator = np.random.default_rng(8)
    for value in (np.nan, np.inf, 1e200, 1e-200, 1e60):
        data = data_of(20, generator)
        data["z"][3, 1] = value
        plain, reduced = (ulam.StanModel(HEAD + program, data, opt_level=level) for level in (0, 3))
        point = generator.normal(size=plain.param_unc_num()) / 10
        first, second = outcome(plain, point), outcome(reduced, point)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
        else:
            np.testing.assert_allclose(second[0], first[0], rtol=1e-12)
            finite = np.isfinite(first[1])
            size = max(1, np.abs(first[1][finite]).max())
            np.testing.assert_allclose(second[1][finite], first[1][finite], rtol=1e-10, atol=1e-10 * size)


@pytest.mark.parametrize(
    ("keys", "far", "is_reduced"),
    [([3, 9], 1.0, True), ([1], 1.0, True), (range(1, 41), 1.0, False), ([2, 3], 300.0, True), ([2, 3], 1e7, True)],
)
def test_groups_of_any_keys_and_means(keys: list[int], far: float, is_reduced: bool) -> None:
    """Keys between which some have no row, one key, few rows of each; means of groups that are far from each other."""
    program = """
    data { int n; int J; array[n] vector[2] y; vector[n] x; array[n] int<lower=1, upper=J> g; }
    parameters { array[J] vector[2] a; vector[2] b; cholesky_factor_corr[2] L; }
    model { for (i in 1 : n) y[i] ~ multi_normal_cholesky(a[g[i]] + a[g[i], 1] * x[i] + b * x[i], L); }
    """
    generator = np.random.default_rng(6)
    n = 90
    g = generator.choice(list(keys), size=n)
    y = far * g[:, None] + generator.normal(size=(n, 2))
    data = {"n": n, "J": 40, "y": y, "x": generator.normal(size=n), "g": g}
    plain, reduced = (ulam.StanModel(program, data, opt_level=level) for level in (0, 3))
    (choice,) = reduced.layout_choices()
    assert choice.taken == is_reduced, choice.message
    for scale in (0.1, 1.0):
        point = generator.normal(size=plain.param_unc_num()) * scale
        first, second = outcome(plain, point), outcome(reduced, point)
        assert not isinstance(first, str) and not isinstance(second, str)
        close(first, second)


@pytest.mark.parametrize("offset", [0.0, 300.0, 1e8, 1e12])
def test_numbers_far_from_0(offset: float) -> None:
    """Against rational arithmetic: errors are small beside what rows add, near the mode and away from it."""
    program = """
    data { int n; array[n] vector[2] y; vector[n] x; matrix[2, 2] W; }
    parameters { vector[2] a; real b; }
    model { for (i in 1 : n) { vector[2] r = y[i] - a; r[1] -= b * x[i]; target += -0.5 * quad_form(W, r); } }
    """
    generator = np.random.default_rng(5)
    n = 300
    x = offset + generator.normal(size=n)
    y = np.column_stack([3 * x, offset + x]) + generator.normal(size=(n, 2))
    W = np.array([[2.0, 0.5], [0.5, 1.0]])
    data = {"n": n, "y": y, "x": x, "W": W}
    plain, reduced = (ulam.StanModel(program, data, opt_level=level) for level in (0, 3))
    assert [choice.taken for choice in reduced.layout_choices() if "columns" in choice.figures] == [True]
    for point in ([0.5, 2 * offset, 3.0], [0.5, 2 * offset + 1, 3.0 + 1e-9], [0.0, 0.5, 0.5]):
        exact = exact_forms(y, x, W, point)
        errors: list[np.ndarray] = []
        for model in (plain, reduced):
            value, gradient = model.log_density_gradient(point)
            found = zip((value, *gradient), exact, strict=True)
            errors.append(np.array([abs(float(Fraction(number) - right)) for number, right in found]))
        scale = np.array([n, n, n, np.abs(x).sum()])
        assert (errors[1] <= 4 * errors[0] + 1e-12 * scale).all(), (errors, scale)


def exact_forms(y: np.ndarray, x: np.ndarray, W: np.ndarray, point: list[float]) -> list[Fraction]:
    """What the program adds up, and its gradient."""
    a, c, b = map(Fraction, point)
    (p, q), (_, r) = [[Fraction(value) for value in row] for row in W.tolist()]
    total = [Fraction(0)] * 4
    for (first, second), u in zip(y.tolist(), x.tolist(), strict=True):
        e, f, v = Fraction(first) - a - b * Fraction(u), Fraction(second) - c, Fraction(u)
        one, two = p * e + q * f, q * e + r * f
        for k, term in enumerate((-(e * one + f * two) / 2, one, two, one * v)):
            total[k] += term
    return total


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e8])
def test_sums_that_a_parameter_multiplies(offset: float) -> None:
    """They are added up before: against rational arithmetic, near the mode and away from it."""
    program = """
    data { int n; array[n] vector[2] y; }
    parameters { vector[2] a; real b; }
    model { for (i in 1 : n) { real e = y[i, 1] - a[1];
            target += -0.5 * (square(e) + square(y[i, 2] - a[2] - b * e)); } }
    """
    generator = np.random.default_rng(4)
    n = 300
    y = offset + generator.normal(size=(n, 2)) @ [[1.0, 0.7], [0.0, 0.5]]
    plain, reduced = (ulam.StanModel(program, {"n": n, "y": y}, opt_level=level) for level in (0, 3))
    assert [choice.taken for choice in reduced.layout_choices() if "columns" in choice.figures] == [True]
    for point in ([offset, offset, 0.7], [offset + 0.1, offset - 1, 0.7 + 1e-9], [0.5, 0.0, -1.0]):
        a, c, b = map(Fraction, point)
        exact, sizes = [Fraction(0)] * 4, np.zeros(4)
        for first, second in y.tolist():
            e = Fraction(first) - a
            f = Fraction(second) - c - b * e
            for k, term in enumerate((-(e * e + f * f) / 2, e - b * f, f, e * f)):
                exact[k] += term
                sizes[k] += abs(term)
        errors: list[np.ndarray] = []
        for model in (plain, reduced):
            value, gradient = model.log_density_gradient(point)
            found = zip((value, *gradient), exact, strict=True)
            errors.append(np.array([abs(float(Fraction(number) - right)) for number, right in found]))
        assert (errors[1] <= 4 * errors[0] + 8 * 2.0**-53 * sizes).all(), (errors, sizes)
