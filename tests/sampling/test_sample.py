"""`StanModel.sample`: options, initial values, jobs, what ends a run early, errors of the program, files."""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import ArgumentError, SamplingWarning
from ulam.runtime.sampling.chain import ChainProgress, quantities_rng
from ulam.runtime.sampling.chain_csv import chain_path, read_chain
from ulam.runtime.sampling.sample import _kept_chains
from ulam.runtime.sampling.settings import SamplingSettings
from ulam.tools.commands import COMMANDS
from ulam.tools.options import OPTIONS

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; array[2] simplex[3] s; }
transformed parameters {
  real twice = 2 * mu;
  array[2] matrix[2, 3] m = { rep_matrix(mu, 2, 3), rep_matrix(sigma, 2, 3) };
}
model { y ~ normal(mu, sigma); mu ~ normal(0, 2); sigma ~ exponential(1); }
generated quantities { real again = normal_rng(mu, sigma); int k = poisson_rng(3); }
"""
DATA = {"N": 5, "y": [0.3, 1.2, -0.4, 0.8, 2.0]}


@pytest.fixture
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, DATA)


def short(model: ulam.StanModel, **options: Any) -> Any:
    return model.sample(**{"chains": 2, "warmup": 50, "draws": 40, "progress": False} | options)


# ------------------------------------------------------------------------------------------------ options


def test_defaults_are_the_same_in_the_method_the_settings_and_the_command() -> None:
    method = {name: entry.default for name, entry in inspect.signature(ulam.StanModel.sample).parameters.items()}
    settings = asdict(SamplingSettings())
    compared = ["chains", "warmup", "draws", "seed", "thin", "target_accept", "max_depth", "metric", "step_size"]
    compared += ["step_size_jitter", "save_warmup", "keep", "sampler"]
    assert {name: method[name] for name in compared} == {name: settings[name] for name in compared}
    of_command = {name: OPTIONS[name].default_in("sample") for name in COMMANDS["sample"].options if name in compared}
    assert of_command == {name: method[name] for name in of_command} and len(of_command) > 10


# ------------------------------------------------------------------------------------------------ draws


def test_draws_are_what_they_stand_for(model: ulam.StanModel) -> None:
    fit = short(model)
    assert fit.values.shape == (2, 40, model.param_num(include_tp=True, include_gq=True))
    assert fit["s"].shape == (2, 40, 2, 3) and fit["m"].shape == (2, 40, 2, 2, 3)
    for chain in range(2):
        for draw in (0, 7, 39):
            point = fit.unconstrained[chain, draw]
            rng = quantities_rng(fit.settings.seed, chain + 1, draw)
            values = model.param_constrain(point, include_tp=True, include_gq=True, rng=rng)
            assert (fit.values[chain, draw] == values).all()
            assert fit.stats["lp"][chain, draw] == model.log_density(point)
    assert (fit["twice"] == 2 * fit["mu"]).all() and not (fit["mu"][0] == fit["mu"][1]).any()
    assert fit.stats["divergent"].dtype == bool and fit.stats["treedepth"].dtype == np.int64
    assert not fit.notes and not fit.ended


@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
def test_the_same_bits_however_chains_run(model: ulam.StanModel, sampler: str) -> None:
    options = {"chains": 16, "seed": 5, "sampler": sampler, "integration_time": 1.0 if sampler == "hmc" else None}
    first = short(model, jobs=1, **options)
    with ThreadPoolExecutor(3) as pool:
        for other in (
            short(model, jobs=16, **options),
            short(model, executor=pool, **options),
            short(model, jobs=2, progress=lambda record: None, **options),
        ):
            assert other.values.tobytes() == first.values.tobytes()
            assert other.unconstrained.tobytes() == first.unconstrained.tobytes()
            assert all((other.stats[name] == first.stats[name]).all() for name in first.stats)
    assert short(model, jobs=1, **options | {"seed": 6}).values.tobytes() != first.values.tobytes()


def test_other_processes(model: ulam.StanModel) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        seen: list[ChainProgress] = []
        fit = short(model, executor=pool, save_warmup=True, progress=seen.append)
    assert [(record.chain, record.phase) for record in seen] == [(1, "done"), (2, "done")]
    here = short(model, save_warmup=True)
    assert fit.values.tobytes() == here.values.tobytes()
    assert fit.warmup.values.tobytes() == here.warmup.values.tobytes()
    assert (fit.metric == here.metric).all() and (fit.step_size == here.step_size).all()


def test_thinning_and_warmup(model: ulam.StanModel) -> None:
    """Draws do not depend on what is kept."""
    whole = short(model, save_warmup=True)
    assert whole.warmup.values.shape[:2] == (2, 50)
    thin = short(model, thin=3, save_warmup=True)
    assert (thin.values == whole.values[:, ::3]).all() and (thin.warmup.values == whole.warmup.values[:, ::3]).all()
    assert (short(model).values == whole.values).all()
    assert not (whole.warmup["again"][:, :40] == whole["again"]).any()


def test_models_without_parameters() -> None:
    fit = ulam.StanModel("generated quantities { real x = std_normal_rng(); }").sample(draws=200, progress=False)
    assert fit.unconstrained.shape == (4, 200, 0) and abs(fit["x"].mean()) < 5 / np.sqrt(800)
    assert len(np.unique(fit["x"])) == 800 and (fit.stats["lp"] == 0).all()
    constant = ulam.StanModel("transformed data { real x = 3; }").sample(draws=5, progress=False)
    assert constant.values.shape == (4, 5, 0)


# ------------------------------------------------------------------------------------------------ options


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"chains": 0}, "chains must be a positive int, found 0"),
    ({"draws": -1}, "draws must be an int that is not negative"),
    ({"warmup": 2.5}, "warmup must be an int"),
    ({"seed": -1}, "seed must be"),
    ({"thin": 0}, "thin must be"),
    ({"target_accept": 1.0}, "target_accept must be a number between 0 and 1, found 1.0"),
    ({"max_depth": 0}, "max_depth must be an int from 1"),
    ({"step_size": -0.1}, "step_size must be a positive number"),
    ({"step_size": [0.1, 0.2, 0.3]}, "one for each of 2 chains"),
    ({"step_size_jitter": 1.5}, "step_size_jitter must be a number from 0 to 1"),
    ({"integration_time": 1.0}, "sampler='nuts' has no integration_time; 'hmc' has"),
    ({"sampler": "hmc", "max_depth": 5}, "sampler='hmc' has no max_depth; 'nuts' and 'nutpie' have"),
    ({"sampler": "gibbs"}, "sampler must be one of 'nuts', 'hmc', 'nutpie', 'fixed', found 'gibbs'"),
    ({"adapt": {"delta": 0.8}}, "adapt has no setting 'delta'; it has gamma, kappa"),
    ({"adapt": {"window": 0}}, "adapt['window'] must be a positive int"),
    ({"adapt": 3}, "adapt must be a mapping"),
    ({"metric": "full"}, "metric must be 'unit', 'diag', 'dense', an array, a fit or a file"),
    ({"metric": "low_rank"}, "sampler='nuts' has no metric 'low_rank'; it has 'unit', 'diag', 'dense'"),
    ({"sampler": "nutpie", "metric": "dense"}, "sampler='nutpie' has no metric 'dense'; it has 'diag', 'low_rank'"),
    ({"sampler": "nutpie", "adapt": {"gamma": 0.1}}, "sampler='nutpie' has no adapt"),
    ({"sampler": "nutpie", "metric": np.ones(6)}, "sampler='nutpie' takes no metric to begin with"),
    ({"metric": [1.0, 2.0]}, "inverse metric of shape (6,) or (6, 6)"),
    ({"metric": [1.0, 2.0, -1.0, 1.0, 1.0, 1.0]}, "metric must be finite and positive definite"),
    ({"metric": [np.nan] * 6}, "metric must be finite"),
    ({"init": [{"mu": 1}] * 3}, "each of 2 chains, found 3"),
    ({"init": np.zeros((3, 6))}, "each of 2 chains, found 3"),
    ({"init": np.zeros(5)}, "init must be"),
    ({"keep": False}, "keep=False keeps no draws: give output"),
    ({"jobs": 0}, "jobs must be a positive int"),
    ({"jobs": 2, "executor": ThreadPoolExecutor(1)}, "jobs is for threads"),
    ({"time_limit": 0}, "time_limit must be"),
]


@pytest.mark.parametrize(("options", "text"), WRONG, ids=[text for _, text in WRONG])
def test_wrong_options(model: ulam.StanModel, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as error:
        short(model, **options)
    assert text in str(error.value)


def test_initial_values(model: ulam.StanModel, tmp_path: Path) -> None:
    def first(init: Any, **options: Any) -> Any:
        """Where chains begin: steps are tiny."""
        fit = short(model, init=init, warmup=0, draws=1, step_size=1e-12, **options)
        return np.round(fit.unconstrained[:, 0], 6)

    point = np.array([0.5, -0.25, 0.1, 0.2, 0.3, 0.4])
    assert (first(point) == point).all() and (first(list(point)) == point).all()
    assert (first(np.array([point, 2 * point])) == [point, 2 * point]).all()
    assert (first(0) == 0).all()
    drawn = first(0.5)
    assert (np.abs(drawn) <= 0.5).all() and (drawn[0] != drawn[1]).all()
    named = first([{"mu": 3}, {"mu": -2.5}])
    assert named[:, 0].tolist() == [3, -2.5] and named[0, 1] != named[1, 1]
    path = tmp_path / "init.json"
    path.write_text(json.dumps({"mu": 1.25}))
    assert (first(path)[:, 0] == 1.25).all() and (first(str(path))[:, 0] == 1.25).all()
    fit = short(model, chains=3)
    assert (first(fit) == np.round(fit.unconstrained[:2, -1], 6)).all()
    assert (first(fit, chains=4)[3] == np.round(fit.unconstrained[0, -1], 6)).all()
    mode = model.optimize(jacobian=True)
    assert (first(mode) == np.round(mode.unconstrained, 6)).all()
    near = first("pathfinder")
    assert (near[0] != near[1]).any() and np.isfinite(near).all()


def test_metrics(model: ulam.StanModel, tmp_path: Path) -> None:
    fit = short(model, warmup=200, metric="dense")
    assert fit.metric.shape == (2, 6, 6) and np.allclose(fit.metric, fit.metric.swapaxes(1, 2))
    fixed: dict[str, Any] = {"warmup": 0, "draws": 1, "step_size": 0.1}
    again = short(model, metric=fit, **fixed)
    assert again.settings.metric == "dense" and np.allclose(again.metric[0], fit.metric.mean(axis=0), rtol=1e-14)
    each = short(model, metric=fit.metric, **fixed)
    assert (each.metric == fit.metric).all()
    diagonal = np.arange(1.0, 7.0)
    path = tmp_path / "metric.json"
    path.write_text(json.dumps({"inv_metric": diagonal.tolist()}))
    for given in (diagonal, diagonal.tolist(), path, str(path)):
        assert (short(model, metric=given, **fixed).metric == diagonal).all()
    assert short(model, metric="unit", **fixed).metric is None
    path.write_text("{}")
    with pytest.raises(ulam.DataError, match="no 'inv_metric'"):
        short(model, metric=path)


def test_step_sizes(model: ulam.StanModel) -> None:
    fit = short(model, warmup=0, step_size=[0.1, 0.3])
    assert fit.step_size.tolist() == [0.1, 0.3] and (fit.stats["stepsize"] == [[0.1], [0.3]]).all()
    assert short(model, warmup=0, step_size=fit.step_size).values.tobytes() == fit.values.tobytes()
    found = short(model, warmup=0)  # without warmup a size that is accepted
    assert (found.stats["accept_stat"].mean(axis=1) > 0.2).all()


def test_progress(model: ulam.StanModel) -> None:
    seen: list[ChainProgress] = []
    fit = short(model, progress=seen.append)
    for chain in (1, 2):
        own = [record for record in seen if record.chain == chain]
        assert own[-1].phase == "done" and own[-1].iteration == own[-1].iterations == 90
        assert [record.iteration for record in own] == sorted(record.iteration for record in own)
        assert own[-1].step_size == fit.step_size[chain - 1]
        assert own[-1].divergences == fit.stats["divergent"][chain - 1].sum()
        assert own[-1].draws_per_second > 0

    def broken(record: ChainProgress) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        short(model, progress=broken)


# ------------------------------------------------------------------------------------------------ what programs do


def test_rejections_are_counted_by_statement() -> None:
    model = ulam.StanModel(
        """parameters { real x; }
           model {
             if (x > 1.5) reject("too large: ", x);
             x ~ std_normal();
           }"""
    )
    fit = short(model, draws=300, seed=3)
    assert fit["x"].max() <= 1.5 and len(fit.notes) == 1
    note = fit.notes[0]
    assert "were rejected" in note and "too large: 1." in note and "line 3" in note
    assert note.count("line 3") == 1


def test_fatal_errors_end_the_run() -> None:
    model = ulam.StanModel(
        "data { array[2] int k; } parameters { real x; } model { if (x > 1) target += k[3]; x ~ std_normal(); }",
        {"k": [1, 2]},
    )
    with pytest.raises(ulam.FatalError, match="index"):
        short(model, draws=500, init=0)


def test_errors_in_generated_quantities_are_nan() -> None:
    model = ulam.StanModel(
        """parameters { real x; }
           transformed parameters { real y = 2 * x; }
           model { x ~ std_normal(); }
           generated quantities { real a = 1; real z = normal_rng(0, x); }"""
    )
    with pytest.warns(SamplingWarning, match="have NaN") as warned:
        fit = short(model, draws=100, save_warmup=True)
    assert len(warned) == 1
    bad = fit["x"] <= 0
    assert 0 < bad.sum() < 200
    assert (np.isnan(fit["z"]) == bad).all() and (np.isnan(fit["a"]) == bad).all()
    assert (fit["y"] == 2 * fit["x"]).all()
    assert len(fit.notes) == 1 and f"{bad.sum()} of 200 draws have NaN" in fit.notes[0]
    assert "normal_rng" in fit.notes[0] and "line 4" in fit.notes[0]


def test_prints_reach_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    model = ulam.StanModel(
        """parameters { real x; }
           model { x ~ std_normal(); }
           generated quantities { print("x = ", x); }"""
    )
    fit = short(model, draws=10, jobs=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert [float(line.removeprefix("x = ")) for line in lines] == pytest.approx(fit["x"].ravel().tolist(), rel=1e-4)


def test_profiles_have_the_phases() -> None:
    model = ulam.StanModel(
        """parameters { real x; }
           model { profile("density") { x ~ std_normal(); } }
           generated quantities { real y; profile("more") { y = x; } }"""
    )
    fit = short(model)
    assert model.profiler is not None
    found: dict[tuple[str, str], int] = {}
    for row in model.profiler.rows(by_phase=True):  # of several threads
        found[row.name, row.phase] = found.get((row.name, row.phase), 0) + row.passes + row.gradient_passes
    assert found["more", "generated quantities"] == 80
    assert found["density", "sampling"] == fit.stats["n_leapfrog"].sum()
    assert found["density", "warm-up"] > 100


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("statement", ["y ~ normal(m, s);", 'if (s < 0) reject("s is ", s);', 'reject("never ", 1);'])
def test_refused_data_are_told_as_initial_points_are(statement: str, level: int) -> None:
    code = f"data {{ real s; real y; }} parameters {{ real m; }} model {{ {statement} m ~ normal(y, 1); }}"
    model = ulam.StanModel(code, {"s": -1, "y": 1}, opt_level=level)
    with pytest.raises(ulam.Rejection):
        model.log_density([0.0])
    for run in (model.sample, model.optimize):
        with pytest.raises(ulam.InitializationError, match="100 of 100: (normal_lpdf: sigma|s|never) (is )?-?1"):
            run()
    with pytest.raises(ulam.InitializationError, match="100 of 100"), ThreadPoolExecutor(1) as pool:
        model.sample(executor=pool)


def test_no_initial_point() -> None:
    model = ulam.StanModel('parameters { real x; } model { if (x < 5) reject("small"); }')
    with pytest.raises(ulam.InitializationError, match="after 100 attempts") as error:
        short(model, jobs=1)
    assert error.value.reasons[0].count == 100 and "small" in str(error.value)
    explained = error.value.explain()
    assert explained is not None and "small" in str(explained)
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(ulam.InitializationError) as elsewhere,
    ):
        short(model, executor=pool)
    assert str(elsewhere.value.explain()) == str(explained)


# ------------------------------------------------------------------------------------------------ ended early


SLOW = """
data { int N; }
parameters { vector[20] x; }
model { x ~ std_normal(); real s = 0; for (i in 1:N) s += sin(i * x[1]) * 1e-9; target += s; }
"""


# ---------------------------------------------------------------------------------------------- how chains begin


def test_chains_of_one_run_drawn_in_several(model: ulam.StanModel) -> None:
    """Random numbers, those of generated quantities too, follow from the seed and the number of the chain."""
    whole, rest = short(model, chains=3, seed=4), short(model, chains=2, seed=4, first_chain=2)
    np.testing.assert_array_equal(whole.values[1:], rest.values)
    again = model.generate_quantities(rest, seed=4)
    np.testing.assert_array_equal(again["again"], rest["again"])
    moved = model.generate_quantities(rest, seed=4, first_chain=1)
    assert (moved["again"] != rest["again"]).any()


def test_a_warmup_that_adapts_nothing(model: ulam.StanModel) -> None:
    metric = np.linspace(0.5, 1.5, 6)
    fit = short(model, adapt={"engaged": False}, metric=metric, step_size=0.2, save_warmup=True)
    assert (fit.stats["stepsize"] == 0.2).all() and (fit.warmup.stats["stepsize"] == 0.2).all()
    assert (fit.metric == metric).all() and (fit.step_size == 0.2).all()
    assert len(np.unique(fit.warmup.values[0, :, 0])) > 10


def test_fixed_parameters(model: ulam.StanModel) -> None:
    fit = short(model, sampler="fixed")
    assert fit.is_fixed and (fit["mu"] == fit["mu"][:, :1]).all() and fit["mu"][0, 0] != fit["mu"][1, 0]
    assert len(np.unique(fit["again"])) == 80 and not fit.stats["divergent"].any()


def test_metrics_of_each_chain(model: ulam.StanModel) -> None:
    """A square array is dense also where there are as many chains as parameters; a list has one for each chain."""
    still = {"adapt": {"engaged": False}, "step_size": 0.1, "warmup": 1, "draws": 2, "chains": 6}
    dense = np.eye(6) + 0.1
    assert (short(model, metric=dense, **still).metric == dense).all()
    each = [np.full(6, 0.5 + k) for k in range(6)]
    np.testing.assert_array_equal(short(model, metric=each, **still).metric, each)
    with pytest.raises(ArgumentError, match="one for each of 6 chains, found 1"):
        short(model, metric=each[:1], **still)
    with pytest.raises(ArgumentError, match="diagonal for all chains, or dense"):
        short(model, metric=[*each[:5], dense], **still)


@pytest.fixture
def slow() -> ulam.StanModel:
    model = ulam.StanModel(SLOW, {"N": 3000})
    model.sample(chains=1, warmup=0, draws=1, step_size=0.1, progress=False)  # compiles
    return model


@pytest.fixture
def interrupt_after() -> Iterator[Any]:
    timers: list[threading.Timer] = []

    def begin(seconds: float) -> None:
        timers.append(threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield begin
    for timer in timers:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize("jobs", [1, 4])
def test_interrupts_keep_draws(slow: ulam.StanModel, interrupt_after: Any, jobs: int) -> None:
    whole = slow.sample(chains=2, warmup=10, draws=30, seed=9, progress=False)
    interrupt_after(0.7)
    began = time.monotonic()
    fit = slow.sample(chains=4, warmup=10, draws=10**6, seed=9, jobs=jobs, progress=False)
    assert time.monotonic() - began < 20
    assert fit.ended == "interrupt" and 0 < fit.n_draws < 10**6 and fit.notes[0].startswith("Interrupted: ")
    assert np.isfinite(fit.values).all()
    if jobs == 4 and fit.n_chains == 4:
        count = min(30, fit.n_draws)
        assert (fit.values[:2, :count] == whole.values[:, :count]).all()
    assert short(slow, warmup=0, draws=2, step_size=0.1).n_draws == 2  # the model can be used on


def test_interrupt_before_there_are_draws(slow: ulam.StanModel, interrupt_after: Any) -> None:
    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        slow.sample(warmup=10**6, draws=10, progress=False)


def test_time_limits(slow: ulam.StanModel) -> None:
    fit = slow.sample(warmup=10, draws=10**6, jobs=4, time_limit=0.7, progress=False)
    assert fit.ended == "time limit" and fit.n_draws > 0 and fit.notes[0].startswith("The time limit was reached: ")
    with pytest.raises(ulam.TimeLimit):
        slow.sample(warmup=10**6, draws=10, time_limit=0.3, progress=False)
    assert threading.active_count() < 20


def test_kept_chains() -> None:
    """Of chains of different lengths those that have most draws together."""
    assert _kept_chains([5, 5, 5], 5) == [0, 1, 2]
    assert _kept_chains([5, 0, 4], 5) == [0, 2]
    assert _kept_chains([100, 3, 0], 100) == [0]
    assert _kept_chains([7, 6, 100, 6], 100) == [2]
    assert _kept_chains([60, 100, 50, 55], 100) == [0, 1, 2, 3]
    assert _kept_chains([0, 0], 5) == []


# ------------------------------------------------------------------------------------------------ files


def test_files(model: ulam.StanModel, tmp_path: Path) -> None:
    path = tmp_path / "draws.csv"
    counted: dict[int, int] = {}

    def look(record: ChainProgress) -> None:
        """What is counted is in the file."""
        rows = [line for line in chain_path(path, record.chain, 2).read_text().splitlines() if line[:1] != "#"]
        drawn = record.iteration  # of warmup, too, which is saved
        assert len(rows) - 1 == drawn
        counted[record.chain] = drawn

    fit = short(model, output=path, save_warmup=True, progress=look)
    assert counted == {1: 90, 2: 90}
    for chain in (1, 2):
        file = read_chain(chain_path(path, chain, 2))
        assert file.is_whole and (file.draws[:, 7:] == fit.values[chain - 1]).all()
        assert (file.warmup[:, 7:] == fit.warmup.values[chain - 1]).all()
        assert (file.draws[:, 0] == fit.stats["lp"][chain - 1]).all()
        assert file.step_size == fit.step_size[chain - 1] and (file.metric == fit.metric[chain - 1]).all()
    streamed = short(model, output=path, keep=False)
    assert streamed.values.shape == (2, 0, fit.values.shape[2])
    assert (read_chain(chain_path(path, 1, 2)).draws[:, 7:] == fit.values[0]).all()
    with pytest.raises(OSError, match="nowhere"):
        short(model, output=tmp_path / "nowhere" / "draws.csv")


KILLED = """
import sys
import ulam

model = ulam.StanModel("parameters { vector[3] x; } model { x ~ std_normal(); }")
def tell(record): print(record.chain, record.iteration, flush=True)
model.sample(chains=2, warmup=0, step_size=0.1, draws=10**7, progress=tell, output=sys.argv[1], keep=False)
"""


@pytest.mark.ordinary_runtime("draws take longer than it waits for them")
def test_killed_processes_leave_what_was_counted(tmp_path: Path) -> None:
    path, counted = tmp_path / "draws.csv", {1: 0, 2: 0}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(7):
        chain, drawn = map(int, process.stdout.readline().split())
        counted[chain] = drawn
    process.kill()
    for row in process.communicate()[0].splitlines(keepends=True):
        if row.endswith("\n"):
            chain, drawn = map(int, row.split())
            counted[chain] = drawn
    for chain, drawn in counted.items():
        file = read_chain(chain_path(path, chain, 2))
        assert len(file.draws) >= drawn and not file.is_whole and np.isfinite(file.draws).all()
    assert sum(counted.values()) >= 7000


def test_full_disk_is_one_error(model: ulam.StanModel) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no full disk")
    with pytest.raises(OSError) as error:
        model.sample(chains=1, warmup=0, draws=5, step_size=0.1, output="/dev/full", progress=False)
    assert "/dev/full" in str(error.value)
