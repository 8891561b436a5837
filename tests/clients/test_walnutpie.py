"""walnutpie, as it is, with libraries of ulam."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from bridgestan_libraries import WAYS, library_for

bridgestan: Any = pytest.importorskip("bridgestan")
walnutpie: Any = pytest.importorskip("walnutpie")

PROGRAM = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; array[2] vector[3] a; }
transformed parameters { real twice = 2 * mu; }
model { y ~ normal(mu, sigma); mu ~ normal(0, 10); sigma ~ exponential(1); for (i in 1:2) a[i] ~ normal(i, 1); }
generated quantities { real predicted = normal_rng(mu, sigma); }
"""
DATA = {"N": 5, "y": [1.0, 2.0, 3.0, 2.5, 1.5]}


@pytest.mark.parametrize("way", WAYS)
def test_samples(way: str, tmp_path: Path) -> None:
    path = library_for(way, PROGRAM, DATA, tmp_path)
    client = bridgestan.StanModel(path, DATA, warn=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds and stopping early
        chains = walnutpie.walnuts_stan(client, seed=3, num_chains=4, min_sampling_iter=1000, max_sampling_iter=1000)
    assert len(chains) == 4
    assert set(chains[0].parameters) >= {"mu", "sigma", "a", "twice", "predicted"}
    assert all(chain["a"].shape == (1000, 2, 3) for chain in chains)
    assert abs(sum(chain["mu"].mean() for chain in chains) / 4 - 2) < 0.15
    assert all((chain["twice"] == 2 * chain["mu"]).all() for chain in chains)
