"""A CmdStan home without its clients: what its programs print and write."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from ulam.runtime.errors import DataError
from ulam.runtime.named_text import NamedText
from ulam.runtime.sampling import draw_statistics
from ulam.tools.cmdstan import executable, home, make, programs, r_dump, stanc_options, stansummary
from ulam.tools.cmdstan.executable import StanExecutable
from ulam.tools.exits import UsageError

pytestmark = pytest.mark.usefixtures("quick_code")
Capture = pytest.CaptureFixture[str]

PROGRAM = "data { int N; }\nparameters { real x; }\nmodel { x ~ normal(N, 1); }\n"

DECLARED = """
functions {
  real twice(real x) { return 2 * exp(x); }
  real near_lpdf(real x, real m) { return normal_lpdf(x | m, 1) + std_normal_lpdf(x |); }
  vector change(real t, vector y, real k) { return -k * y; }
}
data {
  int N; array[N] tuple(int, real) t; complex c; complex_vector[2] cv; array[3] complex_matrix[2, 2] cm;
  tuple(int, array[2] vector[2]) tt;
}
transformed data { real q = twice(2.0) + log(3) + normal_rng(0, 1); int m = size({1, 2}); }
parameters { real<lower=0> x; simplex[3] s; array[2] matrix[2, 2] a; cov_matrix[3] S; }
transformed parameters {
  real y = x ^ 2;
  array[2] vector[2] z = ode_rk45(change, [1.0, 2.0]', 0, {1.0, 2.0}, x);
}
model {
  x ~ near(1);
  x ~ normal(0, 1) T[0, 3];
  s[1] ~ beta(1, 2);
  N ~ poisson(3);
  target += cauchy_lpdf(x | 0, 1) + beta_lupdf(s[1] | 1, 2) + target();
  if (x > 8) { print("large"); reject("no"); }
}
generated quantities { int g = poisson_rng(3); real p = normal_cdf(x | 0, 1) + normal_lccdf(x | 0, 1); }
"""
# As stanc3 2.35 prints it.
INFORMATION = {
    "inputs": {
        "N": {"type": "int", "dimensions": 0},
        "t": {"type": [{"type": "int", "dimensions": 0}, {"type": "real", "dimensions": 0}], "dimensions": 1},
        "c": {"type": "complex", "dimensions": 0},
        "cv": {"type": "complex", "dimensions": 1},
        "cm": {"type": "complex", "dimensions": 3},
        "tt": {"type": [{"type": "int", "dimensions": 0}, {"type": "real", "dimensions": 2}], "dimensions": 0},
    },
    "parameters": {
        "x": {"type": "real", "dimensions": 0},
        "s": {"type": "real", "dimensions": 1},
        "a": {"type": "real", "dimensions": 3},
        "S": {"type": "real", "dimensions": 2},
    },
    "transformed parameters": {"y": {"type": "real", "dimensions": 0}, "z": {"type": "real", "dimensions": 2}},
    "generated quantities": {"g": {"type": "int", "dimensions": 0}, "p": {"type": "real", "dimensions": 0}},
    "functions": ["exp", "log", "normal_rng", "ode_rk45", "poisson_rng", "print", "reject", "size"],
    "distributions": [
        "beta_lupdf", "cauchy_lpdf", "normal_cdf", "normal_lccdf", "normal_lpdf", "normal_lupdf", "poisson_lupmf",
        "std_normal_lpdf",
    ],
    "included_files": [],
}  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "with a space"
    folder.mkdir()
    (folder / "small.stan").write_text(PROGRAM)
    return folder / "small.stan"


def makes(*words: object) -> int:
    return programs.main("ulam-make", [*map(str, words)])


# ---------------------------------------------------------------- the home


def test_home(tmp_path: Path) -> None:
    found = home.write_home(tmp_path / "a home")
    folder = Path(found["CMDSTAN"])
    assert (folder / "makefile").read_text().startswith("CMDSTAN_VERSION := 2.")
    assert Path(found["BRIDGESTAN"], "Makefile").exists()
    assert {path.name for path in (folder / "bin").iterdir()} == set(programs.PROGRAMS)
    assert all(os.access(path, os.X_OK) for path in (folder / "bin").iterdir())
    assert home.write_home(folder) == found, "it may be written again"
    version = subprocess.run([folder / "bin" / "stanc", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("stanc3 v2.")


def test_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        home.write_home(tmp_path / "file" / "home")


@pytest.mark.parametrize("interpreter", ["/a place/python", f"/{'long' * 40}/python", sys.executable])
def test_first_line(interpreter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short enough for a system's first line, or a shell's script; Python reads either."""
    monkeypatch.setattr(sys, "executable", interpreter)
    lines = executable.interpreter_line()
    assert len(lines.splitlines()[0]) <= 127
    compile(lines + "x = 1\n", "script", "exec")
    assert interpreter in lines


def test_interpreter_with_a_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "an interpreter"
    link.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    link.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(link))
    home.write_program(tmp_path / "stanc", "stanc")
    done = subprocess.run([tmp_path / "stanc", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("stanc3 ")


# ---------------------------------------------------------------- stanc


def test_information(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "all.stan").write_text(DECLARED)
    assert programs.main("stanc", ["--info", str(tmp_path / "all.stan")]) == 0
    assert json.loads(capsys.readouterr().out) == INFORMATION


def test_included_files(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "f.stanfunctions").write_text("real f(real x) { return x; }")
    (tmp_path / "all.stan").write_text("functions {\n#include f.stanfunctions\n}")
    words = [f"--include-paths={tmp_path}/other,{tmp_path}/parts", "--info", str(tmp_path / "all.stan")]
    assert programs.main("stanc", words) == 0
    assert json.loads(capsys.readouterr().out)["included_files"] == [str(tmp_path / "parts" / "f.stanfunctions")]


@pytest.mark.parametrize(
    ("text", "words", "status", "said"),
    [
        ("model { real x = ; }", [], 1, "Syntax error in 'p.stan', line 1, column 18:"),
        ("model { x = 1; }", [], 1, "Semantic error in 'p.stan', line 1, column 9:"),
        ("model { x = 1; }", ["--filename-in-msg=other.stan"], 1, "Semantic error in 'other.stan', line 1, column 9:"),
        ("model { real x = 1 / 2; }", [], 0, "Warning in 'p.stan', line 1, column"),
        ("functions { real f(real x); }", [], 1, "'f' is declared but not defined"),
        ("functions { real f(real x); }", ["--allow-undefined"], 0, ""),
        ("", ["--auto-format"], 1, "--auto-format is not there: ulam has no formatter"),
        ("", ["--print-cpp"], 1, "--print-cpp is not there: ulam makes no C++"),
        ("", ["--debug-mir"], 1, "--debug-mir is not there"),
        ("", ["--bogus"], 1, "unknown option '--bogus'"),
        ("", ["other.stan"], 1, "give one program"),
        (None, [], 1, "p.stan: No such file"),
    ],
)
def test_stanc(
    text: str | None, words: list[str], status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("p.stan").write_text(text or "model { }")
    assert programs.main("stanc", [*words, "p.stan"]) == status
    found = capsys.readouterr()
    assert said in found.err and (said or not found.err) and not found.out


def test_levels() -> None:
    levels = {words: stanc_options.parse(words.split()).level for words in ("", "--O0", "--O1", "--O", "--O1 --O0")}
    assert levels == {"": 3, "--O0": 0, "--O1": 3, "--O": 4, "--O1 --O0": 0}


# ---------------------------------------------------------------- make


def test_executable(program: Path, capsys: Capture) -> None:
    """The executable is its own: it may be copied, and lives without its program. What changes makes it anew."""
    target = program.with_suffix("")
    options = ["STANCFLAGS+=--filename-in-msg=small.stan", "STANCFLAGS+=--O0", f"STANCFLAGS+=--include-paths={program}"]
    spaced = [option.replace(" ", "\\ ") for option in options]
    assert makes(*spaced, target) == 0
    made = StanExecutable.read(str(target))
    assert made is not None and (made.text, made.name, made.level, made.threads) == (PROGRAM, "small.stan", 0, False)
    assert made.include_paths == (str(program.parent), str(program))
    assert os.access(target, os.X_OK)
    before = target.stat()
    capsys.readouterr()
    assert makes(*spaced, target) == 0 and "is up to date" in capsys.readouterr().out
    assert target.stat().st_mtime_ns == before.st_mtime_ns
    assert makes(*spaced, "STAN_THREADS=True", target) == 0
    copy = program.parent / "copy"
    target.rename(copy)
    program.unlink()
    done = subprocess.run([copy, "info"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "STAN_THREADS=true" in lines and "stan_version_major = 2" in lines


def test_made_anew_after_an_edit(program: Path) -> None:
    target = program.with_suffix("")
    included = program.parent / "part.stan"
    program.write_text("parameters { real x; }\nmodel {\n#include part.stan\n}\n")
    included.write_text("x ~ normal(0, 1);")
    assert makes("STANCFLAGS=--O0", target) == 0
    for file in (included, program):
        os.utime(file, (target.stat().st_mtime + 5, target.stat().st_mtime + 5))
        before = target.stat().st_mtime_ns
        assert makes("STANCFLAGS=--O0", target) == 0
        assert target.stat().st_mtime_ns != before


def test_what_cannot_be_made(program: Path, capsys: Capture) -> None:
    target = program.with_suffix("")
    target.write_text("as it was")
    program.write_text("model { x = 1; }")
    assert makes(target) == 1 and "Semantic error" in capsys.readouterr().err
    assert target.read_text() == "as it was"
    assert makes(target.with_name("other")) == 1 and "there is no file" in capsys.readouterr().err
    assert makes("USER_HEADER=f.hpp", target) == 1 and "C++" in capsys.readouterr().err
    assert makes("STANCFLAGS=--bogus", target) == 1 and "--bogus" in capsys.readouterr().err
    assert makes() == 1 and "give a target" in capsys.readouterr().err


def test_make_arguments(tmp_path: Path) -> None:
    (tmp_path / "make").mkdir()
    (tmp_path / "make" / "local").write_text("# of this home\nSTAN_THREADS=true\nSTANCFLAGS += --O0  # slow\n")
    found = make.read_arguments(["-C", str(tmp_path), "-j", "2", "-s", "STANCFLAGS+=--name=a\\ b", "build", "X=1=2"])
    assert found.targets == ["build"] and found.is_set("STAN_THREADS") and found.variables["X"] == "1=2"
    assert found.stanc().level == 0 and found.stanc().values == {"name": "a b"}
    assert make.read_arguments(["-j", "a"]).targets == ["a"]


def test_other_targets(capsys: Capture) -> None:
    assert makes("build") == 0 and makes("STANCFLAGS+=--O1", "print-STANCFLAGS") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "STANCFLAGS = --O1"


# ---------------------------------------------------------------- stansummary and diagnose


@pytest.fixture
def chains(tmp_path: Path) -> tuple[list[str], np.ndarray]:
    """Files of two chains, of a matrix whose columns are one after the other."""
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(2, 200, 7))
    draws[..., 1] = 0.8
    draws[..., 2] = 0
    names = ["lp__", "stepsize__", "divergent__", "a.1.1", "a.2.1", "a.1.2", "a.2.2"]
    head = "# model = m_model\n# method = sample (Default)\n# algorithm = hmc (Default)\n"
    files = []
    for k, chain in enumerate(draws):
        rows = "\n".join(",".join(map(repr, row)) for row in chain.tolist())
        path = tmp_path / f"out_{k}.csv"
        path.write_text(f"{head}{','.join(names)}\n# Adaptation terminated\n{rows}\n")
        files.append(str(path))
    return files, draws


def test_stansummary(chains: tuple[list[str], np.ndarray], tmp_path: Path, capsys: Capture) -> None:
    files, draws = chains
    table = tmp_path / "table.csv"
    words = ["--percentiles= 5,50,97.5", "--sig_figs=9", f"--csv_filename={table}", *files]
    assert programs.main("stansummary", words) == 0
    rows = list(csv.reader(line for line in table.read_text().splitlines() if not line.startswith("#")))
    columns = "name Mean MCSE StdDev MAD 5% 50% 97.5% ESS_bulk ESS_tail R_hat"
    assert rows[0] == columns.split()
    names = ["lp__", "stepsize__", "divergent__", "a[1,1]", "a[1,2]", "a[2,1]", "a[2,2]"]
    assert [row[0] for row in rows[1:]] == names
    own = dict(zip(rows[0], rows[5], strict=True))
    assert own["name"] == "a[1,2]"
    values = draws[..., 5]
    for column, expected in {
        "Mean": values.mean(), "StdDev": values.std(ddof=1), "97.5%": np.quantile(values, 0.975),
        "MAD": scipy.stats.median_abs_deviation(values.ravel()) * stansummary.NORMAL_MAD,
        "ESS_bulk": draw_statistics.ess_bulk(values), "R_hat": draw_statistics.rhat(values),
    }.items():  # fmt: skip
        assert float(own[column]) == pytest.approx(float(expected), rel=1e-5)
    constant = dict(zip(rows[0], rows[3], strict=True))
    assert [constant[column] for column in ("Mean", "StdDev", "MCSE", "ESS_bulk", "R_hat")] == ["0", "0", *["nan"] * 3]
    assert "a[2,1]" in capsys.readouterr().out
    assert programs.main("print", ["-i", "a[2,1]", *files]) == 0
    shown = capsys.readouterr().out
    assert "a[2,1]" in shown and "a[1,1]" not in shown
    one = stansummary.ReadChains(files[:1])
    halves = draw_statistics.Columns(draws[:1, :, 3].reshape(1, 1, -1)).split_rhat
    assert stansummary.cmdstan_table(one, ["a.1.1"], (0.5,)).column("r_hat") == halves < 1.1


@pytest.mark.parametrize(
    "words",
    [["--percentiles=5,x"], ["--sig_figs=19"], ["--autocorr=1"], ["--what"], ["--percentiles"], ["-i", "none", "FILE"]],
)
def test_wrong_options_of_stansummary(words: list[str], chains: tuple[list[str], np.ndarray]) -> None:
    with pytest.raises(UsageError):
        stansummary.run([chains[0][0] if word == "FILE" else word for word in words])


def test_files_that_are_none(chains: tuple[list[str], np.ndarray], tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "other.csv"
    other.write_text("lp__,b\n1,2\n3,4\n")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    for words, said in (
        ([chains[0][0], str(other)], "other columns"), ([str(empty)], "there is no header"), (["no.csv"], "no.csv"),
        ([], "give the CSV files"),
    ):  # fmt: skip
        for name in ("stansummary", "diagnose"):
            assert programs.main(name, words) == 1
            assert said in capsys.readouterr().err


def test_diagnose(chains: tuple[list[str], np.ndarray], capsys: Capture) -> None:
    files, _ = chains
    assert programs.main("diagnose", files) == 0
    found = capsys.readouterr().out
    assert "No divergent transitions found." in found and "no problems detected" in found
    text = Path(files[0]).read_text().splitlines()
    cells = text[-1].split(",")
    Path(files[0]).write_text("\n".join([*text[:-1], ",".join([*cells[:2], "1", *cells[3:]])]) + "\n")
    assert programs.main("diagnose", files) == 0
    found = capsys.readouterr().out
    assert "1 of 400 draws" in found and "No divergent" not in found and "no problems" not in found


# ---------------------------------------------------------------- values in R's format


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("N <- 3\nx<-2.5; y <- -1e-3", {"N": 3, "x": 2.5, "y": -0.001}),
        ("# of R\n\"N\" <- 128L\n`y` <- 1", {"N": 128, "y": 1}),
        ("y <-\nc(1, 2L,\n -3)\nz <- c(1.5, 2)", {"y": [1, 2, -3], "z": [1.5, 2]}),
        ("a <- 3:5; b <- 2:0", {"a": [3, 4, 5], "b": [2, 1, 0]}),
        ("a <- integer(0)\nb <- c()\nd <- double(0)", {"a": [], "b": [], "d": []}),
        ("m <- structure(c(1, 2, 3, 4, 5, 6), .Dim = c(2L, 3L))", {"m": [[1, 3, 5], [2, 4, 6]]}),
        ("m <- structure(1:4, .Dim = c(2, 2))", {"m": [[1, 3], [2, 4]]}),
        ("x <- c(NaN, Inf, -Inf)", {"x": ["NaN", "Infinity", "-Infinity"]}),
        ("x <- c('a', 'b')", "the value of x is not one of R's numbers: ''a''"),
        ("x <- structure(c(1, 2, 3), .Dim = c(2, 2))", ".Dim is [2, 2], of 3 values"),
        ("x <- ", "the value of x"),
        ("x <- list(1)", "the value of x"),
        ("what\nx <- 1", "expected `name <- value`"),
        ("x <- c(1, NA)", "'NA'"),
    ],
)
def test_values_of_r(text: str, values: object, tmp_path: Path) -> None:
    file = tmp_path / "values.R"
    file.write_text(text)
    if isinstance(values, str):
        with pytest.raises(DataError, match=re.escape(values)):
            r_dump.values_file(str(file))
    else:
        found = r_dump.values_file(str(file))
        assert isinstance(found, NamedText) and json.loads(found.text) == values and str(found) == str(file)


def test_other_files_are_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "values.json"
    for text in ('{"x": "a <- b"}', "  [1]", "", "no values"):
        file.write_text(text)
        assert r_dump.values_file(str(file)) == str(file)
