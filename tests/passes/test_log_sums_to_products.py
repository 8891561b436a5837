"""`log-sums-to-products`: the values of log_sum_exp, with products in range, at its ends, at 0 and infinity."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.log_sums_to_products import LogSumsToProducts
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = (
    "data { int n; int m; array[n] int i; } "
    "parameters { array[m] vector<lower=0>[3] a; array[3] vector<lower=0>[m] b; } "
)  # fmt: skip

# log(a1 b1 + a2 b2 + a3 b3), written in many ways.
FORMS = {
    "a loop": (
        "model { for (k in 1 : n) { vector[3] g; for (j in 1 : 3) g[j] = log(b[j, i[k]]) + log(a[i[k], j]); "
        "target += log_sum_exp(g); } }"
    ),
    "vectors": "model { for (k in 1 : n) target += log_sum_exp(log(a[i[k]]) + to_vector(log(b[ : , i[k]]))); }",
    "element by element": (
        "model { for (k in 1 : n) { vector[3] g; g[3] = log(a[i[k], 3]); g[2] = log(a[i[k], 2]); "
        "g[1] = log(b[1, i[k]]); g[1] += log(a[i[k], 1]); g[3] += log(b[3, i[k]]); g[2] += log(b[2, i[k]]); "
        "target += log_sum_exp(g); } }"
    ),
    "two and two": (
        "model { for (k in 1 : n) target += log_sum_exp(log_sum_exp(log(a[i[k], 1]) + log(b[1, i[k]]), log(a[i[k], 3]) "
        "+ log(b[3, i[k]])), log(a[i[k], 2]) + log(b[2, i[k]])); }"
    ),
    "logarithms in memory": (
        "transformed parameters { array[m] vector[3] la = log(a); array[3] vector[m] lb = log(b); } "
        "model { for (k in 1 : n) { vector[3] g; for (j in 1 : 3) g[j] = la[i[k], j] + lb[j, i[k]]; "
        "target += log_sum_exp(g); } }"
    ),
}  # fmt: skip

KEPT = {
    "a term that is no logarithm": (
        "model { for (k in 1 : n) target += log_sum_exp(log(a[i[k], 1]), a[i[k], 2] * b[1, i[k]]); }"
    ),
    "used otherwise": (
        "model { for (k in 1 : n) { real r = log_sum_exp(log(a[i[k], 1]), log(b[1, i[k]])); "
        "target += r * square(r); } }"
    ),
    "no loop": "model { target += log_sum_exp(log(a[1, 1]), log(b[1, 1])); }",
}  # fmt: skip


def is_done(program: str, level: int) -> bool:
    """Whether a sum becomes one of products, as `--explain` tells it."""
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    return any(remark.pass_name == LogSumsToProducts.name and remark.done for remark in remarks)


@pytest.mark.parametrize("name", FORMS)
def test_sums_of_logarithms_become_products(name: str) -> None:
    assert is_done(HEAD + FORMS[name], 3)


def test_at_levels_3_and_4_only() -> None:
    assert not is_done(HEAD + FORMS["a loop"], 2)


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    assert not is_done(HEAD + KEPT[name], 3)


# Logarithms of the six factors a1 a2 a3, b1 b2 b3.
POINTS = {
    "ordinary": [0.3, -1.0, 2.0, 0.7, -0.2, 1.5],
    "products underflow": [-500.0, -500.0, -600.0, -500.0, -520.0, -400.0],
    "one underflows": [-500.0, 0.0, -600.0, -500.0, 0.0, -400.0],
    "one overflows": [500.0, 0.0, -600.0, 500.0, 0.0, 400.0],
    "one far above": [-700.0, -10.0, -600.0, -20.0, -600.0, 700.0],
    "a factor is 0": [-800.0, 0.3, -1.0, 0.2, 0.1, 0.4],
    "all are 0": [-800.0, -800.0, 0.2, 0.1, 1.0, -800.0],
    "0 times infinity": [-800.0, 0.3, 0.1, 800.0, 0.1, 0.2],
    "infinity": [0.1, 0.3, 0.1, 800.0, 0.1, 0.2],
    "near the ends": [-709.0, -708.0, -708.0, 708.0, 708.0, 708.0],
}


@pytest.mark.parametrize("name", ["a loop", "logarithms in memory"])
def test_values_and_slopes_are_those_of_level_1(name: str) -> None:
    """Of rows one of which is at the end of the range. A slope that was NaN at 0, 0 times infinity, may be right."""
    data = {"n": 3, "m": 2, "i": [1, 2, 1]}
    plain, rewritten = (ulam.StanModel(HEAD + FORMS[name], data, opt_level=level) for level in (1, 3))
    for logs in POINTS.values():
        a, b = np.array([logs[:3], [0.1, 0.2, -0.3]]), np.array([logs[3:], [0.5, -0.6, 0.7]]).T
        point = np.concatenate([a.ravel(), b.ravel()])
        value, gradient = plain.log_density_gradient(point, jacobian=False)
        found, found_gradient = rewritten.log_density_gradient(point, jacobian=False)
        np.testing.assert_allclose(found, value, rtol=1e-12, err_msg=str(logs))
        known = ~np.isnan(gradient)
        np.testing.assert_allclose(found_gradient[known], gradient[known], rtol=1e-11, atol=1e-300, err_msg=str(logs))


def test_what_is_negative_has_no_logarithm() -> None:
    """A product of two negative numbers is not taken for one of probabilities."""
    program = (
        "data { int n; } parameters { vector[n] a; vector[n] b; vector[n] c; } "
        "model { for (k in 1 : n) target += log_sum_exp(log(a[k]) + log(b[k]), log(c[k])); }"
    )
    assert is_done(program, 3)
    model = ulam.StanModel(program, {"n": 2})
    assert np.isfinite(model.log_density([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    assert np.isnan(model.log_density([0.1, -0.2, 0.3, -0.4, 0.5, 0.6]))
    assert model.log_density([0.1, 0.0, 0.3, 0.4, 0.5, 0.6]) == pytest.approx(np.log(0.1 * 0.3 + 0.5) + np.log(0.6))


TWO = (
    "data { int n; vector[n] x; vector[n] z; } parameters { real a; real b; } "
    "model { for (k in 1 : n) { vector[2] l = [x[k], z[k]]'; l[1] += a; l[2] += b; target += log_sum_exp(l); } }"
)


def test_two_terms_take_one_exponential() -> None:
    """They are no logarithms; ends of the range, and what no double holds."""
    assert is_done(TWO, 3)
    assert not is_done(TWO.replace("vector[2] l = [x[k], z[k]]'", "vector[3] l = [x[k], z[k], 0]'"), 3)
    point = np.array([0.3, -0.2])
    values = [0.0, 1.0, -745.0, 1e300, -1e300, np.inf, -np.inf, np.nan]
    for x, z in ((x, z) for x in values for z in values):
        plain, done = (ulam.StanModel(TWO, {"n": 1, "x": [x], "z": [z]}, opt_level=level) for level in (0, 3))
        first, second = plain.log_density_gradient(point), done.log_density_gradient(point)
        np.testing.assert_allclose(second[0], first[0], rtol=1e-14)
        if np.isfinite(first[0]):
            np.testing.assert_allclose(second[1], first[1], rtol=1e-14, atol=1e-300)


MIXTURES = """
data { int n; vector[n] y; array[n] int z; }
parameters { real<lower=0, upper=1> t; real a; real b; array[2] real<lower=0, upper=1> u; }
model {
  for (i in 1 : n) target += log_mix(t, a * y[i], b - y[i]);
  for (i in 1 : n) { if (z[i] == 0) target += log_mix(t, a * y[i], 0); else target += erf(y[i]) * a; }
  for (i in 1 : n) target += log_mix(u[1 + z[i]], erf(a * y[i]), b);
}
"""


def test_weights_that_a_loop_does_not_change_have_logarithms_ahead_of_it() -> None:
    """Those of the third loop it chooses for each row: they stay weights."""
    with collect_remarks() as remarks:
        Compiler(MIXTURES, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    assert sum("fixed weights" in str(remark) for remark in remarks) == 2


@pytest.mark.parametrize("more", [[], [0.0, 1e300], [np.inf], [-np.inf], [np.nan]])
def test_mixtures_are_those_of_level_0(more: list[float]) -> None:
    """Terms may be infinite or no numbers."""
    y = np.array([0.3, -1.0, 2.5, -700.0, 750.0, *more])
    data = {"n": len(y), "y": y, "z": [1, 0, 1, 0, 1, 0, 0][: len(y)]}
    plain, fast = (ulam.StanModel(MIXTURES, data, opt_level=level) for level in (0, 3))
    for logit in (0.4, -20.0, 10.0):
        point = [logit, 0.7, -0.2, 0.1, -0.3]
        (value, gradient), (found, slopes) = (model.log_density_gradient(point) for model in (plain, fast))
        np.testing.assert_allclose(found, value, rtol=1e-13)
        if np.isfinite(value):
            np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-10)


NESTED = """
data { int n; vector[n] y; }
parameters { real<lower=0, upper=1> t; real<lower=0, upper=1> u; vector[3] a; }
model {
  for (i in 1 : n) {
    target += log_mix(t, a[1] * y[i], log_mix(u, a[2] + y[i], a[3]));
    target += y[i] * log_mix(t, log_mix(u, a[1] * y[i], a[2]), a[3] - y[i]);
    target += log_sum_exp(log_mix(t, a[1], y[i]), log_mix(u, a[2] * y[i], log_sum_exp(a[1], y[i])));
  }
}
"""


@pytest.mark.parametrize("level", [3, 4])
def test_terms_that_are_sums_themselves(level: int) -> None:
    """Both are rewritten, the one inside first."""
    data = {"n": 4, "y": [0.3, -1.0, 2.5, -40.0]}
    plain, fast = (ulam.StanModel(NESTED, data, opt_level=used) for used in (0, level))
    for point in ([0.4, -0.3, 0.7, -0.2, 0.1], [-20.0, 5.0, 30.0, -2.0, 1.0]):
        (value, gradient), (found, slopes) = (model.log_density_gradient(point) for model in (plain, fast))
        np.testing.assert_allclose(found, value, rtol=1e-13)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("y", [2.5, -750.0, 750.0, 1e300, np.inf, -np.inf, np.nan])
def test_weights_of_nothing_and_of_all_leave_one_term(y: float) -> None:
    """As Stan Math has it, `log_sum_exp(log(t) + a, log1m(t) + b)`: no term is lost in rounding, and what is infinite
    times nothing is no number.
    """
    program = MIXTURES.partition("  for (i in 1 : n) { if")[0] + "}"
    model = ulam.StanModel(program, {"n": 1, "y": [y], "z": [0]}, opt_level=3)
    for t, logit in ((0.0, -800.0), (1.0, 800.0)):
        found = model.log_density([logit, 0.7, -0.2, 0.0, 0.0], jacobian=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.logaddexp(np.log(t) + 0.7 * y, np.log1p(-t) - 0.2 - y)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("x", [500.0, 710.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("level", [3, 4])
def test_exponentials_of_data_and_parameters_may_leave_the_range(x: float, level: int) -> None:
    """A factor that is infinite had an adjoint of 0, and so a slope that was no number."""
    code = (
        "data { int N; vector[N] x; } parameters { real a; real b; real c; } model { for (n in 1 : N) { "
        "target += log_sum_exp(log(a) + x[n], log(b)); target += log_sum_exp(log(a) + c + x[n], log(b) - x[n]); } }"
    )
    assert is_done(code, 3)
    for rows in ([x], [0.5, x, -1.0]):
        data = {"N": len(rows), "x": rows}
        plain, new = (ulam.StanModel(code, data, opt_level=used) for used in (0, level))
        for theta in ([0.5, 0.25, 1.0], [0.5, 0.25, 720.0], [1e-300, 1e300, -1.0], [0.0, 1.0, 0.0]):
            value, gradient = plain.log_density_gradient(theta)
            found, slopes = new.log_density_gradient(theta)
            np.testing.assert_allclose(found, value, rtol=1e-10)
            np.testing.assert_allclose(slopes, gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("logit", [38.0, 800.0, -800.0])
def test_a_weight_that_is_nothing_has_no_slope(logit: float) -> None:
    """A mixture's weight that has rounded to 0 or 1: the slope of its logarithm is infinite, its adjoint 0."""
    program = MIXTURES.partition("  for (i in 1 : n) { if")[0] + "}"
    y = [0.3, -0.4, 1.5]
    plain, new = (ulam.StanModel(program, {"n": 3, "y": y, "z": [0, 1, 0]}, opt_level=used) for used in (0, 3))
    value, gradient = plain.log_density_gradient([logit, 0.7, -0.2, 0.0, 0.0])
    found, slopes = new.log_density_gradient([logit, 0.7, -0.2, 0.0, 0.0])
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(found, value, rtol=1e-13)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-12, atol=1e-14)
