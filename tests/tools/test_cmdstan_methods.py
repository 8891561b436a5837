"""CmdStan's methods by its command line: one run of each on a small model, its files read again, and how runs end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime import cmdstan_csv
from ulam.runtime.sampling.chain_csv import read_chain
from ulam.tools.cmdstan.command import run
from ulam.tools.ulam_main import main

pytestmark = pytest.mark.usefixtures("quick_code")

Capture = pytest.CaptureFixture[str]

MODEL = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 10); sigma ~ exponential(1); y ~ normal(mu, sigma); }
generated quantities { array[2] real z = normal_rng([mu, mu], sigma); }
"""
DATA = {"N": 5, "y": [1.0, 2.0, 1.5, 0.5, 2.5]}
NAMES = ["mu", "sigma", "z.1", "z.2"]
STATISTICS = ["lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__", "energy__"]
SHORT = ["num_samples=30", "num_warmup=40"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that runs are in, with a program and its data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STAN_NUM_THREADS", raising=False)
    (tmp_path / "m.stan").write_text(MODEL)
    (tmp_path / "d.json").write_text(json.dumps(DATA))
    return tmp_path


def cmdstan(*words: str, status: int = 0, model: str = "m.stan", data: bool = True) -> None:
    """Runs the model; the settings that all runs here have come first."""
    common = ["random", "seed=3", *(["data", "file=d.json"] if data else [])]
    assert run(model, [*common, *words]) == status


def model() -> ulam.StanModel:
    return ulam.StanModel("m.stan", "d.json", seed=3)


def test_sample(capsys: Capture) -> None:
    """Two chains in one process: files, what they say, the console, the metric, the settings, the profile."""
    words = ["num_chains=2", "save_warmup=1", "thin=2", "adapt", "save_metric=1", "delta=0.9"]
    cmdstan("sample", *SHORT, *words, "output", "save_cmdstan_config=1", "refresh=20", "id=4")
    assert not capsys.readouterr().err
    cmdstan("sample", *SHORT, *words, "id=4", "num_threads=2", "output", "refresh=20")
    out = capsys.readouterr().out
    assert out.startswith("method = sample (Default)\n  sample\n    num_samples = 30\n")
    told = [line for line in out.splitlines() if line.startswith("Chain [5]")]
    assert told == [
        f"Chain [5] Iteration: {k:>2} / 70 [{100 * k // 70:>3}%]  ({'Warmup' if k <= 40 else 'Sampling'})"
        for k in (1, 20, 40, 41, 60, 70)
    ]
    assert out.count(" Elapsed Time: ") == 2
    for chain in (4, 5):
        file = read_chain(f"output_{chain}.csv")
        assert file.names == [*STATISTICS, *NAMES] and (len(file.warmup), len(file.draws)) == (20, 15)
        assert file.settings["delta"] == "0.9" and file.settings["id"] == "4" and file.settings["model"] == "m_model"
        metric = json.loads(Path(f"output_metric_{chain}.json").read_text())
        assert metric == {
            "stepsize": file.step_size, "metric_type": "diag_e", "inv_metric": np.asarray(file.metric).tolist()
        }  # fmt: skip
    fit = model().sample(
        chains=2, warmup=40, draws=30, thin=2, seed=3, target_accept=0.9, first_chain=4, step_size=1.0, progress=False
    )
    np.testing.assert_array_equal(read_chain("output_5.csv").draws[:, -4:], fit.values[1])
    assert json.loads(Path("output_config.json").read_text())["method"]["sample"]["adapt"]["delta"] == 0.9
    assert not Path("profile.csv").exists()


def test_sample_as_before(capsys: Capture) -> None:
    """The metric, the step size and the initial values of an earlier run, one for each chain, and no adaptation."""
    for chain, scale in ((1, 0.5), (2, 0.25)):
        Path(f"metric_{chain}.json").write_text(json.dumps({"inv_metric": [scale, 0.1]}))
        Path(f"init_{chain}.json").write_text(json.dumps({"mu": float(chain), "sigma": 1.0}))
    hmc = ["algorithm=hmc", "metric_file=metric.json", "stepsize=0.3"]
    output = ["output", "refresh=0", "diagnostic_file=latent.csv"]
    cmdstan("sample", *SHORT, "num_chains=2", *hmc, "adapt", "engaged=0", "init=init.json", *output)
    for chain, scale in ((1, 0.5), (2, 0.25)):
        file = read_chain(f"output_{chain}.csv")
        assert file.settings["engaged"] == "false" and file.step_size == 0.3
        assert np.asarray(file.metric).tolist() == [scale, 0.1]
        assert set(file.draws[:, 2]) == {0.3}
    out = capsys.readouterr().out
    assert "Iteration" not in out and "init = init.json\n" in out
    latent = read_chain("latent_2.csv")
    assert latent.names == [*STATISTICS, "mu", "sigma", "g_mu", "g_sigma"] and len(latent.draws) == 30
    value, gradient = model().log_density_gradient(latent.draws[-1, -4:-2])
    np.testing.assert_allclose(latent.draws[-1, [0, -2, -1]], [value, *gradient], rtol=1e-12)


@pytest.mark.parametrize("metric", ["unit_e", "dense_e"])
def test_static_engine(metric: str) -> None:
    hmc = ["algorithm=hmc", "engine=static", "int_time=1.5", f"metric={metric}"]
    cmdstan("sample", *SHORT, *hmc, "output", "sig_figs=3")
    file = read_chain("output.csv")
    assert file.names == [*STATISTICS[:3], "int_time__", *STATISTICS[4:], *NAMES]
    assert (file.metric is None) == (metric == "unit_e") and file.settings["int_time"] == "1.5"
    assert all(len(cell.lstrip("-0.").partition("e")[0].replace(".", "")) <= 3 for cell in last_row("output.csv"))


def last_row(path: str) -> list[str]:
    return [line for line in Path(path).read_text().splitlines() if not line.startswith("#")][-1].split(",")


def test_fixed_parameters(capsys: Capture) -> None:
    """Asked for, and where there are none."""
    Path("init.json").write_text(json.dumps({"mu": 1.25, "sigma": 0.5}))
    cmdstan("sample", "num_samples=20", "algorithm=fixed_param", "init=init.json")
    file = read_chain("output.csv")
    assert file.names == ["lp__", "accept_stat__", *NAMES] and file.settings["algorithm"] == "fixed_param"
    assert set(map(tuple, file.columns(NAMES[:2]).round(12))) == {(1.25, 0.5)} and len(set(file.draws[:, -1])) == 20
    assert "Adaptation" not in Path("output.csv").read_text()
    Path("none.stan").write_text("generated quantities { real x = normal_rng(0, 1); }")
    cmdstan("sample", "num_samples=20", model="none.stan", data=False)
    assert read_chain("output.csv").settings["algorithm"] == "fixed_param"
    assert "running fixed_param sampler" in capsys.readouterr().out


@pytest.mark.parametrize("algorithm", ["lbfgs", "bfgs", "newton"])
def test_optimize_and_laplace(algorithm: str, capsys: Capture) -> None:
    cmdstan("optimize", f"algorithm={algorithm}", "jacobian=1", "save_iterations=1", "output", "file=mode.csv")
    mode = cmdstan_csv.read("mode.csv")
    fit = model().optimize(algorithm, jacobian=True, seed=3)
    assert mode.names == ["lp__", "converged__", *NAMES] and mode.settings["algorithm"] == algorithm
    np.testing.assert_array_equal(mode.rows[-1, :4], [fit.log_density, fit.code, fit["mu"], fit["sigma"]])
    assert len(mode.rows) == fit.n_iterations + 1 and "jacobian = true" in Path("mode.csv").read_text()
    out = capsys.readouterr().out
    assert "\n    Iter      log prob " in out and "\nOptimization terminated normally: \n  Convergence detected" in out
    if algorithm == "newton":
        return
    cmdstan("laplace", "mode=mode.csv", "draws=20", "output", "refresh=0", "diagnostic_file=curve.json")
    draws = cmdstan_csv.read("output.csv")
    assert draws.names == ["log_p__", "log_q__", *NAMES] and draws.rows.shape == (20, 6)
    assert np.array(json.loads(Path("curve.json").read_text())["Hessian"]).shape == (2, 2)


def test_pathfinder(capsys: Capture) -> None:
    words = ["num_paths=2", "num_draws=50", "num_psis_draws=30", "save_single_paths=1"]
    cmdstan("pathfinder", *words, "output", "file=p.csv")
    file = cmdstan_csv.read("p.csv")
    assert file.names == ["lp_approx__", "lp__", "path__", *NAMES] and len(file.rows) == 30
    assert [len(cmdstan_csv.read(f"p_path_{k}.csv").rows) for k in (1, 2)] == [50, 50]
    output = ["output", "file=one.csv", "diagnostic_file=d"]
    cmdstan("pathfinder", "num_paths=1", "num_draws=20", "calculate_lp=0", *output)
    one = cmdstan_csv.read("one.csv")
    assert one.names == ["lp_approx__", "lp__", *NAMES] and len(one.rows) == 20 and np.isnan(one.rows[:, 1]).any()
    assert capsys.readouterr().err == "Warning: pathfinder writes no diagnostic_file.\n"


def test_generate_quantities(capsys: Capture) -> None:
    """With seed and number of the chain those of the run are drawn again."""
    cmdstan("sample", *SHORT, "num_chains=2", "thin=2", "save_warmup=1", "id=2", "output", "file=s.csv")
    cmdstan("generate_quantities", "fitted_params=s.csv", "num_chains=2", "id=2", "output", "file=g.csv")
    for chain in (2, 3):
        file = cmdstan_csv.read(f"g_{chain}.csv")
        assert file.names == NAMES[2:] and file.settings["fitted_params"] == "s.csv"
        np.testing.assert_array_equal(file.rows, read_chain(f"s_{chain}.csv").columns(NAMES[2:], with_warmup=True))
    cmdstan("generate_quantities", "fitted_params=s_2.csv", "output", "file=s_2.csv", status=1)
    assert "Error: Filename conflict" in capsys.readouterr().err and len(read_chain("s_2.csv").draws) == 15
    Path("quiet.stan").write_text(MODEL.partition("generated")[0])
    cmdstan("generate_quantities", "fitted_params=s_2.csv", model="quiet.stan", status=1)
    assert "Error: Model doesn't generate any quantities" in capsys.readouterr().err


def test_log_prob(capsys: Capture) -> None:
    points = [[0.5, 0.1], [-1.0, 0.3]]
    Path("u.json").write_text(json.dumps({"params_r": points}))
    cmdstan("log_prob", "unconstrained_params=u.json", "jacobian=0")
    file = cmdstan_csv.read("output.csv")
    assert file.names == ["lp__", "g_mu", "g_sigma"]
    for row, point in zip(file.rows, points, strict=True):
        value, gradient = model().log_density_gradient(point, jacobian=False)
        np.testing.assert_array_equal(row, [value, *gradient])
    Path("c.json").write_text(json.dumps({"mu": 0.5, "sigma": float(np.exp(0.1))}))
    cmdstan("log_prob", "constrained_params=c.json", "jacobian=0")
    np.testing.assert_allclose(cmdstan_csv.read("output.csv").rows[0], file.rows[0])
    cmdstan("log_prob", "constrained_params=c.json", "unconstrained_params=u.json", status=1)
    cmdstan("log_prob", status=1)
    assert capsys.readouterr().err.count("Error: ") == 2


def test_diagnose() -> None:
    """The table is the last of the comments, as clients take it; wrong gradients are status 1."""
    cmdstan("diagnose", "init=1", "output", "file=d.csv")
    lines = [line[2:] for line in Path("d.csv").read_text().split("# \n")[-1].splitlines()]
    assert lines[0].split() == ["param", "idx", "value", "model", "finite", "diff", "error"]
    table = np.array([[float(cell) for cell in line.split()] for line in lines[1:] if line])
    assert table.shape == (2, 5)
    _, gradient = model().log_density_gradient(table[:, 1])
    np.testing.assert_allclose(table[:, 2], gradient, rtol=1e-4)
    np.testing.assert_allclose(table[:, 2], table[:, 3], rtol=1e-4)
    cmdstan("diagnose", "test=gradient", "epsilon=1", "error=1e-9", status=1)


WRONG: dict[str, tuple[list[str], str]] = {
    "data": (["sample", "data", "file=none.json"], "Error: none.json: No such file or directory"),
    "adapt": (["sample", "num_warmup=0"], "Error: The number of warmup samples (num_warmup) must be greater than zero"),
    "init": (["sample", "init=none.json", "data", "file=d.json"], "Error: none.json: No such file"),
    "metric": (["sample", "algorithm=hmc", "metric_file=d.json", "data", "file=d.json"], "Exception: d.json: no 'inv_"),
    "mode": (["laplace", "data", "file=d.json"], "Error: Missing mode argument"),
    "folder": (["optimize", "output", "file=no/o.csv", "data", "file=d.json"], "Error: no/o.csv: "),
    "same": (["optimize", "data", "file=d.json", "output", "file=d.json"], "Error: Filename conflict, data file"),
    "program": (["optimize", "data", "file=d.json", "output", "file=m.stan"], "Error: Filename conflict, program file"),
    "latent": (["sample", "data", "file=d.json", "output", "diagnostic_file=./output.csv"], "Error: Filename conflict"),
    "ragged": (["sample", "algorithm=hmc", "metric_file=r.json", "data", "file=d.json"], "Error: Cannot get inverse m"),
    "values": (["sample", "data", "file=bad.json"], "Exception: bad.json: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str, capsys: Capture) -> None:
    Path("bad.json").write_text('{"N": 2, "y": [1.0]}')
    Path("r.json").write_text('{"inv_metric": [1, [2]]}')
    words, expected = WRONG[case]
    assert run("m.stan", words) == 1
    assert expected in capsys.readouterr().err


def test_missing_values_in_words_of_stan(capsys: Capture) -> None:
    """Clients look for them."""
    Path("c.json").write_text('{"mu": 1}')
    for words, told in (
        (["sample", "data", "file=c.json"], "data initialization; variable name=N; base type=int"),
        (["log_prob", "constrained_params=c.json", "data", "file=d.json"],
         "parameter initialization; variable name=sigma; base type=double"),
    ):  # fmt: skip
        assert run("m.stan", words) == 1
        assert f"Exception: variable does not exist; processing stage={told}\n" in capsys.readouterr().err


def test_r_dump_format() -> None:
    """Data, initial values and a metric in R's format give the run that JSON gives."""
    Path("d.R").write_text("# data\nN <- 5L\n'y' <-\nc(1, 2.0, 15e-1, .5, 2.5)\n")
    Path("init.R").write_text("mu <- 1.25\nsigma <- 0.5")
    Path("metric.R").write_text("inv_metric <- structure(c(0.5, 0.25, 0.25, 2), .Dim = c(2L, 2L))")
    Path("init.json").write_text('{"mu": 1.25, "sigma": 0.5}')
    Path("metric.json").write_text('{"inv_metric": [[0.5, 0.25], [0.25, 2]]}')
    for ending in ("R", "json"):
        hmc = ["algorithm=hmc", "metric=dense_e", f"metric_file=metric.{ending}", f"init=init.{ending}"]
        words = ["sample", *SHORT, *hmc, "data", f"file=d.{ending}", "output", f"file={ending}.csv"]
        cmdstan(*words, data=False)
    np.testing.assert_array_equal(read_chain("R.csv").draws, read_chain("json.csv").draws)


def test_failed_runs(capsys: Capture) -> None:
    """Programs that do not compile, and densities that are nowhere finite."""
    Path("bad.stan").write_text("parameters { real x; } model { x ~ normal(0, 1) }")
    cmdstan("sample", model="bad.stan", data=False, status=1)
    assert capsys.readouterr().err.startswith("Error: the program does not compile:\n")
    Path("never.stan").write_text('parameters { real x; } model { reject("never ", 1); }')
    cmdstan("sample", model="never.stan", data=False, status=1)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("Error: initialization failed")
    assert told[1] == "Exception: never 1 (in 'never.stan', line 1, column 32) (100 of 100)"


def test_seed_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without a seed have others, which their files tell."""
    for file in ("a", "b"):
        assert run("m.stan", ["optimize", "data", "file=d.json", "output", f"file={file}.csv", "refresh=0"]) == 0
        time.sleep(0.002)
    seeds = [cmdstan_csv.read(f"{file}.csv").settings["seed"] for file in ("a", "b")]
    assert seeds[0] != seeds[1] and all(0 <= int(seed) < 1 << 32 for seed in seeds)


def test_threads(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    from ulam.tools.cmdstan.arguments import Arguments
    from ulam.tools.cmdstan.call import MethodCall

    assert MethodCall("m.stan", Arguments()).threads == 1
    monkeypatch.setenv("STAN_NUM_THREADS", "3")
    assert MethodCall("m.stan", Arguments()).threads == 3
    assert MethodCall("m.stan", Arguments({"num_threads": 2})).threads == 2
    assert MethodCall("m.stan", Arguments({"num_threads": -1})).threads == (os.cpu_count() or 1)
    monkeypatch.setenv("STAN_NUM_THREADS", "many")
    cmdstan("sample", status=1)
    assert "Error: STAN_NUM_THREADS must be a positive number or -1, found 'many'" in capsys.readouterr().err


def test_profile() -> None:
    Path("p.stan").write_text('parameters { real x; } model { profile("all") { x ~ normal(0, 1); } }')
    cmdstan("sample", *SHORT, "output", "profile_file=times.csv", model="p.stan", data=False)
    header, row = Path("times.csv").read_text().splitlines()[:2]
    assert header.startswith("name,thread_id,total_time,forward_time,") and row.startswith("all,")


def test_fixed_parameters_without_cmdstan(capsys: Capture) -> None:
    """`ulam sample` has them, too, and a warmup that adapts nothing."""
    words = ["m.stan", "--data", "d.json", "--chains", "1", "--draws", "20", "--no-progress"]
    assert main(["sample", *words, "--sampler", "fixed", "--output", "f.csv"]) == 0
    assert read_chain("f.csv").names == ["lp__", "accept_stat__", *NAMES]
    still = ["--warmup", "10", "--adapt", "engaged=0", "--step-size", "0.25", "--output", "s.csv"]
    assert main(["sample", *words, *still]) == 0
    assert set(read_chain("s.csv").draws[:, 2]) == {0.25} and not capsys.readouterr().err


def test_command(capsys: Capture) -> None:
    assert main(["cmdstan", "m.stan", "optimize", "random", "seed=1", "data", "file=d.json"]) == 0
    assert main(["cmdstan", "m.stan", "optimize", "iter=0"]) == 1
    out, err = capsys.readouterr()
    assert "Optimization terminated normally" in out and '0 is not a valid value for "iter"' in err
    assert main(["cmdstan", "m.stan", "sample", "help"]) == 0


def test_a_reader_that_goes_away() -> None:
    """The draws are all there; the status says that not all was heard."""
    words = ["sample", "num_samples=3000", "num_warmup=50", "data", "file=d.json", "output", "refresh=1"]
    script = "import sys; from ulam.tools.cmdstan.command import run; sys.exit(run('m.stan', sys.argv[1:]))"
    command = [sys.executable, "-c", script, *words]
    process: Any = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == "" and process.wait(60) == 1
    assert len(read_chain("output.csv").draws) == 3000


def test_interrupt_keeps_what_is_there() -> None:
    """SIGINT amid the draws: the file has whole rows and its end, the status is 1."""
    Path("long.stan").write_text("parameters { real x; } model { x ~ normal(0, 1); }")
    words = ["sample", "num_samples=100000000", "num_warmup=20", "output", "refresh=1000"]
    script = "import sys; from ulam.tools.cmdstan.command import run; sys.exit(run('long.stan', sys.argv[1:]))"
    process: Any = subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "(Sampling)" in line:
            process.send_signal(signal.SIGINT)
            break
    process.stdout.read()
    assert process.wait(60) == 1
    file = read_chain("output.csv")
    assert file.is_whole and len(file.draws) > 0 and "Ended by the interrupt" in Path("output.csv").read_text()


def test_the_estimate_is_the_last_line() -> None:
    """Older clients read it there; what else there is to say is a comment before."""
    cmdstan("optimize", "init=1", "output", "file=last.csv")
    lines = Path("last.csv").read_text().splitlines()
    assert not lines[-1].startswith("#") and any("Convergence detected" in line for line in lines[:-1])


def test_columns_of_older_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {}
    for version in ("2.36", "2.37", ""):
        monkeypatch.setenv("ULAM_CMDSTAN_VERSION", version)
        cmdstan("optimize", "init=1", "output", "file=old.csv")
        header, row = [line.split(",") for line in Path("old.csv").read_text().splitlines() if line[0] != "#"]
        headers[version] = header
        assert len(row) == len(header)
    assert headers["2.37"] == headers[""] and "converged__" in headers[""]
    assert headers["2.36"] == [name for name in headers[""] if name != "converged__"]
