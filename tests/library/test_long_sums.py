"""Functions that add up terms take no longer where an argument is large: another formula has the value there."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

SECONDS = 20.0
"""Of time on the clock, of which the sums would have taken minutes."""
BESSEL = [(1000.0, 1e-3), (1000.0, 700.0), (1500.0, 4e3), (4e4, 30.0), (7e3, 9e3)]
GAMMA = [(1001, 0.3), (1500, 700.2), (2000, -3.8), (1002, 499.9), (1200, -600.3)]
ENDS = [(1e5, 1e10), (1e6, 1e-300), (1e10, 1e10), (1e160, 1e300), (1e300, 1e150)]


MOST = 2_000_000_000
COUNTS = [*(n for n, _ in GAMMA), MOST]


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    """`which`: 0 and 1 for the first two functions, from 2 on for the counts of the third."""
    made = ulam.StanModel(
        """data { int n_counts; array[n_counts] int n; } parameters { real which; real x; real y; real z; }
        model {
          if (which < 0.5) target += log_modified_bessel_first_kind(x, y);
          else if (which < 1.5) target += hypergeometric_3F2({x, 0.5, 0.3}, {y, 1.5}, z);
          else for (k in 1:n_counts) if (abs(which - k - 1) < 0.5) target += lmgamma(n[k], x);
        }""",
        {"n_counts": len(COUNTS), "n": COUNTS},
        opt_level=0,
    )
    made.log_density_gradient([0.0, 1.0, 1.0, 0.0], propto=False)  # compiled outside of the time limit
    return made


def at(model: ulam.StanModel, which: int, *point: float) -> tuple[float, np.ndarray]:
    """The value, and the slopes at the point."""
    theta = [which, *point, *[0.5] * (3 - len(point))]
    value, gradient = model.log_density_gradient(theta, propto=False, time_limit=SECONDS)
    return value, gradient[1 : 1 + len(point)]


def log_bessel(v: mpmath.mpf, z: mpmath.mpf) -> mpmath.mpf:
    series = mpmath.hyp0f1(v + 1, z * z / 4)
    return v * mpmath.log(z / 2) - mpmath.loggamma(v + 1) + mpmath.log(series)


@pytest.mark.parametrize(("order", "z"), BESSEL)
def test_bessel_functions_of_large_orders(model: ulam.StanModel, order: float, z: float) -> None:
    with mpmath.workdps(60):
        v, x, step = mpmath.mpf(order), mpmath.mpf(z), mpmath.mpf(10) ** -20
        expected = float(log_bessel(v, x))
        slopes = [
            float((log_bessel(v + dv, x + dx) - log_bessel(v - dv, x - dx)) / (2 * step))
            for dv, dx in ((step, 0), (0, step))
        ]
    value, gradient = at(model, 0, order, z)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12)


@pytest.mark.parametrize(("n", "x"), GAMMA)
def test_multivariate_gamma_functions_below_their_poles(model: ulam.StanModel, n: int, x: float) -> None:
    with mpmath.workdps(40):
        ys = [mpmath.mpf(x) - mpmath.mpf(j) / 2 for j in range(n)]
        terms = mpmath.fsum(mpmath.log(abs(mpmath.gamma(y))) for y in ys)
        expected: Any = terms + mpmath.mpf(n) * (n - 1) / 4 * mpmath.log(mpmath.pi)
        slope: Any = mpmath.fsum(mpmath.digamma(y) for y in ys)
    value, gradient = at(model, 2 + COUNTS.index(n), x)
    assert value == pytest.approx(float(expected), rel=1e-12)
    assert gradient[0] == pytest.approx(float(slope), rel=1e-9)


@pytest.mark.parametrize(("order", "z"), ENDS)
def test_bessel_functions_end(model: ulam.StanModel, order: float, z: float) -> None:
    value, gradient = at(model, 0, order, z)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("x", [0.3, -7.4e5 - 0.3, 5e8 + 0.25])
def test_multivariate_gamma_functions_end(model: ulam.StanModel, x: float) -> None:
    value, gradient = at(model, 2 + COUNTS.index(MOST), x)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("z", [1.0, -1.0])
def test_hypergeometric_functions_end(model: ulam.StanModel, z: float) -> None:
    """With 1e9 beside 2e9 the terms are those of a function of half the argument, but for parts of 1e-9."""
    value, _ = at(model, 1, 1e9, 2e9, z)
    assert value == pytest.approx(float(mpmath.hyp2f1(0.5, 0.3, 1.5, z / 2)), rel=1e-8)
