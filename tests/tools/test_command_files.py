"""Files on the command line, over all commands: outputs are checked before the run, `-` is read, JSON is JSON."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ulam.runtime.model import StanModel
from ulam.tools import stan_opt, ulam_main
from ulam.tools.commands import COMMANDS
from ulam.tools.options import OPTIONS, long_name, told_name

pytestmark = pytest.mark.usefixtures("quick_code")
Capture = pytest.CaptureFixture[str]

PROGRAM = """functions { real f(real x) { return x / 0; } }
data { int N; vector[N] y; }
parameters { real mu; }
model { y ~ normal(mu, 1); }
generated quantities { real big = positive_infinity(); array[2] real none = {not_a_number(), negative_infinity()}; }
"""
DATA = '{"N": 2, "y": [0.5, -1.5]}'

MINIMAL: dict[str, list[str]] = {
    "sample": ["--data", DATA, "--chains", "1", "--draws", "20", "--warmup", "10", "--no-progress"],
    "optimize": ["--data", DATA],
    "laplace": ["--data", DATA, "--draws", "2"],
    "pathfinder": ["--data", DATA, "--draws", "30"],
    "generate-quantities": ["--data", DATA, "--draws", "../draws.csv"],
    "report": ["--data", DATA, "--program", "m.stan", "--no-costs"],
    "profile": ["--data", DATA, "--auto", "statements", "--gradients", "2"],
    "bench": ["--data", DATA, "--vs-opt-level", "0", "--rounds", "2", "--gradients", "2"],
    "log-density": ["--data", DATA, "--unconstrained", "0.5"],
    "trace": ["--data", DATA, "--density", "--unconstrained", "0.5"],
    "explain": ["--data", DATA, "--unconstrained", "0.5"],
    "explain-compile": ["--data", DATA, "--opt-level", "0"],
    "build": ["--opt-level", "0"],
    "check": [],
    "info": [],
}
"""What each command is given besides a program."""

SUBJECT = {"report": "../draws.csv"}
"""What commands are given that are about something else."""

WRITING = [(command, name) for command in COMMANDS for name in COMMANDS[command].names() if OPTIONS[name].writes]
READING = [
    (command, name)
    for command in COMMANDS
    for name in COMMANDS[command].names()
    if OPTIONS[name].reads and not OPTIONS[name].argument
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.stan").write_text(PROGRAM)
    (tmp_path.parent / "draws.csv").write_text("lp__,mu,big,none.1,none.2\n-1,0.5,inf,nan,-inf\n")
    return tmp_path


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is made: what fails, fails before."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a model was made")

    monkeypatch.setattr(StanModel, "__init__", fail)


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    status = ulam_main.main(words)
    out, err = capsys.readouterr()
    return status, out, err


def without(command: str, name: str) -> list[str]:
    """The minimal arguments without one of the options."""
    words = MINIMAL[command]
    if long_name(name) not in words:
        return words
    place = words.index(long_name(name))
    return words[:place] + words[place + 2 :]


def strictly(text: str) -> Any:
    """JSON, and nothing that only Python reads."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


# ---------------------------------------------------------------- outputs


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(("command", "name"), WRITING)
def test_outputs_are_checked_before_the_run(command: str, name: str, folder: Path, capsys: Capture) -> None:
    words = [command, SUBJECT.get(command, "m.stan"), *MINIMAL[command]]
    program = "--program" if command in SUBJECT else "MODEL"
    for path, reason in (("none/x.json", "the folder 'none' does not exist"), (str(folder), "Is a directory")):
        status, out, err = run(capsys, *words, f"{long_name(name)}={path}")
        assert (status, out) == (1, "") and err == f"ulam: error: {path}: {reason}\n"
    status, out, err = run(capsys, *words, f"{long_name(name)}=m.stan")
    assert status == 2 and f"{long_name(name)} 'm.stan' is the file of {program}, which would be lost" in err
    assert Path("m.stan").read_text() == PROGRAM and os.listdir() == ["m.stan"]


@pytest.mark.parametrize(
    "words",
    [
        ["sample", "--json"], ["sample", "-o", "-"], ["optimize", "--json"], ["optimize", "-o", "-"],
        ["laplace", "-o", "-"], ["pathfinder", "-o", "-"], ["log-density"],
    ],
)  # fmt: skip
def test_what_programs_print_is_no_part_of_what_other_programs_read(words: list[str], capfd: Any) -> None:
    Path("m.stan").write_text(PROGRAM.replace("model {", 'model { print("a word");', 1))
    assert ulam_main.main([words[0], "m.stan", *MINIMAL[words[0]], *words[1:], "-O0"]) == 0
    out, err = capfd.readouterr()
    assert "a word" not in out and "a word\n" in err
    assert out.startswith(("{", "# stan_version_major"))


@pytest.mark.usefixtures("no_model")
def test_two_outputs_of_one_name(capsys: Capture) -> None:
    words = ["optimize", "m.stan", *MINIMAL["optimize"]]
    status, _, err = run(capsys, *words, "--json=x", "-o", "./x")
    assert status == 2 and "--json and --output are the same file" in err
    Path("d.json").write_text(DATA)
    status, _, err = run(capsys, "optimize", "m.stan", "--data", "d.json", "--json", "d.json")
    assert status == 2 and "--json 'd.json' is the file of --data, which would be lost" in err
    os.symlink("d.json", "link")
    assert run(capsys, "optimize", "m.stan", "--data", "d.json", "-o", "link")[0] == 2


@pytest.mark.parametrize("command", sorted({command for command, _ in WRITING}))
def test_outputs_are_written(command: str, capsys: Capture) -> None:
    """All of a command's at once, over files that are there, and nothing else is left. What is JSON is JSON."""
    files = {name: Path(f"{name}.json" if name != "output" else "o.txt") for c, name in WRITING if c == command}
    for path in files.values():
        path.write_text("old")
    given = [f"{long_name(name)}={path}" for name, path in files.items()]
    os.utime("o.txt", (0, 0)) if "output" in files else None  # else `profile` takes it for one of a parallel run
    status, out, err = run(capsys, command, SUBJECT.get(command, "m.stan"), *MINIMAL[command], *given)
    assert status == 0, err
    assert sorted(os.listdir()) == sorted(["m.stan", *map(str, files.values())])
    for name, path in files.items():
        text = path.read_bytes()
        assert text != b"old"
        if name in ("json", "speedscope", "trace") and text:
            strictly(text.decode())
    assert command == "check" or command in ("log-density", "trace") or out


@pytest.mark.parametrize(("command", "name"), [*WRITING, *READING])
@pytest.mark.usefixtures("no_model")
def test_names_of_files_are_not_empty(command: str, name: str, capsys: Capture) -> None:
    words = [command, "m.stan", *without(command, name)]
    option = long_name(name)
    for written in ([f"{option}="], [option, ""], *([[OPTIONS[name].short, ""]] if OPTIONS[name].short else [])):
        assert run(capsys, *words, *written) == (
            2, "", f"ulam: error: {written[0].removesuffix('=')}: give the name of a file\n"
        )  # fmt: skip


@pytest.mark.parametrize(("command", "name"), WRITING)
@pytest.mark.usefixtures("no_model")
def test_outputs_replace_no_included_file(command: str, name: str, folder: Path, capsys: Capture) -> None:
    Path("m.stan").write_text(PROGRAM + '#include "parts/last.stan"\n')
    Path("parts").mkdir()
    part = Path("parts/last.stan")
    part.write_text("// the end\n")
    Path("link.stan").symlink_to(part)
    for file in (str(part), "link.stan"):
        words = [command, SUBJECT.get(command, "m.stan"), *without(command, name)]
        status, out, err = run(capsys, *words, f"{long_name(name)}={file}")
        assert (status, out) == (2, "") and "is a file that m.stan includes, which would be lost" in err
    assert part.read_text() == "// the end\n"


@pytest.mark.parametrize("command", sorted({command for command, _ in WRITING}))
@pytest.mark.usefixtures("no_model")
def test_standard_output_takes_one_thing(command: str, capsys: Capture) -> None:
    names = [name for other, name in WRITING if other == command]
    for one, other in pairwise(names):
        status, out, err = run(
            capsys, command, "m.stan", *MINIMAL[command], f"{long_name(one)}=-", f"{long_name(other)}=/dev/stdout"
        )
        assert (status, out) == (2, "") and "standard output takes one thing" in err


def test_a_profile_on_standard_output_is_alone(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("profile", "m.stan", *MINIMAL["profile"])
    assert ulam_main.main([*words, "-o", "-"]) == 0
    out, err = capfd.readouterr()
    assert {len(row) for row in csv.reader(out.splitlines())} == {9} and out.startswith("name,")
    assert "per pass" in err and "compile time" in err
    assert ulam_main.main([*words, "--no-output", "--trace", "/dev/fd/1"]) == 0
    out, err = capfd.readouterr()
    assert "traceEvents" in json.loads(out) and "per pass" in err


def test_standard_output_is_a_file_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert ulam_main.main(["optimize", "m.stan", *MINIMAL["optimize"], "-o", "-"]) == 0
    out, err = capfd.readouterr()
    assert "lp__,converged__,mu,big,none.1,none.2" in out and "parameter" not in out and "parameter" in err
    assert run_quietly("optimize", "-o", "/dev/null") == 0 and os.listdir() == ["m.stan"]


def run_quietly(command: str, *words: str) -> int:
    return ulam_main.main([command, "m.stan", *MINIMAL[command], *words])


def test_a_full_disk_is_told(capsys: Capture) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    for command, name in (("optimize", "output"), ("laplace", "output"), ("trace", "output"), ("optimize", "json")):
        status, _, err = run(capsys, command, "m.stan", *MINIMAL[command], f"{long_name(name)}=/dev/full")
        assert status == 1 and err.endswith("ulam: error: /dev/full: No space left on device\n")
    code = "import sys; from ulam.tools.ulam_main import main; sys.exit(main(['info', 'm.stan']))"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "ulam: error: standard output: No space left on device\n")


def test_an_interrupt_leaves_no_file() -> None:
    """While the program runs, and so before anything is written."""
    Path("slow.stan").write_text(
        'parameters { real x; } model { x ~ normal(0, 1); } generated quantities { print("drawing"); real s = 0; '
        "for (i in 1 : 100000) s += sin(i); }"
    )
    words = ["laplace", "slow.stan", "--draws", "100000", "-o", "o.csv", "-O", "0"]
    Path("o.csv").write_text("old")
    code = f"import sys; from ulam.tools.ulam_main import main; sys.exit(main({words}))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130
    assert sorted(os.listdir()) == ["m.stan", "o.csv", "slow.stan"]
    assert Path("o.csv").read_text() == "old" or Path("o.csv").read_text().startswith("# stan_version_major")


def test_names_with_line_ends() -> None:
    """They would end a comment of CSV, or a message."""
    name = "a\nb\x1b[31m.stan"
    Path(name).write_text(PROGRAM)
    assert ulam_main.main(["optimize", name, *MINIMAL["optimize"], "-o", "o.csv"]) == 0
    lines = Path("o.csv").read_text().splitlines()
    assert r"# model = a\nb\x1b[31m_model" in lines
    assert [line for line in lines if not line.startswith("#")][0].startswith("lp__,")


# ---------------------------------------------------------------- standard input


@pytest.mark.parametrize("command", [command for command in MINIMAL if command not in SUBJECT])
def test_a_program_from_standard_input(command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages call it `<stdin>`."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("model { x ~ normal(0, 1); }"))
    status, _, err = run(capsys, command, "-", *MINIMAL[command])
    assert status == 1 and err.startswith("<stdin>:1:9: error: 'x' is not declared here")


@pytest.mark.parametrize(("command", "name"), READING)
def test_other_input_from_standard_input(
    command: str, name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong with it has its name; it cannot be two things at once."""
    if name == "diff":
        words = ["-f", "f", "--args", "1"]
    else:
        words = without(command, {"init": "unconstrained"}.get(name, name))
    words = [command, SUBJECT.get(command, "m.stan"), *words, long_name(name), "-"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("{ x"))
    status, _, err = run(capsys, *words)
    told = "not a CSV file" if name == "draws_files" else "not valid JSON"
    assert status == 1 and "<stdin>" in err and (told in err or name in ("vs", "diff", "program")), err
    status, _, err = run(capsys, command, "-", *words[2:])
    model = told_name(COMMANDS[command].arguments[0])
    assert status == 2 and f"standard input can be read once, and {model} and {long_name(name)} are -" in err


def test_standard_input_works(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(capsys, "log-density", "m.stan", *MINIMAL["log-density"])
    assert expected[0] == 0
    for words, text in (
        (["-", *MINIMAL["log-density"]], PROGRAM),
        (["m.stan", "--data", "-", "--unconstrained", "0.5"], DATA),
        (["m.stan", "--data", DATA, "--unconstrained", "-"], "[0.5]"),
        (["m.stan", "--data", DATA, "--init", "-"], '{"mu": 0.5}'),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        assert run(capsys, "log-density", *words) == expected
    ulam_main.main(["optimize", "m.stan", *MINIMAL["optimize"], "-o", "fit.csv"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(Path("fit.csv").read_text()))
    capsys.readouterr()
    assert run(capsys, "laplace", "m.stan", *MINIMAL["laplace"], "--mode", "-")[0] == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(PROGRAM))
    assert run(capsys, "bench", "m.stan", *without("bench", "vs_opt_level"), "--vs", "-")[0] == 0


def test_stan_opt_reads_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(DATA))
    assert stan_opt.main(["m.stan", "-O4", "--data", "-", "-t", "stan"]) == 0
    assert stan_opt.main(["-", "-f", "stan", "--data", "-"]) == 2
    assert "standard input can be read once" in capsys.readouterr().err
    for output, status in (("none/x", 1), (".", 1), ("m.stan", 2)):
        assert stan_opt.main(["m.stan", "-o", output]) == status
    assert Path("m.stan").read_text() == PROGRAM
    assert stan_opt.main(["m.stan", "-o", "x.mlir"]) == 0 and Path("x.mlir").stat().st_size


# ---------------------------------------------------------------- early messages


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("optimize m.stan --init none.json", 1, "none.json"),
        ("optimize m.stan --init {x", 1, "not valid JSON"),
        ("optimize m.stan --tol-obj -1", 2, "tol_obj"),
        ("optimize m.stan --algorithm newton --tol-obj 1", 2, "newton takes iter only"),
        ("optimize m.stan --unconstrained [[1],[2]]", 2, "give one point, found 2"),
        ("laplace m.stan --mode none.csv", 1, "none.csv"),
        ("laplace m.stan --mode none.json", 1, "none.json"),
        ("log-density m.stan", 2, "--unconstrained"),
        ("log-density m.stan --params none.json", 1, "none.json"),
        ("log-density m.stan --params [x]", 1, "not valid JSON"),
        ("explain m.stan --theta 1 --init 1", 2, "either --unconstrained or --init"),
        ("profile m.stan --auto loops", 2, "--auto must be statements, blocks or functions"),
        ("bench m.stan", 2, "--vs"),
        ("trace m.stan --density --theta {}", 1, "params_r"),
    ],
)
def test_mistakes_are_told_before_compiling(words: str, status: int, told: str, capsys: Capture) -> None:
    found, out, err = run(capsys, *words.split())
    assert (found, out) == (status, "") and told in err and err.startswith("ulam: error: "), err


@pytest.mark.parametrize("command", ["optimize", "profile", "log-density"])
def test_names_that_mean_nothing(command: str, capsys: Capture) -> None:
    """Told once, however often the data are bound, and apart from the output."""
    words = [word.replace('"y"', '"yy": 1, "y"') for word in MINIMAL[command]]
    status, out, err = run(capsys, command, "m.stan", *words)
    assert status == 0 and out and "yy" not in out
    assert err == "ulam: warning: data: 'yy' is not declared in the data block and is ignored\n"
    if command == "optimize":
        Path("two.stan").write_text("parameters { real mu; real sigma; } model { target += -mu ^ 2 - sigma ^ 2; }")
        status, _, err = run(capsys, command, "two.stan", "--init", '{"mu": 0, "sgma": 1}')
        assert status == 0 and err.startswith("ulam: warning: ") and "'sgma' (did you mean 'sigma'?)" in err


# ---------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    "words",
    [
        "log-density m.stan --unconstrained 1e200",
        "optimize m.stan --json",
        "explain m.stan --unconstrained 1e200 --json",
        "trace m.stan --density --unconstrained 1e200 --format json",
        "trace m.stan -f f --args 1 --format json",
        "trace m.stan -f f --args 1 --diff m.stan --format json",
        "trace m.stan -f f --args 1 --format chrome",
    ],
)
def test_json_is_json(words: str, capsys: Capture) -> None:
    """Of values that JSON does not have. What is written to files is tested with these."""
    given = [] if " -f " in words else ["--data", DATA]
    status, out, err = run(capsys, *words.split(), *given)
    assert status in (0, 1) and out, err
    strictly(out)


def test_what_is_printed_can_be_read(capsys: Capture) -> None:
    Path("inf.stan").write_text("parameters { real x; } model { target += x / 0; }")
    assert ulam_main.main(["log-density", "inf.stan", "--params", "1"]) == 0
    printed = capsys.readouterr().out
    assert strictly(printed) == {"log_density": "Infinity", "gradient": ["Infinity"]}
    model = StanModel("data { vector[1] gradient; real log_density; } parameters { real x; }", printed)
    assert model.bound_values()["log_density"] == float("inf") == model.bound_values()["gradient"][0]
    assert ulam_main.main(["log-density", "inf.stan", "--params", json.dumps(strictly(printed)["gradient"])]) == 0
    assert strictly(capsys.readouterr().out)["log_density"] == "Infinity"
