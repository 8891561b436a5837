"""The integrators: closed forms, singular ends, infinite limits, derivatives with respect to everything, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special

from ulam import StanModel
from ulam.runtime.errors import Rejection
from ulam.trace import NestedCallNode, SpecialCallNode, TraceContext

pytestmark = pytest.mark.usefixtures("quick_code")

LINE = ("negative_infinity()", "positive_infinity()")
RAY = ("a", "positive_infinity()")


def model(
    integrand: str, lower: str = "a", upper: str = "b", more: str = "", level: int = 3, name: str = "integrate_1d"
) -> StanModel:
    """The integral of an expression in x, xc and t, two parameters; a and b are two more.

    `more`: tolerances, which `integrate_1d` takes after all else, the others before what is for the integrand.
    """
    before, after = ("", more) if name == "integrate_1d" else (more, "")
    return StanModel(
        f"""functions {{
          real f(real x, real xc, array[] real t, data array[] real x_r, data array[] int x_i) {{ return {integrand}; }}
        }}
        parameters {{ array[2] real t; real a; real b; }}
        model {{ target += {name}(f, {lower}, {upper}{before}, t, {{2.5}}, {{3}}{after}); }}""",
        opt_level=level,
    )


# ---------------------------------------------------------------- closed forms

Integral = Callable[[float, float, float, float], float]
"""A value by t[1], t[2], a and b."""

KNOWN: dict[str, tuple[str, tuple[str, str], list[float], Integral]] = {
    "polynomial": (
        "t[1] * x ^ x_i[1] - t[2] * x + x_r[1]", ("a", "b"), [0.7, 1.2, 0.3, 2.5],
        lambda t, u, a, b: t * (b**4 - a**4) / 4 - u * (b**2 - a**2) / 2 + 2.5 * (b - a),
    ),
    "across 0": (
        "t[1] * square(x) - t[2] * x", ("a", "b"), [0.7, 1.2, -0.3, 2.5],
        lambda t, u, a, b: t * (b**3 - a**3) / 3 - u * (b**2 - a**2) / 2,
    ),
    "bell": (
        "exp(-t[1] * square(x - t[2]))", LINE, [0.7, 1.2, 0, 0], lambda t, u, a, b: math.sqrt(math.pi / t),
    ),
    "bell far away": (
        "exp(-t[1] * square(x - t[2]))", LINE, [0.7, 30.0, 0, 0], lambda t, u, a, b: math.sqrt(math.pi / t),
    ),
    "half of a bell": (
        "t[2] * exp(-t[1] * square(x))", RAY, [0.7, 1.2, -3, 0],
        lambda t, u, a, b: u * 0.5 * math.sqrt(math.pi / t) * math.erfc(math.sqrt(t) * a),
    ),
    "heavy tails": (
        "t[2] / (1 + square(x - t[1]))", LINE, [0.5, 1.5, 0, 0], lambda t, u, a, b: u * math.pi,
    ),
    "heavier tail": (
        "t[1] * x ^ (-1 - t[2])", RAY, [0.5, 0.3, 1.2, 0], lambda t, u, a, b: t / u * a**-u,
    ),
    "gamma": (
        "x ^ t[2] * exp(-t[1] * x)", ("0", "positive_infinity()"), [2.5, 1.5, 0, 0],
        lambda t, u, a, b: math.gamma(u + 1) / t ** (u + 1),
    ),
    "small scale": (
        "exp(-t[1] * x)", ("0", "positive_infinity()"), [1e10, 0, 0, 0], lambda t, u, a, b: 1 / t,
    ),
    "up to a limit": (
        "exp(t[1] * x - t[2])", ("negative_infinity()", "b"), [2.5, 1.5, 0, 1],
        lambda t, u, a, b: math.exp(t * b - u) / t,
    ),
    "up to a limit below 0": (
        "exp(t[1] * x - t[2])", ("negative_infinity()", "b"), [2.5, 1.5, 0, -1],
        lambda t, u, a, b: math.exp(t * b - u) / t,
    ),
    "oscillation": (
        "t[2] * sin(t[1] * x)", ("a", "b"), [3, 0.4, 0.5, 2],
        lambda t, u, a, b: u * (math.cos(t * a) - math.cos(t * b)) / t,
    ),
    "singular at 0": (
        "t[2] * x ^ -t[1]", ("0", "b"), [0.5, 0.8, 0, 2], lambda t, u, a, b: u * b ** (1 - t) / (1 - t),
    ),
    "logarithm": (
        "t[1] * log(x) + t[2]", ("0", "b"), [0.5, 0.8, 0, 2], lambda t, u, a, b: t * b * (math.log(b) - 1) + u * b,
    ),
    "singular elsewhere": (
        "t[2] * (xc < 0 ? -xc : x - 1) ^ -t[1]", ("1", "b"), [0.5, 0.8, 0, 3.0],
        lambda t, u, a, b: u * (b - 1) ** (1 - t) / (1 - t),
    ),
    "singular at both ends": (
        "x ^ (t[1] - 1) * (xc > 0 ? xc : 1 - x) ^ (t[2] - 1)", ("0", "1"), [0.3, 0.2, 0, 0],
        lambda t, u, a, b: float(special.beta(t, u)),
    ),
}  # fmt: skip


def differences(function: Callable[[np.ndarray], Any], theta: np.ndarray) -> np.ndarray:
    """Derivatives with respect to each element, by central differences of 4th order."""
    rows = []
    for i, step in enumerate(1e-3 * np.where(theta == 0, 1, np.abs(theta))):
        near, far = (
            np.asarray(function(theta + k * step * np.eye(4)[i])) - function(theta - k * step * np.eye(4)[i])
            for k in (1, 2)
        )
        rows.append((8 * near - far) / (12 * step))
    return np.array(rows)


def assert_agrees(m: StanModel, theta: np.ndarray, known: Callable[..., Any], rel: float) -> None:
    """Values and gradients with a closed form; Hessians with differences of gradients."""
    value, gradient = m.log_density_gradient(theta)
    assert value == pytest.approx(known(*theta), rel=rel)
    assert m.log_density(theta) == value
    expected = differences(lambda x: known(*x), theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    hessian = m.log_density_hessian(theta)[2]
    expected = differences(lambda x: m.log_density_gradient(x)[1], theta)
    np.testing.assert_allclose(hessian, expected, rtol=1e-6, atol=1e-8 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", KNOWN)
def test_closed_forms(name: str) -> None:
    integrand, limits, point, known = KNOWN[name]
    m = model(integrand, *limits)
    assert_agrees(m, np.array(point), known, 2e-13)


SMOOTH = ["polynomial", "across 0", "half of a bell", "heavy tails", "up to a limit", "oscillation"]


@pytest.mark.parametrize("name", SMOOTH)
def test_gauss_kronrod(name: str) -> None:
    integrand, limits, point, known = KNOWN[name]
    m = model(integrand, *limits, name="integrate_1d_gauss_kronrod")
    assert_agrees(m, np.array(point), known, 1e-12)


def test_gauss_kronrod_halves_where_the_error_is() -> None:
    theta = np.array([0.5, 0.3, -1, 1.0])
    rule = "integrate_1d_gauss_kronrod_tol"
    kink = model("abs(x - t[2]) * t[1]", name=rule, more=", 1e-7, 0, 20")
    value, gradient = kink.log_density_gradient(theta)
    assert value == pytest.approx(0.25 * (1.3**2 + 0.7**2), rel=1e-7)
    np.testing.assert_allclose(gradient, [2 * value, 0.3, -0.65, 0.35], rtol=1e-7)
    with pytest.raises(Rejection, match="error estimate"):
        model("abs(x - t[2]) * t[1]", name=rule, more=", 1e-7, 0, 3").log_density(theta)
    assert model("abs(x - t[2]) * t[1]", name=rule, more=", 1e-7, 0.01, 0").log_density(theta) == pytest.approx(
        value, abs=0.01
    )
    with pytest.raises(Rejection, match="error estimate"):
        model("x ^ -0.9", "0", "1", name="integrate_1d_gauss_kronrod").log_density(theta)
    for a, b, message in ((2, 1, "lower_limit is 2"), (-np.inf, -np.inf, "must be finite"), (np.nan, 1, "is nan")):
        with pytest.raises(Rejection, match=message):
            kink.log_density(np.array([0.5, 0.3, a, b]))
    assert kink.log_density(np.array([0.5, 0.3, 1, 1])) == 0
    with pytest.raises(Rejection, match="integrand is nan, but must be finite at x = "):
        model("log(x - 0.2)", "0", "1", name=rule, more=", 1e-7, 0, 20").log_density(theta)


@pytest.mark.parametrize("name", ["integrate_1d_gauss_kronrod_tol", "integrate_1d_double_exponential_tol"])
@pytest.mark.parametrize(("more", "message"), [(", 1e-7, -1e-3, 5", "absolute_tolerance"), (", 1e-7, 0, -1", "max_")])
def test_wrong_tolerances(name: str, more: str, message: str) -> None:
    with pytest.raises(Rejection, match=f"{message}.* must be nonnegative"):
        model("t[1]", name=name, more=more).log_density(np.array([1, 0, 0, 1]))


def test_tolerances_of_double_exponential() -> None:
    """Enough where the relative one is out of reach."""
    name, theta = "integrate_1d_double_exponential_tol", np.array([0.5, 0.3, 0, 1.0])
    with pytest.raises(Rejection, match="error estimate"):
        model("abs(x - t[2]) * t[1]", name=name, more=", 1e-9, 0, 7").log_density(theta)
    found = model("abs(x - t[2]) * t[1]", name=name, more=", 1e-9, 1e-4, 7").log_density(theta)
    assert found == pytest.approx(0.25 * (0.3**2 + 0.7**2), abs=1e-4)


def test_many_oscillations_and_far_from_0() -> None:
    wave = model("t[2] * sin(t[1] * x)")
    value, gradient = wave.log_density_gradient(np.array([30, 2, 0, 10]))
    assert value == pytest.approx(2 * (1 - math.cos(300)) / 30, rel=1e-11)
    np.testing.assert_allclose(gradient[2:], [0, 2 * math.sin(300)], rtol=1e-12)
    narrow = model("(1 + t[1]) / x + 0 * t[2]")
    value, gradient = narrow.log_density_gradient(np.array([0.5, 1, 1e8, 1e8 + 3]))
    assert value == pytest.approx(1.5 * math.log1p(3e-8), rel=1e-14)
    np.testing.assert_allclose(gradient, [math.log1p(3e-8), 0, -1.5e-8, 1.5 / (1e8 + 3)], rtol=1e-14)


@pytest.mark.parametrize(
    ("integrand", "f", "limits", "a", "b"),
    [
        ("exp(normal_lpdf(x | t[1], 0.5) - t[2] * abs(x))",
         lambda x, t, u: math.exp(-2 * (x - t) ** 2 - u * abs(x)) / math.sqrt(0.5 * math.pi), RAY, -1, math.inf),
        ("log1p_exp(-t[1] * x) * cos(t[2] * x)", lambda x, t, u: math.log1p(math.exp(-t * x)) * math.cos(u * x),
         ("a", "b"), -2, 3),
        ("inv_logit(t[1] - x) ^ 2 / (t[2] + square(x))", lambda x, t, u: (1 + math.exp(x - t)) ** -2 / (u + x * x),
         ("a", "b"), 0.5, 40),
        ("exp(-t[1] * x) * sqrt(x) + 0 * t[2]", lambda x, t, u: math.exp(-t * x) * math.sqrt(x), ("a", "b"), 0, 7),
    ],
)  # fmt: skip
def test_against_scipy(integrand: str, f: Callable[..., float], limits: tuple[str, str], a: float, b: float) -> None:
    m = model(integrand, *limits)

    def expected(theta: np.ndarray) -> float:
        upper = theta[3] if math.isfinite(b) else b
        points = [p for p in (0.0,) if theta[2] < p < upper]
        edges = [theta[2], *points, upper]
        parts = zip(edges, edges[1:], strict=False)
        return sum(
            integrate.quad(f, low, high, args=tuple(theta[:2]), epsabs=1e-13, epsrel=1e-13, limit=200)[0]
            for low, high in parts
        )

    theta = np.array([0.7, 1.3, a, b if math.isfinite(b) else 0.0])
    assert m.log_density(theta) == pytest.approx(expected(theta), rel=1e-11)
    value, gradient = m.log_density_gradient(theta)
    assert value == m.log_density(theta)
    inner = theta + [0, 0, 0.1, 0]
    np.testing.assert_allclose(
        m.log_density_gradient(inner)[1], differences(expected, inner), rtol=1e-7, atol=1e-7 * np.abs(gradient).max()
    )


@pytest.mark.parametrize("name", ["polynomial", "half of a bell", "singular elsewhere"])
def test_levels_agree(name: str) -> None:
    integrand, limits, point, _ = KNOWN[name]
    theta = np.array(point)
    found = [model(integrand, *limits, level=level) for level in range(5)]
    value, gradient, hessian = found[0].log_density_hessian(theta)
    for m in found[1:]:
        other = m.log_density_hessian(theta)
        assert other[0] == pytest.approx(value, rel=1e-10) == m.log_density(theta)
        np.testing.assert_allclose(other[1], gradient, rtol=1e-10)
        np.testing.assert_allclose(m.log_density_gradient(theta)[1], gradient, rtol=1e-10)
        np.testing.assert_allclose(other[2], hessian, rtol=1e-9, atol=1e-10)


# ---------------------------------------------------------------- the distance to the limits


def test_distance() -> None:
    """Negative next to the lower limit, positive next to the upper one, exactly; none if a limit is infinite."""
    nearer = "x < 0 ? (xc < 0 ? t[1] : 0) : (xc < 0 ? (t[1] > 0 ? t[1] : 0) : t[2])"  # at 0 two integrals meet
    m = model(f"abs(xc - (({nearer}) - x)) < 1e-15 ? 1 : not_a_number()")
    for a in (1.0, -1.0, 0.0):
        assert m.log_density(np.array([a, 4, a, 4])) == pytest.approx(4 - a, rel=1e-14)
    infinite = model("is_nan(xc) ? exp(-x * t[1]) : not_a_number()", "a", "positive_infinity()")
    for a in (1.0, -1.0):
        assert infinite.log_density(np.array([1, 0, a, 0])) == pytest.approx(math.exp(-a), rel=1e-14)


def test_singular_with_and_without_distance() -> None:
    """At a limit that is not 0, x alone is not enough: Stan, too, refuses."""
    theta = np.array([1, 1, 1, 2.0])
    assert model("inv_sqrt(xc < 0 ? -xc : x - 1)", "1").log_density(theta) == pytest.approx(2, rel=1e-14)
    with pytest.raises(Rejection, match="integrate_1d: integrand is inf, but must be finite at x = 1"):
        model("inv_sqrt(x - 1)", "1").log_density(theta)


# ---------------------------------------------------------------- where it is called

EVERYWHERE = """
functions {
  real power(real x, real xc, array[] real theta, data array[] real x_r, data array[] int x_i) {
    real total = 0;
    int i = 0;
    while (i < x_i[1]) { total += theta[1] * x ^ x_r[i + 1]; i += 1; }
    return total;
  }
  real of(real a, real b, array[] real theta, data array[] real x_r) {
    return integrate_1d(power, a, b, theta, x_r, {size(x_r)});
  }
  real outer(real x, real xc, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return integrate_1d(power, 0, x * theta[2], theta, x_r, x_i, 1e-10);
  }
}
data { int N; array[N] real x_r; }
transformed data {
  real known = of(0, 1, {6.0}, x_r);
  real none = integrate_1d(power, 1, 1, {6.0}, x_r, {N});
}
parameters { real k; real b; }
transformed parameters { real here = of(-0.0, b, {k}, x_r); }
model {
  target += known * here + none;
  target += integrate_1d(outer, 0, b, {k, k}, x_r, {N}, 1e-9);
}
generated quantities { real after = of(b, 2 * b, {k}, x_r); }
"""


def test_functions_blocks_and_an_integral_in_an_integral() -> None:
    m = StanModel(EVERYWHERE, {"N": 2, "x_r": [1, 2]})

    def density(theta: np.ndarray) -> float:
        k, b = theta
        return 5 * k * (b**2 / 2 + b**3 / 3) + k * (k**2 * b**3 / 6 + k**3 * b**4 / 12)

    theta = np.array([0.6, 1.3])
    value, gradient, hessian = m.log_density_hessian(theta)
    assert value == pytest.approx(density(theta), rel=1e-13)
    assert m.log_density(theta) == pytest.approx(value, rel=1e-14)
    steps = np.eye(2) * 1e-3
    expected = [
        (8 * (density(theta + e) - density(theta - e)) - density(theta + 2 * e) + density(theta - 2 * e)) / 0.012
        for e in steps
    ]
    np.testing.assert_allclose(gradient, expected, rtol=1e-10)
    np.testing.assert_allclose(m.log_density_gradient(theta)[1], gradient, rtol=1e-14)
    expected = [(m.log_density_gradient(theta + e)[1] - m.log_density_gradient(theta - e)[1]) / 0.002 for e in steps]
    np.testing.assert_allclose(hessian, expected, rtol=1e-5)
    values = m.param_constrain(theta, include_tp=True, include_gq=True, rng=m.new_rng(1))
    assert values[2] == pytest.approx(0.6 * (1.3**2 / 2 + 1.3**3 / 3), rel=1e-14)
    assert values[3] == pytest.approx(0.6 * (3 * 1.3**2 / 2 + 7 * 1.3**3 / 3), rel=1e-14)


VARIADIC = """
functions { real f(real x, real xc, vector y, matrix A, tuple(real, int) s) { return s.1 * x ^ s.2 * sum(A * y); } }
parameters { vector[2] y; matrix[3, 2] A; real s; real a; }
model { target += CALL(f, a, 2, MORE y, A, (s, 2)); }
"""


@pytest.mark.parametrize("more", ["", "1e-9, 1e-12, 12,"])
@pytest.mark.parametrize("name", ["integrate_1d_double_exponential", "integrate_1d_gauss_kronrod"])
def test_variadic(name: str, more: str) -> None:
    m = StanModel(VARIADIC.replace("CALL", name + ("_tol" if more else "")).replace("MORE", more))
    theta = np.random.default_rng(2).normal(size=m.param_unc_num())
    theta[-1] = -0.5
    y, A, s, a = theta[:2], theta[2:8].reshape(3, 2, order="F"), theta[8], theta[9]
    total, cubes = float(np.sum(A @ y)), (8 - a**3) / 3
    value, gradient = m.log_density_gradient(theta)
    assert value == pytest.approx(s * total * cubes, rel=1e-13)
    assert m.log_density(theta) == value
    expected = [*(A.sum(axis=0) * s * cubes), *(np.repeat(y, 3) * s * cubes), total * cubes, -s * total * a**2]
    np.testing.assert_allclose(gradient, expected, rtol=1e-13)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("integrand", "limits", "message"),
    [
        ("t[1]", ("2", "1"), "integrate_1d: lower_limit is 2, but must be less than or equal to 1"),
        ("t[1]", ("not_a_number()", "1"), "lower_limit is nan, but must be less than or equal to 1"),
        ("t[1]", ("0", "not_a_number()"), "lower_limit is 0, but must be less than or equal to nan"),
        ("t[1]", ("positive_infinity()", "positive_infinity()"), "lower_limit is inf, but must be finite"),
        ("not_a_number() * t[1]", ("0", "1"), "integrand is nan, but must be finite at x = 0.5"),
        ("x > 0.7 ? not_a_number() : t[1]", ("0", "1"), "integrand is nan, but must be finite at x = 0.[7-9]"),
        ("x < 0.7 && x > 0.6 ? not_a_number() : t[1]", ("0", "1"), "integrand is nan, but must be finite at x = 0.6"),
        ("t[1] / x", ("0", "1"), "error estimate of the integral exceeds the given relative tolerance times norm"),
        ("t[1] / abs(x - 0.3)", ("0", "1"), "error is .*, but must be at most .*: the error estimate of the integral"),
        ("t[1]", LINE, "error estimate of the integral"),
        ("t[1] * square(x)", ("0", "positive_infinity()"), "integrate_1d: norm is inf, but must be finite"),
        ("1e308 + t[1]", ("0", "10"), "integrate_1d: integrand is inf, but must be finite at x = 5"),
        ("x < t[2] ? t[1] : 0", ("0", "1"), "error estimate of the integral"),
        ("log(x - 2 + t[1] * 0)", ("0", "1"), "integrand is nan"),
    ],
)  # fmt: skip
def test_errors(integrand: str, limits: tuple[str, str], message: str) -> None:
    m = model(integrand, *limits)
    for evaluate in (m.log_density, m.log_density_gradient, m.log_density_hessian):
        with pytest.raises(Rejection, match=message):
            evaluate(np.array([0.5, 0.3, 0, 0]))


def test_errors_of_derivatives_and_tolerances() -> None:
    theta = np.array([0.5, 0.25, 0, 0])
    rough = model("abs(x - 0.3) * t[1]", "0", "1")  # the kink makes it slow
    with pytest.raises(Rejection, match="error estimate"):
        rough.log_density(theta)
    loose = model("abs(x - 0.3) * t[1]", "0", "1", ", 1e-4")
    assert loose.log_density(theta) == pytest.approx(0.29 * 0.5, rel=1e-3)
    kink = model("square(abs(x - t[2])) * t[1] + 3 + sqrt(abs(x - t[2])) * 0", "0", "1", ", 1e-3")
    assert kink.log_density(theta) == pytest.approx(3 + 0.5 * (0.75**3 + 0.25**3) / 3, rel=1e-3)
    step = model("fmax(x - t[2], 0)", "0", "1", ", 1e-5")  # its derivative is a step
    assert step.log_density(theta) == pytest.approx(0.5 * 0.75**2, rel=1e-5)
    with pytest.raises(Rejection, match="error estimate"):
        model("fmax(x - t[2], 0) + t[1]", "0", "1", ", 1e-7").log_density_gradient(theta)
    infinite = model("inv_sqrt(x) * t[1]")
    assert infinite.log_density(np.array([1, 0, 0, 1])) == pytest.approx(2, rel=1e-14)
    with pytest.raises(Rejection, match="integrand is inf, but must be finite at x = 0"):
        infinite.log_density_gradient(np.array([1, 0, 0, 1]))


def test_rejections_of_the_function_have_its_line() -> None:
    program = """functions {
      real f(real x, real xc, array[] real t, data array[] real x_r, data array[] int x_i) {
        if (x > 0.8) reject("too far: ", x > 0);
        return t[1];
      }
    }
    parameters { real k; } model { target += integrate_1d(f, 0, 1, {k}, {1.0}, {1}); }"""
    with pytest.raises(Rejection, match="too far: 1.*line 3"):
        StanModel(program).log_density_gradient(np.array([1.0]))
    with pytest.raises(Rejection, match="lower_limit.*line 7"):
        StanModel(program.replace("0, 1,", "2, 1,")).log_density_gradient(np.array([1.0]))


# ---------------------------------------------------------------- traces


def test_each_value_of_the_integrand_is_one_call() -> None:
    m = StanModel("""functions {
      real f(real x, real xc, array[] real t, data array[] real x_r, data array[] int x_i) { return t[1] * exp(-x); }
      real whole(real b, real k) { return integrate_1d(f, 0, b, {k}, {1.0}, {2}); }
    }""")
    root = m.track("whole", 2.0, 3.0, context=TraceContext(enter={"*", "integrate_1d"}))
    assert isinstance(root, NestedCallNode)
    assert root.value == pytest.approx(3 * (1 - math.exp(-2)), rel=1e-14) == m.track("whole", 2.0, 3.0).value
    node = next(n for n in root if isinstance(n, NestedCallNode) and n.item.calls_function)
    calls = [n for n in node if isinstance(n, NestedCallNode)]
    points = [n.arguments[0].value for n in calls]
    assert 20 < len(points) == len({(n.arguments[0].value, n.arguments[1].value) for n in calls}) < 130
    for n in calls:
        x, xc = (n.arguments[i].value for i in (0, 1))
        assert 0 <= x <= 2 and n.value == 3 * math.exp(-x)
        assert xc == pytest.approx(-x if xc < 0 else 2 - x, abs=1e-15)
    assert len([n for n in node if isinstance(n, SpecialCallNode)]) == 2 * len(calls) + 1


@pytest.mark.parametrize("name", ["integrate_1d", "integrate_1d_gauss_kronrod"])
def test_trace_of_a_density(name: str) -> None:
    m = model("t[1] * exp(-x * t[2])", name=name)
    theta = [2.0, 0.5, 0.1, 3.0]
    root = m.track_density(theta, context=TraceContext(enter={"*", name}))
    assert root.value == m.log_density(np.array(theta))
    np.testing.assert_array_equal(root.trace.adjoint(), m.log_density_gradient(np.array(theta))[1])
    assert root.trace.check_gradient(rtol=1e-4)
