"""cmdstanpy, as it is, with a CmdStan home of ours: all that it does with a model."""

from __future__ import annotations

import json
import logging
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.tools.cmdstan.home import write_home

cmdstanpy = pytest.importorskip("cmdstanpy")

PROGRAM = """
data {
  int<lower=1> G, N;
  array[N] int<lower=1, upper=G> group;
  vector[N] y;
}
parameters {
  array[2] real<lower=0> scale;
  matrix[G, 2] z;
  vector[2] m;
}
transformed parameters {
  array[G] vector[2] effect;
  for (g in 1:G) effect[g] = m + scale[1] * z[g]';
}
model {
  scale ~ exponential(1);
  m ~ normal(0, 2);
  to_vector(z) ~ std_normal();
  for (n in 1:N) y[n] ~ normal(sum(effect[group[n]]), scale[2]);
}
generated quantities {
  array[2, N] real replicated;
  array[N] int<lower=0> counts;
  matrix[2, 3] fixed = [[1, 2, 3], [4, 5, 6]];
  tuple(real, array[2] int) both = (square(m[1]), {G, N});
  for (n in 1:N) {
    replicated[1, n] = normal_rng(sum(effect[group[n]]), scale[2]);
    replicated[2, n] = replicated[1, n] + 1;
    counts[n] = poisson_rng(scale[1]);
  }
}
"""
LATER = PROGRAM[: PROGRAM.index("generated quantities")] + (
    "generated quantities { real total = sum(z); real drawn = normal_rng(m[1], 1e-9); }"
)
DRAWN = "data { int n; } generated quantities { array[n] real x; for (k in 1:n) x[k] = uniform_rng(k, k + 1); }"
SIMPLE = "data { real s; } parameters { real a; real<lower=0> b; } model { a ~ normal(2, s); b ~ gamma(3, 2); }"
PARAMETERS = ("scale", "z", "m")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose path has a space, with a cache of its own."""
    folder = tmp_path_factory.mktemp("a home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        for name, value in write_home(folder).items():
            patch.setenv(name, value)
        logging.getLogger("cmdstanpy").setLevel(logging.CRITICAL)
        yield folder


@pytest.fixture(scope="module")
def programs(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in {"groups": PROGRAM, "later": LATER, "drawn": DRAWN, "simple": SIMPLE}.items():
        (folder / f"{name}.stan").write_text(text)
    return folder


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    group = [1 + k % 3 for k in range(24)]
    return {"G": 3, "N": 24, "group": group, "y": (rng.normal(size=24) + np.array(group)).tolist()}


@pytest.fixture(scope="module")
def model(programs: Path) -> Any:
    return cmdstanpy.CmdStanModel(stan_file=programs / "groups.stan")


@pytest.fixture(scope="module")
def simple(programs: Path) -> Any:
    return cmdstanpy.CmdStanModel(stan_file=programs / "simple.stan")


@pytest.fixture(scope="module")
def fit(model: Any, data: dict[str, Any]) -> Any:
    return model.sample(data=data, chains=4, seed=5, iter_warmup=400, iter_sampling=300, show_progress=False)


# ---------------------------------------------------------------- compiling


def test_model(model: Any) -> None:
    info = model.src_info()
    assert info["parameters"]["z"] == {"type": "real", "dimensions": 2}
    assert info["generated quantities"]["both"]["type"][1] == {"type": "int", "dimensions": 1}
    assert model.exe_info()["stan_version_major"] == "2" and model.exe_info()["STAN_THREADS"] == "false"
    assert cmdstanpy.cmdstan_version() >= (2, 40)
    assert model.name == "groups" and "to_vector(z)" in model.code()


def test_stale_executable(programs: Path, home: Path) -> None:
    file = programs / "changed here.stan"
    file.write_text("parameters { real x; } model { x ~ normal(5, 1e-6); }")
    first = cmdstanpy.CmdStanModel(stan_file=file)
    before = Path(first.exe_file).stat().st_mtime_ns
    again = cmdstanpy.CmdStanModel(stan_file=file)
    assert Path(again.exe_file).stat().st_mtime_ns == before
    time.sleep(0.02)
    file.write_text("parameters { real x; } model { x ~ normal(7, 1e-6); }")
    anew = cmdstanpy.CmdStanModel(stan_file=file)
    assert anew.optimize(inits={"x": 6.9}).stan_variable("x") == pytest.approx(7, abs=1e-3)


def test_copied_executable(simple: Any, tmp_path: Path) -> None:
    shutil.copy(simple.exe_file, tmp_path / "elsewhere")
    other = cmdstanpy.CmdStanModel(exe_file=tmp_path / "elsewhere")
    assert other.optimize(data={"s": 1}).stan_variable("a") == pytest.approx(2, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("parameters { real x } model { }", "Syntax error in 'wrong.stan', line 1"),
        ("model { x = 1; }", "Semantic error in 'wrong.stan', line 1, column 9"),
    ],
)
def test_wrong_program(text: str, said: str, home: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.stan").write_text(text)
    with pytest.raises(ValueError, match="Failed to compile") as found:
        cmdstanpy.CmdStanModel(stan_file=tmp_path / "wrong.stan")
    assert said in str(found.value)


def test_options(programs: Path, home: Path, tmp_path: Path) -> None:
    """Include paths, levels and threads; a folder with a space."""
    folder = tmp_path / "some parts"
    folder.mkdir()
    (folder / "part.stan").write_text("x ~ normal(3, 1);")
    (tmp_path / "whole.stan").write_text("parameters { real x; } model {\n#include part.stan\n}")
    made = cmdstanpy.CmdStanModel(
        stan_file=tmp_path / "whole.stan",
        stanc_options={"include-paths": [str(folder)], "O0": True, "warn-pedantic": True},
        cpp_options={"STAN_THREADS": True},
    )
    assert made.exe_info()["STAN_THREADS"] == "true"
    assert made.src_info()["included_files"] == [str(folder / "part.stan")]
    fit = made.sample(chains=2, iter_warmup=100, iter_sampling=50, show_progress=False, threads_per_chain=1)
    assert fit.runset.num_procs == 1 and fit.draws().shape[:2] == (50, 2)


# ---------------------------------------------------------------- sampling


def test_sample(fit: Any, model: Any, data: dict[str, Any], programs: Path) -> None:
    assert fit.draws().shape[:2] == (300, 4) and fit.divergences is not None
    assert fit.stan_variable("effect").shape == (1200, 3, 2)
    assert fit.stan_variable("replicated").shape == (1200, 2, 24)
    assert np.array_equal(fit.stan_variable("fixed")[7], [[1, 2, 3], [4, 5, 6]])
    assert np.allclose(fit.stan_variable("replicated")[:, 1] - fit.stan_variable("replicated")[:, 0], 1)
    both = fit.stan_variable("both")
    assert np.allclose([each[0] for each in both], fit.stan_variable("m")[:, 0] ** 2)
    assert all(np.array_equal(each[1], [3, 24]) for each in both[:5])
    assert fit.step_size.shape == (4,) and fit.inv_metric.shape == (4, 10)
    own = ulam.StanModel(str(programs / "groups.stan"), data=data).sample(seed=9, warmup=400, draws=300, progress=False)
    for name in ("scale", "m"):
        spread = own[name].std(axis=(0, 1))
        assert (np.abs(fit.stan_variable(name).mean(axis=0) - own[name].mean(axis=(0, 1))) < spread / 2).all()


def test_summary(fit: Any) -> None:
    table = fit.summary(percentiles=(10, 50, 90), sig_figs=8)
    columns = ["Mean", "MCSE", "StdDev", "MAD", "10%", "50%", "90%", "ESS_bulk", "ESS_tail", "R_hat"]
    assert list(table.columns) == columns
    draws = fit.stan_variable("z")[:, 0, 1]
    row = table.loc["z[1,2]"]
    assert row["Mean"] == pytest.approx(draws.mean(), abs=1e-6) and row["StdDev"] == pytest.approx(draws.std(ddof=1))
    assert row["10%"] == pytest.approx(np.quantile(draws, 0.1), abs=1e-6)
    names = [name for name in table.index if name.startswith("z[")]
    assert names == ["z[1,1]", "z[1,2]", "z[2,1]", "z[2,2]", "z[3,1]", "z[3,2]"]
    assert "lp__" in table.index and "energy__" not in table.index


def test_diagnose_of_draws(fit: Any) -> None:
    assert "Treedepth satisfactory" in fit.diagnose() and "E-BFMI" in fit.diagnose()


def test_one_chain_is_reproducible(simple: Any) -> None:
    options: dict[str, Any] = {"data": {"s": 1.5}, "seed": 8, "iter_warmup": 200, "show_progress": False}
    together = simple.sample(chains=3, parallel_chains=2, iter_sampling=60, **options)
    alone = simple.sample(chains=1, chain_ids=[2], iter_sampling=60, **options)
    assert np.array_equal(together.draws()[:, 1], alone.draws()[:, 0])


def test_warmup_and_thinning(simple: Any) -> None:
    options: dict[str, Any] = {"data": {"s": 1.5}, "chains": 1, "show_progress": False, "seed": 2}
    fit = simple.sample(iter_warmup=150, iter_sampling=100, thin=5, save_warmup=True, sig_figs=17, **options)
    assert fit.draws().shape[0] == 20 and fit.draws(inc_warmup=True).shape[0] == 50
    assert fit.num_draws_warmup == 30 and fit.thin == 5
    assert not np.array_equal(fit.draws(inc_warmup=True)[:20], fit.draws())


def test_metric_and_inits(simple: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": {"s": 1.5}, "chains": 2, "show_progress": False, "seed": 2}
    first = simple.sample(iter_warmup=300, iter_sampling=50, metric="dense_e", **options)
    assert first.metric_type == "dense_e" and first.inv_metric.shape == (2, 2, 2)
    metric = first.inv_metric[0]
    inits = [{"a": 1.0, "b": 0.5}, {"a": 3.0, "b": 2.5}]
    (tmp_path / "metric.json").write_text(json.dumps({"inv_metric": metric.tolist()}))
    fixed: dict[str, Any] = {"adapt_engaged": False, "step_size": 0.3, "iter_warmup": 0, "iter_sampling": 5}
    for given in (metric, str(tmp_path / "metric.json")):
        second = simple.sample(inv_metric=given, inits=inits, **fixed, **options)
        assert second.metric_type == "dense_e"
        start = second.stan_variable("a")
        assert abs(start[0] - 1) < abs(start[0] - 5) and second.draws().shape[:2] == (5, 2)
    with pytest.raises(RuntimeError) as found:
        simple.sample(inv_metric=np.ones(3), iter_sampling=5, **options)
    assert "inv_metric" in str(found.value)


def test_save_metric_and_config(simple: Any) -> None:
    fit = simple.sample(data={"s": 1.5}, chains=1, iter_warmup=100, iter_sampling=10, show_progress=False, seed=1)
    config = fit.metadata.cmdstan_config
    assert config["method"] == "sample" and config["seed"] == 1 and config["model"] == "simple_model"
    assert set(fit.method_variables()) == {
        "lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__",
    }  # fmt: skip


def test_program_without_parameters(programs: Path) -> None:
    model = cmdstanpy.CmdStanModel(stan_file=programs / "drawn.stan")
    for fixed in (True, False):
        fit = model.sample(data={"n": 3}, chains=2, iter_sampling=40, fixed_param=fixed, show_progress=False, seed=3)
        x = fit.stan_variable("x")
        assert x.shape == (80, 3) and ((x > [1, 2, 3]) & (x < [2, 3, 4])).all() and len(np.unique(x[:, 0])) == 80
    assert "x[3]" in fit.summary().index


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"s": -1}, "normal_lpdf"),
        ({}, "s"),
        ({"s": [1, 2]}, "s"),
        ({"s": "what"}, "s"),
    ],
)
def test_wrong_data(data: dict[str, Any], said: str, simple: Any) -> None:
    with pytest.raises(RuntimeError) as found:
        simple.sample(data=data, chains=1, show_progress=False)
    assert said in str(found.value)


# ---------------------------------------------------------------- other methods


@pytest.mark.parametrize("algorithm", ["lbfgs", "bfgs", "newton"])
@pytest.mark.parametrize("jacobian", [False, True])
def test_optimize(algorithm: str, jacobian: bool, simple: Any) -> None:
    mle = simple.optimize(data={"s": 2.0}, algorithm=algorithm, jacobian=jacobian, seed=4)
    assert mle.converged
    assert mle.stan_variable("a") == pytest.approx(2, abs=1e-3)
    assert mle.stan_variable("b") == pytest.approx(1.5 if jacobian else 1, abs=1e-3)
    assert list(mle.optimized_params_dict)[0] == "lp__"


def test_optimize_iterations(simple: Any) -> None:
    mle = simple.optimize(data={"s": 2.0}, inits={"a": -9.0, "b": 7.0}, save_iterations=True, iter=50, sig_figs=12)
    rows = mle.optimized_iterations_np
    assert rows is not None and len(rows) > 2 and (np.diff(rows[:, 0]) >= -1e-9).all()
    assert mle.stan_variable("a", inc_iterations=True)[0] == pytest.approx(-9)


def test_laplace(simple: Any) -> None:
    mode = simple.optimize(data={"s": 2.0}, jacobian=True, seed=4)
    for given in (None, mode):
        fit = simple.laplace_sample(data={"s": 2.0}, mode=given, draws=400, seed=6)
        assert fit.draws().shape[0] == 400
        assert fit.stan_variable("a").mean() == pytest.approx(2, abs=0.5)
        assert {"log_p__", "log_q__"} <= set(fit.method_variables())


def test_pathfinder_gives_inits(simple: Any) -> None:
    fit = simple.pathfinder(data={"s": 2.0}, num_paths=3, draws=200, seed=6)
    assert fit.draws().shape[0] == 200 and fit.is_resampled
    assert fit.stan_variable("a").mean() == pytest.approx(2, abs=0.6)
    inits = fit.create_inits(seed=1, chains=2)
    assert set(inits[0]) == {"a", "b"}
    sampled = simple.sample(data={"s": 2.0}, chains=2, inits=inits, iter_warmup=100, iter_sampling=20,
                            show_progress=False)  # fmt: skip
    assert sampled.draws().shape[:2] == (20, 2)
    assert not simple.pathfinder(data={"s": 2.0}, num_paths=2, draws=50, psis_resample=False, seed=6).is_resampled


def test_generate_quantities(fit: Any, programs: Path, data: dict[str, Any]) -> None:
    later = cmdstanpy.CmdStanModel(stan_file=programs / "later.stan")
    found = later.generate_quantities(data=data, previous_fit=fit, seed=4)
    assert found.draws().shape[:2] == (300, 4)
    assert np.allclose(found.stan_variable("total"), fit.stan_variable("z").sum(axis=(1, 2)), rtol=1e-4)
    assert np.allclose(found.stan_variable("drawn"), fit.stan_variable("m")[:, 0], atol=1e-4)
    assert found.draws(inc_sample=True).shape[2] > found.draws().shape[2]


def test_log_prob(simple: Any, programs: Path) -> None:
    own = ulam.StanModel(str(programs / "simple.stan"), data={"s": 2.0})
    for jacobian in (True, False):
        found = simple.log_prob({"a": 1.0, "b": 0.5}, data={"s": 2.0}, jacobian=jacobian, sig_figs=14)
        value, gradient = own.log_density_gradient([1.0, np.log(0.5)], jacobian=jacobian)
        assert found.iloc[0, 0] == pytest.approx(value) and np.allclose(found.iloc[0, 1:], gradient)
    with pytest.raises(RuntimeError):
        simple.log_prob({"a": 1.0}, data={"s": 2.0})


def test_diagnose_of_gradients(simple: Any) -> None:
    if not hasattr(simple, "diagnose"):
        pytest.skip("this cmdstanpy has no diagnose")
    found = simple.diagnose(inits={"a": 1.0, "b": 0.5}, data={"s": 2.0})
    assert len(found) == 2 and (found["error"].abs() < 1e-5).all()


def test_no_variational(simple: Any) -> None:
    with pytest.raises(RuntimeError) as found:
        simple.variational(data={"s": 2.0})
    assert "pathfinder" in str(found.value)


# ---------------------------------------------------------------- files


def test_files(fit: Any, tmp_path: Path) -> None:
    again = cmdstanpy.from_csv(fit.runset.csv_files)
    assert np.array_equal(again.draws(), fit.draws())
    xarray = pytest.importorskip("xarray")
    assert isinstance(fit.draws_xr("m"), xarray.Dataset)
    fit.save_csvfiles(str(tmp_path))
    assert len(list(tmp_path.glob("*.csv"))) == 4


# ---------------------------------------------------------------- what the page says, and how long a start takes


def test_page(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of docs/coming-from.md, one after the other."""
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "examples").mkdir()
    for suffix in (".stan", ".json"):
        shutil.copy(root / "examples" / f"linear_regression{suffix}", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    text = (root / "docs" / "coming-from.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks[:2]:
        assert ">>>" not in block
        exec(block, names)
    assert abs(names["slope"].mean() - 3.9) < 0.2
    assert names["value"].iloc[0, 0] == pytest.approx(-159.46, abs=0.01)
    assert names["again"].metric_type == "dense_e"


def cpu_seconds(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_start_of_a_chain(simple: Any, tmp_path: Path) -> None:
    """A chain's process, code from the cache, takes at most three times what `ulam sample` takes."""
    program, data = str(simple.stan_file), '{"s": 2}'
    (tmp_path / "data.json").write_text(data)
    chain = [str(simple.exe_file), "sample", "data", f"file={tmp_path}/data.json", "output", f"file={tmp_path}/o.csv"]
    command = [sys.executable, "-m", "ulam.tools.ulam_main", "sample", program, "--data", data, "--chains", "1"]
    for words in (chain, command):  # what is compiled is in the cache then
        cpu_seconds(words)
    times = [(cpu_seconds(chain), cpu_seconds(command)) for _ in range(3)]
    assert min(chain for chain, _ in times) < 3 * min(command for _, command in times)
