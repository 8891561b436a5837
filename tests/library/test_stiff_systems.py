"""Stiff systems of the literature: states and sensitivities are within the tolerances; NaN ends a solver quickly."""

from __future__ import annotations

import numpy as np
import pytest
from stiff_systems import SYSTEMS, result

from ulam import StanModel
from ulam.runtime.errors import Rejection

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("tolerance", [1e-5, 1e-9])
@pytest.mark.parametrize(
    "solver",
    ["ode_bdf_tol", *(pytest.param(s, marks=pytest.mark.slow) for s in ("ode_adams_tol", "ode_adjoint_tol_ctl"))],
)
def test_tolerances_hold(name: str, solver: str, tolerance: float) -> None:
    """Up to a factor, since a tolerance is that of each step."""
    *_, expected, slopes, ratio = SYSTEMS[name]
    state, gradient = result(name, solver, tolerance)
    np.testing.assert_allclose(state, expected, rtol=20 * tolerance, atol=20 * ratio * tolerance)
    np.testing.assert_allclose(gradient, slopes, atol=20 * tolerance)


UNDEFINED = """functions {
  vector f(real t, vector y, data real a, data int kind) {
    if (kind == 1) return [not_a_number(), a]';
    if (kind == 2) return [t > 0.5 ? not_a_number() : a, a]';
    return log(0.5 - t) * [a, 1]';
  }
}
data { real a; int kind; }
parameters { real b; }
model { target += sum(SOLVER(f, [1.0, 1.0]', 0, {1.0}, a, kind)[1]) + b; }"""


@pytest.mark.parametrize("solver", ["ode_rk45", "ode_ckrk", "ode_adams", "ode_bdf"])
def test_nan_ends_with_a_rejection(solver: str) -> None:
    """From the beginning, later, and beyond a singularity: how far steps may shrink makes it quick."""
    small = "the steps have become too small"
    for kind, message in ((1, r"derivative\[1\] is nan, but must be finite"), (2, small), (3, small)):
        model = StanModel(UNDEFINED.replace("SOLVER", solver), {"a": 1.5, "kind": kind}, opt_level=0)
        with pytest.raises(Rejection, match=message):
            model.log_density(np.zeros(1))
