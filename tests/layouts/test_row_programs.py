"""Random programs of sums over rows: level 3, with layouts of the data, against level 0."""

from __future__ import annotations

import numpy as np
import pytest
from level_outcomes import outcome
from row_programs import row_data, row_program

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

SEEDS = range(7, 12)


@pytest.mark.parametrize("seed", SEEDS)
def test_level_3_is_level_0(seed: int) -> None:
    program = row_program(seed)
    models = [ulam.StanModel(program, row_data(seed), opt_level=level) for level in (0, 3)]
    rng = np.random.default_rng(seed)
    for size in (0.3, 1.0):
        point = rng.normal(0, size, models[0].param_unc_num())
        answers = [outcome(model, point) for model in models]
        if any(isinstance(answer, str) for answer in answers):
            assert answers[0] == answers[1], program
            continue
        first, second = (np.array([value, *slopes]) for value, slopes in answers)
        np.testing.assert_array_equal(np.isfinite(first), np.isfinite(second), program)
        finite = np.isfinite(first)
        scale = max(1.0, float(np.abs(first[finite]).max(initial=0)))
        np.testing.assert_allclose(second[finite], first[finite], rtol=0, atol=1e-10 * scale, err_msg=program)
