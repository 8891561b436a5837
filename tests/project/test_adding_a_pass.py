"""The pass that CONTRIBUTING shows how to add works as it says, with the test that stands there."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from filecheck.main import main as filecheck

from ulam.passes import pipelines
from ulam.tools import stan_opt

GUIDE = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()


def _listing(language: str) -> str:
    section = GUIDE[GUIDE.index("## Adding a pass") : GUIDE.index("## Style")]
    (text,) = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", section, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(text[1])


def _filecheck(test: Path, output: Path) -> object:
    with pytest.raises(SystemExit) as ended:
        filecheck(["filecheck", str(test), "--input-file", str(output)])
    return ended.value.code


def test_the_pass_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "ulam.passes.loops.merge_branches"
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(_listing("python"), "merge_branches.py", "exec"), module.__dict__)
    test = tmp_path / "merge-branches.mlir"
    test.write_text(_listing("mlir"))
    monkeypatch.setitem(pipelines.PASSES, "merge-branches", f"{name}:MergeBranches")
    assert stan_opt.main(["-p", "merge-branches,verify-dominance", str(test)]) == 0
    output = tmp_path / "output.mlir"
    output.write_text(capsys.readouterr().out)
    assert _filecheck(test, output) == 0
    assert stan_opt.main(["--list-passes"]) == 0
    assert "    Makes one branch of neighbours that have the same condition.\n" in capsys.readouterr().out
    # Without the pass the test of the guide fails.
    assert stan_opt.main([str(test), "-o", str(output)]) == 0
    assert _filecheck(test, output) == 1
