"""Special functions of the C runtime against values of 60 digits, in tests/reference/special_functions.json."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from special_values import REFERENCE, TOLERANCE

from ulam.runtime import c_library


def function(name: str, arity: int) -> Callable[..., float]:
    found = getattr(c_library.library(), f"ulam_{name}")
    found.restype = ctypes.c_double
    found.argtypes = [ctypes.c_double] * arity
    return found


digamma, trigamma = function("digamma", 1), function("trigamma", 1)
lbeta, lchoose = function("lbeta", 2), function("lchoose", 2)
Phi, inv_Phi, inv_erfc = function("Phi", 1), function("inv_Phi", 1), function("inv_erfc", 1)
gamma_p, gamma_q, inc_beta = function("gamma_p", 2), function("gamma_q", 2), function("inc_beta", 3)
lambert_w0, lambert_wm1 = function("lambert_w0", 1), function("lambert_wm1", 1)
inf, nan = math.inf, math.nan


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_reference_values(name: str) -> None:
    for *arguments, expected in REFERENCE[name]:
        value = function(name, len(arguments))(*arguments)
        assert value == pytest.approx(expected, rel=TOLERANCE.get(name, 1e-14), abs=2e-15 if expected else 1e-16), (
            f"{name}{tuple(arguments)}"
        )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: digamma(0.0), nan), (lambda: digamma(-3.0), nan), (lambda: digamma(inf), inf),
        (lambda: digamma(-inf), nan), (lambda: digamma(nan), nan),
        (lambda: trigamma(0.0), inf), (lambda: trigamma(-2.0), inf), (lambda: trigamma(inf), 0.0),
        (lambda: trigamma(nan), nan),
        (lambda: lbeta(0.0, 0.4), inf), (lambda: lbeta(inf, 0.4), -inf), (lambda: lbeta(nan, 1.0), nan),
        (lambda: lbeta(-1.0, 1.0), nan), (lambda: lbeta(1.0, 1.0), 0.0),
        (lambda: lchoose(5.3, 0.0), 0.0), (lambda: lchoose(5.3, -1.0), -inf), (lambda: lchoose(inf, 2.4), nan),
        (lambda: lchoose(7.0, 7.0), 0.0),
        (lambda: Phi(-1e10), 0.0), (lambda: Phi(1e10), 1.0), (lambda: Phi(0.0), 0.5), (lambda: Phi(nan), nan),
        (lambda: Phi(-inf), 0.0), (lambda: Phi(inf), 1.0),
        (lambda: inv_Phi(0.0), -inf), (lambda: inv_Phi(1.0), inf), (lambda: inv_Phi(0.5), 0.0),
        (lambda: inv_Phi(-0.1), nan), (lambda: inv_Phi(nan), nan),
        (lambda: inv_erfc(0.0), inf), (lambda: inv_erfc(2.0), -inf), (lambda: inv_erfc(2.5), nan),
        (lambda: gamma_p(0.3, 0.0), 0.0), (lambda: gamma_p(0.3, inf), 1.0), (lambda: gamma_p(inf, 0.4), nan),
        (lambda: gamma_p(nan, 0.4), nan), (lambda: gamma_q(0.3, 0.0), 1.0), (lambda: gamma_q(0.3, inf), 0.0),
        (lambda: inc_beta(1.5, 2.0, 0.0), 0.0), (lambda: inc_beta(1.5, 2.0, 1.0), 1.0),
        (lambda: inc_beta(1.5, 2.0, 1.5), nan), (lambda: inc_beta(nan, 2.0, 0.5), nan),
        (lambda: lambert_w0(0.0), 0.0), (lambda: lambert_w0(inf), inf), (lambda: lambert_w0(-1.0), nan),
        (lambda: lambert_wm1(0.0), -inf), (lambda: lambert_wm1(0.1), nan), (lambda: lambert_wm1(-1.0), nan),
    ],
)  # fmt: skip
def test_borders(call: Callable[[], float], expected: float) -> None:
    assert call() == pytest.approx(expected, nan_ok=True, abs=1e-15)


positive = st.floats(1e-6, 1e7)


@given(positive)
def test_digamma_recurrence(x: float) -> None:
    assert digamma(x + 1) == pytest.approx(digamma(x) + 1 / x, rel=1e-13, abs=1e-14 / min(x, 1))


@given(st.floats(1e-4, 1e9), st.floats(1e-4, 1e9))
def test_gamma_p_and_q_are_complements(a: float, x: float) -> None:
    p, q = gamma_p(a, x), gamma_q(a, x)
    assert 0 <= p <= 1 and 0 <= q <= 1 + 1e-15
    assert p + q == pytest.approx(1, abs=5e-14)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.floats(0, 1))
@example(0.0078125, 1.0, 1e-9)
def test_inc_beta_symmetry(a: float, b: float, x: float) -> None:
    complement = 1 - x
    x = 1 - complement  # both exact
    assert inc_beta(a, b, x) + inc_beta(b, a, complement) == pytest.approx(1, abs=1e-11)


@given(st.floats(1e-300, 1 - 1e-16))
def test_inv_phi_inverts(p: float) -> None:
    assert Phi(inv_Phi(p)) == pytest.approx(p, rel=1e-12)


@given(st.floats(-0.36, 1e300))
def test_lambert_inverts(x: float) -> None:
    w = lambert_w0(x)
    assert math.log(w) + w == pytest.approx(math.log(x), abs=1e-12) if x > 1 else w * math.exp(w) == pytest.approx(x)
