"""Hypergeometric functions on the border of convergence, where their sums have closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import ProgramError

A, B = slice(0, 3), slice(3, 5)


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    text = (
        "parameters { array[3] real a; array[2] real b; real z; real of_reference; }"
        "model { if (of_reference == 0) target += hypergeometric_3F2(a, b, z);"
        "else target += tgamma(b[1]) * tgamma(b[1] - a[1] - a[2]) / tgamma(b[1] - a[1]) / tgamma(b[1] - a[2]); }"
    )
    return ulam.StanModel(text, opt_level=0)


@pytest.mark.parametrize("excess", [0.05, 0.4, 1.0, 2.5, 30.0])
def test_at_1_by_the_sum_of_gauss(model: ulam.StanModel, excess: float) -> None:
    """With a parameter that is above and below, which is no 2F1 to the function."""
    a1, a2 = 0.3, 1.7
    point = np.array([a1, a2, 0.8, a1 + a2 + excess, 0.8, 1.0, 0.0])
    value, gradient = model.log_density_gradient(point)
    point[-1] = 1
    expected, slopes = model.log_density_gradient(point)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient[[0, 1, 3]], slopes[[0, 1, 3]], rtol=1e-10)
    assert gradient[2] == pytest.approx(-gradient[4], rel=1e-10)  # what is above and below has no influence
    if excess > 1:  # the slope is a1 a2 / b1 times the function of parameters greater by 1, a sum of Gauss as well
        c = a1 + a2 + excess
        above = math.gamma(c + 1) * math.gamma(excess - 1) / math.gamma(c - a1) / math.gamma(c - a2)
        assert gradient[5] == pytest.approx(a1 * a2 / c * above, rel=1e-10)
    else:
        assert gradient[5] == math.inf


def test_at_minus_1_by_the_sum_of_kummer(model: ulam.StanModel) -> None:
    for a, b in ((0.3, 0.7), (2.5, 0.6), (1.2, -0.4)):
        c = 1 + a - b
        value, gradient = model.log_density_gradient(np.array([a, b, 1.3, c, 1.3, -1.0, 0.0]))
        expected = math.gamma(c) * math.gamma(1 + a / 2) / math.gamma(1 + a) / math.gamma(1 + a / 2 - b)
        assert value == pytest.approx(expected, rel=1e-13)
        near = [model.log_density(np.array([a, b, 1.3, c, 1.3, z, 0.0])) for z in (-0.999, -0.998, -0.997)]
        assert gradient[5] == pytest.approx((4 * near[0] - 3 * value - near[1]) / 2e-3, rel=1e-3)


def test_without_a_limit_it_is_an_error(model: ulam.StanModel) -> None:
    for z, total in ((1.0, 2.8), (-1.0, 1.7)):
        with pytest.raises(ProgramError, match="must be greater than"):
            model.log_density(np.array([0.3, 1.7, 0.8, total - 0.8, 0.8, z, 0.0]))


INTEGERS = [(3, 1, 2, -0.7), (-2, 1.5, 2.2, 0.6), (1.5, -3, 2, 0.5), (2.5, 1, 1.5, -0.8), (0, 1.5, 2.5, 0.4)]


@pytest.mark.parametrize("point", INTEGERS)
def test_slopes_where_terms_vanish(point: tuple[float, ...]) -> None:
    """Where a parameter is a negative integer, or is made one by a transformation, terms end, but not their slopes."""
    model = ulam.StanModel(
        "parameters { real a; real b; real c; real z; } model { target += hypergeometric_2F1(a, b, c, z); }"
    )
    center = np.array(point, float)
    for k in range(3):
        step = 1e-4 * np.eye(4)[k]
        around = [model.log_density_gradient(center + sign * step)[1] for sign in (-1, 1)]
        np.testing.assert_allclose(model.log_density_gradient(center)[1], np.mean(around, axis=0), rtol=1e-6, atol=1e-7)
