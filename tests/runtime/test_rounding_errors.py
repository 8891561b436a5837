"""A check that fails by rounding in optimised code only is a rejection: samplers go on.

Near singular correlation matrices the Cholesky factor of one order of additions exists, and of another does not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from ulam import Rejection, StanModel
from ulam.library.statuses import FATAL, LOCATE, REJECTION
from ulam.runtime.errors import FatalError
from ulam.runtime.program import AT_THE_EDGE, Failure

CORRELATION = """
data { int N; array[N] vector[3] y; }
parameters { corr_matrix[3] Omega; }
model { Omega ~ lkj_corr(1.5); y ~ multi_normal(rep_vector(0, 3), Omega); }
"""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(CORRELATION, {"N": 2, "y": [[0.3, -0.2, 0.9], [-1.0, 0.4, 0.2]]})


def test_nearly_singular_matrices(model: StanModel) -> None:
    """There is a value or a rejection, whatever the order of the operations."""
    generator = np.random.default_rng(2)
    rejected = 0
    for point in [np.array([-6.907628165679549, 2.9111692857885085, 15.194140451468007]),
                  *generator.uniform(-17, 17, size=(2000, 3))]:  # fmt: skip
        for evaluate in (model.log_density, model.log_density_gradient):
            try:
                evaluate(point)
            except Rejection as rejection:
                rejected += 1
                assert "without saying where" not in str(rejection)
    assert rejected > 100


def test_what_the_program_as_written_passes_is_a_rejection(model: StanModel) -> None:
    unit = model.density_gradient_unit()
    error = unit.error_of(Failure(LOCATE, -1, (), ""))
    assert isinstance(error, Rejection) and error.text == AT_THE_EDGE
    assert isinstance(unit.error_of(Failure(FATAL, -1, (), "")), FatalError)
    assert isinstance(unit.error_of(Failure(REJECTION, -1, (), "")), Rejection)


def test_sampling_goes_on(model: StanModel) -> None:
    """From a start near the edge."""
    fit = model.sample(chains=2, warmup=100, draws=100, init=[{"Omega": matrix} for matrix in edges()], progress=False)
    assert np.isfinite(fit.stats["lp"]).all() and fit["Omega"].shape == (2, 100, 3, 3)


def edges() -> list[list[list[float]]]:
    """Correlation matrices whose smallest eigenvalue is about 1e-6."""
    r = 1 - 1e-6
    s = math.sqrt(1 - r**2)
    return [[[1, k * r, 0.5], [k * r, 1, 0.5 * k * r + 0.8 * s], [0.5, 0.5 * k * r + 0.8 * s, 1]] for k in (1, -1)]
