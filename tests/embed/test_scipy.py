"""Log densities in SciPy: minimized, and integrated with no Python in between."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam

optimize: Any = pytest.importorskip("scipy.optimize")
integrate: Any = pytest.importorskip("scipy.integrate")

sys.path.insert(0, str(Path(__file__).parent))
from models import model, points  # noqa: E402

from ulam.embed.scipy import density, objective  # noqa: E402

pytestmark = pytest.mark.embed


@pytest.mark.parametrize(
    ("method", "options"),
    [("L-BFGS-B", ()), ("BFGS", ()), ("trust-krylov", ["hessp"]), ("trust-exact", ["hess"]), ("Newton-CG", ["hessp"])],
)
def test_modes(method: str, options: Sequence[str]) -> None:
    f = objective(model("logistic"))
    found = optimize.minimize(
        f, np.full(4, 0.5), jac=True, method=method, **{option: getattr(f, option) for option in options}
    )
    assert found.success
    mode = model("logistic").optimize("newton", jacobian=True)
    np.testing.assert_allclose(found.x, mode.unconstrained, atol=1e-4)
    assert -found.fun == pytest.approx(mode.log_density, abs=1e-7)


def test_derivatives() -> None:
    f, x, v = objective(model("schools"), jacobian=False, propto=False), points("schools", 2)[1], np.arange(10.0)
    value, gradient = f(x)
    wanted = model("schools").log_density_gradient(x, jacobian=False, propto=False)
    assert value == -wanted[0] and (gradient == -wanted[1]).all()
    np.testing.assert_allclose(f.hess(x) @ v, f.hessp(x, v), rtol=1e-10)


def test_refused_points() -> None:
    """A line search comes back from them; a start there is no success."""
    program = """
      parameters { real a; real b; }
      model { if (a > 1.5) reject("no"); a ~ normal(1, 0.5); b ~ normal(a, 1); target += -exp(3 * a); }
    """
    f = objective(ulam.StanModel(program, opt_level=0))
    for method in ("L-BFGS-B", "BFGS", "CG"):
        found = optimize.minimize(f, np.array([1.4, -10.0]), jac=True, method=method)
        assert found.success
        np.testing.assert_allclose(found.x, [0.071254, 0.071254], atol=1e-4)
    assert not optimize.minimize(f, np.array([2.0, 0.0]), jac=True, method="BFGS").success
    assert not np.isfinite(f(np.array([2.0, 0.0]))[0])
    with pytest.raises(ulam.FatalError):
        objective(model("refusing"))(np.array([-11.0, 0.0]))


def test_integrals() -> None:
    """The evidence of a truncated normal, whose tail the program refuses; the model is gone by then."""
    own = ulam.StanModel(
        'parameters { real a; real b; } model { if (a > 1.5) reject("no"); a ~ normal(0, 0.5); b ~ normal(a, 1); }',
        opt_level=0,
    )
    function = density(own, propto=False, shift=-3.0)
    del own
    gc.collect()
    found, _ = integrate.nquad(function, [(-4, 1.5), (-7, 7)])
    assert found * math.exp(-3) == pytest.approx(0.5 * math.erfc(-3 / math.sqrt(2)), rel=1e-6)
    single = ulam.StanModel("parameters { real<lower=0> x; } model { x ~ gamma(2, 3); }", opt_level=0)
    assert integrate.quad(density(single, propto=False), -30, 5)[0] == pytest.approx(1, rel=1e-7)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_fatal_errors_and_wrong_sizes_give_nan() -> None:
    assert math.isnan(integrate.nquad(density(model("refusing")), [(-12, -11), (0, 1)])[0])
    assert math.isnan(integrate.quad(density(model("refusing")), 0, 1)[0])
