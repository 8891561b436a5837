"""nutpie, as it is, with libraries of ulam."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bridgestan_libraries import WAYS, library_for

from ulam.tools.cmdstan.home import write_home

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


def test_compiles_by_a_home(tmp_path: Path) -> None:
    """nutpie's own way to a library: bridgestan's `make`, which a home has."""
    environment = {**os.environ, **write_home(tmp_path / "home")}
    script = f"""if True:
        import bridgestan, nutpie
        compiled = nutpie.compile_stan_model(code={PROGRAM!r}, extra_stanc_args=["--O1"])
        fit = nutpie.sample(compiled.with_data(**{DATA!r}), chains=2, draws=300, tune=300, seed=3, progress_bar=False)
        print(abs(float(fit.posterior["mu"].mean()) - 2) < 0.2)
        open("small.stan", "w").write("parameters {{ real x; }} model {{ x ~ std_normal(); }}")
        print(bridgestan.StanModel("small.stan").name())
        open("small.stan", "w").write("parameters {{ real x }}")
        try:
            bridgestan.StanModel("small.stan")
        except RuntimeError as error:
            print("Syntax error in " in str(error), "Traceback" in str(error))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["True", "small_model", "True False"]


@pytest.mark.parametrize("way", WAYS)
def test_says_what_is_wrong(way: str, tmp_path: Path) -> None:
    path = library_for(way, PROGRAM, DATA, tmp_path)
    compiled = compile_stan.CompiledStanModel(
        code=PROGRAM, library=compile_stan._lib.StanLibrary(path), dims={}, _coords={}, model=None, data=None
    )
    with pytest.raises(Exception, match="variable 'y' "):
        compiled.with_data(N=5)
