"""Rows in the order of an index: the same log density and gradient, and what is told of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.layout_choices import LayoutChoice

DATA = """
data {
  int N; int J; int K;
  array[N] int<lower=1, upper=J> g; array[N] int<lower=1, upper=K> h;
  array[N] int<lower=0> y; vector[N] x; vector[J] u; matrix[N, 2] Z;
}
parameters { vector[J] a; vector[K] b; vector[2] c; matrix[J, K] d; array[J] vector[2] w; }
"""
LIKELIHOODS = {
    "one": "y ~ poisson_log(a[g] + c[1] * x);",
    "two": "y ~ poisson_log(a[g] + b[h] + u[g] * c[2]);",
    "in_pieces": "x ~ cauchy(a[g], exp(d[g, 1]));",
    "by_pairs": "for (n in 1:N) y[n] ~ poisson_log(d[g[n], h[n]] + Z[n, 2] * b[h[n]]);",
    "vectors": "for (n in 1:N) { vector[2] z = [1, x[n]]'; y[n] ~ poisson_log(dot_product(z, w[g[n]])); }",
}


def data(rng: np.random.Generator, n: int, j: int, k: int, order: bool) -> dict[str, Any]:
    g, h = rng.integers(1, j + 1, n), rng.integers(1, k + 1, n)
    if order:
        g, h = g[np.lexsort((h, g))], h[np.lexsort((h, g))]
    return {
        "N": n, "J": j, "K": k, "g": g, "h": h, "y": rng.integers(0, 5, n), "x": rng.standard_normal(n),
        "u": rng.standard_normal(j), "Z": rng.standard_normal((n, 2)),
    }  # fmt: skip


def choice_of(model: ulam.StanModel) -> LayoutChoice | None:
    return next((choice for choice in model.layout_choices() if choice.layout == "rows by index"), None)


@pytest.fixture(scope="module")
def programs() -> dict[str, ulam.StanProgram]:
    return {name: ulam.StanProgram(f"{DATA}model {{ {text} }}") for name, text in LIKELIHOODS.items()}


FEW = "not taken: too few rows wait"
CASES = [
    ("one", 600, 5, 3, FEW, "taken"),
    ("one", 600, 500, 3, FEW, FEW),
    ("one", 1, 1, 1, FEW, FEW),
    ("one", 0, 1, 1, FEW, FEW),
    ("two", 1300, 6, 5, FEW, "taken"),
    ("two", 1300, 300, 4, FEW, FEW),
    ("two", 1300, 4, 300, FEW, "taken"),
    ("in_pieces", 700, 3, 1, "taken", "taken"),
    ("by_pairs", 1030, 3, 2, "taken", "taken"),
    ("by_pairs", 513, 60, 8, FEW, FEW),
    ("vectors", 900, 5, 3, "taken", "taken"),
    ("vectors", 900, 300, 3, FEW, FEW),
]
"""With what is said of rows as they come, and of rows in the order of the indices."""


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize(("name", "n", "j", "k", "unordered", "ordered"), CASES)
def test_density_and_gradient_are_those_of_the_order_as_written(
    programs: dict[str, ulam.StanProgram], name: str, n: int, j: int, k: int, unordered: str, ordered: str, order: bool
) -> None:
    rng = np.random.default_rng(n + j)
    values = data(rng, n, j, k, order)
    model = programs[name](values)
    written = programs[name](values, layouts=False)
    for point in (rng.normal(0, 0.5, model.param_unc_num()), np.zeros(model.param_unc_num())):
        value, gradient = model.log_density_gradient(point)
        other, slopes = written.log_density_gradient(point)
        assert value == pytest.approx(other, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-10 * max(n, 1))
    assert written.layout_choices() == []
    choice = choice_of(model)
    assert choice is not None
    assert choice.message.startswith(f"rows by index: {ordered if order else unordered}")
    assert choice.figures["rows"] == n
    if choice.taken:
        assert choice.figures["bytes"] <= 2 * 8 * 7 * n + 1000
        assert not order or name != "one" or choice.figures["sorted"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 800.0, -800.0, -0.0])
def test_what_is_not_finite_travels_as_before(programs: dict[str, ulam.StanProgram], value: float) -> None:
    values = data(np.random.default_rng(3), 600, 20, 3, False)
    found: list[Any] = []
    for layouts in (True, False):
        model = programs["one"](values, layouts=layouts)
        point = np.linspace(-1, 1, model.param_unc_num())
        point[4] = value
        try:
            found.append(model.log_density_gradient(point))
        except ulam.Rejection as rejection:
            found.append(str(rejection))
    if isinstance(found[0], str):
        assert found[0] == found[1]
    else:
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    "likelihood",
    [
        "for (n in 1:N) y[n] ~ poisson_log(a[g[n]] * n);",
        "{ vector[N] e = x * c[1]; e[1] += c[2]; y ~ poisson_log(a[g] + e); }",
        "for (n in 1:N) y[n] ~ poisson_log(a[c[1] > n ? 1 : J]);",
    ],
)
def test_rows_stay_where_their_number_counts(likelihood: str) -> None:
    model = ulam.StanModel(f"{DATA}model {{ {likelihood} }}", data(np.random.default_rng(1), 300, 4, 3, False))
    assert choice_of(model) is None


def test_rows_that_are_equal_are_put_together_instead(programs: dict[str, ulam.StanProgram]) -> None:
    values = data(np.random.default_rng(9), 900, 5, 4, False)
    values["x"] = np.sign(values["x"])
    model, written = (programs["in_pieces"](values, layouts=layouts) for layouts in (True, False))
    assert {c.layout for c in model.layout_choices() if c.taken} == {"unique rows", "values by index"}
    choice = choice_of(model)
    assert choice is not None
    assert choice.message.startswith("rows by index: not taken: equal rows are computed once")
    assert choice.figures["rows"] == 900
    assert choice.figures["bytes"] <= 24, "nothing is copied twice"
    point = np.linspace(-0.5, 0.5, model.param_unc_num())
    value, gradient = model.log_density_gradient(point)
    other, slopes = written.log_density_gradient(point)
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-8)
