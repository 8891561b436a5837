"""What `stan-opt` tells about passes, and the pipelines that it takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ulam.passes.pipelines import PASSES
from ulam.tools import stan_opt

PROGRAM = """data { int N; array[N] int y; vector[N] x; }
parameters { real a; }
model {
  profile("a") { target += -a * a; }
  y ~ poisson_log(a + x);
}
"""
_PASSES = "simplify,hoist-data,lighten-loops,fuse-loops{before-reverse-mode=true}"
_TO_LOOPS = f"structure-exits,promote-variables,convert-stan-to-loops,{_PASSES}"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "m.stan"
    path.write_text(PROGRAM)
    return str(path)


def _run(*arguments: str) -> None:
    assert stan_opt.main([*arguments]) == 0


def test_version(capsys: Capture) -> None:
    _run("--version")
    assert re.fullmatch(r"stan-opt \(ulam \d\S*, xDSL \d\S*, llvmlite \d\S*\)\n", capsys.readouterr().out)


def test_list_of_passes(capsys: Capture, tmp_path: Path) -> None:
    """Each pass, what it is for, its options with types and defaults."""
    _run("--list-passes", f"--json={tmp_path / 'passes.json'}")
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if not line.startswith(" ")] == sorted(PASSES)
    assert "licm\n    Moves loop-invariant ops out of loops" in text and "      guarded: bool = false" in text
    assert "      passes: str, required\n" in text
    _run("--list-passes", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "passes.json").read_text())
    assert {entry["name"] for entry in told} == set(PASSES)
    for entry in told:
        assert entry["purpose"][0].isupper() and len(entry["purpose"]) > 20, entry
    (repeat,) = (entry for entry in told if entry["name"] == "repeat")
    assert repeat["options"] == [
        {"name": "passes", "type": "str"},
        {"name": "max", "type": "int", "default": 4},
    ]


def test_pipeline_in_mlir_syntax(program: str, capsys: Capture) -> None:
    _run(program, "-p", _TO_LOOPS)
    short = capsys.readouterr().out
    _run(program, f"--pass-pipeline=builtin.module({_TO_LOOPS})")
    assert capsys.readouterr().out == short
    assert stan_opt.main([program, "--pass-pipeline=builtin.module(func.func(cse))"]) == 2
    assert "no func.func(...)" in capsys.readouterr().err


def _dumps(text: str) -> list[str]:
    return re.findall(r"^// -----// IR Dump (.*) //----- //$", text, re.MULTILINE)


def test_steps_of_passes_are_printed(program: str, capsys: Capture) -> None:
    _run(program, "-p", _TO_LOOPS, "--print-ir-after-all")
    after = _dumps(capsys.readouterr().err)
    expected = ["structure-exits", "promote-variables", "convert-stan-to-loops"]
    expected += [f"simplify > {step}" for step in ("fold", "cse", "licm", "dce")] + ["simplify", "hoist-data"]
    assert after[: len(expected)] == [f"After {name}" for name in expected]
    # There are checks of data, so what depends on data is hoisted again.
    again = after.index("After lighten-loops > if-changed > hoist-data")
    assert after[again - 1] == "After lighten-loops > if-changed > dce"
    assert "After lighten-loops > defer-checks" in after and after[-1] == "After fuse-loops"
    _run(program, "-p", _TO_LOOPS, "--print-ir-before-all")
    before = _dumps(capsys.readouterr().err)
    assert before[:5] == [f"Before {n}" for n in (*expected[:3], "simplify", "simplify > fold")]
    assert len(before) == len(after)


def test_changes_are_printed(program: str, capsys: Capture) -> None:
    """Exactly those after which the text is another."""
    pipeline = "structure-exits,strip-profiles,strip-profiles"
    _run(program, "-p", pipeline, "--print-ir-after-change")
    assert _dumps(capsys.readouterr().err) == ["After strip-profiles"]
    _run(program, "-p", pipeline, "--print-ir-after-change", "--print-ir-before-all")
    assert len(_dumps(capsys.readouterr().err)) == 4


def test_units_are_lowered_in_sight(program: str, capsys: Capture) -> None:
    _run(program, "-O0", "--unit", "gradient_propto", "--print-ir-after-all", "--verify-each")
    printed = _dumps(capsys.readouterr().err)
    assert printed[:4] == [
        "After structure-exits", "After split-branch-chains", "After promote-variables", "After convert-stan-to-loops",
    ]  # fmt: skip
    assert printed[-1] == "After loop-hints" and "After reverse-mode" in printed


def _all(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for each in rows for row in (each, *_all(each["steps"]))]


def test_timing(program: str, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    _run(program, "-O3", "--unit", "value_full", "--timing", f"--json={file}", "-o", str(tmp_path / "out.mlir"))
    table = capsys.readouterr().err
    told = json.loads(file.read_text())
    assert [line.split()[-1] for line in table.splitlines()[1:-1]] == [row["pass"] for row in _all(told["passes"])]
    assert re.search(r"^ +\d+\.\d\d +\d+\.\d +1  simplify\n +\d.* 1    fold$", table, re.MULTILINE)
    assert told["seconds"] == pytest.approx(sum(row["seconds"] for row in told["passes"]))
    for row in _all(told["passes"]):
        assert row["runs"] >= 1 and sum(step["seconds"] for step in row["steps"]) <= row["seconds"]
    _run(program, "-p", "simplify", "--timing", "--json", "-o", str(tmp_path / "out.mlir"))
    assert json.loads(capsys.readouterr().err)["passes"][0]["pass"] == "simplify"


def test_of_several_pieces_times_are_added(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("builtin.module {}\n// -----\nbuiltin.module {}\n")
    _run(str(path), "--split-input-file", "-p", "cse", "--timing", "--json")
    (row,) = json.loads(capsys.readouterr().err)["passes"]
    assert (row["pass"], row["runs"]) == ("cse", 2)


def test_files_are_looked_at_before_passes_run(program: str, capsys: Capture) -> None:
    assert stan_opt.main([program, "--timing", f"--json={program}"]) == 2
    assert "would be lost" in capsys.readouterr().err
    assert Path(program).read_text() == PROGRAM
    assert stan_opt.main(["--list-passes", "--json="]) == 2
    assert "give the name of a file" in capsys.readouterr().err
