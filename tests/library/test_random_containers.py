"""Random containers: means over many draws against what theory says."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

DRAWS = 4000


def _draws(program: str, data: Mapping[str, object]) -> npt.NDArray[np.float64]:
    model = ulam.StanModel(program, data, cache=False)
    rng = model.new_rng(20)
    return np.array([model.param_constrain(np.zeros(0), include_gq=True, rng=rng) for _ in range(DRAWS)])


def test_hidden_states_have_their_posterior_distribution() -> None:
    log_omegas = np.array([[-1, -0.5, -2], [-0.3, -1.5, -0.4]])
    gamma, rho = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.4, 0.6])
    data = {"o": log_omegas, "g": gamma, "r": rho}
    program = """data { matrix[2, 3] o; matrix[2, 2] g; vector[2] r; }
        generated quantities { array[3] int z = hmm_latent_rng(o, g, r); }"""
    weight = {
        z: rho[z[0]] * gamma[z[0], z[1]] * gamma[z[1], z[2]] * np.exp(sum(log_omegas[z[n], n] for n in range(3)))
        for z in product((0, 1), repeat=3)
    }
    total = sum(weight.values())
    draws = _draws(program, data)
    for z, w in weight.items():
        share = float(np.mean(np.all(draws == np.array(z) + 1, axis=1)))
        assert abs(share - w / total) < 5 * np.sqrt(w / total / DRAWS)


def test_inverse_wishart_by_its_cholesky_factor() -> None:
    factor = np.array([[1.0, 0.0], [0.5, 2.0]])
    program = """data { matrix[2, 2] L; }
        generated quantities { matrix[2, 2] w = inv_wishart_cholesky_rng(12, L); }"""
    factors = _draws(program, {"L": factor}).reshape(DRAWS, 2, 2).transpose(0, 2, 1)
    assert np.all(factors[:, 0, 1] == 0)
    mean = np.mean(factors @ factors.transpose(0, 2, 1), axis=0)
    np.testing.assert_allclose(mean, factor @ factor.T / (12 - 2 - 1), rtol=0.1)


def test_a_vector_is_drawn_for_each_mean_of_an_array() -> None:
    program = """data { array[3] vector[2] m; matrix[2, 2] S; }
        generated quantities { array[3] vector[2] y = multi_normal_rng(m, S); }"""
    means = np.array([[1.0, 10], [2, 20], [3, 30]])
    covariance = np.array([[2.0, 1], [1, 3]])
    draws = _draws(program, {"m": means, "S": covariance}).reshape(DRAWS, 2, 3).transpose(0, 2, 1)
    np.testing.assert_allclose(draws.mean(axis=0), means, atol=0.2)
    for k in range(3):
        np.testing.assert_allclose(np.cov(draws[:, k].T), covariance, atol=0.3)
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1]) < 0.1
