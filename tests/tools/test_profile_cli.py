"""`ulam profile`: counts, threads, phases, files, messages; docs/profiling.md, whose programs give the rows it says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.runtime.model import StanModel
from ulam.runtime.native import Context
from ulam.runtime.profiling.profile_csv import read_profile_csv
from ulam.tools import ulam_main

pytestmark = pytest.mark.usefixtures("quick_code")

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")
Capture = pytest.CaptureFixture[str]

PROGRAM = """data {
  int N;
  vector[N] y;
}
transformed data {
  real m;
  profile("data, mean") {
    m = mean(y);
  }
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(m, 1);
  sigma ~ exponential(1);
  for (n in 1:N) {
    profile("observation") {
      y[n] ~ normal(mu, sigma);
    }
  }
}
generated quantities {
  real z;
  profile("prediction") {
    z = normal_rng(mu, sigma);
  }
}
"""
N = 4
DATA = json.dumps({"N": N, "y": [0.5, 1.0, 1.5, 3.0]})


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.stan").write_text(PROGRAM)
    return "m.stan"


def run(*arguments: str, data: str = DATA) -> int:
    return ulam_main.main(["profile", *arguments, "--data", data])


def counts(path: Path | str = "profile.csv") -> dict[str, tuple[int, int]]:
    rows = read_profile_csv(path)
    assert len({row.name for row in rows}) == len(rows), "one thread"
    return {row.name: (row.passes, row.gradient_passes) for row in rows}


def test_counts_are_exact(model: str, capsys: Capture) -> None:
    assert run(model, "--gradients", "50", "--draws", "7") == 0
    assert counts() == {"data, mean": (1, 0), "observation": (0, 50 * N), "prediction": (7, 0)}
    printed = capsys.readouterr().out
    for word in ("name", "forward", "reverse", "per pass", "kept", "19:5", "phase and region", "data, mean"):
        assert word in printed
    assert re.search(r"^observation .* 200 +0 ", printed, re.MULTILINE)
    assert re.search(r"^gradient +\S+ .s with regions, \S+ .s without$", printed, re.MULTILINE)
    assert re.search(r"^cost of regions +\S+ \(\S+ to \S+\) times as long; 95% interval", printed, re.MULTILINE)
    assert re.search(r"^timers +\S+ ns counted per pass and sweep, \S+ ns not counted$", printed, re.MULTILINE)
    assert printed.endswith("written          profile.csv\n")


def test_output(model: str, capsys: Capture) -> None:
    assert run(model, "--gradients", "3", "--no-output") == 0
    assert not Path("profile.csv").exists()
    assert run(model, "--gradients", "3", "--output", "a.csv", "--columns", "cmdstan") == 0
    assert Path("a.csv").read_text().startswith("name,thread_id,total_time,forward_time,reverse_time,chain_stack,")
    assert run(model, "--gradients", "5", "--output", "a.csv") == 0
    assert counts("a.csv")["observation"] == (0, 5 * N), "a second run replaces the file"
    assert sorted(path.name for path in Path().glob("*.csv")) == ["a.csv"]
    capsys.readouterr()


def test_parallel_processes_have_files_of_their_own(model: str) -> None:
    command = [sys.executable, "-m", "ulam.tools.ulam_main", "profile", model, "--data", DATA, "--gradients"]
    chains = [subprocess.Popen([*command, str(k)], stdout=subprocess.PIPE, text=True) for k in (10, 20, 30)]
    written: list[str] = []
    for chain in chains:
        printed, _ = chain.communicate()
        assert chain.returncode == 0
        written.append(printed.splitlines()[-1].split()[-1])
    found = {counts(path)["observation"][1]: path for path in written}
    # A chain that began when another had ended replaces its file, as a second run does.
    assert set(found) <= {10 * N, 20 * N, 30 * N} and len(set(written)) == len(found)
    assert {path.name for path in Path().iterdir()} == {"m.stan", *written}, "nothing unfinished is left"


def test_threads(model: str, capsys: Capture) -> None:
    assert run(model, "--gradients", "20", "--chains", "3") == 0
    rows = [row for row in read_profile_csv("profile.csv") if row.name == "observation"]
    assert [row.gradient_passes for row in rows] == [20 * N] * 3
    assert len({row.thread_id for row in rows}) == 3
    printed = capsys.readouterr().out
    assert re.search(r"^  observation .* 240$", printed, re.MULTILINE), "the tree adds threads up"
    assert "20 gradients in each of 3 threads" in printed


def test_optimization(model: str, capsys: Capture) -> None:
    assert run(model, "--optimize", "--seed", "3", "--json", "p.json", "--by-phase") == 0
    record = json.loads(Path("p.json").read_text())
    phases = {(row["name"], row["phase"]): row["gradient_passes"] for row in record["rows"]}
    assert set(phases) == {
        ("data, mean", "data"), ("observation", "optimization"), ("prediction", "generated quantities"),
    }  # fmt: skip
    tree = next(tree for tree in record["trees"] if tree["phase"] == "optimization")
    fit = StanModel(model, DATA, profile=False).optimize(seed=3)
    # As many gradients as the optimization itself; the point to begin at was found before.
    assert phases["observation", "optimization"] == fit.n_gradients * N
    assert tree["passes"] >= fit.n_gradients
    printed = capsys.readouterr().out
    assert "optimization " in printed and " phase " in printed.splitlines()[0]


@pytest.mark.parametrize("auto", ["statements", "blocks", "functions"])
def test_automatic_regions(model: str, auto: str, capsys: Capture) -> None:
    Path(model).write_text(f"functions {{ real f(real x) {{ return -square(x); }} }}\n{PROGRAM}".replace(
        "mu ~ normal(m, 1);", "target += f(mu);"))  # fmt: skip
    assert run(model, "--auto", auto, "--gradients", "10", "--no-output", "--json", "p.json") == 0
    printed = capsys.readouterr().out
    assert " raw " in printed.splitlines()[0] and "subtracted above, but from 'raw'" in printed
    record = json.loads(Path("p.json").read_text())
    names = {row["name"]: row["gradient_passes"] for row in record["rows"] if row["phase"] == "evaluation"}
    expected = {
        "statements": {"parameters": 10, "model, line 17": 10, "model, line 18": 10, "model, line 19": 10},
        "blocks": {"parameters": 10, "transformed parameters": 10, "model": 10},
        "functions": {"f": 10},
    }
    assert names == expected[auto]
    assert record["timer_seconds"]["inside"] > 0
    for row in record["rows"]:
        assert row["corrected_total_time"] < row["total_time"]
    if auto == "statements":
        assert "target += f(mu);" in printed
        assert re.search(r"parameters +\d", printed), "the transforms of parameters have a region"


def test_files_of_views(model: str, capsys: Capture) -> None:
    files = ["--trace", "t.json", "--flame", "f.svg", "--speedscope", "s.json"]
    assert run(model, "--gradients", "10", *files) == 0
    events = json.loads(Path("t.json").read_text())["traceEvents"]
    assert sum(event.get("cat") == "reverse" for event in events) == 10 * N
    assert Path("f.svg").read_text().startswith("<svg ") and "m.stan" in Path("f.svg").read_text()
    assert json.loads(Path("s.json").read_text())["exporter"].startswith("ulam@")
    written = re.findall(r"^written +(\S+)$", capsys.readouterr().out, re.MULTILINE)
    assert written == ["profile.csv", "t.json", "f.svg", "s.json"]


def test_json_on_standard_output(model: str, capsys: Capture) -> None:
    Path(model).write_text(PROGRAM.replace("mu ~ normal(m, 1);", 'mu ~ normal(m, 1); print("mu is ", mu);'))
    assert run(model, "--gradients", "2", "--json", "-") == 0
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    assert printed.err.count("mu is ") < 20 and "written" in printed.err
    assert "mu is " in printed.err, "of the run, not of the thousands of gradients that measure the cost of regions"
    assert record["gradients"] == 2 and record["ratio"]["rounds"] == 20
    assert set(record["seconds_per_gradient"]) == {"with_regions", "without_regions"}
    assert record["ratio"]["low"] <= record["ratio"]["value"] <= record["ratio"]["high"]


def test_a_program_without_regions(model: str, capsys: Capture) -> None:
    Path(model).write_text("parameters { real a; } model { a ~ normal(0, 1); }")
    assert run(model, data="{}") == 1
    message = capsys.readouterr().err
    assert "m.stan has no profile statements" in message and "--auto=statements" in message
    assert run(model, "--auto", "functions", data="{}") == 1
    assert "m.stan has no functions to measure; there are also --auto=statements and" in capsys.readouterr().err
    assert not list(Path().glob("*.csv"))


def test_wrong_usage(model: str, capsys: Capture) -> None:
    for arguments, message in (
        (["--auto", "lines"], "--auto must be statements, blocks or functions, found 'lines'"),
        (["--columns", "stan"], "--columns must be design or cmdstan, found 'stan'"),
        (["--gradients", "0"], "--gradients"),
        (["--optimize", "--algorithm", "adam"], "adam"),
    ):
        assert run(model, *arguments) == 2, arguments
        assert message in capsys.readouterr().err


def test_generated_quantities_that_fail_are_a_warning(model: str, capsys: Capture) -> None:
    Path(model).write_text(PROGRAM.replace("z = normal_rng(mu, sigma);", 'z = normal_rng(mu, sigma); reject("never");'))
    assert run(model, "--gradients", "2") == 0
    assert "ulam: warning: generated quantities: never" in capsys.readouterr().err
    assert counts()["observation"] == (0, 2 * N)


@pytest.mark.skipif(sys.platform != "linux", reason="line tables are for Linux only")
def test_lines(model: str, capsys: Capture) -> None:
    assert run(model, "--gradients", "5", "--lines", "--json", "p.json") == 0
    printed = capsys.readouterr().out
    assert re.search(r"^ *\d+\.\d% \| 20 \|       y\[n\] ~ normal\(mu, sigma\);$", printed, re.MULTILINE)
    record = json.loads(Path("p.json").read_text())
    assert sum(row["samples"] for row in record["lines"]["rows"]) <= record["lines"]["total"]
    Path(model).write_text("parameters { real a; } model {\n  a ~ normal(0, 1);\n}")
    assert run(model, "--lines", data="{}") == 0, "needs no regions"
    assert "2 |   a ~ normal(0, 1);" in capsys.readouterr().out


def test_a_pass_of_a_region_can_be_timed() -> None:
    """Gradients in a row are all recorded, and all timed."""
    model = StanModel('parameters { real a; } model { profile("p") { a ~ normal(0, 1); } }')
    seconds = model.time_gradients(np.zeros(1), 500)
    assert model.profiler is not None
    (row,) = model.profiler.rows()
    assert row.gradient_passes == 500 and 0 < row.total_time and seconds > 0
    status, _ = Context().repeat_gradient(0, 0, 0, 0, True, 0)
    assert status == 0, "no gradient, nothing called"


# ---------------------------------------------------------------- the guide

EXAMPLES = re.findall(r"^```stan profiled\n(.*?)^```\n(.*?)(?=^```|^#|^\*\*)", GUIDE, re.MULTILINE | re.DOTALL)
MEASURED = re.findall(r"^```console measured\n\$ ulam (.*?)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
VALUES: dict[str, Any] = {
    "N": 6, "K": 2, "x": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], "y": [0.1, -0.4, 0.2, 1.0, 0.3, 0.0],
    "X": [[1.0, 0.1], [1.0, 0.5], [1.0, -0.2], [1.0, 0.7], [1.0, 0.3], [1.0, -0.9]],
}  # fmt: skip


def test_the_guide_has_its_examples() -> None:
    assert len(EXAMPLES) == 8 and len(MEASURED) == 4


@pytest.mark.parametrize(("program", "after"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_rows_of_the_examples(program: str, after: str) -> None:
    said = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) \|$", after, re.MULTILINE)
    assert said
    declared = set(re.findall(r"\b(\w+);", program.partition("data {")[2].partition("}")[0]))
    model = StanModel(program, {name: value for name, value in VALUES.items() if name in declared})
    theta = np.full(model.param_unc_num(), 0.1)
    for _ in range(100):
        model.log_density_gradient(theta)
    model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(1))
    assert model.profiler is not None
    rows = model.profiler.rows()
    assert [(row.name, row.passes, row.gradient_passes) for row in rows] == [
        (name, int(passes), int(gradients)) for name, passes, gradients in said
    ]
    for row in rows:
        assert row.forward_time > 0
        assert (row.reverse_time > 0) == (row.gradient_passes > 0)


def without_numbers(line: str) -> str:
    """The words of a line of measurements. Counts stay, but where there are none but measurements."""
    text = re.sub(r"\d[\d.]* (?:ns|µs|ms|s)\b", "", line)
    if re.match(r"cost of regions|ratio|measured|log density|gradient", text):
        return " ".join(re.sub(r"-?\d[\d.e-]*", "", text).split())
    if text.startswith("recorded"):  # says why it is not the gradient measured where it is not
        return "recorded"
    if re.match(r"[ \d.%]* \| ", text):  # a line of the program
        return text.partition("|")[2]
    return " ".join(re.sub(r"(?<= )(?:\d+\.\d+|0)(?= |$)", "", text).split())


@pytest.mark.parametrize(("command", "shown"), MEASURED, ids=[command.split()[0] for command, _ in MEASURED])
def test_what_the_guide_shows(command: str, shown: str) -> None:
    invocation = [sys.executable, "-m", "ulam.tools.ulam_main", *shlex.split(command)]
    finished = subprocess.run(invocation, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert finished.returncode == 0, finished.stdout
    verdict = re.compile(r"cannot be told apart in speed from|is faster than|is slower than")
    lines = [line for line in finished.stdout.splitlines() if not line.startswith(("processor ", "outliers "))]
    printed = [verdict.sub("?", without_numbers(line)) for line in lines]  # those two are of a busy machine
    expected = [verdict.sub("?", without_numbers(line)) for line in shown.splitlines()]
    remaining = iter(printed)
    for line in expected:
        if line != "...":
            assert any(line == other for other in remaining), f"not printed: {line}\n{finished.stdout}"
    if "..." not in expected:
        assert len(printed) == len(expected)
