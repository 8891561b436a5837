"""Distribution functions for parameters from 1e-300 to 1e300: no NaN; against extended precision where they had it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np
import pytest
from distribution_calls import model_of_calls, told_if_nan

import ulam
from ulam.library import signature_table
from ulam.library.functions import CUMULATIVE, named

pytestmark = pytest.mark.usefixtures("quick_code")

OUTCOMES = (-1e308, -1e150, -1e-320, 0.0, 1e-320, 1e-300, 1e150, 1e308, -np.inf, np.inf, 0.5)
EXTREMES = (1e-300, 1e-160, 1e-20, 1e20, 1e160, 1e300)
USUAL = ((0.7, 0.6, 0.8), (2.5, 1.2, 0.6))


def _calls() -> dict[str, tuple[str, int]]:
    """A call for each distribution of one outcome, and its number of parameters."""
    found: dict[str, tuple[str, int]] = {}
    for name in signature_table.names():
        rows = (signature_table.row(name) or ("", {}))[1]
        codes = next((c for c in rows if set(c[1:]) <= {"r"} and c[:1] in ("i", "r") and len(c) <= 4 and "r" in c), "")
        if named(name).kind in CUMULATIVE and codes and not name.startswith("wiener"):
            found[name] = (
                f"{name}({'3' if codes[0] == 'i' else 'y'} | {', '.join('abc'[: len(codes) - 1])})",
                len(codes) - 1,
            )
    return found


def test_no_parameter_makes_nan() -> None:
    """Neither of a value, nor of a slope where the value is finite."""
    calls = _calls()
    assert len(calls) > 90
    model = model_of_calls([call for call, _ in calls.values()], 0)
    wrong: list[str] = []
    points = 0
    for k, (name, (call, count)) in enumerate(calls.items()):
        for y in OUTCOMES if "(y" in call else (0.0,):
            for usual in USUAL:
                for n in range(count):
                    for extreme in EXTREMES:
                        point = [*usual[:n], extreme, *usual[n + 1 :]]
                        told = told_if_nan(model, [k, y, *point])
                        points += told is not None
                        if told:
                            wrong.append(f"{name} at {y}, {point[:count]}: {told}")
    assert points > 14_000
    assert not wrong, "\n".join(wrong)


Exact = Callable[..., "mp.mpf"]


def _beta_probability(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """I_x(a, b), by its series in x below 1 / 2."""
    term, total = mp.mpf(1), 1 / a
    for n in range(1, 500):
        term *= (n - b) / n * x
        total += term / (a + n)
    return x**a * total / mp.beta(a, b)


def _gamma_tail(x: mp.mpf, a: mp.mpf) -> mp.mpf:
    """log(Q(a, x)) for a large a, by the integral from x on."""
    scale = mp.sqrt(a)
    here = (x - a) / scale
    density = lambda s: mp.exp((a - 1) * mp.log1p(s / scale) - s * scale)  # noqa: E731
    total = mp.quad(density, [here + k for k in range(12)])
    return mp.log(total) + (a - 1) * mp.log(a) - a - mp.loggamma(a) + mp.log(scale)


def _student_lower_tail(y: mp.mpf, nu: mp.mpf) -> mp.mpf:
    density = lambda s: mp.exp(-(nu + 1) / 2 * mp.log1p(s * s / nu))  # noqa: E731
    total = mp.quad(density, [y - k * 6 / (1 + abs(y)) for k in range(12, -1, -1)])
    return mp.log(total) + mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi) / 2


def _exp_mod_normal(y: mp.mpf, rate: mp.mpf) -> mp.mpf:
    return mp.log(mp.ncdf(y) - mp.exp(rate * (rate / 2 - y)) * mp.ncdf(y - rate))


CASES: dict[str, tuple[Exact, Sequence[tuple[float, ...]]]] = {
    "beta_lccdf(x[1] | x[2], x[3])": (
        lambda y, a, b: mp.log(1 - _beta_probability(a, b, y)),
        [(1e-300, 1e-300, 0.6), (1e-20, 1e-20, 1.2), (1e-160, 1e-8, 1.2), (0.3, 1e-20, 0.5), (1e-4, 0.01, 30.0)],
    ),
    "neg_binomial_2_lccdf(3 | x[1], x[2])": (
        lambda mu, phi: mp.log(1 - _beta_probability(phi, mp.mpf(4), phi / (phi + mu))),
        [(0.7, 1e-300), (1e-8, 1e-300), (1e3, 1e-20)],
    ),
    "gamma_lccdf(x[1] | x[2], 1)": (_gamma_tail, [(1e10 + 4e5, 1e10), (3e8, 3e8), (1e18 - 1e9, 1e18)]),
    "student_t_lcdf(x[1] | x[2], 0, 1)": (
        _student_lower_tail,
        [(-3.0, 1e16), (-30.0, 1e16), (1.5, 1e20), (-0.1, 1e17)],
    ),
    "exp_mod_normal_lcdf(x[1] | 0, 1, x[2])": (
        _exp_mod_normal,
        [(0.4, 1e-8), (-3.0, 1e-20), (-30.0, 1e-3), (-30.0, 1.0), (3.0, 0.04), (-1e3, 1e-5), (-0.5, 1e-160)],
    ),
    "exp_mod_normal_lccdf(x[1] | 0, 1, x[2])": (
        lambda y, rate: mp.log1p(-mp.exp(_exp_mod_normal(y, rate))),
        [(0.4, 1e-8), (-3.0, 1e-20), (1.7, 1e-300), (3.0, 0.04)],
    ),
}


@pytest.mark.parametrize("call", CASES)
def test_against_extended_precision(call: str) -> None:
    """Values and slopes, which differences in 400 and more digits tell, to 1e-10 of their size."""
    exact, points = CASES[call]
    count = len(points[0])
    model = ulam.StanModel(f"parameters {{ vector[{count}] x; }} model {{ target += {call}; }}", opt_level=0)
    with mp.workdps(80 if "gamma" in call or "student" in call else 700):
        for point in points:
            value, slopes = model.log_density_gradient(list(point), propto=False)
            numbers = list(map(mp.mpf, point))
            wanted = exact(*numbers)
            assert abs(value - wanted) <= 1e-10 * abs(wanted), (call, point)
            for n, slope in enumerate(slopes):
                step = abs(numbers[n]) * mp.mpf(10) ** -25
                ahead, behind = ([*numbers[:n], numbers[n] + sign * step, *numbers[n + 1 :]] for sign in (1, -1))
                expected = (exact(*ahead) - exact(*behind)) / (2 * step)
                assert abs(slope - expected) <= 1e-10 * (abs(expected) + abs(wanted / numbers[n])), (call, point, n)
