"""nutpie, as it is, with libraries of ulam."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bridgestan_libraries import WAYS, library_for

nutpie: Any = pytest.importorskip("nutpie")
compile_stan: Any = pytest.importorskip("nutpie.compile_stan")
pytest.importorskip("stanio")
pytest.importorskip("arviz")

PROGRAM = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; array[2] vector[3] a; }
transformed parameters { real twice = 2 * mu; }
model { y ~ normal(mu, sigma); mu ~ normal(0, 10); sigma ~ exponential(1); for (i in 1:2) a[i] ~ normal(i, 1); }
generated quantities { array[2] real predicted = {normal_rng(mu, sigma), normal_rng(mu, sigma)}; }
"""
DATA = {"N": 5, "y": [1.0, 2.0, 3.0, 2.5, 1.5]}


@pytest.mark.parametrize("way", WAYS)
def test_samples(way: str, tmp_path: Path) -> None:
    path = library_for(way, PROGRAM, DATA, tmp_path)
    compiled = compile_stan.CompiledStanModel(
        code=PROGRAM, library=compile_stan._lib.StanLibrary(path), dims={}, _coords={}, model=None, data=None
    )
    fit = nutpie.sample(
        compiled.with_data(**DATA), chains=4, draws=1000, tune=500, seed=3, progress_bar=False, cores=2
    )
    posterior = fit.posterior
    assert posterior["mu"].shape == (4, 1000) and posterior["a"].shape == (4, 1000, 2, 3)
    assert posterior["predicted"].shape == (4, 1000, 2)
    assert (posterior["twice"] == 2 * posterior["mu"]).all()
    assert abs(float(posterior["mu"].mean()) - 2) < 0.1
    np.testing.assert_allclose(posterior["a"].mean(("chain", "draw")), [[1] * 3, [2] * 3], atol=0.12)


@pytest.mark.parametrize("way", WAYS)
def test_says_what_is_wrong(way: str, tmp_path: Path) -> None:
    path = library_for(way, PROGRAM, DATA, tmp_path)
    compiled = compile_stan.CompiledStanModel(
        code=PROGRAM, library=compile_stan._lib.StanLibrary(path), dims={}, _coords={}, model=None, data=None
    )
    with pytest.raises(Exception, match="variable 'y' "):
        compiled.with_data(N=5)
