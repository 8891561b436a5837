"""`ulam trace`: functions and densities, formats, saved traces, comparisons, messages and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from trace_programs import GEOM_ONE_LEVEL, PROGRAM, UNIFORMS, H

from ulam import StanModel
from ulam.tools import ulam_main
from ulam.trace import format_levels, from_json, load

pytestmark = pytest.mark.usefixtures("quick_code")

DENSITY = """data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 10); y ~ normal(mu, sigma); }
"""
DATA = '{"N": 2, "y": [0.5, -1.5]}'
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.stan").write_text(PROGRAM)
    Path("d.stan").write_text(DENSITY)
    return tmp_path


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    status = ulam_main.main(["trace", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_text(capsys: Capture) -> None:
    assert run(capsys, "m.stan", "--function", "h", "--args", "2.0", "2", "--levels", "2") == (0, H + "\n", "")
    scripted = json.dumps(UNIFORMS)
    status, out, _ = run(capsys, "m.stan", "-f", "geom_rng", "--args", "1", "0.5", "--scripted", scripted, "-n", "2")
    assert (status, out) == (0, GEOM_ONE_LEVEL + "\n")
    _, out, _ = run(capsys, "m.stan", "-f", "h", "--args", "-1.5", "3", "-n", "1", "--style", "full")
    assert out == "⟨h⟩(⟨-1.5⟩, ⟨3⟩) = 1.75::real\n", "negative arguments are no options"
    _, out, _ = run(capsys, "m.stan", "-f", "h", "--args", "2", "2", "--source")
    assert "  (m.stan:8:" in out
    _, out, _ = run(capsys, "m.stan", "-f", "h", "--args", "2", "2", "--only", "f")
    assert "Arg:§1:%1] zero" not in out


def test_random_numbers(capsys: Capture) -> None:
    outputs = [run(capsys, "m.stan", "-f", "rand_rng", "-n", "1", "--seed", seed)[1] for seed in ("1", "1", "2")]
    assert outputs[0] == outputs[1] != outputs[2]


def test_density(capsys: Capture) -> None:
    status, out, _ = run(capsys, "d.stan", "-d", DATA, "--density", "--theta", "[0.25, 0.5]", "-n", "2")
    assert status == 0
    node = StanModel(DENSITY, json.loads(DATA), opt_level=0).track_density([0.25, 0.5])
    assert out == format_levels(node, 2) + "\n"
    status, out, _ = run(
        capsys, "d.stan", "-d", DATA, "--density", "--init", '{"mu": 0.25, "sigma": 2}', "--no-jacobian"
    )
    assert status == 0 and "jacobian" not in out and "= 2.0\n" in out
    _, dropped, _ = run(capsys, "d.stan", "-d", DATA, "--density", "--theta", "[0.25, 0.5]", "-n", "1", "--propto")
    assert dropped != out


def test_formats(capsys: Capture) -> None:
    call = ("m.stan", "-f", "h", "--args", "2.0", "2")
    assert run(capsys, *call, "--format", "dot")[1].startswith('digraph "h"')
    assert run(capsys, *call, "-o", "h.svg") == (0, "", "")
    ElementTree.parse("h.svg")
    assert run(capsys, *call, "-o", "h.json")[0] == 0
    assert format_levels(from_json(Path("h.json")).root, 2) == H
    assert json.loads(run(capsys, *call, "--format", "chrome")[1])["traceEvents"]
    assert json.loads(run(capsys, *call, "--format", "json")[1])["version"] == 1
    assert json.loads(run(capsys, *call, "--format", "chrome")[1])["otherData"]["clock"] == "time of the run"
    assert "real h_trace(real x, int n)" in run(capsys, *call, "--format", "stan")[1]
    run(capsys, *call, "-o", "h.txt", "-n", "2")
    assert Path("h.txt").read_text(encoding="utf-8") == H + "\n"
    assert "nodes: @" in run(capsys, *call, "--format", "svg", "--max-nodes", "10")[1]


def test_saved_traces(capsys: Capture) -> None:
    run(capsys, "m.stan", "-f", "h", "--args", "2.0", "2", "--save", "h.trace")
    assert format_levels(load("h.trace"), 2) == H
    assert run(capsys, "h.trace", "-n", "2") == (0, H + "\n", "")
    run(capsys, "h.trace", "-o", "h.json")
    assert run(capsys, "h.json", "-n", "2") == (0, H + "\n", "")
    Path("bad.trace").write_bytes(Path("h.trace").read_bytes()[:-1])
    status, _, err = run(capsys, "bad.trace")
    assert status == 1 and "damaged" in err
    Path("bad.json").write_text("{}")
    status, _, err = run(capsys, "bad.json")
    assert status == 1 and "version" in err


def test_differences(capsys: Capture) -> None:
    run(capsys, "m.stan", "-f", "h", "--args", "2.0", "2", "--save", "a.trace")
    run(capsys, "m.stan", "-f", "h", "--args", "2.0", "3", "--save", "b.trace")
    status, out, _ = run(capsys, "a.trace", "--diff", "b.trace")
    assert status == 0 and "@24: ⟨<⟩(@22, @3) is false in a, true in b" in out
    status, out, _ = run(capsys, "a.trace", "--diff", "b.trace", "--format", "json")
    assert json.loads(out)["first_divergent_edge"]["node"]["path"] == "@24"
    Path("other.stan").write_text(PROGRAM.replace("r += x ^ i", "r += 1 + x ^ i"))
    _, out, _ = run(capsys, "m.stan", "-f", "h", "--args", "2.0", "2", "--diff", "other.stan")
    assert "3.0  5.0" in out and "other" not in out.split("values:")[0]
    _, out, _ = run(capsys, "m.stan", "-f", "h", "--args", "2.0", "2", "--diff", "a.trace")
    assert "no difference" in out


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ("m.stan", 2, "--function NAME"),
        ("m.stan -f h --density", 2, "--function NAME"),
        ("m.stan -f h --args 2.0", 1, "'h' takes 2 arguments, not 1"),
        ("m.stan -f h --args x 2", 1, "number 1: expected a number or an array in JSON, found 'x'"),
        ("m.stan -f h --args 2.0 0.5", 1, "argument 'n' is int"),
        ("m.stan -f hh", 1, "no function 'hh'; did you mean 'h'?"),
        ("m.stan -f h --args 2.0 2 --wrong", 2, "no such option: --wrong"),
        ("m.stan 3 2 -f h", 2, "unexpected argument '3'; those of the function stand after --args: --args 3 2"),
        ("m.stan -f h --args 2.0 2 --format png", 2, "--format must be text"),
        ("m.stan -f h --args 2.0 2 --style x", 2, "--style must be seed or full"),
        ("m.stan -f h --args 2.0 2 --unconstrained [1]", 2, "--unconstrained"),
        ("m.stan -f h --args 2.0 2 --only g", 1, "does not have: g"),
        ("m.stan -f h --args 2.0 2 --diff m.stan --format dot", 2, "text or json"),
        ("m.stan -f h --args 2.0 2 --diff none.trace", 1, "'none.trace' does not exist"),
        ("m.stan -f rand_rng --scripted 2", 1, "--scripted: expected an array"),
        ("none.stan -f h", 1, "'none.stan' does not exist"),
        ("d.stan --density --theta [1,2,3] -d {\"N\":0,\"y\":[]}", 1, "2 unconstrained parameters"),
        ("d.stan --density --theta [[1,2],[3,4]] -d {\"N\":0,\"y\":[]}", 2, "give one point, found 2"),
        ("d.stan --density --unconstrained [1,2] --init 1", 2, "either --unconstrained or --init"),
        ("d.stan --density --args 1", 2, "--args"),
    ],
)  # fmt: skip
def test_messages(capsys: Capture, arguments: str, status: int, told: str) -> None:
    found, out, err = run(capsys, *arguments.split())
    assert (found, out) == (status, "") and told in err, err
    assert err.startswith("ulam: error: ")


def test_a_run_that_fails(capsys: Capture) -> None:
    """What was recorded is shown; the status is that of other failures."""
    status, out, err = run(capsys, "m.stan", "-f", "geom_rng", "--args", "1", "0.5", "--scripted", "[0.75]")
    assert status == 1 and out.startswith("⟨geom_rng⟩(⟨1⟩, ⟨0.5⟩) = ✗ ") and "the run failed" in err


def test_what_the_program_prints_is_apart(capsys: Capture) -> None:
    Path("p.stan").write_text('functions { void tell(int n) { print("n = ", n); } }')
    status, out, err = run(capsys, "p.stan", "-f", "tell", "--args", "3", "--format", "json")
    assert status == 0 and err == "n = 3\n" and json.loads(out)["version"] == 1
