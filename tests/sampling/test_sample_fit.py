"""The result of a run: draws by name, summary, diagnosis, other packages' forms, CmdStan's files."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import pickle
import subprocess
import sys
import tracemalloc
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime import results
from ulam.runtime.sampling import draw_statistics
from ulam.runtime.sampling.chain_csv import read_chain
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.settings import SamplingSettings

PROGRAM = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> s; array[2] simplex[3] q; }
transformed parameters {
  matrix[2, 3] m = rep_matrix(mu, 2, 3);
  tuple(real, tuple(vector[2], real)) t = (mu, (rep_vector(s, 2), 1));
}
model { y ~ normal(mu, s); }
generated quantities {
  array[N] real y_rep = normal_rng(rep_vector(mu, N), s);
  vector[N] log_lik;
  for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | mu, s);
  array[2, 3] int k;
  for (i in 1:2) for (j in 1:3) k[i, j] = 10 * i + j;
  vector[0] nothing;
}
"""
DATA = {"N": 3, "y": [1.0, 2.5, 3.0]}


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, data=DATA, opt_level=0)


@pytest.fixture(scope="module")
def fit(model: ulam.StanModel) -> SampleFit:
    return model.sample(warmup=300, draws=200, save_warmup=True, progress=False)


def changed(fit: SampleFit, statistics: Any = None, values: Any = None, **settings: Any) -> SampleFit:
    """The fit with other numbers."""
    values = fit.values if values is None else values
    return SampleFit(
        fit.model, fit.unconstrained, values, {**fit.stats, **(statistics or {})}, None,
        fit.step_size, fit.metric, dataclasses.replace(fit.settings, **settings), fit.seconds, fit.notes,
    )  # fmt: skip


# ---------------------------------------------------------------- draws


def test_draws_by_name(fit: SampleFit) -> None:
    """In the variables' own shapes, without a copy."""
    column = {name: k for k, name in enumerate(fit.names)}
    assert fit["q"].shape == (4, 200, 2, 3) and fit["mu"].shape == (4, 200) and fit["nothing"].shape == (4, 200, 0)
    np.testing.assert_array_equal(fit["q"][..., 1, 2], fit.values[..., column["q.2.3"]])
    np.testing.assert_allclose(fit["q"].sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_array_equal(fit["k"][3, 7], [[11, 12, 13], [21, 22, 23]])
    first, (second, third) = fit["t"]
    np.testing.assert_array_equal(first, fit["mu"])
    assert second.shape == (4, 200, 2) and third.shape == (4, 200) and fit["t:2:1"].shape == second.shape
    assert all(np.shares_memory(fit[name], fit.values) for name in ("mu", "q", "m", "t:1", "log_lik"))
    assert "t" in fit and "q" in fit and "x" not in fit
    with pytest.raises(KeyError, match="'x'; the model has mu, s, q"):
        fit["x"]
    assert fit.warmup is not None and fit.warmup["q"].shape == (4, 300, 2, 3)
    assert fit.warmup.stats["divergent"].shape == (4, 300) and fit.warmup.unconstrained.shape == (4, 300, 6)


def test_pickled(fit: SampleFit) -> None:
    """With its model, and without the views by name."""
    assert fit["mu"].shape
    text = pickle.dumps(fit)
    whole = fit.values.nbytes + fit.unconstrained.nbytes
    assert len(text) < 2.5 * 1.6 * whole  # with those of the warmup
    found = pickle.loads(text)
    np.testing.assert_array_equal(found["q"], fit["q"])
    assert found.model.param_names() == fit.model.param_names() and str(found) == str(fit)


def test_what_a_run_begins_with(model: ulam.StanModel, fit: SampleFit) -> None:
    more = model.sample(
        warmup=0, draws=20, init=fit, metric=fit, step_size=fit.step_size, progress=False, chains=fit.n_chains
    )
    np.testing.assert_array_equal(more.step_size, fit.step_size)
    assert more.metric is not None and more.metric.shape == (4, 6) and more.warmup is None


# ---------------------------------------------------------------- summary


def test_summary(fit: SampleFit) -> None:
    table = fit.summary()
    assert list(table)[:5] == ["lp__", "mu", "s", "q[1,1]", "q[2,1]"] and len(table) == len(fit.names) + 1
    q = fit["q"][..., 1, 0]
    row = table["q[2,1]"]
    assert row == table["q.2.1"] and list(row) == table.columns
    expected = {
        "mean": q.mean(), "mcse": draw_statistics.mcse_mean(q), "sd": q.std(), "mad": draw_statistics.mad(q),
        "5%": np.quantile(q, 0.05), "50%": np.median(q), "95%": np.quantile(q, 0.95),
        "ess_bulk": draw_statistics.ess_bulk(q), "ess_tail": draw_statistics.ess_tail(q),
        "r_hat": draw_statistics.rhat(q),
    }  # fmt: skip
    assert row == pytest.approx(expected, rel=1e-12)
    assert table["lp__"]["mean"] == pytest.approx(fit.stats["lp"].mean(), rel=1e-12)
    assert table.column("r_hat")[4] == row["r_hat"] and fit.summary() is table
    assert np.isnan(table["k[1,1]"]["r_hat"]) and table["k[1,1]"]["ess_bulk"] == 800  # constant
    with pytest.raises(KeyError, match=r"'x'; the table has lp__, mu, s, .* and \d+ more"):
        table["x"]
    with pytest.raises(KeyError, match="'rhat'; the columns are mean, mcse"):
        table.column("rhat")


def test_parts_of_a_summary(fit: SampleFit) -> None:
    table = fit.summary(["s", "q"], quantiles=(0.025, 0.5), errors=True)
    assert list(table) == ["s", *(f"q[{i},{j}]" for j in (1, 2, 3) for i in (1, 2))]
    assert table.columns[4:] == [
        "2.5%", "50%", "ess_bulk", "ess_tail", "r_hat", "mcse_sd", "mcse_2.5%", "mcse_50%",
    ]  # fmt: skip
    assert table["s"]["mcse_2.5%"] == pytest.approx(draw_statistics.mcse_quantile(fit["s"], 0.025), rel=1e-12)
    assert len(fit.summary([])) == 0
    with pytest.raises(KeyError, match="'x'; the model has mu"):
        fit.summary(["x"])
    with pytest.raises(ValueError, match=r"probabilities from 0 to 1, found 5"):
        fit.summary(quantiles=(5,))


def test_blocks_of_a_summary(fit: SampleFit, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many columns are worked on at a time."""
    whole = fit.summary(["q", "m", "k"]).table
    for size in (1, 1700, 5000):
        monkeypatch.setattr("ulam.runtime.sampling.summary._BLOCK", size)
        np.testing.assert_allclose(fit.summary(["q", "m", "k"]).table, whole, rtol=1e-12)


def test_memory_of_a_summary(fit: SampleFit, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes that of a few columns, not of all of them, and access by name takes none."""
    monkeypatch.setattr("ulam.runtime.sampling.summary._BLOCK", 1)
    count = 20_000
    many = SampleFit(
        fit.model, np.zeros((4, count, 6)), np.random.default_rng(2).normal(size=(4, count, len(fit.names))),
        {"lp": np.zeros((4, count))}, None, fit.step_size, fit.metric, SamplingSettings(draws=count), fit.seconds,
    )  # fmt: skip
    tracemalloc.start()
    try:
        assert many["q"].shape == (4, count, 2, 3) and len(many.draws) > 5
        assert tracemalloc.get_traced_memory()[1] < 100_000
        many.summary(["q", "m", "k"])
        assert tracemalloc.get_traced_memory()[1] < 20 * 4 * count * 8
    finally:
        tracemalloc.stop()


def test_shown(fit: SampleFit, monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(fit)
    assert text.splitlines()[0].split() == ["parameter", *fit.summary().columns]
    assert "\nq[2,3] " in text and "\ndraws               4 x 200, after 300 of warmup" in text
    assert str(fit.diagnose()) in text
    assert repr(fit).startswith("SampleFit(model_model: 4 chains of 200 draws, ") and len(repr(fit)) < 100
    html = fit._repr_html_()
    assert html.count("<table>") == 2 and ">q[2,3]</td>" in html
    monkeypatch.setattr(results, "SHOWN_ROWS", 3)
    file = StringIO()
    fit.summary().print(3, file)
    assert file.getvalue().splitlines()[-1].split() == f"... and {len(fit.names) - 2} more".split()
    assert len(fit.summary().rows(None)[1]) == len(fit.names) + 1


def test_narrow_terminals(fit: SampleFit, monkeypatch: pytest.MonkeyPatch) -> None:
    """They show whole numbers of fewer columns."""

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    for width, told in ((200, ""), (80, ": mad"), (20, ": mcse, mad, 50%, ess_tail)")):
        monkeypatch.setenv("COLUMNS", str(width))
        file = Terminal()
        fit.summary(["mu"]).print(None, file)
        text = file.getvalue()
        assert ("not shown" in text, "mad" in text.splitlines()[1]) == (width < 200, width == 200)
        assert f"(not shown for want of width{told}" in text or not told
        assert width < 80 or "…" not in text


def test_json(fit: SampleFit, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    record = json.loads(fit.to_json(path))
    assert record == json.loads(path.read_text())
    assert record["schema_version"] == 1 and record["settings"]["warmup"] == 300 and record["ended"] == ""
    assert record["summary"]["mu"]["mean"] == fit.summary()["mu"]["mean"]
    assert record["summary"]["k.1.1"]["r_hat"] == "NaN" and record["diagnosis"]["ok"] == fit.diagnose().ok


# ---------------------------------------------------------------- diagnosis


def problems(fit: SampleFit) -> dict[str, str]:
    return {problem.name: str(problem) for problem in fit.diagnose().problems}


@pytest.fixture(scope="module")
def independent(fit: SampleFit) -> SampleFit:
    """Draws that have no problem."""
    generator = np.random.default_rng(1)
    shape = (4, 500)
    values = generator.normal(size=(*shape, len(fit.names)))
    statistics = {
        "lp": generator.normal(size=shape), "energy": generator.normal(size=shape), "divergent": np.zeros(shape, bool),
        "treedepth": np.full(shape, 3), "n_leapfrog": np.full(shape, 7), "accept_stat": np.full(shape, 0.9),
    }  # fmt: skip
    settings = SamplingSettings(draws=500)
    return SampleFit(
        fit.model, generator.normal(size=(*shape, 6)), values, statistics, None, fit.step_size, fit.metric, settings,
        fit.seconds,
    )  # fmt: skip


def test_no_problem(independent: SampleFit) -> None:
    found = independent.diagnose()
    assert found.ok and not found.problems
    assert str(found) == ("No problems found: divergences, tree depth, E-BFMI, R-hat, effective sample sizes.")
    assert found.to_dict() == {"ok": True, "problems": []} and "No problems" in found._repr_html_()


def test_divergences(independent: SampleFit) -> None:
    divergent = np.zeros((4, 500), bool)
    divergent[1, :5] = True
    text = problems(changed(independent, {"divergent": divergent}))["divergences"]
    assert text.startswith("5 of 2000 draws (0.25%) ended with a divergence") and "target_accept=0.95" in text
    for target, advised in ((0.95, "target_accept=0.99"), (0.995, "nearer to 1")):
        assert advised in problems(changed(independent, {"divergent": divergent}, target_accept=target))["divergences"]


def test_depth(independent: SampleFit) -> None:
    depth = np.full((4, 500), 3)
    depth[0, 0] = 10
    assert problems(changed(independent, {"treedepth": depth}, max_depth=11)) == {}
    text = problems(changed(independent, {"treedepth": depth}))["treedepth"]
    assert "1 of 2000 draws (0.05%)" in text and "1023 gradients" in text and "max_depth to 12" in text


def test_energy(independent: SampleFit) -> None:
    energy = np.array(independent.stats["energy"])
    energy[2] = np.cumsum(energy[2])
    assert ": 0.0" in (text := problems(changed(independent, {"energy": energy}))["ebfmi"]) and "chain 3." in text


def test_rhat_and_sizes(independent: SampleFit) -> None:
    values = independent.values.copy()
    column = independent.names.index("s")
    values[0, :, column] += 3
    values[..., 0] = np.cumsum(values[..., 0], axis=1)
    found = changed(independent, values=values).diagnose()
    by_name = {problem.name: problem for problem in found.problems}
    assert set(by_name) == {"rhat", "ess_bulk", "ess_tail"}
    assert set(by_name["rhat"].elements) == {"mu", "s"} and "R-hat is above 1.01 for" in str(found)
    assert by_name["ess_bulk"].elements[0] in ("mu", "s") and "below 400 (100 for each chain)" in str(found)


def test_many_names(independent: SampleFit) -> None:
    values = np.cumsum(independent.values, axis=1)
    assert f" and {len(independent.names) - 5} more;" in problems(changed(independent, values=values))["rhat"]


def test_draws_that_are_nan(independent: SampleFit) -> None:
    values = independent.values.copy()
    values[1, 2:4, -1] = np.nan
    fit = changed(independent, values=values)
    assert problems(fit)["nan"].startswith("2 of 2000 draws (0.1%) have values that are NaN: k[2,3].")
    assert np.isnan(list(fit.summary()["k[2,3]"].values())).all()


def test_chains_that_never_moved(independent: SampleFit) -> None:
    lp = np.array(independent.stats["lp"])
    lp[3] = 1.5
    assert problems(changed(independent, {"lp": lp}))["stuck"].startswith("1 chain never moved: 4.")


def test_one_chain_and_none(model: ulam.StanModel) -> None:
    one = model.sample(chains=1, warmup=200, draws=300, progress=False)
    assert "chains" in problems(one) and "rhat" not in problems(one)
    none = model.sample(chains=2, warmup=50, draws=0, progress=False)
    assert set(problems(none)) == {"draws"} and "draws" in str(none)


def test_without_parameters() -> None:
    model = ulam.StanModel("generated quantities { real x = normal_rng(0, 1); }", opt_level=0)
    fit = model.sample(draws=500, progress=False)
    assert fit.is_fixed and fit.diagnose().ok and "sampler" not in str(fit)


# ---------------------------------------------------------------- other packages


def test_nothing_is_imported(tmp_path: Path) -> None:
    """Neither sampling, nor summary and diagnosis, load packages that only some of the results need."""
    program = (
        "import sys, ulam; early = set(sys.modules); model = ulam.StanModel('parameters { real x; } model { x ~ "
        "std_normal(); }', opt_level=0); assert 'ulam.runtime.sampling' not in sys.modules, 'at the start'; fit = "
        "model.sample(draws=50, warmup=50); str(fit); fit.to_json(); fit.save(sys.argv[1]); ulam.load(sys.argv[1]);"
        "print([name for name in ('arviz', 'arviz_base', 'pandas', 'xarray', 'scipy', 'rich', 'matplotlib') "
        "if name in sys.modules])"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "fit.ulam"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == "[]"


HAS_ARVIZ = any(importlib.util.find_spec(name) for name in ("arviz_base", "arviz"))


@pytest.mark.skipif(not HAS_ARVIZ, reason="neither arviz-base nor arviz is installed")
@pytest.mark.filterwarnings("ignore")
def test_arviz(fit: SampleFit) -> None:
    data: Any = fit.to_arviz(coords={"school": ["a", "b", "c"]}, dims={"y_rep": ["school"]})
    assert data["posterior"]["q"].shape == (4, 200, 2, 3) and "log_lik" not in data["posterior"]
    assert data["log_likelihood"]["log_lik"].shape == (4, 200, 3)
    assert data["posterior_predictive"]["y_rep"].dims == ("chain", "draw", "school")
    assert set(data["sample_stats"].data_vars) == {
        "lp", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging", "energy", "reached_max_treedepth",
    }  # fmt: skip
    np.testing.assert_array_equal(data["observed_data"]["y"], DATA["y"])
    assert data["constant_data"]["N"].values.item() == 3 and data["warmup_posterior"]["mu"].shape == (4, 300)
    other: Any = fit.to_arviz(posterior_predictive=[], observed_data=["N"], log_likelihood=None)
    assert "y_rep" in other["posterior"] and "log_lik" in other["posterior"] and "y" in other["constant_data"]
    with pytest.raises(KeyError, match="no data z; there are N, y"):
        fit.to_arviz(observed_data=["z"])
    with pytest.raises(KeyError, match="no variable z"):
        fit.to_arviz(posterior_predictive=["z"])


@pytest.mark.filterwarnings("ignore")
def test_leave_one_out(fit: SampleFit) -> None:
    data: Any = fit.to_arviz() if HAS_ARVIZ else pytest.skip("no ArviZ")
    if importlib.util.find_spec("arviz_base") is None:
        arviz: Any = importlib.import_module("arviz")
        found = arviz.loo(data)
    else:
        found = pytest.importorskip("arviz_stats").loo(data)
    assert np.isfinite(getattr(found, "elpd_loo", getattr(found, "elpd", np.nan)))


def test_xarray(fit: SampleFit) -> None:
    pytest.importorskip("xarray")
    data: Any = fit.to_xarray(dims={"q": ["row", "column"]}, coords={"row": ["a", "b"]})
    assert dict(data.sizes) | {"row": 2, "column": 3, "chain": 4, "draw": 200} == dict(data.sizes)
    np.testing.assert_array_equal(data["q"].sel(row="b", chain=2), fit["q"][1, :, 1])


def test_pandas(fit: SampleFit) -> None:
    pytest.importorskip("pandas")
    frame: Any = fit.to_pandas()
    assert list(frame.columns) == ["chain__", "iter__", "draw__", *(f"{name}__" for name in fit.stats), *fit.names]
    assert len(frame) == 800 and frame["chain__"].iloc[-1] == 4 and frame["iter__"].iloc[201] == 2
    np.testing.assert_array_equal(frame["q.2.1"], fit["q"][..., 1, 0].ravel())
    assert fit.summary().to_pandas().loc["q[2,1]", "mean"] == fit.summary()["q[2,1]"]["mean"]


# ---------------------------------------------------------------- CmdStan's files


def test_csv(fit: SampleFit, tmp_path: Path) -> None:
    paths = fit.to_csv(tmp_path / "out.csv")
    assert paths == [tmp_path / f"out_{chain}.csv" for chain in (1, 2, 3, 4)] == sorted(tmp_path.iterdir())
    for chain, path in enumerate(paths):
        found = read_chain(path)
        np.testing.assert_array_equal(found.columns(fit.names), fit.values[chain])
        assert fit.warmup is not None and fit.metric is not None
        np.testing.assert_array_equal(found.warmup[:, -len(fit.names) :], fit.warmup.values[chain])
        np.testing.assert_array_equal(found.columns(["divergent__"])[:, 0], fit.stats["divergent"][chain])
        assert found.step_size == fit.step_size[chain] and found.is_whole
        np.testing.assert_array_equal(found.metric, fit.metric[chain])
        assert found.settings["id"] == str(chain + 1) and found.settings["num_samples"] == "200"
    short = fit.to_csv(tmp_path / "short.csv", digits=4)
    np.testing.assert_allclose(read_chain(short[0]).columns(fit.names), fit.values[0], rtol=1e-3)


@pytest.mark.parametrize("sampler", ["nuts", "hmc", "fixed"])
def test_files_of_a_run_and_of_its_fit(model: ulam.StanModel, tmp_path: Path, sampler: str) -> None:
    """The same rows, columns and settings."""
    options: dict[str, Any] = {"chains": 1, "warmup": 30, "draws": 20, "thin": 2, "progress": False}
    if sampler == "fixed":
        model = ulam.StanModel("generated quantities { real x = normal_rng(0, 1); }", opt_level=0)
    else:
        options |= {"sampler": sampler, "save_warmup": True}
    fit = model.sample(**options, output=tmp_path / "run.csv")
    (path,) = fit.to_csv(tmp_path / "fit.csv")
    one, other = read_chain(tmp_path / "run.csv"), read_chain(path)
    assert one.names == other.names and one.settings | {"file": ""} == other.settings | {"file": ""}
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.warmup, other.warmup)
    np.testing.assert_array_equal(one.metric, other.metric)
    assert len(one.draws) == 10 and one.is_whole and other.is_whole


def test_csv_of_other_readers(fit: SampleFit, tmp_path: Path) -> None:
    cmdstanpy = pytest.importorskip("cmdstanpy")
    found: Any = cmdstanpy.from_csv([str(path) for path in fit.to_csv(tmp_path / "out.csv")])
    np.testing.assert_array_equal(found.stan_variable("q")[:200], fit["q"][0])
    assert found.draws(inc_warmup=True).shape[0] == 500
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
        data: Any = arviz.from_cmdstan([str(tmp_path / f"out_{chain}.csv") for chain in (1, 2, 3, 4)])
    np.testing.assert_array_equal(data.posterior["q"], fit["q"])


def test_csv_of_a_run_that_was_ended(fit: SampleFit, tmp_path: Path) -> None:
    """Its settings are those of the draws there are: cmdstanpy counts them."""
    short = SampleFit(
        fit.model, fit.unconstrained[:, :150], fit.values[:, :150], {k: v[:, :150] for k, v in fit.stats.items()}, None,
        fit.step_size, fit.metric, fit.settings, fit.seconds, ["Interrupted."], "interrupt",
    )  # fmt: skip
    paths = short.to_csv(tmp_path / "out.csv")
    settings = read_chain(paths[0]).settings
    assert (settings["num_samples"], settings["save_warmup"]) == ("150", "false")
    if importlib.util.find_spec("cmdstanpy") is not None:
        cmdstanpy: Any = importlib.import_module("cmdstanpy")
        assert cmdstanpy.from_csv([str(path) for path in paths]).draws().shape[:2] == (150, 4)
