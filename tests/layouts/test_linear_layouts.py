"""`linear-layouts`: rows of normal linear models, reduced when data are bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from level_outcomes import outcome

import ulam
from ulam.passes.loops.linear_layouts import LinearLayouts
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """
data { int n; int K; int J; matrix[n, K] X; vector[n] x; vector[n] y; array[n] int<lower=1, upper=J> g; vector[n] e;
       int on; }
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
    "parts of data": (
        "model { for (i in (K + 1) : n) y[i] ~ normal(a + dot_product(c, segment(y, i - K, K)), s); "
        "for (i in (K + 1) : n) y[i] ~ normal(a + b * x[i] + dot_product(c, reverse(segment(x, i - K, K))), t); "
        "for (i in (K + 1) : n) y[i] ~ normal(dot_product(c, x[(i - K) : (i - 1)]), t); }",
        3,
    ),
    "groups": (
        "model { for (i in 2 : n) y[i] ~ normal(u[g[i]] + x[i] * u[g[i]] + b * x[i] + v[g[i - 1]], s); "
        "y ~ normal((a + b * w[g]) .* x + X * c, t); }",
        2,
    ),
    "weights": (
        "model { y ~ normal(a + b * x, s * e); target += normal_lpdf(y | a + X * c, t ./ sqrt(e)); "
        "for (i in 1 : n) y[i] ~ normal(u[g[i]] + b * x[i], e[i]); e ~ lognormal(a + b * x, s); }",
        4,
    ),
    "weighted densities": (
        "model { for (i in 1 : n) target += e[i] * normal_lpdf(y[i] | a + X[i] * c, s); "
        "target += -0.5 * sum(e .* square((y - b * x) / t)) - n * log(t); "
        "for (i in 1 : n) target += e[i] * (normal_lpdf(y[i] | u[g[i]] + b * x[i], t) + a * x[i]); "
        "{ vector[n] r; for (i in 1 : n) r[i] = normal_lpdf(y[i] | a, s * e[i]); target += dot_product(e, r); } }",
        4,
    ),
    "sums": (
        "model { vector[n] r = y - a - X * c; real q = 0; for (i in 1 : n) q += square(y[i] - u[g[i]] - b * x[i]); "
        "target += n * log(t) - t * q / 2 - log1p(dot_self(r)); }",
        2,
    ),
    # A loop that adds up densities; a standard normal density of errors that are divided by what all rows share.
    "sums of densities": (
        "model { real lp = 0; for (i in 1 : n) lp += normal_lpdf(y[i] | a + X[i] * c + b * x[i], s); target += lp; "
        "{ vector[n] r; for (i in 1 : n) r[i] = (y[i] - u[g[i]] - b * x[i]) / t; r ~ std_normal(); } "
        "((y - a - b * x) / s) ~ normal(0, 2); target += -n * log(s) - n * log(t); }",
        3,
    ),
    # Filled step by step ahead of the branch that a statement of a vector has.
    "means step by step": (
        "model { vector[n] mu; for (i in 1 : n) { mu[i] = b * x[i]; for (k in 1 : K) mu[i] = mu[i] + c[k] * X[i, k]; "
        "y[i] ~ normal(mu[i], s); } }",
        1,
    ),
    "means ahead": (
        "transformed parameters { vector[n] m = a + X * c; } model { y ~ normal(m, s); "
        "vector[n] mu = rep_vector(0.0, n); mu += b; for (i in 1 : n) mu[i] += u[g[i]] + v[g[i]] * e[i]; "
        "target += normal_id_glm_lpdf(y | X, mu, c, t); }",
        2,
    ),
    # The second reads what was stored ahead of the loop, the third an element beside those of the loop.
    "errors in a part of a vector": (
        "model { { vector[n] r; r[1] = a; r[2] = 0; for (i in 3 : n) r[i] = y[i] - a - b * y[i - 1] - t * y[i - 2]; "
        "r[3 : n] ~ normal(0, s); } "
        "{ vector[n] r; r[1] = a * t; for (i in 2 : n) r[i] = y[i] - b * y[i - 1]; r ~ normal(0, s); } "
        "{ vector[n] r; r[1] = a; for (i in 2 : n) r[i] = y[i] - b * y[i - 1]; r[2 : n] ~ normal(0, s); "
        "target += r[1]; } }",
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
        "e": generator.uniform(0.5, 2, size=n),
        "on": 1,
    }


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
        if n > 3 and name in ("groups", "sums"):
            point, direction = generator.normal(size=(2, size))
            products = [m.log_density_hessian_vector_product(point, direction)[1] for m in (plain, reduced)]
            np.testing.assert_allclose(products[1], products[0], rtol=1e-9, atol=1e-9 * largest(products[0]))


def test_of_many_sums_as_many_are_reduced_as_do_not_let_the_program_be_compiled_for_long() -> None:
    n_sums = 60
    sums = " ".join(f"y[{k}] ~ normal({k} + a + b * x, s);" for k in range(1, n_sums + 1))
    program = f"""data {{ int n; vector[n] x; array[{n_sums}] vector[n] y; }}
    parameters {{ real a; real b; real<lower=0> s; }} model {{ {sums} }}"""
    done = remarks_of(program)  # what is left runs in few loops
    assert 10 < sum(done) < 40 and not all(done)
    generator = np.random.default_rng(3)
    data = {"n": 40, "x": generator.normal(size=40), "y": generator.normal(size=(n_sums, 40))}
    models = [ulam.StanModel(program, data, opt_level=level) for level in (0, 3)]
    values = [model.log_density_gradient(np.array([0.1, -0.2, 3.0])) for model in models]
    np.testing.assert_allclose(values[1][0], values[0][0], rtol=1e-12)
    np.testing.assert_allclose(values[1][1], values[0][1], rtol=1e-10)


def largest(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=1.0))


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_linear_is_left_alone(name: str) -> None:
    assert not any(remarks_of(HEAD + KEPT[name]))


@pytest.mark.parametrize("kind", ["transformed parameters", "model"])
def test_rows_with_coefficients_of_their_own_are_left_alone(kind: str) -> None:
    """No group has two rows, whether or not a buffer holds the means."""
    head = "data { int n; vector[n] y; vector[n] e; } parameters { real a; real b; vector[n] u; }"
    means, rows = "vector[n] m = a + b * u;", "y ~ normal(m, e);"
    parts = f"model {{ {means} {rows} }}" if kind == "model" else f"{kind} {{ {means} }} model {{ {rows} }}"
    assert not any(remarks_of(f"{head} {parts}"))


@pytest.mark.parametrize(
    ("name", "column"),
    [("vectors", "x"), ("vectors", "y"), ("weights", "e"), ("weights", "x"), ("weighted densities", "e")],
)
def test_data_that_are_not_finite_travel(name: str, column: str) -> None:
    """NaN is an error where it was, and what is no scale; an infinite number leads to what it led to."""
    program, _ = FORMS[name]
    generator = np.random.default_rng(8)
    for value in (np.nan, np.inf, 1e200, 1e-200, 0.0, -1.0, -1e-300):
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


def test_weights_of_zero_times_an_infinite_log_density() -> None:
    """The sum of the weights is not 0, but a term is: 0 times minus infinity is no number."""
    program = """data { int n; vector[n] x; vector[n] y; vector[n] w; } parameters { real a; real b; real<lower=0> s; }
    model { for (i in 1 : n) target += w[i] * normal_lpdf(y[i] | a + b * x[i], s); }"""
    rng = np.random.default_rng(8)
    data = {"n": 400, "x": rng.normal(size=400), "y": rng.normal(size=400), "w": np.arange(400.0) % 3}
    models = [ulam.StanModel(program, data, opt_level=level) for level in (0, 3)]
    assert any(choice.taken for choice in models[1].layout_choices())
    for log_scale in (0.1, 800.0, np.inf):
        first, second = (model.log_density([0.2, 0.3, log_scale]) for model in models)
        np.testing.assert_allclose(first, second, rtol=1e-12)
    data["y"][3] = 1e200
    for level in (0, 3):
        assert np.isnan(ulam.StanModel(program, data, opt_level=level).log_density([0.2, 0.3, 0.1]))


def test_an_infinite_factor_of_rows_of_zeros() -> None:
    """Groups without a slope leave rows of zeros, of which 1 / s is infinite where s is subnormal."""
    program = """
    data { int n; int J; array[n] int g; vector[n] x; vector[n] y; }
    parameters { real a; vector[J] u; real<lower=0> s; }
    model { for (i in 1 : n) y[i] ~ normal(a + x[i] * u[g[i]], s); }
    """
    generator = np.random.default_rng(4)
    g = np.repeat(np.arange(1, 11), 20)
    data = {"n": 200, "J": 10, "g": g, "x": (g > 3) * generator.normal(size=200), "y": generator.normal(size=200)}
    model = ulam.StanModel(program, data, opt_level=3)
    assert any(choice.taken for choice in model.layout_choices())
    for scale in (-400.0, -720.0, -744.0):
        assert model.log_density([*np.full(11, 0.1), scale]) == -np.inf


@pytest.mark.parametrize(("offset", "spread"), [(1e8, 1.0), (0.0, 1e-8), (30.0, 0.1)])
def test_large_numbers_that_cancel(offset: float, spread: float) -> None:
    """Against rational arithmetic: no less exact than a loop over the rows, near the mode and away from it."""
    program = """
    data { int n; vector[n] x; vector[n] z; vector[n] y; }
    parameters { real a; real b; real c; }
    model { y ~ normal(a + b * x + c * z, 2); }
    """
    generator = np.random.default_rng(5)
    n = 300
    x = offset + generator.normal(size=n)
    z = x + spread * generator.normal(size=n)
    y = 3 * x - 2 * z + offset + generator.normal(size=n)
    data = {"n": n, "x": x, "z": z, "y": y}
    plain, reduced = (ulam.StanModel(program, data, opt_level=level) for level in (0, 3))
    assert any(choice.taken for choice in reduced.layout_choices())
    for point in ([offset, 3.0, -2.0], [offset * (1 - 1e-9), 3.0 + 1e-9, -2.0], [0.0, 0.5, 0.5]):
        errors: list[np.ndarray] = []
        exact = exact_normal(x, z, y, point)
        for model in (plain, reduced):
            value, gradient = model.log_density_gradient(point)
            found = zip((value, *gradient), exact, strict=True)
            errors.append(np.array([abs(float(Fraction(number) - right)) for number, right in found]))
        scale = np.array([1, n, *(np.abs(column).sum() for column in (x, z))])
        assert (errors[1] <= 4 * errors[0] + 1e-13 * scale).all(), (errors, scale)


@pytest.mark.parametrize(
    ("n", "offset", "slope", "is_reduced"),
    [
        (60, 0.0, 0.0, True),
        (60, 2000.0, 0.0, False),
        (230, 2000.0, 0.0, False),
        (2000, 2000.0, 0.0, True),
        (40, 20.0, 3.0, False),  # relative to two points
        (100, 20.0, 3.0, True),
    ],
)
def test_few_rows_are_reduced_where_a_loop_is_slower(n: int, offset: float, slope: float, is_reduced: bool) -> None:
    program = """
    data { int n; vector[n] x; vector[n] y; }
    parameters { real a; real b; real<lower=0> s; }
    model { y ~ normal(a + b * x, s); }
    """
    generator = np.random.default_rng(6)
    x, noise = generator.normal(size=(2, n))
    data = {"n": n, "x": offset + x, "y": slope * x + (0.001 if slope else 1) * noise}
    model = ulam.StanModel(program, data)
    assert [choice.taken for choice in model.layout_choices() if choice.layout == "reduced rows"] == [is_reduced]


def exact_normal(x: np.ndarray, z: np.ndarray, y: np.ndarray, point: list[float]) -> list[Fraction]:
    """The log density without constants for a standard deviation of 2, and its gradient."""
    a, b, c = map(Fraction, point)
    rows = [(Fraction(1), Fraction(u), Fraction(v), Fraction(w)) for u, v, w in zip(x, z, y, strict=True)]
    rests = [w - (a + b * u + c * v) for _, u, v, w in rows]
    gradient = [sum((row[k] * rest for row, rest in zip(rows, rests, strict=True)), Fraction(0)) / 4 for k in range(3)]
    return [-sum((rest * rest for rest in rests), Fraction(0)) / 8, *gradient]


@pytest.mark.parametrize("run", [1, 3, 4, 21, 64, 200])
def test_rows_of_groups_one_behind_the_other(run: int) -> None:
    """Runs of a group are reflected together, across blocks of rows; some rows have no group."""
    code = """
    data { int N, J; array[N] int<lower=0, upper=J> g; vector[N] x, z, y; }
    parameters { vector[J] a, c; real b; real<lower=0> s; }
    model {
      vector[N] mu = b * z;
      for (n in 1 : N) if (g[n] > 0) mu[n] += a[g[n]] + c[g[n]] * x[n];
      y ~ normal(mu, s);
    }
    """
    rng = np.random.default_rng(run)
    g = np.repeat(rng.integers(0, 6, 1 + 1200 // run), run)[:1200]
    data = {"N": 1200, "J": 5, "g": g, "x": np.repeat([0.0, 1.0, -0.5], 400), "z": rng.normal(size=1200)}
    data["y"] = np.where(g == 2, 1e-3, 1.0) * rng.normal(size=1200) + g
    model, plain = (ulam.StanModel(code, data, opt_level=level) for level in (3, 0))
    assert [choice.taken for choice in model.layout_choices()] == [True]
    for size in (0.3, 3):
        point = rng.normal(0, size, model.param_unc_num())
        (value, gradient), (found, slopes) = (each.log_density_gradient(point) for each in (plain, model))
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-10, atol=1e-10 * np.abs(gradient).max())


@pytest.mark.parametrize("own", [1, 2, 4, 5])
def test_rows_of_groups_in_any_order(own: int) -> None:
    """Several rows of different groups are rotated side by side, if groups have few columns."""
    rng = np.random.default_rng(own)
    n, groups = 3000, 40
    g = rng.integers(0, groups + 1, n)
    g[500:1000] = np.repeat(g[500:600], 5)
    x = rng.normal(size=(n, own)) * (rng.random((n, own)) < 0.9)
    coefficients = " + ".join(f"u[g[n], {k}] * x[n, {k}]" for k in range(1, own + 1))
    program = (
        f"data {{ int N; int J; array[N] int g; matrix[N, {own}] x; vector[N] z; vector[N] y; }}"
        f"parameters {{ real a; real b; array[J] vector[{own}] u; }}"
        f"model {{ for (n in 1 : N) {{ real mu = a + b * z[n]; if (g[n] > 0) mu += {coefficients}; "
        "y[n] ~ normal(mu, 1); } }"
    )
    u, z = rng.normal(size=(groups, own)), 10 + rng.normal(size=n)
    means = 0.3 - 0.7 * z + np.where(g > 0, (x * u[g - 1]).sum(1), 0)
    data = {"N": n, "J": groups, "g": g, "x": x, "z": z, "y": means + rng.normal(size=n)}
    model = ulam.StanModel(program, data)
    assert any(choice.layout == "reduced rows" and choice.taken for choice in model.layout_choices())
    for size in (0.0, 1e-3, 1.0):
        point = np.append([0.3, -0.7], u.ravel())
        point += size * rng.normal(size=len(point))
        wide = np.longdouble(point[2:]).reshape(groups, own)
        mu = point[0] + np.longdouble(point[1]) * z + np.where(g > 0, (x * wide[g - 1]).sum(1), 0)
        left = data["y"] - mu
        slopes = np.zeros((groups + 1, own), np.longdouble)
        np.add.at(slopes, g, left[:, None] * x)
        value, gradient = model.log_density_gradient(point)
        assert value == pytest.approx(float(-0.5 * (left**2).sum()), rel=1e-13)
        expected = np.append([left.sum(), (left * z).sum()], slopes[1:].ravel()).astype(float)
        np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-11 * np.abs(left).sum())
