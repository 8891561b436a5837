"""xDSL's own tools know our dialects and passes."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest
from xdsl.universe import XDSL_UNIVERSE, Universe

from ulam.passes.pipelines import PASSES, pass_class
from ulam.runtime.modules.known_dialects import OWN_DIALECTS
from ulam.tools import stan_opt
from ulam.tools.universe import UNIVERSE, shown_name

ROOT = Path(__file__).resolve().parents[2]


def test_the_entry_point_is_the_universe() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (name, value), *more = project["entry-points"]["xdsl.universe"].items()
    assert EntryPoint(name, value, "xdsl.universe").load() is UNIVERSE and not more


def test_no_name_is_taken_twice() -> None:
    """Else every command of xDSL would fail where ulam is installed."""
    assert not set(UNIVERSE.all_passes) & set(XDSL_UNIVERSE.all_passes)
    assert not set(UNIVERSE.all_dialects) & set(XDSL_UNIVERSE.all_dialects)
    assert {name for name in PASSES if shown_name(name) != name} == {"cse", "dce", "licm"}


def test_all_that_is_named_is_there() -> None:
    assert {dialect().name for dialect in UNIVERSE.all_dialects.values()} == set(OWN_DIALECTS)
    for (shown, factory), name in zip(UNIVERSE.all_passes.items(), PASSES, strict=True):
        cls = factory()
        assert cls.name == shown and issubclass(cls, pass_class(name))


def test_xdsl_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A unit becomes the same by xDSL's command as by ours."""
    if not any(point.value == "ulam.tools.universe:UNIVERSE" for point in entry_points(group="xdsl.universe")):
        pytest.skip("ulam was installed before it had this entry point: pip install -e .")
    assert isinstance(Universe.get_multiverse(), Universe)
    assert stan_opt.main([str(ROOT / "examples" / "linear_regression.stan"), "-o", str(tmp_path / "m.mlir")]) == 0
    pipeline = "structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,hoist-data,cse,dce"
    assert stan_opt.main([str(tmp_path / "m.mlir"), "-p", pipeline]) == 0
    ours = capsys.readouterr().out
    command = Path(sys.executable).with_name("xdsl-opt")
    theirs = pipeline.replace(",cse,dce", ",stan-cse,stan-dce")
    done = subprocess.run([command, tmp_path / "m.mlir", "-p", theirs], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ours.strip() and "rt.load" in ours
