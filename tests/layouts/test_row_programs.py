"""Random programs of sums over rows: level 3, with layouts of the data, against level 0."""

from __future__ import annotations

import numpy as np
import pytest
from affine_programs import affine_data, affine_program
from applied_programs import applied_data, applied_program
from component_programs import component_data, component_program
from group_programs import group_data, group_program
from level_outcomes import outcome
from outcome_programs import outcome_data, outcome_program
from row_programs import row_data, row_program
from state_programs import state_data, state_program

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

CASES = {
    **{f"rows {seed}": (row_program(seed), row_data(seed)) for seed in range(12, 17)},
    **{f"groups {seed}": (group_program(seed), group_data(seed + 1)) for seed in (2, 5, 6, 29, 33)},
    **{f"applied {seed}": (applied_program(seed), applied_data(seed)) for seed in (3, 10)},
    **{f"outcomes {seed}": (outcome_program(seed), outcome_data(seed)) for seed in (5, 9, 12)},
    **{f"affine {seed}": (affine_program(seed), affine_data(seed)) for seed in (1, 3, 5, 9)},
    **{f"components {seed}": (component_program(seed), component_data(seed)) for seed in (1, 3, 4, 6)},
    **{f"states {seed}": (state_program(seed), state_data(seed)) for seed in (1, 2, 4, 6)},
}


@pytest.mark.parametrize("case", CASES)
def test_level_3_is_level_0(case: str) -> None:
    program, data = CASES[case]
    models = [ulam.StanModel(program, data, opt_level=level) for level in (0, 3)]
    rng = np.random.default_rng(len(program))
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
