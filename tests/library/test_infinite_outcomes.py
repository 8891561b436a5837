"""At an infinite outcome distribution functions are 0 or 1, whatever their parameters: slopes are 0, not NaN.

Bounds of censored or truncated outcomes are infinite where there are none.
"""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.library import signature_table
from ulam.library.functions import CUMULATIVE, FunctionKind, named

pytestmark = pytest.mark.usefixtures("quick_code")

BOUNDED = {"beta", "beta_proportion", "uniform", "von_mises"}
FROM_ZERO = {
    "chi_square", "exponential", "frechet", "gamma", "inv_chi_square", "inv_gamma", "loglogistic", "lognormal",
    "pareto", "pareto_type_2", "rayleigh", "scaled_inv_chi_square", "weibull",
}  # fmt: skip


def _calls(kind: FunctionKind, outcome: str) -> list[str]:
    """A call for each distribution of a real outcome that has a function of this kind."""
    found: list[str] = []
    for name in signature_table.names():
        codes = next(iter(codes for codes in (signature_table.row(name) or ("", {}))[1] if set(codes) <= {"r"}), "")
        stem = named(name).stem
        if named(name).kind is kind and codes and stem not in BOUNDED:
            below = outcome == "lo" and stem in FROM_ZERO
            found += [] if below else [f"{name}({outcome} | {', '.join('abc'[: len(codes) - 1])})"]
    return found


@pytest.mark.parametrize("level", [0, 3])
def test_slopes_are_zero(level: int) -> None:
    certain = [call for kind in CUMULATIVE for call in _calls(kind, "lo" if kind is FunctionKind.LOG_CCDF else "hi")]
    impossible = _calls(FunctionKind.CDF, "lo")
    assert len(certain) > 50 and len(impossible) > 7
    text = "parameters { real lo; real hi; real a; real b; real c; } model {"
    text += "".join(f"target += {call};\n" for call in [*certain, *impossible]) + "}"
    value, slopes = ulam.StanModel(text, opt_level=level).log_density_gradient([-np.inf, np.inf, 0.7, 0.8, 0.6])
    assert value == len(_calls(FunctionKind.CDF, "hi"))
    assert not slopes.any()
