"""Three small posteriors against the reference draws of posteriordb, as `benchmarks/posteriors.py` does with all.

The data are those of posteriordb (BSD-3-Clause, (c) Stan Developers and their Assignees); the programs are our own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ulam import StanModel

EIGHT_SCHOOLS = """
data { int J; vector[J] y; vector[J] sigma; }
parameters { real mu; real<lower=0> tau; vector<offset=mu, multiplier=tau>[J] theta; }
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  theta ~ normal(mu, tau);
  y ~ normal(theta, sigma);
}
"""
GAUSSIAN_PROCESS = """
data { int N; array[N] real x; vector[N] y; }
parameters { real<lower=0> rho; real<lower=0> alpha; real<lower=0> sigma; }
model {
  rho ~ gamma(25, 4);
  alpha ~ normal(0, 2);
  sigma ~ normal(0, 1);
  y ~ multi_normal(rep_vector(0, N), add_diag(gp_exp_quad_cov(x, alpha, rho), sigma));
}
"""
LINE = """
data { int N; vector[N] y; real mean_alpha; real sd_alpha; real sd_beta; }
transformed data { vector[N] x = linspaced_vector(N, 3952, 3951 + N); }
parameters { real alpha; real beta; real<lower=0> sigma; }
model {
  target += normal_lupdf(alpha | mean_alpha, sd_alpha) + normal_lupdf(beta | 0, sd_beta);
  target += normal_id_glm_lupdf(y | to_matrix(x), alpha, [beta]', sigma);
}
"""

SCHOOLS = {"J": 8, "y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}
POINTS = [4.75906, 1.59423, 2.99548, 5.27501, 1.66472, 2.24347, 2.8914, 4.08681, 4.60588, 0.802364, 3.92136]
SUMMERS = [
    8.3, 10.9, 9.4, 8.1, 8.1, 7.7, 8.6, 9.1, 11, 10.1, 7.6, 8.8, 8.3, 7.2, 9.3, 8.8, 7.6, 10.5, 11, 8.9, 11.3, 10, 10.1,
    6.4, 8.2, 8.4, 9.5, 9.9, 10.6, 7.6, 7.7, 8.1, 8.4, 9.7, 9.5, 7.3, 10.3, 9.6, 10.3, 9.8, 9, 9.1, 9.5, 8.7, 9.9, 10.5,
    9.4, 9, 9, 9.7, 11.4, 10.7, 10.1, 10.8, 10.4, 10.3, 8.8, 9.8, 8.8, 10.8, 8.6, 11.1,
]  # fmt: skip

POSTERIORS: dict[str, tuple[str, dict[str, Any], float]] = {
    # With the acceptance that the reference draws were made with.
    "eight_schools-eight_schools_noncentered": (EIGHT_SCHOOLS, SCHOOLS, 0.95),
    "gp_pois_regr-gp_regr": (GAUSSIAN_PROCESS, {"N": 11, "x": list(range(-10, 11, 2)), "y": POINTS}, 0.99),
    "kilpisjarvi_mod-kilpisjarvi": (
        LINE,
        {"N": 62, "y": SUMMERS, "mean_alpha": 9.31290322580645, "sd_alpha": 100, "sd_beta": 0.0333333333333333},
        0.8,
    ),
}


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        yield importlib.import_module("posteriors")


@pytest.mark.parametrize("name", POSTERIORS)
def test_reference_draws(benchmark: ModuleType, name: str) -> None:
    code, data, target_accept = POSTERIORS[name]
    fit = StanModel(code, data).sample(seed=1, target_accept=target_accept, progress=False)
    z = np.abs(benchmark.deviations(fit, benchmark.read_table()[name]))
    assert (z > benchmark.LARGE).sum() <= 1 and z.max() < benchmark.LARGEST, z.round(1)


def test_judge(benchmark: ModuleType) -> None:
    """A wrong posterior is found, and a single large deviation is not one."""
    reference = benchmark.read_table()["gp_pois_regr-gp_regr"]
    generator = np.random.default_rng(1)
    mean, sd = reference.values[:, 0], reference.values[:, 1]
    drawn = generator.normal(mean + 0.3 * sd, sd, size=(4, 1000, 3))  # the means are off by a third of an sd
    fit = {name: drawn[..., k] for k, name in enumerate(reference.names)}
    assert np.abs(benchmark.deviations(fit, reference)[:, 0]).min() > benchmark.LARGEST
    fine = {"z": [[1.0] * 100]}
    assert benchmark.judge({"a": fine, "b": {"z": [[1.0] * 99 + [5.0]]}}) == []
    assert len(benchmark.judge({"a": {"z": [[1.0] * 998 + [5.0, -5.0]]}})) == 1
    assert len(benchmark.judge({"a": {"z": [[1.0] * 999 + [7.0]]}})) == 1
    assert len(benchmark.judge({f"{k}": {"z": [[1.0] * 9 + [5.0]]} for k in range(9)})) == 1
    assert benchmark.judge({"a": {"error": "no"}}) == ["a: no"]


def test_elements(benchmark: ModuleType) -> None:
    draws = np.arange(24.0).reshape(1, 2, 3, 4)
    found = benchmark.elements({"t": draws, "s": draws[..., 0, 0]}, ["t[2,4]", "s"])
    assert found.tolist() == [[[7.0, 0.0], [19.0, 12.0]]]
