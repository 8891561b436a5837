"""`sample(sampler="nutpie")`: the same interface; nothing of nutpie is loaded but its extension module."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.sampling import nutpie_chain
from ulam.runtime.sampling.chain import quantities_rng
from ulam.runtime.sampling.draw_statistics import mcse_mean

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data { vector[2] sd; }
parameters { vector[2] x; real<lower=0> s; }
transformed parameters { real y = x[1] + x[2]; }
model { x ~ normal(1, sd); s ~ exponential(2); }
generated quantities { real z = normal_rng(x[1], 1); }
"""
has_nutpie = pytest.mark.skipif(importlib.util.find_spec("nutpie") is None, reason="nutpie is not installed")


@pytest.fixture
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, {"sd": [1.0, 20.0]})


@has_nutpie
@pytest.mark.parametrize("metric", ["diag", "low_rank"])
def test_draws(model: ulam.StanModel, metric: str) -> None:
    options: dict[str, Any] = {"sampler": "nutpie", "metric": metric, "seed": 4, "progress": False}
    fit = model.sample(**options)
    assert fit.values.shape == (4, 1000, 5) and fit.metric is None and not fit.notes
    for name, mean in (("x", [1, 1]), ("s", 0.5), ("y", 2), ("z", 1)):
        z = (fit[name].mean(axis=(0, 1)) - mean) / mcse_mean(fit[name])
        assert (np.abs(z) < 5).all(), (name, z)
    for draw in (0, 500):
        point, rng = fit.unconstrained[2, draw], quantities_rng(4, 3, draw)
        values = model.param_constrain(point, include_tp=True, include_gq=True, rng=rng)
        assert (fit.values[2, draw] == values).all()
        assert fit.stats["lp"][2, draw] == pytest.approx(model.log_density(point), rel=1e-12)
    assert 0.6 < fit.stats["accept_stat"].mean() < 1 and (fit.stats["n_leapfrog"] >= 1).all()
    assert model.sample(**options, jobs=1).values.tobytes() == fit.values.tobytes()
    thin = model.sample(**options, thin=4, save_warmup=True)
    assert (thin.values == fit.values[:, ::4]).all()
    assert thin.warmup is not None and thin.warmup.values.shape == (4, 250, 5)


@has_nutpie
@pytest.mark.parametrize("wait", [nutpie_chain._WAIT, 1e-4])  # pyright: ignore[reportPrivateUsage]
def test_what_ends_a_run(model: ulam.StanModel, wait: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a chain is looked at meanwhile."""
    monkeypatch.setattr(nutpie_chain, "_WAIT", wait)
    fit = model.sample(sampler="nutpie", warmup=100, draws=10**7, jobs=4, time_limit=0.7, progress=False)
    assert fit.ended == "time limit" and fit.n_draws > 0 and np.isfinite(fit.values).all()
    wrong = ulam.StanModel(
        "data { array[2] int k; } parameters { real x; } model { if (x > 1) target += k[3]; x ~ std_normal(); }",
        {"k": [1, 2]},
    )
    with pytest.raises(ulam.FatalError, match="index 3"):
        wrong.sample(sampler="nutpie", init=0.5, progress=False)
    refused = ulam.StanModel('parameters { real x; } model { if (x > 1) reject("far"); x ~ std_normal(); }')
    assert refused.sample(sampler="nutpie", progress=False)["x"].max() <= 1


@has_nutpie
def test_only_the_extension_module_is_loaded() -> None:
    program = """
import sys, ulam
fit = ulam.StanModel("parameters { real x; } model { x ~ std_normal(); }").sample(sampler="nutpie", progress=False)
assert fit["x"].shape == (4, 1000)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"arviz", "pandas", "pyarrow", "xarray", "zarr"}))
print("nutpie" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[:2] == ["[]", "False"]


def test_not_installed(model: ulam.StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "nutpie._lib", raising=False)
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nutpie" else real(name))
    with pytest.raises(ValueError, match=r"pip install 'ulam\[nutpie\]'"):
        model.sample(sampler="nutpie", progress=False)
