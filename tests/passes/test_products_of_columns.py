"""Products of matrices and vectors, several columns at a time: no coefficient is rounded on its way to a row."""

from __future__ import annotations

import numpy as np
import pytest

import ulam

PROGRAM = """
data { int N; int K; matrix[N, K] X; }
parameters { vector[K] b; vector[K] c; }
model { c ~ normal(X * b, 1); }
"""


@pytest.mark.parametrize("level", [0, 3])
def test_rows_of_the_identity_give_the_coefficients(level: int) -> None:
    rng = np.random.default_rng(1)
    for columns in range(1, 10):
        data = {"N": columns, "K": columns, "X": np.eye(columns)}
        model = ulam.StanModel(PROGRAM, data, opt_level=level, layouts=False)
        for b in rng.normal(size=(50, columns)):
            _, gradient = model.log_density_gradient(np.concatenate([b, b]))
            assert not gradient.any()
