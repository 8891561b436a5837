"""Sizes that do not fit are refused at every level, whatever a level makes of the call, and whatever `~` drops."""

from __future__ import annotations

import random

import mismatched_sizes
import numpy as np
import pytest
from mismatched_sizes import Case, differences, of_densities, of_rules

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

LEVELS = (0, 1, 2, 3, 4)
DATA_ONLY = """
data {{ int L; int N; int n; array[2] int y; vector[2] z; vector[N] b; vector[N] mu; matrix[n, n] S; }}
parameters {{ real p; }}
model {{ {statement} target += p; }}
"""
FITS = {"L": 2, "N": 2, "n": 2, "y": [1, 0], "z": [0.5, 1], "b": [1, 2], "mu": [0, 0], "S": [[1, 0], [0, 1]]}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "statement",
    [
        "y ~ poisson_log(add_diag(rep_matrix(0.2, L, L), 2) * b);",
        "y ~ poisson_log_glm(rep_matrix(0.2, L, L), 0.5, b);",
        "z ~ normal_id_glm(rep_matrix(0.2, L, L), 0.5, b, 1.5);",
        "z' ~ multi_normal(mu, S);",
    ],
)
def test_statements_of_data_alone(statement: str, level: int) -> None:
    """What is dropped as a constant is refused for its sizes, and for its values, all the same."""
    program = DATA_ONLY.format(statement=statement)
    wrong = {"N": 3, "b": [1, 2, 3], "mu": [0, 0, 0]}
    assert ulam.StanModel(program, data=FITS, opt_level=level).log_density(np.array([0.3])) == 0.3
    for data in ({**FITS, **wrong}, {**FITS, "y": [-1, 0], "z": [float("nan"), 1]}):
        with pytest.raises(ulam.UlamError):
            ulam.StanModel(program, data=data, opt_level=level).log_density(np.array([0.3]))


def _share(cases: list[Case], count: int, seed: int) -> list[Case]:
    return random.Random(seed).sample(cases, count)


def test_a_share_of_the_rewrite_rules() -> None:
    cases = [case for case in of_rules() if case.is_density]
    for way in mismatched_sizes.WAYS:
        found = list(differences(_share(cases, 5, 1), way, "used", (3,)))
        assert not found, "\n".join(found)
    found = list(differences(_share(cases, 5, 2), "data", "dropping", (2,)))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("use", mismatched_sizes.USES)
@pytest.mark.parametrize("way", mismatched_sizes.WAYS)
@pytest.mark.parametrize("what", ["rules", "densities"])
def test_all_rewrite_rules_and_densities(what: str, way: str, use: str) -> None:
    cases = list(of_rules() if what == "rules" else of_densities())
    if use == "dropping":
        cases = [case for case in cases if case.is_density]
    for first in range(0, len(cases), 12):
        found = list(differences(cases[first : first + 12], way, use, (0, 1, 2, 3)))
        assert not found, "\n".join(found)
