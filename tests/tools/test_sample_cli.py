"""`ulam sample`: what it shows and writes, how it ends, and what is left when it is ended."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ulam
from ulam.runtime.sampling.chain_csv import read_chain
from ulam.tools.ulam_main import main

ROOT = Path(__file__).parents[2]
SCHOOLS = ["examples/eight_schools.stan", "--data", "examples/eight_schools.json"]
SHORT = ["--chains", "2", "--warmup", "100", "--draws", "50", "--no-progress"]

SLOW = """
parameters { vector[20] x; }
model { for (k in 1:3000) x[1 + k % 20] ~ student_t(3, k * 1e-4, 1); }
generated quantities { vector[20] y = 2 * x; }
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.stan"
    path.write_text(SLOW)
    return path


def process(*words: str | Path, **options: Any) -> subprocess.Popen[str]:
    """The command, as the console script begins it."""
    script = "import sys; from ulam.tools.entry import ulam; sys.exit(ulam())"
    command = [sys.executable, "-c", script, "sample", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_summary_and_diagnosis(capsys: Capture) -> None:
    assert main(["sample", *SCHOOLS, *SHORT]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("parameter ") and "\ntheta[8] " in out and err == ""
    assert "\ndraws               2 x 50, after 100 of warmup\n" in out
    assert "The effective sample size of the bulk is below 200" in out


def test_progress_is_on_standard_error(capsys: Capture) -> None:
    assert main(["sample", *SCHOOLS, *SHORT[:-1]]) == 0
    lines = sorted(capsys.readouterr().err.splitlines())
    assert len(lines) == 2 and re.match(r"chain 1: done in [\d.]+ [mµ]?s, step size [\d.]+, \d+ divergence", lines[0])


def test_files(tmp_path: Path, capsys: Capture) -> None:
    names = {name: str(tmp_path / f"x.{name}") for name in ("csv", "ulam", "json")}
    words = ["--output", names["csv"], "--save", names["ulam"], f"--json={names['json']}", "--save-warmup"]
    assert main(["sample", *SCHOOLS, *SHORT, *words]) == 0
    told = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("written ")]
    chains = [str(tmp_path / f"x_{chain}.csv") for chain in (1, 2)]
    assert told == [*chains, names["json"], names["ulam"]] and sorted(map(str, tmp_path.iterdir())) == sorted(told)
    fit = ulam.load(names["ulam"])
    for chain, path in enumerate(chains):
        found = read_chain(path)
        assert (found.columns(fit.names) == fit.values[chain]).all() and len(found.warmup) == 100
    assert json.loads(Path(names["json"]).read_text())["chains"] == 2


def test_json_instead_of_text(capsys: Capture) -> None:
    assert main(["sample", *SCHOOLS, *SHORT, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["settings"]["draws"] == 50 and set(record["summary"]["mu"]) >= {"mean", "r_hat"}


def test_one_chain_to_standard_output() -> None:
    chain = process(*SCHOOLS, *SHORT, "--chains", "1", "--output", "-")
    out, err = chain.communicate(timeout=120)
    assert chain.returncode == 0 and out.startswith("# stan_version_major") and "parameter " in err
    assert main(["sample", *SCHOOLS, *SHORT, "--output", "-"]) == 2


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--sampler", "hmc", "--max-depth", "3"], 2, "sampler='hmc' has no max_depth"),
        (["--target-accept", "1.5"], 2, "target_accept must be a number between 0 and 1, found 1.5"),
        (["--adapt", "window"], 2, "--adapt: give NAME=VALUE, as in --adapt window=50, found 'window'"),
        (["--adapt", "size=3"], 2, "adapt has no setting 'size'; it has gamma"),
        (["--metric", "none.json"], 2, "'none.json' is none of these"),
        (["--init", "[{}]"], 2, "init must have initial values for each of 2 chains, found 1"),
        (["--init", "[1, 2]"], 1, "--init: expected an array of objects"),
        (["--init", "[{"], 1, "--init: not valid JSON"),
        (["--init", "none.json"], 1, "initial values: 'none.json' is no JSON text, and no file"),
        (["--init", '{"tau": -1}'], 1, "the initial value of 'tau' is not in its support"),
        (["--no-keep"], 2, "keep=False keeps no draws: give output"),
        (["--time-limit", "1e-9"], 124, "the time limit of 1e-09 s was reached"),
    ],
)
def test_what_cannot_be(words: list[str], status: int, text: str, capsys: Capture) -> None:
    assert main(["sample", *SCHOOLS, *SHORT, *words]) == status
    err = capsys.readouterr().err
    assert text in err and "Traceback" not in err


@pytest.mark.parametrize("init", ["0.1", "pathfinder", '{"tau": 3}', '[{"tau": 3}, {"mu": 1}]'])
def test_where_chains_begin(init: str, capsys: Capture) -> None:
    assert main(["sample", *SCHOOLS, *SHORT, "--init", init, "--adapt", "window=30", "--adapt", "t0=8"]) == 0
    assert capsys.readouterr().err == ""


def test_an_earlier_fit(tmp_path: Path, capsys: Capture) -> None:
    saved = str(tmp_path / "fit.ulam")
    assert main(["sample", *SCHOOLS, *SHORT, "--save", saved]) == 0
    assert (
        main(["sample", *SCHOOLS, *SHORT, "--init", saved, "--metric", saved, "--warmup", "0", "--step-size", "0.3"])
        == 0
    )
    assert capsys.readouterr().err == ""
    Path(saved).write_bytes(Path(saved).read_bytes()[:1000] + bytes(1000) + Path(saved).read_bytes()[2000:])
    assert main(["sample", *SCHOOLS, *SHORT, "--init", saved]) == 1
    assert "the file is damaged" in capsys.readouterr().err


def test_draws_in_files_only(tmp_path: Path, capsys: Capture) -> None:
    assert main(["sample", *SCHOOLS, *SHORT, "--no-keep", "--output", str(tmp_path / "x.csv")]) == 0
    assert "parameter" not in capsys.readouterr().out
    assert len(read_chain(tmp_path / "x_2.csv").draws) == 50


def test_nothing_large_is_imported() -> None:
    """ArviZ and pandas above all; on no terminal Rich is not either."""
    program = (
        "import sys; from ulam.tools.ulam_main import main; status = main(sys.argv[1:]); "
        "print([n for n in ('arviz', 'arviz_base', 'pandas', 'xarray', 'scipy', 'xdsl', 'rich.live') "
        "if n in sys.modules]); sys.exit(status)"
    )
    command = [sys.executable, "-c", program, "sample", *SCHOOLS, *SHORT]
    subprocess.run(command, capture_output=True, check=True)  # the second time what was compiled is there
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


# ---------------------------------------------------------------- ends


def test_time_limit(slow: Path, tmp_path: Path) -> None:
    """What there is by then is shown and written."""
    assert main(["sample", str(slow), *SHORT]) == 0  # compiles
    words = ("--draws", "100000", "--warmup", "20", "--chains", "1", "--time-limit", "3")
    run = process(slow, *words, "--output", tmp_path / "x.csv")
    out, err = run.communicate(timeout=120)
    assert run.returncode == 124 and "the time limit was reached; the draws so far are shown" in err
    assert "x[1]" in out and "100000 draws of each chain" in err
    assert len(read_chain(tmp_path / "x.csv").draws) > 10


def test_counted_draws_are_in_the_file(slow: Path, tmp_path: Path) -> None:
    """After SIGKILL, at whatever time."""
    program = """
import sys, ulam
model = ulam.StanModel(sys.argv[1])
def count(progress):
    print(progress.chain, progress.iteration - 50, flush=True)
model.sample(warmup=50, draws=1000000, chains=2, output=sys.argv[2], progress=count)
"""
    command = [sys.executable, "-c", program, str(slow), str(tmp_path / "x.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline() for _ in range(8)]
        time.sleep(random.random())
        run.kill()
        lines += run.stdout.readlines()
    counted = {chain: 0 for chain in (1, 2)}
    for line in lines:
        chain, draws = map(int, line.split())
        counted[chain] = max(counted[chain], draws)
    assert max(counted.values()) > 0
    for chain, draws in counted.items():
        found = read_chain(tmp_path / f"x_{chain}.csv")
        assert len(found.draws) >= draws and not found.is_whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slow.stan", "x_1.csv", "x_2.csv"]


def interrupted_at(seconds: float, slow: Path, folder: Path) -> None:
    """Runs the command and interrupts it after so long: nothing is left but its output."""
    run = process(slow, "--draws", "1000000", "--warmup", "50", "--output", folder / "x.csv", start_new_session=True)
    time.sleep(seconds)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130 and "Traceback" not in err and "ulam: interrupted" in err, (
        seconds,
        run.returncode,
        err,
    )
    for path in folder.iterdir():
        assert path.name in {"slow.stan", *(f"x_{chain}.csv" for chain in (1, 2, 3, 4))}
        if path.suffix == ".csv" and path.stat().st_size:
            assert path.read_bytes().endswith(b"\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)  # no process is left


def test_interrupts(slow: Path, tmp_path: Path) -> None:
    assert main(["sample", str(slow), *SHORT]) == 0  # compiles
    for seconds in (0.3, 1.5):
        interrupted_at(seconds, slow, tmp_path)


@pytest.mark.slow
def test_interrupts_at_random_times(slow: Path, tmp_path: Path) -> None:
    generator = random.Random(3)
    for _ in range(100):
        interrupted_at(generator.uniform(0.05, 2.5), slow, tmp_path)


def test_full_disk(slow: Path, tmp_path: Path) -> None:
    """One message; what had been written before is there."""

    def small() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    words = ("--draws", "3000", "--warmup", "50", "--chains", "1", "--no-progress", "--no-cache", "-O0")
    run = process(slow, *words, "--output", tmp_path / "x.csv", preexec_fn=small)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 1 and err == f"ulam: error: {tmp_path / 'x.csv'}: File too large\n"
    assert read_chain(tmp_path / "x.csv").draws.shape[1] == 47
