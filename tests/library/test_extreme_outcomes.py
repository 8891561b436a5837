"""Distribution functions at outcomes near the ends of what numbers reach: a value that is one has slopes that are.

An exact 0, where some densities are infinite, is no such outcome.
"""

from __future__ import annotations

import numpy as np
import pytest
from distribution_calls import model_of_calls, told_if_nan

import ulam
from ulam.library import signature_table
from ulam.library.functions import CUMULATIVE, named

pytestmark = pytest.mark.usefixtures("quick_code")

OUTCOMES = (-1e308, -1e150, -1e-320, 1e-320, 1e-300, 1e150, 1e308, -np.inf, np.inf, 0.5)
PARAMETERS = ((0.7, 0.6, 0.8), (2.5, 1.2, 0.6))


def _calls() -> dict[str, str]:
    """A call for each distribution of a real outcome and real parameters."""
    found: dict[str, str] = {}
    for name in signature_table.names():
        rows = (signature_table.row(name) or ("", {}))[1]
        codes = next((codes for codes in rows if set(codes) == {"r"}), "")
        if named(name).kind in CUMULATIVE and 0 < len(codes) <= 4:
            found[name] = f"{name}(y | {', '.join('abc'[: len(codes) - 1])})"
    return found


@pytest.mark.parametrize("level", [0, 3])
def test_finite_values_have_slopes(level: int) -> None:
    calls = _calls()
    assert len(calls) > 70
    model = model_of_calls(calls.values(), level)
    wrong: list[str] = []
    points = 0
    for k, name in enumerate(calls):
        for y in OUTCOMES:
            for point in PARAMETERS:
                told = told_if_nan(model, [k, y, *point])
                points += told is not None
                if told:
                    wrong.append(f"{name} at {y}, {point}: {told}")
    assert points > 700
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.0])
def test_the_lower_tail_of_a_skew_normal(shape: float) -> None:
    """Pr(Z < z) is exp(-(1 + a^2) z^2 / 2) but for factors that have no digit of its logarithm there."""
    model = ulam.StanModel("parameters { real y; real a; } model { target += skew_normal_lcdf(y | 0, 1, a); }")
    for y in (-1e30, -1e51, -1e80):
        value, slopes = model.log_density_gradient([y, shape], propto=False)
        assert value == pytest.approx(-0.5 * (1 + shape * shape) * y * y, rel=1e-12)
        assert slopes == pytest.approx([-(1 + shape * shape) * y, -shape * y * y], rel=1e-8)
