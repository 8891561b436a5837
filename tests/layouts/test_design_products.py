"""Products of data and coefficients, sparse or not (kernel `design_product`, and `design_products` of two vectors): the
same density, and what is told of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import outcome

import ulam
from ulam.runtime.layout_choices import LayoutChoice

DATA = "data { int N; int K; matrix[N, K] X; array[N] int<lower=0> y; vector[N] z; }\n"
PROGRAMS = {
    "columns": """parameters { real a; vector[K] b; }
        model { b ~ normal(0, 1); y ~ poisson_log(a + X * b); }""",
    "rows": """parameters { real<lower=0> s; vector[K] b; }
        model { for (n in 1:N) z[n] ~ student_t(4, dot_product(X[n], b * s), s); }""",
    "sums of rows": """parameters { real a; vector[K] b; row_vector[K] c; }
        model { vector[N] eta = rep_vector(a, N); for (n in 1:N) for (k in 1:K) eta[n] += X[n, k] * b[k];
                y ~ poisson_log(eta); z ~ student_t(4, to_vector(c * X'), 1); }""",
    "sums in rows": """parameters { real a; vector[K] b; }
        model { for (n in 1:N) { real m = a; for (k in 1:K) m += X[n, k] * b[k]; y[n] ~ poisson_log(m); } }""",
    "two": """parameters { vector[K] b; vector[K] c; }
        transformed parameters { vector[N] m = X * b; }
        model { z ~ student_t(5, m, exp(X * (c .* b))); y ~ poisson_log(m); }""",
    "three": """parameters { vector[K] a; vector[K] b; vector[K] c; }
        model { for (n in 1:N) target += poisson_log_lpmf(y[n] | X[n] * a) + student_t_lpdf(z[n] | 4, X[n] * b, 1);
                z ~ logistic(X * c, 1); }""",
}


@pytest.fixture(scope="module")
def programs() -> dict[str, ulam.StanProgram]:
    return {name: ulam.StanProgram(DATA + text) for name, text in PROGRAMS.items()}


def sparse(rng: np.random.Generator, kind: str, n: int, k: int) -> np.ndarray[Any, Any]:
    """A design: one block of indicators, two, indicators beside full columns, rows of any length, all full."""
    if kind == "full":
        return rng.standard_normal((n, k))
    x = np.zeros((n, k))
    rows = np.arange(n)
    half = k // 2
    if kind == "few":
        x[rng.random((n, k)) < 0.04] = 1.5
        x[:, 1] *= np.pi
        return x
    if kind == "blocks":
        x[rows, rng.integers(0, half, n)] = 1
        x[rows, half + rng.integers(0, k - half, n)] = 1
    else:
        x[rows, rng.integers(2 if kind == "beside" else 0, k, n)] = 1
    if kind == "beside":
        x[:, 0], x[:, 1] = 1, rng.standard_normal(n)
    return x


def data(kind: str, n: int = 700, k: int = 30) -> dict[str, Any]:
    rng = np.random.default_rng(n + k)
    x = sparse(rng, kind, n, k)
    return {"N": n, "K": k, "X": x, "y": rng.integers(0, 4, n), "z": rng.standard_normal(n)}


def choice_of(model: ulam.StanModel) -> LayoutChoice | None:
    return next((choice for choice in model.layout_choices() if choice.layout == "sparse columns"), None)


KINDS = ["block", "blocks", "beside", "few"]


@pytest.mark.parametrize("kind", [*KINDS, "full"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_density_and_gradient_are_those_of_all_entries(
    programs: dict[str, ulam.StanProgram], name: str, kind: str
) -> None:
    values = data(kind)
    model, written = (programs[name](values, layouts=layouts) for layouts in (True, False))
    rng = np.random.default_rng(5)
    for point in (rng.normal(0, 0.3, model.param_unc_num()), np.zeros(model.param_unc_num())):
        value, gradient = model.log_density_gradient(point)
        other, slopes = written.log_density_gradient(point)
        assert value == pytest.approx(other, rel=1e-12)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-9)
        assert model.log_density(point) == pytest.approx(value, rel=1e-12)
    assert written.layout_choices() == []
    choice = choice_of(model)
    assert choice is not None
    assert choice.taken == (kind != "full"), choice.message
    computed = [choice.figures["computed"] for choice in model.layout_choices() if choice.layout == "unique rows"]
    assert choice.figures["rows"] == min([700, *computed])
    if choice.taken:
        assert 0 < choice.figures["bytes"] < 8 * 700 * 30
        assert choice.figures["full columns"] == (2 if kind == "beside" else 0)


@pytest.mark.parametrize(("n", "k"), [(0, 9), (1, 9), (3, 0), (3, 1), (255, 40), (256, 41), (257, 42), (1025, 43)])
def test_any_sizes(programs: dict[str, ulam.StanProgram], n: int, k: int) -> None:
    values = data("block" if k else "full", n, k)
    model, written = (programs["columns"](values, layouts=layouts) for layouts in (True, False))
    point = np.linspace(-0.5, 0.4, model.param_unc_num())
    value, gradient = model.log_density_gradient(point)
    other, slopes = written.log_density_gradient(point)
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 800.0, -800.0, -0.0])
def test_what_is_not_finite_travels_as_through_all_entries(
    programs: dict[str, ulam.StanProgram], kind: str, value: float
) -> None:
    values = data(kind)
    found: list[Any] = []
    for layouts in (True, False):
        model = programs["columns"](values, layouts=layouts)
        point = np.linspace(-1, 1, model.param_unc_num())
        point[7] = value
        found.append(outcome(model, point))
    if isinstance(found[0], str):
        assert found[0] == found[1]
    else:
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e-310])
def test_entries_that_are_not_finite_or_small_are_entries(programs: dict[str, ulam.StanProgram], entry: float) -> None:
    values = data("block")
    values["X"][3, 4] = entry
    model, written = (programs["two"](values, layouts=layouts) for layouts in (True, False))
    point = np.linspace(-0.5, 0.5, model.param_unc_num())
    np.testing.assert_equal(isinstance(outcome(model, point), str), isinstance(outcome(written, point), str))
    if not isinstance(found := outcome(model, point), str):
        other = outcome(written, point)
        assert not isinstance(other, str)
        np.testing.assert_allclose(found[1], other[1], rtol=1e-10, atol=1e-9)


def test_hessian_vector_products_are_those_of_all_entries(programs: dict[str, ulam.StanProgram]) -> None:
    values = data("blocks", 300, 20)
    model, written = (programs["two"](values, layouts=layouts) for layouts in (True, False))
    rng = np.random.default_rng(2)
    point, direction = (rng.normal(0, 0.3, model.param_unc_num()) for _ in range(2))
    ours, theirs = (m.log_density_hessian_vector_product(point, direction) for m in (model, written))
    np.testing.assert_allclose(ours[-1], theirs[-1], rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        "parameters { vector[K] b; matrix[N, K] P; } model { y ~ poisson_log(P * b); }",
        "parameters { vector[K] b; real<lower=0> s; } model { if (s > 1) y ~ poisson_log(X * b); }",
        "parameters { vector[2] b; } model { y ~ poisson_log(X[:, 1:2] * b); }",
    ],
)
def test_products_that_stay(model: str) -> None:
    made = ulam.StanModel(DATA + model, data("block", 40, 9))
    assert choice_of(made) is None


def test_the_same_code_serves_sparse_and_full_data(programs: dict[str, ulam.StanProgram]) -> None:
    taken = [choice_of(programs["rows"](data(kind))) for kind in ("block", "full", "few")]
    assert [choice is not None and choice.taken for choice in taken] == [True, False, True]


def test_products_of_one_matrix_are_one_call(programs: dict[str, ulam.StanProgram]) -> None:
    """Two vectors at a time: three are a call of two and one of one, each with its derivative."""
    text = programs["three"](data("full", 40, 9)).llvm_ir("gradient_propto")
    calls = [line for line in text.splitlines() if " call " in line]
    for kernel, number in (("design_products(", 1), ("design_products_pullback(", 1), ("design_product(", 1)):
        assert sum(f"@ulam_{kernel}" in line for line in calls) == number, kernel
