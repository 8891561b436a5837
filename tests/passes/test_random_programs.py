"""Random programs: the gradient against central differences, and level 0 against level 3."""

from __future__ import annotations

import time

import numpy as np
import pytest
from central_differences import central_differences
from random_programs import DATA, random_program

from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

SEEDS = range(16)
BUDGET = 10.0  # seconds, for all seeds together


@pytest.fixture(scope="module")
def deadline() -> float:
    return time.monotonic() + BUDGET


@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int, deadline: float) -> None:
    if time.monotonic() > deadline:
        pytest.skip("the time for random programs is used up")
    program = random_program(seed)
    model = StanModel(program, DATA)
    theta = np.random.default_rng(seed).uniform(-1, 1, model.param_unc_num())
    value, gradient = model.log_density_gradient(theta)
    assert value == pytest.approx(model.log_density(theta), rel=1e-12), program
    assert value == pytest.approx(StanModel(program, DATA, opt_level=0).log_density(theta), rel=1e-10), program
    coarse, fine = (central_differences(model.log_density, theta, step) for step in (1e-3, 3e-4))
    scale = 1 + np.abs(gradient).max()
    # Where two steps disagree, a comparison of the program changes sign within the step.
    smooth = np.abs(coarse - fine) < 1e-5 * scale
    assert smooth.mean() > 0.5, program
    np.testing.assert_allclose(gradient[smooth], coarse[smooth], atol=1e-6 * scale, err_msg=program)
