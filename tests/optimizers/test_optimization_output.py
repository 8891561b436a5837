"""What users see of an optimizer: progress, tables, standard errors, JSON, CSV, ArviZ."""

from __future__ import annotations

import importlib.util
import io
import json
import math
import pickle
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import CurvatureError, DataError, OptimizationResult, StanModel
from ulam.runtime import cmdstan_csv
from ulam.runtime.optimizers.line_search import Point
from ulam.runtime.optimizers.progress import HEADER, Progress, progress_line
from ulam.runtime.optimizers.quasi_newton import Iteration
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.results import SCHEMA_VERSION
from ulam.tools import ulam_main

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data { int<lower=0> N; vector[N] y; }
parameters {
  real mu;
  real<lower=0> sigma;
  array[2] vector[3] z;
  matrix[2, 3] m;
  simplex[3] p;
}
transformed parameters { real tau = square(sigma); matrix[3, 2] mt = m'; }
model {
  y ~ normal(mu, sigma);
  for (i in 1:2) z[i] ~ normal(i * [1, 2, 3]', 1);
  for (i in 1:2) m[i] ~ normal(10 * i + [1, 2, 3], 0.5);
  p ~ dirichlet([2, 3, 5]');
}
generated quantities {
  real drawn = normal_rng(mu, sigma);
  int count = 3;
  vector[N] log_lik;
  real twice = 2 * mu;
  for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | mu, sigma);
}
"""
Y = [1.0, 2.5, -0.5, 3.0, 4.5]
MEAN, SCALE = float(np.mean(Y)), float(np.std(Y))


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM, {"N": len(Y), "y": Y})


@pytest.fixture(scope="module")
def fit(model: StanModel) -> OptimizationResult:
    return model.optimize(seed=3, save_iterations=True, tol_rel_obj=0, tol_rel_grad=0)


# ---------------------------------------------------------------- progress


def iteration(number: int, termination: Termination = Termination.RUNNING, note: str = "") -> Iteration:
    point = Point(np.zeros(1), 45.391, np.array([0.000126859]))
    return Iteration(number, point, 0.000296022, 0.9963, 0.9963, note, termination)


def shown(refresh: int, last: int, notes: dict[int, str] | None = None, file: io.StringIO | None = None) -> list[str]:
    """What a run of `last` iterations prints."""
    file = file or io.StringIO()
    progress = Progress(refresh, file)
    progress.begin(-46.4093)
    for number in range(1, last + 1):
        end = Termination.GRADIENT if number == last else Termination.RUNNING
        progress(iteration(number, end, (notes or {}).get(number, "")), number + 2)
    return file.getvalue().splitlines()


def test_line_is_that_of_cmdstan() -> None:
    """From a transcript of CmdStan, whose lines end in two blanks."""
    assert HEADER == "    Iter      log prob        ||dx||      ||grad||       alpha      alpha0  # evals  Notes "
    line = "       9       -45.391   0.000296022   0.000126859      0.9963      0.9963       11   "
    assert progress_line(iteration(9), 11) == line
    assert progress_line(iteration(9, note="LS failed, Hessian reset"), 11) == f"{line[:-1]}LS failed, Hessian reset "


def test_rhythm_is_that_of_cmdstan() -> None:
    """A header before iterations 1, 10, 20; rows for 1, 9, 19, notes and the last."""
    lines = shown(10, 24, {15: "LS failed, Hessian reset"})
    assert lines[0] == "Initial log joint probability = -46.4093"
    assert lines[-2:] == ["Optimization terminated normally: ", f"  {Termination.GRADIENT.text}"]
    found = ["header" if line == HEADER else int(line.split()[0]) for line in lines[1:-2]]
    assert found == ["header", 1, 9, "header", 15, 19, "header", 24]
    failed = io.StringIO()
    Progress(10, failed)(iteration(1, Termination.LINE_SEARCH_FAILED), 3)
    assert "Optimization terminated with error: \n" in failed.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_keeps_rows_and_updates_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("ulam.runtime.optimizers.progress.SECONDS_BETWEEN_UPDATES", 0.0)
    text = "\n".join(shown(10, 24, file=Terminal()))
    assert text.count("log prob") == 1
    assert text.count("\033[?25l") == text.count("\033[?25h") == 1  # the cursor is hidden, and comes back
    kept = [line for line in text.split("\n") if "\033[2m" not in line.rpartition("\r")[2]]
    assert [n for n in range(1, 25) if any(f"{n:>6}      -45.391" in line for line in kept)] == [1, 9, 19, 24]
    assert f"\033[2m{15:>6}      -45.391" in text
    assert max(len(line.split("m")[-1]) for line in text.split("\n")) <= 80


def test_progress_is_closed_by_an_error() -> None:
    terminal = Terminal()
    with pytest.raises(ZeroDivisionError), Progress(1, terminal) as progress:
        progress.begin(0.0)
        raise ZeroDivisionError
    assert terminal.getvalue().count("\033[?25h") == 1


def test_what_the_program_prints_stays_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    with Progress(1, terminal) as progress:
        progress.begin(0.0)
        print("of the program")
    assert capsys.readouterr().out == "of the program\n" and "of the program" not in terminal.getvalue()


def test_results_can_be_pickled(fit: OptimizationResult) -> None:
    again = pickle.loads(pickle.dumps(fit))
    assert again.values().keys() == fit.values().keys() and again["drawn"] == fit["drawn"]
    assert again.model.log_density(again.unconstrained, jacobian=False) == fit.log_density


def test_refresh(model: StanModel, capsys: pytest.CaptureFixture[str]) -> None:
    fit = model.optimize(seed=3, refresh=5)
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("Initial log joint probability = ")
    last = printed.err.splitlines()[-3].split()
    assert (int(last[0]), int(last[6])) == (fit.n_iterations, fit.n_gradients)
    newton = model.optimize("newton", seed=3, refresh=1)
    rows = [line for line in capsys.readouterr().err.splitlines() if line.split()[0].isdigit()]
    assert [int(row.split()[0]) for row in rows] == list(range(1, newton.n_iterations + 1))
    with pytest.raises(ValueError, match="refresh"):
        model.optimize(refresh=-1)
    with pytest.raises(ValueError, match="refresh"):
        Progress(0)


def test_rich_is_imported_on_a_terminal_only() -> None:
    code = (
        "import sys, io; from ulam.runtime.optimizers.progress import Progress; p = Progress(1, io.StringIO()); "
        "p.begin(1.0); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


# ---------------------------------------------------------------- estimates and standard errors


def test_estimates_have_their_shapes(fit: OptimizationResult) -> None:
    np.testing.assert_allclose(fit["z"], [[1, 2, 3], [2, 4, 6]], atol=1e-6)
    np.testing.assert_allclose(fit["m"], [[11, 12, 13], [21, 22, 23]], atol=1e-6)
    np.testing.assert_array_equal(fit["mt"], fit["m"].T)
    np.testing.assert_allclose(fit["p"], [1 / 7, 2 / 7, 4 / 7], atol=1e-6)  # the mode without the change of variables
    assert fit["tau"] == pytest.approx(SCALE**2) and fit["twice"] == 2 * fit["mu"]
    assert fit["log_lik"].shape == (5,) and fit["count"] == 3
    assert list(fit.values()) == ["mu", "sigma", "z", "m", "p", "tau", "mt", "drawn", "count", "log_lik", "twice"]


def test_standard_errors(fit: OptimizationResult) -> None:
    errors = fit.standard_errors()
    sigma = SCALE / math.sqrt(2 * len(Y))
    assert errors["mu"] == pytest.approx(SCALE / math.sqrt(len(Y)), rel=1e-6)
    assert errors["sigma"] == pytest.approx(sigma, rel=1e-6)
    assert errors["tau"] == pytest.approx(2 * SCALE * sigma, rel=1e-6)
    assert errors["twice"] == pytest.approx(2 * errors["mu"], rel=1e-9)
    np.testing.assert_allclose(errors["z"], np.ones((2, 3)), rtol=1e-6)
    np.testing.assert_allclose(errors["mt"], np.full((3, 2), 0.5), rtol=1e-6)
    assert math.isnan(errors["drawn"]) and math.isnan(errors["count"])
    np.testing.assert_allclose(fit.covariance(), np.linalg.inv(-fit.hessian()), rtol=1e-9, atol=1e-12)
    # Of y | mu, sigma: the derivative by mu is (y - mu) / sigma^2, by sigma ((y - mu)^2 / sigma^2 - 1) / sigma.
    z = (np.array(Y) - MEAN) / SCALE
    expected = np.hypot(z / SCALE * errors["mu"], (z**2 - 1) / SCALE * sigma)
    np.testing.assert_allclose(errors["log_lik"], expected, rtol=1e-5)
    assert "std. error" in str(fit) and "std. error" in fit._repr_html_()


def test_standard_errors_where_the_scales_differ() -> None:
    """exp(1e4 a) for a known to 1e-5, and a parameter of size 1e8: the steps fit each."""
    source = """
    parameters { real a; real b; }
    transformed parameters { real c = exp(1e4 * a); real d = b^2; }
    model { a ~ normal(1e-4, 1e-5); b ~ normal(1e8, 1e3); }"""
    fit = StanModel(source).optimize("newton", init=np.array([1e-4, 1e8]))
    errors = fit.standard_errors()
    assert errors["c"] == pytest.approx(math.e * 0.1, rel=1e-6)
    assert errors["d"] == pytest.approx(2e11, rel=1e-6)


def test_standard_errors_before_convergence(model: StanModel) -> None:
    fit = model.optimize("newton", iter=3, seed=3)
    fit.standard_errors()
    assert any("not those of a mode: it is about" in note for note in fit.notes)
    assert not any("not those of a mode" in note for note in model.optimize(seed=3).notes)


def test_flat_direction_is_named() -> None:
    source = """
    data { vector[3] y; }
    parameters { real a; vector[2] b; real other; }
    model { y ~ normal(a + b[2], 1); b[1] ~ normal(0, 1); other ~ normal(0, 1); }"""
    fit = StanModel(source, {"y": [1.0, 2.0, 4.0]}).optimize(seed=1)
    with pytest.raises(CurvatureError) as failure:
        fit.standard_errors()
    lines = str(failure.value).splitlines()
    assert "not negative definite" in lines[0]
    assert lines[1].strip() in ("it is flat along a, b[2]", "it is flat along b[2], a")
    with pytest.raises(CurvatureError, match="flat"):
        fit.covariance()
    assert fit.hessian().shape == (4, 4)
    assert "std. error" not in str(fit)


def test_rising_direction_is_named() -> None:
    source = "parameters { real saddle; real fine; } model { target += saddle^2 - fine^2; }"
    fit = StanModel(source).optimize("newton", init=np.zeros(2))
    with pytest.raises(CurvatureError, match="upwards along saddle\n.*not a maximum"):
        fit.covariance()


def test_curvature_that_is_not_finite() -> None:
    fit = StanModel("parameters { real a; real b; } model { target += -b^2 - sqrt(abs(a)); }").optimize(init=np.ones(2))
    fit.unconstrained = np.zeros(2)
    with pytest.raises(CurvatureError, match="not finite for a$"):
        fit.covariance()


def test_rejected_quantities_are_nan() -> None:
    source = """
    parameters { real mu; }
    model { mu ~ normal(1, 1); }
    generated quantities { real fine = mu; real wrong = normal_rng(mu, -1); }"""
    fit = StanModel(source).optimize(seed=1)
    assert fit["mu"] == pytest.approx(1) and math.isnan(fit["wrong"]) and math.isnan(fit["fine"])
    assert any("normal_rng" in note and "NaN" in note for note in fit.notes)
    assert fit.standard_errors()["mu"] == pytest.approx(1)


def test_no_parameters() -> None:
    fit = StanModel("generated quantities { real x = 2; }").optimize()
    assert fit["x"] == 2 and fit.covariance().shape == (0, 0) and fit.standard_errors() == {"x": 0.0}


# ---------------------------------------------------------------- JSON, HTML


def test_json(fit: OptimizationResult, model: StanModel, tmp_path: Path) -> None:
    fit.standard_errors()
    text = fit.to_json(tmp_path / "fit.json")
    assert (tmp_path / "fit.json").read_text() == text
    record = json.loads(text)
    assert record["schema_version"] == SCHEMA_VERSION and record["method"] == "optimize"
    assert (record["status"], record["code"], record["message"]) == (fit.status, fit.code, fit.message)
    assert record["converged"] is True and record["log_density"] == fit.log_density
    assert record["n_gradients"] == fit.n_gradients and record["options"] == {"tol_rel_obj": 0, "tol_rel_grad": 0}
    for name, value in fit.values().items():
        np.testing.assert_array_equal(np.array(record["values"][name]), value)
    assert record["standard_errors"]["drawn"] == "NaN" and np.shape(record["standard_errors"]["m"]) == (2, 3)
    np.testing.assert_array_equal(record["unconstrained"], fit.unconstrained)
    again = model.optimize(init=record["values"], iter=1)
    np.testing.assert_allclose(again.initial, fit.unconstrained, rtol=1e-9, atol=1e-9)
    assert model.optimize(seed=3).to_dict()["standard_errors"] is None
    odd = model.optimize(seed=np.int64(3), iter=np.int64(5), tol_obj=np.float64(0))  # pyright: ignore
    assert json.loads(odd.to_json())["options"] == {"iter": 5, "tol_obj": 0} and json.loads(odd.to_json())["seed"] == 3


def test_html_is_escaped(fit: OptimizationResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "notes", ["<b>&"])
    html = fit._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html and "sigma" in html
    from xml.etree import ElementTree

    ElementTree.fromstring(f"<div>{html}</div>")


# ---------------------------------------------------------------- CSV


def test_csv_settings(model: StanModel, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    model.optimize("bfgs", jacobian=True, seed=5, iter=100, tol_obj=0, init=1).to_csv(path)
    lines = path.read_text().splitlines()
    start = lines.index("# method = optimize")
    assert lines[start : start + 14] == [
        "# method = optimize",
        "#   optimize",
        "#     algorithm = bfgs",
        "#       bfgs",
        "#         init_alpha = 0.001 (Default)",
        "#         tol_obj = 0",
        "#         tol_rel_obj = 10000 (Default)",
        "#         tol_grad = 1e-08 (Default)",
        "#         tol_rel_grad = 10000000 (Default)",
        "#         tol_param = 1e-08 (Default)",
        "#     jacobian = true",
        "#     iter = 100",
        "#     save_iterations = false (Default)",
        "# id = 1 (Default)",
    ]
    settings = cmdstan_csv.read(path).settings
    assert settings["seed"] == "5" and settings["init"] == "1" and settings["model"] == "model_model"
    model.optimize("lbfgs").to_csv(path)
    assert "#         history_size = 5 (Default)\n" in path.read_text()
    model.optimize("newton").to_csv(path)
    assert "tol_" not in path.read_text()


def test_csv_rows(fit: OptimizationResult, model: StanModel, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    fit.to_csv(path)
    content = cmdstan_csv.read(path)
    assert content.names[:4] == ["lp__", "converged__", "mu", "sigma"] and content.names[2:] == fit.names
    assert content.names[4:7] == ["z.1.1", "z.2.1", "z.1.2"]
    assert content.rows.shape == (fit.n_iterations + 1, len(fit.names) + 2)
    np.testing.assert_array_equal(content.rows[:, 0], [value for value, _ in fit.trajectory])
    np.testing.assert_array_equal(content.rows[:-1, 1], 0)
    assert content.rows[-1, 1] == fit.code and content.rows[0, 0] == fit.initial_log_density
    np.testing.assert_array_equal(content.rows[-1, 2:], fit.constrained)
    np.testing.assert_allclose(content.rows[0, 2 : 2 + model.param_num()], model.param_constrain(fit.initial))
    assert path.read_text().splitlines()[-1] == f"# {fit.message}"
    model.optimize(seed=3).to_csv(path)
    assert len(cmdstan_csv.read(path).rows) == 1


def test_csv_reads_as_a_point(fit: OptimizationResult, model: StanModel, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    fit.to_csv(path)
    values, jacobian = cmdstan_csv.read_parameters(model, path)
    assert jacobian is False
    np.testing.assert_allclose(model.param_unconstrain(values), fit.unconstrained, rtol=1e-9, atol=1e-9)
    path.write_text("lp__,mu,sigma\n1,2,3\n")
    with pytest.raises(DataError, match=r"no column for parameter z\.1\.1, .* and 10 more"):
        cmdstan_csv.read_parameters(model, path)
    for wrong in ("", "lp__,mu\n", "lp__,mu\n1\n", "lp__,mu\n1,x\n"):
        path.write_text(wrong)
        with pytest.raises(DataError, match="not a CSV file of CmdStan's form"):
            cmdstan_csv.read(path)


def test_csv_of_cmdstan(tmp_path: Path) -> None:
    """A file as CmdStan 2.36 writes it: six digits, no `converged__`, booleans as words or numbers."""
    path = tmp_path / "cmdstan.csv"
    comments = "# method = optimize\n#   optimize\n#     jacobian = {}\n# data\n#   file = a = b.json\n"
    model = StanModel("parameters { real mu; real<lower=0> sigma; } model { }")
    for text, expected in (("true", True), ("0 (Default)", False), ("1", True)):
        path.write_text(f"{comments.format(text)}lp__,mu,sigma\n-1,9,9\n-3.5,1.25,2\n# Stan's closing words\n")
        values, jacobian = cmdstan_csv.read_parameters(model, path)
        assert values.tolist() == [1.25, 2.0] and jacobian is expected


def test_cmdstanpy_reads_the_csv(fit: OptimizationResult, tmp_path: Path) -> None:
    cmdstanpy = pytest.importorskip("cmdstanpy")
    fit.to_csv(tmp_path / "fit.csv")
    mle = cmdstanpy.from_csv(str(tmp_path / "fit.csv"), method="optimize")
    for name, value in fit.values().items():
        np.testing.assert_array_equal(mle.stan_variable(name), value)
    assert mle.metadata.cmdstan_config["tol_rel_obj"] == 0 and mle.metadata.cmdstan_config["history_size"] == 5
    assert mle.optimized_iterations_np.shape[0] == fit.n_iterations + 1


# ---------------------------------------------------------------- command line

NORMAL = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { y ~ normal(mu, sigma); }
"""
DATA = json.dumps({"N": len(Y), "y": Y})
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "normal.stan"
    path.write_text(NORMAL)
    return str(path)


def test_command_with_standard_errors(program: str, capsys: Capture) -> None:
    for algorithm in ("lbfgs", "bfgs", "newton"):
        arguments = ["optimize", program, "--data", DATA, "--algorithm", algorithm, "--standard-errors"]
        assert ulam_main.main([*arguments, "--refresh", "10"]) == 0
        printed = capsys.readouterr()
        header, mu, *_ = printed.out.splitlines()
        assert header.split() == ["parameter", "estimate", "std.", "error"]
        assert [float(cell) for cell in mu.split()[1:]] == pytest.approx([MEAN, SCALE / math.sqrt(5)], rel=1e-4)
        assert printed.err.startswith("Initial log joint probability = ")


def test_command_writes_json(program: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "fit.json"
    arguments = ["optimize", program, "--data", DATA, "--tol-obj", "0", "--iter", "50"]
    assert ulam_main.main([*arguments, "--json", str(path), "--standard-errors"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["written", str(path)]
    record = json.loads(path.read_text())
    assert record["options"] == {"iter": 50, "tol_obj": 0} and set(record["standard_errors"]) == {"mu", "sigma"}
    assert ulam_main.main([*arguments, "--json", "-", "--output", str(tmp_path / "fit.csv"), "--refresh", "1"]) == 0
    printed = capsys.readouterr()
    again = json.loads(printed.out)
    assert again["values"] == record["values"] and again["standard_errors"] is None
    assert "fit.csv" in printed.err
    assert ulam_main.main([*arguments, "--output", str(tmp_path / "none" / "fit.csv")]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and "none" in printed.err  # before the run


def test_command_shows_no_progress_in_a_pipe(program: str, capsys: Capture) -> None:
    assert ulam_main.main(["optimize", program, "--data", DATA]) == 0
    assert capsys.readouterr().err == ""


def test_command_that_fails(tmp_path: Path, capsys: Capture) -> None:
    """The estimate is shown, the exit status is 1."""
    flat, kink = tmp_path / "flat.stan", tmp_path / "kink.stan"
    flat.write_text("parameters { real a; real b; } model { a + b ~ normal(0, 1); }")
    assert ulam_main.main(["optimize", str(flat), "--standard-errors"]) == 1
    printed = capsys.readouterr()
    assert "ulam: error: the Hessian of the log density is not negative definite" in printed.err
    assert printed.out.startswith("parameter") and "std. error" not in printed.out
    kink.write_text("parameters { real x; real y; } model { target += -abs(x) - abs(x + y); }")
    assert ulam_main.main(["optimize", str(kink), "--output", str(tmp_path / "kink.csv")]) == 1
    printed = capsys.readouterr()
    assert "ulam: error: Line search failed" in printed.err and "line_search_failed" in printed.out
    assert cmdstan_csv.read(tmp_path / "kink.csv").rows[-1, 1] == -1


def test_command_that_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "long.stan"
    path.write_text(
        "parameters { vector[50] x; } model {\n"
        "  for (n in 1:49) target += -100 * square(x[n + 1] - square(x[n])) - square(1 - x[n]);\n"
        "  for (k in 1:1000000) target += 1e-9 * sin(x[1] * k);\n}\n"
    )
    command = [sys.executable, "-m", "ulam.tools.ulam_main", "optimize", str(path), "--iter", "1000000"]
    command += ["--refresh", "1"]
    # Tests that run in the background inherit that SIGINT is ignored.
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, **pipes, preexec_fn=heeding) as running:
        assert running.stdout is not None and running.stderr is not None
        for line in running.stderr:
            if line.startswith("       3 "):
                break
        running.send_signal(signal.SIGINT)
        printed, messages = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Interrupted (interrupted)" in printed and "x[50]" in printed
    assert messages.endswith("ulam: interrupted; the best point so far is shown\n")


# ---------------------------------------------------------------- ArviZ

HAS_ARVIZ = any(importlib.util.find_spec(name) for name in ("arviz_base", "arviz"))


@pytest.mark.skipif(not HAS_ARVIZ, reason="neither arviz-base nor arviz is installed")
def test_arviz(fit: OptimizationResult) -> None:
    data: Any = fit.to_arviz(posterior_predictive=["drawn"])
    assert data["posterior"]["m"].shape == (1, 1, 2, 3) and data["posterior"]["mu"].shape == (1, 1)
    np.testing.assert_array_equal(data["posterior"]["z"][0, 0], fit["z"])
    assert set(data["log_likelihood"].data_vars) == {"log_lik"}
    assert set(data["posterior_predictive"].data_vars) == {"drawn"}
    assert float(data["sample_stats"]["lp"][0, 0]) == fit.log_density
    assert data.attrs["algorithm"] == "lbfgs"
    with pytest.raises(KeyError, match="y_rep"):
        fit.to_arviz(posterior_predictive=["y_rep"])


def test_arviz_that_is_missing(fit: OptimizationResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install 'ulam\[arviz\]'"):
        fit.to_arviz()


def test_saved_iterations(model: StanModel, tmp_path: Path) -> None:
    """The array that the CSV file has."""
    for saved in (False, True):
        result = model.optimize(seed=3, iter=5, save_iterations=saved)
        rows = result.iterations
        assert rows.shape == (result.n_iterations + 1 if saved else 1, 2 + len(result.names))
        assert result.iteration_columns == ["lp__", "converged__", *result.names]
        np.testing.assert_array_equal(rows[-1], [result.log_density, result.code, *result.constrained])
        assert (rows[:-1, 1] == 0).all()
        result.to_csv(tmp_path / "fit.csv")
        content = cmdstan_csv.read(tmp_path / "fit.csv")
        assert content.names == result.iteration_columns
        np.testing.assert_array_equal(content.rows, rows)
