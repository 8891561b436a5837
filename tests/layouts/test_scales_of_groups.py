"""Rows of normal linear models whose scales differ between groups: one reduction for all rows of the same indices."""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int<lower=0> N, J, H, K;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=1, upper=H> h;
  array[N] int<lower=0, upper=J> some;
  array[J] int<lower=0> size_of;
  vector[N] x, y, z;
  vector<lower=0>[N] w;
  matrix[N, K] X;
}
parameters {
  vector[J] m, u, ls;
  matrix[J, H] cell;
  array[J] vector[K] v;
  matrix<lower=0>[H, 2] spread;
  vector[H] e;
  vector[K] b;
  real a, c;
  vector<lower=0>[J] s, t;
  vector<lower=0>[H] r;
  real<lower=0> q;
}
"""
FORMS = {
    "a mean and a scale": "y ~ normal(m[g], s[g]);",
    "a scale alone": "y ~ normal(a, r[h]);",
    "an index of each": "y ~ normal(m[g], r[h]);",
    "a slope that all share": "for (n in 1 : N) y[n] ~ normal(m[g[n]] + c * x[n], s[g[n]]);",
    "slopes of groups": "y ~ normal(m[g] + u[g] .* x + e[h], r[h]);",
    "a design": "y ~ normal(a + X * b, r[h]);",
    "a design and groups": "for (n in 1 : N) y[n] ~ normal(X[n] * b + e[h[n]], s[g[n]]);",
    "a linear model": "y ~ normal_id_glm(X, m[g], b, r[h]);",
    "an exponential": "y ~ normal(m[g], exp(ls[g]));",
    "a multiple": "for (n in 1 : N) y[n] ~ normal(m[g[n]], 2 * q * s[g[n]]);",
    "data, too": "y ~ normal(m[g], s[g] .* sqrt(w));",
    "a root of a sum": "for (n in 1 : N) y[n] ~ normal(m[g[n]], sqrt(square(s[g[n]]) + square(q)));",
    "a precision": "y ~ normal(m[g], inv_sqrt(s[g]));",
    "a precision by hand": "for (n in 1 : N) y[n] ~ normal(m[g[n]], 1 / sqrt(s[g[n]]));",
    "squares by hand": "for (n in 1 : N) target += 0.5 * log(s[g[n]]) - 0.5 * s[g[n]] * square(y[n] - m[g[n]] - c * x[n]);",
    "weights": "for (n in 1 : N) target += w[n] * normal_lpdf(y[n] | m[g[n]] + c * x[n], s[g[n]]);",
    "logarithms": "exp(y) ~ lognormal(m[g], s[g]);",
    "two outcomes": "y ~ normal(m[g], s[g]); z ~ normal(u[g], r[h]);",
    "two outcomes of a row": "for (n in 1 : N) { y[n] ~ normal(m[g[n]], s[g[n]]); z[n] ~ normal(u[g[n]] + c * y[n], t[g[n]]); }",
    "scales that are filled": "vector[N] mu = a + X * b; vector[N] sd_of; for (n in 1 : N) sd_of[n] = r[h[n]]; y ~ normal(mu, sd_of);",
    "segments": "int pos = 1; for (j in 1 : J) { segment(y, pos, size_of[j]) ~ normal(m[j], s[j]); pos += size_of[j]; }",
    "segments with a slope": "int pos = 1; for (j in 1 : J) { segment(y, pos, size_of[j]) ~ normal(m[j] + c * segment(x, pos, size_of[j]), s[j]); pos += size_of[j]; }",
    "a loop over groups": "for (k in 1 : H) for (n in 1 : N) if (h[n] == k) y[n] ~ normal(e[k] + c * x[n], r[k]);",
    "some rows": "for (n in 1 : N) if (some[n] > 0) y[n] ~ normal(m[some[n]], s[some[n]]);",
    "a coefficient of some rows": "for (n in 1 : N) { real mu = c * x[n]; if (some[n] > 0) mu += m[some[n]]; y[n] ~ normal(mu, r[h[n]]); }",
    "no coefficient": "y ~ normal(0, s[g]);",
    "two indices of both": "for (n in 1 : N) y[n] ~ normal(cell[g[n], h[n]], spread[h[n], 2 - (w[n] > 1)]);",
    "a choice": "for (n in 1 : N) y[n] ~ normal(m[g[n]] + c * x[n], w[n] > 1 ? q : exp(a));",
    "branches": "for (n in 1 : N) { if (w[n] > 1) y[n] ~ normal(m[g[n]] + c * x[n], q); else y[n] ~ normal(c * x[n], r[h[n]]); }",
    "a scale that some rows change": "for (n in 1 : N) { real spread_of = s[g[n]]; if (w[n] > 1) spread_of *= q; y[n] ~ normal(m[g[n]], spread_of); }",
    "a vector of slopes per group": "for (n in 1 : N) y[n] ~ normal(a + X[n] * v[g[n]], s[g[n]]);",
    "a variance over data": "y ~ normal(m[g], sqrt(r[h] ./ w));",
    "other rows of each outcome": "for (k in 1 : K) for (n in k : N) X[n, k] ~ normal(b[k] * x[n], r[min(k, H)]);",
    "a sum": "real lp = 0; for (n in 1 : N) lp += normal_lpdf(y[n] | m[g[n]], s[g[n]]); target += log1p_exp(lp / 1000);",
}  # fmt: skip
NOT_TAKEN = {
    "a scale of each row": ("y ~ normal(c * x, exp(a * x));", 600, 4),
    "as many groups as rows": ("y ~ normal(m[g], s[g]);", 600, 600),
    "few rows of each": ("y ~ normal(m[g], s[g]);", 600, 200),
}


def data_of(n: int, groups: int = 12, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed + n)
    g, some = rng.integers(1, groups + 1, n), rng.integers(0, groups + 1, n)
    x, y, z = rng.normal(size=(3, n))
    return {
        "N": n, "J": groups, "H": 3, "K": 4, "g": g, "h": rng.integers(1, 4, n), "some": some, "x": x, "y": y + 0.3 * g,
        "z": z, "w": rng.integers(1, 4, n) / 2.0, "X": rng.normal(size=(n, 4)),
        "size_of": np.bincount(np.sort(g) if n else [], minlength=groups + 1)[1:],
    }  # fmt: skip


def is_reduced(model: ulam.StanModel) -> bool:
    return any(choice.layout == "reduced rows" and choice.taken for choice in model.layout_choices())


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_reduced_by_kinds(form: str) -> None:
    """Few rows, many, none; coefficients and scales that are not finite, huge, or 0."""
    program = ulam.StanProgram(f"{DATA} model {{ {FORMS[form]} }}")
    has_rows = any(word in FORMS[form] for word in ("segment(", "else"))  # of none, errors and slopes of inv are others
    for n in (30, 4000) if has_rows else (0, 1, 30, 4000):
        data = data_of(n)
        expected, found = (program(data, opt_level=level) for level in (0, 3))
        for at in (0, 13, 25, 40, 75, 121, *range(expected.param_unc_num() - 37, expected.param_unc_num(), 6)):
            assert_same_outcomes(expected, found, at=at)
        if n == 4000:
            assert is_reduced(found), [str(choice) for choice in found.layout_choices()]
            assert all(choice.line for choice in found.layout_choices()), "each is of a statement"
            assert_same_products(expected, found, np.random.default_rng(2))


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_rows_that_are_no_fewer_stay(name: str) -> None:
    statements, n, groups = NOT_TAKEN[name]
    data = data_of(n, groups)
    expected, found = (ulam.StanModel(f"{DATA} model {{ {statements} }}", data, opt_level=level) for level in (0, 3))
    assert not is_reduced(found)
    assert_same_outcomes(expected, found, at=0)


@pytest.mark.parametrize("statement", ["y ~ normal(m[g], s[g])", "for (n in 1 : N) y[n] ~ normal(m[g[n]], s[g[n]])"])
def test_scales_that_are_not_positive_are_told_as_before(statement: str) -> None:
    """The element that is named is the first one in the program's order."""
    code = """
    data { int N, J; array[N] int g; vector[N] y; }
    parameters { vector[J] m, s; }
    model { STATEMENT; }
    """
    rng = np.random.default_rng(3)
    data = {"N": 900, "J": 5, "g": rng.permutation(np.arange(900) % 4 + 1), "y": rng.normal(size=900)}
    models = [ulam.StanModel(code.replace("STATEMENT", statement), data, opt_level=level) for level in (0, 3)]
    assert is_reduced(models[1])
    for group, value in ((0, -1.0), (2, 0.0), (3, np.nan), (1, np.inf), (4, -1.0), (2, 1e-310), (2, 1e-80)):
        point = np.ones(10)
        point[5 + group] = value
        first, second = (outcome(model, point) for model in models)
        assert isinstance(first, str) == (group != 4 and not value > 0)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
            continue
        np.testing.assert_allclose(second[0], first[0], rtol=1e-12)
        np.testing.assert_allclose(second[1], first[1], rtol=1e-10)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, 1e-200])
def test_data_that_are_not_moderate_stay(value: float) -> None:
    data = data_of(900)
    data["x"][3] = value
    code = f"{DATA} model {{ {FORMS['a slope that all share']} }}"
    expected, found = (ulam.StanModel(code, data, opt_level=level) for level in (0, 3))
    assert not is_reduced(found)
    assert_same_outcomes(expected, found, at=0)


@pytest.mark.parametrize(("offset", "offset_of_x"), [(1e8, 0.0), (0.0, 1e8), (1e8, 1e8), (1e3, 30.0), (0.0, 0.0)])
def test_large_numbers_that_cancel(offset: float, offset_of_x: float) -> None:
    """Against rational arithmetic: no less exact than a loop over the rows, near coefficients that fit and elsewhere."""
    code = """
    data { int N; array[N] int g; vector[N] x, y; }
    parameters { vector[3] m, s; real c; }
    model { for (n in 1 : N) y[n] ~ normal(m[g[n]] + c * x[n], s[g[n]]); }
    """
    rng = np.random.default_rng(5)
    n = 600
    g, x = rng.integers(1, 4, n), offset_of_x + rng.normal(size=n)
    y = offset + 0.5 * (x - offset_of_x) + rng.normal(size=n)
    plain, reduced = (ulam.StanModel(code, {"N": n, "g": g, "x": x, "y": y}, opt_level=level) for level in (0, 3))
    assert is_reduced(reduced) == (offset_of_x < 1e8)
    for centre, slope in ((offset, 0.5), (offset * (1 + 1e-9) + 0.25, 0.5), (0.0, 0.0)):
        point = np.array([centre, centre + 0.5, centre - 1, 0.5, 1, 4, slope])
        exact, sizes = exact_normal(g, x, y, point)
        errors: list[np.ndarray] = []
        for model in (plain, reduced):
            value, gradient = model.log_density_gradient(point)
            found = zip((value, *gradient), exact, strict=True)
            errors.append(np.array([abs(float(Fraction(number) - right)) for number, right in found]))
        assert (errors[1] <= 4 * errors[0] + 1e-14 * sizes).all(), (errors, sizes)


def exact_normal(g: np.ndarray, x: np.ndarray, y: np.ndarray, point: np.ndarray) -> tuple[list[Fraction], np.ndarray]:
    """The log density without constants of that model, and its gradient; the sizes of what is added up to these."""
    centres, scales, slope = [*map(Fraction, point[:3])], [*map(Fraction, point[3:6])], Fraction(point[6])
    found, sizes = [Fraction(0)] * 8, np.ones(8)
    for group, a, b in zip(g - 1, map(Fraction, x), map(Fraction, y), strict=True):
        rest, scale = b - centres[group] - slope * a, scales[group]
        own = {
            0: -rest * rest / scale**2 / 2 - Fraction(np.log(float(scale))), 1 + group: rest / scale**2,
            4 + group: rest * rest / scale**3 - 1 / scale, 7: a * rest / scale**2,
        }  # fmt: skip
        for k, part in own.items():
            found[k] += part
            sizes[k] += abs(float(part))
    return found, sizes
